//! The journals of virtual machines: every error in them must be known here, with the reason why it is harmless or not
//! Tandem's.

use std::time::Duration;

use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::{self, Lab};
use crate::sh::Result;

/// The errors that any scenario may log, each as program, part of the message, and the reason why it is acceptable.
/// An empty part accepts all messages of the program but its last words ([`LAST_WORDS`]).
const KNOWN: &[(&str, &str, &str)] = &[
    ("etcd[", "", "podman gives every line of a container that goes to its standard error this priority"),
    (
        "etcd[",
        "failed to find local ID in cluster members",
        "so ends an etcd 3.5 that has left the member list, as it is about to, if it is asked how it stands at that moment",
    ),
    ("(sd-exec-[", "systemd-ssh-generator", "Debian 13's asks for a vsock that this machine has none of"),
    ("systemd-ssh-generator[", "", "the same"),
    (
        "kernel",
        "watchdog did not stop!",
        "systemd hands the watchdog to its own shutdown, which feeds it until the machine is off",
    ),
    ("sshd", "mm_reap: preauth child terminated", "the lab's own ssh, whose login a reboot came before"),
    (
        "pacemaker",
        "Error in connection setup",
        "a program ended before Pacemaker answered it: an agent's question whose time was over, on a machine this slow",
    ),
    (
        "pacemaker",
        "(with errors), saving inputs",
        "Pacemaker 3.0.0's scheduler goes on saying so once it was asked before there were fence devices; crm_verify is asked",
    ),
    (
        "kernel",
        "overlayfs: failed to resolve",
        "a container's storage that a power cut has torn, as podman does not sync it; the agent makes the container anew",
    ),
    (
        "pacemaker",
        "Could not get executable for PID",
        "as it stops, Pacemaker 3.0.0 looks up the program of a daemon of its own that has ended meanwhile",
    ),
    (
        "pacemaker-controld[",
        "Could not connect to attrd: Connection refused",
        "Pacemaker 2.1.5's controller tells its release before its attribute manager takes connections, on a machine this slow",
    ),
    ("pacemaker-controld[", "Could not update attribute #feature-set=", "the same"),
    (
        "pacemaker",
        "pcmk_delay_base: empty value in mapping",
        "Pacemaker 3.0.0 says so of every plain delay, and takes it all the same",
    ),
];
/// The message of a learner's etcd that ends because the only voter dies while the learner starts. The agent then
/// repeats the start.
pub const JOINS_NOBODY: &str = "cannot fetch cluster info from peer urls";
/// The end of an exit reason while both nodes return. The node's data is older than the other node's, so etcd must
/// start on the other node first. Pacemaker then repeats the start.
pub const GOES_SECOND: &str = "'s etcd, which must start first";
/// The messages that Pacemaker repeats while there are no fence devices.
pub const NO_FENCING_YET: &[&str] = &["no STONITH resources", "or disable STONITH", "need STONITH"];
/// The messages that are acceptable while both nodes return.
pub const BOTH_RETURN: &[&str] = &[JOINS_NOBODY, GOES_SECOND];

/// The beginnings of the last message of an etcd, or another Go program, that ends by a fault. Such a message counts
/// as an error at any priority.
const LAST_WORDS: [&str; 3] = ["\"level\":\"fatal\"", "\"level\":\"panic\"", "panic: "];
/// The beginning of the last message of a Rust program that panics. No scenario may have one.
const PANICKED: &str = "panicked at ";
/// The beginnings of those lines of Tandem that may be errors on the console. The console shows no priorities.
const TANDEMS: [&str; 2] = ["podman-etcd(", "fence_redfish_rs["];
/// The largest number of errors that a failure shows.
const SHOWN: usize = 12;

/// Checks that all errors in the journals since the time `since` are known or `expected`, and that Pacemaker finds no
/// fault in its configuration. Reads the console as well, because a power cut loses what a journal had not synced.
/// Hosts of namespaces have no journal.
pub fn must_hold_no_error(lab: &Lab, since: Duration, expected: &[&str]) -> Result<()> {
    let is_vm = host::Kind::of(lab) == host::Kind::Vm;
    if is_vm && has_cluster(lab)? {
        host::must(lab, host::any_running(lab)?, &["crm_verify", "--live-check"])?;
    }
    let mut found = Vec::new();
    for node in NODES {
        let mut lines = console(lab, node, since, if is_vm { is_error } else { is_panic });
        if is_vm {
            lines.extend(journal(lab, node, since)?);
        }
        lines.retain(|line| is_reported(line, expected));
        found.extend(lines.iter().map(|line| format!("{node}: {line}")));
    }
    if found.is_empty() {
        return Ok(());
    }
    let count = found.len();
    found.truncate(SHOWN);
    Err(format!("the journals hold {count} errors that nobody expects: {}", found.join("\n     ")).into())
}

/// Returns whether a host of the lab has a CIB. Blank hosts have none before their cluster is set up.
fn has_cluster(lab: &Lab) -> Result<bool> {
    Ok(host::output(lab, host::any_running(lab)?, &["test", "-e", "/var/lib/pacemaker/cib/cib.xml"])?.ok)
}

/// Returns the errors in the node's journal since the time `since`.
fn journal(lab: &Lab, node: Node, since: Duration) -> Result<Vec<String>> {
    /// The number of characters of the time in `Nov 25 21:36:00 PROGRAM[PID]: TEXT`, with the space after it.
    const TIME: usize = 16;
    let since = format!("--since=@{}", since.as_secs());
    let words = ["journalctl", "--priority=err", &since, "--no-pager", "--quiet", "--no-hostname", "--output=short"];
    let said = host::must(lab, node, &words)?;
    Ok(said.lines().map(|line| line.get(TIME..).unwrap_or(line).to_owned()).collect())
}

/// Returns the errors since the time `since` that arrived through the node's serial port, or in its syslog.
fn console(lab: &Lab, node: Node, since: Duration, is_error: fn(&str) -> bool) -> Vec<String> {
    let log = std::fs::read(lab.messages(node)).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let since = state::stamp(since);
    // `2026-11-25T21:36:00.123Z NODE: PROGRAM[PID]: TEXT`
    let messages = log.lines().filter(|line| *line >= since.as_str()).filter_map(|line| line.split_once(": "));
    messages.map(|(_, message)| message).filter(|message| is_error(message)).map(str::to_owned).collect()
}

/// Returns whether an error is neither known nor expected, and so fails the scenario. A panic always does.
fn is_reported(line: &str, expected: &[&str]) -> bool {
    is_panic(line) || !is_known(line) && !expected.iter().any(|words| line.contains(words))
}

/// Returns whether errors are reported, and harmless or known lines are not. The lab's self-test calls it.
pub fn tells_errors_from_the_rest() -> bool {
    const UNKNOWN: &str = "podman-etcd(etcd)[7]: ERROR: cannot read the data dir: input/output error";
    const FATAL: &str = "etcd[9]: {\"level\":\"fatal\",\"msg\":\"failed to recover\"}";
    const OURS: &str = "tandem[7]: thread 'main' panicked at src/main.rs:1:1: Operation 'reboot'";
    let reported = |line: &str, expected: &[&str]| is_error(line) && is_reported(line, expected);
    [UNKNOWN, FATAL, OURS].iter().all(|line| reported(line, BOTH_RETURN))
        && reported(OURS, &["Operation 'reboot'"])
        && !reported(UNKNOWN, &["cannot read the data dir"])
        && !is_error("podman-etcd(etcd)[7]: INFO: etcd serves")
        && !is_reported("etcd[9]: {\"level\":\"info\",\"msg\":\"ready to serve client requests\"}", &[])
        && !is_reported("kernel: watchdog: watchdog0: watchdog did not stop!", &[])
}

fn is_panic(message: &str) -> bool {
    message.contains(PANICKED)
}

fn is_error(message: &str) -> bool {
    let is_tandems = || TANDEMS.iter().any(|by| message.starts_with(by)) && message.contains(" ERROR: ");
    is_panic(message) || is_last_word(message) || is_tandems()
}

fn is_last_word(message: &str) -> bool {
    LAST_WORDS.iter().any(|words| message.contains(words))
}

fn is_known(message: &str) -> bool {
    KNOWN.iter().any(|(by, words, _)| {
        let may_say = if words.is_empty() { !is_last_word(message) } else { message.contains(words) };
        message.starts_with(by) && may_say
    })
}
