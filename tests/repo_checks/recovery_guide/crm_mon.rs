//! The guide's lines of `crm_mon` equal the output of Pacemaker's own `crm_mon` for a cluster in that state.

#![expect(clippy::disallowed_methods, reason = "the test asks Pacemaker's tool")]

use std::path::Path;
use std::process::Command;

use super::guide;

/// The beginning of the XML element of etcd's last operation, which in the fixtures is a successful start.
const STARTED: &str = "<lrm_rsc_op id=\"etcd_last_0\"";

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/fixtures/cib").join(name);
    std::fs::read_to_string(path).unwrap()
}

/// Returns the CIB `text` with changes in the element of the last start of etcd.
fn last_start(text: &str, changes: &[(&str, &str)]) -> String {
    let at = text.rfind(STARTED).unwrap();
    let end = at + text[at..].find("/>").unwrap();
    let changed = changes.iter().fold(text[at..end].to_owned(), |operation, (from, to)| {
        assert!(operation.contains(from), "{from}");
        operation.replace(from, to)
    });
    format!("{}{changed}{}", &text[..at], &text[end..])
}

/// Returns the CIB `text` in which the last operation of etcd is an `action` that ended with `code` and `status`. Its record as the last
/// failure replaces the record of the monitor.
fn failed(text: &str, action: &str, code: &str, status: &str) -> String {
    let failed = last_start(
        text,
        &[
            ("etcd_start_0", &format!("etcd_{action}_0")),
            ("operation=\"start\"", &format!("operation=\"{action}\"")),
            ("magic=\"0:0;", &format!("magic=\"{status}:{code};")),
            ("rc-code=\"0\"", &format!("rc-code=\"{code}\"")),
            ("op-status=\"0\"", &format!("op-status=\"{status}\"")),
            ("exit-reason=\"\"", "exit-reason=\"REASON\""),
        ],
    );
    let at = failed.rfind("<lrm_rsc_op id=\"etcd_monitor_5000\"").unwrap();
    let end = at + failed[at..].find("/>").unwrap() + "/>".len();
    let last = failed.rfind(STARTED).unwrap();
    let operation = &failed[last..last + failed[last..].find("/>").unwrap() + "/>".len()];
    let remembered = operation.replace("etcd_last_0", "etcd_last_failure_0");
    format!("{}{remembered}{}", &failed[..at], &failed[end..])
}

/// Returns the CIB `text` with a setting that is added before the first `before`.
fn with_setting(text: &str, before: &str, name: &str, value: &str) -> String {
    assert!(text.contains(before), "{before}");
    text.replacen(before, &format!("<nvpair id=\"added-{name}\" name=\"{name}\" value=\"{value}\"/>{before}"), 1)
}

/// Returns the CIBs of clusters in the states that the recovery guide describes.
fn clusters() -> Vec<String> {
    let healthy = fixture("two-voters.xml");
    let of_clone = "<nvpair id=\"etcd-clone-meta_attributes-interleave\"";
    let of_cluster = "<nvpair id=\"cib-bootstrap-options-dc-deadtime\"";
    let of_node = "<nvpair id=\"nodes-2-cluster_id\"";
    let started = "operation_key=\"etcd_start_0\" operation=\"start\"";
    let promoted = "operation_key=\"etcd_promote_0\" operation=\"promote\"";
    let promotable = with_setting(&healthy, of_clone, "promotable", "true");
    let fence_device = healthy.find("<lrm_resource id=\"fence-node2\"").unwrap();
    let its_end = fence_device + healthy[fence_device..].find("</lrm_resource>").unwrap() + "</lrm_resource>".len();
    let stop_failed = failed(&healthy, "stop", "1", "0");
    vec![
        fixture("peer-lost.xml"),
        fixture("peer-fenced.xml"),
        promotable.replace(started, promoted),
        promotable.replacen(started, promoted, 1),
        with_setting(&healthy, of_node, "standby", "on"),
        with_setting(&healthy, of_node, "etcd_alarm", "NOSPACE"),
        with_setting(&healthy, of_cluster, "maintenance-mode", "true"),
        healthy.replace("have-quorum=\"1\"", "have-quorum=\"0\""),
        format!("{}{}", &healthy[..fence_device], &healthy[its_end..]),
        last_start(&healthy, &[("magic=\"0:0;", "magic=\"-1:193;"), ("op-status=\"0\"", "op-status=\"-1\"")]),
        failed(&healthy, "start", "1", "0"),
        failed(&healthy, "start", "6", "0"),
        failed(&healthy, "start", "2", "0"),
        failed(&healthy, "start", "1", "2"),
        stop_failed.replace("name=\"stonith-enabled\" value=\"true\"", "name=\"stonith-enabled\" value=\"false\""),
        stop_failed,
        healthy,
    ]
}

/// Returns a text with one blank between words, and with one name for both nodes, so that two texts can be compared.
fn plain(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace("node1", "NODE").replace("node2", "NODE")
}

/// Returns the output of Pacemaker's `crm_mon` for each of these CIBs, in its brief and its full form.
fn shown(clusters: &[String]) -> String {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("cib.xml");
    let mut all = String::new();
    for cluster in clusters {
        std::fs::write(&file, cluster).unwrap();
        for more in [&[][..], &["--show-detail", "--show-node-attributes"]] {
            let mut command = Command::new("crm_mon");
            command.args(["--one-shot", "--inactive"]).args(more).env("CIB_file", &file);
            let output = command.output().unwrap_or_else(|error| panic!("crm_mon: {error}; run tests/lab/setup"));
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            all.push_str(&plain(&String::from_utf8_lossy(&output.stdout)));
            all.push('\n');
        }
    }
    all
}

#[test]
fn crm_mon_prints_the_lines_that_the_guide_has() {
    let shown = shown(&clusters());
    let lines: Vec<String> =
        guide::entries().into_iter().filter(|entry| !entry.is_ours).flat_map(|entry| entry.words).collect();
    assert!(lines.len() > 15, "{lines:?}");
    let invented: Vec<&String> = lines.iter().filter(|line| !shown.contains(&plain(line))).collect();
    assert!(invented.is_empty(), "crm_mon prints no such lines: {invented:#?}");
}
