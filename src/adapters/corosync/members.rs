//! The members that Corosync has had since it started.

use std::time::Duration;

use crate::adapters::command::Programs;
use crate::base::Fact;

/// The prefix of Corosync's keys about members. Corosync keeps a few keys for each node that has ever joined.
const MEMBERS: &str = "runtime.members.";
/// The error in the output of `corosync-cmapctl` if no key begins with the prefix.
const NO_KEY: &str = "CS_ERR_NOT_EXIST";

/// Returns whether a node other than the one with the id `own` has joined since Corosync started on this node.
pub fn another_joined(programs: &Programs, own: u32, limit: Duration) -> Fact<bool> {
    match programs.run("corosync-cmapctl", &[MEMBERS], limit) {
        Ok(output) if output.code == 0 => ids(&output.stdout).map_or_else(Fact::Unknown, |ids| {
            if ids.contains(&own) {
                Fact::Known(ids.iter().any(|id| *id != own))
            } else {
                Fact::Unknown("Corosync does not list this node among its members".to_owned())
            }
        }),
        Ok(output) if output.complaint().contains(NO_KEY) => {
            Fact::Unknown("Corosync lists no member, not even this node".to_owned())
        }
        Ok(output) => Fact::Unknown(format!("corosync-cmapctl failed ({}): {}", output.code, output.complaint())),
        Err(error) => Fact::Unknown(error.to_string()),
    }
}

/// Returns the node ids in lines such as `runtime.members.1.status (str) = joined`.
fn ids(text: &str) -> Result<Vec<u32>, String> {
    let id = |line: &str| line.strip_prefix(MEMBERS)?.split_once('.')?.0.parse().ok();
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| id(line).ok_or_else(|| format!("corosync-cmapctl prints '{line}'"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::command::fake_program;

    fn joined(text: &str) -> Fact<bool> {
        let dir = tempfile::tempdir().unwrap();
        let programs = fake_program(dir.path(), "corosync-cmapctl", &format!("printf '%s' '{text}'"));
        another_joined(&programs, 2, Duration::from_secs(5))
    }

    #[test]
    fn a_node_that_has_left_has_joined_before() {
        let own = "runtime.members.2.config_version (u64) = 0\nruntime.members.2.ip (str) = r(0) ip(10.99.0.2) \n\
                   runtime.members.2.join_count (u32) = 1\nruntime.members.2.status (str) = joined\n";
        assert_eq!(joined(own), Fact::Known(false));
        let left = own.replace("members.2", "members.1").replace("joined", "left");
        assert_eq!(joined(&format!("{own}{left}")), Fact::Known(true));
    }

    #[test]
    fn what_does_not_list_this_node_is_unknown() {
        for text in
            ["", "runtime.members.1.status (str) = joined", "nonsense", "runtime.members.x.status (str) = joined"]
        {
            assert!(matches!(joined(text), Fact::Unknown(_)), "{text}");
        }
    }
}
