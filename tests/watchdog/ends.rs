//! The ends of the multiplexer: by SIGTERM with clients, by a kill, and after a delay of its own process.

use std::io::{Read, Write};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::{Place, leave, seconds, text};

#[test]
fn an_end_with_clients_names_them_and_feeds_until_they_have_left() {
    let mut mux = Place::new().start(&[]);
    let (first, second) = (mux.client(), mux.client());
    mux.logs("clients: 2");
    mux.signal(Signal::SIGTERM);
    let own = format!("(pid {}, uid 0)", std::process::id());
    mux.logs("end delayed: fed until 2 clients have left: ");
    assert!(mux.place().log().contains(&own), "{}", mux.place().log());
    let mut late = mux.connect();
    assert_eq!(late.read(&mut [0; 1]).unwrap(), 0, "it is served");
    mux.must_be_fed();
    leave(first);
    mux.logs("clients: 1");
    mux.must_be_fed();
    assert!(!mux.has_ended());
    let shown = mux.place().asked(&["status"]);
    assert!(text(&shown.stdout).contains("\nending: "), "{}", text(&shown.stdout));
    leave(second);
    mux.must_end_disarmed();
}

#[test]
fn a_client_that_dies_during_the_end_ends_feeding() {
    let mut mux = Place::new().start(&[]);
    let client = mux.client();
    mux.signal(Signal::SIGINT);
    mux.logs("end delayed: ");
    drop(client);
    mux.logs("feeding ended: ");
    mux.must_starve();
    assert!(!mux.has_ended());
}

#[test]
fn a_hangup_ends_nothing() {
    let mut mux = Place::new().start(&[]);
    mux.signal(Signal::SIGHUP);
    mux.must_be_fed();
    mux.signal(Signal::SIGTERM);
    mux.must_end_disarmed();
}

#[test]
fn one_that_was_killed_with_clients_is_not_started_again() {
    let mux = Place::new().start(&[]);
    let _client = mux.client();
    let place = mux.kill();
    let device = place.path("watchdog").display().to_string();
    let again = place.asked(&["run", "--device", &device]);
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again.stderr).contains("'reboot'"), "{}", text(&again.stderr));
    sleep(seconds(6));
    let status = place.asked(&["status"]);
    assert_eq!(status.status.code(), Some(3));
    assert!(text(&status.stdout).contains("has written nothing for "), "{}", text(&status.stdout));
}

#[test]
fn one_that_was_killed_without_clients_leaves_nothing_in_the_way() {
    let place = Place::new().start(&[]).kill();
    assert!(place.socket().exists(), "a socket without a listener");
    let mut mux = place.start(&[]);
    mux.must_be_fed();
    let client = mux.client();
    leave(client);
    mux.signal(Signal::SIGTERM);
    mux.must_end_disarmed();
}

/// Asserts that `watchdog-mux` does not feed again after its process was stopped for longer than a client's time-out. That
/// holds although the client is alive, because other nodes may have relied on the reset.
#[test]
fn one_that_was_held_up_beyond_a_clients_time_does_not_feed_again() {
    let mut mux = Place::new().start(&["--client-timeout", "3s"]);
    let mut client = mux.client();
    mux.signal(Signal::SIGSTOP);
    let began = Instant::now();
    while began.elapsed() < seconds(5) {
        client.write_all(b"\0").unwrap();
        sleep(Duration::from_millis(200));
    }
    mux.bytes();
    mux.signal(Signal::SIGCONT);
    mux.logs("feeding ended: ");
    mux.must_starve();
    leave(client);
    assert!(mux.place().marker().is_dir());
}
