mod alike;
mod delays;

use super::*;
use crate::adapters::openshift::remediation::Kind;
use crate::adapters::pacemaker::seen::{Failure, Instance, Pacemaker};
use crate::operate::cluster::{Etcd, Member, SecretSeen};

/// Returns a healthy cluster of two nodes, each with a device that fences it.
pub(crate) fn healthy() -> Cluster {
    serde_json::from_str(include_str!("../../../../tests/data/fixtures/fencing/healthy.json")).unwrap()
}

/// Returns answers of both nodes' BMCs without a fault, as node1 receives them.
pub(crate) fn asked() -> Asked {
    let answer = |number: u64, target: &str| Answer {
        device: format!("fence-{target}"),
        target: target.to_owned(),
        note: BmcNote {
            address: format!("198.51.100.{number}"),
            system: "/redfish/v1/Systems/1".to_owned(),
            at: healthy().at,
            millis: 640,
            uuid: Some(format!("4c4c4544-003{number}-3510-8054-b4c04f303158")),
            power: Some("On".to_owned()),
            reset_types: Some(["On", "ForceOff", "ForceRestart"].map(str::to_owned).to_vec()),
            restore_policy: Some("LastState".to_owned()),
            certificate_ends: Some(healthy().at + 400 * 86_400),
            fingerprint: Some("AB:CD".to_owned()),
            clock_ahead: Some(-1),
            millis_to_off: Some(6_200),
            ..BmcNote::default()
        },
        role: Some("Operator".to_owned()),
        may_reset: Some(true),
        locked: false,
        flag: Some(Flag::SessionWithContext),
        misconfigured: false,
    };
    Asked { answers: vec![answer(1, "node1"), answer(2, "node2")], attached_hosts: Fact::Absent, ..Asked::default() }
}

fn known<T>(fact: &mut Fact<T>) -> &mut T {
    match fact {
        Fact::Known(value) => value,
        _ => panic!("not known"),
    }
}

fn pacemaker(cluster: &mut Cluster) -> &mut Pacemaker {
    known(&mut cluster.pacemaker)
}

fn configuration(cluster: &mut Cluster) -> &mut Configuration {
    known(&mut cluster.configuration)
}

/// Returns the device that fences node2, so that a test can change it.
fn device(cluster: &mut Cluster) -> &mut FenceDevice {
    configuration(cluster).fence_devices.iter_mut().find(|device| device.resource.id == "fence-node2").unwrap()
}

fn instance(cluster: &mut Cluster) -> &mut Instance {
    pacemaker(cluster).resources.iter_mut().find(|one| one.id == "fence-node2").unwrap()
}

fn set(cluster: &mut Cluster, name: &str, value: &str) {
    device(cluster).resource.parameters.insert(name.to_owned(), value.to_owned());
}

/// Configures a fence race on both devices, without a delay.
fn race(cluster: &mut Cluster) {
    for (device, own) in configuration(cluster).fence_devices.iter_mut().zip(["198.51.100.2", "198.51.100.1"]) {
        for (name, value) in [("race_with", own), ("race_preferred", "node1"), ("pcmk_delay_base", "0")] {
            device.resource.parameters.insert(name.to_owned(), value.to_owned());
        }
    }
}

fn property(cluster: &mut Cluster, name: &str, value: &str) {
    configuration(cluster).properties.insert(name.to_owned(), value.to_owned());
}

/// Returns the answer of node2's BMC in `asked`, so that a test can change it.
fn answer(asked: &mut Asked) -> &mut Answer {
    &mut asked.answers[1]
}

fn collected<'a>(cluster: &'a mut Cluster, node: &str) -> &'a mut crate::operate::cluster::Collected {
    known(cluster.collected.get_mut(node).unwrap())
}

/// Returns one object of the kind `kind`, by which another Kubernetes operator may reset node2.
fn remediations(kind: Kind, namespace: Option<&str>, name: &str, is_paused: bool) -> Fact<Vec<Remediation>> {
    let (namespace, nodes) = (namespace.map(str::to_owned), vec!["node2".to_owned()]);
    Fact::Known(vec![Remediation { kind, namespace, name: name.to_owned(), nodes, is_paused }])
}

/// A fault that tests make with the function. The other fields are the id, the level and a part of the command of the one problem that
/// must follow.
type Planted = (&'static str, Level, &'static str, fn(&mut Cluster, &mut Asked));

#[rustfmt::skip]
const PLANTED: &[Planted] = &[
    ("stonith-disabled", Level::Failure, "stonith-enabled=true", |cluster, _| property(cluster, "stonith-enabled", "False")),
    ("fence-device-missing", Level::Failure, "pcs stonith create", |cluster, asked| {
        configuration(cluster).fence_devices.retain(|device| device.resource.id != "fence-node2");
        asked.answers.pop();
    }),
    ("fence-device-disabled", Level::Failure, "pcs stonith enable fence-node2", |cluster, _| {
        device(cluster).resource.meta.insert("target-role".to_owned(), "Stopped".to_owned());
    }),
    ("device-banned", Level::Failure, "pcs constraint location", |cluster, _| device(cluster).banned_from.push("node1".to_owned())),
    ("options-wrong", Level::Failure, "pcs stonith config fence-node2", |_, asked| {
        let answer = answer(asked);
        (answer.misconfigured, answer.note.failure) = (true, Some("system_uuid=X is no UUID".to_owned()));
    }),
    ("fence-device-stopped", Level::Warning, "cleanup fence-node2", |cluster, _| {
        let one = instance(cluster);
        (one.active, one.role) = (false, "Stopped".to_owned());
    }),
    ("fence-device-failed", Level::Warning, "cleanup fence-node2", |cluster, _| {
        let failure = Failure { resource: "fence-node2".to_owned(), task: "monitor".to_owned(), ..Failure::default() };
        pacemaker(cluster).failures.push(failure);
        instance(cluster).active = false;
    }),
    ("fence-device-blocked", Level::Warning, "cleanup fence-node2", |cluster, _| instance(cluster).blocked = true),
    ("fence-device-unmanaged", Level::Warning, "pcs resource manage", |cluster, _| instance(cluster).managed = false),
    ("password-copies", Level::Warning, "ssh -t node2 tandem fencing update node2", |cluster, _| {
        set(cluster, "password_file", "/etc/tandem/bmc-node2");
        let copy = |lines: &[&str]| [("fence-node2".to_owned(), lines.iter().map(|line| (*line).to_owned()).collect())].into();
        collected(cluster, "node1").passwords = copy(&["0a", "0b"]);
        collected(cluster, "node2").passwords = copy(&["0a"]);
    }),
    ("password-copies", Level::Warning, "ssh -t node1 tandem fencing update node2", |cluster, _| {
        set(cluster, "password_file", "/etc/tandem/bmc-node2");
        let copy = |lines: &[&str]| [("fence-node2".to_owned(), lines.iter().map(|line| (*line).to_owned()).collect())].into();
        collected(cluster, "node1").passwords = copy(&[""]);
        collected(cluster, "node2").passwords = copy(&["", ""]);
    }),
    ("password-staged", Level::Notice, "tandem fencing update node2", |cluster, _| {
        set(cluster, "password_file", "/etc/tandem/bmc-node2");
        for node in ["node1", "node2"] {
            collected(cluster, node).passwords = [("fence-node2".to_owned(), vec!["0a".to_owned(), "0b".to_owned()])].into();
        }
    }),
    ("fencing-secret-differs", Level::Warning, "tandem fencing update node2 --from-secret", |cluster, _| {
        let seen = SecretSeen { at: cluster.at, differs: vec!["password".to_owned()], looks: 2 };
        collected(cluster, "node1").secrets = [("fence-node2".to_owned(), seen)].into();
    }),
    ("not-bound", Level::Warning, "pcmk_host_list", |cluster, _| device(cluster).targets.clear()),
    ("no-such-node", Level::Warning, "pcmk_host_list", |cluster, _| device(cluster).targets.push("node22".to_owned())),
    ("bmc-check-failed", Level::Failure, "tandem fencing update node2", |_, asked| answer(asked).note.failure = Some("unable to log in".to_owned())),
    ("bmc-other-machine", Level::Failure, "system_uuid=4c4c4544-0032-", |_, asked| {
        answer(asked).note.uuid = Some("4c4c4544-0033-3510-8054-b4c04f303158".to_owned());
    }),
    ("no-system-uuid", Level::Warning, "system_uuid=4c4c4544-0032-", |cluster, _| set(cluster, "system_uuid", "")),
    ("bmc-says-off", Level::Failure, "ip=ADDRESS", |_, asked| answer(asked).note.power = Some("Off".to_owned())),
    ("bmc-contradiction", Level::Warning, "tandem power status node2", |_, asked| {
        answer(asked).note.chassis_on = Some("/redfish/v1/Chassis/1".to_owned());
    }),
    ("may-not-reset", Level::Failure, "tandem fencing update node2 --username NAME", |_, asked| {
        (answer(asked).role, answer(asked).may_reset) = (Some("ReadOnly".to_owned()), Some(false));
    }),
    ("account-locked", Level::Warning, "tandem fencing update node2", |_, asked| answer(asked).locked = true),
    ("reset-types", Level::Warning, "fencing test node2", |_, asked| {
        answer(asked).note.reset_types = Some(vec!["On".to_owned(), "GracefulShutdown".to_owned()]);
    }),
    ("certificate-ended", Level::Failure, "tandem fencing update node2 --ssl-fingerprint SHA256", |cluster, asked| {
        answer(asked).note.certificate_ends = Some(cluster.at - 1);
    }),
    ("certificate-ends-soon", Level::Warning, "tandem fencing update node2 --ssl-fingerprint SHA256", |cluster, asked| {
        answer(asked).note.certificate_ends = Some(cluster.at + 6 * 86_400);
    }),
    ("certificate-ends", Level::Notice, "tandem fencing update node2 --ssl-fingerprint SHA256", |cluster, asked| {
        answer(asked).note.certificate_ends = Some(cluster.at + 29 * 86_400);
    }),
    ("not-verified", Level::Warning, "tandem fencing update node2 --ssl-fingerprint SHA256", |cluster, _| set(cluster, "ssl_insecure", "1")),
    ("bmc-clock", Level::Warning, "sel time set", |_, asked| answer(asked).note.clock_ahead = Some(-3_600)),
    ("slow-answer", Level::Warning, "pcmk_monitor_timeout", |_, asked| answer(asked).note.millis = 12_000),
    ("slow-off", Level::Warning, "pcmk_reboot_timeout", |cluster, _| set(cluster, "pcmk_off_timeout", "8s")),
    ("delays", Level::Warning, "pcmk_delay_base", |cluster, _| set(cluster, "pcmk_delay_base", "10s")),
    ("delays-against-primary", Level::Warning, "pcs stonith update fence-node2 pcmk_delay_base=", |cluster, _| {
        let etcd = configuration(cluster).etcd.as_mut().unwrap();
        etcd.parameters.insert("configured_primary".to_owned(), "node2".to_owned());
    }),
    ("race", Level::Warning, "fence-node1 race_with=198.51.100.2 race_preferred=NODE", |cluster, _| {
        set(cluster, "race_with", "198.51.100.1");
    }),
    ("race-preferred", Level::Warning, "fence-node2 race_preferred=node1", |cluster, _| {
        race(cluster);
        set(cluster, "race_preferred", "node2");
    }),
    ("race-address", Level::Warning, "fence-node2 race_with=198.51.100.1", |cluster, _| {
        race(cluster);
        set(cluster, "race_with", "198.51.100.9,username=tandem");
    }),
    ("race-user", Level::Warning, "fence-node2 race_with=ADDRESS,username=tandem", |cluster, _| {
        race(cluster);
        set(cluster, "race_with", "198.51.100.1,username=other");
    }),
    ("restore-policy", Level::Warning, "chassis policy", |_, asked| {
        answer(asked).note.restore_policy = Some("AlwaysOff".to_owned());
    }),
    ("one-network", Level::Warning, "ip route get 198.51.100.2", |cluster, _| {
        collected(cluster, "node1").routes.insert("198.51.100.2".to_owned(), "eth0".to_owned());
    }),
    ("not-two-voters", Level::Warning, "tandem status", |cluster, _| {
        for etcd in cluster.etcd.values_mut() {
            known(etcd).members.iter_mut().filter(|one| one.name == "node2").for_each(|one| one.learner = true);
        }
    }),
    ("node-offline", Level::Warning, "pcs cluster start node2", |cluster, _| pacemaker(cluster).nodes[1].online = false),
    ("node-pending", Level::Warning, "pcs status", |cluster, _| pacemaker(cluster).nodes[1].pending = true),
    ("node-unclean", Level::Failure, "tandem status --watch", |cluster, _| {
        let node = &mut pacemaker(cluster).nodes[1];
        (node.online, node.unclean) = (false, true);
    }),
    ("node-stop-failed", Level::Failure, "pcs stonith history show node2", |cluster, _| pacemaker(cluster).nodes[1].unclean = true),
    ("not-enabled", Level::Warning, "systemctl enable pcsd", |cluster, _| {
        collected(cluster, "node2").enabled.insert("pcsd".to_owned(), false);
    }),
    ("collector-missing", Level::Notice, "ssh node2 systemctl enable --now tandem-collect.timer", |cluster, _| {
        cluster.collected.insert("node2".to_owned(), Fact::Absent);
    }),
    ("collector-unknown", Level::Notice, "attrd_updater", |cluster, _| {
        cluster.collected.insert("node2".to_owned(), Fact::Unknown("timed out".to_owned()));
    }),
    ("collector-stale", Level::Notice, "ssh node2 systemctl status", |cluster, _| collected(cluster, "node2").at -= 400),
    ("host-not-detached", Level::Warning, "detached=", |_, asked| asked.attached_hosts = Fact::Known(vec!["node1".to_owned()])),
    ("hosts-not-known", Level::Warning, "get baremetalhost", |_, asked| {
        asked.attached_hosts = Fact::Unknown("the API answers 403".to_owned());
    }),
    ("other-remediation", Level::Warning, "patch nodehealthcheck masters --type merge", |_, asked| {
        asked.remediations = remediations(Kind::NodeHealthCheck, None, "masters", false);
    }),
    ("other-remediation", Level::Warning, "-n openshift-machine-api annotate machinehealthcheck masters cluster.x-k8s.io/paused=", |_, asked| {
        asked.remediations = remediations(Kind::MachineHealthCheck, Some("openshift-machine-api"), "masters", false);
    }),
    ("other-remediation", Level::Warning, "-n workload delete selfnoderemediationconfig config", |_, asked| {
        asked.remediations = remediations(Kind::SelfNodeRemediationConfig, Some("workload"), "config", false);
    }),
    ("other-remediation", Level::Notice, "get nodehealthcheck masters", |_, asked| {
        asked.remediations = remediations(Kind::NodeHealthCheck, None, "masters", true);
    }),
    ("other-remediation", Level::Notice, "-n openshift-machine-api get machinehealthcheck masters", |_, asked| {
        asked.remediations = remediations(Kind::MachineHealthCheck, Some("openshift-machine-api"), "masters", true);
    }),
    ("remediation-under-way", Level::Failure, "-n workload delete fenceagentsremediation node2", |_, asked| {
        asked.remediations = remediations(Kind::FenceAgentsRemediation, Some("workload"), "node2", false);
    }),
    ("remediation-under-way", Level::Failure, "-n workload delete selfnoderemediation node2", |_, asked| {
        asked.remediations = remediations(Kind::SelfNodeRemediation, Some("workload"), "node2", false);
    }),
    ("remediation-not-known", Level::Warning, "get nodehealthchecks", |_, asked| {
        asked.remediations = Fact::Unknown("the API answers 403".to_owned());
    }),
    ("bmc-check-failed", Level::Failure, "ssh node2 tandem fencing check fence-node1", |cluster, _| {
        let at = cluster.at;
        let note = &mut collected(cluster, "node2").bmcs[0];
        (note.failure, note.at) = (Some("no answer".to_owned()), at - 50);
    }),
    ("not-asked", Level::Unknown, "pcs stonith status", |cluster, asked| {
        device(cluster).resource.agent = "stonith:fence_ipmilan".to_owned();
        asked.answers.pop();
    }),
    ("pacemaker-stopped", Level::Warning, "pcs cluster start", |cluster, _| cluster.pacemaker = Fact::Absent),
    ("pacemaker-starting", Level::Warning, "tandem status --watch", |cluster, _| {
        (cluster.pacemaker, cluster.is_starting) = (Fact::Absent, true);
    }),
    ("pacemaker-unknown", Level::Unknown, "pcs status", |cluster, _| cluster.pacemaker = Fact::Unknown("timed out".to_owned())),
    ("cib-unknown", Level::Unknown, "cibadmin --query", |cluster, _| cluster.configuration = Fact::Unknown("timed out".to_owned())),
    ("quorum-unknown", Level::Unknown, "corosync-quorumtool -s", |cluster, _| cluster.quorum = Fact::Unknown("timed out".to_owned())),
    ("no-quorum", Level::Failure, "corosync-quorumtool -s", |cluster, _| known(&mut cluster.quorum).quorate = false),
    ("waits-for-peer", Level::Failure, "node2", |cluster, _| {
        let quorum = known(&mut cluster.quorum);
        (quorum.quorate, quorum.waits_for_all) = (false, true);
    }),
];

/// Pairs of a problem and a second problem that the same fault causes.
const BESIDE: &[(&str, &str)] = &[("slow-off", "delays")];

#[test]
fn each_planted_fault_is_found_with_what_mends_it_and_nothing_else_is() {
    assert!(PLANTED.len() >= 20);
    for (id, level, command, plant) in PLANTED {
        let (mut cluster, mut asked) = (healthy(), asked());
        plant(&mut cluster, &mut asked);
        let checked = check(&cluster, &asked, None);
        let ids: Vec<&str> = checked.findings.iter().map(|finding| finding.id).collect();
        let found = checked.findings.iter().find(|finding| finding.id == *id);
        let found = found.unwrap_or_else(|| panic!("{id} was not found, but {ids:?}"));
        assert_eq!((Level::of(found), checked.level), (*level, *level), "{id}: {ids:?}");
        assert!(found.command.as_ref().is_some_and(|typed| typed.contains(command)), "{found:?}");
        for typed in checked.findings.iter().filter_map(|finding| finding.command.as_ref()) {
            assert!(crate::base::shell::split(typed).is_some(), "a shell would not only split this: {typed}");
            assert!(!typed.contains("AB:CD"), "a fingerprint that was only seen, ready to be pasted: {typed}");
        }
        let others = ids.iter().filter(|other| *other != id && !BESIDE.contains(&(*id, **other)));
        assert_eq!(others.count(), 0, "{id} is told as {ids:?} as well");
        let about = (found.node.as_ref(), found.device.as_ref());
        let standing = about.0.and_then(|node| checked.nodes.get(node)).or_else(|| checked.devices.get(about.1?));
        if let Some(standing) = standing {
            assert_eq!(standing.level, *level, "{id}");
        }
    }
}

/// Asserts that a certificate or UUID that only the BMC presented must be compared first. Any server at its address can present them.
#[test]
fn what_was_only_seen_is_to_be_compared() {
    let (mut cluster, mut asked) = (healthy(), asked());
    answer(&mut asked).note.failure = Some("the certificate is not the pinned one".to_owned());
    let found = &check(&cluster, &asked, None).findings[0];
    assert!(found.text.ends_with("; it shows the fingerprint AB:CD: compare it at the BMC itself"), "{found:?}");
    assert_eq!(found.command.as_deref(), Some("tandem fencing update node2 --ssl-fingerprint SHA256"));
    asked = self::asked();
    set(&mut cluster, "system_uuid", "");
    collected(&mut cluster, "node2").dmi_uuid = None;
    let theirs = answer(&mut asked).note.uuid.clone().unwrap();
    let found = &check(&cluster, &asked, None).findings[0];
    let compared = format!(
        "; its BMC shows the UUID {theirs}: 'cat /sys/class/dmi/id/product_uuid' on node2 has to show the same one"
    );
    assert!(found.text.ends_with(&compared), "{found:?}");
    assert_eq!(found.command, Some(format!("pcs stonith update fence-node2 system_uuid={theirs}")));
}

/// Asserts that no command sets a `system_uuid` that the BMC does not report. With it the device would refuse every action.
#[test]
fn no_command_sets_a_uuid_that_the_bmc_does_not_show() {
    let mut cluster = healthy();
    set(&mut cluster, "system_uuid", "");
    for shown in [None, Some(""), Some("None"), Some("00000000-0000-0000-0000-000000000000")] {
        let mut asked = asked();
        answer(&mut asked).note.uuid = shown.map(str::to_owned);
        let findings = check(&cluster, &asked, None).findings;
        let found = findings.iter().find(|one| one.id == "no-system-uuid").unwrap();
        assert!(found.text.ends_with("; which UUID it has, its BMC has not shown"), "{found:?}");
        assert_eq!(found.command, None);
    }
}

#[test]
fn of_a_healthy_cluster_nothing_is_said() {
    let checked = check(&healthy(), &asked(), None);
    assert_eq!((checked.level, checked.findings), (Level::Ok, Vec::new()));
    assert_eq!(checked.nodes["node2"].text, "can be fenced by fence-node2");
    let told = "198.51.100.2 answered in 640 ms and says On; 6.2 s to Off when it was last measured";
    assert_eq!(checked.devices["fence-node2"].text, told);
}

/// Asserts that a disabled device that fences both nodes is reported as a failure of both.
#[test]
fn a_device_for_both_nodes_fails_for_both() {
    let (mut cluster, asked) = (healthy(), asked());
    let devices = &mut configuration(&mut cluster).fence_devices;
    devices.remove(0);
    devices[0].targets = vec!["node1".to_owned(), "node2".to_owned()];
    devices[0].banned_from.clear();
    devices[0].resource.meta.insert("target-role".to_owned(), "Stopped".to_owned());
    let checked = check(&cluster, &asked, None);
    let text = "the fence device fence-node2 is disabled, so node1 and node2 could not be fenced";
    let failed = Standing { level: Level::Failure, text: text.to_owned() };
    assert_eq!((&checked.nodes["node1"], &checked.nodes["node2"]), (&failed, &failed));
}

#[test]
fn one_device_is_asked_about_alone() {
    let (mut cluster, asked) = (healthy(), asked());
    property(&mut cluster, "stonith-enabled", "false");
    set(&mut cluster, "ssl_insecure", "1");
    let ids = |device| check(&cluster, &asked, Some(device)).findings.iter().map(|one| one.id).collect::<Vec<_>>();
    assert_eq!(ids("fence-node2"), ["not-verified"]);
    assert_eq!(ids("fence-node1"), [""; 0]);
}

/// Asserts that a node's failure to reach its own BMC is less serious while the other node reaches that BMC. Only the other node would
/// fence through it.
#[test]
fn a_nodes_own_bmc_is_judged_by_who_would_have_to_fence_it() {
    let (mut cluster, mut asked) = (healthy(), asked());
    asked.answers[0].note.failure = Some("no route to host".to_owned());
    let level = |cluster: &Cluster, asked: &Asked| check(cluster, asked, None).level;
    let at = cluster.at;
    let note = &mut collected(&mut cluster, "node2").bmcs[0];
    (note.at, note.failure) = (at - 30, None);
    assert_eq!(level(&cluster, &asked), Level::Warning);
    collected(&mut cluster, "node2").bmcs[0].at = at - 3_600;
    assert_eq!(level(&cluster, &asked), Level::Failure, "an hour ago is not now");
}

#[test]
fn what_was_not_measured_and_what_nobody_tells_is_no_fault() {
    let (mut cluster, mut asked) = (healthy(), asked());
    for answer in &mut asked.answers {
        let note = &mut answer.note;
        (answer.role, answer.may_reset, note.millis_to_off) = (None, None, None);
        (note.reset_types, note.restore_policy, note.clock_ahead, note.certificate_ends) = (None, None, None, None);
    }
    for node in ["node1", "node2"] {
        let collected = collected(&mut cluster, node);
        (collected.dmi_uuid, collected.routes) = (None, BTreeMap::new());
        collected.bmcs.clear();
        collected.enabled.clear();
    }
    assert_eq!(check(&cluster, &asked, None).findings, []);
    // Two equal delays are a fault even without a measurement.
    set(&mut cluster, "pcmk_delay_base", "node1:10s;node2:10000ms");
    assert_eq!(check(&cluster, &asked, None).findings[0].id, "delays");
}

#[test]
fn dates_of_a_certificate_that_is_pinned_do_not_matter() {
    let (mut cluster, mut asked) = (healthy(), asked());
    answer(&mut asked).note.certificate_ends = Some(7);
    set(&mut cluster, "ssl_fingerprint", "AB:CD");
    assert_eq!(check(&cluster, &asked, None).findings, []);
}

#[test]
fn who_votes_is_the_word_of_the_newest_term() {
    let mut cluster = healthy();
    let member = |name: &str| Member { name: name.to_owned(), ..Member::default() };
    let old = Etcd { term: 1, members: vec![member("node1")], leader: Some("1".to_owned()), ..Etcd::default() };
    cluster.etcd.insert("node1".to_owned(), Fact::Known(old));
    assert_eq!(voters_of(&cluster).unwrap().len(), 2);
    cluster.etcd.clear();
    assert_eq!(voters_of(&cluster), None);
}
