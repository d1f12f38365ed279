use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;
use crate::agent::resource::deployment::Manifests;
use crate::os::clock::Deadline;

/// Returns the context of a node as OpenShift's cluster-etcd-operator configures it, with its pod manifest at `path`.
fn context(path: &Path, more: &[(&str, &str)]) -> Context {
    let manifest = path.display().to_string();
    let own = [("pod_manifest", manifest.as_str()), ("authfile", "/nonexistent")];
    Context::of_test(path.parent().unwrap(), &[&own, more].concat())
}

/// Returns the context of a node with a separate directory for etcd's configuration and the copy of its pod manifest.
fn with_a_copy(dir: &Path) -> (PathBuf, Context) {
    let (path, location) = (manifest(dir), dir.join("etcd").display().to_string());
    std::fs::create_dir_all(&location).unwrap();
    let context = context(&path, &[("config_location", &location)]);
    (path, context)
}

fn manifest(dir: &Path) -> PathBuf {
    let path = dir.join("pod.yaml");
    std::fs::write(&path, include_str!("../../../../tests/data/fixtures/openshift/pod.json")).unwrap();
    path
}

fn run_line(context: &Context) -> String {
    options(context, &context.deployment.image).join(" ")
}

#[test]
fn the_run_line_is_the_shell_agents() {
    let dir = tempfile::tempdir().unwrap();
    let line = run_line(&context(&manifest(dir.path()), &[]));
    for part in [
        "--name=etcd",
        "--replace",
        "--oom-score-adj=-997",
        "--network=host",
        "--volume=/etc/kubernetes/static-pod-resources/etcd-certs:/etc/kubernetes/static-pod-certs:ro",
        "--volume=/var/lib/etcd:/var/lib/etcd",
        "--volume=/var/lib/etcd/tandem:/var/lib/etcd/tandem:ro",
        "--env=ETCDCTL_CACERT=/etc/kubernetes/static-pod-certs/configmaps/etcd-all-bundles/server-ca-bundle.crt",
        "--env=ETCDCTL_CERT=/etc/kubernetes/static-pod-certs/secrets/etcd-all-certs/etcd-peer-node1.crt",
        "--env=ETCDCTL_KEY=/etc/kubernetes/static-pod-certs/secrets/etcd-all-certs/etcd-peer-node1.key",
        "--security-opt=label=disable --security-opt=no-new-privileges --cap-drop=all --cap-add=DAC_OVERRIDE",
        "quay.example.com/openshift/etcd@sha256:1111 --config-file=/var/lib/etcd/config.yaml",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
}

#[test]
fn an_operators_options_are_in_their_places() {
    let dir = tempfile::tempdir().unwrap();
    let more = [
        ("run_opts", "--memory 4g --cap-add=SETUID"),
        ("run_cmd", "/bin/myetcd"),
        ("run_cmd_opts", "--more"),
        ("image", "etcd:mine"),
        ("oom", "0"),
        ("config_location", "/etc/etcd"),
    ];
    let line = run_line(&context(&manifest(dir.path()), &more));
    assert!(
        line.ends_with("--memory 4g --cap-add=SETUID etcd:mine /bin/myetcd --config-file=/etc/etcd/config.yaml --more"),
        "{line}"
    );
    assert!(!line.contains("/etc/etcd/tandem"), "all of it is read-only: {line}");
    assert!(line.contains("--volume=/etc/etcd:/etc/etcd:ro") && !line.contains("oom") && !line.contains("entrypoint"));
}

/// Asserts that the container mounts the agent's files read-only. etcd must not be able to write the agent's durable record, the
/// configuration or the copy of the manifest.
#[test]
fn what_the_agent_writes_in_the_data_dir_is_read_only_inside() {
    let dir = tempfile::tempdir().unwrap();
    for (location, more) in [("/var/lib/etcd/conf", true), ("/var/lib/etcd", false), ("/var/lib", false)] {
        let line = run_line(&context(&manifest(dir.path()), &[("config_location", location)]));
        assert!(line.contains("--volume=/var/lib/etcd/tandem:/var/lib/etcd/tandem:ro"), "{line}");
        assert_eq!(line.contains("--volume=/var/lib/etcd/conf/tandem:/var/lib/etcd/conf/tandem:ro"), more, "{line}");
        assert_eq!(line.matches("/var/lib/etcd/tandem:ro").count(), 1, "{line}");
    }
}

#[test]
fn a_container_is_started_again_until_what_it_is_made_from_changes() {
    let dir = tempfile::tempdir().unwrap();
    let (path, context) = with_a_copy(dir.path());
    let state = podman::State {
        running: false,
        status: "exited".to_owned(),
        exit_code: 0,
        error: String::new(),
        finished_at: None,
        pid: 0,
        cgroup_path: String::new(),
    };
    let container = |label: Option<&str>| {
        let labels = label.map(|label| [(LABEL.to_owned(), label.to_owned())].into());
        Inspected { id: "c".to_owned(), state: state.clone(), labels, image: String::new(), image_name: String::new() }
    };
    assert!(
        !serves(&context, &container(Some("x")), "x"),
        "no copy of the manifest: nobody knows what it was made from"
    );
    save_manifest(&context).unwrap();
    assert!(serves(&context, &container(Some("x")), "x"));
    assert!(serves(&context, &container(None), "x"), "the shell agent's own container");
    assert!(!serves(&context, &container(Some("y")), "x"), "other options or another image");
    for cut_short in ["created", "initialized"] {
        let state = podman::State { status: cut_short.to_owned(), ..state.clone() };
        let container = Inspected { state, ..container(Some("x")) };
        assert!(
            !serves(&context, &container, "x"),
            "{cut_short}: the runtime may know it, and podman starts it no more"
        );
    }
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(context.params.config_location.join(SAVED_MANIFEST), text.replace("\"7\"", "\"6\"")).unwrap();
    assert!(serves(&context, &container(Some("x")), "x"), "another version only");
    std::fs::write(context.params.config_location.join(SAVED_MANIFEST), text.replace("\"1000\"", "\"2000\"")).unwrap();
    assert!(!serves(&context, &container(Some("x")), "x"));
}

/// Asserts that a missing pod manifest is no error while etcd runs, because the agent then reads its copy of the manifest.
#[test]
fn the_copy_stands_in_for_a_manifest_that_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let (path, context) = with_a_copy(dir.path());
    save_manifest(&context).unwrap();
    std::fs::remove_file(&path).unwrap();
    let resolve =
        |manifests| crate::agent::resource::deployment::Deployment::resolve(&context.params, "node1", manifests);
    assert!(resolve(Manifests::CurrentOrSaved).is_ok());
    let refused = resolve(Manifests::Current).unwrap_err();
    assert_eq!(refused.code, crate::adapters::ocf::exit::Code::Generic);
    assert!(refused.sentence.contains("cannot be read"), "{}", refused.sentence);
    assert!(refused.sentence.len() <= crate::adapters::ocf::exit::REASON_LIMIT);
}

/// Asserts that the error for a wrong manifest contains the manifest's path, and that Pacemaker may try again, because OpenShift's operator
/// may repair the manifest.
#[test]
fn a_wrong_manifest_is_named_and_can_be_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = manifest(dir.path());
    let context = context(&path, &[]);
    let good = std::fs::read_to_string(&path).unwrap();
    let certificate = "/etc/kubernetes/static-pod-certs/secrets/etcd-all-certs/etcd-peer-NODE_NAME.crt";
    for (text, words) in [
        ("kind: Pod".to_owned(), "is not JSON"),
        ("{}".to_owned(), "has no container 'etcd'"),
        (good.replace("\"image\": ", "\"picture\": "), "has no image"),
        (good.replace("\"ETCDCTL_CERT\"", "\"OTHER\""), "has no ETCDCTL_CERT"),
        (good.replace(&format!("\"{certificate}\""), "null"), "has no ETCDCTL_CERT"),
        (good.replace("\"env\": ", "\"else\": "), "has no ETCDCTL_CACERT"),
    ] {
        assert_ne!(text, good, "{words}");
        std::fs::write(&path, text).unwrap();
        let resolve = crate::agent::resource::deployment::Deployment::resolve;
        let refused = resolve(&context.params, "node1", Manifests::Current).unwrap_err();
        assert_eq!(refused.code, crate::adapters::ocf::exit::Code::Generic, "{words}");
        assert!(refused.sentence.contains(words), "{words}: {}", refused.sentence);
    }
}

#[test]
fn only_a_container_whose_storage_is_damaged_is_made_anew() {
    let starts_again = |mount: &str| {
        let dir = tempfile::tempdir().unwrap();
        let script = format!("case $1 in start) echo 'Error: it fails' >&2; exit 125 ;; mount) exit {mount} ;; esac");
        let programs = crate::adapters::command::fake_program(dir.path(), "podman", &script);
        let context = Context { programs, ..context(&manifest(dir.path()), &[]) };
        start_again(&context, Deadline::after(Duration::from_secs(10)))
    };
    assert!(matches!(starts_again("125"), Ok(false)));
    assert!(starts_again("0").is_err());
}
