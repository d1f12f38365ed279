//! The settings of etcd that an operator or a pod manifest may give: how each is named in which release's configuration
//! file, and what kind of value it takes there. etcd ignores names that it does not know without a word, so a name is
//! written only where its release knows it.

use serde_json::{Map, Value, json};

use super::duration;
use super::version::Version;

/// One setting with its value, as the configuration file takes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    key: &'static Key,
    value: Value,
}

impl Eq for Setting {}

/// A setting that etcd knows.
#[derive(Debug, PartialEq)]
struct Key {
    /// The newest name.
    name: &'static str,
    kind: Kind,
    /// The first minor release of etcd 3 that knows it, under whichever name.
    since: u32,
    form: Form,
}

/// What kind of value the configuration file takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bool,
    Integer,
    Text,
    /// Nanoseconds in the file, `1m30s` everywhere else.
    Duration,
    /// A list in the file, separated by commas everywhere else.
    List,
}

/// How it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Plain,
    /// `experimental-` in front of its name up to etcd 3.5, and gone under that name from 3.7 on.
    Experimental,
    /// `experimental-` and this name up to etcd 3.5, then a feature gate.
    Gate {
        old: &'static str,
    },
    /// An entry of `socket-options`.
    Socket(&'static str),
}

/// The minor release from which on new names and feature gates are known.
const STABLE_NAMES: u32 = 6;
const EXPERIMENTAL: &str = "experimental-";
/// The option that holds the gates, and its name in the file.
const FEATURE_GATES: &str = "feature-gates";
const SOCKET_OPTIONS: &str = "socket-options";
/// The lowest TLS version with which etcd refuses a list of cipher suites.
const TLS13: &str = "TLS1.3";

const fn key(name: &'static str, kind: Kind, since: u32) -> Key {
    Key { name, kind, since, form: Form::Plain }
}

const fn experimental(name: &'static str, kind: Kind, since: u32) -> Key {
    Key { name, kind, since, form: Form::Experimental }
}

const fn gate(name: &'static str, old: &'static str, since: u32) -> Key {
    Key { name, kind: Kind::Bool, since, form: Form::Gate { old } }
}

const fn socket(name: &'static str, entry: &'static str) -> Key {
    Key { name, kind: Kind::Bool, since: 5, form: Form::Socket(entry) }
}

/// Everything but what the agent sets itself.
const KEYS: &[Key] = &[
    key("auth-token", Kind::Text, 4),
    key("auth-token-ttl", Kind::Integer, 4),
    key("auto-compaction-mode", Kind::Text, 4),
    key("auto-compaction-retention", Kind::Text, 4),
    key("backend-batch-interval", Kind::Duration, 4),
    key("backend-batch-limit", Kind::Integer, 4),
    key("backend-bbolt-freelist-type", Kind::Text, 5),
    key("bcrypt-cost", Kind::Integer, 4),
    key("cipher-suites", Kind::List, 4),
    key("cors", Kind::Text, 4),
    key("election-timeout", Kind::Integer, 4),
    key("enable-grpc-gateway", Kind::Bool, 4),
    key("enable-log-rotation", Kind::Bool, 5),
    key("enable-pprof", Kind::Bool, 4),
    key("grpc-keepalive-interval", Kind::Duration, 4),
    key("grpc-keepalive-min-time", Kind::Duration, 4),
    key("grpc-keepalive-timeout", Kind::Duration, 4),
    key("heartbeat-interval", Kind::Integer, 4),
    key("host-whitelist", Kind::Text, 4),
    key("initial-election-tick-advance", Kind::Bool, 4),
    key("listen-client-http-urls", Kind::Text, 5),
    key("listen-metrics-urls", Kind::Text, 4),
    key("log-level", Kind::Text, 4),
    key("log-outputs", Kind::List, 4),
    key("log-rotation-config-json", Kind::Text, 5),
    key("logger", Kind::Text, 4),
    key("max-concurrent-streams", Kind::Integer, 4),
    key("max-request-bytes", Kind::Integer, 4),
    key("max-snapshots", Kind::Integer, 4),
    key("max-txn-ops", Kind::Integer, 4),
    key("max-wals", Kind::Integer, 4),
    key("metrics", Kind::Text, 4),
    key("pre-vote", Kind::Bool, 4),
    key("quota-backend-bytes", Kind::Integer, 4),
    key("snapshot-count", Kind::Integer, 4),
    key("tls-max-version", Kind::Text, 5),
    key("tls-min-version", Kind::Text, 5),
    socket("socket-reuse-address", "reuse-address"),
    socket("socket-reuse-port", "reuse-port"),
    experimental("bootstrap-defrag-threshold-megabytes", Kind::Integer, 5),
    experimental("compact-hash-check-time", Kind::Duration, 5),
    experimental("compaction-batch-limit", Kind::Integer, 4),
    experimental("compaction-sleep-interval", Kind::Duration, 5),
    experimental("corrupt-check-time", Kind::Duration, 4),
    experimental("distributed-tracing-address", Kind::Text, 5),
    experimental("distributed-tracing-instance-id", Kind::Text, 5),
    experimental("distributed-tracing-sampling-rate", Kind::Integer, 5),
    experimental("distributed-tracing-service-name", Kind::Text, 5),
    experimental("downgrade-check-time", Kind::Duration, 5),
    experimental("enable-distributed-tracing", Kind::Bool, 5),
    experimental("max-learners", Kind::Integer, 6),
    experimental("memory-mlock", Kind::Bool, 5),
    experimental("peer-skip-client-san-verification", Kind::Bool, 6),
    experimental("snapshot-catchup-entries", Kind::Integer, 6),
    experimental("warning-apply-duration", Kind::Duration, 5),
    experimental("warning-unary-request-duration", Kind::Duration, 6),
    experimental("watch-progress-notify-interval", Kind::Duration, 4),
    gate("CompactHashCheck", "compact-hash-check-enabled", 5),
    gate("InitialCorruptCheck", "initial-corrupt-check", 4),
    gate("LeaseCheckpoint", "enable-lease-checkpoint", 4),
    gate("LeaseCheckpointPersist", "enable-lease-checkpoint-persist", 4),
    gate("SetMemberLocalAddr", "set-member-localaddr", 6),
    gate("StopGRPCServiceOnDefrag", "stop-grpc-service-on-defrag", 5),
    gate("TxnModeWriteWithSharedBuffer", "txn-mode-write-with-shared-buffer", 5),
];

/// What the agent sets itself, or what would take the data out of its sight.
const OURS: &[&str] = &[
    "advertise-client-urls",
    "auto-tls",
    "cert-file",
    "client-cert-auth",
    "client-cert-file",
    "client-key-file",
    "config-file",
    "data-dir",
    "discovery",
    "force-new-cluster",
    "force-new-cluster-bump-amount",
    "initial-advertise-peer-urls",
    "initial-cluster",
    "initial-cluster-state",
    "initial-cluster-token",
    "key-file",
    "listen-client-urls",
    "listen-peer-urls",
    "name",
    "peer-auto-tls",
    "peer-cert-file",
    "peer-client-cert-auth",
    "peer-client-cert-file",
    "peer-client-key-file",
    "peer-key-file",
    "peer-trusted-ca-file",
    "strict-reconfig-check",
    "trusted-ca-file",
    "unsafe-no-fsync",
    "wal-dir",
];

/// Why a setting cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("'{0}' is not 'name=value'")]
    NoValue(String),
    #[error("etcd has no setting '{0}'")]
    Unknown(String),
    #[error("{0} is set by the agent")]
    Ours(String),
    #[error("{name}={value} is not {wanted}")]
    Value { name: String, value: String, wanted: &'static str },
}

/// Whether the agent sets `name` itself.
pub fn is_ours(name: &str) -> bool {
    OURS.contains(&name)
}

/// Reads `name=value`, named as etcd's options are, with or without `experimental-`.
pub fn parse(text: &str) -> Result<Setting, Error> {
    let (name, value) = text.split_once('=').ok_or_else(|| Error::NoValue(text.to_owned()))?;
    setting(name.trim(), value.trim())
}

/// The setting `name` with `value`, in words.
pub fn setting(name: &str, value: &str) -> Result<Setting, Error> {
    if is_ours(name) {
        return Err(Error::Ours(name.to_owned()));
    }
    let bare = name.strip_prefix(EXPERIMENTAL).unwrap_or(name);
    let named = |key: &&Key| match key.form {
        Form::Gate { old } => old == bare,
        Form::Plain => key.name == name,
        Form::Experimental | Form::Socket(_) => key.name == bare,
    };
    let key = KEYS.iter().find(named).ok_or_else(|| Error::Unknown(name.to_owned()))?;
    Ok(Setting { key, value: typed(name, value, key.kind)? })
}

/// The settings behind `feature-gates`, as in `InitialCorruptCheck=true,LeaseCheckpoint=true`.
pub fn feature_gates(text: &str) -> Vec<Result<Setting, Error>> {
    let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    let one = |entry: &str| {
        let (name, value) = entry.split_once('=').ok_or_else(|| Error::NoValue(entry.to_owned()))?;
        let is_gate = |key: &&Key| matches!(key.form, Form::Gate { .. }) && key.name == name;
        let key = KEYS.iter().find(is_gate).ok_or_else(|| Error::Unknown(name.to_owned()))?;
        Ok(Setting { key, value: typed(name, value, key.kind)? })
    };
    entries.map(one).collect()
}

/// Whether `name` is the option that holds feature gates.
pub fn holds_feature_gates(name: &str) -> bool {
    name == FEATURE_GATES
}

fn typed(name: &str, value: &str, kind: Kind) -> Result<Value, Error> {
    let wrong = |wanted| Error::Value { name: name.to_owned(), value: value.to_owned(), wanted };
    match kind {
        Kind::Text => Ok(json!(value)),
        Kind::List => Ok(json!(value.split(',').map(str::trim).filter(|item| !item.is_empty()).collect::<Vec<_>>())),
        Kind::Bool => match value {
            "true" | "1" => Ok(json!(true)),
            "false" | "0" => Ok(json!(false)),
            _ => Err(wrong("true or false")),
        },
        Kind::Integer => value.parse::<u64>().map(|number| json!(number)).map_err(|_| wrong("a whole number")),
        Kind::Duration => {
            duration::nanoseconds(value).map(|number| json!(number)).ok_or_else(|| wrong("a duration such as 200ms"))
        }
    }
}

/// The settings as lines of the configuration file of `version`. The first of several with one name counts. Answers the
/// names that this release does not know, too.
pub fn render<'a>(
    settings: impl IntoIterator<Item = &'a Setting>,
    version: Version,
) -> (Vec<(String, Value)>, Vec<&'static str>) {
    let mut seen: Vec<&Setting> = Vec::new();
    for setting in settings {
        if !seen.iter().any(|other| other.key == setting.key) {
            seen.push(setting);
        }
    }
    let only_tls13 = seen.iter().any(|setting| setting.key.name == "tls-min-version" && setting.value == json!(TLS13));
    seen.retain(|setting| !(only_tls13 && setting.key.name == "cipher-suites"));
    let (known, unknown): (Vec<&Setting>, Vec<&Setting>) =
        seen.into_iter().partition(|setting| setting.key.since <= version.minor);
    let mut lines = Vec::new();
    let (mut gates, mut socket) = (Vec::new(), Map::new());
    for Setting { key, value } in known {
        let stable = version.minor >= STABLE_NAMES;
        match key.form {
            Form::Plain => lines.push((key.name.to_owned(), value.clone())),
            Form::Experimental if stable => lines.push((key.name.to_owned(), value.clone())),
            Form::Experimental => lines.push((format!("{EXPERIMENTAL}{}", key.name), value.clone())),
            Form::Gate { .. } if stable => gates.push(format!("{}={value}", key.name)),
            Form::Gate { old } => lines.push((format!("{EXPERIMENTAL}{old}"), value.clone())),
            Form::Socket(entry) => drop(socket.insert(entry.to_owned(), value.clone())),
        }
    }
    if !gates.is_empty() {
        lines.push((FEATURE_GATES.to_owned(), json!(gates.join(","))));
    }
    if !socket.is_empty() {
        lines.push((SOCKET_OPTIONS.to_owned(), Value::Object(socket)));
    }
    (lines, unknown.into_iter().map(|setting| setting.key.name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(texts: &[&str], minor: u32) -> Vec<String> {
        let settings: Vec<Setting> = texts.iter().map(|text| parse(text).unwrap()).collect();
        render(&settings, Version { minor, patch: 0 })
            .0
            .iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .collect()
    }

    #[test]
    fn each_release_gets_the_names_that_it_knows() {
        let texts =
            ["experimental-warning-apply-duration=200ms", "experimental-initial-corrupt-check=true", "max-learners=1"];
        assert_eq!(lines(&texts, 4), ["experimental-initial-corrupt-check: true"]);
        assert_eq!(
            lines(&texts, 5),
            ["experimental-warning-apply-duration: 200000000", "experimental-initial-corrupt-check: true"]
        );
        for minor in [6, 7] {
            assert_eq!(
                lines(&texts, minor),
                ["warning-apply-duration: 200000000", "max-learners: 1", "feature-gates: \"InitialCorruptCheck=true\""]
            );
        }
    }

    #[test]
    fn socket_options_are_one_entry() {
        assert_eq!(lines(&["socket-reuse-address=true"], 5), ["socket-options: {\"reuse-address\":true}"]);
        assert!(lines(&["socket-reuse-address=true"], 4).is_empty());
    }

    #[test]
    fn the_first_of_a_name_counts_and_tls13_takes_no_cipher_suites() {
        assert_eq!(lines(&["log-level=debug", "log-level=info"], 5), ["log-level: \"debug\""]);
        assert_eq!(lines(&["cipher-suites=A,B"], 5), ["cipher-suites: [\"A\",\"B\"]"]);
        assert_eq!(lines(&["cipher-suites=A", "tls-min-version=TLS1.3"], 5), ["tls-min-version: \"TLS1.3\""]);
    }

    #[test]
    fn what_a_release_does_not_know_is_told() {
        let setting = parse("tls-min-version=TLS1.2").unwrap();
        assert_eq!(render([&setting], Version { minor: 4, patch: 23 }).1, ["tls-min-version"]);
    }
}
