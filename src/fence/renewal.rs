//! The end of a password's change. It finds out which of a file's two lines is valid, and removes the other.

use std::path::Path;
use std::time::Duration;

use super::examine::{self, Examined};
use super::login_memory::Remembered;
use super::password_file::PasswordFile;
use crate::os::clock;

/// The time after which the second line is tried again. A BMC that accepts the first line may accept the second a moment later,
/// but its accounts count every login.
const AFTER_THE_FIRST: Duration = Duration::from_secs(60);
/// The time after which two refused lines are tried again. Until an operator repairs them, each further attempt may help to lock
/// the account.
const AFTER_BOTH_REFUSED: Duration = Duration::from_secs(3_600);

/// The caller of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// An operator's command, which waits for the answer.
    Now,
    /// A periodic caller. The BMC is asked when that is due, unless an action has learnt the answer.
    NowAndThen,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// The file has one line.
    Single,
    /// The BMC accepts the second line, which is now the only one.
    Dropped,
    /// The BMC still accepts the first line, and both stay.
    FirstIsValid,
    /// A question is not due.
    NotDue,
    /// It is unknown which line is valid, for the reason in the agent's own words.
    Unknown(String),
}

/// Asks the BMC of a device with `options` which line of its password file at `path` is valid. Removes the first line if the
/// second is valid.
///
/// The first line is removed only after the BMC has accepted the second. The second line is never removed, because the BMC's own
/// change may still follow while it accepts the first.
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

/// Removes the first line, unless the file has changed since it was read.
fn drop_first(path: &Path, seen: &PasswordFile) -> std::io::Result<Settled> {
    let mut file = PasswordFile::hold(path)?;
    if file.identity != seen.identity {
        return Ok(Settled::NotDue);
    }
    let second: Vec<_> = file.lines.drain(1..).collect();
    file.replace(second)?;
    Ok(Settled::Dropped)
}

/// Returns the line of the file that the BMC accepted when an action last tried them.
pub fn valid_line(options: &[u8], file: &PasswordFile) -> Option<usize> {
    let config = examine::config(options, None, None).ok()?;
    let known = Remembered::of(&config.address).about(file.identity)?;
    known.line.filter(|_| known.accepted)
}
