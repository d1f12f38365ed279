//! `watchdog-mux`: owns one watchdog device and serves many programs, by the protocol of Proxmox's multiplexer.
//!
//! [`core`] is pure. [`device`] examines, opens, feeds and disarms a watchdog device, and knows nothing of clients. [`feeder`] is the
//! thread that only feeds; [`server`] serves the socket, and [`chronicle`] writes the log and syncs the journal, so that neither is
//! held up by a disk.

mod arguments;
mod chronicle;
mod clients;
mod core;
pub(crate) mod device;
mod feeder;
mod notify;
mod paths;
pub(crate) mod process;
mod refusal;
mod server;
mod state;
mod status;

pub(crate) use arguments::{EXIT_CODES, command_line};
