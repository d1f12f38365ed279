//! The version of etcd in an image, by the image's id. An image never changes under its id, so its etcd is asked once.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::base::Fact;
use crate::decide::evidence::Version;
use crate::records::{decision_log, state_file};

const FILE: &str = "etcd-versions.json";

fn path() -> PathBuf {
    Path::new(decision_log::DIRECTORY).join(FILE)
}

/// Returns etcd's version in the image `id`; `None` if it is not recorded yet.
pub fn read(id: &str) -> Option<Version> {
    all().get(id).copied()
}

fn all() -> BTreeMap<String, Version> {
    match state_file::read(&path()) {
        Fact::Known(known) => known,
        Fact::Absent | Fact::Unknown(_) | Fact::NotAsked => BTreeMap::new(),
    }
}

/// Records that the image `id` has this `version` of etcd.
pub fn keep(id: &str, version: Version) -> io::Result<()> {
    let mut known = all();
    known.insert(id.to_owned(), version);
    state_file::write(&path(), &known)
}
