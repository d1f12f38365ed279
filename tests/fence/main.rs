//! The fence agent as a program, against a BMC that behaves, and against one that misbehaves.

#[path = "../bmc/mod.rs"]
mod bmc;
mod captured;
mod certificates;
mod check;
mod contract;
#[path = "../executable/mod.rs"]
mod executable;
mod flags;
mod hostile;
mod login;
mod lost_node;
#[path = "../namespaces/mod.rs"]
mod namespaces;
mod notes;
mod one_process;
mod options;
mod patience;
mod power;
mod power_on;
mod race;
mod systems;
#[path = "../tree/mod.rs"]
mod tree;
mod two_passwords;
mod update;
mod yields;
