//! OpenShift: the answers of a fake of its API, and the resulting description.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tandem::operate::setup::description::Clone;
use tandem::operate::setup::openshift;

use crate::from_blank::must_be_what_the_operator_makes;
use crate::namespaces::program;
use crate::secrets_api::{self, fencing_secret};
use crate::variants::{all, pairs};
use crate::workshop::in_namespaces;

const ROOM: &str = "/run/setup";

/// Starts a stand-in for the Kubernetes API with these jobs, and with a Secret for each node. Returns the path of a
/// kubeconfig for it.
fn api(name: &str, jobs: &[&str]) -> PathBuf {
    let items: Vec<Value> = jobs.iter().map(|job| json!({ "metadata": { "name": job } })).collect();
    let jobs = ("/apis/batch/v1/namespaces/openshift-etcd/jobs".to_owned(), json!({ "items": items }));
    let secrets =
        [1, 2].map(|number| fencing_secret(&format!("node{number}"), &format!("10.98.0.10{number}"), "hunter2"));
    let path = Path::new(ROOM).join(format!("{name}.kubeconfig"));
    secrets_api::start(std::iter::once(jobs).chain(secrets), &path);
    path
}

#[test]
fn what_the_api_tells_makes_what_the_operator_makes() {
    in_namespaces(module_path!(), "what_the_api_tells_makes_what_the_operator_makes", || {
        up();
        let mut variant = all().into_iter().find(|variant| variant.is_openshift).unwrap();
        // These values in FILE do not matter.
        "warehouse".clone_into(&mut variant.description.cluster);
        variant.description.clone = Clone::Promotable;
        for node in &mut variant.description.nodes {
            node.bmc.options = pairs(&[("ip", "192.0.2.9"), ("username", "root")]);
        }
        let asked = openshift::ask(&api("left", &["pacemaker-status-collector-1"]), &mut variant.description).unwrap();
        assert_eq!(asked.passwords.map(|password| password.0.to_string()), ["hunter2", "hunter2"]);
        assert_eq!(variant.description.cluster, "TNF");
        must_be_what_the_operator_makes(&variant);
    });
}

/// Asserts that `tandem setup` refuses, and changes nothing, while the API has jobs of the etcd operator. The command asks
/// the API before it checks anything else.
#[test]
fn the_command_is_refused_while_the_operator_has_jobs_and_changes_nothing() {
    let name = "the_command_is_refused_while_the_operator_has_jobs_and_changes_nothing";
    in_namespaces(module_path!(), name, || {
        up();
        let tandem = |words: &[&str]| {
            let output = program(env!("CARGO_BIN_EXE_tandem")).arg("setup").args(words).output().unwrap();
            let said =
                format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            (output.status.code(), said)
        };
        let file = format!("{ROOM}/cluster.toml");
        std::fs::write(&file, tandem(&["--example"]).1).unwrap();
        let with = |kubeconfig: &Path| {
            let kubeconfig = kubeconfig.display().to_string();
            tandem(&[&file, "--platform", "openshift", "--kubeconfig", &kubeconfig])
        };
        for (kubeconfig, words) in [
            (
                api("jobs", &["tnf-setup-job", "tnf-auth-job-1"]),
                "by its jobs tnf-setup-job, tnf-auth-job-1: leave it to that",
            ),
            (PathBuf::from("/nonexistent"), "whether the etcd operator sets this cluster up itself is not known"),
            // It continued, and found that this is none of the example's machines.
            (api("none", &[]), "this machine is neither node1 (192.0.2.1) nor node2 (192.0.2.2)"),
        ] {
            let (code, said) = with(&kubeconfig);
            assert!(code == Some(1) && said.contains(words), "{code:?}: {said}");
        }
        assert!(!Path::new("/etc/tandem/node2.join").exists());
    });
}

fn up() {
    let up = program("/usr/sbin/ip").args(["link", "set", "lo", "up"]).output().unwrap();
    assert!(up.status.success(), "{}", String::from_utf8_lossy(&up.stderr));
}
