//! `revision.json`, which a sidecar of OpenShift's static pod writes next to etcd's data. It has the highest Raft index that any
//! member reported, up to 10 s old. The agent publishes it for other programs, and no decision uses it.

use std::path::Path;

use serde::Deserialize;

use crate::os::beneath::Dir;

const FILE: &str = "revision.json";
const LIMIT: u64 = 64 * 1024;
/// The percentage of the last known revision by which a forced new cluster raises its revisions. OpenShift's own quorum restore uses the
/// same percentage.
const BUMP_PERCENT: u64 = 20;
/// The number by which a forced new cluster raises its revisions if no revision is known, as in OpenShift's own quorum restore.
const LARGEST_BUMP: u64 = 1_000_000_000;

#[derive(Deserialize)]
struct Revision {
    #[serde(rename = "maxRaftIndex")]
    max_raft_index: u64,
}

/// Returns the revision that a sidecar of OpenShift wrote next to `data_dir`; `None` where there is none.
pub fn read(data_dir: &Path) -> Option<u64> {
    let text = Dir::open(data_dir).ok()?.own_file(FILE, LIMIT).ok()?;
    serde_json::from_slice::<Revision>(&text).ok().map(|revision| revision.max_raft_index)
}

/// Returns the number by which a forced new cluster raises its revisions, so that no client sees a revision decrease. `revision`
/// is the last known one.
pub fn bump(revision: Option<u64>) -> u64 {
    let amount = revision.map_or(0, |revision| revision / 100 * BUMP_PERCENT + revision % 100 * BUMP_PERCENT / 100);
    if (1..=LARGEST_BUMP).contains(&amount) { amount } else { LARGEST_BUMP }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_beyond_what_json_programs_keep_are_read_exactly() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path()), None);
        let text = "{\"clusterId\":14841639068965178418,\"raftIndex\":{},\"maxRaftIndex\":9007199254740993}";
        std::fs::write(dir.path().join(FILE), text).unwrap();
        assert_eq!(read(dir.path()), Some(9_007_199_254_740_993));
        std::fs::write(dir.path().join(FILE), "{").unwrap();
        assert_eq!(read(dir.path()), None);
    }

    #[test]
    fn the_bump_is_a_fifth_within_bounds() {
        assert_eq!(bump(Some(51_234)), 10_246);
        assert_eq!((bump(None), bump(Some(0)), bump(Some(4))), (LARGEST_BUMP, LARGEST_BUMP, LARGEST_BUMP));
        assert_eq!(bump(Some(u64::MAX)), LARGEST_BUMP);
    }
}
