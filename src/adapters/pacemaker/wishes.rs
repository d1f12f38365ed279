//! Requests of other programs as transient attributes, distinguished from values that are stuck in the CIB.
//!
//! Pacemaker removes a node's transient attributes when the node leaves. Up to 3.0.1 (and in 2.1) its controller removes them
//! from the CIB, while a new attribute writer may restore them from its memory. The node's own attribute manager, when it starts,
//! clears a CIB that is not yet synchronised with the others. A value that is then stuck is in the CIB only. No attribute manager
//! has it, so none can delete it. A node's record is published anew before a start, but a stuck request would stay valid
//! permanently.

use super::attributes::{FORCE_NEW_CLUSTER, RESTART_NO_LEAVE};
use super::exit_code::NO_ATTRIBUTE;
use super::{Error, run};
use crate::adapters::command::Programs;
use crate::decide::evidence::Others;

/// Clears each request in `others`, such as `force_new_cluster`, that Pacemaker's attribute manager does not have. Such a request in the
/// CIB is left over from an earlier run of Pacemaker. Queries the manager only if the CIB has a request.
pub(super) fn keep_live(programs: &Programs, others: Others, node: &str, peer: Option<&str>) -> Result<Others, Error> {
    keep(others, node, peer, |attribute| nodes_with(programs, attribute))
}

/// Returns the nodes for which Pacemaker's attribute manager has a value of `attribute`.
pub(super) fn nodes_with(programs: &Programs, attribute: &str) -> Result<Vec<String>, Error> {
    nodes_in(run(programs, "attrd_updater", &["--query", "--all", "--name", attribute]))
}

/// Clears each request in `others` that the attribute manager does not have. `nodes_with` returns the nodes for which the manager has an
/// attribute.
fn keep(
    mut others: Others,
    node: &str,
    peer: Option<&str>,
    mut nodes_with: impl FnMut(&str) -> Result<Vec<String>, Error>,
) -> Result<Others, Error> {
    if others.force_on_me || others.force_on_peer {
        let nodes = nodes_with(FORCE_NEW_CLUSTER)?;
        let is_live = |name: &str| nodes.iter().any(|other| other == name);
        others.force_on_me &= is_live(node);
        others.force_on_peer &= peer.is_some_and(is_live);
    }
    if others.restart_no_leave {
        others.restart_no_leave = nodes_with(RESTART_NO_LEAVE)?.iter().any(|name| name == node);
    }
    Ok(others)
}

fn nodes_in(answer: Result<String, Error>) -> Result<Vec<String>, Error> {
    match answer {
        Ok(said) => Ok(said.lines().filter_map(node_with_a_value).map(str::to_owned).collect()),
        Err(Error::Tool { code, .. }) if NO_ATTRIBUTE.contains(&code) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Returns the node in a line such as `name="force_new_cluster" host="node2" value="node2"`; `None` if the value is empty, because it was
/// deleted.
fn node_with_a_value(line: &str) -> Option<&str> {
    let has_a_value = !line.trim_end().ends_with("=\"\"");
    line.split('"').nth(3).filter(|_| has_a_value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Others {
        Others { force_on_me: true, force_on_peer: true, restart_no_leave: true, ..Others::default() }
    }

    /// Returns which of three requests are kept for node2, with the peer node1. `said` is the attribute manager's answer to every query.
    fn kept(said: &str) -> (bool, bool, bool) {
        let kept = keep(all(), "node2", Some("node1"), |_| nodes_in(Ok(said.to_owned()))).unwrap();
        (kept.force_on_me, kept.force_on_peer, kept.restart_no_leave)
    }

    fn failed(code: i32) -> Result<String, Error> {
        Err(Error::Tool { tool: "attrd_updater", code, complaint: String::new() })
    }

    #[test]
    fn a_wish_that_only_the_cib_has_is_none() {
        // Set and deleted; set on the peer only; set on both.
        assert_eq!(kept("name=\"x\" host=\"node2\" value=\"\"\n"), (false, false, false));
        assert_eq!(kept("name=\"x\" host=\"node1\" value=\"1\"\n"), (false, true, false));
        let both = "name=\"x\" host=\"node1\" value=\"a \\\"b\\\"\"\nname=\"x\" host=\"node2\" value=\"node2\"\n";
        assert_eq!(kept(both), (true, true, true));
        // The attribute was never set since the attribute manager started.
        for code in NO_ATTRIBUTE {
            assert_eq!(nodes_in(failed(code)).unwrap(), Vec::<String>::new());
        }
    }

    #[test]
    fn an_attribute_manager_that_does_not_answer_is_no_absence() {
        assert!(keep(all(), "node2", Some("node1"), |_| nodes_in(failed(1))).is_err());
    }

    #[test]
    fn nobody_is_asked_where_there_is_no_wish() {
        let nobody = |_: &str| panic!("nothing is to be asked");
        assert_eq!(keep(Others::default(), "node2", Some("node1"), nobody).unwrap(), Others::default());
    }
}
