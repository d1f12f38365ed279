//! From two machines with the packages to two voters: what the operator describes, what there is, and the steps between.
//!
//! A [`step::SetupStep`] looks at what there is and says which [`action::Action`]s are missing; nothing remembers how far it got.

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

/// The file with the token by which the two pcsds get to know each other: both have accepted it when the cluster's first step
/// begins, and it is gone again once they do.
pub const TOKEN: &str = "/etc/tandem/pcsd-token";
