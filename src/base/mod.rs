//! The ground floor: what every wing speaks of, and what needs nothing.

mod duration;
mod fact;
pub mod json;
pub mod printable;
pub mod shell;
mod utc;

pub use duration::duration;
pub use fact::Fact;
pub use utc::utc;
