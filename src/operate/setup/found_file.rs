//! A file as it was found on a node, without what is in it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};

/// Files by their paths.
pub type Files = BTreeMap<PathBuf, FoundFile>;

/// A file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundFile {
    pub mode: u32,
    /// SHA-256 of what is in it, which is shown nowhere.
    pub digest: String,
    /// What is in it, where that is certificates and nothing else.
    pub certificates: Option<String>,
}

/// Whether `mode` lets nobody but the owner do anything.
pub fn is_private(mode: u32) -> bool {
    const OTHERS: u32 = 0o077;
    mode & OTHERS == 0
}

/// Returns the content's SHA-256.
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
