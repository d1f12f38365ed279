//! The table of etcd's settings that the agent does not set itself: names, kinds and releases.

/// A setting of etcd that an operator may set.
#[derive(Debug, PartialEq)]
pub(super) struct Key {
    /// The name that the newest etcd has for the setting.
    pub(super) name: &'static str,
    pub(super) kind: ValueKind,
    /// The first minor release of etcd 3 that knows the setting, possibly under an earlier name.
    pub(super) since: u32,
    pub(super) form: Form,
}

/// The kind of a setting's value. Values are checked as strictly as etcd does, because etcd exits at a value that it cannot use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    Bool,
    /// A whole number, with the least and the greatest allowed one.
    Integer(u64, u64),
    Text,
    OneOf(&'static [&'static str]),
    /// The value of `auth-token`: `simple`, or `jwt` with options.
    AuthToken,
    /// A duration: nanoseconds in the configuration file, and text such as `1m30s` everywhere else. The field is the least
    /// duration in nanoseconds.
    Duration(u64),
    /// The history that compaction retains: a duration, or a number of hours or revisions.
    Retention,
    /// TLS cipher suites: a list in the configuration file, and comma-separated text everywhere else.
    CipherSuites,
    LogOutputs,
    Json,
    /// The web origins from which browsers may send requests (`cors`).
    Origins,
    /// URLs to listen on, with addresses that exist on every node.
    Listen,
}

/// The form in which a setting is written to etcd's configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Plain,
    /// The name, with the prefix `experimental-` up to etcd 3.5. etcd 3.7 and later do not know the name with the prefix.
    Experimental,
    /// Up to etcd 3.5, the name `experimental-` followed by `old`. From etcd 3.6 on, a feature gate.
    Gate {
        old: &'static str,
    },
    /// An entry of the map `socket-options`, with this name.
    Socket(&'static str),
}

/// The minor release of etcd 3 from which experimental settings have names without a prefix, or are feature gates.
pub(super) const STABLE_NAMES: u32 = 6;
pub(super) const EXPERIMENTAL: &str = "experimental-";
/// The name of the option that contains the feature gates.
pub(super) const FEATURE_GATES: &str = "feature-gates";
pub(super) const SOCKET_OPTIONS: &str = "socket-options";
/// The value of `tls-min-version` with which etcd refuses a list of cipher suites.
pub(super) const TLS13: &str = "TLS1.3";
const TLS_VERSIONS: &[&str] = &["TLS1.2", TLS13];
/// The least ratio of `election-timeout` to `heartbeat-interval`.
pub(super) const HEARTBEATS: u64 = 5;
const LONGEST_ELECTION: u64 = 50_000;
/// etcd's default of `heartbeat-interval`, in milliseconds.
pub(super) const HEARTBEAT_INTERVAL: u64 = 100;
pub(super) const ELECTION_TIMEOUT: u64 = 1_000;
/// The greatest number of hours in `auto-compaction-retention` that etcd can convert to a duration.
pub(super) const MOST_HOURS: u64 = 2_562_047;
const INT32: u64 = i32::MAX as u64;
pub(super) const UINT32: u64 = u32::MAX as u64;
/// The names of the TLS cipher suites that etcd knows, which are Go's.
pub(super) const CIPHER_SUITES: &[&str] = &[
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
/// The values of `log-outputs` that are not paths of files.
pub(super) const LOG_STREAMS: &[&str] = &["stdout", "stderr", "systemd/journal"];

const fn key(name: &'static str, kind: ValueKind, since: u32) -> Key {
    Key { name, kind, since, form: Form::Plain }
}

const fn experimental(name: &'static str, kind: ValueKind, since: u32) -> Key {
    Key { name, kind, since, form: Form::Experimental }
}

const fn integer(name: &'static str, least: u64, most: u64) -> Key {
    key(name, ValueKind::Integer(least, most), 4)
}

const fn gate(name: &'static str, old: &'static str, since: u32) -> Key {
    Key { name, kind: ValueKind::Bool, since, form: Form::Gate { old } }
}

const fn socket(name: &'static str, entry: &'static str) -> Key {
    Key { name, kind: ValueKind::Bool, since: 5, form: Form::Socket(entry) }
}

/// All settings that an operator may set, because the agent does not set them itself.
pub(super) const KEYS: &[Key] = &[
    key("auth-token", ValueKind::AuthToken, 4),
    integer("auth-token-ttl", 1, 1_000_000_000),
    key("auto-compaction-mode", ValueKind::OneOf(&["periodic", "revision"]), 4),
    key("auto-compaction-retention", ValueKind::Retention, 4),
    key("backend-batch-interval", ValueKind::Duration(0), 4),
    integer("backend-batch-limit", 0, INT32),
    key("backend-bbolt-freelist-type", ValueKind::OneOf(&["array", "map"]), 5),
    integer("bcrypt-cost", 4, 31),
    key("cipher-suites", ValueKind::CipherSuites, 4),
    key("cors", ValueKind::Origins, 4),
    integer("election-timeout", 5, LONGEST_ELECTION),
    key("enable-grpc-gateway", ValueKind::Bool, 4),
    key("enable-log-rotation", ValueKind::Bool, 5),
    key("enable-pprof", ValueKind::Bool, 4),
    key("grpc-keepalive-interval", ValueKind::Duration(0), 4),
    key("grpc-keepalive-min-time", ValueKind::Duration(0), 4),
    key("grpc-keepalive-timeout", ValueKind::Duration(0), 4),
    integer("heartbeat-interval", 1, LONGEST_ELECTION / HEARTBEATS),
    key("host-whitelist", ValueKind::Text, 4),
    key("initial-election-tick-advance", ValueKind::Bool, 4),
    key("listen-client-http-urls", ValueKind::Listen, 5),
    key("listen-metrics-urls", ValueKind::Listen, 4),
    key("log-level", ValueKind::OneOf(&["debug", "info", "warn", "error", "panic", "fatal"]), 4),
    key("log-outputs", ValueKind::LogOutputs, 4),
    key("log-rotation-config-json", ValueKind::Json, 5),
    key("logger", ValueKind::OneOf(&["zap"]), 4),
    integer("max-concurrent-streams", 1, UINT32),
    integer("max-request-bytes", 1, 1 << 30),
    integer("max-snapshots", 0, UINT32),
    integer("max-txn-ops", 1, UINT32),
    integer("max-wals", 0, UINT32),
    key("metrics", ValueKind::OneOf(&["basic", "extensive"]), 4),
    key("pre-vote", ValueKind::Bool, 4),
    integer("quota-backend-bytes", 0, 1 << 40),
    integer("snapshot-count", 1, UINT32),
    key("tls-max-version", ValueKind::OneOf(TLS_VERSIONS), 5),
    key("tls-min-version", ValueKind::OneOf(TLS_VERSIONS), 5),
    socket("socket-reuse-address", "reuse-address"),
    socket("socket-reuse-port", "reuse-port"),
    experimental("bootstrap-defrag-threshold-megabytes", ValueKind::Integer(0, UINT32), 5),
    experimental("compact-hash-check-time", ValueKind::Duration(1), 5),
    experimental("compaction-batch-limit", ValueKind::Integer(1, INT32), 4),
    experimental("compaction-sleep-interval", ValueKind::Duration(0), 5),
    experimental("corrupt-check-time", ValueKind::Duration(0), 4),
    experimental("distributed-tracing-address", ValueKind::Text, 5),
    experimental("distributed-tracing-instance-id", ValueKind::Text, 5),
    experimental("distributed-tracing-sampling-rate", ValueKind::Integer(0, 1_000_000), 5),
    experimental("distributed-tracing-service-name", ValueKind::Text, 5),
    experimental("downgrade-check-time", ValueKind::Duration(0), 5),
    experimental("enable-distributed-tracing", ValueKind::Bool, 5),
    experimental("max-learners", ValueKind::Integer(1, INT32), 6),
    experimental("memory-mlock", ValueKind::Bool, 5),
    experimental("peer-skip-client-san-verification", ValueKind::Bool, 6),
    experimental("snapshot-catchup-entries", ValueKind::Integer(1, UINT32), 6),
    experimental("warning-apply-duration", ValueKind::Duration(0), 5),
    experimental("warning-unary-request-duration", ValueKind::Duration(0), 6),
    experimental("watch-progress-notify-interval", ValueKind::Duration(0), 4),
    gate("CompactHashCheck", "compact-hash-check-enabled", 5),
    gate("InitialCorruptCheck", "initial-corrupt-check", 4),
    gate("LeaseCheckpoint", "enable-lease-checkpoint", 4),
    gate("LeaseCheckpointPersist", "enable-lease-checkpoint-persist", 4),
    gate("SetMemberLocalAddr", "set-member-localaddr", 6),
    gate("StopGRPCServiceOnDefrag", "stop-grpc-service-on-defrag", 5),
    gate("TxnModeWriteWithSharedBuffer", "txn-mode-write-with-shared-buffer", 5),
];

/// The settings that an operator may not set. The agent sets them itself, or they would put the data where the agent does not
/// find it.
pub(super) const OURS: &[&str] = &[
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
