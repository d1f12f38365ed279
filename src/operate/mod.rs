//! The operator's domain: what the commands of `tandem` observe, judge and change. It never reads from or prints to a
//! terminal.

pub mod certs;
pub mod cluster;
pub mod collect;
pub mod etcdctl;
pub mod events;
pub mod failure;
pub mod fencing;
pub mod gather;
pub mod health;
pub mod histories;
pub mod lone_boot;
pub mod members;
pub mod metrics;
pub mod node;
pub mod setup;
pub mod talk;
pub mod upgrade;
