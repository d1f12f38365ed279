//! The state of the two machines and what runs on them, and the changes of that state.

mod action;
pub mod agent;
pub(in crate::sim) mod answers;
pub mod blind;
pub mod etcd;
pub mod initial_states;
mod kept;
pub mod leading;
pub mod log;
pub(in crate::sim) mod lone_boot;
mod lone_boot_state;
pub mod members;
mod mids;
pub mod pacemaker;
pub mod reach;
pub mod steps;
pub(in crate::sim) mod swap;
pub mod timing;
pub mod view;
pub(in crate::sim) mod vote_proxy;
pub mod world;
