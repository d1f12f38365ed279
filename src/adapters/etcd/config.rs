//! etcd's configuration file. Every value is written as JSON, which is valid YAML, so that no value can break the file.

use std::net::IpAddr;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::settings::{self, Setting};
use super::version::Version;
use crate::base::json;
use crate::decide::plan::RunMode;

/// The contents of etcd's configuration file that do not depend on the [`RunMode`].
#[derive(Clone, Debug)]
pub struct Settings {
    pub name: String,
    pub data_dir: PathBuf,
    pub own_peer_url: String,
    pub own_client_url: String,
    /// The peer's member name and peer URL; `None` in a cluster of one.
    pub peer: Option<(String, String)>,
    pub client_port: u16,
    pub peer_port: u16,
    pub own_ip: IpAddr,
    pub trusted_ca_file: PathBuf,
    pub server: Pair,
    pub peer_pair: Pair,
    /// The settings from the operator or the static pod's manifest. If a name occurs twice, its first setting counts.
    pub settings: Vec<Setting>,
    pub version: Version,
    pub openshift: Option<OpenShift>,
    /// The `initial-cluster-token` of a new cluster. From the token and the member's peer URL etcd derives the ids of the cluster
    /// and its first member.
    pub new_token: String,
}

/// Paths of a certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// The settings that only OpenShift's own build of etcd has.
#[derive(Clone, Copy, Debug)]
pub struct OpenShift {
    /// The number by which a forced new cluster raises its revisions (`force-new-cluster-bump-amount`).
    pub bump: u64,
}

/// The name of etcd's configuration file.
pub const FILE: &str = "config.yaml";
/// The greatest number of bytes of etcd's configuration file that are read.
pub const LIMIT: u64 = 1024 * 1024;
/// The key in etcd's configuration file that makes it force a new cluster.
const FORCE_KEY: &str = "force-new-cluster";
const TOKEN_KEY: &str = "initial-cluster-token";
const BUMP_KEY: &str = "force-new-cluster-bump-amount";
/// The settings that apply unless the operator or the manifest sets others. With `pre-vote`, which is on by default since etcd 3.5, a
/// member that fails to win an election stays in its term. An unchanged term therefore shows a vote proxy (`crate::adapters::etcd::peer`)
/// that no other member was elected.
const DEFAULTS: &[&str] = &["logger=zap", "log-level=info", "snapshot-count=10000", "pre-vote=true"];
/// The settings of the etcd in OpenShift's static pod. They apply unless the manifest sets others.
const OPENSHIFT_DEFAULTS: &[&str] =
    &["metrics=extensive", "initial-corrupt-check=true", "max-learners=1", "listen-metrics-urls=https://0.0.0.0:9978"];

/// Returns the text of etcd's configuration file for a start in `mode`.
pub fn render(settings: &Settings, mode: &RunMode) -> String {
    let (initial_cluster, state) = initial_cluster(settings, mode);
    let tls = |pair: &Pair| {
        json!({
            "cert-file": pair.cert,
            "key-file": pair.key,
            "trusted-ca-file": settings.trusted_ca_file,
            "client-cert-auth": true,
        })
    };
    let mut lines: Vec<(String, Value)> = vec![
        ("name".to_owned(), json!(settings.name)),
        ("data-dir".to_owned(), json!(settings.data_dir)),
        (FORCE_KEY.to_owned(), json!(*mode == RunMode::ForceNewCluster)),
    ];
    if let (Some(openshift), RunMode::ForceNewCluster) = (&settings.openshift, mode) {
        lines.push((BUMP_KEY.to_owned(), json!(openshift.bump)));
    }
    let addresses = [
        ("initial-cluster", json!(initial_cluster)),
        ("initial-cluster-state", json!(state)),
        ("initial-advertise-peer-urls", json!(settings.own_peer_url)),
        ("listen-peer-urls", json!(format!("https://{}:{}", any(settings), settings.peer_port))),
        ("advertise-client-urls", json!(settings.own_client_url)),
        ("listen-client-urls", json!(client_listeners(settings))),
        ("client-transport-security", tls(&settings.server)),
        ("peer-transport-security", tls(&settings.peer_pair)),
    ];
    lines.extend(addresses.map(|(key, value)| (key.to_owned(), value)));
    if *mode == RunMode::Bootstrap {
        lines.push((TOKEN_KEY.to_owned(), json!(settings.new_token)));
    }
    lines.extend(others(settings));
    lines.iter().fold(String::new(), |text, (key, value)| text + &format!("{key}: {value}\n"))
}

fn any(settings: &Settings) -> &'static str {
    if settings.own_ip.is_ipv6() { "[::]" } else { "0.0.0.0" }
}

/// Returns the URLs on which etcd listens for clients. From etcd 3.5 on, OpenShift's etcd also listens on a local socket. etcd 3.4 does
/// not, because at its second start in a container it would fail to reuse the socket's file.
fn client_listeners(settings: &Settings) -> String {
    let network = format!("https://{}:{}", any(settings), settings.client_port);
    match (settings.openshift.filter(|_| settings.version.minor >= 5), settings.own_ip) {
        (None, _) => network,
        (Some(_), IpAddr::V4(ip)) => format!("{network},unixs://{ip}:0"),
        (Some(_), IpAddr::V6(ip)) => format!("{network},unixs://[{ip}]:0"),
    }
}

/// Returns the lines for the settings of the operator or the manifest, and for the defaults of all other settings.
fn others(settings: &Settings) -> Vec<(String, Value)> {
    let openshift = settings.openshift.map(|_| OPENSHIFT_DEFAULTS).unwrap_or_default();
    let defaults: Vec<Setting> =
        openshift.iter().chain(DEFAULTS).filter_map(|text| settings::parse(text).ok()).collect();
    let (lines, unknown) = settings::render(settings.settings.iter().chain(&defaults), settings.version);
    if !unknown.is_empty() {
        log::info!("etcd {} does not know the settings {}, which are omitted", settings.version, unknown.join(", "));
    }
    lines
}

fn initial_cluster(settings: &Settings, mode: &RunMode) -> (String, &'static str) {
    let own = (settings.name.clone(), settings.own_peer_url.clone());
    let (members, state) = match mode {
        RunMode::Bootstrap | RunMode::ForceNewCluster => (vec![own], "new"),
        RunMode::JoinAsLearner { initial_cluster } => (initial_cluster.clone(), "existing"),
        RunMode::Normally => (std::iter::once(own).chain(settings.peer.clone()).collect(), "existing"),
    };
    let members: Vec<String> = members.iter().map(|(name, url)| format!("{name}={url}")).collect();
    (members.join(","), state)
}

/// The data dir and the client ports from an etcd configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub data_dir: PathBuf,
    pub client_ports: Vec<u16>,
}

/// Returns the address of the first URL that etcd advertises to clients; `None` if it is no `https` URL with an IP address.
/// `text` is the configuration file.
pub fn address(text: &str) -> Option<IpAddr> {
    let urls = value(text, "advertise-client-urls")?;
    let (host, _) = urls.split(',').next()?.strip_prefix("https://")?.rsplit_once(':')?;
    host.trim_matches(['[', ']']).parse().ok()
}

fn value(text: &str, key: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?.trim();
    json::from_text(line).ok().or_else(|| Some(line.to_owned()))
}

/// Returns the data dir and client ports from the configuration file `text`; `None` without an absolute data dir. Configuration
/// files of the shell agent (`ocf:heartbeat:podman-etcd`) can be read, too.
pub fn place(text: &str) -> Option<Place> {
    let urls = value(text, "listen-client-urls").unwrap_or_default();
    let client_ports = urls.split(',').filter_map(|url| url.rsplit(':').next()?.trim_end_matches('/').parse().ok());
    let data_dir = PathBuf::from(value(text, "data-dir")?);
    data_dir.is_absolute().then(|| Place { data_dir, client_ports: client_ports.filter(|port| *port != 0).collect() })
}

/// Returns whether etcd would force a new cluster at its next start with the configuration file `text`.
pub fn forces_new_cluster(text: &str) -> bool {
    text.lines().any(forces)
}

/// Returns the configuration file `text` with `force-new-cluster` set to false.
pub fn settled(text: &str) -> String {
    let line = |line: &str| if forces(line) { format!("{FORCE_KEY}: false\n") } else { line.to_owned() };
    text.split_inclusive('\n').map(line).collect()
}

/// Returns whether a line of a configuration file sets `force-new-cluster` to true. Spaces at the end are ignored, because an
/// editor may have added them.
fn forces(line: &str) -> bool {
    line.trim_end() == format!("{FORCE_KEY}: true")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        let pair = |name: &str| Pair {
            cert: PathBuf::from(format!("/c/{name}.crt")),
            key: PathBuf::from(format!("/c/{name}.key")),
        };
        Settings {
            name: "node1".to_owned(),
            data_dir: PathBuf::from("/var/lib/etcd"),
            own_peer_url: "https://192.0.2.1:2380".to_owned(),
            own_client_url: "https://192.0.2.1:2379".to_owned(),
            peer: Some(("node2".to_owned(), "https://192.0.2.2:2380".to_owned())),
            client_port: 2379,
            peer_port: 2380,
            own_ip: IpAddr::from([192, 0, 2, 1]),
            trusted_ca_file: PathBuf::from("/c/ca.crt"),
            server: pair("etcd"),
            peer_pair: pair("peer"),
            settings: Vec::new(),
            version: Version { minor: 5, patch: 21 },
            openshift: None,
            new_token: "tandem-1-2".to_owned(),
        }
    }

    /// Asserts that a new cluster gets its own token. With etcd's default token, a new cluster at the same address would have the ids of
    /// the earlier cluster. A member of the new cluster would then wait until it reached the earlier cluster's log position.
    #[test]
    fn a_cluster_that_begins_has_a_token_of_its_own() {
        assert!(render(&settings(), &RunMode::Bootstrap).contains("initial-cluster-token: \"tandem-1-2\"\n"));
        for mode in [RunMode::Normally, RunMode::ForceNewCluster] {
            assert!(!render(&settings(), &mode).contains("token"));
        }
    }

    #[test]
    fn a_configuration_tells_where_its_etcd_is() {
        let openshift = Settings { openshift: Some(OpenShift { bump: 1 }), ..settings() };
        let expected = Place { data_dir: PathBuf::from("/var/lib/etcd"), client_ports: vec![2379] };
        for text in [
            render(&openshift, &RunMode::Normally),
            "data-dir: /var/lib/etcd\nlisten-client-urls: https://[::]:2379,unixs://192.0.2.1:0\n".to_owned(),
        ] {
            assert_eq!(place(&text), Some(expected.clone()), "{text}");
        }
        assert_eq!(place(""), None);
        assert_eq!(address(&render(&openshift, &RunMode::Normally)), Some(IpAddr::from([192, 0, 2, 1])));
        let six = "advertise-client-urls: https://[2001:db8::1]:2379,https://192.0.2.9:2379\n";
        assert_eq!(address(six), "2001:db8::1".parse().ok());
        assert_eq!(address("advertise-client-urls: http://node1\n"), None);
    }

    /// Asserts that the configuration has the line `force-new-cluster-bump-amount`, because OpenShift's tests search the file for that
    /// line.
    #[test]
    fn openshifts_etcd_is_told_by_how_much_to_raise_its_revisions() {
        let openshift = Settings { openshift: Some(OpenShift { bump: 10_246 }), ..settings() };
        let text = render(&openshift, &RunMode::ForceNewCluster);
        assert!(text.contains("force-new-cluster-bump-amount: 10246\n"));
        assert!(settled(&text).contains("force-new-cluster-bump-amount: 10246\n"));
        assert!(!render(&openshift, &RunMode::Normally).contains(BUMP_KEY));
        assert!(!render(&settings(), &RunMode::ForceNewCluster).contains(BUMP_KEY));
    }

    #[test]
    fn openshift_listens_as_its_static_pod_does() {
        let openshift = Settings { openshift: Some(OpenShift { bump: 1 }), ..settings() };
        let text = render(&openshift, &RunMode::Normally);
        for line in [
            "listen-client-urls: \"https://0.0.0.0:2379,unixs://192.0.2.1:0\"\n",
            "listen-metrics-urls: \"https://0.0.0.0:9978\"\n",
            "metrics: \"extensive\"\n",
            "experimental-initial-corrupt-check: true\n",
        ] {
            assert!(text.contains(line), "{line}");
        }
        assert!(!render(&settings(), &RunMode::Normally).contains("9978"));
        let old = render(&Settings { version: Version { minor: 4, patch: 23 }, ..openshift }, &RunMode::Normally);
        assert!(old.contains("listen-client-urls: \"https://0.0.0.0:2379\"\n"), "{old}");
    }

    #[test]
    fn an_ipv6_address_is_in_brackets_everywhere() {
        let ip = IpAddr::V6("2001:db8::1".parse().unwrap());
        let text =
            render(&Settings { own_ip: ip, openshift: Some(OpenShift { bump: 1 }), ..settings() }, &RunMode::Normally);
        assert!(text.contains("listen-client-urls: \"https://[::]:2379,unixs://[2001:db8::1]:0\"\n"));
        assert!(text.contains("listen-peer-urls: \"https://[::]:2380\"\n"));
    }

    #[test]
    fn what_an_operator_sets_goes_before_what_holds_otherwise() {
        let set = Settings { settings: vec![settings::parse("log-level=debug").unwrap()], ..settings() };
        let text = render(&set, &RunMode::Normally);
        assert!(text.contains("log-level: \"debug\"\n") && !text.contains("log-level: \"info\""));
    }

    #[test]
    fn a_forced_start_names_only_this_member_and_can_be_settled() {
        let text = render(&settings(), &RunMode::ForceNewCluster);
        assert!(text.contains("initial-cluster: \"node1=https://192.0.2.1:2380\"\n"));
        assert!(forces_new_cluster(&text));
        for end in ["\n", "\r\n", " \n", ""] {
            let cut = format!("name: \"node1\"\nforce-new-cluster: true{end}");
            assert!(forces_new_cluster(&cut) && !forces_new_cluster(&settled(&cut)), "{end:?}");
        }
        assert_eq!(
            settled(&text),
            render(&settings(), &RunMode::ForceNewCluster).replace(": true\ninit", ": false\ninit")
        );
    }

    #[test]
    fn a_plain_start_names_both_and_forces_nothing() {
        let text = render(&settings(), &RunMode::Normally);
        assert!(text.contains("initial-cluster: \"node1=https://192.0.2.1:2380,node2=https://192.0.2.2:2380\"\n"));
        assert!(text.contains("initial-cluster-state: \"existing\"\n"));
        assert!(!forces_new_cluster(&text));
    }
}
