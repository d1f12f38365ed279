//! Removal of a node from the memory of Pacemaker's daemons.
//!
//! `pcs cluster node remove` removes a node from Corosync's configuration and the CIB, and calls `crm_node --remove` for the memory of
//! Pacemaker's daemons. That tool does not wait for the controller's answer, and its request is sometimes lost (two to four in ten with
//! Pacemaker 2.1.5). `crm_node --list` then still shows the node as lost. When the next node joins, the controller writes the old one
//! into the CIB again. pcs gives the new node the old one's number, so the controller confuses the two, and neither gets online.

use std::time::Duration;

use super::arrive::goes_on;
use super::facts::Look;
use super::work::Work;
use crate::adapters::command::Programs;
use crate::adapters::pacemaker::{self, by_hand};
use crate::operate::failure::Failure;
use crate::os::clock;

/// Largest number of times that Pacemaker is asked to forget a node.
const TRIES: u32 = 20;
/// Time in which Pacemaker carries out a request to forget a node, if the request has arrived.
const SETTLES: Duration = Duration::from_millis(500);

impl Work {
    /// Has Pacemaker's daemons forget every node that neither belongs to the cluster nor is about to join. This must follow the removal
    /// of the old node, and precede the addition of a new one.
    pub(super) fn forget_in_memory(&self, look: &Look) -> Result<(), Failure> {
        let is_here = |name: &str| look.corosync.node(name).is_some();
        // Pacemaker takes a new machine of the same name for the same node.
        let is_new = |name: &str| self.change.new.as_ref().is_some_and(|new| new.name == name);
        forget(&self.programs, |name| is_here(name) || is_new(name), SETTLES)
    }
}

/// Has Pacemaker's daemons forget every node for which `stays` returns false.
fn forget(programs: &Programs, stays: impl Fn(&str) -> bool, settles: Duration) -> Result<(), Failure> {
    let mut gone = remembered(programs, &stays)?;
    for _ in 0..TRIES {
        if gone.is_empty() {
            return Ok(());
        }
        for name in &gone {
            by_hand::forget_node(programs, name).map_err(Failure::from).map_err(goes_on)?;
        }
        clock::sleep(settles);
        gone = remembered(programs, &stays)?;
    }
    match gone.as_slice() {
        [] => Ok(()),
        names => Err(Failure(format!(
            "Pacemaker remembers {0}, which is out of the cluster, as 'crm_node --list' shows: 'pcs property set maintenance-mode=true', \
             'systemctl restart pacemaker' and, once 'pcs status' shows etcd, 'pcs property set maintenance-mode=' have it forget; \
             'tandem member replace' continues",
            names.join(" and ")
        ))),
    }
}

fn remembered(programs: &Programs, stays: impl Fn(&str) -> bool) -> Result<Vec<String>, Failure> {
    let known = pacemaker::remembered_nodes(programs).map_err(Failure::from).map_err(goes_on)?;
    Ok(known.into_iter().filter(|name| !stays(name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::command::fake_program;

    /// Creates a fake `crm_node` that carries out only every `heard`th request to forget `node2`, and answers each `--list`.
    fn controller(dir: &std::path::Path, heard: u32) -> Programs {
        let script = format!(
            "cd {}; case $1 in --list) echo '1 node1 member'; test -e forgotten || echo '2 node2 lost'; echo '3  lost';; \
             --force) echo \"$3\" >> asked; test $(($(wc -l < asked) % {heard})) = 0 && touch forgotten;; esac; exit 0",
            dir.display()
        );
        fake_program(dir, "crm_node", &script)
    }

    fn forgets(heard: u32, stays: &[&str]) -> (Result<(), String>, String) {
        let dir = tempfile::tempdir().unwrap();
        let programs = controller(dir.path(), heard);
        let done = forget(&programs, |name| stays.contains(&name), Duration::ZERO).map_err(|Failure(why)| why);
        (done, std::fs::read_to_string(dir.path().join("asked")).unwrap_or_default())
    }

    #[test]
    fn it_is_asked_until_it_has_heard_and_for_nobody_who_stays() {
        assert_eq!(forgets(1, &["node1"]), (Ok(()), "node2\n".to_owned()));
        assert_eq!(forgets(3, &["node1"]), (Ok(()), "node2\n".repeat(3)));
        assert_eq!(forgets(1, &["node1", "node2"]), (Ok(()), String::new()));
    }

    #[test]
    fn one_that_never_hears_is_told_with_what_has_it_forget() {
        let (done, asked) = forgets(1_000, &["node1"]);
        let why = done.unwrap_err();
        assert!(why.starts_with("Pacemaker remembers node2, which is out of the cluster"), "{why}");
        assert!(why.contains("'systemctl restart pacemaker'"), "{why}");
        assert_eq!(asked.lines().count(), TRIES as usize);
    }
}
