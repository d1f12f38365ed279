//! Adapters, each for one outside program, protocol or format. An adapter reports facts and performs effects, and decides
//! nothing.

pub(crate) mod chronicle;
pub mod command;
pub mod corosync;
pub mod data_dir;
pub mod etcd;
pub mod https;
pub mod kubernetes;
pub mod ocf;
pub mod openshift;
pub mod options;
pub mod pace;
pub mod pacemaker;
pub mod podman;
pub mod redfish;
pub mod ssh;
pub mod systemd;
pub(crate) mod watchdog;
pub mod xml;
