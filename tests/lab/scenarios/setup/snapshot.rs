//! The state of both nodes, for comparisons.

use std::collections::BTreeSet;

use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::sh::Result;

/// The directories of a node in which `tandem setup` may write.
const PLACES: &[&str] =
    &["/etc", "/var/lib/corosync", "/var/lib/pacemaker/cib", "/var/lib/pcsd", "/var/lib/etcd", "/root"];
/// The cluster properties that no operator configures. They are the cluster's name, and properties that Pacemaker or the agent writes.
const ITS_OWN: &[&str] = &[
    "dc-version",
    "have-watchdog",
    "cluster-infrastructure",
    "cluster-name",
    "last-lrm-refresh",
    "cluster-recheck-interval",
    // The leader's agent writes it once there have been two voters for a while.
    "etcd_redundancy",
];

/// The files of one node. Each line has a file's name and further data.
type Files = BTreeSet<String>;

/// Lists the files below [`PLACES`] on both nodes with mode, owner, size and time of change. Equal lists mean that
/// nothing was written in between.
pub fn exact(lab: &Lab) -> Result<[Files; 2]> {
    both(lab, "%p %M %u:%g %s %T@\\n")
}

/// Lists the files below [`PLACES`] on both nodes with mode and owner. It leaves out files that come and go with the
/// cluster's activity.
pub fn modes(lab: &Lab) -> Result<[Files; 2]> {
    let mut files = both(lab, "%p %M %u:%g\\n")?;
    for of_node in &mut files {
        // These are generations of the CIB, rings and logs of etcd. Their number depends on the cluster's activity.
        let counted =
            |line: &String| ["/cib-", "/ringid_", "/var/lib/etcd/", "/cib/cib."].iter().any(|part| line.contains(part));
        of_node.retain(|line| !counted(line));
    }
    Ok(files)
}

fn both(lab: &Lab, format: &str) -> Result<[Files; 2]> {
    let of = |node: Node| -> Result<Files> {
        let script = format!("find {} -not -type d -printf '{format}' 2>/dev/null; true", PLACES.join(" "));
        let said = host::must(lab, node, &["sh", "-c", &script])?;
        Ok(said.lines().map(str::to_owned).collect())
    };
    Ok([of(NODES[0])?, of(NODES[1])?])
}

/// Returns the lines that only one of two lists of files has, as text for a message. `None` if both lists are equal.
pub fn difference(before: &[Files; 2], after: &[Files; 2]) -> Option<String> {
    let mut lines = Vec::new();
    for (number, node) in NODES.into_iter().enumerate() {
        lines.extend(before[number].difference(&after[number]).map(|line| format!("{node}: was {line}")));
        lines.extend(after[number].difference(&before[number]).map(|line| format!("{node}: is {line}")));
    }
    lines.truncate(12);
    (!lines.is_empty()).then(|| lines.join("; "))
}

/// Returns the part of Pacemaker's configuration that an operator or `tandem setup` writes, line by line. It leaves out the nodes, and the
/// properties in [`ITS_OWN`].
pub fn configuration(lab: &Lab) -> Result<BTreeSet<String>> {
    let xml = host::must(lab, host::any_running(lab)?, &["cibadmin", "--query", "--scope", "configuration"])?;
    let document = roxmltree::Document::parse(&xml)?;
    let mut lines = BTreeSet::new();
    for element in document.descendants().filter(roxmltree::Node::is_element) {
        let above: Vec<&str> = element.ancestors().map(|above| above.tag_name().name()).collect();
        let is_its_own =
            element.attribute("name").is_some_and(|name| ITS_OWN.contains(&name) || name.starts_with("tandem"));
        if above.contains(&"nodes") || is_its_own {
            continue;
        }
        let mut attributes: Vec<String> =
            element.attributes().map(|attribute| format!("{}={}", attribute.name(), attribute.value())).collect();
        attributes.sort();
        let inside = element.parent_element().and_then(|parent| parent.attribute("id")).unwrap_or_default();
        lines.insert(format!("{} in '{inside}': {}", element.tag_name().name(), attributes.join(" ")));
    }
    Ok(lines)
}
