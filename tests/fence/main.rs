//! The fence agent as a program, against a BMC that behaves, and against one that misbehaves.

#[path = "../support/bmc/mod.rs"]
mod bmc;
mod captured;
mod certificates;
mod check;
mod contract;
#[path = "../support/executable.rs"]
mod executable;
mod flags;
mod hostile;
mod login;
mod lost_node;
#[path = "../support/namespaces.rs"]
mod namespaces;
mod notes;
mod one_process;
mod options;
mod patience;
mod power;
mod power_on;
mod race;
#[path = "../support/secrets_api.rs"]
mod secrets_api;
mod systems;
#[path = "../support/tree.rs"]
mod tree;
mod two_passwords;
mod update;
mod yields;
