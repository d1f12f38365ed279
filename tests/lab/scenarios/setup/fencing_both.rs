//! `tandem fencing test --both --ssh`, over a real sshd and under writers. Each node is fenced by the other one, and
//! both records are there.

use std::time::Duration;

use serde_json::Value;

use super::super::steps;
use super::typed::{self, HERE, THERE, Typed};
use crate::cluster::etcd;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::state::{self, Lab};
use crate::judge::check::must;
use crate::sh::{self, Result};

const BOTH: &str = "tandem fencing test --both --ssh root@node2 --confirm node2 --timeout 6m";
/// The command that shows the records of both fencing tests. The other node's name follows.
const LAST: &str = "tandem fencing test --last --json --ssh root@";
/// The command that lets root of node1 log in on node1 itself by ssh.
const OWN_LOGIN: &str = "echo \"node1 $(cat /etc/ssh/ssh_host_ed25519_key.pub)\" >> /root/.ssh/known_hosts && \
                         cat /root/.ssh/id_ed25519.pub >> /root/.ssh/authorized_keys";
/// The time-out from a node's return until the records of both fencing tests are there.
const RECORDED: Duration = Duration::from_secs(180);

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let mut writers = super::super::writing(lab)?;
    refused(lab)?;
    let began = state::since_epoch();
    let command = Typed::begin(lab, HERE, BOTH)?;
    // The command's machine is switched off, which ends the command.
    let ended = command.done()?;
    println!("{}", ended.said.trim());
    must("the command ended with its machine", &ended, |ended| {
        ended.code != Some(0) && ended.said.contains("node2 fences node1 now")
    })?;
    steps::wait_write(&writers, Duration::from_secs(90))?;
    etcd::wait_two_voters(lab, sh::patience(Duration::from_secs(240)))?;
    let both = sh::wait_for("the records of both halves", sh::patience(RECORDED), Duration::from_secs(2), || {
        let (code, said) = host::typed(lab, HERE, &format!("{LAST}{THERE} 2> /dev/null")).ok()?;
        Some(said).filter(|said| code == 0 && is_after(said, began))
    })?;
    println!("   {}", both.replace('\n', ""));
    let (code, said) = host::typed(lab, THERE, &format!("{LAST}{HERE} 2> /dev/null"))?;
    must("the other node says the same of both", (code, said.as_str()), |(code, said)| {
        *code == 0 && is_after(said, began)
    })?;
    let (code, said) = host::typed(lab, HERE, "tandem fencing test --last")?;
    must("alone it has its own half", (code, said.as_str()), |(code, said)| {
        *code == 3 && said.contains("its record is on node2")
    })?;
    super::super::ends_well(lab, &mut writers)
}

/// Checks that `tandem fencing test --both` fences no node if the other node could not run its half.
fn refused(lab: &Lab) -> Result<()> {
    let before = state::since_epoch();
    // Without these keys ssh refuses the login on this node itself, and Tandem never sees where it leads.
    host::must(lab, HERE, &["sh", "-c", OWN_LOGIN])?;
    for (line, words) in [
        ("tandem fencing test --both --confirm node2", "'tandem fencing test node1' on node2"),
        ("tandem fencing test --both --confirm node2 --ssh root@node1", "that is node1, and node2 is the other node"),
        ("tandem fencing test --both --confirm node2 --ssh nobody@node2", "without being asked"),
        ("tandem fencing test --both --confirm node1 --ssh root@node2", "was not typed"),
    ] {
        let done = typed::typed(lab, HERE, line)?;
        done.must_be(1)?;
        must(line, done.said.as_str(), |said| said.contains(words))?;
    }
    let log = std::fs::read_to_string(lab.bmc_log()).unwrap_or_default();
    let after = state::stamp(before);
    let is_reset = |line: &&str| **line > *after && line.contains("ComputerSystem.Reset");
    must("no reset was sent", log.lines().filter(is_reset).count(), |count| *count == 0).map(drop)
}

/// Returns whether both nodes passed a fencing test that began after `began`.
fn is_after(said: &str, began: Duration) -> bool {
    let Ok(answer) = serde_json::from_str::<Value>(said) else { return false };
    let halves = answer["halves"].as_array().cloned().unwrap_or_default();
    let passed = |half: &Value| {
        let at = half["test"]["at"].as_str().and_then(|at| humantime::parse_rfc3339(at).ok());
        let at = at.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        half["test"]["passed"] == true && at.is_some_and(|at| at >= began)
    };
    halves.len() == 2 && halves.iter().all(passed)
}
