//! The fence agent against third-party parts: an emulator of BMCs, a schema, and Pacemaker's own fencer.
//! `tests/fence_real/setup` fetches them.

#[path = "../bmc/mod.rs"]
mod bmc;
mod emulator;
mod fencer;
#[path = "../namespaces/mod.rs"]
mod namespaces;
