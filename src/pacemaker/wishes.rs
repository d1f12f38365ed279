//! Wishes that others leave as transient attributes, told from what is stuck in the CIB.
//!
//! Pacemaker takes a node's transient attributes back when the node leaves. Up to 3.0.1 (and in 2.1) its controller takes them
//! out of the CIB while a new attribute writer may put back what it still has in memory; the node's own attribute manager,
//! when it starts, wipes a CIB that has not met the others' yet. What is stuck then is in the CIB alone: no attribute manager
//! has it, so none can delete it either. A node's record of its data is published anew before anything is started there; a
//! wish would be believed for good.

use super::attributes::{FORCE_NEW_CLUSTER, RESTART_NO_LEAVE};
use super::{Error, run};
use crate::command::Programs;
use crate::decide::evidence::Others;

/// What attrd_updater answers about an attribute that no node has: CRM_EX_CONFIG in 2.1 and 3.0; CRM_EX_NOSUCH means it.
const NOWHERE: [i32; 2] = [78, 105];

/// Takes out the wishes that Pacemaker's attribute manager does not have. It is asked only where the CIB shows one.
pub(super) fn keep_live(programs: &Programs, others: Others, node: &str, peer: Option<&str>) -> Result<Others, Error> {
    let mut kept = others;
    if kept.force_on_me || kept.force_on_peer {
        let nodes = nodes_with(programs, FORCE_NEW_CLUSTER)?;
        let is_live = |name: &str| nodes.iter().any(|other| other == name);
        kept.force_on_me &= is_live(node);
        kept.force_on_peer &= peer.is_some_and(is_live);
    }
    if kept.restart_no_leave {
        kept.restart_no_leave = nodes_with(programs, RESTART_NO_LEAVE)?.iter().any(|name| name == node);
    }
    Ok(kept)
}

/// The nodes for which the attribute manager has a value.
fn nodes_with(programs: &Programs, attribute: &str) -> Result<Vec<String>, Error> {
    match run(programs, "attrd_updater", &["--query", "--all", "--name", attribute]) {
        Ok(said) => Ok(said.lines().filter_map(node_with_a_value).map(str::to_owned).collect()),
        Err(Error::Tool { code, .. }) if NOWHERE.contains(&code) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Of a line such as `name="force_new_cluster" host="node2" value="node2"`. A value that was deleted is an empty one.
fn node_with_a_value(line: &str) -> Option<&str> {
    let has_a_value = !line.trim_end().ends_with("=\"\"");
    line.split('"').nth(3).filter(|_| has_a_value)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::command::stand_in;

    /// An attribute manager that answers every query so, and leaves a file where it was asked.
    fn answering(dir: &Path, said: &str, code: i32) -> Programs {
        let asked = dir.join("asked");
        stand_in(dir, "attrd_updater", &format!("touch {}\ncat <<'END'\n{said}\nEND\nexit {code}", asked.display()))
    }

    fn all() -> Others {
        Others { force_on_me: true, force_on_peer: true, restart_no_leave: true, ..Others::default() }
    }

    fn kept(said: &str, code: i32) -> Result<(bool, bool, bool), Error> {
        let dir = tempfile::tempdir().unwrap();
        let kept = keep_live(&answering(dir.path(), said, code), all(), "node2", Some("node1"))?;
        Ok((kept.force_on_me, kept.force_on_peer, kept.restart_no_leave))
    }

    #[test]
    fn a_wish_that_only_the_cib_has_is_none() {
        // Never set since the attribute manager started; set and deleted; set on the peer alone.
        assert_eq!(kept("", 78).unwrap(), (false, false, false));
        assert_eq!(kept("name=\"x\" host=\"node2\" value=\"\"", 0).unwrap(), (false, false, false));
        assert_eq!(kept("name=\"x\" host=\"node1\" value=\"1\"", 0).unwrap(), (false, true, false));
        let both = "name=\"x\" host=\"node1\" value=\"a \\\"b\\\"\"\nname=\"x\" host=\"node2\" value=\"node2\"";
        assert_eq!(kept(both, 0).unwrap(), (true, true, true));
    }

    #[test]
    fn an_attribute_manager_that_does_not_answer_is_no_absence() {
        assert!(matches!(kept("", 102), Err(Error::Disconnected { .. })));
        assert!(matches!(kept("", 1), Err(Error::Tool { code: 1, .. })));
    }

    #[test]
    fn nobody_is_asked_where_there_is_no_wish() {
        let dir = tempfile::tempdir().unwrap();
        let programs = answering(dir.path(), "", 78);
        assert_eq!(keep_live(&programs, Others::default(), "node2", Some("node1")).unwrap(), Others::default());
        assert!(!dir.path().join("asked").exists());
    }
}
