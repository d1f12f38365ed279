//! Tests of each refusal, from the example with one fault.

use std::net::TcpListener;

use super::*;
use crate::adapters::kubernetes::kubeconfig;
use crate::adapters::kubernetes::nodes::stand_in::StandIn;

const PLACE: &str = "/etc/tandem/fencing-agent.toml";
/// The DaemonSet that the packages install. Its ConfigMap has a configuration.
const DAEMON_SET: &str = include_str!("../../../metadata/kubernetes/fencing-agent.yaml");

fn read(text: &str) -> Result<Config, String> {
    read_in(text, Environment::default())
}

fn read_in(text: &str, environment: Environment) -> Result<Config, String> {
    let members = |_: &Path| addresses(&toml::from_str("a = '192.0.2.1'\nb = ['192.0.2.2']\nc = '192.0.2.3'").unwrap());
    Raw::of(text, Path::new(PLACE))
        .and_then(|raw| Config::of(raw, Path::new(PLACE), environment, (members, Kubernetes::first_list)))
        .map_err(|why| why.to_string())
}

/// Reads the example configuration after replacing `old` by `new`. The error is the text of the refusal.
fn with(old: &str, new: &str) -> Result<Config, String> {
    assert!(EXAMPLE.contains(old), "{old}");
    read(&EXAMPLE.replacen(old, new, 1))
}

#[test]
fn the_example_is_the_defaults() {
    let example = read(EXAMPLE).unwrap();
    let least = "node = 'node1'\ngroup = 'workers'\n[members]\nnode1='192.0.2.1'\nnode2='192.0.2.2'\nnode3='192.0.2.3'";
    assert_eq!(read(least).unwrap(), example);
    assert_eq!((example.quorum(), example.port), (2, 7946));
    assert_eq!(example.own_addresses(), ["192.0.2.1:7946".parse().unwrap()]);
    assert_eq!((example.watchdog.timeout.as_secs(), example.watchdog.interval.as_secs()), (15, 5));
}

#[test]
fn each_commented_key_of_the_example_is_one() {
    for line in ["# quorum = 2", "# gossip = ", "# probe = ", "# suspicion = ", "# window = ", "# group = \"cilium\""] {
        with(line, &line[2..]).unwrap();
    }
    let two = EXAMPLE.replace("[members]\nnode1 = \"192.0.2.1\"\nnode2 = \"192.0.2.2\"\nnode3 = \"192.0.2.3\"\n", "");
    let two = two.replace("# members_file", "members_file").replace("node = \"node1\"", "node = \"a\"");
    assert_eq!(read(&two).unwrap().members.len(), 3);
}

#[test]
fn the_environment_names_what_the_file_does_not() {
    let environment = || Environment { node: Some("node2".to_owned()), group: Some("others".to_owned()), pod: None };
    let bare = EXAMPLE.replace("node = \"node1\"", "").replace("group = \"workers\"", "");
    let config = read_in(&bare, environment()).unwrap();
    assert_eq!((config.node.as_str(), config.group.as_str()), ("node2", "others"));
    assert_eq!(read_in(EXAMPLE, environment()).unwrap().node, "node1");
    assert!(read(&bare).unwrap_err().contains("'node = \"NAME\"'"));
    assert!(with("group = \"workers\"", "").unwrap_err().contains("'group = \"NAME\"'"));
}

#[test]
fn the_configuration_in_the_daemon_set_is_accepted() {
    let (_, block) = DAEMON_SET.split_once("\n  fencing-agent.toml: |\n").unwrap();
    let lines: Vec<&str> = block.lines().map_while(|line| line.strip_prefix("    ")).collect();
    let environment = Environment { node: Some("node1".to_owned()), group: Some("workers".to_owned()), pod: None };
    let members = read(EXAMPLE).unwrap().members;
    let lists = (|_: &Path| Ok(Members::new()), |_: &Kubernetes| Ok(members.clone()));
    let raw = Raw::of(&lines.join("\n"), Path::new(PLACE)).unwrap();
    let config = Config::of(raw, Path::new(PLACE), environment, lists).unwrap();
    assert_eq!((config.on_quorum_loss, config.tie_breaker), (OnQuorumLoss::Watchdog, TieBreaker::Api));
    // The DaemonSet mounts the secret there.
    assert!(config.key_file == Path::new("/key/key") && DAEMON_SET.contains("mountPath: /key\n"));
    assert_eq!(config.kubernetes.unwrap().label, "node.deckhouse.io/group");
}

#[test]
fn what_is_not_known_is_refused_with_its_line() {
    for (old, new) in [
        ("port = 7946", "prot = 7946"),
        ("timeout = \"15s\"", "time_out = \"15s\""),
        ("lifeguard = true", "lifegard = true"),
        ("socket = ", "sock = "),
        ("networks = \"any\"", "networks = \"some\""),
        ("port = 7946", "port = 79460"),
    ] {
        let why = with(old, new).unwrap_err();
        let line = EXAMPLE.lines().position(|line| line.starts_with(old)).unwrap() + 1;
        assert!(why.starts_with(&format!("{PLACE}, line {line}: ")), "{why}");
        assert!(why.ends_with(": 'fencing-agent example' shows each key") && !why.contains('\n'), "{why}");
    }
}

#[test]
fn each_refusal_names_what_to_type() {
    for (old, new, typed) in [
        ("node3 = \"192.0.2.3\"\n", "", "'on_quorum_loss = \"notify\"'"),
        ("# quorum = 2", "quorum = 1", "'quorum = 2' or more"),
        ("# quorum = 2", "quorum = 4", "more than all 3 members"),
        ("tie_breaker = \"none\"", "tie_breaker = \"api\"", "'tie_breaker = \"none\"'"),
        ("node = \"node1\"", "node = \"node9\"", "type one of node1, node2, node3 as 'node'"),
        ("node3 = \"192.0.2.3\"", "node3 = \"host3\"", "such as '192.0.2.1'"),
        ("node3 = \"192.0.2.3\"", "node3 = \"0.0.0.0\"", "such as '192.0.2.1'"),
        ("node3 = \"192.0.2.3\"", "node3 = \"192.0.2.1\"", "of node1 and of node3: type each address once"),
        ("node3 = \"192.0.2.3\"", "node3 = [\"192.0.2.3\", \"198.51.100.3\"]", "has 2 addresses: type 1, one for each"),
        ("node3 = \"192.0.2.3\"", "\"node 3\" = \"192.0.2.3\"", "'node 3' is no name"),
        ("interval = \"5s\"", "interval = \"8s\"", "'timeout = \"16s\"' or more"),
        ("timeout = \"15s\"", "timeout = \"15500ms\"", "type whole seconds"),
        ("interval = \"5s\"", "interval = \"0\"", "watchdog.interval is 0: type a duration"),
        ("# window = \"3s\"", "window = \"0s\"", "timing.window is 0: type a duration"),
        ("# window = \"3s\"", "window = \"900ms\"", "'window = \"1s\"' or more"),
        ("# window = \"3s\"", "window = \"soon\"", "timing.window: 'soon' is no duration"),
        ("# suspicion = [\"1s\", \"2s\"]", "suspicion = [\"2s\", \"1s\"]", "'suspicion = [\"1s\", \"2s\"]'"),
        ("port = 7946", "port = 0", "'port = 7946'"),
        ("# members_file", "members_file", "delete one of them"),
        ("[grpc]", "[kubernetes]\n[grpc]", "delete one of them"),
        ("[grpc]", "[kubernetes]\napi_timeout = '0'\n[grpc]", "kubernetes.api_timeout is 0: type a duration"),
    ] {
        let why = with(old, new).unwrap_err();
        assert!(why.contains(typed), "{why}");
    }
    assert!(read("node = 'a'\ngroup = 'b'").unwrap_err().contains("list them under [members]"));
}

#[test]
fn two_members_may_notify_and_need_no_watchdog() {
    let two = EXAMPLE.replace("node3 = \"192.0.2.3\"\n", "").replace("\"watchdog\"\n#", "\"notify\"\n#");
    assert_eq!(read(&two).unwrap().on_quorum_loss, OnQuorumLoss::Notify);
}

#[test]
fn a_rewritten_list_has_to_fit_as_well() {
    let config = read(EXAMPLE).unwrap();
    let mut members = config.members.clone();
    members.insert("node4".to_owned(), vec!["192.0.2.4".parse().unwrap()]);
    assert_eq!(config.with_members(members.clone()).unwrap().quorum(), 3);
    members.insert("node1".to_owned(), vec!["192.0.2.9".parse().unwrap()]);
    let why = config.with_members(members.clone()).unwrap_err().to_string();
    assert!(why.contains("'systemctl restart fencing-agent'"), "{why}");
    members.remove("node1");
    assert!(config.with_members(members).unwrap_err().to_string().contains("is not listed"));
}

fn of_api(api: &StandIn, dir: &tempfile::TempDir, text: &str) -> Result<Config, String> {
    let (before, list) = text.split_once("\n[members]\n").unwrap();
    let rest = list.split_once("[watchdog]").map(|(_, rest)| rest).unwrap_or_default();
    let kubeconfig = kubeconfig::for_server(dir, &api.server);
    let of_api = format!("[kubernetes]\nkubeconfig = '{}'\n[watchdog]{rest}", kubeconfig.display());
    read(&format!("{}\n{of_api}", before.replace("tie_breaker = \"none\"", "")))
}

#[test]
fn the_group_of_the_api_server_is_the_list_and_what_the_server_refuses_names_what_to_type() {
    let (dir, api) = (tempfile::tempdir().unwrap(), StandIn::start(TcpListener::bind("127.0.0.1:0").unwrap()));
    for (name, group) in [("node1", "workers"), ("node2", "workers"), ("node3", "workers"), ("node4", "others")] {
        api.put(name, "uid", &format!("192.0.2.{}", &name[4..]), group);
    }
    let config = of_api(&api, &dir, EXAMPLE).unwrap();
    assert_eq!(config.members.keys().collect::<Vec<_>>(), ["node1", "node2", "node3"]);
    assert_eq!(
        (config.tie_breaker, config.own_addresses()),
        (TieBreaker::Api, vec!["192.0.2.1:7946".parse().unwrap()])
    );
    let refused = |node: &str| of_api(&api, &dir, &EXAMPLE.replace("\"node1\"", &format!("\"{node}\""))).unwrap_err();
    assert!(refused("node4").contains("has node.deckhouse.io/group=others: 'kubectl label node node4 "));
    assert!(refused("node9").contains("there is no Node node9, the group has node1, node2, node3"));
    api.edit("node4", |node| node["metadata"]["labels"] = serde_json::json!({}));
    assert!(refused("node4").contains("Node node4 has no such label"));
    for (status, typed) in [
        (401, "a token or certificate that it knows"),
        (403, "get, list and watch nodes"),
        (404, "answers 404"),
        (429, "the group cannot be listed (the API answers 429: no)"),
        (503, "the group cannot be listed (the API answers 503: no)"),
    ] {
        api.refuse(Some(status));
        assert!(refused("node1").contains(typed), "{}", refused("node1"));
    }
}
