use super::*;

/// Returns the example description with `changes`: in each pair, the first text is replaced by the second.
fn example(changes: &[(&str, &str)]) -> String {
    let mut text = EXAMPLE.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "the example has no {from}");
        text = text.replacen(from, to, 1);
    }
    text
}

fn faults(text: &str) -> Vec<String> {
    read(text).map_or_else(|faults| faults.iter().map(ToString::to_string).collect(), |_| Vec::new())
}

#[test]
fn the_example_is_a_description() {
    let described = read(EXAMPLE).unwrap();
    assert_eq!((described.cluster.as_str(), described.preferred.as_str()), ("tandem", "node1"));
    assert_eq!((described.token, described.clone), (TOKEN, Clone::Promotable));
    assert_eq!(described.etcd.data_dir, PathBuf::from(DATA_DIR));
    assert_eq!(described.certificates, Certificates::Own);
    assert_eq!(described.nodes[1].bmc.options[0], ("ip".to_owned(), "203.0.113.2".to_owned()));
    assert_eq!(described.nodes[1].bmc.password_file, PathBuf::from("/etc/tandem/node2-bmc.password"));
}

/// Asserts that the settings which the example has as comments are valid too.
#[test]
fn every_setting_that_the_example_explains_is_one() {
    let is_setting = |line: &&str| {
        let bare = line.strip_prefix("# ").unwrap_or_default();
        bare.starts_with("[certificates]") || bare.split_once(" = ").is_some_and(|(key, _)| !key.contains(' '))
    };
    let text: String = EXAMPLE
        .lines()
        .filter(|line| !line.contains("redfish+https") && !line.contains("AB:CD"))
        .map(|line| if is_setting(&line) { format!("{}\n", &line[2..]) } else { format!("{line}\n") })
        .collect();
    let described = read(&text).unwrap_or_else(|faults| panic!("{faults:?}"));
    assert_eq!(described.nodes[0].links.len(), 1);
    assert_eq!(described.etcd.settings, [("quota-backend-bytes".to_owned(), "4294967296".to_owned())]);
    assert!(matches!(described.certificates, Certificates::Given { .. }));
    assert!(described.nodes[0].bmc.options.iter().any(|(name, _)| name == "ssl_ca_file"));
}

#[test]
fn names_are_those_of_both_nodes_as_certificates_have_them() {
    let text = example(&[("# names = [", "names = [\"2001:DB8::0:1\", \"Etcd.Example.ORG\", ")]);
    for node in read(&text).unwrap().nodes {
        assert_eq!(node.names, ["2001:db8::1", "etcd.example.org", "192.0.2.10", "etcd.example.com"]);
    }
}

#[test]
fn openshifts_form_of_an_address_is_that_of_the_agent() {
    let text = example(&[
        ("ip = \"203.0.113.1\"", "address = \"redfish+https://203.0.113.1:8443/redfish/v1/Systems/1\""),
        ("systems_uri = \"/redfish/v1/Systems/1\"", ""),
        ("ip = \"203.0.113.2\"", "address = \"redfish+https://[2001:db8::2]/redfish/v1/Systems/abc\""),
        ("systems_uri = \"/redfish/v1/Systems/1\"", ""),
    ]);
    let [first, second] = read(&text).unwrap().nodes;
    let pairs = |node: Node| node.bmc.options.into_iter().filter(|(name, _)| name != "username").collect::<Vec<_>>();
    let own = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(
        pairs(first),
        [own("ip", "203.0.113.1"), own("ipport", "8443"), own("systems_uri", "/redfish/v1/Systems/1")]
    );
    assert_eq!(pairs(second), [own("ip", "2001:db8::2"), own("systems_uri", "/redfish/v1/Systems/abc")]);
}

#[test]
fn a_lone_boot_is_allowed_by_its_word_alone() {
    let line = "# lone_boot = \"never\"";
    let of = |instead: &str| read(&example(&[(line, instead)])).unwrap().lone_boot;
    assert!(!of(line) && !of("lone_boot = \"never\"") && of("lone_boot = \"sole_voter\""));
}

#[test]
fn a_primary_wins_a_split_too() {
    let described = |changes: &[(&str, &str)]| read(&example(changes)).unwrap();
    let both = described(&[("# primary = \"node1\"", "primary = \"node1\"")]);
    let alone = described(&[("# primary = \"node1\"", "primary = \"node2\""), ("# preferred = \"node1\"", "")]);
    let of = |described: Description| (described.preferred, described.primary);
    assert_eq!(of(both), ("node1".to_owned(), Some("node1".to_owned())));
    assert_eq!(of(alone), ("node2".to_owned(), Some("node2".to_owned())));
    assert_eq!(of(described(&[])).1, None);
}

#[test]
fn the_first_node_by_name_wins_a_split_where_nothing_else_is_said() {
    let preferred = |changes: &[(&str, &str)]| read(&example(changes)).unwrap().preferred;
    assert_eq!(preferred(&[]), "node1");
    assert_eq!(preferred(&[("name = \"node1\"", "name = \"node3\"")]), "node2");
    assert_eq!(preferred(&[("# preferred = \"node1\"", "preferred = \"node2\"")]), "node2");
}

#[test]
fn the_delay_of_a_split_is_ten_seconds_or_what_is_described() {
    let delay = |changes: &[(&str, &str)]| read(&example(changes)).unwrap().fencing_delay.as_secs();
    assert_eq!(delay(&[]), 10);
    for (text, seconds) in [("5s", 5), ("1m", 60)] {
        assert_eq!(delay(&[("# fencing_delay = \"10s\"", &format!("fencing_delay = \"{text}\""))]), seconds);
    }
}

/// Wrong descriptions: a text of the example, its replacement, and a part of the fault that the replacement causes.
const WRONG: &[(&str, &str, &str)] = &[
    ("cluster = \"tandem\"", "cluster = tandem", "4:11: this is no TOML"),
    ("cluster = \"tandem\"", "clutser = \"tandem\"", "did you mean cluster?"),
    ("cluster = \"tandem\"", "", "cluster is missing: write cluster = \"...\""),
    ("cluster = \"tandem\"", "cluster = 7", "4:11: cluster is a number: write a text, cluster = \"...\""),
    ("cluster = \"tandem\"", "cluster = \"my cluster\"", "is no name for a cluster: write 1 to 32 letters"),
    ("cluster = \"tandem\"", "cluster = \"a\\nb\"", "control character or a line break"),
    ("# preferred = \"node1\"", "preferred = \"node3\"", "is none of the nodes: write \"node1\" or \"node2\""),
    (
        "# primary = \"node1\"",
        "primary = \"node3\"",
        "primary = \"node3\" is none of the nodes: write \"node1\" or \"node2\"",
    ),
    (
        "# preferred = \"node1\"",
        "preferred = \"node1\"\nprimary = \"node2\"",
        "preferred = \"node1\" is not primary = \"node2\": the node that is to lead is the one that is to win a split; write \"node2\"",
    ),
    (
        "# fencing_delay = \"10s\"",
        "fencing_delay = \"4s\"",
        "fencing_delay = \"4s\" is no time of whole seconds from 5s to 60s",
    ),
    ("# fencing_delay = \"10s\"", "fencing_delay = \"61s\"", "write one such as \"10s\""),
    ("# fencing_delay = \"10s\"", "fencing_delay = \"5500ms\"", "whole seconds"),
    (
        "# fencing_delay = \"10s\"",
        "fencing_delay = 10",
        "fencing_delay is a number: write a text, fencing_delay = \"...\"",
    ),
    ("# lone_boot = \"never\"", "lone_boot = \"always\"", "write \"never\" or \"sole_voter\""),
    ("# token = \"3s\"", "token = \"3x\"", "is no time from 1s to 60s"),
    ("# token = \"3s\"", "token = \"100ms\"", "is no time from 1s to 60s"),
    ("# clone = \"promotable\"", "clone = \"master\"", "write \"promotable\" or \"plain\""),
    ("name = \"node2\"", "name = \"node1\"", "both nodes are called node1"),
    ("name = \"node2\"", "name = \"node 2\"", "is no name of a machine: write what 'uname -n' prints"),
    ("name = \"node2\"", "name = \"192.0.2.2\"", "is no name of a machine"),
    ("name = \"node2\"", "name = \"localhost\"", "is no name of a machine"),
    ("name = \"node2\"", "name = \"node2\"\nport = 1", "'port' is no setting of node 2: known here are name, address"),
    ("address = \"192.0.2.2\"", "address = \"192.0.2.1\"", "192.0.2.1 is there twice"),
    ("address = \"192.0.2.2\"", "address = \"2001:db8::2\"", "are of two families"),
    ("address = \"192.0.2.2\"", "address = \"node2.example.com\"", "is no IP address"),
    ("address = \"192.0.2.2\"", "address = \"192.0.2.2/24\"", "without port and mask"),
    ("address = \"192.0.2.2\"", "address = \"127.0.0.1\"", "reaches no other machine"),
    ("# links = [\"198.51.100.2\"]", "links = [\"198.51.100.2\"]", "node1 has 0 links and node2 has 1"),
    (
        "# names = [",
        "names = [\"a b\", ",
        "the name a b is no address and no DNS name: write one such as \"etcd.example.com\"",
    ),
    ("# names = [", "names = [7, ", "write a list of addresses and DNS names"),
    (
        "# names = [\"192.0.2.10\", \"etcd.example.com\"]",
        "names = \"etcd.example.com\"",
        "write a list of addresses and DNS names",
    ),
    ("# links = [\"198.51.100.2\"]", "links = \"198.51.100.2\"", "write a list of addresses"),
    ("ip = \"203.0.113.2\"", "ip = \"203.0.113.1\"", "node1 and node2 have one and the same BMC"),
    ("ip = \"203.0.113.2\"", "", "fence_redfish_rs does not take this BMC"),
    ("ip = \"203.0.113.2\"", "ip = \"https://203.0.113.2/\"", "type the host name or address alone"),
    ("ip = \"203.0.113.2\"", "ip = \"203.0.113.2\"\npassword = \"hunter2\"", "a password does not belong in this file"),
    ("ip = \"203.0.113.2\"", "ip = \"203.0.113.2\"\npasswd = \"hunter2\"", "a password does not belong in this file"),
    ("ip = \"203.0.113.2\"", "ip = \"203.0.113.2\"\nsystem_uri = \"/\"", "did you mean systems_uri?"),
    ("ip = \"203.0.113.2\"", "ip = \"203.0.113.2\"\naction = \"off\"", "'action' is not for this file"),
    ("ip = \"203.0.113.2\"", "ip = \"203.0.113.2\"\npcmk_host_list = \"x\"", "is no option of fence_redfish_rs"),
    (
        "ip = \"203.0.113.2\"",
        "ip = \"203.0.113.2\"\nssl_fingerprint = \"AB\"",
        "ssl_fingerprint needs the 64 hex digits",
    ),
    (
        "ip = \"203.0.113.2\"",
        "address = \"redfish+https://203.0.113.2/\"",
        "is no BMC: write redfish+https://HOST[:PORT]",
    ),
    ("ip = \"203.0.113.2\"", "address = \"redfish+http://203.0.113.2/redfish/v1/Systems/1\"", "is no BMC"),
    ("ip = \"203.0.113.2\"", "address = \"redfish+https://a:b@203.0.113.2/redfish/v1/Systems/1\"", "is no BMC"),
    ("password_file = \"/etc/tandem/node2-bmc.password\"", "", "password_file of node 2's bmc is missing"),
    ("\"/etc/tandem/node2-bmc.password\"", "\"bmc.password\"", "is no absolute path"),
    ("[etcd]", "[edcd]", "did you mean etcd?"),
    ("image = \"registry.example.com/etcd:v3.5\"", "", "image of etcd is missing"),
    ("registry.example.com/etcd:v3.5", "etcd v3.5", "image is no name that podman could pull"),
    ("# data_dir = \"/var/lib/etcd\"", "data_dir = \"/var/lib/../etcd\"", "is no absolute path"),
    ("# quota-backend-bytes = 4294967296", "quota-backend-byte = 1", "write quota-backend-bytes, or leave it out"),
    ("# quota-backend-bytes = 4294967296", "name = \"x\"", "name is set by the agent"),
    ("# quota-backend-bytes = 4294967296", "quota-backend-bytes = \"x\"", "write another value"),
    ("# quota-backend-bytes = 4294967296", "election-timeout = 499", "election-timeout=499 is less than 5 times"),
    ("# [certificates]", "[certificates]\nca = \"/a\"", "cert of certificates is missing"),
    ("# [certificates]", "[certificates]\nca = \"/a\"\ncert = \"/a\"\nkey = \"/b\"", "one and the same file"),
    ("[[node]]", "[node]", "this is no TOML"),
];

#[test]
fn every_fault_is_told_with_its_place_and_with_what_to_write() {
    for (from, to, said) in WRONG {
        let told = faults(&example(&[(from, to)]));
        assert!(told.iter().any(|one| one.contains(said)), "{to}: {told:?}");
        for one in &told {
            assert!(!one.contains("hunter2") && one.contains(": ") && !one.contains('\n'), "{to}: {one}");
        }
    }
    assert!(faults("").iter().any(|one| one.contains("the nodes are missing")));
    let three = format!("{EXAMPLE}\n[[node]]\nname = \"node3\"\n");
    assert!(faults(&three).iter().any(|one| one.contains("there are 3 nodes")), "{:?}", faults(&three));
}

#[test]
fn all_faults_are_told_at_once_and_in_their_order() {
    let text = example(&[
        ("cluster = \"tandem\"", "cluster = \"a b\""),
        ("# preferred = \"node1\"", "prefered = \"node1\""),
        ("# token = \"3s\"", "token = \"3x\""),
        ("address = \"192.0.2.1\"", "address = \"x\""),
        ("username = \"admin\"", "password = \"hunter2\""),
    ]);
    let lines: Vec<usize> = read(&text).unwrap_err().iter().map(|fault| fault.line).collect();
    assert!(lines.len() >= 5 && lines.is_sorted(), "{lines:?}");
    let line_of = |piece: &str| text.lines().position(|line| line.starts_with(piece)).unwrap() + 1;
    for piece in ["cluster", "prefered", "address = \"x\"", "password = "] {
        assert!(lines.contains(&line_of(piece)), "{piece}: {lines:?}");
    }
}

proptest::proptest! {
    #[test]
    fn whatever_is_in_the_file_it_is_no_panic(at in 0..EXAMPLE.len(), rubbish in "[\\PC\n]{0,12}") {
        let at = (0..=at).rev().find(|at| EXAMPLE.is_char_boundary(*at)).unwrap();
        let _ = read(&format!("{}{rubbish}{}", &EXAMPLE[..at], &EXAMPLE[at..]));
    }
}
