//! The lines of `--help` about options.

use std::fmt::Write as _;

use super::OptionRow;

/// The column of the help text where the options' descriptions begin.
const COLUMN: usize = 37;
/// The greatest length of a line of the help text.
const WIDTH: usize = 110;

/// Returns the spelling of an option on the command line, as in `-o, --action=[action]`.
pub fn usage(row: &OptionRow) -> String {
    let value = if row.takes_value() { format!("=[{}]", row.value) } else { String::new() };
    let letter = row.letter.map(|letter| format!("-{letter}, ")).unwrap_or_default();
    format!("{letter}--{}{value}", row.long_option())
}

/// Returns the short description of an option, with its default.
pub(super) fn meaning(row: &OptionRow) -> String {
    match row.default {
        Some(default) => format!("{} (Default: {default})", row.short),
        None => row.short.to_owned(),
    }
}

/// Returns the help text of the options, with one or more lines for each.
pub fn list<'a>(rows: impl IntoIterator<Item = &'a OptionRow>) -> String {
    let mut text = String::new();
    for row in rows {
        let mut line = format!("   {:<width$}", usage(row), width = COLUMN - 3);
        for word in meaning(row).split(' ') {
            let start = line.rfind('\n').map_or(0, |at| at + 1);
            if line.len() - start + word.len() > WIDTH {
                let _ = write!(line, "\n{:<COLUMN$}", "");
            }
            let _ = write!(line, " {word}");
        }
        text.push_str(&line);
        text.push('\n');
    }
    text
}
