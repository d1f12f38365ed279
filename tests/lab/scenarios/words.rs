//! An operator or a script gives a node up with options only: each missing confirmation is named, and nothing is done.

use crate::host;
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::sh::Result;

/// The command that prints all that a refused command must not change: the configuration in the CIB, the quorum, the
/// agent's files with those in the data dir and of this boot, and the events in which writes are given up. Omits three files
/// that the agent's own actions replace: its memory of this boot, its last monitor and the durations that it measured.
const UNTOUCHED: &str = "cibadmin --query --scope configuration; corosync-quorumtool -s | grep -v '^Date'; \
                         find /run/resource-agents /var/lib/tandem /var/lib/etcd/tandem -type f ! -name '*.log' \
                         ! -name podman-etcd-etcd.json ! -name '*-monitor.json' ! -name '*-pace.json' \
                         -exec sha256sum {} + | sort; \
                         cat /var/lib/pacemaker/tandem/* | grep EtcdWritesGivenUp";

/// Makes `node` run standalone by `tandem confirm-recovery` with the arguments `base` and `words`. Before that, checks that the command is
/// refused if any one of `words` is missing, because the node's state requires all of them.
pub(super) fn give_up(lab: &Lab, node: Node, base: &str, words: &[&str]) -> Result<()> {
    let base = format!("tandem confirm-recovery {base}").trim_end().to_owned();
    let command = format!("{base} {}", words.join(" "));
    says(lab, node, &format!("{base} --dry-run"), 0, &format!("this state takes '{command}'"))?;
    let before = host::typed(lab, node, UNTOUCHED)?;
    for missing in words {
        let others: Vec<&str> = words.iter().filter(|word| word != &missing).copied().collect();
        for end in ["--no-input", "< /dev/null"] {
            let line = format!("{base} {} {end}", others.join(" "));
            says(lab, node, &line, 3, &format!("missing: {missing}"))?;
        }
    }
    if host::typed(lab, node, UNTOUCHED)? != before {
        return Err("a command without one of its words changed something".into());
    }
    says(lab, node, &format!("{command} --no-input"), 0, "The confirmation is written")?;
    // The check above would not notice a difference if it looked in the wrong places.
    let given_up = |seen: &str| seen.matches("EtcdWritesGivenUp").count();
    if given_up(&host::typed(lab, node, UNTOUCHED)?.1) <= given_up(&before.1) {
        return Err("the complete command left no event that gives the writes up".into());
    }
    Ok(())
}

fn says(lab: &Lab, node: Node, line: &str, code: i32, words: &str) -> Result<()> {
    let (ended, said) = host::typed(lab, node, line)?;
    if ended == code && said.contains(words) {
        return Ok(());
    }
    let said = said.lines().last().unwrap_or_default();
    Err(format!("'{line}' should say \"{words}\" and end with {code}, not with {ended}: {said}").into())
}
