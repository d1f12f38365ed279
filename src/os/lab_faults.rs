//! Faults that the lab injects, to check that its tests can fail. Only a build with the feature `lab-faults` has them, and no
//! package is built so. Each fault also needs a file, so that a build with every feature loses nothing by itself.

use std::path::Path;

/// The file that enables this fault: before a recovery restarts etcd, the agent does not advance the commit index in etcd's log.
pub(crate) const SKIP_ADVANCE_COMMIT: &str = "/etc/tandem/test-skip-advance-commit";
/// The file that enables this fault: the agent writes its durable record without a sync before the rename.
pub(crate) const SKIP_NOTE_SYNC: &str = "/etc/tandem/test-skip-note-sync";
/// The file that makes the agent pause after it has written its durable record. Before the pause, the agent syncs the record, unless
/// `SKIP_NOTE_SYNC` prevents that.
pub(crate) const WAIT_AFTER_NOTE: &str = "/etc/tandem/test-wait-after-note";
/// The file that enables this fault: bytes that the agent appends to etcd's log are not synced.
pub(crate) const SKIP_WAL_SYNC: &str = "/etc/tandem/test-skip-wal-sync";
/// The file that enables this fault: the agent renames `member` in the data dir without a sync of the directory.
pub(crate) const SKIP_RENAME_SYNC: &str = "/etc/tandem/test-skip-rename-sync";
/// The file that makes the agent pause after it has renamed `member` in the data dir. Before the pause, the agent syncs the directory,
/// unless `SKIP_RENAME_SYNC` prevents that.
pub(crate) const WAIT_AFTER_RENAME: &str = "/etc/tandem/test-wait-after-rename";

/// Pauses for three seconds if the file `asked` exists, so that the lab can cut the power directly after a write. Without the pause, the
/// later sync of another file could also bring that write to disk.
pub(crate) fn wait_after_writing(asked: &str) {
    if is_on(asked) {
        log::warn!("{asked}: the change is made, and the agent pauses");
        let _ = crate::os::clock::Deadline::after(std::time::Duration::from_secs(3))
            .sleep(std::time::Duration::from_secs(3));
    }
}

/// Returns whether the lab has enabled a fault by creating the file `fault`.
pub(crate) fn is_on(fault: &str) -> bool {
    let on = Path::new(fault).exists();
    if on {
        log::warn!("{fault} exists, which is allowed only in a test");
    }
    on
}
