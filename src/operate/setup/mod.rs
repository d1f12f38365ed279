//! The set-up of a cluster, from two machines with the packages to two voters: the operator's description, the present
//! state, and the steps between them.
//!
//! A [`step::SetupStep`] compares the present state with the description and returns the missing [`action::Action`]s.
//! No progress is stored, so an interrupted setup can be run again.

pub mod action;
pub mod apply;
pub mod bmc;
mod certificates;
pub mod channel;
pub mod cluster;
pub mod description;
pub mod drive;
pub mod file;
pub mod found_file;
pub mod local;
pub mod machine;
pub mod node;
pub mod openshift;
pub mod price;
pub mod step;

/// Path of the file with the token by which the two pcsds authorise each other. Both have accepted it before the first
/// step of the cluster, and it is deleted afterwards.
pub const TOKEN: &str = "/etc/tandem/pcsd-token";
