use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Mutex;

use zeroize::Zeroizing;

use super::call::connect;
use super::join_file::{self, Unusable, make, parse};
use super::*;
use crate::adapters::command::{Programs, fake_program};
use crate::operate::setup::action::{Action, File};
use crate::operate::setup::description::Description;
use crate::operate::setup::file;
use crate::operate::setup::machine::{Answer, Here, Machine, Request};
use crate::os::clock::Deadline;

const NOW: u64 = 1_800_000_000;

/// Returns short time limits, so that a test that waits for a silent end takes seconds.
fn brief() -> Patience {
    let millis = Duration::from_millis;
    Patience { silence: millis(3_000), beat: millis(200), handshake: millis(1_000), leftover: Duration::ZERO }
}

/// Returns a description in which both ends are on this machine, at a loopback address that no other test uses.
fn described(last: u8) -> (Description, SocketAddr) {
    let mut described = file::read(file::EXAMPLE).unwrap();
    let address: IpAddr = [127, 44, 18, last].into();
    described.nodes[1].address = address;
    (described, SocketAddr::new(address, 2380))
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(10))
}

#[expect(clippy::unnecessary_wraps, reason = "what may stop the channel, which nothing does here")]
fn no_stop() -> Result<(), String> {
    Ok(())
}

type Told = Mutex<Vec<Serving>>;

/// Serves the join file `join` in a thread while `asks` runs. Returns the server's result, its events and the result of
/// `asks`.
fn served<T: Send>(
    here: &Here,
    join: &join_file::Join,
    at: SocketAddr,
    asks: impl FnOnce() -> T + Send,
) -> (Result<(bool, String), Error>, Vec<Serving>, T) {
    let told = Told::default();
    let (ended, asked) = std::thread::scope(|scope| {
        let serving =
            scope.spawn(|| serve(at, join, here, brief(), soon(), no_stop, |one| told.lock().unwrap().push(one)));
        let asked = asks();
        (serving.join().unwrap(), asked)
    });
    (ended, told.into_inner().unwrap(), asked)
}

#[test]
fn one_node_asks_and_the_other_one_does() {
    let (described, at) = described(1);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("password");
    let mut with_password = described.clone();
    with_password.nodes[0].bmc.password_file.clone_from(&path);
    // Longer than the silence limit, so that signs of life are needed.
    let programs = fake_program(dir.path(), "podman", "sleep 5; echo no such registry >&2; exit 125");
    let here = Here::new(programs, with_password.clone(), 1, false);
    let (join, credentials) = make(&with_password, 0, false, NOW).unwrap();
    let join = parse(join.text().unwrap().as_bytes()).unwrap();
    // More than TLS takes in one write.
    let content = Zeroizing::new(b"hunter2\n".repeat(20_000));
    let (ended, told, ()) = served(&here, &join, at, || {
        let call = connect("node2", at, &credentials, brief(), soon(), no_stop).unwrap();
        call.say("now");
        assert_eq!(call.look().unwrap().tandem, env!("CARGO_PKG_VERSION"));
        let file = File { path: path.clone(), mode: 0o600, content: content.clone(), what: "a password".to_owned() };
        call.done(Request::Apply(Action::Write(file))).unwrap();
        let pull = Action::Command(vec!["podman".to_owned(), "pull".to_owned(), "x".to_owned()]);
        let why = call.done(Request::Apply(pull)).unwrap_err();
        assert_eq!(why, "node2: podman pull x failed (125): no such registry");
        // The listening port is free for etcd while the two talk.
        drop(std::net::TcpListener::bind(at).unwrap());
        clock_over_the_silence();
        call.end(true, "two voters");
    });
    assert_eq!(ended.unwrap(), (true, "two voters".to_owned()));
    assert_eq!(std::fs::read(&path).unwrap(), *content);
    assert!(told.contains(&Serving::Connected) && told.contains(&Serving::Progress("now".to_owned())), "{told:?}");
}

/// Waits longer than the silence limit. The connection survives, because each end sends signs of life.
fn clock_over_the_silence() {
    crate::os::clock::sleep(brief().silence * 2);
}

#[test]
fn who_has_other_keys_is_told_from_the_first_node() {
    let (described, at) = described(2);
    let here = Here::new(Programs::default(), described.clone(), 1, false);
    let (join, right) = make(&described, 0, false, NOW).unwrap();
    let (_, wrong) = make(&described, 0, false, NOW).unwrap();
    // This client knows the server's certificate, but lacks the key that the server requires.
    let half = Credentials { own: wrong.own.clone(), other: right.other.clone() };
    let (ended, told, ()) = served(&here, &join, at, || {
        let till = || Deadline::after(Duration::from_secs(3));
        let refused = connect("node2", at, &wrong, brief(), till(), no_stop).unwrap_err();
        assert!(
            matches!(&refused, Error::Stranger(why) if why.contains("is not node2 with this join file")),
            "{refused}"
        );
        assert!(connect("node2", at, &half, brief(), till(), no_stop).is_err());
        connect("node2", at, &right, brief(), soon(), no_stop).unwrap().end(false, "enough");
    });
    assert_eq!(ended.unwrap(), (false, "enough".to_owned()));
    let strangers = told.iter().filter(|one| matches!(one, Serving::Stranger(_))).count();
    assert!(strangers >= 2, "{told:?}");
}

#[test]
fn fifty_strangers_that_say_nothing_do_not_keep_the_first_node_waiting() {
    let (described, at) = described(13);
    let here = Here::new(Programs::default(), described.clone(), 1, false);
    let (join, credentials) = make(&described, 0, false, NOW).unwrap();
    let patient = Patience { handshake: Duration::from_secs(60), ..brief() };
    std::thread::scope(|scope| {
        let told = Told::default();
        let serving = scope.spawn(move || {
            serve(at, &join, &here, patient, soon(), no_stop, |one| told.lock().unwrap().push(one)).map(|ended| ended.0)
        });
        let until = soon();
        let mut silent = Vec::new();
        while silent.len() < 50 && !until.has_passed() {
            match std::net::TcpStream::connect(at) {
                Ok(socket) => silent.push(socket),
                Err(_) => until.sleep(Duration::from_millis(50)),
            }
        }
        let began = Deadline::after(Duration::from_secs(5));
        connect("node2", at, &credentials, patient, began, no_stop).unwrap().end(true, "in");
        assert!(serving.join().unwrap().unwrap());
        assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    });
}

#[test]
fn a_stranger_who_says_nothing_or_rubbish_keeps_nobody_waiting_for_long() {
    let (described, at) = described(3);
    let here = Here::new(Programs::default(), described.clone(), 1, false);
    let (join, credentials) = make(&described, 0, false, NOW).unwrap();
    let (ended, ..) = served(&here, &join, at, || {
        use std::io::Write as _;
        let until = soon();
        let silent = loop {
            match std::net::TcpStream::connect(at) {
                Ok(socket) => break socket,
                Err(_) => until.sleep(Duration::from_millis(50)),
            }
        };
        std::net::TcpStream::connect(at).unwrap().write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        connect("node2", at, &credentials, brief(), soon(), no_stop).unwrap().end(true, "");
        drop(silent);
    });
    assert!(ended.unwrap().0);
}

#[test]
fn either_end_notices_that_the_other_one_has_gone() {
    let (described, at) = described(4);
    let here = Here::new(Programs::default(), described.clone(), 1, false);
    let (join, credentials) = make(&described, 0, false, NOW).unwrap();
    let (ended, ..) = served(&here, &join, at, || drop(connect("node2", at, &credentials, brief(), soon(), no_stop)));
    assert!(matches!(&ended, Err(Error::Cut(_))), "{ended:?}");
    let late = connect("node2", at, &credentials, brief(), Deadline::after(Duration::from_millis(300)), no_stop);
    assert!(late.unwrap_err().to_string().contains("node2 was not there within the time"));
    let stopped = connect("node2", at, &credentials, brief(), soon(), || Err("ssh ended".to_owned()));
    assert_eq!(stopped.unwrap_err().to_string(), "ssh ended");
    let nobody = serve(at, &join, &here, brief(), Deadline::after(Duration::from_millis(300)), no_stop, |_| {});
    assert!(nobody.unwrap_err().to_string().starts_with("node1 did not ask within the time"));
}

#[test]
fn what_was_cut_off_before_is_waited_out_where_that_is_asked_for() {
    let (described, at) = described(8);
    let here = Here::new(Programs::default(), described.clone(), 1, false);
    let (old, _) = make(&described, 0, false, NOW).unwrap();
    let (new, credentials) = make(&described, 0, false, NOW).unwrap();
    let waits = Patience { leftover: Duration::from_secs(5), ..brief() };
    let cut_off = Deadline::after(Duration::from_secs(2));
    let still = || if cut_off.has_passed() { Err("its input has ended".to_owned()) } else { Ok(()) };
    std::thread::scope(|scope| {
        let first = scope.spawn(|| serve(at, &old, &here, brief(), soon(), still, |_| {}));
        let until = soon();
        while std::net::TcpStream::connect(at).is_err() && !until.has_passed() {
            until.sleep(Duration::from_millis(50));
        }
        // Without a time for leftovers each end refuses the other at once.
        let taken = serve(at, &new, &here, brief(), soon(), no_stop, |_| {});
        assert!(taken.unwrap_err().to_string().starts_with("something else has the port"));
        assert!(matches!(connect("node2", at, &credentials, brief(), soon(), no_stop), Err(Error::Stranger(_))));
        let second = scope.spawn(|| serve(at, &new, &here, waits, soon(), no_stop, |_| {}));
        connect("node2", at, &credentials, waits, soon(), no_stop).unwrap().end(true, "two voters");
        assert_eq!(first.join().unwrap().unwrap_err().to_string(), "its input has ended");
        assert_eq!(second.join().unwrap().unwrap(), (true, "two voters".to_owned()));
    });
}

#[test]
fn nothing_is_changed_in_a_dry_run_and_nothing_that_is_no_setup() {
    let (described, _) = described(5);
    let pull = Request::Apply(Action::Command(vec!["podman".to_owned(), "pull".to_owned(), "x".to_owned()]));
    let dry = Here::new(Programs::default(), described.clone(), 1, true).answer(pull);
    assert!(matches!(&dry, Answer::Failed(why) if why.contains("--dry-run")), "{dry:?}");
    let shell = Request::Apply(Action::Command(vec!["sh".to_owned()]));
    let refused = Here::new(Programs::default(), described, 1, false).answer(shell);
    assert!(matches!(&refused, Answer::Failed(why) if why.contains("no change of a setup")), "{refused:?}");
}

#[test]
fn a_join_file_that_is_old_cut_changed_or_of_another_node_is_refused() {
    let (described, _) = described(6);
    let (join, _) = make(&described, 0, false, NOW).unwrap();
    let text = join.text().unwrap();
    assert_eq!(parse(text.as_bytes()).unwrap(), join);
    assert_eq!(join.path(), Path::new("/etc/tandem/node2.join"));
    assert_eq!(join.check(NOW + 24 * 3_600, Some("node2")), Ok(()));
    assert_eq!(join.check(NOW + 24 * 3_600 + 1, Some("node2")), Err(Unusable::Old("node1".to_owned())));
    assert_eq!(join.check(NOW - 3_601, Some("node2")), Err(Unusable::Ahead("node1".to_owned())));
    for here in [Some("node1"), None] {
        assert!(matches!(join.check(NOW, here), Err(Unusable::Another { .. })), "{here:?}");
    }
    for length in (1..text.len()).step_by(7).chain([text.len() - 1]) {
        assert_eq!(parse(&text.as_bytes()[..length]), Err(Unusable::Cut), "after {length} of {}", text.len());
    }
    assert_eq!(parse(text.replacen("node1", "node9", 1).as_bytes()), Err(Unusable::Changed));
    assert_eq!(parse(b"cluster = \"x\"\n"), Err(Unusable::Foreign));
    assert_eq!(parse(b""), Err(Unusable::Foreign));
    let shown = format!("{join:?}{:?}", join.credentials());
    assert!(!shown.contains("PRIVATE"), "{shown}");
    assert!(matches!(join_file::read(Path::new("/nonexistent")), Err(Unusable::Unreadable(..))));
}

#[test]
fn the_join_file_holds_no_password_and_no_key_of_etcd() {
    let (described, _) = described(7);
    let (join, _) = make(&described, 0, false, NOW).unwrap();
    // The only key in it is the one-time key of the channel.
    assert_eq!(join.text().unwrap().matches("PRIVATE KEY").count(), 2, "its beginning and its end");
}
