use std::os::unix::fs::PermissionsExt as _;

use super::*;

const UUID: &str = "11111111-2222-3333-4444-555555555555";

fn looked(at: u64, system: &str) -> Noted {
    let note = BmcNote {
        address: "bmc1".to_owned(),
        system: system.to_owned(),
        at,
        millis: 40,
        uuid: Some(UUID.to_owned()),
        power: Some("On".to_owned()),
        ..BmcNote::default()
    };
    Noted { note, found: true, adds: false, uuid: None }
}

fn failed(at: u64, called: &str, uuid: Option<&str>) -> Noted {
    let note = BmcNote {
        address: "bmc1".to_owned(),
        system: called.to_owned(),
        at,
        failure: Some("no answer".to_owned()),
        ..BmcNote::default()
    };
    Noted { note, found: false, adds: false, uuid: uuid.map(str::to_owned) }
}

/// Reads the only note (see [`BmcNote`]) in `directory`.
fn kept(directory: &Path) -> BmcNote {
    let found = files(directory);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(fs::read_dir(directory).unwrap().count(), 1, "nothing lies beside it");
    read(&found[0]).unwrap()
}

#[test]
fn a_failure_keeps_when_it_last_worked_under_the_systems_own_name() {
    for (called, uuid) in [("", None), ("1", None), ("/redfish/v1/Systems/1/", None), ("node1", Some(UUID))] {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), &looked(100, "/redfish/v1/Systems/1"), false).unwrap();
        write(directory.path(), &failed(160, called, uuid), false).unwrap();
        let note = kept(directory.path());
        assert_eq!(
            (note.at, note.last_success, note.failure.as_deref()),
            (160, Some(100), Some("no answer")),
            "{called}"
        );
        assert_eq!(
            (note.system.as_str(), note.power, note.uuid.as_deref()),
            ("/redfish/v1/Systems/1", None, Some(UUID))
        );
        write(directory.path(), &failed(220, called, uuid), false).unwrap();
        assert_eq!(kept(directory.path()).last_success, Some(100), "it is kept from one failure to the next");
        write(directory.path(), &looked(280, "/redfish/v1/Systems/1"), false).unwrap();
        assert_eq!(kept(directory.path()).last_success, Some(280));
    }
}

/// Asserts that a failed monitor leaves no note if an operator ran it by hand, because the operator may have mistyped the password.
#[test]
fn a_failed_monitor_by_hand_is_not_put_down_to_the_device() {
    let ended = Noted { adds: true, ..failed(160, "1", None) };
    let all = || vec![looked(100, "1"), failed(160, "1", None), ended.clone()];
    assert_eq!(of_the_device(all(), true), all());
    assert_eq!(of_the_device(all(), false), [looked(100, "1"), ended.clone()]);
}

#[test]
fn a_failure_of_another_system_is_not_put_down_to_this_one() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), &looked(100, "/redfish/v1/Systems/1"), false).unwrap();
    write(directory.path(), &failed(160, "2", None), false).unwrap();
    write(directory.path(), &failed(160, "", Some("66666666-7777-8888-9999-aaaaaaaaaaaa")), false).unwrap();
    assert_eq!(files(directory.path()).len(), 3);
    assert_eq!(read(&bmc_note::path(directory.path(), "bmc1", "/redfish/v1/Systems/1")).unwrap().at, 100);
}

#[test]
fn the_time_to_off_is_added_to_the_last_look_and_outlives_the_next_ones() {
    let directory = tempfile::tempdir().unwrap();
    let path = "/redfish/v1/Systems/1";
    write(directory.path(), &looked(100, path), false).unwrap();
    let mut off = looked(130, path);
    (off.adds, off.note.millis, off.note.millis_to_off, off.note.power) =
        (true, 0, Some(4_200), Some("Off".to_owned()));
    write(directory.path(), &off, false).unwrap();
    let note = kept(directory.path());
    assert_eq!((note.at, note.millis, note.power.as_deref(), note.millis_to_off), (100, 40, Some("On"), Some(4_200)));
    write(directory.path(), &failed(160, "", None), false).unwrap();
    write(directory.path(), &looked(220, path), false).unwrap();
    assert_eq!(kept(directory.path()).millis_to_off, Some(4_200));
}

#[test]
fn a_fencing_is_known_while_it_is_under_way_and_by_its_reason_after_it() {
    let begins = |began_at_millis| {
        let mut noted = looked(0, "1");
        noted.note = BmcNote { address: "bmc1".to_owned(), ..BmcNote::default() };
        noted.note.fencing = Some(FencingNote { began_at_millis, ..FencingNote::default() });
        Noted { found: false, adds: true, ..noted }
    };
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), &begins(5_000), false).unwrap();
    let note = kept(directory.path());
    assert_eq!((note.at, note.last_success), (0, None), "nothing was looked at");
    write(directory.path(), &looked(100, "/redfish/v1/Systems/1"), false).unwrap();
    write(directory.path(), &begins(160_000), false).unwrap();
    let path = bmc_note::path(directory.path(), "bmc1", "/redfish/v1/Systems/1");
    let note = read(&path).unwrap();
    let fencing = note.fencing.unwrap();
    assert_eq!((note.at, fencing.began_at_millis, fencing.ended_at_millis), (100, 160_000, None));
    let mut ended = failed(0, "", None);
    ended.adds = true;
    let why = Some("401: no".to_owned());
    ended.note.fencing =
        Some(FencingNote { began_at_millis: 160_000, ended_at_millis: Some(161_000), failure: why.clone() });
    write(directory.path(), &ended, false).unwrap();
    let note = read(&path).unwrap();
    assert_eq!((note.at, note.failure), (100, None), "the look before it stays the last one");
    write(directory.path(), &looked(220, "/redfish/v1/Systems/1"), false).unwrap();
    write(directory.path(), &begins(230_000), false).unwrap();
    let again = FencingNote { began_at_millis: 230_000, ended_at_millis: Some(161_000), failure: why };
    assert_eq!(
        read(&path).unwrap().fencing,
        Some(again),
        "neither a monitor nor the next attempt takes the reason away"
    );
}

#[test]
fn it_is_for_root_alone_and_their_number_is_bounded() {
    let above = tempfile::tempdir().unwrap();
    let directory = above.path().join("not/yet");
    assert!(write(&directory, &looked(1, "/1"), false).is_err(), "by hand nothing is made up for it");
    for number in 0..40 {
        write(&directory, &looked(1, &format!("/{number}")), true).unwrap();
    }
    assert_eq!(files(&directory).len(), FILES);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&directory), mode(&files(&directory)[0])), (0o700, 0o600));
}

#[test]
fn what_is_in_the_way_keeps_nobody() {
    let above = tempfile::tempdir().unwrap();
    let file = above.path().join("file");
    fs::write(&file, "").unwrap();
    keep(&file, vec![looked(1, "/1")], true);
    // A file that another process is writing stays untouched.
    let path = bmc_note::path(above.path(), "bmc1", "/1");
    fs::write(path.with_extension("new"), "half").unwrap();
    assert!(write(above.path(), &looked(1, "/1"), false).is_err());
    fs::remove_file(path.with_extension("new")).unwrap();
    // A FIFO would block its reader forever, so one in place of a note counts as no note.
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRUSR).unwrap();
    write(above.path(), &looked(1, "/1"), false).unwrap();
    assert_eq!(read(&path).unwrap().at, 1);
}

#[test]
fn the_file_keeps_its_form() {
    let text = include_str!("../../../tests/data/fixtures/formats/0.1.0/bmc-note.json").trim_end();
    let note: BmcNote = serde_json::from_str(text).unwrap();
    assert_eq!((note.at, note.last_success, note.millis_to_off), (1_795_428_000, Some(1_795_427_940), Some(4_200)));
    assert_eq!(serde_json::to_string(&note).unwrap(), text);
    assert_eq!(serde_json::from_str::<BmcNote>("{\"of_a_later_version\":1}").unwrap(), BmcNote::default());
}
