//! A command on the other node, through the system's ssh with its keys and known hosts.
//!
//! ssh never prompts. Where a login needs a prompt, the operator types the command on the other node. Secrets are sent over its
//! standard input.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use zeroize::Zeroizing;

use crate::adapters::command::{Error, Output, Programs};

/// The path of `tandem` on the other node. The full path is necessary, because `PATH` of a user other than root does not have
/// this directory.
pub const PROGRAM: &str = "/usr/sbin/tandem";
/// The options of ssh. They forbid prompts, because no user could answer them, and detect a lost machine.
const OPTIONS: [&str; 7] = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=15", "--"];
/// The environment variable with the socket of an ssh agent, which may have the keys.
const AGENT: &str = "SSH_AUTH_SOCK";

/// Checks `text`, which is the host to log in to. Rejects characters that ssh, or a shell on the other node, could interpret
/// differently.
pub fn host(text: &str) -> Result<String, String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-:[]%".contains(letter);
    let are_plain = |word: &str| !word.is_empty() && !word.starts_with('-') && word.chars().all(is_plain);
    let (user, host) = parts(text);
    if are_plain(host) && user.is_none_or(are_plain) {
        return Ok(text.to_owned());
    }
    Err("it is no [USER@]HOST: type one such as root@node2".to_owned())
}

fn parts(text: &str) -> (Option<&str>, &str) {
    text.split_once('@').map_or((None, text), |(user, host)| (Some(user), host))
}

/// Returns the arguments with which ssh runs `tandem` on `host`. `words` are the arguments of `tandem`.
fn arguments(host: &str, words: &[&str]) -> Vec<String> {
    // A user other than root becomes root by sudo, without a prompt.
    let is_root = parts(host).0.is_none_or(|user| user == "root");
    let sudo: &[&str] = if is_root { &[] } else { &["sudo", "-n"] };
    [&OPTIONS[..], &[host], sudo, &[PROGRAM], words].concat().into_iter().map(str::to_owned).collect()
}

/// Runs `tandem` with the arguments `words` on `host`, with `input` on its standard input, and waits until it has ended.
pub fn run(programs: &Programs, host: &str, words: &[&str], input: &[u8], timeout: Duration) -> Result<Output, Error> {
    programs.clone().letting_see(AGENT).run_with_input("ssh", &arguments(host, words), input, timeout)
}

/// A `tandem` command on the other node that runs in parallel with this process.
#[derive(Debug)]
pub struct Running {
    ended: Receiver<Result<Output, Error>>,
    /// The sender that keeps the command's standard input open until it is dropped.
    hold: Option<Sender<()>>,
}

impl Running {
    /// Starts `tandem` with the arguments `words` on `host`, with `input` on its standard input. With a `beat`, an empty line follows the
    /// input after each such interval. The input ends when this process ends for any reason.
    pub fn begin(
        programs: &Programs,
        host: &str,
        words: &[&str],
        input: Zeroizing<Vec<u8>>,
        beat: Option<Duration>,
        timeout: Duration,
    ) -> Self {
        let (hold, held) = channel::<()>();
        let (tell, ended) = sync_channel(1);
        let arguments = arguments(host, words);
        let programs = programs.clone().letting_see(AGENT);
        thread::spawn(move || {
            let goes_on = move || beat.is_some_and(|beat| held.recv_timeout(beat) == Err(RecvTimeoutError::Timeout));
            let _ = tell.send(programs.run_with_held_input("ssh", &arguments, input, goes_on, timeout));
        });
        Self { ended, hold: Some(hold) }
    }

    /// Returns the result of the command; `None` while it runs.
    pub fn ended(&self) -> Option<Result<Output, Error>> {
        self.ended.try_recv().ok()
    }

    /// Closes the command's standard input, and waits up to `patience` until it has ended.
    pub fn wait(mut self, patience: Duration) {
        self.hold = None;
        let _ = self.ended.recv_timeout(patience);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::command::fake_program;

    const PATIENCE: Duration = Duration::from_secs(30);

    #[test]
    fn a_host_is_no_option_and_no_command() {
        for right in ["node2", "root@node1.example", "[2001:db8::1]", "admin@10.0.0.2", "fe80::1%eth0"] {
            assert!(host(right).is_ok(), "{right}");
        }
        for odd in ["", "-oProxyCommand=x", "root@-oProxyCommand=x", "root@", "@node2", "a b", "a;b", "$(x)", "a@b@c"] {
            assert!(host(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn who_is_not_root_there_becomes_root_without_being_asked() {
        let words = |host: &str| arguments(host, &["certs", "join", "-"]).join(" ");
        assert!(
            words("root@node2").ends_with(" -- root@node2 /usr/sbin/tandem certs join -"),
            "{}",
            words("root@node2")
        );
        assert!(words("node2").ends_with(" -- node2 /usr/sbin/tandem certs join -"));
        assert!(words("admin@node2").ends_with(" -- admin@node2 sudo -n /usr/sbin/tandem certs join -"));
    }

    #[test]
    fn it_sees_the_agent_that_has_the_keys_and_what_is_secret_is_no_argument() {
        let dir = tempfile::tempdir().unwrap();
        let script = format!(
            "echo \"$@\" > {0}/words; tr '\\0' '\\n' < /proc/self/environ | grep -c SSH_AUTH_SOCK > {0}/sees; cat",
            dir.path().display()
        );
        let programs = fake_program(dir.path(), "ssh", &script);
        let said = run(&programs, "node2", &["setup"], b"hunter2", PATIENCE).unwrap();
        let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!(said.stdout, "hunter2");
        assert!(!read("words").contains("hunter2"), "{}", read("words"));
        let has_agent = std::env::var_os(AGENT).is_some();
        assert_eq!(read("sees").trim(), if has_agent { "1" } else { "0" });
    }

    #[test]
    fn its_input_goes_on_until_it_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let programs = fake_program(dir.path(), "ssh", "cat; exit 3");
        let begin = |beat| Running::begin(&programs, "node2", &[], Zeroizing::new(b"content".to_vec()), beat, PATIENCE);
        let held = begin(Some(Duration::from_millis(50)));
        crate::os::clock::sleep(Duration::from_millis(500));
        assert!(held.ended().is_none(), "its input has ended");
        held.wait(PATIENCE);
        let left = begin(None);
        let until = crate::os::clock::Deadline::after(PATIENCE);
        let said = loop {
            match left.ended() {
                Some(said) => break said.unwrap(),
                None if until.has_passed() => panic!("its input goes on"),
                None => until.sleep(Duration::from_millis(20)),
            }
        };
        assert_eq!((said.code, said.stdout.as_str()), (3, "content"));
    }
}
