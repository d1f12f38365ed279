//! etcd's own reaction to the settings that the agent accepts and to those that it refuses: each one's lowest and
//! highest value, and odd ones.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use tandem::adapters::etcd::settings::{self, Setting};
use tandem::adapters::etcd::version::Version as Release;
use tandem::os::clock;

use crate::etcd::{Place, Version, versions};
use crate::scratch;

/// The time in which an etcd with a bad configuration exits, on a busy machine. An etcd that waits for a long election
/// keeps running, but serves no client.
const LIVES: Duration = Duration::from_secs(4);

/// A setting of etcd: its name, its lowest and highest value, and a value that the agent refuses.
struct Row(&'static str, &'static str, &'static str, &'static str);

const CIPHERS: &str = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384";
const LOG: &str = "/dev/null";

const ROWS: &[Row] = &[
    Row("auth-token", "simple", "simple", "complicated"),
    Row("auth-token-ttl", "1", "1000000000", "-1"),
    Row("auto-compaction-mode", "periodic", "revision", "weekly"),
    Row("auto-compaction-retention", "0", "4294967295", "often"),
    Row("backend-batch-interval", "0", "24h", "soon"),
    Row("backend-batch-limit", "0", "2147483647", "9223372036854775808"),
    Row("backend-bbolt-freelist-type", "array", "map", "list"),
    Row("bcrypt-cost", "4", "31", "-1"),
    Row("cipher-suites", CIPHERS, "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "TLS_STRONG"),
    Row("cors", "*", "https://192.0.2.9:443,http://example.com:80", "example.com"),
    Row("election-timeout", "5", "50000", "50001"),
    Row("enable-grpc-gateway", "false", "true", "perhaps"),
    Row("enable-log-rotation", "false", "true", "perhaps"),
    Row("enable-pprof", "false", "true", "perhaps"),
    Row("grpc-keepalive-interval", "0", "24h", "soon"),
    Row("grpc-keepalive-min-time", "0", "24h", "soon"),
    Row("grpc-keepalive-timeout", "0", "24h", "soon"),
    Row("heartbeat-interval", "1", "10000", "0"),
    Row("host-whitelist", "*", "a.example,b.example", ""),
    Row("initial-election-tick-advance", "false", "true", "perhaps"),
    Row("listen-client-http-urls", "http://127.0.0.1:PORT", "http://0.0.0.0:PORT", "http://192.0.2.9:PORT"),
    Row("listen-metrics-urls", "http://127.0.0.1:PORT", "http://0.0.0.0:PORT", "http://192.0.2.9:PORT"),
    Row("log-level", "debug", "fatal", "nonsense"),
    Row("log-outputs", "stdout,stderr", LOG, "nonsense"),
    Row("log-rotation-config-json", "{}", r#"{"maxsize":100}"#, "often"),
    Row("logger", "zap", "zap", "printf"),
    Row("max-concurrent-streams", "1", "4294967295", "4294967296"),
    Row("max-request-bytes", "1", "1073741824", "-1"),
    Row("max-snapshots", "0", "4294967295", "-1"),
    Row("max-txn-ops", "1", "4294967295", "-1"),
    Row("max-wals", "0", "4294967295", "-1"),
    Row("metrics", "basic", "extensive", "many"),
    Row("pre-vote", "false", "true", "perhaps"),
    Row("quota-backend-bytes", "0", "1099511627776", "9223372036854775808"),
    Row("snapshot-count", "1", "4294967295", "-1"),
    Row("tls-max-version", "TLS1.2", "TLS1.3", "TLS1.1"),
    Row("tls-min-version", "TLS1.2", "TLS1.3", "TLS1.4"),
    Row("socket-reuse-address", "false", "true", "perhaps"),
    Row("socket-reuse-port", "false", "true", "perhaps"),
    Row("bootstrap-defrag-threshold-megabytes", "0", "4294967295", "-1"),
    Row("compact-hash-check-time", "1ns", "24h", "0"),
    Row("compaction-batch-limit", "1", "2147483647", "9223372036854775808"),
    Row("compaction-sleep-interval", "0", "24h", "soon"),
    Row("corrupt-check-time", "0", "24h", "soon"),
    Row("distributed-tracing-address", "127.0.0.1:4317", "192.0.2.9:4317", ""),
    Row("distributed-tracing-instance-id", "a", "a b", ""),
    Row("distributed-tracing-sampling-rate", "0", "1000000", "1000001"),
    Row("distributed-tracing-service-name", "a", "a b", ""),
    Row("downgrade-check-time", "0", "24h", "soon"),
    Row("enable-distributed-tracing", "false", "false", "perhaps"),
    Row("max-learners", "1", "2147483647", "0"),
    Row("memory-mlock", "false", "false", "perhaps"),
    Row("peer-skip-client-san-verification", "false", "true", "perhaps"),
    Row("snapshot-catchup-entries", "1", "4294967295", "0"),
    Row("warning-apply-duration", "0", "24h", "soon"),
    Row("warning-unary-request-duration", "0", "24h", "soon"),
    Row("watch-progress-notify-interval", "0", "24h", "soon"),
    Row("compact-hash-check-enabled", "false", "true", "perhaps"),
    Row("initial-corrupt-check", "false", "true", "perhaps"),
    Row("enable-lease-checkpoint", "false", "true", "perhaps"),
    Row("enable-lease-checkpoint-persist", "false", "true", "perhaps"),
    Row("set-member-localaddr", "false", "true", "perhaps"),
    Row("stop-grpc-service-on-defrag", "false", "true", "perhaps"),
    Row("txn-mode-write-with-shared-buffer", "false", "true", "perhaps"),
];

/// The settings for which an etcd release silently accepts the invalid value of their [`Row`]. etcd takes it for another value, or ignores
/// it. The agent refuses it.
const TAKEN_BY_ETCD: &[(&str, &str)] = &[
    ("3.4", "metrics"),
    ("3.5", "backend-bbolt-freelist-type"),
    ("3.5", "distributed-tracing-sampling-rate"),
    ("3.5", "log-rotation-config-json"),
    ("3.5", "metrics"),
];

fn release(version: &Version) -> Release {
    Release { minor: version.number.rsplit('.').next().unwrap().parse().unwrap(), patch: 0 }
}

/// Returns the lines that a configuration file of this release has for the settings. A setting that the release does
/// not know has none.
fn lines(settings: &[Setting], release: Release) -> Vec<String> {
    let (lines, _) = settings::render(settings, release);
    lines.into_iter().map(|(name, value)| format!("{name}: {value}")).collect()
}

/// Returns `value` with a free port in place of the word `PORT`.
fn with_port(value: &str) -> String {
    if !value.contains("PORT") {
        return value.to_owned();
    }
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    value.replace("PORT", &port.to_string())
}

fn parsed(name: &str, value: &str) -> Setting {
    settings::parse(&format!("{name}={}", with_port(value))).unwrap_or_else(|error| panic!("refused: {error}"))
}

/// Returns whether an etcd with `lines` in its configuration serves, or at least keeps running for [`LIVES`].
fn lives(version: &Version, root: &Path, name: &str, lines: &[String]) -> bool {
    let place = Place::new(version, root, name);
    let mut text = String::new();
    for (key, value) in place.configuration() {
        let _ = writeln!(text, "{key}: {value:?}");
    }
    for line in lines {
        let _ = writeln!(text, "{line}");
    }
    let file = root.join(format!("{name}.yaml"));
    std::fs::write(&file, text).unwrap();
    let mut etcd = place.run_with(&["--config-file", file.to_str().unwrap()]);
    let began = clock::Deadline::after(LIVES);
    while !began.has_passed() {
        if etcd.has_ended() {
            return false;
        }
        if answers(place.client_address()) {
            return true;
        }
        clock::sleep(Duration::from_millis(20));
    }
    true
}

/// Returns whether the etcd at `address` answers an HTTP request, which requires that it is ready.
fn answers(address: &str) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else { return false };
    let mut answer = [0; 12];
    stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    stream.write_all(b"GET /version HTTP/1.0\r\n\r\n").is_ok()
        && stream.read_exact(&mut answer).is_ok()
        && answer.starts_with(b"HTTP/1.")
}

#[test]
fn every_setting_has_a_row() {
    let has_row = |name: &&str| ROWS.iter().any(|Row(row, ..)| parsed_name(row) == *name);
    let missing: Vec<&str> = settings::names().filter(|name| !has_row(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

fn parsed_name(row: &str) -> String {
    let Row(name, lowest, ..) = ROWS.iter().find(|Row(name, ..)| *name == row).unwrap();
    parsed(name, lowest).name().to_owned()
}

/// Asserts that etcd accepts the lowest values of all settings together, and the highest ones. An etcd that rejects one
/// of them exits.
#[test]
fn etcd_takes_the_lowest_and_the_highest_value_that_the_agent_takes() {
    for version in versions() {
        let root = scratch();
        let lowest: Vec<Setting> = ROWS.iter().map(|Row(name, lowest, ..)| parsed(name, lowest)).collect();
        let highest: Vec<Setting> = ROWS.iter().map(|Row(name, _, highest, _)| parsed(name, highest)).collect();
        for (name, all) in [("lowest", lowest), ("highest", highest)] {
            settings::fit_together(&all, &[]).unwrap_or_else(|error| panic!("{name}: {error}"));
            let all = lines(&all, release(&version));
            if !lives(&version, root.path(), name, &all) {
                let alone = |line: &&String| !lives(&version, root.path(), "alone", &[(*line).clone()]);
                let ends: Vec<&String> = all.iter().filter(alone).collect();
                panic!("etcd {} ends at {ends:?}, or at several of {all:?}", version.number);
            }
        }
    }
}

#[test]
fn what_the_agent_refuses_etcd_ends_at_or_is_known_to_take() {
    let mut wrong = Vec::new();
    for version in versions() {
        let root = scratch();
        for Row(name, good, _, odd) in ROWS.iter().filter(|Row(.., odd)| !odd.is_empty()) {
            let odd = with_port(odd);
            assert!(settings::parse(&format!("{name}={odd}")).is_err(), "the agent takes {name}={odd}");
            let Some(line) = lines(&[parsed(name, good)], release(&version)).pop() else { continue };
            let lives = lives(&version, root.path(), name, &[with_value(&line, &odd)]);
            let may = TAKEN_BY_ETCD.contains(&(version.number, name));
            if lives != may {
                wrong.push(format!("{} {name}={odd}: {}", version.number, if lives { "lives" } else { "ends" }));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Returns a line of a configuration file with another value, without quotes if the value is a number.
fn with_value(line: &str, value: &str) -> String {
    let number = value.parse::<i128>().is_ok() || value == "true";
    let value = if number { value.to_owned() } else { format!("{value:?}") };
    let (name, old) = line.split_once(": ").unwrap();
    // An entry of a map stays in its map.
    match old.strip_prefix('{').and_then(|entry| entry.split_once(':')) {
        Some((entry, _)) => format!("{name}: {{{entry}: {value}}}"),
        None => format!("{name}: {value}"),
    }
}

/// Asserts that etcd exits with settings that the agent refuses together. Each value alone is valid.
#[test]
fn etcd_ends_at_what_does_not_fit_together() {
    let version = &versions()[1];
    let root = scratch();
    for together in [
        &["heartbeat-interval=201"][..],
        &["election-timeout=499"],
        &["tls-min-version=TLS1.3", "tls-max-version=TLS1.2"],
        &["enable-log-rotation=true"],
    ] {
        let all: Vec<Setting> = together.iter().map(|text| settings::parse(text).unwrap()).collect();
        assert!(settings::fit_together(&all, &[]).is_err(), "the agent takes {together:?}");
        assert!(!lives(version, root.path(), "together", &lines(&all, release(version))), "etcd takes {together:?}");
    }
}
