//! The password, fetched from its configured source. It never passes through a shell or an argument.

use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use super::config::PasswordSource;
use super::password_file::{self, Identity, LIMIT as FILE_LIMIT};
use crate::adapters::command::Programs;
use crate::os::secret::Secret;
use crate::os::wiped;

/// The time limit of the program in `password_script`. It is long enough for access to a vault, and keeps a program that hangs
/// from using up the action's time.
const SCRIPT_LIMIT: Duration = Duration::from_secs(10);

/// The passwords that may be valid, and the identity of the password file. The identity is `None` unless the passwords are from a
/// file with two lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    pub secrets: Vec<Secret>,
    pub file: Option<Identity>,
}

/// Fetches the passwords from `source`. No part of a password is in the error or in the result's `Debug` output.
pub fn fetch(source: &PasswordSource, limit: Duration) -> Result<Fetched, String> {
    let one = |secret| Fetched { secrets: vec![secret], file: None };
    let fetched = match source {
        PasswordSource::Given(secret) => one(secret.clone()),
        PasswordSource::File(path) => from_file(path)?,
        PasswordSource::Script(script) => one(from_script(script, limit.min(SCRIPT_LIMIT))?),
    };
    if fetched.secrets.first().is_none_or(Secret::is_empty) {
        return Err("the password is empty".to_owned());
    }
    Ok(fetched)
}

/// Checks that the password's source exists. Runs no program and reads no file.
pub fn check(source: &PasswordSource) -> Result<(), String> {
    match source {
        PasswordSource::Given(_) => Ok(()),
        PasswordSource::File(path) if path.is_file() => Ok(()),
        PasswordSource::File(path) => Err(format!("password_file {} is no file", path.display())),
        PasswordSource::Script(script) => {
            let (program, _) = split(script);
            let mode = std::fs::metadata(program).map(|data| (data.is_file(), data.permissions().mode()));
            match mode {
                Ok((true, mode)) if mode & 0o111 != 0 => Ok(()),
                Ok((true, _)) => Err(format!("password_script {program} is not executable")),
                _ => Err(format!("password_script {program} is no file")),
            }
        }
    }
}

fn from_file(path: &Path) -> Result<Fetched, String> {
    let cannot = |why: String| format!("password_file {}: {why}", path.display());
    let file = std::fs::File::open(path).map_err(|error| cannot(error.to_string()))?;
    if file.metadata().is_ok_and(|data| data.permissions().mode() & 0o077 != 0) {
        log::warn!("{}", cannot("other users can read the file; its mode should be 600".to_owned()));
    }
    let identity = Identity::of(&file).ok();
    let limited = file.take(u64::try_from(FILE_LIMIT).unwrap_or(u64::MAX));
    let content = wiped::read(limited, FILE_LIMIT).map_err(|error| cannot(error.to_string()))?;
    let secrets = password_file::lines(&content);
    Ok(Fetched { file: identity.filter(|_| secrets.len() > 1), secrets })
}

fn from_script(script: &str, limit: Duration) -> Result<Secret, String> {
    let (program, arguments) = split(script);
    let (code, printed) = Programs::default()
        .run_for_secret(program, &arguments, limit)
        .map_err(|error| format!("password_script: {error}"))?;
    // Neither output nor error text of the program is shown, because both may contain the password.
    if code != 0 {
        return Err(format!("password_script {program} failed with exit code {code}"));
    }
    if !std::str::from_utf8(&printed).is_ok_and(|text| !text.contains(char::REPLACEMENT_CHARACTER)) {
        return Err(format!("password_script {program} printed something that is not UTF-8"));
    }
    let secret = first_line(&printed);
    if secret.is_empty() { Err(format!("password_script {program} printed no password")) } else { Ok(secret) }
}

/// Splits the value of `password_script` at blanks into a program and its arguments. If the whole value is the name of a file, that
/// file is the program.
fn split(script: &str) -> (&str, Vec<&str>) {
    if Path::new(script).is_file() {
        return (script, Vec::new());
    }
    let mut words = script.split_whitespace();
    (words.next().unwrap_or_default(), words.collect())
}

fn first_line(content: &[u8]) -> Secret {
    let line = content.split(|byte| *byte == b'\n').next().unwrap_or_default();
    Secret::new(line.strip_suffix(b"\r").unwrap_or(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_line_end_is_taken_off() {
        assert_eq!(first_line(b"pass word \nsecond").reveal(), b"pass word ");
        assert_eq!(first_line(b"x\r\n").reveal(), b"x");
        assert_eq!(first_line(b"\xff").reveal(), b"\xff");
        assert!(first_line(b"\nx").is_empty());
    }

    #[test]
    fn a_script_may_have_arguments_but_no_shell() {
        let echo = PasswordSource::Script("/bin/echo $HOME;x".into());
        assert_eq!(fetch(&echo, SCRIPT_LIMIT).unwrap().secrets[0].reveal(), b"$HOME;x");
        let failing = fetch(&PasswordSource::Script("/bin/false".into()), SCRIPT_LIMIT).unwrap_err();
        assert!(failing.contains("exit code 1"), "{failing}");
        let silent = fetch(&PasswordSource::Script("/bin/true".into()), SCRIPT_LIMIT).unwrap_err();
        assert!(silent.contains("no password"), "{silent}");
        let slow = fetch(&PasswordSource::Script("/bin/sleep 60".into()), Duration::from_millis(50)).unwrap_err();
        assert!(slow.contains("killed"), "{slow}");
        assert!(check(&PasswordSource::Script("/nonexistent".into())).is_err());
    }
}
