//! The end of a password's change. It finds out which of a file's two lines is valid, and removes the other.

use std::path::Path;
use std::time::Duration;

use super::examine::{self, Examined};
use super::login_memory::Remembered;
use super::password_file::PasswordFile;
use crate::os::clock;

/// The time after which a periodic check tries the second line of a password file again, if the BMC accepted the first line. The
/// BMC may accept the second line at any moment. It counts every login, so the check does not try more often.
const AFTER_THE_FIRST: Duration = Duration::from_secs(60);
/// The time after which a periodic check tries both lines of a password file again, if the BMC refused both. With more attempts
/// the BMC could lock the account before an operator has corrected the file.
const AFTER_BOTH_REFUSED: Duration = Duration::from_secs(3_600);

/// The caller of the check that finds out which line of a password file is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// An operator's command, which waits for the answer.
    Now,
    /// A periodic caller. For it, the check queries the BMC only at intervals, and only if the logins of the agent's actions have
    /// not shown which line is valid.
    NowAndThen,
}

/// The result of the check that finds out which line of a password file is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// The file has only one line.
    Single,
    /// The BMC accepts the second line. The check has removed the first line.
    Dropped,
    /// The BMC still accepts the first line, so the check has removed no line.
    FirstIsValid,
    /// No check is due now, or the file has just changed.
    NotDue,
    /// It is unknown which line is valid, for the reason in the field.
    Unknown(String),
}

/// Asks the BMC of the fence device which line of the password file at `path` is valid. `options` are the device's options.
/// Removes the first line if the second one is valid.
///
/// The second line is never removed. It is the new password, and the BMC may begin to accept it at any later time.
pub fn settle(
    options: &[u8],
    target: Option<&str>,
    plug: Option<&str>,
    path: &Path,
    asks: Asks,
) -> std::io::Result<Settled> {
    let file = PasswordFile::look(path)?;
    if file.lines.len() < 2 {
        return Ok(Settled::Single);
    }
    let config = match examine::config(options, target, plug) {
        Ok(config) => config,
        Err(why) => return Ok(Settled::Unknown(why)),
    };
    let known = Remembered::of(&config.address).about(file.identity);
    if let Some(known) = known.filter(|_| asks == Asks::NowAndThen) {
        let age = Duration::from_secs(clock::wall_seconds().saturating_sub(known.at));
        match known.line {
            Some(1) if known.accepted => return drop_first(path, &file),
            Some(0) if known.accepted && age < AFTER_THE_FIRST => return Ok(Settled::NotDue),
            None if age < AFTER_BOTH_REFUSED => return Ok(Settled::NotDue),
            _ => {}
        }
    }
    let Examined { note, login, .. } = examine::device(options, target, plug);
    match login.accepted {
        Some(1) => drop_first(path, &file),
        Some(_) => Ok(Settled::FirstIsValid),
        None => Ok(Settled::Unknown(note.failure.unwrap_or_default())),
    }
}

/// Removes the first line of the password file at `path`. Does nothing if the file has changed since it was read as `seen`.
fn drop_first(path: &Path, seen: &PasswordFile) -> std::io::Result<Settled> {
    let mut file = PasswordFile::hold(path)?;
    if file.identity != seen.identity {
        return Ok(Settled::NotDue);
    }
    let second: Vec<_> = file.lines.drain(1..).collect();
    file.replace(second)?;
    Ok(Settled::Dropped)
}

/// Returns the index of the line that the BMC accepted in the last action; `None` if that is unknown, or if `file` has changed since that
/// action.
pub fn valid_line(options: &[u8], file: &PasswordFile) -> Option<usize> {
    let config = examine::config(options, None, None).ok()?;
    let known = Remembered::of(&config.address).about(file.identity)?;
    known.line.filter(|_| known.accepted)
}
