//! The fence agent against parts that are not ours: an emulator of BMCs, a schema, and Pacemaker's own fencer.
//! `tests/fence_real/setup` fetches what they need.

#[path = "../bmc/mod.rs"]
mod bmc;
mod emulator;
mod fencer;
#[path = "../namespaces/mod.rs"]
mod namespaces;
