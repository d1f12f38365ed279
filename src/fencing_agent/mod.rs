//! `fencing-agent` knows which members of a list are reachable, and lets a minority reset itself.
//!
//! [`core`] is pure: events in, outputs out. It has no clock, no socket and no file. [`shell`] carries out the outputs, and
//! [`config`] reads the operator's configuration.

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
