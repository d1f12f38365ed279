//! A node's record that is gone from the CIB while Pacemaker's attribute manager has it still.
//!
//! A machine that stood still, or that the network had cut off for a moment, takes its coordinator (the DC) for lost when it goes on, and
//! its controller then deletes the coordinator's transient attributes. Both are together again by then, so that is done in the CIB of
//! both; and where the coordinator's attribute manager has already written what it has, it does not look again. Without its
//! record a survivor proves nothing, and the machine that stood still is about to be fenced. So Pacemaker 2.1 and 3.0.

use super::attributes::RECORD;
use super::{Error, run, wishes};
use crate::adapters::command::Programs;

/// Returns whether the attribute manager has the record of `node`. It forgets that when Pacemaker ends here, so what it has is of
/// this life of Pacemaker.
pub fn has_record(programs: &Programs, node: &str) -> Result<bool, Error> {
    Ok(wishes::nodes_with(programs, RECORD)?.iter().any(|known| known == node))
}

/// Has the attribute manager write what it has once more.
pub fn restore_record(programs: &Programs) -> Result<(), Error> {
    run(programs, "attrd_updater", &["--refresh"]).map(drop)
}
