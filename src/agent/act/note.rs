//! The durable note, and the part of it that is kept in a history that is given up.

use std::time::Duration;

use super::Error;
use crate::adapters::data_dir;
use crate::adapters::etcd::blocking;
use crate::agent::resource::context::Context;
use crate::decide::evidence::DurableState;
use crate::records::kept_history::KeptHistory;
use crate::records::own_dir;

/// Time-out of the query for etcd's revision. It is short because a recovery waits for the answer. An etcd without a leader answers, too.
const PATIENCE: Duration = Duration::from_secs(1);

/// Writes this node's durable record (`DurableState`). If the node begins to run standalone, adds the newest revision that this node knows.
pub(super) fn write(context: &Context, note: &DurableState) -> Result<(), Error> {
    let dir = context.data_dir();
    let mut note = note.clone();
    if note.alone_since.is_some() && note.alone_revision.is_none() {
        note.alone_revision = newest_revision(context);
    }
    own_dir::write(dir, own_dir::NOTE, &note)
        .map_err(|source| Error::file(&own_dir::path(dir, own_dir::NOTE), source))?;
    #[cfg(feature = "lab-faults")]
    crate::os::lab_faults::wait_after_writing(crate::os::lab_faults::WAIT_AFTER_NOTE);
    Ok(())
}

/// Returns the newest revision of this node's data. If etcd runs, queries it, because it may be writing to its database.
fn newest_revision(context: &Context) -> Option<u64> {
    match data_dir::is_open(context.data_dir()) {
        Ok(false) => data_dir::revision(context.data_dir()),
        Ok(true) => blocking::own_revision(&context.own_endpoint, context.credentials(), PATIENCE).ok(),
        Err(_) => None,
    }
    .filter(|revision| *revision > 0)
}

/// Moves this node's data to a directory in which the agent deletes nothing. The part of the durable record about that data moves with it.
pub(super) fn move_history_aside(context: &Context) -> Result<(), Error> {
    let note = own_dir::read::<DurableState>(context.data_dir(), own_dir::NOTE).known().cloned().unwrap_or_default();
    let kept = KeptHistory::of(note, context.peer.as_ref().map(|peer| peer.name.clone()));
    if let Some(path) = data_dir::move_history_aside(context.data_dir(), &kept)? {
        log::warn!("this node's own history is kept as {} until an operator deletes it", path.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::adapters::command::fake_program;
    use crate::decide::evidence::{Lineage, LogPosition, PublishedState};
    use crate::decide::plan::Effect;

    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
            let target = to.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                copy(&entry.path(), &target);
            } else {
                fs::copy(entry.path(), target).unwrap();
            }
        }
    }

    /// Returns the data dir of a voter, and the context of its agent.
    fn of_a_voter(scratch: &Path) -> (PathBuf, Context) {
        let dir = scratch.join("etcd");
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/fixtures/data_dir/3.5/voter"), &dir);
        let place = dir.display().to_string();
        let files = [("trusted_ca_file", "/c/ca.crt"), ("cert_file", "/c/etcd.crt"), ("key_file", "/c/etcd.key")];
        let more = [("image", "etcd:test"), ("data_dir", place.as_str())];
        let context = Context::of_test(scratch, &[&files[..], &more].concat());
        (dir, context)
    }

    /// Asserts that the record of a stopped etcd's data contains the data's last revision. A record for which a recovery waits does not
    /// contain the revision, because only operators need it.
    #[test]
    fn a_record_of_data_at_rest_has_its_last_revision() {
        let scratch = tempfile::tempdir().unwrap();
        let (dir, mut context) = of_a_voter(scratch.path());
        let typed = scratch.path().join("typed");
        context.programs = fake_program(scratch.path(), "attrd_updater", &format!("echo \"$@\" > {}", typed.display()));
        let disk = data_dir::read(&dir).unwrap();
        let record = PublishedState::of("b".to_owned(), disk, Lineage::default());
        let published = |record: &PublishedState| {
            super::super::perform(&context, &Effect::PublishRecord(record.clone())).unwrap();
            fs::read_to_string(&typed).unwrap().contains("\"revision\"")
        };
        assert!(published(&record));
        assert!(!published(&PublishedState { claims: true, ..record.clone() }));
        let blank = crate::decide::evidence::DataDir::Blank;
        assert!(!published(&PublishedState { disk: blank, ..record }));
    }

    #[test]
    fn a_history_that_is_given_up_has_the_revision_of_before_it_ran_alone() {
        let scratch = tempfile::tempdir().unwrap();
        let (dir, context) = of_a_voter(scratch.path());
        let noted = || own_dir::read::<DurableState>(&dir, own_dir::NOTE).known().cloned().unwrap();
        let revision = data_dir::revision(&dir).filter(|revision| *revision > 1);
        assert!(revision.is_some());

        write(&context, &DurableState { joins: true, ..DurableState::default() }).unwrap();
        assert_eq!(noted().alone_revision, None, "it does not run alone");
        let lineage = Lineage { forks: 1, by: "node1".to_owned() };
        let alone_since = Some(LogPosition { term: 3, index: 1000 });
        let alone = DurableState { lineage: lineage.clone(), alone_since, ..DurableState::default() };
        write(&context, &alone).unwrap();
        assert_eq!(noted().alone_revision, revision);
        write(&context, &DurableState { alone_revision: Some(2), ..alone }).unwrap();
        assert_eq!(noted().alone_revision, Some(2), "that of the time alone that has begun before");

        move_history_aside(&context).unwrap();
        let aside = data_dir::aside(&dir).unwrap();
        assert_eq!(aside.len(), 1, "{aside:?}");
        let kept = data_dir::kept_history(&aside[0].path);
        let expected = KeptHistory { lineage, alone_since, alone_revision: Some(2), kept: Some("node2".to_owned()) };
        assert_eq!(kept, Some(expected));
    }
}
