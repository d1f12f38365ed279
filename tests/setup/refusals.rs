//! Setup refuses objects that it did not make, and names a command. It never treats an unknown fact as absent.

use std::time::Duration;

use tandem::adapters::pacemaker::seen::{Failure, Instance};
use tandem::base::Fact;
use tandem::operate::setup::action::Action;
use tandem::operate::setup::cluster::{ClusterFacts, parse_cib, parse_corosync};
use tandem::operate::setup::step::{Difference, SetupStep, State};

use crate::variants::{Variant, all, blank, facts, promotable};

const EMPTY: &str = "<cib><configuration/></cib>";

fn corosync_conf(name: &str, nodes: &[(&str, &str)]) -> String {
    let node = |(name, address): &(&str, &str)| format!("node {{\nring0_addr: {address}\nname: {name}\n}}\n");
    let nodes: String = nodes.iter().map(node).collect();
    format!(
        "totem {{\ncluster_name: {name}\ntransport: knet\ncrypto_cipher: aes256\ncrypto_hash: sha256\n}}\nnodelist {{\n{nodes}}}\n"
    )
}

const NODES: [(&str, &str); 2] = [("node1", "10.99.0.1"), ("node2", "10.99.0.2")];

fn ours() -> String {
    corosync_conf("tandem", &NODES)
}

fn with_resources(resources: &str) -> String {
    format!("<cib><configuration><resources>{resources}</resources></configuration></cib>")
}

fn step<'a>(steps: &'a [SetupStep], id: &str) -> &'a SetupStep {
    steps.iter().find(|step| step.id == id).unwrap_or_else(|| panic!("no step {id} in {steps:#?}"))
}

/// Returns the sentence with which the step `id` of `tandem setup` is refused.
fn refusal(variant: &Variant, facts: &ClusterFacts, id: &str) -> String {
    match &step(&variant.steps(facts), id).state {
        State::Refused(why) => why.clone(),
        other => panic!("{id}: {other:?}"),
    }
}

fn to_do(variant: &Variant, facts: &ClusterFacts, id: &str) -> Vec<String> {
    match &step(&variant.steps(facts), id).state {
        State::ToDo(actions) => actions.iter().map(|action| crate::variants::words(action).join(" ")).collect(),
        State::Done => Vec::new(),
        other => panic!("{id}: {other:?}"),
    }
}

#[test]
fn another_cluster_is_never_touched() {
    let variant = promotable();
    for (conf, words) in [
        (corosync_conf("prod", &NODES), "in the cluster 'prod' of node1 and node2 already"),
        (corosync_conf("tandem", &[("node1", "10.99.0.1"), ("node3", "10.99.0.2")]), "of node1 and node3 already"),
        (
            corosync_conf("tandem", &NODES[..1]),
            "without node2: type 'tandem member add node2=10.99.0.2 --fence ip=ADDRESS",
        ),
        (corosync_conf("prod", &NODES[..1]), "in the cluster 'prod' of node1 already"),
        (
            corosync_conf("tandem", &[NODES[0], NODES[1], ("node3", "10.99.0.3")]),
            "of node1 and node2 and node3 already",
        ),
        (ours().replace("knet", "udpu"), "has the transport udpu"),
        (corosync_conf("tandem", &[NODES[0], ("node2", "10.99.0.7")]), "node2 is at 10.99.0.7"),
    ] {
        let why = refusal(&variant, &facts(&conf, EMPTY, &variant), "corosync");
        assert!(why.contains(words), "{why}");
    }
    let unreadable = ClusterFacts { corosync: Fact::Unknown("a device".to_owned()), ..blank() };
    assert!(refusal(&variant, &unreadable, "corosync").contains("(a device)"));
}

#[test]
fn pcs_must_be_there_and_know_the_words() {
    let variant = promotable();
    let with = |pcs| ClusterFacts { pcs, ..blank() };
    let version = |text: &str| with(Fact::Known(text.to_owned()));
    assert!(refusal(&variant, &with(Fact::Absent), "host-auth").contains("'apt-get install pcs'"));
    assert!(refusal(&variant, &version("0.10.18"), "host-auth").contains("pcs 0.10.18"));
    for fine in ["0.11.5", "0.12.0", "1.0", "0.12.0+git", "main"] {
        assert_eq!(to_do(&variant, &version(fine), "host-auth").len(), 1, "{fine}");
    }
}

#[test]
fn access_is_had_once_pcs_knows_both_where_they_are() {
    let variant = promotable();
    let with = |hosts: &[(&str, &str)]| {
        let hosts = hosts.iter().map(|(name, address)| ((*name).to_owned(), address.parse().unwrap())).collect();
        ClusterFacts { hosts: Fact::Known(hosts), ..blank() }
    };
    assert!(to_do(&variant, &with(&NODES), "host-auth").is_empty());
    for hosts in [&NODES[..1], &[NODES[0], ("node2", "10.99.0.7")], &[]] {
        assert_eq!(to_do(&variant, &with(hosts), "host-auth").len(), 1, "{hosts:?}");
    }
    // The token is gone once the cluster exists.
    assert!(to_do(&variant, &facts(&ours(), EMPTY, &variant), "host-auth").is_empty());
}

#[test]
fn a_cluster_that_is_stopped_is_started_and_one_that_a_boot_would_not_start_is_enabled() {
    let variant = promotable();
    let running = facts(&ours(), EMPTY, &variant);
    assert!(to_do(&variant, &running, "corosync").is_empty());
    let start = "pcs cluster start --all --wait=120";
    let stopped = ClusterFacts { pacemaker: Fact::Absent, ..running.clone() };
    assert_eq!(to_do(&variant, &stopped, "corosync"), [start]);
    let mut half = running.clone();
    if let Fact::Known(pacemaker) = &mut half.pacemaker {
        pacemaker.nodes[1].online = false;
    }
    assert_eq!(to_do(&variant, &half, "corosync"), [start]);
    let mut pending = running.clone();
    if let Fact::Known(pacemaker) = &mut pending.pacemaker {
        pacemaker.nodes[1].pending = true;
    }
    assert_eq!(to_do(&variant, &pending, "corosync"), [start]);
    let unknown = ClusterFacts { pacemaker: Fact::Unknown("it hangs".to_owned()), ..running.clone() };
    assert!(to_do(&variant, &unknown, "corosync").is_empty(), "what hangs is not started");
    let with = |corosync, pacemaker| {
        let enabled = [("corosync", corosync), ("pacemaker", pacemaker), ("pcsd", false)];
        let enabled = enabled.map(|(unit, is)| (unit.to_owned(), is)).into();
        to_do(&variant, &ClusterFacts { enabled, ..running.clone() }, "corosync")
    };
    assert_eq!(with(true, false), ["pcs cluster enable --all"]);
    assert_eq!(with(false, true), ["pcs cluster enable --all"]);
    assert!(with(true, true).is_empty());
}

#[test]
fn further_links_are_added_taken_away_and_made_anew() {
    let ipv6 = all().into_iter().find(|variant| variant.name == "ipv6").unwrap();
    let conf = |links: [Option<&str>; 2]| {
        let ring = |link: Option<&str>| link.map(|address| format!("ring1_addr: {address}\n")).unwrap_or_default();
        let nodes = [("node1", "fd00:99::1", links[0]), ("node2", "fd00:99::2", links[1])]
            .map(|(name, address, link)| format!("node {{\nring0_addr: {address}\n{}name: {name}\n}}\n", ring(link)));
        ours().split("node {").next().unwrap().replace("sha256", "sha256\ntoken: 1000") + &nodes.concat() + "}\n"
    };
    let changes =
        |variant: &Variant, conf: &str| match &step(&variant.steps(&facts(conf, EMPTY, variant)), "corosync").state {
            State::Differs { differences, actions } => {
                assert_eq!(differences.len(), 2, "{differences:?}");
                actions.iter().map(|action| crate::variants::words(action).join(" ")).collect()
            }
            State::Done => Vec::new(),
            other => panic!("{other:?}"),
        };
    let (remove, add) =
        ("pcs cluster link remove 1", "pcs cluster link add node1=fd00:97::1 node2=fd00:97::2 options linknumber=1");
    let both = [Some("fd00:97:0::1"), Some("fd00:97::2")];
    assert!(changes(&ipv6, &conf(both)).is_empty());
    assert_eq!(changes(&ipv6, &conf([None, None])), [add]);
    assert_eq!(changes(&ipv6, &conf([Some("fd00:97::1"), Some("fd00:97::9")])), [remove, add]);
    let mut one_link = ipv6.clone();
    for node in &mut one_link.description.nodes {
        node.links.clear();
    }
    assert_eq!(changes(&one_link, &conf(both)), [remove]);
}

#[test]
fn what_another_made_under_these_names_is_never_changed() {
    let variant = promotable();
    for (resources, id, words) in [
        (
            "<primitive id='fence-node1' class='stonith' type='fence_ipmilan'/>",
            "fence-node1",
            "there is a resource fence-node1 of stonith:fence_ipmilan already, and not of fence_redfish_rs",
        ),
        ("<primitive id='fence-node2' class='ocf' provider='x' type='y'/>", "fence-node2", "of ocf:x:y already"),
        (
            "<primitive id='etcd' class='ocf' provider='heartbeat' type='podman-etcd'/>",
            "etcd",
            "a resource etcd of ocf:heartbeat:podman-etcd already",
        ),
        ("<primitive id='etcd' class='systemd' type='etcd'/>", "etcd", "a resource etcd of systemd:etcd already"),
        (
            "<primitive id='etcd2' class='ocf' provider='tandem' type='podman-etcd'/>",
            "etcd",
            "the resource etcd2 runs podman-etcd already",
        ),
        (
            "<group id='g'><primitive id='etcd' class='ocf' provider='tandem' type='podman-etcd'/></group>",
            "etcd",
            "'pcs resource ungroup g etcd'",
        ),
    ] {
        let found = facts(&ours(), &with_resources(resources), &variant);
        let why = refusal(&variant, &found, id);
        assert!(why.contains(words), "{why}");
        let starts = variant.steps(&found).iter().any(|step| step.id == "etcd-enable");
        assert_eq!(starts, id != "etcd", "and it is not started: {resources}");
    }
    let openshift = all().into_iter().find(|variant| variant.is_openshift).unwrap();
    let kubelet = with_resources("<primitive id='kubelet' class='ocf' provider='x' type='y'/>");
    let conf = corosync_conf("TNF", &NODES);
    assert!(
        refusal(&openshift, &facts(&conf, &kubelet, &openshift), "kubelet").contains("a resource kubelet of ocf:x:y")
    );
}

#[test]
fn a_cib_that_cannot_be_read_is_no_empty_one() {
    for variant in all() {
        let name = if variant.is_openshift { "TNF" } else { "tandem" };
        let conf =
            if variant.name == "ipv6" { ours().replace("10.99.0.", "fd00:99::") } else { corosync_conf(name, &NODES) };
        let known = facts(&conf, EMPTY, &variant);
        let unknown = ClusterFacts { cib: Fact::Unknown("it hangs".to_owned()), ..known };
        let steps = variant.steps(&unknown);
        assert!(refusal(&variant, &unknown, "cib").contains("(it hangs)"));
        assert!(!steps.iter().any(|step| matches!(step.state, State::ToDo(_))), "{steps:#?}");
    }
}

const DEVICES: &str = "<primitive id=\"fence-node1\" class='stonith' type='fence_redfish_rs'/>\
     <primitive id=\"fence-node2\" class='stonith' type='fence_redfish_rs'/>";

#[test]
fn etcd_starts_after_both_fence_devices_have_answered() {
    let variant = promotable();
    let well = facts(&ours(), &with_resources(DEVICES), &variant);
    assert!(to_do(&variant, &well, "fencing").is_empty());
    let order: Vec<String> = variant.steps(&well).into_iter().map(|step| step.id).collect();
    let at = |id: &str| order.iter().position(|one| one == id).unwrap();
    assert!(at("fencing") < at("etcd-enable") && at("etcd") < at("etcd-enable"), "{order:?}");
    let with = |change: &dyn Fn(&mut Instance)| {
        let mut facts = well.clone();
        if let Fact::Known(pacemaker) = &mut facts.pacemaker {
            change(&mut pacemaker.resources[1]);
        }
        facts
    };
    let wait = "crm_resource --wait --timeout=60s";
    for facts in [
        with(&|device| device.active = false),
        with(&|device| device.role = "Stopped".to_owned()),
        with(&|device| device.failed = true),
        with(&|device| device.pending = Some("Starting".to_owned())),
        with(&|device| device.id = "another".to_owned()),
        ClusterFacts { pacemaker: Fact::Absent, ..well.clone() },
    ] {
        assert_eq!(to_do(&variant, &facts, "fencing"), [wait]);
    }
    let mut failed = with(&|device| device.active = false);
    if let Fact::Known(pacemaker) = &mut failed.pacemaker {
        pacemaker.failures.push(Failure {
            node: "node1".to_owned(),
            resource: "fence-node2".to_owned(),
            reason: "the BMC refuses the password".to_owned(),
            ..Failure::default()
        });
    }
    let why = refusal(&variant, &failed, "fencing");
    assert!(why.contains("fence-node2 does not work on node1: the BMC refuses the password"), "{why}");
    assert!(why.contains("'pcs stonith cleanup fence-node2'"), "{why}");
    let unknown = ClusterFacts { pacemaker: Fact::Unknown("it hangs".to_owned()), ..well };
    assert!(refusal(&variant, &unknown, "fencing").contains("(it hangs)"));
}

#[test]
fn no_password_of_the_cib_is_kept_or_shown() {
    let variant = promotable();
    let device = "<primitive id=\"fence-node1\" class='stonith' type='fence_redfish_rs'><instance_attributes>\
         <nvpair name='password' value='hunter2'/></instance_attributes></primitive>";
    let facts = facts(&ours(), &with_resources(device), &variant);
    assert!(!format!("{facts:?}").contains("hunter2"));
    let steps = variant.steps(&facts);
    assert!(!format!("{steps:?}").contains("hunter2"));
    let shown = steps.iter().find_map(|step| match &step.state {
        State::Differs { differences, actions } if step.id == "fence-node1" => Some((differences, actions)),
        _ => None,
    });
    let (differences, actions) = shown.unwrap();
    assert!(differences.iter().any(|Difference { what, .. }| what == "fence-node1: password"), "{differences:?}");
    assert!(matches!(&actions[0], Action::Command(words) if words.contains(&"password=".to_owned())), "{actions:?}");
}

#[test]
fn the_etcd_operators_own_work_is_left_to_it() {
    let openshift = all().into_iter().find(|variant| variant.is_openshift).unwrap();
    for (jobs, words) in [
        (Fact::Known(vec!["tnf-setup-job".to_owned()]), "by its jobs tnf-setup-job"),
        (Fact::Unknown("the API answers 503".to_owned()), "(the API answers 503)"),
        (Fact::Absent, "is not known"),
        (Fact::NotAsked, "is not known"),
    ] {
        let facts = ClusterFacts { jobs, ..blank() };
        assert!(refusal(&openshift, &facts, "operator").contains(words));
        assert_eq!(openshift.steps(&facts).len(), 1, "nothing else is done");
    }
}

#[test]
fn whose_fencing_waits_is_the_preferred_nodes() {
    let mut variant = promotable();
    for (preferred, delays) in [("node1", ["10s", "1s"]), ("node2", ["1s", "10s"])] {
        variant.description.preferred = preferred.to_owned();
        for (node, delay) in ["node1", "node2"].into_iter().zip(delays) {
            let commands = to_do(&variant, &blank(), &format!("fence-{node}"));
            assert!(commands[0].ends_with(&format!("pcmk_delay_base={delay}")), "{preferred}: {commands:?}");
        }
    }
}

/// Asserts the fencing delays that `tandem setup` derives from the delay in the description. A long delay also raises
/// `priority-fencing-delay`, so that the delay of a learner's node does not outweigh that of the voter's node.
#[test]
fn how_long_the_preferred_nodes_fencing_waits_is_described() {
    let mut variant = promotable();
    variant.description.fencing_delay = Duration::from_secs(20);
    for (node, delay) in [("node1", "20s"), ("node2", "1s")] {
        let commands = to_do(&variant, &blank(), &format!("fence-{node}"));
        assert!(commands[0].ends_with(&format!("pcmk_delay_base={delay}")), "{commands:?}");
    }
    let properties = |seconds: u64| {
        let mut variant = promotable();
        variant.description.fencing_delay = Duration::from_secs(seconds);
        to_do(&variant, &blank(), "properties")[0].clone()
    };
    for (seconds, priority) in [(5, "15s"), (10, "15s"), (20, "30s"), (60, "90s")] {
        assert!(
            properties(seconds).ends_with(&format!("priority-fencing-delay={priority}")),
            "{}",
            properties(seconds)
        );
    }
}

#[test]
fn a_race_takes_the_place_of_the_delays() {
    let mut variant = promotable();
    variant.description.race = true;
    let own = &mut variant.description.nodes[0].bmc;
    own.options.push(("ssl_fingerprint".to_owned(), "AB:CD,EF:01".to_owned()));
    own.password_file = "/etc/tandem/other".into();
    let of = |node: &str| to_do(&variant, &blank(), &format!("fence-{node}"))[0].clone();
    let own = "pcmk_delay_base=0 race_with=10.98.0.102,systems_uri=/redfish/v1/Systems/1,password_file=";
    assert!(of("node1").contains(own), "{}", of("node1"));
    let pinned = "race_with=10.98.0.101,systems_uri=/redfish/v1/Systems/1,fingerprint=AB:CD,fingerprint=EF:01,\
                  password_file=/etc/tandem/other";
    assert!(
        of("node2").contains(pinned) && of("node2").ends_with("race_preferred=node1 race_delay=10"),
        "{}",
        of("node2")
    );
}

#[test]
fn files_are_read_as_they_are() {
    assert!(parse_cib(EMPTY).is_ok() && parse_cib("half").is_err());
    assert!(!parse_corosync(&ours()).is_example());
}
