//! The end of a password's change: which of the two lines of a file is valid, and without the other.

use std::path::Path;
use std::time::Duration;

use super::examine::{self, Examined};
use super::login_memory::Remembered;
use super::password_file::PasswordFile;
use crate::os::clock;

/// A BMC that accepted the first line may accept the second a moment later; its accounts count every login.
const AFTER_THE_FIRST: Duration = Duration::from_secs(60);
/// Both lines refused: until somebody looks after it, each further try is a step towards a locked account.
const AFTER_BOTH_REFUSED: Duration = Duration::from_secs(3_600);

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// An operator, who waits for the answer.
    Now,
    /// Who comes again: the BMC is asked where that is due, and not where an action learnt the answer.
    NowAndThen,
}

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It has one line.
    Single,
    /// The BMC accepts the second line, which is the only one now.
    Dropped,
    /// The BMC accepts the first line still, and both stay.
    FirstIsValid,
    /// It is not due to ask.
    NotDue,
    /// It is not known which one is valid, in the agent's own words.
    Unknown(String),
}

/// Asks the BMC of a device with `options` which line of its password file at `path` is valid, and drops the first one where it
/// is the second.
///
/// The first is dropped only where the BMC has accepted the second. The second never is: while the first is accepted, the change at
/// the BMC may be still to come.
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

/// Unless somebody has changed the file since it was looked at.
fn drop_first(path: &Path, seen: &PasswordFile) -> std::io::Result<Settled> {
    let mut file = PasswordFile::hold(path)?;
    if file.identity != seen.identity {
        return Ok(Settled::NotDue);
    }
    let second: Vec<_> = file.lines.drain(1..).collect();
    file.replace(second)?;
    Ok(Settled::Dropped)
}

/// Which line of the file at `path` the BMC accepted when an action last showed them.
pub fn valid_line(options: &[u8], file: &PasswordFile) -> Option<usize> {
    let config = examine::config(options, None, None).ok()?;
    let known = Remembered::of(&config.address).about(file.identity)?;
    known.line.filter(|_| known.accepted)
}
