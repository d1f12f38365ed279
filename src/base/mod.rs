//! The ground floor: types and helpers that every other folder of `src/` uses and that need none of them.

mod duration;
mod fact;
pub mod json;
pub mod printable;
pub mod shell;
mod utc;

pub use duration::duration;
pub use fact::Fact;
pub use utc::utc;
