//! Steps that the lab leaves out, to see that its checks can fail. Only a build with the feature `lab-faults` has this, which
//! no package is made of; and a file asks for each, so that a build with every feature loses nothing by itself.

use std::path::Path;

/// A recovery's restart does not record what the peer may have acknowledged.
pub(crate) const SKIP_ADVANCE_COMMIT: &str = "/etc/tandem/test-skip-advance-commit";
/// A note is renamed into its place without having been synced.
pub(crate) const SKIP_NOTE_SYNC: &str = "/etc/tandem/test-skip-note-sync";
/// What is appended to etcd's log is not synced.
pub(crate) const SKIP_WAL_SYNC: &str = "/etc/tandem/test-skip-wal-sync";

/// What `fault` is about is in its place and not synced, where the lab asks for that. The next thing that anybody syncs would take it
/// along, so nothing follows for a while in which the lab may cut the power.
pub(crate) fn left_unsynced(fault: &str) {
    if is_on(fault) {
        log::warn!("{fault}: it is written, and not synced");
        let _ =
            crate::clock::Deadline::after(std::time::Duration::from_secs(3)).sleep(std::time::Duration::from_secs(3));
    }
}

/// Whether the lab asks for it.
pub(crate) fn is_on(fault: &str) -> bool {
    let on = Path::new(fault).exists();
    if on {
        log::warn!("{fault} exists: acknowledged writes may be lost");
    }
    on
}
