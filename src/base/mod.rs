//! The ground floor: types and helpers that every wing uses and that need no other wing.

mod duration;
mod fact;
pub mod json;
pub mod printable;
pub mod shell;
mod utc;

pub use duration::duration;
pub use fact::Fact;
pub use utc::utc;
