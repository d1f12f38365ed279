//! `watchdog-mux` owns one watchdog device and serves many programs, by the protocol of Proxmox's multiplexer.
//!
//! [`core`] is pure. [`feeder`] is the thread that only feeds, and [`server`] serves the socket. The log and the journal have a
//! separate thread, so that a slow disk delays neither of them.

mod arguments;
mod clients;
mod core;
mod feeder;
mod paths;
pub(crate) mod process;
mod refusal;
mod server;
mod state;
mod status;

pub(crate) use arguments::{EXIT_CODES, command_line};
