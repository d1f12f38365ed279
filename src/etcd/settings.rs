//! The settings of etcd that an operator or a pod manifest may give: how each is named in which release's configuration
//! file, and what kind of value it takes there. etcd ignores names that it does not know without a word, so a name is
//! written only where its release knows it.

use std::net::SocketAddr;

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

impl Setting {
    /// The newest name.
    pub fn name(&self) -> &'static str {
        self.key.name
    }
}

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

/// What kind of value the configuration file takes, as narrow as etcd is: it ends at a value that it cannot use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bool,
    /// From the least to the most.
    Integer(u64, u64),
    Text,
    OneOf(&'static [&'static str]),
    /// `simple`, or `jwt` with its options.
    AuthToken,
    /// Nanoseconds in the file, `1m30s` everywhere else; the least of them.
    Duration(u64),
    /// A duration, or a number of hours or revisions.
    Retention,
    /// A list in the file, separated by commas everywhere else.
    CipherSuites,
    LogOutputs,
    Json,
    /// Where browsers may come from.
    Origins,
    /// Addresses that every node has.
    Listen,
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
const TLS_VERSIONS: &[&str] = &["TLS1.2", TLS13];
/// How many heartbeats an election has to wait for at least, and how many milliseconds at most.
const HEARTBEATS: u64 = 5;
const LONGEST_ELECTION: u64 = 50_000;
/// What holds where nobody sets them, in milliseconds.
const HEARTBEAT_INTERVAL: u64 = 100;
const ELECTION_TIMEOUT: u64 = 1_000;
/// A number of hours that still is a duration to etcd.
const MOST_HOURS: u64 = 2_562_047;
const INT32: u64 = i32::MAX as u64;
const UINT32: u64 = u32::MAX as u64;
/// Go's names for them.
const CIPHER_SUITES: &[&str] = &[
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_RSA_WITH_RC4_128_SHA",
];
/// Where logs go besides files.
const LOG_STREAMS: &[&str] = &["stdout", "stderr", "systemd/journal"];

const fn key(name: &'static str, kind: Kind, since: u32) -> Key {
    Key { name, kind, since, form: Form::Plain }
}

const fn experimental(name: &'static str, kind: Kind, since: u32) -> Key {
    Key { name, kind, since, form: Form::Experimental }
}

const fn integer(name: &'static str, least: u64, most: u64) -> Key {
    key(name, Kind::Integer(least, most), 4)
}

const fn gate(name: &'static str, old: &'static str, since: u32) -> Key {
    Key { name, kind: Kind::Bool, since, form: Form::Gate { old } }
}

const fn socket(name: &'static str, entry: &'static str) -> Key {
    Key { name, kind: Kind::Bool, since: 5, form: Form::Socket(entry) }
}

/// Everything but what the agent sets itself.
const KEYS: &[Key] = &[
    key("auth-token", Kind::AuthToken, 4),
    integer("auth-token-ttl", 1, 1_000_000_000),
    key("auto-compaction-mode", Kind::OneOf(&["periodic", "revision"]), 4),
    key("auto-compaction-retention", Kind::Retention, 4),
    key("backend-batch-interval", Kind::Duration(0), 4),
    integer("backend-batch-limit", 0, INT32),
    key("backend-bbolt-freelist-type", Kind::OneOf(&["array", "map"]), 5),
    integer("bcrypt-cost", 4, 31),
    key("cipher-suites", Kind::CipherSuites, 4),
    key("cors", Kind::Origins, 4),
    integer("election-timeout", 5, LONGEST_ELECTION),
    key("enable-grpc-gateway", Kind::Bool, 4),
    key("enable-log-rotation", Kind::Bool, 5),
    key("enable-pprof", Kind::Bool, 4),
    key("grpc-keepalive-interval", Kind::Duration(0), 4),
    key("grpc-keepalive-min-time", Kind::Duration(0), 4),
    key("grpc-keepalive-timeout", Kind::Duration(0), 4),
    integer("heartbeat-interval", 1, LONGEST_ELECTION / HEARTBEATS),
    key("host-whitelist", Kind::Text, 4),
    key("initial-election-tick-advance", Kind::Bool, 4),
    key("listen-client-http-urls", Kind::Listen, 5),
    key("listen-metrics-urls", Kind::Listen, 4),
    key("log-level", Kind::OneOf(&["debug", "info", "warn", "error", "panic", "fatal"]), 4),
    key("log-outputs", Kind::LogOutputs, 4),
    key("log-rotation-config-json", Kind::Json, 5),
    key("logger", Kind::OneOf(&["zap"]), 4),
    integer("max-concurrent-streams", 1, UINT32),
    integer("max-request-bytes", 1, 1 << 30),
    integer("max-snapshots", 0, UINT32),
    integer("max-txn-ops", 1, UINT32),
    integer("max-wals", 0, UINT32),
    key("metrics", Kind::OneOf(&["basic", "extensive"]), 4),
    key("pre-vote", Kind::Bool, 4),
    integer("quota-backend-bytes", 0, 1 << 40),
    integer("snapshot-count", 1, UINT32),
    key("tls-max-version", Kind::OneOf(TLS_VERSIONS), 5),
    key("tls-min-version", Kind::OneOf(TLS_VERSIONS), 5),
    socket("socket-reuse-address", "reuse-address"),
    socket("socket-reuse-port", "reuse-port"),
    experimental("bootstrap-defrag-threshold-megabytes", Kind::Integer(0, UINT32), 5),
    experimental("compact-hash-check-time", Kind::Duration(1), 5),
    experimental("compaction-batch-limit", Kind::Integer(1, INT32), 4),
    experimental("compaction-sleep-interval", Kind::Duration(0), 5),
    experimental("corrupt-check-time", Kind::Duration(0), 4),
    experimental("distributed-tracing-address", Kind::Text, 5),
    experimental("distributed-tracing-instance-id", Kind::Text, 5),
    experimental("distributed-tracing-sampling-rate", Kind::Integer(0, 1_000_000), 5),
    experimental("distributed-tracing-service-name", Kind::Text, 5),
    experimental("downgrade-check-time", Kind::Duration(0), 5),
    experimental("enable-distributed-tracing", Kind::Bool, 5),
    experimental("max-learners", Kind::Integer(1, INT32), 6),
    experimental("memory-mlock", Kind::Bool, 5),
    experimental("peer-skip-client-san-verification", Kind::Bool, 6),
    experimental("snapshot-catchup-entries", Kind::Integer(1, UINT32), 6),
    experimental("warning-apply-duration", Kind::Duration(0), 5),
    experimental("warning-unary-request-duration", Kind::Duration(0), 6),
    experimental("watch-progress-notify-interval", Kind::Duration(0), 4),
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
    Value { name: String, value: String, wanted: String },
    /// Each is one, but not beside the others.
    #[error("{0}")]
    Together(String),
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
    let checked = match kind {
        Kind::Bool => yes_or_no(value),
        Kind::Integer(least, most) => {
            value.parse::<u64>().ok().filter(|number| (least..=most).contains(number)).map(|number| json!(number))
        }
        Kind::Duration(least) => {
            duration::nanoseconds(value).filter(|number| *number >= least).map(|number| json!(number))
        }
        Kind::LogOutputs => Some(items(value)).filter(|items| are_log_outputs(items)).map(|items| json!(items)),
        Kind::CipherSuites => Some(items(value)).filter(|items| are_cipher_suites(items)).map(|items| json!(items)),
        Kind::Text => Some(json!(value)),
        Kind::OneOf(choices) => choices.contains(&value).then(|| json!(value)),
        Kind::AuthToken => is_auth_token(value).then(|| json!(value)),
        Kind::Retention => is_retention(value).then(|| json!(value)),
        Kind::Json => is_json_object(value).then(|| json!(value)),
        Kind::Origins => are_origins(value).then(|| json!(value)),
        Kind::Listen => listeners(value).is_some().then(|| json!(value)),
    };
    checked.ok_or_else(|| Error::Value { name: name.to_owned(), value: value.to_owned(), wanted: wanted(kind) })
}

/// What a value of this kind is, in words.
fn wanted(kind: Kind) -> String {
    let words = match kind {
        Kind::Bool => "true or false",
        Kind::Integer(least, most) => return format!("a whole number from {least} to {most}"),
        Kind::Duration(_) => "a duration such as 200ms",
        Kind::LogOutputs => "stdout, stderr or a path",
        Kind::CipherSuites => "a list such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        Kind::Text => "a text",
        Kind::OneOf([choice]) => choice,
        Kind::OneOf([first @ .., last]) => return format!("{} or {last}", first.join(", ")),
        Kind::OneOf([]) => "known",
        Kind::AuthToken => "simple or jwt,sign-method=...",
        Kind::Retention => "a duration such as 1h, or a number",
        Kind::Json => "a JSON object",
        Kind::Origins => "a list such as https://192.0.2.9:443, or *",
        Kind::Listen => "on each node: write http://0.0.0.0:PORT or 127.0.0.1:PORT",
    };
    words.to_owned()
}

fn yes_or_no(value: &str) -> Option<Value> {
    match value {
        "true" | "1" => Some(json!(true)),
        "false" | "0" => Some(json!(false)),
        _ => None,
    }
}

fn items(value: &str) -> Vec<&str> {
    value.split(',').map(str::trim).filter(|item| !item.is_empty()).collect()
}

/// `default` cannot stand beside others.
fn are_log_outputs(outputs: &[&str]) -> bool {
    let is_output = |output: &&str| LOG_STREAMS.contains(output) || output.starts_with('/');
    outputs == ["default"] || (!outputs.is_empty() && outputs.iter().all(is_output))
}

fn are_cipher_suites(names: &[&str]) -> bool {
    !names.is_empty() && names.iter().all(|name| CIPHER_SUITES.contains(name))
}

fn is_auth_token(value: &str) -> bool {
    value == "simple" || value.strip_prefix("jwt,").is_some_and(|options| options.contains("sign-method="))
}

fn is_retention(value: &str) -> bool {
    value.parse::<u64>().is_ok_and(|number| number <= UINT32) || duration::nanoseconds(value).is_some()
}

fn is_json_object(value: &str) -> bool {
    serde_json::from_str::<Map<String, Value>>(value).is_ok()
}

/// URLs of a scheme, a host and a port, and nothing else.
fn are_origins(value: &str) -> bool {
    let is_origin = |url: &&str| {
        let address = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).unwrap_or_default();
        let (host, port) = address.rsplit_once(':').unwrap_or_default();
        !host.is_empty() && !address.contains(['/', '@', ' ']) && port.parse::<u16>().is_ok()
    };
    value == "*" || (!items(value).is_empty() && items(value).iter().all(is_origin))
}

/// The ports of URLs that every node can listen on: of its own loopback or of all of its addresses. Both nodes have one
/// configuration, so that another address would be one's alone, and the other's etcd would end.
fn listeners(value: &str) -> Option<Vec<u16>> {
    let port = |url: &&str| {
        let address = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
        let address: SocketAddr = address.replacen("localhost:", "127.0.0.1:", 1).parse().ok()?;
        let is_everywhere = address.ip().is_unspecified() || address.ip().is_loopback();
        (is_everywhere && address.port() != 0).then_some(address.port())
    };
    let urls = items(value);
    urls.iter().map(port).collect::<Option<Vec<u16>>>().filter(|ports| !ports.is_empty())
}

/// What holds of `settings`, each of which is one, beside each other and beside the ports that are taken, each with the
/// name of what takes it. The first of a name counts.
pub fn fit_together(settings: &[Setting], taken: &[(&'static str, u16)]) -> Result<(), Error> {
    let value = |name: &str| settings.iter().find(|setting| setting.key.name == name).map(|setting| &setting.value);
    let number = |name: &str, default: u64| value(name).and_then(Value::as_u64).unwrap_or(default);
    let text = |name: &str| value(name).and_then(Value::as_str).unwrap_or_default();
    let heartbeat = number("heartbeat-interval", HEARTBEAT_INTERVAL);
    let election = number("election-timeout", ELECTION_TIMEOUT);
    if election < HEARTBEATS * heartbeat {
        return Err(Error::Together(format!(
            "election-timeout={election} is less than 5 times heartbeat-interval={heartbeat}: give {} or more",
            HEARTBEATS * heartbeat
        )));
    }
    if text("tls-min-version") == TLS13 && text("tls-max-version") == "TLS1.2" {
        return Err(Error::Together(
            "tls-max-version=TLS1.2 is below tls-min-version=TLS1.3: leave one out".to_owned(),
        ));
    }
    let hours = text("auto-compaction-retention").parse().unwrap_or(0);
    if text("auto-compaction-mode") != "revision" && hours > MOST_HOURS {
        return Err(Error::Together(format!(
            "auto-compaction-retention={hours} is in hours: give at most {MOST_HOURS}, or auto-compaction-mode=revision"
        )));
    }
    let is_file = |output: &&Value| output.as_str().is_some_and(|output| output.starts_with('/'));
    let outputs = value("log-outputs").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if value("enable-log-rotation") == Some(&json!(true)) && outputs.iter().filter(is_file).count() != 1 {
        return Err(Error::Together(
            "enable-log-rotation needs one path in log-outputs: give it, or neither".to_owned(),
        ));
    }
    ports_differ(settings, taken)
}

fn ports_differ(settings: &[Setting], taken: &[(&'static str, u16)]) -> Result<(), Error> {
    let mut taken = taken.to_vec();
    for name in ["listen-metrics-urls", "listen-client-http-urls"] {
        let setting = settings.iter().find(|setting| setting.key.name == name);
        let urls = setting.and_then(|setting| setting.value.as_str()).unwrap_or_default();
        for port in listeners(urls).unwrap_or_default() {
            if let Some((other, _)) = taken.iter().find(|(_, known)| *known == port) {
                return Err(Error::Together(format!("{name} and {other} both have port {port}: give it another one")));
            }
            taken.push((name, port));
        }
    }
    Ok(())
}

/// The names of all settings.
pub fn names() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|key| key.name)
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
        assert_eq!(
            lines(&["cipher-suites=TLS_AES_128_GCM_SHA256,TLS_RSA_WITH_RC4_128_SHA"], 5),
            ["cipher-suites: [\"TLS_AES_128_GCM_SHA256\",\"TLS_RSA_WITH_RC4_128_SHA\"]"]
        );
        assert_eq!(
            lines(&["cipher-suites=TLS_AES_128_GCM_SHA256", "tls-min-version=TLS1.3"], 5),
            ["tls-min-version: \"TLS1.3\""]
        );
    }

    #[test]
    fn what_a_release_does_not_know_is_told() {
        let setting = parse("tls-min-version=TLS1.2").unwrap();
        assert_eq!(render([&setting], Version { minor: 4, patch: 23 }).1, ["tls-min-version"]);
    }
}
