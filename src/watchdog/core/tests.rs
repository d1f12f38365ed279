//! Tests of the outputs of each event in each state.

use super::*;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn mux() -> Mux {
    Mux::new(seconds(60), seconds(10))
}

fn peer(name: &str) -> Peer {
    Peer { name: name.to_owned(), pid: 7, uid: 0 }
}

fn joined(id: Id) -> Event {
    Event::Connected { id, peer: peer("lrm") }
}

fn bytes(id: Id, last: u8) -> Event {
    Event::Bytes { id, last }
}

/// Returns the outputs except the log lines.
fn acts(outputs: &[Output]) -> Vec<Output> {
    outputs.iter().filter(|output| !matches!(output, Output::Log(_))).cloned().collect()
}

fn lines(outputs: &[Output]) -> Vec<(Weight, String)> {
    let line = |output: &Output| match output {
        Output::Log(line) => Some((line.weight, line.text.clone())),
        _ => None,
    };
    outputs.iter().filter_map(line).collect()
}

/// Creates a multiplexer with one client that connected at the time `at`, in seconds.
fn with_client(at: u64) -> Mux {
    let mut mux = mux();
    assert_eq!(acts(&mux.handle(seconds(at), joined(1))), [Output::Mark]);
    mux
}

#[test]
fn without_clients_it_is_fed_without_an_end() {
    let mut mux = mux();
    assert_eq!(mux.fed_until(), None);
    for second in 0..1_000 {
        assert_eq!(mux.handle(seconds(second), Event::Tick), []);
    }
    assert_eq!((mux.fed_until(), mux.ended()), (None, None));
}

#[test]
fn a_client_is_marked_and_unmarked_once_the_last_one_has_left() {
    let mut mux = with_client(0);
    assert_eq!(acts(&mux.handle(seconds(1), joined(2))), [], "the mark is there");
    mux.handle(seconds(2), bytes(1, LEAVES));
    assert_eq!(acts(&mux.handle(seconds(2), Event::Closed { id: 1 })), [Output::Forget(1)]);
    mux.handle(seconds(3), bytes(2, LEAVES));
    let left = mux.handle(seconds(3), Event::Closed { id: 2 });
    assert_eq!(acts(&left), [Output::Forget(2), Output::Unmark]);
    assert_eq!(lines(&left), [(Weight::Info, "client left: lrm (pid 7, uid 0); clients: 0".to_owned())]);
    assert_eq!((mux.fed_until(), mux.ended()), (None, None));
    assert_eq!(acts(&mux.handle(seconds(4), joined(3))), [Output::Mark]);
}

/// Asserts that only the last byte decides: a client that sends `V` and then another byte has not left cleanly. The protocol promises this
/// to clients.
#[test]
fn only_a_last_byte_of_v_is_a_leave() {
    for (sent, is_clean) in
        [(&b""[..], false), (b"\0", false), (b"V", true), (b"\0V", true), (b"V\0", false), (b"v", false)]
    {
        let mut mux = with_client(0);
        for byte in sent {
            mux.handle(seconds(1), bytes(1, *byte));
        }
        let outputs = mux.handle(seconds(2), Event::Closed { id: 1 });
        let expected: &[Output] =
            if is_clean { &[Output::Forget(1), Output::Unmark] } else { &[Output::Forget(1), Output::StopFeeding] };
        assert_eq!(acts(&outputs), expected, "{sent:?}");
        assert_eq!(mux.ended().is_none(), is_clean, "{sent:?}");
        assert_eq!(mux.fed_until(), if is_clean { None } else { Some(Duration::ZERO) }, "{sent:?}");
    }
}

#[test]
fn a_silent_client_is_named_at_fifty_seconds_and_ends_feeding_at_sixty() {
    let mut mux = with_client(100);
    let mut found = Vec::new();
    for second in 100..200 {
        let outputs = mux.handle(seconds(second), Event::Tick);
        found.extend(lines(&outputs).into_iter().map(|line| (second, line)));
        assert_eq!(acts(&outputs).contains(&Output::StopFeeding), second == 160);
    }
    let (at, texts): (Vec<u64>, Vec<(Weight, String)>) = found.into_iter().unzip();
    assert_eq!(at, [150, 160]);
    let expected = [
        "client silent: lrm (pid 7, uid 0) sent no byte for 50 s; feeding ends in 10 s",
        "feeding ended: lrm (pid 7, uid 0) sent no byte for 60 s; reset in at most 10 s",
    ];
    assert_eq!(texts, expected.map(|text| (Weight::Synced, text.to_owned())));
}

#[test]
fn every_byte_is_a_sign_of_life_and_a_warning_can_come_again() {
    let mut mux = with_client(0);
    let mut warned = 0;
    for second in 1..1_000 {
        if second % 55 == 0 {
            assert_eq!(acts(&mux.handle(seconds(second), bytes(1, b'x'))), []);
        }
        warned += lines(&mux.handle(seconds(second), Event::Tick)).len();
    }
    assert_eq!(mux.ended(), None);
    assert_eq!(warned, 18);
    // `V` without a close is a byte like any other.
    mux.handle(seconds(1_000), bytes(1, LEAVES));
    assert_eq!(acts(&mux.handle(seconds(1_060), Event::Tick)), [Output::StopFeeding]);
}

#[test]
fn the_most_silent_client_sets_the_deadline() {
    let mut mux = with_client(0);
    mux.handle(seconds(10), joined(2));
    assert_eq!(mux.fed_until(), Some(seconds(60)));
    mux.handle(seconds(30), bytes(1, 0));
    assert_eq!(mux.fed_until(), Some(seconds(70)));
    mux.handle(seconds(40), bytes(2, 0));
    assert_eq!(mux.fed_until(), Some(seconds(90)));
    // Traffic of one client does not replace another's.
    for second in 41..90 {
        assert!(!acts(&mux.handle(seconds(second), bytes(2, 0))).contains(&Output::StopFeeding), "{second}");
    }
    assert_eq!(acts(&mux.handle(seconds(90), bytes(2, 0))), [Output::StopFeeding]);
}

/// Asserts that a byte after the deadline does not resume the feeding, because the feeding thread has already stopped.
#[test]
fn a_byte_after_the_deadline_does_not_resume_the_feeding() {
    let mut mux = with_client(0);
    assert_eq!(acts(&mux.handle(seconds(61), bytes(1, 0))), [Output::StopFeeding]);
    assert_eq!(mux.fed_until(), Some(Duration::ZERO));
    mux.handle(seconds(62), bytes(1, LEAVES));
    assert_eq!(acts(&mux.handle(seconds(62), Event::Closed { id: 1 })), [Output::Forget(1)], "the mark stays");
}

#[test]
fn feeding_that_has_ended_never_begins_again() {
    let mut mux = with_client(0);
    mux.handle(seconds(0), joined(2));
    mux.handle(seconds(1), Event::Closed { id: 1 });
    let why = mux.ended().unwrap().to_owned();
    assert_eq!(why, "lrm (pid 7, uid 0) closed without V");
    for (event, expected) in [
        (bytes(2, 0), vec![]),
        (joined(3), vec![Output::Refuse(3)]),
        (Event::Tick, vec![]),
        (Event::Starved, vec![]),
        (Event::Terminate, vec![]),
        (bytes(2, LEAVES), vec![]),
        (Event::Closed { id: 2 }, vec![Output::Forget(2)]),
        (Event::Terminate, vec![]),
        (Event::Tick, vec![]),
    ] {
        assert_eq!(acts(&mux.handle(seconds(100), event.clone())), expected, "{event:?}");
        assert_eq!((mux.ended(), mux.fed_until()), (Some(why.as_str()), Some(Duration::ZERO)), "{event:?}");
    }
}

#[test]
fn a_feeder_that_stopped_by_its_own_deadline_ends_feeding() {
    let mut mux = with_client(0);
    let outputs = mux.handle(seconds(1), Event::Starved);
    assert_eq!(acts(&outputs), [Output::StopFeeding]);
    assert_eq!(lines(&outputs)[0].0, Weight::Synced);
}

#[test]
fn the_hundred_and_first_is_refused_and_nothing_else_follows() {
    let mut mux = mux();
    for id in 0..100 {
        assert!(!acts(&mux.handle(seconds(0), joined(id))).contains(&Output::Refuse(id)), "{id}");
    }
    let refused = mux.handle(seconds(1), joined(100));
    assert_eq!(acts(&refused), [Output::Refuse(100)]);
    assert_eq!(lines(&refused)[0].1, "client refused: lrm (pid 7, uid 0): there are 100 clients");
    // The close of a refused connection, or a byte of it that is on the way, has no effect.
    assert_eq!(mux.handle(seconds(1), bytes(100, 0)), []);
    assert_eq!(acts(&mux.handle(seconds(1), Event::Closed { id: 100 })), [Output::Forget(100)]);
    assert_eq!((mux.ended(), mux.clients().count()), (None, 100));
    mux.handle(seconds(2), bytes(5, LEAVES));
    mux.handle(seconds(2), Event::Closed { id: 5 });
    assert_eq!(acts(&mux.handle(seconds(2), joined(101))), [], "there is room again");
}

#[test]
fn an_end_without_clients_disarms() {
    assert_eq!(mux().handle(seconds(1), Event::Terminate), [Output::Disarm]);
}

#[test]
fn an_end_with_clients_names_them_and_waits() {
    let mut mux = with_client(0);
    mux.handle(seconds(0), Event::Connected { id: 2, peer: peer("crm") });
    let asked = mux.handle(seconds(1), Event::Terminate);
    assert_eq!(acts(&asked), []);
    let text = "end delayed: fed until 2 clients have left: lrm (pid 7, uid 0), crm (pid 7, uid 0)";
    assert_eq!(lines(&asked), [(Weight::Warning, text.to_owned())]);
    assert!(mux.is_ending());
    assert_eq!(acts(&mux.handle(seconds(1), joined(3))), [Output::Refuse(3)]);
    mux.handle(seconds(2), bytes(1, LEAVES));
    assert_eq!(acts(&mux.handle(seconds(2), Event::Closed { id: 1 })), [Output::Forget(1)]);
    mux.handle(seconds(3), bytes(2, LEAVES));
    assert_eq!(
        acts(&mux.handle(seconds(3), Event::Closed { id: 2 })),
        [Output::Forget(2), Output::Unmark, Output::Disarm]
    );
}

#[test]
fn a_client_that_dies_during_the_end_is_no_leave() {
    let mut mux = with_client(0);
    mux.handle(seconds(1), Event::Terminate);
    assert_eq!(acts(&mux.handle(seconds(2), Event::Closed { id: 1 })), [Output::Forget(1), Output::StopFeeding]);
    assert_eq!(acts(&mux.handle(seconds(3), Event::Terminate)), []);
}

/// Asserts that a time that does not advance, or goes back, neither ends nor prolongs the feeding of the device.
#[test]
fn a_time_before_the_last_one_ends_nothing() {
    let mut mux = with_client(1_000);
    assert_eq!(mux.handle(seconds(10), Event::Tick), []);
    assert_eq!(mux.fed_until(), Some(seconds(1_060)));
    assert_eq!(acts(&mux.handle(seconds(1_060), Event::Tick)), [Output::StopFeeding]);
}

/// Asserts that clients that send bytes all the time cause no output. Five clients send 20 bytes per second for two minutes.
#[test]
fn busy_clients_change_nothing_about_feeding() {
    let mut mux = mux();
    for id in 0..5 {
        mux.handle(seconds(0), joined(id));
    }
    for step in 0..2_400_u32 {
        let now = Duration::from_millis(50) * step;
        for id in 0..5 {
            assert_eq!(mux.handle(now, bytes(id, 0)), []);
        }
        assert_eq!(mux.fed_until(), Some(now + seconds(60)));
    }
}
