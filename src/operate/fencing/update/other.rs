//! The same command on the other node, typed through ssh, with the password on its standard input.

use std::time::Duration;

use crate::adapters::command::Programs;
use crate::adapters::ssh;

/// Exit code of `tandem fencing update` if the operator must do more. From the other node it counts as success,
/// because this node's report lists the same things to do.
const DEGRADED: i32 = 3;

/// Runs `tandem fencing update` with the arguments `words` on the other node. `password` is sent on standard input. With a password,
/// `words` must contain `--password-stdin`. The error is what the other node printed.
pub(super) fn run(
    programs: &Programs,
    host: &str,
    words: &[&str],
    password: Option<&[u8]>,
    timeout: Duration,
) -> Result<(), String> {
    let words = [&["fencing", "update"], words].concat();
    let mut input = zeroize::Zeroizing::new(Vec::with_capacity(password.map_or(0, <[u8]>::len) + 1));
    input.extend(password.into_iter().flatten());
    input.extend(password.map(|_| b'\n'));
    let output = ssh::run(programs, host, &words, &input, timeout).map_err(|error| error.to_string())?;
    match output.code {
        0 | DEGRADED => Ok(()),
        _ => Err(output.complaint().trim_start_matches("tandem: ").to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::command::fake_program;

    #[test]
    fn the_password_goes_through_standard_input_only() {
        let dir = tempfile::tempdir().unwrap();
        let programs =
            fake_program(dir.path(), "ssh", &format!("echo \"$@\" > {0}/argv; cat > {0}/stdin", dir.path().display()));
        run(&programs, "admin@node1", &["node2", "--password-stdin"], Some(b"hunter2"), Duration::from_secs(9))
            .unwrap();
        let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!(read("stdin"), "hunter2\n");
        assert!(
            read("argv").ends_with("admin@node1 sudo -n /usr/sbin/tandem fencing update node2 --password-stdin\n"),
            "{}",
            read("argv")
        );
        let programs = fake_program(dir.path(), "ssh", "echo 'tandem: no node is called so' >&2; exit 1");
        assert_eq!(run(&programs, "node1", &[], None, Duration::from_secs(9)).unwrap_err(), "no node is called so");
    }
}
