//! A file that a node reports without its content.

use std::collections::BTreeMap;
use std::path::PathBuf;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};

/// Files of a node by their path, reported without their content.
pub type Files = BTreeMap<PathBuf, FoundFile>;

/// A file of a node, reported by its mode and digest instead of its content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundFile {
    pub mode: u32,
    /// SHA-256 of the file's content, in hexadecimal. It is never printed.
    pub digest: String,
    /// The file's content if it is nothing but certificates; `None` otherwise.
    pub certificates: Option<String>,
}

/// Returns whether the file mode `mode` gives access only to the owner.
pub fn is_private(mode: u32) -> bool {
    const OTHERS: u32 = 0o077;
    mode & OTHERS == 0
}

/// Returns the SHA-256 of `content`, in hexadecimal.
pub fn digest(content: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, content);
    HEXLOWER.encode(digest.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_that_of_sha256sum() {
        assert_eq!(digest(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}
