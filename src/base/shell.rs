//! Command lines that an operator can paste into a shell.

use std::fmt::Display;

/// Returns `word` in quotes if a shell would not read it as one literal word; else unchanged.
pub fn quoted(word: impl Display) -> String {
    let word = word.to_string();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=,@+%".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) { word } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// Returns `words` as one command line, each quoted where a shell needs it.
pub fn line<T: Display>(words: &[T]) -> String {
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Formats a command line as `format!` does, and quotes each inserted value. A shell therefore never splits a value into several words.
macro_rules! command {
    ($form:literal $(, $value:expr)* $(,)?) => {
        format!($form $(, $crate::base::shell::quoted(&$value))*)
    };
}

pub(crate) use command;

/// Splits `line` into words as a shell does; `None` if a shell would do more than split it, as for `$` or `|`. `&&` is a word of its own.
#[cfg(test)]
pub(crate) fn split(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word): (Vec<String>, Option<String>) = (Vec::new(), None);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' => words.extend(word.take()),
            '\'' => word
                .get_or_insert_default()
                .push_str(&letters.by_ref().take_while(|one| *one != '\'').collect::<String>()),
            '\\' => word.get_or_insert_default().push(letters.next()?),
            '&' if word.is_none() && letters.next() == Some('&') => words.push("&&".to_owned()),
            '|' | '&' | ';' | '<' | '>' | '(' | ')' | '$' | '`' | '"' | '*' | '?' | '[' | '#' | '~' | '\n' | '\t' => {
                return None;
            }
            plain => word.get_or_insert_default().push(plain),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_fills_a_hole_stays_one_word() {
        for odd in ["node1", "a b", "it's", "", "a:1;b:2", "$(reboot)", "`x`", "-p", "\"", "a\\b", "a\nb", "ä&"] {
            assert_eq!(split(&quoted(odd)).as_deref(), Some([odd.to_owned()].as_slice()), "{odd}");
            assert_eq!(split(&command!("pcs x map={}", odd)).unwrap()[2], format!("map={odd}"));
        }
        assert_eq!(quoted("/var/lib/etcd:1,2=3@4"), "/var/lib/etcd:1,2=3@4", "what needs no quotes has none");
        assert_eq!(line(&["pcs", "x", "map=a:1;b:2"]), "pcs x 'map=a:1;b:2'");
    }
}
