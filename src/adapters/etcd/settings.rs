//! The settings of etcd that an operator or a pod manifest may give: the name in each release's configuration file, and the kind
//! of value. etcd silently ignores names that it does not know. So a name is written only where the release knows it.

mod table;
mod values;

use serde_json::{Map, Value, json};

use super::version::Version;
use table::{
    ELECTION_TIMEOUT, EXPERIMENTAL, FEATURE_GATES, Form, HEARTBEAT_INTERVAL, HEARTBEATS, KEYS, Key, MOST_HOURS, OURS,
    SOCKET_OPTIONS, STABLE_NAMES, TLS13,
};
use values::{listeners, typed};

/// The limit of etcd's database in bytes if `quota-backend-bytes` is 0 or not set.
const DEFAULT_QUOTA: u64 = 2 * 1024 * 1024 * 1024;

/// One etcd setting, with its value in the form of the configuration file.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    key: &'static Key,
    value: Value,
}

impl Eq for Setting {}

impl Setting {
    /// Returns the name that the newest etcd has for the setting.
    pub fn name(&self) -> &'static str {
        self.key.name
    }
}

/// The reason why an etcd setting is refused.
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
    /// Each setting is valid by itself, but the settings contradict each other. The text describes the contradiction and what to change.
    #[error("{0}")]
    Together(String),
}

/// Returns whether `name` is a setting that only the agent may set.
pub fn is_ours(name: &str) -> bool {
    OURS.contains(&name)
}

/// Parses `name=value`, where `name` is etcd's option. The prefix `experimental-` is optional.
pub fn parse(text: &str) -> Result<Setting, Error> {
    let (name, value) = text.split_once('=').ok_or_else(|| Error::NoValue(text.to_owned()))?;
    setting(name.trim(), value.trim())
}

/// Checks the setting `name`, and converts `value` to the form of the configuration file.
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

/// Parses the value of `feature-gates`, for example `InitialCorruptCheck=true,LeaseCheckpoint=true`, into one setting for each
/// gate.
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

/// Returns whether `name` is the etcd option that contains feature gates.
pub fn holds_feature_gates(name: &str) -> bool {
    name == FEATURE_GATES
}

/// Checks that `settings`, each valid by itself, do not contradict each other. No port may be one of `taken`, which are the names
/// and ports that are in use. If a name occurs twice, its first setting counts.
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

/// Returns the limit of etcd's database in bytes, with these settings.
pub fn quota_bytes(settings: &[Setting]) -> u64 {
    let given = settings.iter().find(|setting| setting.key.name == "quota-backend-bytes");
    given.and_then(|setting| setting.value.as_u64()).filter(|quota| *quota > 0).unwrap_or(DEFAULT_QUOTA)
}

/// Returns the names of all etcd settings that an operator may set.
pub fn names() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|key| key.name)
}

/// Returns the settings as lines for the configuration file of an etcd of `version`. Also returns the names of the settings that
/// this version does not know. If a name occurs twice, its first setting counts.
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
