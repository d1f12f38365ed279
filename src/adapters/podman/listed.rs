//! Containers in the output of `podman ps`. It lists even a container that podman cannot inspect because of damaged storage.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Error, Inspected, State, succeeded};
use crate::adapters::command::Programs;
use crate::adapters::pace::Question;
use crate::base::json;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Listed {
    id: String,
    names: Vec<String>,
    state: String,
    exit_code: i32,
    pid: i32,
    labels: Option<BTreeMap<String, String>>,
}

/// Returns the container `name` from `podman ps`; `None` if podman does not list it.
pub(super) fn find(programs: &Programs, name: &str) -> Result<Option<Inspected>, Error> {
    let output = programs.run("podman", &["ps", "--all", "--format=json"], Question::Podman)?;
    Ok(named(name, &succeeded("ps", output)?)?)
}

fn named(name: &str, json: &str) -> Result<Option<Inspected>, serde_json::Error> {
    let all: Vec<Listed> = json::from_text(json)?;
    let Some(found) = all.into_iter().find(|container| container.names.iter().any(|own| own == name)) else {
        return Ok(None);
    };
    let running = found.state == "running";
    let state = State {
        running,
        status: found.state,
        exit_code: found.exit_code,
        error: String::new(),
        finished_at: None,
        pid: found.pid,
        cgroup_path: String::new(),
    };
    let (image, image_name) = (String::new(), String::new());
    Ok(Some(Inspected { id: found.id, state, labels: found.labels, image, image_name }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shortened output of `podman ps` of version 4.3.
    const LIST: &str = r#"[
        {"AutoRemove": false, "Command": ["--config-file=/var/lib/etcd/config.yaml"], "Exited": true, "ExitCode": 137,
         "Id": "b512ac6933e6", "Labels": {"tandem.made-from": "aaf6cf225d2ebb99"}, "Names": ["etcd"], "Pid": 0,
         "Ports": null, "State": "exited"},
        {"ExitCode": 0, "Id": "c0ffee", "Labels": null, "Names": ["etcd-previous"], "Pid": 7, "State": "running"}
    ]"#;

    #[test]
    fn a_container_is_found_by_its_whole_name() {
        let etcd = named("etcd", LIST).unwrap().unwrap();
        assert_eq!((etcd.id.as_str(), etcd.state.running, etcd.state.exit_code), ("b512ac6933e6", false, 137));
        assert_eq!(etcd.labels.unwrap()["tandem.made-from"], "aaf6cf225d2ebb99");
        let previous = named("etcd-previous", LIST).unwrap().unwrap();
        assert!(previous.state.running && previous.state.pid == 7 && previous.labels.is_none());
        assert_eq!(named("etc", LIST).unwrap(), None);
        assert_eq!(named("etcd", "[]").unwrap(), None);
    }
}
