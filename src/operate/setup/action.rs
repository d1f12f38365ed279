//! One change to a node: as it is printed, and as it is done.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::base::shell_word;

/// A change that a person could make by hand, in the words in which it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// A program and its arguments; no argument is secret.
    Command(Vec<String>),
    Write(File),
}

/// A file that is written as a whole, by one rename.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    pub path: PathBuf,
    pub mode: u32,
    /// Never shown.
    pub content: Zeroizing<Vec<u8>>,
    /// What it is, in a few words: "the password of node1's BMC".
    pub what: String,
}

impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({:o}): {}", self.path.display(), self.mode, self.what)
    }
}

impl std::fmt::Display for Action {
    /// As it would be typed, or what would be written where; never what is in it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Command(words) => {
                let quoted: Vec<String> = words.iter().map(|word| shell_word(word)).collect();
                f.write_str(&quoted.join(" "))
            }
            Self::Write(file) => write!(f, "write {} (mode {:o}): {}", file.path.display(), file.mode, file.what),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_is_shown_as_it_would_be_typed() {
        let words = ["pcs", "x", "map=node1:10.0.0.1;node2:10.0.0.2", "it's", ""];
        let command = Action::Command(words.iter().map(|word| (*word).to_owned()).collect());
        assert_eq!(command.to_string(), "pcs x 'map=node1:10.0.0.1;node2:10.0.0.2' 'it'\\''s' ''");
        let content = Zeroizing::new(b"hunter2".to_vec());
        let file = File { path: "/etc/tandem/x".into(), mode: 0o600, content, what: "a password".to_owned() };
        assert_eq!(Action::Write(file).to_string(), "write /etc/tandem/x (mode 600): a password");
    }
}
