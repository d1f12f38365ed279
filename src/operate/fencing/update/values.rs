//! The new values of a change. Passwords come from places that no other process can read.

use super::device::Device;
use super::{Order, Terminal};
use crate::fence::password_file::{self, PasswordFile};
use crate::operate::failure::Failure;
use crate::os::secret::Secret;
use crate::os::wiped;

/// Largest size of a password file or of standard input, in bytes.
const LIMIT: u64 = 64 * 1024;

/// The new password and options of a fence device.
pub(super) struct New {
    pub password: Option<Secret>,
    /// New values, by the names that the options have in the CIB.
    pub options: Vec<(&'static str, String)>,
}

impl New {
    /// Returns whether the change contains neither a password nor an option.
    pub(super) fn is_nothing(&self) -> bool {
        self.password.is_none() && self.options.is_empty()
    }

    /// Returns whether the change may lead to another BMC, or to another system of the same BMC.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.options.iter().any(|(name, _)| matches!(*name, "ip" | "systems_uri"))
    }
}

/// Returns what `order` changes. Reads the password at the terminal if `order` needs one and does not contain it.
pub(super) fn read(order: &Order, device: &Device, terminal: &dyn Terminal) -> Result<New, Failure> {
    let given = [
        ("username", &order.username),
        ("ip", &order.ip),
        ("systems_uri", &order.systems_uri),
        ("ssl_fingerprint", &order.ssl_fingerprint),
    ];
    let mut options: Vec<(&'static str, String)> = Vec::new();
    for (name, value) in given {
        let Some(value) = value else { continue };
        if value.is_empty() || value.chars().any(char::is_control) {
            return Err(Failure(format!(
                "--{} has no value that could be stored: type it anew",
                name.replace('_', "-")
            )));
        }
        options.push((name, value.clone()));
        options.extend(device.with_it(name).map(|(other, value)| (other, value.to_owned())));
    }
    let password = match (&order.password_file, order.password_stdin) {
        (Some(path), _) => {
            let content = wiped::read_at_most(path, LIMIT)
                .map_err(|error| Failure(format!("--password-file {} cannot be read: {error}", path.display())))?;
            Some(first_line(&content)?)
        }
        (None, true) => {
            let content = terminal.input(LIMIT)?;
            Some(first_line(&content)?)
        }
        (None, false) if asks(order, device, options.is_empty()) => Some(typed(order, device, terminal)?),
        (None, false) => None,
    };
    if device.password_file.is_none() && password.as_ref().is_some_and(|password| text(password).is_none()) {
        return Err(no_text());
    }
    Ok(New { password, options })
}

/// Returns the refusal of a password with characters that the CIB cannot contain.
pub(super) fn no_text() -> Failure {
    Failure(
        "this password has characters that the CIB cannot hold: choose another, or give the device a password_file"
            .to_owned(),
    )
}

/// Returns the password as text, or `None` if the CIB cannot contain it.
pub(super) fn text(password: &Secret) -> Option<&str> {
    std::str::from_utf8(password.reveal()).ok().filter(|text| !text.chars().any(char::is_control))
}

/// Returns whether to ask the operator for a password. Asks for none if the order changes something else. Asks for none if the password
/// file has a second line, because that line may be the new password.
fn asks(order: &Order, device: &Device, nothing_else: bool) -> bool {
    let is_staged = || {
        let path = device.password_file.as_ref();
        path.is_some_and(|path| PasswordFile::look(path).is_ok_and(|file| file.lines.len() > 1))
    };
    nothing_else && !order.no_question && (order.stage || order.change_at_bmc || !is_staged())
}

fn first_line(content: &[u8]) -> Result<Secret, Failure> {
    match password_file::lines(content).into_iter().next().filter(|line| !line.is_empty()) {
        Some(line) => Ok(line),
        None => Err(Failure("the new password is empty: its first line has to be the password".to_owned())),
    }
}

fn typed(order: &Order, device: &Device, terminal: &dyn Terminal) -> Result<Secret, Failure> {
    let ask = |question: String| {
        terminal.password(&question).map_err(|_| {
            Failure(
                "no password was given, and there is no terminal to ask at: add --password-file FILE or --password-stdin"
                    .to_owned(),
            )
        })
    };
    let first = ask(format!("New password of the BMC of {} ({}): ", device.node, device.id))?;
    // The BMC detects a mistyped password, but not in a change that gives it the password only later.
    if order.stage || order.change_at_bmc {
        let second = ask("The same once more: ".to_owned())?;
        if *first != *second {
            return Err(Failure("the two passwords differ: nothing was changed".to_owned()));
        }
    }
    first_line(first.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_the_first_line_and_never_empty() {
        assert_eq!(first_line(b"a b \r\nrest\n").unwrap().reveal(), b"a b ");
        assert!(first_line(b"\nx\n").unwrap_err().0.contains("empty"));
        assert_eq!(text(&Secret::new("p\u{e4}ss <&\"")), Some("p\u{e4}ss <&\""));
        assert_eq!((text(&Secret::new(b"\xff".to_vec())), text(&Secret::new("a\tb"))), (None, None));
    }
}
