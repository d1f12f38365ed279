//! One change to a node, which can be printed and performed.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::base::shell;

/// A command or a file by which setup changes a node. It is printed as an operator would type it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// A program and its arguments. No argument is secret.
    Command(Vec<String>),
    Write(File),
}

/// A file that setup writes as a whole: a temporary file replaces it by one rename.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    pub path: PathBuf,
    pub mode: u32,
    /// The content of the file, which is never printed.
    pub content: Zeroizing<Vec<u8>>,
    /// A description of the file in a few words, such as "the password of node1's BMC".
    pub what: String,
}

impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({:o}): {}", self.path.display(), self.mode, self.what)
    }
}

impl std::fmt::Display for Action {
    /// Prints the command as an operator would type it, or the path, mode and description of the file; never its
    /// content.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Command(words) => f.write_str(&shell::line(words)),
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
