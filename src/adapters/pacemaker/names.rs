//! The names that a shell completes. The shell asks at each press of a key, so the time-out is short.

use std::time::Duration;

use roxmltree::{Document, Node};

use crate::adapters::command::Programs;

/// The time limit of a query for shell completion. The operator's shell waits as long.
const PATIENCE: Duration = Duration::from_secs(2);

/// Returns the names of the cluster's nodes for shell completion. Returns none if the CIB's manager does not answer.
pub fn nodes(programs: &Programs) -> Vec<String> {
    names(programs, "nodes", |node| node.attribute("uname").filter(|_| node.has_tag_name("node")).map(str::to_owned))
}

/// Returns the ids of the cluster's fence devices for shell completion. Returns none if the CIB's manager does not answer.
pub fn fence_devices(programs: &Programs) -> Vec<String> {
    let is_device = |node: &Node<'_, '_>| node.has_tag_name("primitive") && node.attribute("class") == Some("stonith");
    names(programs, "resources", |node| node.attribute("id").filter(|_| is_device(&node)).map(str::to_owned))
}

fn names(programs: &Programs, scope: &str, name: impl Fn(Node<'_, '_>) -> Option<String>) -> Vec<String> {
    let answer = programs.run("cibadmin", &["--query", "--scope", scope], PATIENCE);
    let Some(answer) = answer.ok().filter(|answer| answer.code == 0) else { return Vec::new() };
    let Ok(document) = Document::parse(&answer.stdout) else { return Vec::new() };
    let mut found: Vec<String> = document.descendants().filter_map(name).filter(|name| is_plain(name)).collect();
    found.sort();
    found.dedup();
    found
}

/// Returns whether a shell takes `name` literally. Other names are not offered for completion, because bash would expand them.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::command::fake_program;

    #[test]
    fn nodes_and_fence_devices_are_found_and_nothing_that_a_shell_would_run() {
        let dir = tempfile::tempdir().unwrap();
        let xml = "<x><node uname=\"node2\"/><node uname=\"node1\"/><node uname=\"$(reboot)\"/>\
             <primitive class=\"stonith\" id=\"fence-node1\"/><primitive class=\"ocf\" id=\"etcd\"/></x>";
        std::fs::write(dir.path().join("cib.xml"), xml).unwrap();
        let programs = fake_program(dir.path(), "cibadmin", &format!("cat {}/cib.xml", dir.path().display()));
        assert_eq!(nodes(&programs), ["node1", "node2"]);
        assert_eq!(fence_devices(&programs), ["fence-node1"]);
    }

    #[test]
    fn without_a_cib_there_are_none() {
        let dir = tempfile::tempdir().unwrap();
        for script in ["echo broken", "exit 102"] {
            let programs = fake_program(dir.path(), "cibadmin", script);
            assert!(nodes(&programs).is_empty() && fence_devices(&programs).is_empty());
        }
    }
}
