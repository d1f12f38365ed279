//! What goes to stdout and stderr without a log around it. Nothing else prints: `println!` panics where its reader has
//! gone, and a lint in `lib.rs` turns it away.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write as _};

/// Prints lines of a result. Whoever stops reading before the end, as `head` does, has what he wanted.
pub(crate) fn say(lines: impl Display) -> io::Result<()> {
    is_read(lines).map(drop)
}

/// The same for what goes on and on: whether anybody reads it still.
pub(crate) fn is_read(lines: impl Display) -> io::Result<bool> {
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{lines}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        result => result.map(|()| true),
    }
}

/// Says on stderr why nothing came of it. If nobody can hear that either, the exit code is left.
pub(crate) fn complain(line: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
