//! The other node's command, which runs there over ssh. It transfers only the join file's content.

use std::time::Duration;

use zeroize::Zeroizing;

use crate::adapters::command::Programs;
use crate::adapters::ssh::Running;
use crate::operate::setup::channel::Patience;

/// Longest time for the steps of the setup, after the other node was reached.
const LONGER: Duration = Duration::from_secs(2_400);

/// The command `tandem setup join` that runs on the other node through ssh.
#[derive(Debug)]
pub(super) struct There {
    host: String,
    running: Running,
}

/// Starts `tandem setup join` on the other node. `content` is the join file. The command ends if the ssh connection breaks before
/// both nodes have found each other.
pub(super) fn begin(programs: &Programs, host: &str, content: &str, patience: Duration) -> There {
    let limit = format!("{}s", patience.as_secs().max(1));
    let words = ["setup", "join", "--stdin", "--timeout", &limit];
    let content = Zeroizing::new(content.as_bytes().to_vec());
    let beat = Some(Patience::default().beat);
    let running = Running::begin(programs, host, &words, content, beat, patience.saturating_add(LONGER));
    There { host: host.to_owned(), running }
}

impl There {
    /// Checks that the command on the other node still runs. The error is the reason why it ended.
    pub(super) fn still(&self) -> Result<(), String> {
        let host = &self.host;
        let why = match self.running.ended() {
            None => return Ok(()),
            Some(Ok(output)) if output.code == 0 => {
                return Err(format!(
                    "ssh to {host}: 'tandem setup join' ended there before it was asked anything: type it there by hand"
                ));
            }
            Some(Ok(output)) => output.complaint().to_owned(),
            Some(Err(error)) => error.to_string(),
        };
        Err(format!(
            "ssh to {host}: {why}: 'ssh {host} true' shows whether root here can log in there without being asked"
        ))
    }

    /// Waits for the end of the command on the other node, for at most `patience`.
    pub(super) fn wait(self, patience: Duration) {
        self.running.wait(patience);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::command::fake_program;
    use crate::os::clock::Deadline;

    const LIMIT: Duration = Duration::from_secs(60);

    #[test]
    fn only_the_content_of_the_file_is_sent_and_nothing_of_it_is_an_argument() {
        let dir = tempfile::tempdir().unwrap();
        let script = format!("echo \"$@\" > {0}/words; cat > {0}/content", dir.path().display());
        let programs = fake_program(dir.path(), "ssh", &script);
        let there = begin(&programs, "root@node2", "hunter2", LIMIT);
        assert_eq!(there.still(), Ok(()));
        there.wait(Duration::from_secs(10));
        let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!(read("content"), "hunter2");
        let expected = "-- root@node2 /usr/sbin/tandem setup join --stdin --timeout 60s\n";
        assert!(read("words").ends_with(expected), "{}", read("words"));
    }

    #[test]
    fn why_ssh_ended_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let programs = fake_program(dir.path(), "ssh", "echo 'Permission denied (publickey).' >&2; exit 255");
        let there = begin(&programs, "node2", "", LIMIT);
        let until = Deadline::after(Duration::from_secs(10));
        let why = loop {
            match there.still() {
                Err(why) => break why,
                Ok(()) if until.has_passed() => panic!("ssh runs on"),
                Ok(()) => until.sleep(Duration::from_millis(20)),
            }
        };
        assert!(why.starts_with("ssh to node2: Permission denied (publickey).: 'ssh node2 true'"), "{why}");
    }
}
