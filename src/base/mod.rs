//! The ground floor: two things that every wing speaks of, and that need nothing.

mod fact;
mod utc;

pub use fact::Fact;
pub use utc::utc;
