//! The other half of a test of fencing: the other node fences this one. This node requests that through ssh.

use std::time::Duration;

use super::halves::Halves;
use crate::adapters::command::Programs;
use crate::adapters::ssh;
use crate::base::json;
use crate::operate::failure::Failure;
use crate::os::clock::{self, Deadline};

/// The systemd unit in which a node fences the other one. It ends with the fencing test, and outlives the login that started it.
pub const UNIT: &str = "tandem-fencing-test";
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest time until the other node's sshd answers, once that node's etcd votes.
const RETURN: Duration = Duration::from_secs(120);
const OFTEN: Duration = Duration::from_secs(2);
/// Time limit from the start of the unit [`UNIT`] on the other node. Within it, that node fences this one or records that fencing failed.
const FENCED_WITHIN: Duration = Duration::from_secs(300);
/// ssh's own exit code if it cannot connect.
const NOT_THERE: i32 = 255;

/// The other node of the pair, as ssh reaches it.
#[derive(Clone, Copy, Debug)]
pub struct There<'a> {
    pub programs: &'a Programs,
    /// The destination for ssh, `[USER@]HOST`.
    pub host: &'a str,
    /// The other node's name in the cluster.
    pub name: &'a str,
    pub resource: Option<&'a str>,
}

impl There<'_> {
    /// Returns what the other node knows of both directions of the pair's fencing. Fails if the host is not the other
    /// node.
    pub fn halves(&self) -> Result<Halves, Failure> {
        let (host, name) = (self.host, self.name);
        let said = self.run(&["fencing", "test", "--last", "--json"])?;
        let halves: Halves = json::from_text(&said).map_err(|_| {
            Failure(format!(
                "ssh to {host}: {name} has another version of Tandem: type 'tandem --version' on both nodes"
            ))
        })?;
        if halves.here != name {
            return Err(Failure(format!(
                "ssh to {host}: that is {}, and {name} is the other node: type --ssh with an address of {name}",
                halves.here
            )));
        }
        Ok(halves)
    }

    /// Starts, on the other node, a test that fences the node `here`. The test runs in the systemd unit [`UNIT`].
    pub fn fence(&self, here: &str, timeout: Duration) -> Result<(), Failure> {
        let timeout = seconds(timeout);
        let words = [&test_of(here, &timeout)[..], &["--in-unit"]].concat();
        Self::again(|| self.run(&words)).map(drop)
    }

    /// Waits until the other node's record of the last test that fenced `here` differs from its record in `before`. If the fencing works,
    /// this node is switched off before.
    pub fn outcome(&self, here: &str, before: &Halves) -> Result<Halves, Failure> {
        let end = Deadline::after(FENCED_WITHIN);
        let test = |halves: &Halves| halves.of_node(here).and_then(|half| half.test.clone());
        loop {
            if let Ok(halves) = self.halves()
                && test(&halves) != test(before)
            {
                return Ok(halves);
            }
            if end.has_passed() {
                return Err(Failure(format!(
                    "{} has not fenced {here} within {} s, and has no record of it: type on {} 'journalctl -u {UNIT}'",
                    self.name,
                    FENCED_WITHIN.as_secs(),
                    self.name
                )));
            }
            end.sleep(OFTEN);
        }
    }

    /// Repeats `ask` until it succeeds, while ssh cannot connect because the other node may still be booting.
    fn again<T>(mut ask: impl FnMut() -> Result<T, Unreached>) -> Result<T, Failure> {
        let end = Deadline::after(RETURN);
        loop {
            match ask() {
                Err(Unreached { failure, may_pass: true }) if !end.has_passed() => {
                    log::debug!("{}", failure.0);
                    clock::sleep(OFTEN);
                }
                other => return other.map_err(Failure::from),
            }
        }
    }

    fn run(&self, words: &[&str]) -> Result<String, Unreached> {
        let resource = self.resource.map(|id| ["--resource", id]);
        let words: Vec<&str> = words.iter().copied().chain(resource.into_iter().flatten()).collect();
        let host = self.host;
        let output = ssh::run(self.programs, host, &words, &[], PATIENCE).map_err(|error| Unreached {
            failure: Failure(format!("ssh to {host}: {error}: see 'ssh {host} true'")),
            may_pass: true,
        })?;
        // 3 and 4 are answers too: they report a test that is missing or failed.
        if matches!(output.code, 0 | 3 | 4) {
            return Ok(output.stdout);
        }
        let why = output.complaint().trim_start_matches("tandem: ");
        let (way, may_pass) = match output.code {
            NOT_THERE => {
                (format!(": 'ssh {host} true' shows whether root here can log in there without being asked"), true)
            }
            _ => (String::new(), false),
        };
        Err(Unreached { failure: Failure(format!("ssh to {host}: {why}{way}")), may_pass })
    }
}

/// The reason why a command through ssh failed.
struct Unreached {
    failure: Failure,
    /// True if ssh could not connect, so that another attempt may succeed.
    may_pass: bool,
}

impl From<Unreached> for Failure {
    fn from(unreached: Unreached) -> Self {
        unreached.failure
    }
}

/// Returns the arguments of `tandem` for a fencing test of `node` that asks the operator nothing.
fn test_of<'a>(node: &'a str, timeout: &'a str) -> [&'a str; 7] {
    ["fencing", "test", node, "--confirm", node, "--timeout", timeout]
}

fn seconds(time: Duration) -> String {
    format!("{}s", time.as_secs())
}

/// Starts the fencing test of `node` in the systemd unit [`UNIT`] on this node. The unit outlives the command that starts it.
pub fn in_a_unit(programs: &Programs, node: &str, timeout: Duration, resource: Option<&str>) -> Result<(), Failure> {
    let timeout = seconds(timeout);
    let unit = format!("--unit={UNIT}");
    let mut words = vec!["--quiet", "--collect", &unit, "--", ssh::PROGRAM];
    words.extend(test_of(node, &timeout));
    words.extend(resource.map(|id| ["--resource", id]).into_iter().flatten());
    let output = programs.run("systemd-run", &words, PATIENCE).map_err(|error| Failure(error.to_string()))?;
    if output.code == 0 {
        return Ok(());
    }
    Err(Failure(format!(
        "{node} is not fenced, because systemd did not start {UNIT}.service ({}): see 'systemctl status {UNIT}'",
        output.complaint()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::command::fake_program;

    fn there(programs: &Programs) -> There<'_> {
        There { programs, host: "root@node2", name: "node2", resource: Some("etcd") }
    }

    #[test]
    fn the_other_node_is_asked_for_its_half_and_nobody_else_is_believed() {
        let dir = tempfile::tempdir().unwrap();
        let said = |here: &str, code: i32| {
            let script = format!(
                "echo \"$@\" > {}/words; echo '{{\"format\":1,\"here\":\"{here}\",\"halves\":[]}}'; exit {code}",
                dir.path().display()
            );
            let programs = fake_program(dir.path(), "ssh", &script);
            there(&programs).halves().map(|halves| halves.here).map_err(|failure| failure.0)
        };
        assert_eq!(said("node2", 3).as_deref(), Ok("node2"), "an answer that is not the best is one");
        let words = std::fs::read_to_string(dir.path().join("words")).unwrap();
        assert!(words.ends_with("root@node2 /usr/sbin/tandem fencing test --last --json --resource etcd\n"), "{words}");
        let why = said("node1", 0).unwrap_err();
        assert!(why.contains("that is node1, and node2 is the other node"), "{why}");
        assert!(said("node2", 2).is_err(), "an older version does not know the words");
    }

    #[test]
    fn what_the_other_node_refuses_is_refused_here_in_its_words() {
        let dir = tempfile::tempdir().unwrap();
        let script = format!(
            "echo \"$@\" > {}/words; echo 'tandem: node1 is not fenced for a test now' >&2; exit 1",
            dir.path().display()
        );
        let programs = fake_program(dir.path(), "ssh", &script);
        let why = there(&programs).fence("node1", Duration::from_secs(1_200)).unwrap_err().0;
        assert_eq!(why, "ssh to root@node2: node1 is not fenced for a test now");
        let words = std::fs::read_to_string(dir.path().join("words")).unwrap();
        let expected = "tandem fencing test node1 --confirm node1 --timeout 1200s --in-unit --resource etcd\n";
        assert!(words.ends_with(expected), "{words}");
    }

    #[test]
    fn the_record_that_is_waited_for_is_a_new_one() {
        let dir = tempfile::tempdir().unwrap();
        let script = format!(
            "cd {}; n=$(cat count 2>/dev/null || echo 0); echo $((n + 1)) > count; cat answer$n 2>/dev/null || exit 255",
            dir.path().display()
        );
        let programs = fake_program(dir.path(), "ssh", &script);
        let answer = |name: &str, at: &str| {
            let test = format!("{{\"at\":\"{at}\",\"node\":\"node1\",\"by\":\"node2\",\"passed\":false}}");
            let text =
                format!("{{\"here\":\"node2\",\"halves\":[{{\"node\":\"node1\",\"by\":\"node2\",\"test\":{test}}}]}}");
            std::fs::write(dir.path().join(name), text).unwrap();
        };
        answer("answer0", "old");
        answer("answer1", "old");
        // The third call cannot connect.
        answer("answer3", "new");
        let before = there(&programs).halves().unwrap();
        let after = there(&programs).outcome("node1", &before).unwrap();
        assert_eq!(after.halves[0].test.as_ref().map(|test| test.at.as_str()), Some("new"));
    }

    #[test]
    fn the_unit_gets_the_same_command_and_ends_with_no_login() {
        let dir = tempfile::tempdir().unwrap();
        let script = format!("echo \"$@\" > {}/words", dir.path().display());
        let programs = fake_program(dir.path(), "systemd-run", &script);
        in_a_unit(&programs, "node1", Duration::from_secs(60), None).unwrap();
        let words = std::fs::read_to_string(dir.path().join("words")).unwrap();
        let expected = "-- /usr/sbin/tandem fencing test node1 --confirm node1 --timeout 60s\n";
        assert!(
            words.starts_with("--quiet --collect --unit=tandem-fencing-test") && words.ends_with(expected),
            "{words}"
        );
        let programs = fake_program(dir.path(), "systemd-run", "echo 'Unit is loaded already' >&2; exit 1");
        let why = in_a_unit(&programs, "node1", Duration::from_secs(60), None).unwrap_err().0;
        assert!(
            why.contains("(Unit is loaded already)") && why.ends_with("'systemctl status tandem-fencing-test'"),
            "{why}"
        );
    }
}
