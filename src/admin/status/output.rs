//! `--output`: the cluster in the form of another program.

use std::path::Path;

use clap::ValueEnum;

use super::document::Status;
use crate::admin::collect::KEPT;
use crate::admin::exit::Exit;
use crate::admin::report::Report;
use crate::admin::say;
use crate::operate::cluster::Cluster;
use crate::operate::failure::Failure;
use crate::operate::health::pacemaker_cluster;
use crate::os::regular_file;

/// Largest size of the collector's status file, in bytes. It is many times the usual size.
const KEPT_LIMIT: u64 = 16 * 1024 * 1024;

/// Form of the printed object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Output {
    /// The same as --json
    Json,
    /// OpenShift's object of kind PacemakerCluster, as JSON
    #[value(name = "pacemakercluster")]
    PacemakerCluster,
}

/// Prints the cluster as OpenShift's `PacemakerCluster`. Returns the exit code of `tandem status` for this cluster.
pub(super) fn show(cluster: &Cluster) -> Result<Exit, Failure> {
    say(object(cluster, Path::new(KEPT))?)?;
    Ok(Status::of(cluster).exit())
}

fn object(cluster: &Cluster, kept: &Path) -> serde_json::Result<String> {
    let kept = regular_file::read_at_most(kept, KEPT_LIMIT).unwrap_or_default();
    let previous = pacemaker_cluster::kept(&kept);
    serde_json::to_string_pretty(&pacemaker_cluster::of(cluster, previous.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operate::health::samples;

    #[test]
    fn a_conditions_time_is_that_of_the_collectors_object() {
        let dir = tempfile::tempdir().unwrap();
        let kept = dir.path().join("status.json");
        let mut cluster = samples::read("healthy");
        let first = object(&cluster, &kept).unwrap();
        std::fs::write(&kept, format!("{{\"format\":1,\"pacemakercluster\":{first}}}")).unwrap();
        cluster.at += 3600;
        let mut expected: serde_json::Value = serde_json::from_str(&first).unwrap();
        let second: serde_json::Value = serde_json::from_str(&object(&cluster, &kept).unwrap()).unwrap();
        assert_ne!(second, expected);
        expected["status"]["lastUpdated"] = second["status"]["lastUpdated"].clone();
        assert_eq!(second, expected);
    }
}
