//! The fence agent against third-party parts: an emulator of BMCs, a schema, and Pacemaker's own fencer.
//! `tests/fence_real/setup` fetches them.

#[path = "../support/bmc/mod.rs"]
mod bmc;
mod emulator;
mod fencer;
#[path = "../support/namespaces.rs"]
mod namespaces;
