//! Steps that the lab leaves out, to see that its checks can fail. Only a build with the feature `lab-faults` has this, which
//! no package is made of; and a file asks for each, so that a build with every feature loses nothing by itself.

use std::path::Path;

/// A recovery's restart does not record what the peer may have acknowledged.
pub(crate) const SKIP_ADVANCE_COMMIT: &str = "/etc/tandem/test-skip-advance-commit";
/// A note is renamed into its place without having been synced.
pub(crate) const SKIP_NOTE_SYNC: &str = "/etc/tandem/test-skip-note-sync";
/// Nothing follows a note for a while. It is synced, unless that is left out as well.
pub(crate) const WAIT_AFTER_NOTE: &str = "/etc/tandem/test-wait-after-note";
/// What is appended to etcd's log is not synced.
pub(crate) const SKIP_WAL_SYNC: &str = "/etc/tandem/test-skip-wal-sync";
/// A data dir's `member` is renamed aside, and the directory is not synced.
pub(crate) const SKIP_RENAME_SYNC: &str = "/etc/tandem/test-skip-rename-sync";
/// Nothing follows that rename for a while. The directory is synced, unless that is left out as well.
pub(crate) const WAIT_AFTER_RENAME: &str = "/etc/tandem/test-wait-after-rename";

/// What `asked` is about is in its place. Were it not synced, the next thing that anybody syncs would take it along: so where the lab asks
/// for that, nothing follows for a while in which it may cut the power.
pub(crate) fn wait_after_writing(asked: &str) {
    if is_on(asked) {
        log::warn!("{asked}: it is written, and nothing follows yet");
        let _ = crate::os::clock::Deadline::after(std::time::Duration::from_secs(3))
            .sleep(std::time::Duration::from_secs(3));
    }
}

/// Whether the lab asks for it.
pub(crate) fn is_on(fault: &str) -> bool {
    let on = Path::new(fault).exists();
    if on {
        log::warn!("{fault} exists, as it may in a test alone");
    }
    on
}
