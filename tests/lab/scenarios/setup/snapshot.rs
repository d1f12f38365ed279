//! What there is on both nodes, to be compared.

use std::collections::BTreeSet;

use crate::host;
use crate::node::{NODES, Node};
use crate::sh::Result;
use crate::state::Lab;

/// Whatever a set-up may write to.
const PLACES: &[&str] =
    &["/etc", "/var/lib/corosync", "/var/lib/pacemaker/cib", "/var/lib/pcsd", "/var/lib/etcd", "/root"];
/// What Pacemaker itself writes into its properties, and what names one cluster among others.
const ITS_OWN: &[&str] = &[
    "dc-version",
    "have-watchdog",
    "cluster-infrastructure",
    "cluster-name",
    "last-lrm-refresh",
    "cluster-recheck-interval",
    // The leader's agent writes it, as soon as there are two voters for a while.
    "etcd_redundancy",
];

/// Lines that name a file each.
type Files = BTreeSet<String>;

/// Every file with its mode, owner, size and time of change: nothing was written where two of these are the same.
pub fn exact(lab: &Lab) -> Result<[Files; 2]> {
    both(lab, "%p %M %u:%g %s %T@\\n")
}

/// Every file of the cluster's with mode and owner.
pub fn modes(lab: &Lab) -> Result<[Files; 2]> {
    let mut files = both(lab, "%p %M %u:%g\\n")?;
    for of_node in &mut files {
        // Generations of the CIB, rings and logs of etcd: their number is a matter of how much has happened.
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

/// What is in one and not in the other, for a message; nothing where they are the same.
pub fn difference(before: &[Files; 2], after: &[Files; 2]) -> Option<String> {
    let mut lines = Vec::new();
    for (number, node) in NODES.into_iter().enumerate() {
        lines.extend(before[number].difference(&after[number]).map(|line| format!("{node}: was {line}")));
        lines.extend(after[number].difference(&before[number]).map(|line| format!("{node}: is {line}")));
    }
    lines.truncate(12);
    (!lines.is_empty()).then(|| lines.join("; "))
}

/// What an operator has configured in Pacemaker, line by line; what it notes itself is left out.
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
