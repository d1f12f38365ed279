//! The monitor's note about a BMC, which takes no additional time.

#![allow(clippy::unwrap_used, reason = "what fails here ends the test")]

use std::path::Path;
use std::time::Duration;

use tandem::fence::config::{Action, Config, Environment};
use tandem::fence::{self, Curiosity, Run, input, note};
use tandem::os::clock;
use tandem::records::bmc_note::{self, BmcNote};

use crate::bmc::agent::Call;
use crate::bmc::model::Access;
use crate::bmc::{Fault, Misbehaviour, Server, System, World};

const WHO: Curiosity = Curiosity { account: true, flag: false };

/// Performs the fence action of `call`, and stores what it learned about the BMC in `directory`.
fn kept(call: &Call, action: &str, directory: &Path) -> Run {
    let given = input::from_lines(&call.clone().set("action_timeout", "10").input());
    let config = Config::read(Action::parse(Some(action)).unwrap(), &given, Environment::default()).unwrap();
    let run = fence::run_and_note(&config, None, |_| {});
    // Without the time limit of `note::keep`, which a busy disk exceeds.
    note::write_all(directory, &run.notes, false);
    run
}

fn read(directory: &Path, server: &Server, system: &str) -> BmcNote {
    let address = format!("{}:{}", server.address, server.port);
    let text = std::fs::read(bmc_note::path(directory, &address, system)).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// Returns the time `ahead` seconds from now, in the format of an HTTP header.
fn date(ahead: i64) -> String {
    let at = i64::try_from(clock::wall_seconds()).unwrap() + ahead;
    let at = time::OffsetDateTime::from_unix_timestamp(at).unwrap();
    let (weekday, month) = (at.weekday().to_string(), at.month().to_string());
    let (hour, minute, second) = at.to_hms();
    let (weekday, month) = (&weekday[..3], &month[..3]);
    format!("{weekday}, {:02} {month} {} {hour:02}:{minute:02}:{second:02} GMT", at.day(), at.year())
}

#[test]
fn a_monitor_notes_what_its_three_requests_tell_and_sends_no_other() {
    let mut system = System::new("1");
    system.last_reset = Some("2026-11-22T03:04:05Z".to_owned());
    system.restore_policy = Some("LastState");
    let server = Server::with_world(World { date: Some(date(4_000)), ..World::of(vec![system]) });
    let directory = tempfile::tempdir().unwrap();
    let before = clock::wall_seconds();
    kept(&Call::new(&server, "monitor"), "monitor", directory.path()).ended.unwrap();
    let asked = ["GET /redfish/v1", "GET /redfish/v1/Systems", "GET /redfish/v1/Systems/1"];
    assert_eq!((server.requests(), server.handshakes()), (asked.map(str::to_owned).to_vec(), 1));
    let note = read(directory.path(), &server, "/redfish/v1/Systems/1");
    assert!((before..=clock::wall_seconds()).contains(&note.at) && note.last_success == Some(note.at), "{note:?}");
    assert_eq!((note.failure.as_ref(), note.power.as_deref(), note.millis_to_off), (None, Some("On"), None));
    assert_eq!(note.uuid.as_deref(), Some("00000000-0000-4000-8000-000000000031"));
    assert_eq!(note.last_reset.as_deref(), Some("2026-11-22T03:04:05Z"));
    assert_eq!(note.restore_policy.as_deref(), Some("LastState"));
    assert!(note.reset_types.as_ref().is_some_and(|types| types.contains(&"ForceOff".to_owned())));
    assert_eq!(note.fingerprint.as_ref(), Some(&server.fingerprint));
    // rcgen's certificates end in the year 4096.
    assert!(note.certificate_ends.is_some_and(|ends| ends > before + 365 * 86_400), "{note:?}");
    assert!((3_998..=4_001).contains(&note.clock_ahead.unwrap()), "{note:?}");
}

#[test]
fn a_failure_is_noted_beside_the_last_success_and_power_actions_add_the_time_to_off() {
    let mut system = System::new("1");
    system.when_off = vec![(Duration::from_millis(1_500), "Off")];
    let server = Server::with_world(World::of(vec![system]));
    let directory = tempfile::tempdir().unwrap();
    let call = Call::new(&server, "monitor");
    let path = "/redfish/v1/Systems/1";
    kept(&call, "monitor", directory.path()).ended.unwrap();
    let first = read(directory.path(), &server, path);
    kept(&call, "off", directory.path()).ended.unwrap();
    let fenced = read(directory.path(), &server, path);
    // It is off after 1.5 s, and the proof takes another second.
    assert!((2_400..=6_000).contains(&fenced.millis_to_off.unwrap()), "{fenced:?}");
    assert_eq!((fenced.at, fenced.power), (first.at, first.power));
    server.world().faults.push(Fault::always("GET", "", Misbehaviour::Status(503, String::new())));
    kept(&call, "monitor", directory.path()).ended.unwrap_err();
    let failed = read(directory.path(), &server, path);
    assert!(failed.failure.as_ref().is_some_and(|why| why.contains("503")), "{failed:?}");
    assert_eq!((failed.last_success, failed.millis_to_off), (Some(first.at), fenced.millis_to_off));
    // A failure on this machine is no statement of the BMC, and is still noted.
    kept(&call.clone().without("password").set("password_file", "/nonexistent/password"), "monitor", directory.path())
        .ended
        .unwrap_err();
    assert!(read(directory.path(), &server, path).failure.unwrap().contains("password_file /nonexistent/password"));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    // A status is no monitor. An action without a proven Off stores the reason, and keeps the earlier contents.
    assert!(kept(&call, "status", directory.path()).notes.is_empty());
    kept(&call, "off", directory.path()).ended.unwrap_err();
    let unproven = read(directory.path(), &server, path);
    let fencing = unproven.fencing.clone().unwrap();
    assert!(fencing.failure.is_some_and(|why| why.contains("503")), "{unproven:?}");
    assert!(fencing.began_at_millis <= fencing.ended_at_millis.unwrap());
    assert_eq!((unproven.millis_to_off, unproven.last_success), (fenced.millis_to_off, Some(first.at)));
    server.world().faults.clear();
    kept(&call, "off", directory.path()).ended.unwrap();
    let off_before = read(directory.path(), &server, path);
    assert_eq!(off_before.fencing.unwrap().failure, None);
    assert_eq!(off_before.millis_to_off, fenced.millis_to_off, "one that was off before was not measured");
}

#[test]
fn each_system_of_a_dynamic_plug_has_a_note() {
    let server = Server::with_world(World::of(vec![System::new("a"), System::new("b")]));
    let directory = tempfile::tempdir().unwrap();
    kept(&Call::new(&server, "monitor").set("plug", "dynamic"), "monitor", directory.path()).ended.unwrap();
    for id in ["a", "b"] {
        let note = read(directory.path(), &server, id);
        assert_eq!((note.power.as_deref(), note.system), (Some("On"), format!("/redfish/v1/Systems/{id}")));
    }
}

/// Asserts that the stored notes about a BMC contain no password or token. The BMC sends these back in its system and in its
/// errors.
#[test]
fn no_secret_comes_into_a_note() {
    let directory = tempfile::tempdir().unwrap();
    let mut system = System::new("1");
    system.uuid = "s3cret-pass".into();
    system.last_reset = Some("at s3cret-pass of token-1-secret".to_owned());
    for (access, echoes) in [(Access::Basic, false), (Access::Session, false), (Access::Basic, true)] {
        let mut world = World { access, ..World::of(vec![system.clone()]) };
        if echoes {
            world.faults.push(Fault::always("GET", "Systems", Misbehaviour::Echo(400)));
        }
        let server = Server::with_world(world);
        let ended = kept(&Call::new(&server, "monitor"), "monitor", directory.path()).ended;
        assert_eq!(ended.is_err(), echoes);
        let note = read(directory.path(), &server, if echoes { "" } else { "/redfish/v1/Systems/1" });
        let text = serde_json::to_string(&note).unwrap();
        assert!(text.contains(if echoes { "you sent" } else { "***" }), "{text}");
        let secrets = ["s3cret-pass", "YWRtaW46"].into_iter().chain((access == Access::Session).then_some("token-1-"));
        assert!(secrets.into_iter().all(|secret| !text.contains(secret)), "{text}");
    }
}

/// Asserts that a monitor succeeds in time although its notes about the BMC cannot be stored. The directory is a file, is below
/// `/proc`, or is missing.
#[test]
fn where_a_note_cannot_be_written_the_monitor_is_as_good_and_as_fast() {
    let server = Server::start();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    let call = Call::new(&server, "monitor");
    for place in [file.as_path(), Path::new("/proc/nothing"), Path::new("/nonexistent/a/b")] {
        let began = std::time::Instant::now();
        kept(&call, "monitor", place).ended.unwrap();
        assert!(began.elapsed() < Duration::from_secs(3), "{}", place.display());
    }
}

#[test]
fn who_we_are_is_asked_by_an_operators_look_only() {
    let server = Server::with_world(World::one_system().with_role("ReadOnly"));
    let given = input::from_lines(&Call::new(&server, "monitor").input());
    let config = Config::read(Action::Monitor, &given, Environment::default()).unwrap();
    assert!(fence::run_and_note(&config, None, |_| {}).account.is_none());
    assert_eq!(server.requests().len(), 3);
    let account = fence::examine(&config, WHO, |_| {}).account.unwrap().unwrap();
    assert_eq!((account.role.as_str(), account.may_reset, account.locked), ("ReadOnly", Some(false), false));
    assert!(server.posted().is_empty());
    let other = Server::start();
    let given = input::from_lines(&Call::new(&other, "monitor").input());
    let config = Config::read(Action::Monitor, &given, Environment::default()).unwrap();
    let why = fence::examine(&config, WHO, |_| {}).account.unwrap().unwrap_err();
    assert!(why.text.contains("it has no AccountService"), "{why}");
    assert!(other.requests().iter().all(|request| request.starts_with("GET ")));
}
