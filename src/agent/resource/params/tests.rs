use super::*;
use crate::adapters::options::OptionKind;
use crate::adapters::options::standard::Standard;

const GOOD: &[(&str, &str)] = &[
    ("node_ip_map", "node1:192.0.2.1; node2:2001:db8::2"),
    ("image", "etcd:3.5"),
    ("trusted_ca_file", "/c/ca"),
    ("cert_file", "/c/crt"),
    ("key_file", "/c/key"),
];

fn parsed(changed: &[(&str, &str)]) -> Result<Params, Invalid> {
    let pairs = GOOD.iter().chain(changed).map(|(n, v)| (format!("OCF_RESKEY_{n}"), (*v).to_owned()));
    parse(&Env::from_pairs(pairs))
}

#[test]
fn parameters_have_defaults_and_nodes_may_have_ipv6_addresses() {
    let params = parsed(&[]).unwrap();
    assert_eq!(params.nodes[1].ip.to_string(), "2001:db8::2");
    assert_eq!((params.client_port, params.oom, params.max_backups), (2379, -997, 3));
    let Source::Parameters { certificates, .. } = params.source else { panic!("{:?}", params.source) };
    assert_eq!(certificates.peer, certificates.server);
    assert_eq!(parsed(&[("node_ip_map", "node1:[2001:db8::1]")]).unwrap().nodes.len(), 1);
}

#[test]
fn the_table_is_sound() {
    crate::adapters::options::tests::assert_sound(Standard::ResourceAgent, PARAMETERS);
}

/// Asserts that each parameter of the table is read: a wrong value is refused, and the error names the parameter. Texts are not covered,
/// because no text is wrong.
#[test]
fn every_parameter_is_read() {
    // Those about the node that is to lead, and about a lone boot, count as none where they are wrong.
    // The collector reads 'machine_hooks'.
    let is_read_elsewhere = |name: &str| ["pod_manifest", "machine_hooks"].contains(&name);
    let counts_as_none = |name: &str| {
        let begins = ["failback_", "lone_boot"].iter().any(|begin| name.starts_with(begin));
        begins || ["two_histories", "partition_patience"].contains(&name)
    };
    let is_read_here = |row: &&OptionRow| !is_read_elsewhere(row.name) && !counts_as_none(row.name);
    for row in
        PARAMETERS.iter().filter(is_read_here).filter(|row| !matches!(row.kind, OptionKind::Text | OptionKind::Words))
    {
        let invalid = parsed(&[(row.name, "x y")]).unwrap_err();
        assert!(invalid.sentence.starts_with(&format!("{}=x y is n", row.name)), "{}", invalid.sentence);
    }
}

/// Asserts the names and defaults of the parameters on which configurations for the shell agent rely.
#[test]
fn the_shell_agents_parameters_have_their_defaults() {
    for (name, default) in [
        ("pod_manifest", Some("/etc/kubernetes/static-pod-resources/etcd-certs/configmaps/external-etcd-pod/pod.yaml")),
        ("image", Some("default")),
        ("name", Some("etcd")),
        ("node_ip_map", None),
        ("nic", Some("br-ex")),
        ("authfile", Some("/var/lib/kubelet/config.json")),
        ("allow_pull", Some("1")),
        ("run_opts", None),
        ("run_cmd", None),
        ("run_cmd_opts", None),
        ("mount_points", None),
        ("monitor_cmd", None),
        ("force_kill", Some("0")),
        ("reuse", Some("0")),
        ("drop_in_dependency", None),
        ("oom", Some("-997")),
        ("config_location", Some("/var/lib/etcd")),
        ("backup_location", Some("/var/lib/etcd")),
        ("max_backup_snapshots", Some("3")),
        (
            "kubeconfig",
            Some(
                "/etc/kubernetes/static-pod-resources/kube-apiserver-certs/secrets/node-kubeconfigs/localhost.kubeconfig",
            ),
        ),
    ] {
        let parameter = PARAMETERS.iter().find(|parameter| parameter.name == name);
        assert_eq!(parameter.map(|parameter| parameter.default), Some(default), "{name}");
        assert_eq!(parameter.map(|parameter| parameter.required), Some(name == "node_ip_map"), "{name}");
    }
}

/// Asserts the default of `drop_in_dependency`. Without drop-in files, systemd ends the container in parallel with Pacemaker, and etcd is
/// gone before it has left its cluster.
#[test]
fn drop_ins_are_written_where_systemd_runs_unless_somebody_forbids_it() {
    let dir = tempfile::tempdir().unwrap();
    let there = dir.path().to_str().unwrap();
    assert_eq!(DROP_IN_SWITCHES[0], SYSTEMD_RUNS);
    assert!(one_is_there(&["/nowhere/at/all", there]));
    assert!(!one_is_there(&["/nowhere/at/all"]));
    let pairs = |value: &str| [("OCF_RESKEY_drop_in_dependency".to_owned(), value.to_owned())];
    assert!(!drop_in_dependency(&Env::from_pairs(pairs("false"))).unwrap());
    assert!(drop_in_dependency(&Env::from_pairs(pairs("true"))).unwrap());
}

/// Asserts that the two parameters that cluster-etcd-operator sets are enough, because all other values come from the pod manifest.
#[test]
fn two_parameters_are_enough_on_openshift() {
    let pairs = [("node_ip_map", "a:192.0.2.1;b:192.0.2.2"), ("drop_in_dependency", "true")];
    let pairs = pairs.map(|(n, v)| (format!("OCF_RESKEY_{n}"), v.to_owned()));
    let params = parse(&Env::from_pairs(pairs)).unwrap();
    assert!(params.drop_in_dependency);
    let path = PathBuf::from(table::POD_MANIFEST.default.unwrap());
    assert_eq!(params.source, Source::Manifest { path, image: None });
}

#[test]
fn another_image_may_stand_in_for_the_manifests() {
    let pairs =
        [("node_ip_map", "a:192.0.2.1"), ("image", "etcd:3.6")].map(|(n, v)| (format!("OCF_RESKEY_{n}"), v.to_owned()));
    let Source::Manifest { image, .. } = parse(&Env::from_pairs(pairs)).unwrap().source else { panic!() };
    assert_eq!(image.as_deref(), Some("etcd:3.6"));
}

/// Rows of a parameter, an invalid value, and words that the error must contain.
const WRONG: &[(&str, &str, &str)] = &[
    (
        "node_ip_map",
        "",
        "node_ip_map is not set: 'pcs resource update etcd node_ip_map=\"node1:192.0.2.1;node2:192.0.2.2\"'",
    ),
    ("node_ip_map", ";", "node_ip_map is empty; write 'node1:"),
    ("node_ip_map", "node1", "'node1' is not 'name:address'; write 'node1:"),
    ("node_ip_map", "node1:x", "does not end in an IP address; write"),
    ("node_ip_map", "node1:0.0.0.0", "has an address that no node can have"),
    ("node_ip_map", ":192.0.2.1", "names no node"),
    ("node_ip_map", "a:192.0.2.1;a:192.0.2.2", "repeats a node"),
    ("node_ip_map", "a:192.0.2.1;b:192.0.2.1", "repeats a node or an address"),
    ("node_ip_map", "a:192.0.2.1;b:192.0.2.2;c:192.0.2.3", "names 3 nodes; this agent keeps one or two"),
    ("image", "default", "certificates without image: 'pcs resource update etcd image="),
    ("name", "a b", "name=a b cannot name a container: use letters"),
    ("trusted_ca_file", "", "trusted_ca_file is not set: give trusted_ca_file, cert_file, key_file together"),
    ("cert_file", "", "cert_file is not set: give"),
    ("key_file", "", "key_file is not set: give"),
    ("trusted_ca_file", "ca.crt", "trusted_ca_file=ca.crt is not an absolute path: begin it with '/'"),
    ("cert_file", "etcd.crt", "cert_file=etcd.crt is not an absolute path"),
    ("key_file", "/c/a:b", "key_file=/c/a:b has a colon in it"),
    ("peer_cert_file", "/c/peer.crt", "peer_cert_file and peer_key_file belong together: give both or neither"),
    ("peer_key_file", "/c/peer.key", "belong together"),
    ("client_cert_file", "/c/peer.crt", "client_cert_file and client_key_file belong together"),
    ("client_key_file", "/c/peer.crt", "client_cert_file and client_key_file belong together"),
    ("authfile", "config.json", "authfile=config.json is not an absolute path"),
    ("config_location", "x", "config_location=x is not an absolute path"),
    ("backup_location", "x", "backup_location=x is not an absolute path"),
    ("kubeconfig", "x", "kubeconfig=x is not an absolute path"),
    ("data_dir", "x", "data_dir=x is not an absolute path"),
    ("mount_points", "/a,b", "mount_points=b is not an absolute path"),
    ("client_port", "0", "client_port=0 is not a whole number from 1 to 65535"),
    ("peer_port", "65536", "peer_port=65536 is not a whole number from 1 to 65535"),
    ("oom", "-1001", "oom=-1001 is not a whole number from -1000 to 1000"),
    ("oom", "low", "oom=low is not a whole number from -1000 to 1000"),
    ("max_backup_snapshots", "-1", "max_backup_snapshots=-1 is not a whole number from 1 to 1000"),
    ("promote_max_lag", "few", "promote_max_lag=few"),
    ("allow_pull", "perhaps", "allow_pull=perhaps is neither yes nor no: write 1 or 0"),
    ("force_kill", "x", "force_kill=x is neither yes nor no"),
    ("reuse", "x", "reuse=x is neither yes nor no"),
    ("drop_in_dependency", "x", "drop_in_dependency=x is neither yes nor no"),
    ("run_opts", "--name x", "run_opts has --name in it: use the parameter 'name' instead"),
    ("run_opts", "--name=x", "run_opts has --name in it"),
    ("etcd_settings", "heartbeat-interval", "etcd_settings: 'heartbeat-interval' is not 'name=value'"),
    ("etcd_settings", "heartbeat=1", "etcd_settings: etcd has no setting 'heartbeat'"),
    ("etcd_settings", "heartbeat-interval=fast", "etcd_settings: heartbeat-interval=fast is not a whole number"),
    ("etcd_settings", "name=x", "etcd_settings: name is set by the agent"),
    ("client_port", "2380", "client_port and peer_port are both 2380: give each a port of its own"),
    ("peer_port", "2379", "client_port and peer_port are both 2379"),
    ("etcd_settings", "election-timeout=1", "election-timeout=1 is not a whole number from 5 to 50000"),
    ("etcd_settings", "election-timeout=499", "election-timeout=499 is less than 5 times heartbeat-interval=100"),
    ("etcd_settings", "heartbeat-interval=201", "times heartbeat-interval=201: give 1005 or more"),
    ("etcd_settings", "log-level=nonsense", "log-level=nonsense is not debug, info, warn, error, panic or fatal"),
    ("etcd_settings", "auto-compaction-mode=weekly", "=weekly is not periodic or revision"),
    ("etcd_settings", "auto-compaction-retention=often", "=often is not a duration such as 1h, or a number"),
    ("etcd_settings", "auto-compaction-retention=3000000", "is in hours: give at most 2562047"),
    ("etcd_settings", "listen-metrics-urls=http://192.0.2.9:9978", "is not on each node: write http://0.0.0.0:PORT"),
    ("etcd_settings", "listen-metrics-urls=http://0.0.0.0:2380", "and peer_port both have port 2380: give it another"),
    ("etcd_settings", "tls-min-version=TLS1.3;tls-max-version=TLS1.2", "is below tls-min-version=TLS1.3: leave one"),
    ("etcd_settings", "enable-log-rotation=true", "enable-log-rotation needs one path in log-outputs"),
    ("etcd_settings", "cipher-suites=strong", "is not a list such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
    ("run_opts", "--restart=always", "run_opts has --restart in it: remove it, as Pacemaker alone starts etcd"),
    ("run_opts", "--privileged --rm", "run_opts has --rm in it: remove it, as the agent keeps the container"),
    ("run_opts", "--network none", "run_opts has --network in it: remove it, as etcd uses the host's network"),
    ("run_opts", "--net=none", "run_opts has --net in it: remove it"),
    ("node_ip_map", "node1:127.0.0.1;node2:192.0.2.2", "has an address that no node can have"),
    ("node_ip_map", "node1:[::1]", "has an address that no node can have"),
    ("node_ip_map", "no=de1:192.0.2.1", "'no=de1:192.0.2.1' has ',' or '=' in its name; write 'node1:192"),
    ("node_ip_map", "no,de1:192.0.2.1", "has ',' or '=' in its name"),
    ("data_dir", "/var/lib/\netcd", "data_dir has a line break or the like in it: type the path in one line"),
    ("data_dir", "/", "data_dir=/ is the root directory: give one such as /var/lib/etcd"),
    ("data_dir", "//.", "data_dir=//. is the root directory"),
    ("config_location", "/", "config_location=/ is the root directory"),
    ("backup_location", "/..", "backup_location=/.. is the root directory"),
];

#[test]
fn every_wrong_value_gets_its_sentence() {
    for (name, value, words) in WRONG {
        let invalid = parsed(&[(name, value)]).unwrap_err();
        assert!(invalid.sentence.contains(words), "{name}={value}: {}", invalid.sentence);
        assert_eq!(invalid.code, Code::Configured, "{name}={value}");
        assert!(invalid.sentence.len() <= crate::adapters::ocf::exit::REASON_LIMIT, "{}", invalid.sentence);
    }
}

/// Asserts that only `validate-all` refuses a mistyped image, because it must not stop a running etcd.
#[test]
fn what_is_no_image_is_refused_where_it_is_typed_and_no_fault_of_an_etcd_that_runs() {
    for (image, words) in [
        ("--help", "image=--help is no image: write its name, such as registry.example.com/etcd:v3.5.21"),
        ("etcd 3.5", "image=etcd 3.5 is no image"),
    ] {
        assert!(parsed(&[("image", image)]).is_ok(), "{image}");
        let pairs = [("node_ip_map", "a:192.0.2.1"), ("image", image)];
        let env = Env::from_pairs(pairs.map(|(name, value)| (format!("OCF_RESKEY_{name}"), value.to_owned())));
        let invalid = outdated(&env).unwrap();
        assert!(invalid.sentence.starts_with(words) && invalid.code == Code::Configured, "{invalid}");
        let checked = crate::agent::validate_all(&env, &crate::adapters::command::Programs::default());
        assert_eq!(checked.code, Code::Configured);
    }
}

/// Asserts that `validate-all` refuses 0 backups, and that 0 counts as 1 in an existing resource. With 0, the agent would delete the last
/// copy of replaced data as soon as this node votes.
#[test]
fn no_backup_at_all_is_refused_where_it_is_typed_and_counts_as_one_where_it_is_there() {
    let env = |value: &str| {
        let pairs = [("node_ip_map", "a:192.0.2.1"), ("max_backup_snapshots", value)];
        Env::from_pairs(pairs.map(|(name, value)| (format!("OCF_RESKEY_{name}"), value.to_owned())))
    };
    for (value, backups, words) in [
        (
            "0",
            1,
            Some(
                "max_backup_snapshots=0 would delete the last backup: 'pcs resource update etcd max_backup_snapshots=1'",
            ),
        ),
        ("00", 1, Some("max_backup_snapshots=0 would delete the last backup")),
        ("1", 1, None),
        ("7", 7, None),
    ] {
        assert_eq!(parse(&env(value)).unwrap().max_backups, backups, "{value}: an upgrade stops no etcd");
        let outdated = outdated(&env(value));
        assert_eq!(outdated.is_some(), words.is_some(), "{value}");
        let Some((invalid, words)) = outdated.zip(words) else { continue };
        assert!(invalid.sentence.starts_with(words), "{invalid}");
        assert!(invalid.sentence.len() <= crate::adapters::ocf::exit::REASON_LIMIT, "{invalid}");
        let checked = crate::agent::validate_all(&env(value), &crate::adapters::command::Programs::default());
        assert_eq!(checked.code, Code::Configured);
    }
}

#[test]
fn a_manifest_that_is_not_an_absolute_path_is_told_so() {
    let pairs = [("node_ip_map", "a:192.0.2.1"), ("pod_manifest", "pod.yaml")]
        .map(|(n, v)| (format!("OCF_RESKEY_{n}"), v.to_owned()));
    let invalid = parse(&Env::from_pairs(pairs)).unwrap_err();
    assert!(invalid.sentence.contains("pod_manifest=pod.yaml is not an absolute path"), "{}", invalid.sentence);
}

#[test]
fn a_wrong_word_about_hooks_is_refused_where_it_is_typed_and_stops_no_etcd() {
    let wrong = [("machine_hooks", "perhaps")];
    let all = GOOD.iter().chain(&wrong).map(|(name, value)| (format!("OCF_RESKEY_{name}"), (*value).to_owned()));
    let env = Env::from_pairs(all);
    let invalid = outdated(&env).unwrap();
    assert_eq!(invalid.sentence, "machine_hooks=perhaps is neither yes nor no: write 1 or 0");
    assert!(parse(&env).is_ok());
    let keeps = [None, Some(""), Some("no"), Some("perhaps"), Some("1"), Some("yes")].map(keeps_machine_hooks);
    assert_eq!(keeps, [false, false, false, false, true, true]);
}

/// Rows of parameters of which one is faulty or does not fit another one, and words that the check's error must contain.
const NO_PRIMARY: &[(&[(&str, &str)], &str)] = &[
    (&[("configured_primary", "node3")], "configured_primary=node3 is none of the nodes: write node1 or node2"),
    (
        &[("failback_to_primary", "1")],
        "failback_to_primary=1 without configured_primary: 'pcs resource update etcd configured_primary=NODE'",
    ),
    (
        &[("two_histories", "primary")],
        "two_histories=primary without configured_primary: 'pcs resource update etcd configured_primary=NODE'",
    ),
    (&[("configured_primary", "node1"), ("two_histories", "both")], "two_histories=both is neither refuse nor primary"),
    (
        &[("configured_primary", "node1"), ("failback_to_primary", "maybe")],
        "failback_to_primary=maybe is neither yes nor no",
    ),
    (
        &[("configured_primary", "node1"), ("failback_delay", "5")],
        "failback_delay=5 is not a whole number from 10 to 3600",
    ),
    (
        &[("configured_primary", "node1"), ("partition_patience", "9")],
        "partition_patience=9 is neither 0 nor a whole number from 10 to 600",
    ),
    (
        &[("configured_primary", "node1"), ("partition_patience", "601")],
        "partition_patience=601 is not a whole number from 0 to 600",
    ),
    (&[("reach_attribute", "a b")], "reach_attribute=a b names no node attribute: write letters, digits"),
];

#[test]
fn a_wrong_primary_is_refused_where_it_is_typed_and_counts_as_none_where_etcd_runs() {
    for (pairs, words) in NO_PRIMARY {
        let all = GOOD.iter().chain(*pairs).map(|(name, value)| (format!("OCF_RESKEY_{name}"), (*value).to_owned()));
        let env = Env::from_pairs(all);
        let invalid = outdated(&env).unwrap();
        assert!(invalid.sentence.starts_with(words) && invalid.code == Code::Configured, "{invalid}");
        assert!(invalid.sentence.len() <= crate::adapters::ocf::exit::REASON_LIMIT, "{invalid}");
        let checked = crate::agent::validate_all(&env, &crate::adapters::command::Programs::default());
        assert_eq!(checked.code, Code::Configured);
        let leading = parse(&env).unwrap().leading;
        let is_named = pairs[0] == ("configured_primary", "node1");
        assert_eq!(leading.primary.is_some(), is_named, "{words}");
        assert_eq!((leading.failback, leading.delay_s, leading.reach), (is_named, 60, None), "{words}");
        assert_eq!((leading.keeps_its_history, leading.patience_s), (false, 30), "{words}");
    }
}

#[test]
fn a_lone_boot_is_wanted_only_by_its_word_and_a_wrong_word_is_refused_where_it_is_typed() {
    for (pairs, (is_wanted, wait_s), words) in [
        (&[][..], (false, 120), None),
        (&[("lone_boot", "never")], (false, 120), None),
        (&[("lone_boot", "sole_voter")], (true, 120), None),
        (&[("lone_boot", "sole_voter"), ("lone_boot_wait", "30")], (true, 30), None),
        (&[("lone_boot", "always")], (false, 120), Some("lone_boot=always is neither never nor sole_voter")),
        (
            &[("lone_boot", "sole_voter"), ("lone_boot_wait", "29")],
            (false, 0),
            Some("lone_boot_wait=29 is not a whole number from 30 to 3600"),
        ),
        (
            &[("lone_boot", "sole_voter"), ("lone_boot_wait", "2m")],
            (false, 0),
            Some("lone_boot_wait=2m is not a whole number from 30 to 3600"),
        ),
    ] {
        let all = GOOD.iter().chain(pairs).map(|(name, value)| (format!("OCF_RESKEY_{name}"), (*value).to_owned()));
        let env = Env::from_pairs(all);
        assert_eq!(parse(&env).unwrap().lone_boot, lone_boot::LoneBoot { is_wanted, wait_s }, "{pairs:?}");
        assert_eq!(outdated(&env).map(|invalid| invalid.sentence).as_deref(), words, "{pairs:?}");
    }
}

#[test]
fn a_primary_gets_the_lead_back_unless_a_parameter_says_no() {
    let leading = |changed: &[(&str, &str)]| parsed(changed).unwrap().leading;
    assert_eq!(leading(&[]), leading::Leading { delay_s: 60, patience_s: 30, ..Default::default() });
    assert!(!leading(&[]).is_wanted() && leading(&[("reach_attribute", "pingd")]).is_wanted());
    let named = [
        ("configured_primary", "node2"),
        ("failback_delay", "10"),
        ("reach_attribute", "pingd"),
        ("partition_patience", "0"),
    ];
    let (primary, reach) = (Some("node2".to_owned()), Some("pingd".to_owned()));
    let (keeps_its_history, delay_s, patience_s) = (false, 10, 0);
    let expected = leading::Leading { primary, failback: true, keeps_its_history, delay_s, patience_s, reach };
    assert_eq!(leading(&named), expected);
    let kept = leading(&[("configured_primary", "node2"), ("failback_to_primary", "no")]);
    assert!(kept.primary.is_some() && !kept.failback);
}

#[test]
fn the_primarys_history_is_kept_only_where_a_parameter_keeps_it() {
    let keeps = |word| parsed(&[("configured_primary", "node2"), ("two_histories", word)]).unwrap().leading;
    assert_eq!(["refuse", "primary", "both"].map(|word| keeps(word).keeps_its_history), [false, true, false]);
}
