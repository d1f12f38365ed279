//! etcd's configuration file. Every value is written as JSON, which YAML contains, so that no value can break the file.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::decide::plan::RunMode;

/// What the configuration says besides how to start.
#[derive(Clone, Debug)]
pub struct Settings {
    pub name: String,
    pub data_dir: PathBuf,
    pub own_peer_url: String,
    pub own_client_url: String,
    /// The peer's name and URL; `None` in a cluster of one.
    pub peer: Option<(String, String)>,
    pub client_port: u16,
    pub peer_port: u16,
    pub is_ipv6: bool,
    pub trusted_ca_file: PathBuf,
    pub cert_file: PathBuf,
    pub key_file: PathBuf,
    pub peer_cert_file: PathBuf,
    pub peer_key_file: PathBuf,
}

/// The line that forces a new cluster, and the one that does not.
const FORCE_KEY: &str = "force-new-cluster";

/// The configuration for a start in `mode`.
pub fn render(settings: &Settings, mode: &RunMode) -> String {
    let (initial_cluster, state) = initial_cluster(settings, mode);
    let any = if settings.is_ipv6 { "[::]" } else { "0.0.0.0" };
    let tls = |cert: &Path, key: &Path| {
        json!({
            "cert-file": cert,
            "key-file": key,
            "trusted-ca-file": settings.trusted_ca_file,
            "client-cert-auth": true,
        })
    };
    let lines: Vec<(&str, Value)> = vec![
        ("name", json!(settings.name)),
        ("data-dir", json!(settings.data_dir)),
        ("logger", json!("zap")),
        ("log-level", json!("info")),
        ("snapshot-count", json!(10_000)),
        (FORCE_KEY, json!(*mode == RunMode::ForceNewCluster)),
        ("initial-cluster", json!(initial_cluster)),
        ("initial-cluster-state", json!(state)),
        ("initial-advertise-peer-urls", json!(settings.own_peer_url)),
        ("listen-peer-urls", json!(format!("https://{any}:{}", settings.peer_port))),
        ("advertise-client-urls", json!(settings.own_client_url)),
        ("listen-client-urls", json!(format!("https://{any}:{}", settings.client_port))),
        ("client-transport-security", tls(&settings.cert_file, &settings.key_file)),
        ("peer-transport-security", tls(&settings.peer_cert_file, &settings.peer_key_file)),
    ];
    lines.iter().fold(String::new(), |text, (key, value)| text + &format!("{key}: {value}\n"))
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

/// Whether a configuration would force a new cluster at the next start.
pub fn forces_new_cluster(text: &str) -> bool {
    text.lines().any(|line| line.trim_end() == format!("{FORCE_KEY}: true"))
}

/// The configuration with the force taken out.
pub fn settled(text: &str) -> String {
    text.replace(&format!("{FORCE_KEY}: true\n"), &format!("{FORCE_KEY}: false\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings {
            name: "node1".to_owned(),
            data_dir: PathBuf::from("/var/lib/etcd"),
            own_peer_url: "https://192.0.2.1:2380".to_owned(),
            own_client_url: "https://192.0.2.1:2379".to_owned(),
            peer: Some(("node2".to_owned(), "https://192.0.2.2:2380".to_owned())),
            client_port: 2379,
            peer_port: 2380,
            is_ipv6: false,
            trusted_ca_file: PathBuf::from("/c/ca.crt"),
            cert_file: PathBuf::from("/c/etcd.crt"),
            key_file: PathBuf::from("/c/etcd.key"),
            peer_cert_file: PathBuf::from("/c/etcd.crt"),
            peer_key_file: PathBuf::from("/c/etcd.key"),
        }
    }

    #[test]
    fn a_forced_start_names_only_this_member_and_can_be_settled() {
        let text = render(&settings(), &RunMode::ForceNewCluster);
        assert!(text.contains("initial-cluster: \"node1=https://192.0.2.1:2380\"\n"));
        assert!(forces_new_cluster(&text));
        assert!(!forces_new_cluster(&settled(&text)));
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
