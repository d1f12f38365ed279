//! Each refusal, from the example with one thing wrong.

use super::*;

const PLACE: &str = "/etc/tandem/fencing-agent.toml";

fn read(text: &str) -> Result<Config, String> {
    read_in(text, Environment::default())
}

fn read_in(text: &str, environment: Environment) -> Result<Config, String> {
    let members = |_: &Path| addresses(&toml::from_str("a = '192.0.2.1'\nb = ['192.0.2.2']\nc = '192.0.2.3'").unwrap());
    Raw::of(text, Path::new(PLACE))
        .and_then(|raw| Config::of(raw, Path::new(PLACE), environment, members))
        .map_err(|why| why.to_string())
}

/// The example with `old` replaced.
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
    let environment = || Environment { node: Some("node2".to_owned()), group: Some("others".to_owned()) };
    let bare = EXAMPLE.replace("node = \"node1\"", "").replace("group = \"workers\"", "");
    let config = read_in(&bare, environment()).unwrap();
    assert_eq!((config.node.as_str(), config.group.as_str()), ("node2", "others"));
    assert_eq!(read_in(EXAMPLE, environment()).unwrap().node, "node1");
    assert!(read(&bare).unwrap_err().contains("'node = \"NAME\"'"));
    assert!(with("group = \"workers\"", "").unwrap_err().contains("'group = \"NAME\"'"));
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
        ("[grpc]", "[kubernetes]\nlabel = 'x'\n[grpc]", "is not supported yet"),
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
