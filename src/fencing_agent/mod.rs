//! `fencing-agent`: knows which members of a list are reachable, and lets a minority reset itself.
//!
//! [`core`] is pure: events in, outputs out. It has no clock, no socket and no file. [`shell`] carries out what it returns, and
//! [`config`] is what the operator writes.

mod arguments;
mod check;
pub(crate) mod config;
pub(crate) mod core;
pub(crate) mod process;
mod shell;
mod show;
mod status;

pub use config::refusal_of;

pub(crate) use arguments::{EXIT_CODES, command_line};
