//! What goes to stdout and stderr without a log around it. Nothing else prints: `println!` panics where its reader has
//! gone, and a lint in `lib.rs` turns it away. What controls a terminal is left out of it, whatever it was read from.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write as _};

use crate::base::printable;

/// Clears the screen and begins at its top.
const CLEAR: &str = "\x1b[2J\x1b[H";

/// Prints lines of a result. A reader that stops before the end, as `head` does, is no error.
pub(crate) fn say(lines: impl Display) -> io::Result<()> {
    is_read(lines).map(drop)
}

/// Prints lines that more follow. Returns whether there is still a reader.
pub(crate) fn is_read(lines: impl Display) -> io::Result<bool> {
    print("", &lines)
}

/// Prints lines in the place of all that is on the screen. Returns whether there is still a reader.
pub(crate) fn is_read_alone(lines: impl Display) -> io::Result<bool> {
    print(CLEAR, &lines)
}

/// Prints on stderr why nothing came of it. If that fails, the exit code is left.
pub(crate) fn complain(line: impl Display) {
    let line = line.to_string();
    let _ = writeln!(io::stderr().lock(), "{}", printable::lines(&line));
}

fn print(before: &str, lines: &impl Display) -> io::Result<bool> {
    let lines = lines.to_string();
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{before}{}", printable::lines(&lines)).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        result => result.map(|()| true),
    }
}
