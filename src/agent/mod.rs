//! `podman-etcd`, the OCF resource agent: observe, decide, act, until the action is answered.

use std::ffi::OsString;

/// Runs the agent; `args` follow the program's name.
pub fn run(_args: Vec<OsString>) -> u8 {
    3
}
