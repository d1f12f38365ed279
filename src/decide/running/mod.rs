//! The rules of an etcd that runs: what its monitor and its notifications do, what it publishes, and how it ends.

pub(super) mod alarm;
pub(super) mod erased;
pub(super) mod hand_over;
pub(super) mod membership;
pub(super) mod monitor;
pub(super) mod notify;
pub(super) mod others;
pub(super) mod partition;
pub(super) mod reached;
pub(super) mod reload;
pub(super) mod roles;
pub(super) mod shown;
pub(super) mod stop;
pub(super) mod upkeep;
