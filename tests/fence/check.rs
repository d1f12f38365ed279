//! `tandem fencing check` on emulated BMCs: the fence agent's library queries one, and the rules judge the answer.

#![allow(clippy::unwrap_used, reason = "what fails here ends the test")]

use std::time::Duration;

use tandem::base::Fact;
use tandem::fence::examine;
use tandem::operate::cluster::Cluster;
use tandem::operate::health::fencing::{self, Answer, Asked, Checked, Level};
use tandem::records::bmc_note::BmcNote;

use crate::bmc::agent::Call;
use crate::bmc::{CertificateKind, Fault, Listening, Misbehaviour, Server, Setup, System, World, at_once};

const DEVICE: &str = "fence-node2";
const PASSWORD: &str = "s3cret-pass";

/// Returns a cluster of two healthy nodes. The emulated BMC controls node2's machine.
fn cluster() -> Cluster {
    let mut cluster: Cluster = serde_json::from_str(include_str!("../data/fixtures/fencing/healthy.json")).unwrap();
    let Some(Fact::Known(collected)) = cluster.collected.get_mut("node2") else { panic!("nothing of node2") };
    collected.dmi_uuid = System::new("1").uuid.as_str().map(str::to_owned);
    cluster
}

/// Returns the findings of `tandem fencing check` about node2's device, with the options of `call`. Also returns all that was
/// found, as text.
fn checked(cluster: &Cluster, call: &Call) -> (Checked, String) {
    let found =
        examine::device_within(examine::LONGEST, true, &call.clone().without("action").input(), Some("node2"), None);
    let answer = Answer {
        device: DEVICE.to_owned(),
        target: "node2".to_owned(),
        // The cluster was observed right before, at its own time.
        note: BmcNote { at: cluster.at, ..found.note },
        role: found.role,
        may_reset: found.may_reset,
        locked: found.locked,
        flag: found.flag,
        misconfigured: found.misconfigured,
    };
    let asked = Asked { answers: vec![answer], attached_hosts: Fact::Absent, ..Asked::default() };
    let checked = fencing::check(cluster, &asked, Some(DEVICE));
    let all = serde_json::to_string(&checked).unwrap() + &serde_json::to_string(&asked.answers).unwrap();
    (checked, all)
}

fn ids(checked: &Checked) -> Vec<&'static str> {
    checked.findings.iter().map(|finding| finding.id).collect()
}

fn with(change: impl FnOnce(&mut System)) -> Server {
    let mut system = System::new("1");
    change(&mut system);
    Server::with_world(World::of(vec![system]))
}

fn listening(listening: Listening, certificate: CertificateKind) -> Server {
    Server::with(World::one_system(), Setup { listening, certificate, ..Setup::default() })
}

#[test]
fn of_a_bmc_that_is_well_nothing_is_said_and_nothing_is_posted() {
    for role in ["Administrator", "Operator", "SomethingOfTheirOwn"] {
        let server = Server::with_world(World::one_system().with_role(role));
        let (checked, _) = checked(&cluster(), &Call::new(&server, "monitor"));
        assert_eq!((checked.level, ids(&checked)), (Level::Ok, vec![]), "{role}");
        assert!(checked.devices[DEVICE].text.contains("says On"), "{checked:?}");
        let requests = server.requests();
        let is_harmless =
            |request: &String| request.starts_with("GET ") || request.ends_with("SessionService/Sessions");
        assert!(requests.iter().all(is_harmless) && server.posted().is_empty(), "{requests:?}");
    }
}

/// A planted fault: the id of the finding, words of its sentence or command, the emulated BMC, and the change of the device's
/// options.
type Planted = (&'static str, &'static str, fn() -> Server, fn(Call) -> Call);

#[rustfmt::skip]
const PLANTED: &[Planted] = &[
    ("bmc-check-failed", "tandem fencing update node2", Server::start, |call| call.set("password", "an-older-one")),
    ("bmc-check-failed", "no/such/file", Server::start, |call| call.without("password").set("password_file", "/no/such/file")),
    ("options-wrong", "username is missing", Server::start, |call| call.without("username")),
    ("bmc-check-failed", "another machine's", Server::start, |call| call.set("system_uuid", "11111111-2222-3333-4444-555555555555")),
    ("bmc-check-failed", "no system here is called", || Server::with_world(World::of(vec![System::new("a"), System::new("b")])), |call| call.set("plug", "c")),
    ("bmc-check-failed", "certificate", || listening(Listening::Tls, CertificateKind::Expired), |call| call),
    ("bmc-check-failed", "certificate", || listening(Listening::Tls, CertificateKind::WrongName), |call| call),
    ("bmc-check-failed", "--ssl-fingerprint SHA256", Server::start, |call| call.without("ssl_ca_file").set("ssl_fingerprint", &"00".repeat(32))),
    ("bmc-check-failed", "curl", || listening(Listening::Silence, CertificateKind::Good), |call| call.set("action_timeout", "3")),
    ("bmc-check-failed", "curl", Server::start, |call| call.set("ipport", "1")),
    ("bmc-check-failed", "503", || Server::with_world(World::one_system().with(Fault::always("GET", "", Misbehaviour::Status(503, String::new())))), |call| call.set("action_timeout", "5")),
    ("bmc-check-failed", "offers no Reset action", || with(|system| system.can_reset = false), |call| call),
    ("bmc-other-machine", "system_uuid=", || with(|system| system.uuid = "11111111-2222-3333-4444-555555555555".into()), |call| call),
    ("bmc-says-off", "ip=ADDRESS", || with(|system| system.power = "Off".into()), |call| call),
    ("may-not-reset", "ReadOnly", || Server::with_world(World::one_system().with_role("ReadOnly")), |call| call),
    ("reset-types", "ForceOff", || with(|system| system.allowed = Some(vec!["On", "GracefulShutdown"])), |call| call),
    ("reset-types", "On, which", || with(|system| system.allowed = Some(vec!["ForceOff"])), |call| call),
    ("restore-policy", "chassis policy", || with(|system| system.restore_policy = Some("AlwaysOff")), |call| call),
    ("bmc-clock", "behind this node's", || Server::with_world(World { date: Some("Thu, 01 Jan 1970 00:00:10 GMT".to_owned()), ..World::one_system() }), |call| call),
    ("slow-answer", "the monitor's timeout", || Server::with_world(World::one_system().with(Fault::once("GET", "Systems/1", Misbehaviour::Late(Duration::from_millis(2_500))))), |call| call),
];

#[test]
fn each_planted_fault_of_a_bmc_is_found_and_no_secret_is_shown() {
    at_once(PLANTED, |(id, words, server, options)| {
        let server = server();
        let call = options(Call::new(&server, "monitor"));
        let mut cluster = cluster();
        if *id == "slow-answer" {
            set_monitor_timeout(&mut cluster, 4_000);
        }
        let (checked, all) = checked(&cluster, &call);
        // An expired certificate makes the query fail, and is a problem of its own.
        let found: Vec<&str> = ids(&checked).into_iter().filter(|found| *found != "certificate-ended").collect();
        assert_eq!(found, [*id], "{words}: {all}");
        let finding = &checked.findings[0];
        let told = format!("{} {}", finding.text, finding.command.clone().unwrap_or_default());
        assert!(told.contains(words), "no '{words}' in: {told}");
        for secret in [PASSWORD, "an-older-one", "YWRtaW46"] {
            assert!(!all.contains(secret), "{secret} is in {all}");
        }
        assert!(server.posted().is_empty());
    });
}

fn set_monitor_timeout(cluster: &mut Cluster, millis: u64) {
    let Fact::Known(configuration) = &mut cluster.configuration else { panic!("no configuration") };
    let device = configuration.fence_devices.iter_mut().find(|device| device.resource.id == DEVICE).unwrap();
    device.resource.operations = vec![("monitor".to_owned(), 60_000, millis)];
}

/// Asserts that no password gets into the findings, although the BMC sends back the whole request in its errors.
#[test]
fn what_a_bmc_sends_back_of_a_secret_is_in_no_answer() {
    for (path, status) in [("Systems", 400), ("Systems", 403), ("Accounts", 400)] {
        let world =
            World::one_system().with_role("Operator").with(Fault::always("GET", path, Misbehaviour::Echo(status)));
        let server = Server::with_world(world);
        let (_, all) = checked(&cluster(), &Call::new(&server, "monitor").set("action_timeout", "5"));
        assert!(!all.contains(PASSWORD) && !all.contains("YWRtaW46"), "{all}");
    }
}

/// Asserts that a device is asked for the system of the node if it has a map from nodes to systems.
#[test]
fn a_node_is_looked_for_under_its_plug() {
    let server = Server::with_world(World::of(vec![System::new("a"), System::new("b")]));
    let options = Call::new(&server, "monitor").without("action").set("plug", "dynamic").input();
    let note: BmcNote = examine::device(&options, Some("node2"), Some("b")).note;
    assert_eq!((note.failure, note.system.as_str()), (None, "/redfish/v1/Systems/b"));
    let failed = examine::device(&options, Some("node2"), None).note.failure.unwrap();
    assert!(failed.contains("2 systems that can be reset"), "{failed}");
}
