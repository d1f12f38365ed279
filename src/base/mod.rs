//! The ground floor: what every wing speaks of, and what needs nothing.

mod fact;
pub mod printable;
mod utc;

pub use fact::Fact;
pub use utc::utc;
