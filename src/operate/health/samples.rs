//! Clusters in every state, as files. Those in `tests/data/fixtures/cluster_written` are written by hand, one for each state. Those in
//! `tests/data/fixtures/cluster` were captured from real clusters.

use std::path::PathBuf;

use crate::operate::cluster::Cluster;

const WRITTEN: &str = "tests/data/fixtures/cluster_written";
const CAPTURED: &str = "tests/data/fixtures/cluster";

fn directory(of: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(of)
}

fn parse(of: &str, name: &str) -> Cluster {
    let file = directory(of).join(format!("{name}.json"));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn names(of: &str) -> Vec<String> {
    let files = std::fs::read_dir(directory(of)).unwrap().map(|entry| entry.unwrap().path());
    let json = files.filter(|path| path.extension().is_some_and(|kind| kind == "json"));
    let mut names: Vec<String> = json.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Reads the hand-written cluster `tests/data/fixtures/cluster_written/NAME.json`.
pub(crate) fn read(name: &str) -> Cluster {
    parse(WRITTEN, name)
}

/// Reads all hand-written clusters, each with its name.
pub(crate) fn all() -> Vec<(String, Cluster)> {
    let names = names(WRITTEN);
    assert!(names.len() > 40, "{names:?}");
    names.into_iter().map(|name| (name.clone(), read(&name))).collect()
}

/// Reads all clusters that were captured in the lab, each with its name.
pub(crate) fn captured() -> Vec<(String, Cluster)> {
    names(CAPTURED).into_iter().map(|name| (name.clone(), parse(CAPTURED, &name))).collect()
}
