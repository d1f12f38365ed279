//! The last observation, as a file. Programs without the time for an observation read it, and the next observation compares itself with
//! it.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::seen::CollectSeen;
use crate::operate::cluster::Cluster;
use crate::operate::health::Health;
use crate::operate::health::pacemaker_cluster::PacemakerCluster;
use crate::operate::members::under_way::UnderWay;
use crate::records::state_file;

/// Path of the file with the collector's last observation.
pub const PATH: &str = "/var/lib/tandem/status.json";
/// Version of the format of the collector's status file. It changes when a key changes its meaning, and stays when a key is added.
const FORMAT: u32 = 1;

#[derive(Serialize)]
struct Status<'a> {
    format: u32,
    /// Time of the observation, in seconds since 1970.
    at: u64,
    cluster: &'a Cluster,
    health: &'a Health,
    pacemakercluster: &'a PacemakerCluster,
    #[serde(skip_serializing_if = "Option::is_none")]
    member_change: &'a Option<UnderWay>,
    /// The `lastUpdated` that this node last wrote to OpenShift's `PacemakerCluster`; `None` if it wrote none.
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<&'a str>,
}

/// The part of the last observation with which the collector compares the next observation.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Before {
    pub cluster: Cluster,
    pub health: Judged,
    pub pacemakercluster: Option<PacemakerCluster>,
    pub member_change: Option<UnderWay>,
    pub written: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Judged {
    pub verdict: String,
}

/// Reads the last observation from its file; `None` if the file is missing or unreadable.
pub fn read(path: &Path) -> Option<Before> {
    let text = crate::os::regular_file::read_at_most(path, 16 * 1024 * 1024).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Replaces the file with the last observation atomically, readable by root only.
pub fn write(path: &Path, seen: &CollectSeen, written: Option<&str>) -> io::Result<()> {
    let CollectSeen { cluster, health, pacemakercluster, member_change, .. } = seen;
    let status = Status { format: FORMAT, at: cluster.at, cluster, health, pacemakercluster, member_change, written };
    let text = serde_json::to_vec_pretty(&status)?;
    state_file::replace(path, &text, 0o600)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_is_written_is_for_root_and_reads_as_the_look_before() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("status.json");
        assert!(read(&path).is_none());
        let cluster = Cluster { at: 1_795_442_801, here: "node1".to_owned(), ..Cluster::default() };
        write(&path, &CollectSeen::of(cluster, None, None), Some("2026-11-23T07:06:41Z")).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let before = read(&path).unwrap();
        assert_eq!(
            (before.cluster.at, before.cluster.here.as_str(), before.health.verdict.as_str()),
            (1_795_442_801, "node1", "unknown")
        );
        assert_eq!(before.written.as_deref(), Some("2026-11-23T07:06:41Z"));
        std::fs::write(&path, "{").unwrap();
        assert!(read(&path).is_none());
    }
}
