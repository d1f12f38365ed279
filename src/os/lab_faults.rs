//! Faults that the lab injects, to check that its tests can fail. Only a build with the feature `lab-faults` has them, and no
//! package is built so. Each fault also needs a file, so that a build with every feature loses nothing by itself.

use std::path::Path;

/// A recovery's restart does not record the writes that the peer may have acknowledged.
pub(crate) const SKIP_ADVANCE_COMMIT: &str = "/etc/tandem/test-skip-advance-commit";
/// A note is renamed into place without a sync.
pub(crate) const SKIP_NOTE_SYNC: &str = "/etc/tandem/test-skip-note-sync";
/// The agent pauses after a note. The note is synced, unless another fault prevents that.
pub(crate) const WAIT_AFTER_NOTE: &str = "/etc/tandem/test-wait-after-note";
/// Bytes that are appended to etcd's log are not synced.
pub(crate) const SKIP_WAL_SYNC: &str = "/etc/tandem/test-skip-wal-sync";
/// A data dir's `member` is renamed aside, and the directory is not synced.
pub(crate) const SKIP_RENAME_SYNC: &str = "/etc/tandem/test-skip-rename-sync";
/// The agent pauses after that rename. The directory is synced, unless another fault prevents that.
pub(crate) const WAIT_AFTER_RENAME: &str = "/etc/tandem/test-wait-after-rename";

/// Pauses after the write that `asked` is about, so that the lab can cut the power. Without the pause the next sync of any file
/// would also sync an unsynced write.
pub(crate) fn wait_after_writing(asked: &str) {
    if is_on(asked) {
        log::warn!("{asked}: it is written, and nothing follows yet");
        let _ = crate::os::clock::Deadline::after(std::time::Duration::from_secs(3))
            .sleep(std::time::Duration::from_secs(3));
    }
}

/// Returns whether the lab has enabled a fault.
pub(crate) fn is_on(fault: &str) -> bool {
    let on = Path::new(fault).exists();
    if on {
        log::warn!("{fault} exists, as it may in a test alone");
    }
    on
}
