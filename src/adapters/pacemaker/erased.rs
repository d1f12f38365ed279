//! A node's record that is missing in the CIB while Pacemaker's attribute manager still has it.
//!
//! A machine that was frozen, or cut off from the network for a moment, regards the coordinator (the DC) as lost when it
//! continues. Its controller then deletes the coordinator's transient attributes. Both nodes are connected again at that time, so
//! the deletion reaches the CIB of both. The coordinator's attribute manager may have written its values before, and does not
//! check them again. A survivor without its record can prove nothing, and the frozen machine is about to be fenced. Pacemaker 2.1
//! and 3.0 behave so.

use super::attributes::RECORD;
use super::{Error, run, wishes};
use crate::adapters::command::Programs;

/// Returns whether Pacemaker's attribute manager has the attribute that describes the etcd data of `node`. The manager loses all values
/// when Pacemaker ends, so the attribute is never from an earlier run.
pub fn has_record(programs: &Programs, node: &str) -> Result<bool, Error> {
    Ok(wishes::nodes_with(programs, RECORD)?.iter().any(|known| known == node))
}

/// Makes Pacemaker's attribute manager write all its values to the CIB once more.
pub fn restore_record(programs: &Programs) -> Result<(), Error> {
    run(programs, "attrd_updater", &["--refresh"]).map(drop)
}
