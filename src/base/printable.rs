//! Text that is safe to print, without characters that move a terminal's cursor, forge a line or change its direction.

use std::borrow::Cow;

/// Returns `text` as one line. Each character that controls a terminal or breaks a line becomes a blank.
pub fn one_line(text: &str) -> Cow<'_, str> {
    replaced(text, is_control)
}

/// Returns `text` with its line breaks. Every other character that controls a terminal becomes a blank.
pub fn lines(text: &str) -> Cow<'_, str> {
    replaced(text, |letter| letter != '\n' && is_control(letter))
}

/// Returns whether `letter` controls the display. Such are control characters, line separators, and characters that hide the text after
/// them or change its direction.
pub fn is_control(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn replaced(text: &str, is_unfit: impl Fn(char) -> bool) -> Cow<'_, str> {
    if text.contains(&is_unfit) { text.replace(&is_unfit, " ").into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_controls_a_terminal_becomes_a_blank() {
        assert_eq!(one_line("a\u{1b}[2J\r\n\u{9b}b\u{202e}c\u{2028}d"), "a [2J   b c d");
        assert_eq!(lines("a\u{7}\nb\tc"), "a \nb c");
        assert_eq!(one_line("Knoten-ä ☃"), "Knoten-ä ☃");
    }
}
