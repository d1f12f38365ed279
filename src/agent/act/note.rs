//! The durable note, and what a history that is given up keeps of it.

use std::time::Duration;

use super::Error;
use crate::adapters::data_dir;
use crate::adapters::etcd::blocking;
use crate::agent::resource::context::Context;
use crate::decide::evidence::DurableState;
use crate::records::kept_history::KeptHistory;
use crate::records::own_dir;

/// How long etcd has for its revision. It answers that without a leader, and a recovery waits for no more than this.
const PATIENCE: Duration = Duration::from_secs(1);

/// Writes the note. One that begins a time alone gets the newest revision that this node knows.
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

/// Returns the newest revision of the data: by its etcd where that runs, as it writes its database then.
fn newest_revision(context: &Context) -> Option<u64> {
    match data_dir::is_open(context.data_dir()) {
        Ok(false) => data_dir::revision(context.data_dir()),
        Ok(true) => blocking::own_revision(&context.own_endpoint, context.credentials(), PATIENCE).ok(),
        Err(_) => None,
    }
    .filter(|revision| *revision > 0)
}

/// Moves this node's data aside to where nothing deletes it, with what its note has of it inside.
pub(super) fn move_history_aside(context: &Context) -> Result<(), Error> {
    let note = own_dir::read::<DurableState>(context.data_dir(), own_dir::NOTE).known().cloned().unwrap_or_default();
    let kept = KeptHistory::of(note, context.peer.as_ref().map(|peer| peer.name.clone()));
    if let Some(path) = data_dir::move_history_aside(context.data_dir(), &kept)? {
        log::warn!("this node's own history is kept as {} until you delete it", path.display());
    }
    Ok(())
}
