//! The ground floor: what every wing speaks of, and what needs nothing.

mod duration;
mod fact;
pub mod printable;
mod shell;
mod utc;

pub use duration::duration;
pub use fact::Fact;
pub use shell::shell_word;
pub use utc::utc;
