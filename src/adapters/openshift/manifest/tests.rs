use super::*;
use crate::adapters::etcd::version::Version;

const POD: &str = include_str!("../../../../tests/data/fixtures/openshift/pod.json");

fn lines(minor: u32) -> Vec<String> {
    let manifest = Manifest::parse(POD, "node1").unwrap();
    let rendered = settings::render(&manifest.settings(), Version { minor, patch: 21 });
    rendered.0.iter().map(|(name, value)| format!("{name}: {value}")).collect()
}

#[test]
fn image_certificates_and_data_dir_are_found() {
    let manifest = Manifest::parse(POD, "node1").unwrap();
    assert_eq!(manifest.image.as_deref(), Some("quay.example.com/openshift/etcd@sha256:1111"));
    assert_eq!(manifest.variable("ETCD_DATA_DIR"), Ok("/var/lib/etcd"));
    let (cert, _) = manifest.serving_pair().unwrap();
    assert_eq!(cert, Path::new(CERTS_INSIDE).join("secrets/etcd-all-certs/etcd-serving-node1.crt"));
    let peer = manifest.on_the_node(Path::new(manifest.variable("ETCDCTL_CERT").unwrap()));
    assert_eq!(peer, Path::new(CERTS_ON_THE_NODE).join("secrets/etcd-all-certs/etcd-peer-node1.crt"));
}

/// Asserts that every setting of the operator's manifest is written to etcd's configuration, under the name that the etcd release
/// knows.
#[test]
fn all_settings_of_the_manifest_are_taken() {
    let common = [
        "cipher-suites: [\"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256\",\"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256\"]",
        "election-timeout: 1000",
        "enable-pprof: true",
        "heartbeat-interval: 100",
        "listen-client-http-urls: \"https://0.0.0.0:2381\"",
        "listen-metrics-urls: \"https://0.0.0.0:9978\"",
        "log-level: \"debug\"",
        "logger: \"zap\"",
        "metrics: \"extensive\"",
        "quota-backend-bytes: 8589934592",
        "snapshot-count: 10000",
        "socket-options: {\"reuse-address\":true}",
        "tls-min-version: \"TLS1.2\"",
    ];
    let old = [
        "experimental-initial-corrupt-check: true",
        "experimental-warning-apply-duration: 200000000",
        "experimental-watch-progress-notify-interval: 5000000000",
    ];
    let new = [
        "feature-gates: \"InitialCorruptCheck=true\"",
        "max-learners: 1",
        "warning-apply-duration: 200000000",
        "watch-progress-notify-interval: 5000000000",
    ];
    let sorted = |mut lines: Vec<String>| {
        lines.sort();
        lines
    };
    let expected = |more: &[&str]| sorted(common.iter().chain(more).map(|line| (*line).to_owned()).collect());
    assert_eq!(sorted(lines(5)), expected(&old));
    assert_eq!(sorted(lines(6)), expected(&new));
    assert_eq!(sorted(lines(7)), expected(&new));
    assert!(!lines(4).iter().any(|line| line.contains("tls-min") || line.contains("socket") || line.contains("apply")));
}

#[test]
fn only_the_three_version_fields_may_differ() {
    assert!(are_alike(POD, &POD.replace("\"revision\": \"7\"", "\"revision\": \"8\"")));
    assert!(are_alike(POD, &POD.replace("\"value\": \"7\"", "\"value\": \"8\"")));
    assert!(are_alike(POD, &POD.replace("etcd-pod-7", "etcd-pod-8")));
    assert!(!are_alike(POD, &POD.replace("sha256:1111", "sha256:2222")));
    assert!(!are_alike(POD, &POD.replace("\"100\"", "\"200\"")));
    assert!(!are_alike(POD, "{"));
}

#[test]
fn what_is_wrong_is_said_in_a_few_words() {
    for (text, words) in [
        ("kind: Pod", "is not JSON"),
        ("{}", "has no container 'etcd'"),
        ("{\"spec\":{\"containers\":[{\"name\":\"etcdctl\"}]}}", "has no container 'etcd'"),
    ] {
        assert!(Manifest::parse(text, "n").unwrap_err().to_string().contains(words), "{text}");
    }
    let bare = Manifest::parse("{\"spec\":{\"containers\":[{\"name\":\"etcd\"}]}}", "n").unwrap();
    assert_eq!(bare.image, None);
    assert_eq!(bare.variable("ETCDCTL_CERT").unwrap_err().to_string(), "has no ETCDCTL_CERT");
}
