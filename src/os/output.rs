//! Output to stdout and stderr other than the log. All printing is here, because `println!` panics if its reader has gone, and a
//! lint in `lib.rs` rejects it. Terminal control characters are removed, whatever the source of the text is.

use std::env;
use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};

use crate::base::printable;

/// The terminal sequence that clears the screen and moves the cursor to its top.
const CLEAR: &str = "\x1b[2J\x1b[H";

/// The terminal sequence that ends a colour.
const PLAIN: &str = "\x1b[0m";

/// The colour of a word on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    Red,
    Yellow,
    Green,
}

impl Colour {
    fn begins(self) -> &'static str {
        match self {
            Self::Red => "\x1b[1;31m",
            Self::Yellow => "\x1b[1;33m",
            Self::Green => "\x1b[1;32m",
        }
    }
}

/// The words that are coloured at the beginning of a line, with their colours.
pub(crate) type Painted = [(&'static str, Colour)];

/// Prints the lines of a result. A reader that stops before the end, as `head` does, is no error.
pub(crate) fn say(lines: impl Display) -> io::Result<()> {
    is_read(lines).map(drop)
}

/// Prints the lines of a result. On a terminal, colours a word of `words` at the beginning of a line.
pub(crate) fn say_painted(lines: impl Display, words: &Painted) -> io::Result<()> {
    print("", &lines, words).map(drop)
}

/// Prints a part of a result. Returns false if the reader has closed the pipe, so that the caller can stop.
pub(crate) fn is_read(lines: impl Display) -> io::Result<bool> {
    print("", &lines, &[])
}

/// Clears the screen and prints lines, coloured as by [`say_painted`]. Returns false if the reader has closed the pipe.
pub(crate) fn is_read_alone(lines: impl Display, words: &Painted) -> io::Result<bool> {
    print(CLEAR, &lines, words)
}

/// Prints the reason for a failure on stderr. If that fails, only the exit code shows the failure.
pub(crate) fn complain(line: impl Display) {
    let line = line.to_string();
    let _ = writeln!(io::stderr().lock(), "{}", printable::lines(&line));
}

fn print(before: &str, lines: &impl Display, words: &Painted) -> io::Result<bool> {
    let lines = printable::lines(&lines.to_string()).into_owned();
    let lines = if words.is_empty() || !takes_colours() { lines } else { painted(&lines, words) };
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{before}{lines}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        result => result.map(|()| true),
    }
}

/// Returns whether stdout is a terminal that shows colours, and `NO_COLOR` does not forbid them (https://no-color.org).
fn takes_colours() -> bool {
    let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    io::stdout().is_terminal() && !is_set("NO_COLOR") && env::var_os("TERM").is_none_or(|term| term != "dumb")
}

fn painted(lines: &str, words: &Painted) -> String {
    let paint = |line: &str| {
        words.iter().find_map(|(word, colour)| {
            let rest = line.strip_prefix(word).filter(|rest| rest.is_empty() || rest.starts_with([' ', ':']))?;
            Some(format!("{}{word}{PLAIN}{rest}", colour.begins()))
        })
    };
    lines.split('\n').map(|line| paint(line).unwrap_or_else(|| line.to_owned())).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_has_its_colour_at_the_beginning_of_a_line_alone() {
        let words = [("down", Colour::Red), ("warning", Colour::Yellow)];
        let lines = "down: no writes\n\nwarning   it is down\ndowntime\n warning";
        let expected = "\x1b[1;31mdown\x1b[0m: no writes\n\n\x1b[1;33mwarning\x1b[0m   it is down\ndowntime\n warning";
        assert_eq!(painted(lines, &words), expected);
    }
}
