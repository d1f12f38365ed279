//! Tandem: two agents that stock Pacemaker drives, and the operator's command, in one binary.
//!
//! The way through the house: [`applet`] picks the program by its name. `podman-etcd` is [`agent`]: it turns the
//! environment into a request ([`ocf`]), gathers facts ([`observe`]), lets the pure core choose ([`decide`]) and
//! performs what was chosen ([`act`]). Facts and effects go through one adapter for each outside program or format:
//! [`pacemaker`], [`podman`], [`etcd`], [`data_dir`], [`openshift`]. `fence_redfish_rs` is [`fence`] over [`redfish`].
//! What can be set of either agent is a row of a table of [`options`].

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod adapters;
pub mod admin;
pub mod agent;
pub mod applet;
pub mod decide;
pub mod fence;
pub mod operate;
pub mod os;
pub mod records;
pub mod sim;
