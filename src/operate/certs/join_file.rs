//! The file with which the other node joins a rotation: the new CA and its key. It must be protected like the CA's key.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::operate::certs::pki::Authority;
use crate::operate::failure::Failure;
use crate::os::wiped;
use crate::records::state_file;

/// The directory of all join files. [`path`] replaces each `/` in a node's name, so that every join file is in this
/// directory.
const DIRECTORY: &str = "/etc/tandem";
const FORMAT: u32 = 1;
/// Seconds for which a join file is valid.
pub(crate) const LASTS: u64 = 24 * 3_600;
const LIMIT: u64 = 1 << 20;
/// The largest accepted difference between the clocks of two nodes, in seconds.
const CLOCKS_DIFFER: u64 = 3_600;

/// The contents of a join file, with which the other node joins a rotation of the CA.
#[derive(Serialize, Deserialize)]
pub(crate) struct JoinFile {
    format: u32,
    /// The command that wrote the file. It distinguishes the join file of a CA rotation from that of a setup.
    kind: String,
    /// Name of the node that uses the join file.
    pub(crate) node: String,
    /// Name of the node that wrote the join file.
    pub(crate) from: String,
    made: u64,
    certificate: String,
    key: Zeroizing<String>,
}

const KIND: &str = "tandem certs rotate-ca";

pub(crate) fn path(node: &str) -> PathBuf {
    Path::new(DIRECTORY).join(format!("certs-{}.join", node.replace('/', "-")))
}

/// Deletes expired join files in [`DIRECTORY`], because the CA's key in them does not expire. Returns the paths of the
/// deleted files.
pub(crate) fn delete_void(now: u64) -> Vec<PathBuf> {
    delete_void_in(Path::new(DIRECTORY), now)
}

fn delete_void_in(directory: &Path, now: u64) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_named = |path: &PathBuf| {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        stem.starts_with("certs-") && path.extension().is_some_and(|extension| extension == "join")
    };
    let is_void = |path: &PathBuf| JoinFile::read(path, io::empty()).is_ok_and(|file| file.is_void(now));
    entries.filter(is_named).filter(is_void).filter(|path| fs::remove_file(path).is_ok()).collect()
}

impl JoinFile {
    pub(crate) fn new(authority: &Authority, node: &str, from: &str, now: u64) -> Self {
        Self {
            format: FORMAT,
            kind: KIND.to_owned(),
            node: node.to_owned(),
            from: from.to_owned(),
            made: now,
            certificate: authority.certificate_pem().to_owned(),
            key: authority.key_pem().clone(),
        }
    }

    pub(crate) fn text(&self) -> Result<Zeroizing<String>, Failure> {
        Ok(Zeroizing::new(serde_json::to_string(self)?))
    }

    pub(crate) fn write(&self) -> Result<PathBuf, Failure> {
        let path = path(&self.node);
        state_file::replace(&path, self.text()?.as_bytes(), 0o600)?;
        Ok(path)
    }

    /// Reads a join file, or `input` if the path is `-`.
    pub(crate) fn read(file: &Path, input: impl Read) -> Result<Self, Failure> {
        let name = file.display();
        let bytes = match file.to_str() {
            Some("-") => wiped::read(input, 16 * 1024),
            _ => wiped::read_at_most(file, LIMIT),
        };
        let bytes = bytes.map_err(|error| Failure(format!("cannot read {name}: {error}")))?;
        let read: Option<Self> = serde_json::from_slice(&bytes).ok();
        let unlike =
            || Failure(format!("{name} is no whole join file: copy the one that 'tandem certs rotate-ca' names"));
        read.filter(|read| read.format == FORMAT && read.kind == KIND).ok_or_else(unlike)
    }

    /// Returns whether the join file has expired. A join file expires a day after it was made. A file that was made
    /// more than an hour in the future counts as expired.
    fn is_void(&self, now: u64) -> bool {
        now.saturating_sub(self.made) > LASTS || self.made.saturating_sub(now) > CLOCKS_DIFFER
    }

    /// Returns the CA in the join file. Fails if the file is for another node than `node` or has expired.
    pub(crate) fn authority(&self, node: &str, now: u64) -> Result<Authority, Failure> {
        if self.node != node {
            let Self { node: other, .. } = self;
            return Err(Failure(format!("this file is for {other}, and this is {node}: type it there")));
        }
        if self.is_void(now) {
            let from = &self.from;
            return Err(Failure(format!(
                "this file is older than a day, or of the future: type 'tandem certs rotate-ca' on {from}, which writes it anew"
            )));
        }
        Ok(Authority::load(&self.certificate, &self.key)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_795_400_000;

    #[test]
    fn a_file_that_is_void_is_deleted_and_no_other_one() {
        let dir = tempfile::tempdir().unwrap();
        let authority = Authority::new("demo", NOW).unwrap();
        let write = |name: &str, made: u64| {
            let file = JoinFile::new(&authority, "node2", "node1", made);
            std::fs::write(dir.path().join(name), file.text().unwrap().as_bytes()).unwrap();
        };
        write("certs-old.join", NOW - 2 * LASTS);
        write("certs-new.join", NOW - 60);
        write("certs-ahead.join", NOW + 2 * LASTS);
        write("of-others", NOW - 2 * LASTS);
        std::fs::write(dir.path().join("certs-damaged.join"), "{").unwrap();
        let mut deleted = delete_void_in(dir.path(), NOW);
        deleted.sort();
        assert_eq!(deleted, ["certs-ahead.join", "certs-old.join"].map(|name| dir.path().join(name)));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3);
    }

    #[test]
    fn a_file_is_read_back_by_the_node_that_it_is_for_within_a_day() {
        let dir = tempfile::tempdir().unwrap();
        let authority = Authority::new("demo", NOW).unwrap();
        let file = JoinFile::new(&authority, "node2", "node1", NOW);
        let path = dir.path().join("it");
        let text = file.text().unwrap();
        std::fs::write(&path, text.as_bytes()).unwrap();
        let read = JoinFile::read(&path, std::io::empty()).unwrap();
        assert_eq!(read.authority("node2", NOW + LASTS).unwrap().certificate(), authority.certificate());
        let refused = |result: Result<Authority, Failure>| result.unwrap_err().0;
        assert!(refused(read.authority("node1", NOW)).contains("is for node2"));
        assert!(refused(read.authority("node2", NOW + LASTS + 1)).contains("older than a day"));
        assert!(refused(read.authority("node2", NOW - CLOCKS_DIFFER - 1)).contains("of the future"));
        for wrong in ["", "{}", &text[..text.len() / 2], &text.replace("rotate-ca", "setup")] {
            std::fs::write(&path, wrong).unwrap();
            assert!(
                JoinFile::read(&path, std::io::empty()).err().is_some_and(|why| why.0.contains("no whole join file")),
                "{wrong}"
            );
        }
    }
}
