//! The rules of a start: which node's turn it is, from which data etcd is started and how, and what a started etcd is waited
//! for.

mod alone;
pub(super) mod begin;
pub(super) mod cold_start;
pub(super) mod container_lock;
pub(super) mod disk_space;
mod follow;
mod launch;
mod preferred;
pub(super) mod published_state;
pub(super) mod put_back;
pub(super) mod serve;
pub(super) mod unstartable;
