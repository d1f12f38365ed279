//! Clients: they connect and leave, die, go silent, write without pause, and are too many.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::{Mux, Place, eventually, leave, mode, seconds, text};

/// The Perl code by which Proxmox's HA services use the watchdog's socket.
const PERL: &str = r#"
use strict; use warnings; use IO::Socket::UNIX; use Socket;
my ($path, $word) = @ARGV;
my $fh = IO::Socket::UNIX->new(Type => SOCK_STREAM(), Peer => $path) or die "unable to open watchdog socket - $!\n";
for (1..4) {
    my $res = $fh->syswrite("\0", 1);
    die "write failed - $!\n" if !defined($res) || $res != 1;
    select(undef, undef, undef, 0.25);
}
if ($word eq 'leave') {
    my $res = $fh->syswrite("V", 1);
    die "write failed - $!\n" if !defined($res) || $res != 1;
    $fh->close() or die "close failed - $!\n";
} else {
    $| = 1; print "connected\n"; sleep(600);
}
"#;

fn perl(mux: &Mux, word: &str) -> Child {
    let mut perl = Command::new("perl");
    perl.args(["-e", PERL]).arg(mux.place().socket()).arg(word).stdout(Stdio::piped());
    perl.spawn().unwrap()
}

#[test]
fn without_clients_it_is_fed_once_a_second() {
    let mut mux = Place::new().start(&[]);
    assert_eq!(text(&mux.place().asked(&["status"]).stdout).lines().next(), Some("fed"));
    assert_eq!(mode(&mux.place().socket()), 0o600);
    mux.bytes();
    let began = Instant::now();
    sleep(seconds(4));
    mux.must_have_been_fed_since(began);
    assert!(!mux.place().marker().exists());
    mux.signal(Signal::SIGTERM);
    mux.must_end_disarmed();
}

#[test]
fn a_client_that_leaves_with_v_changes_nothing() {
    let mut mux = Place::new().start(&["--client-timeout", "3s"]);
    for _ in 0..2 {
        let client = mux.client();
        assert_eq!(mode(&mux.place().marker()), 0o700);
        leave(client);
        eventually("the marker stays", || !mux.place().marker().exists());
    }
    sleep(seconds(4));
    mux.must_be_fed();
    mux.logs("client left: ");
    mux.signal(Signal::SIGTERM);
    mux.must_end_disarmed();
}

#[test]
fn proxmoxs_calls_in_perl_join_and_leave() {
    let mut mux = Place::new().start(&["--client-timeout", "3s"]);
    let mut client = perl(&mux, "leave");
    mux.logs("client joined: perl (pid ");
    assert!(client.wait().unwrap().success());
    mux.logs("client left: perl (pid ");
    mux.must_be_fed();
    mux.signal(Signal::SIGTERM);
    mux.must_end_disarmed();
}

#[test]
fn a_client_that_is_killed_ends_feeding_for_good() {
    let mut mux = Place::new().start(&[]);
    let other = mux.client();
    let mut client = perl(&mux, "stay");
    let mut said = [0; 10];
    client.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
    client.kill().unwrap();
    client.wait().unwrap();
    let died = Instant::now();
    mux.logs(&format!(
        "ERROR: feeding ended: perl (pid {}, uid 0) closed without V; reset in at most 10 s",
        client.id()
    ));
    assert!(died.elapsed() < seconds(5));
    mux.must_starve();
    // Another client, a new client or SIGTERM does not feed it again, or disarm it.
    leave(other);
    let mut late = mux.connect();
    assert_eq!(late.read(&mut said).unwrap(), 0, "it is served");
    mux.logs("feeding has ended");
    mux.signal(Signal::SIGTERM);
    mux.logs("end refused: ");
    mux.must_starve();
    assert!(!mux.has_ended() && mux.place().marker().is_dir());
    let status = mux.place().asked(&["status"]);
    assert_eq!(status.status.code(), Some(3));
    assert!(text(&status.stdout).starts_with("not fed: perl (pid "), "{}", text(&status.stdout));
    assert!(text(&mux.place().asked(&["metrics"]).stdout).contains("\ntandem_watchdog_mux_fed 0\n"));
    // A new start does not save the machine, and does not hide the reason of the reset.
    let place = mux.kill();
    let again = place.asked(&["run", "--device", &place.path("watchdog").display().to_string()]);
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again.stderr).contains("watchdog-mux.active is there, ") && text(&again.stderr).contains("'reboot'"));
    assert_eq!(place.asked(&["status"]).status.code(), Some(3));
}

#[test]
fn a_silent_client_is_named_and_then_ends_feeding() {
    // The warning comes in the last sixth of the time, which has to be longer than a second: the clients are checked each second.
    let mut mux = Place::new().start(&["--client-timeout", "12s"]);
    let mut client = mux.client();
    for _ in 0..14 {
        sleep(seconds(1));
        client.write_all(b"\0").unwrap();
    }
    assert!(!mux.place().log().contains("client silent"), "{}", mux.place().log());
    let began = Instant::now();
    mux.logs("client silent: ");
    let warned = began.elapsed();
    mux.logs("sent no byte for 12 s; reset in at most 10 s");
    let ended = began.elapsed();
    assert!(warned >= Duration::from_millis(9_500) && ended >= Duration::from_millis(11_500), "{warned:?} {ended:?}");
    assert!(ended < seconds(18), "{ended:?}");
    mux.must_starve();
    leave(client);
    mux.must_starve();
    assert!(mux.place().marker().is_dir());
}

/// Asserts that the traffic of five clients does not delay the thread that feeds the watchdog. A test of the core covers two
/// minutes without threads.
#[test]
fn five_clients_at_twenty_hertz_do_not_change_the_pace() {
    let mut mux = Place::new().start(&["--client-timeout", "3s"]);
    let mut clients: Vec<_> = (0..5).map(|_| mux.client()).collect();
    mux.bytes();
    let began = Instant::now();
    while began.elapsed() < seconds(10) {
        for client in &mut clients {
            client.write_all(b"\0").unwrap();
        }
        sleep(Duration::from_millis(50));
    }
    mux.must_have_been_fed_since(began);
    clients.into_iter().for_each(leave);
    eventually("the marker stays", || !mux.place().marker().exists());
    mux.signal(Signal::SIGTERM);
    mux.must_end_disarmed();
}

#[test]
fn a_client_that_writes_without_pause_holds_up_nothing() {
    let mut mux = Place::new().start(&["--client-timeout", "3s"]);
    let mut flood = mux.client();
    let silent = mux.client();
    mux.bytes();
    let began = Instant::now();
    while began.elapsed() < seconds(2) {
        flood.write_all(&[7; 4_096]).unwrap();
    }
    mux.must_have_been_fed_since(began);
    while !mux.place().log().contains("feeding ended: ") {
        assert!(began.elapsed() < seconds(12), "a client is silent behind the flood");
        flood.write_all(&[7; 4_096]).unwrap();
    }
    mux.must_starve();
    drop(silent);
}

#[test]
fn the_hundred_and_first_is_refused_and_the_rest_is_served() {
    let mut mux = Place::new().start(&[]);
    let mut clients: Vec<_> = (0..100).map(|_| mux.client()).collect();
    mux.logs("clients: 100");
    let mut late = mux.connect();
    assert_eq!(late.read(&mut [0; 1]).unwrap(), 0);
    mux.logs("there are 100 clients");
    for client in &mut clients {
        client.write_all(b"\0").unwrap();
    }
    mux.must_be_fed();
    let json = mux.place().asked(&["status", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((&json["fed"], json["clients"].as_array().unwrap().len()), (&true.into(), 100));
    leave(clients.pop().unwrap());
    eventually("there is no room again", || {
        let mut client = mux.connect();
        client.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        client.write_all(b"V").is_ok() && client.read(&mut [0; 1]).is_err()
    });
    clients.into_iter().for_each(leave);
    eventually("the marker stays", || !mux.place().marker().exists());
    mux.must_be_fed();
}
