//! Tandem: two agents that stock Pacemaker drives, and the operator's command, in one binary.
//!
//! [`applet`] selects the program by its name. `podman-etcd` is [`agent`]: it reads the environment into a request,
//! gathers facts, lets the pure core ([`decide`]) choose, and performs the effects. `fence_redfish_rs` is [`fence`].
//! `watchdog-mux` is `watchdog`, a daemon that shares a watchdog device. `fencing-agent` is `fencing_agent`, a daemon that knows which
//! members are reachable.
//! `tandem` is [`admin`], the command line over the operator's domain ([`operate`]). Facts and effects pass through one
//! of the [`adapters`] for each outside program or format. The program's own files are [`records`]; [`os`] is the machine, and
//! [`base`] the ground floor.
//! `docs/design/README.md` has the plan of these wings.

#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod adapters;
pub mod admin;
pub mod agent;
pub mod applet;
pub mod base;
pub mod decide;
pub mod fence;
pub mod fencing_agent;
pub mod operate;
pub mod os;
pub mod records;
pub mod sim;
mod watchdog;
