//! Recipients that are down and come back, lost events, and a URL over TLS.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, mpsc};

use proptest::prelude::*;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use rustls_pki_types::PrivateKeyDer;

use super::*;
use crate::records::events::{KEPT, Repeat, Type, append, reason};

fn event(number: u64) -> Event {
    let time = clock::wall_millis();
    let event =
        Event::new(time, Type::Error, reason::NODE_OFFLINE, "node1", format!("event {number}"), number.to_string());
    Event { number, ..event }
}

fn places(dir: &Path, trust: Trust) -> Places {
    fs::create_dir_all(dir.join("events")).unwrap();
    Places { events: dir.join("events"), state: dir.join("state"), trust }
}

fn tell(places: &Places, numbers: std::ops::RangeInclusive<u64>) {
    for number in numbers {
        assert!(append(&places.events, event(number), Repeat::Never).unwrap());
    }
}

fn messages(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str::<Event>(line).unwrap().message).collect()
}

fn expected(numbers: std::ops::RangeInclusive<u64>) -> Vec<String> {
    numbers.map(|number| format!("event {number}")).collect()
}

#[test]
fn a_recipient_that_was_down_gets_all_in_order_and_no_other_one_waits_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let places = places(dir.path(), Trust::System);
    let (up, down) = (dir.path().join("up"), dir.path().join("later/down"));
    let both = [format!("file:{}", up.display()), format!("file:{}", down.display())];
    tell(&places, 1..=3);
    let outcomes = deliver(&places, &both, false).unwrap();
    assert_eq!((outcomes[0].delivered, outcomes[0].waiting, &outcomes[0].failure), (3, 0, &None));
    assert_eq!((outcomes[1].delivered, outcomes[1].waiting), (0, 3));
    assert!(outcomes[1].failure.as_ref().unwrap().contains("No such file"), "{outcomes:?}");
    tell(&places, 4..=5);
    fs::create_dir(dir.path().join("later")).unwrap();
    let paused = deliver(&places, &both, false).unwrap();
    assert_eq!((paused[0].delivered, paused[1].delivered), (2, 0), "the pause after a failure");
    assert!(paused[1].failure.as_ref().unwrap().starts_with("it is tried again at "), "{paused:?}");
    let outcomes = deliver(&places, &both, true).unwrap();
    assert_eq!((outcomes[0].delivered, outcomes[1].delivered, outcomes[1].waiting), (0, 5, 0));
    assert_eq!(messages(&up), expected(1..=5));
    assert_eq!(messages(&down), expected(1..=5));
    assert_eq!(deliver(&places, &both, true).unwrap()[1].delivered, 0);
}

#[test]
fn more_than_are_kept_is_given_up_from_the_oldest_on_and_the_recipient_is_told_how_many() {
    let events: Vec<Event> = (1..=KEPT + 5).map(event).collect();
    let mut cursor = Cursor::default();
    let mut got = Vec::new();
    let mut send = |event: &Event| {
        got.push(event.message.clone());
        Ok(())
    };
    let run = cursor.bring(&events, 0, &mut || false, &mut send);
    assert_eq!((run.delivered, cursor.lost, cursor.lost_untold), (KEPT, 5, 0));
    assert!(got[0].starts_with("5 events before this one were not brought"), "{}", got[0]);
    assert_eq!((got[1].as_str(), got.len() as u64), ("event 6", KEPT + 1));
    // Events that the file no longer contains count as lost too.
    let later: Vec<Event> = (KEPT + 9..=KEPT + 10).map(event).collect();
    assert_eq!(cursor.bring(&later, 0, &mut || false, &mut |_| Ok(())).delivered, 2);
    assert_eq!(cursor.lost, 8);
    // A file that begins again is delivered from its beginning.
    assert_eq!(cursor.bring(&events[..2], 0, &mut || false, &mut |_| Ok(())).delivered, 2);
}

#[test]
fn events_are_counted_on_over_a_file_that_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let places = places(dir.path(), Trust::System);
    let count = |places: &Places| super::count(places).unwrap().get(reason::NODE_OFFLINE).copied();
    assert_eq!(count(&places), None);
    tell(&places, 1..=3);
    // A query stores nothing and returns the same.
    let kept = || fs::read(places.state.join("counts.json")).ok();
    let before = kept();
    assert_eq!((counts(&places).unwrap().get(reason::NODE_OFFLINE).copied(), kept()), (Some(3), before));
    assert_eq!([count(&places), count(&places)], [Some(3), Some(3)]);
    fs::remove_file(places.events.join("events.jsonl")).unwrap();
    assert_eq!(count(&places), Some(3));
    tell(&places, 4..=5);
    assert_eq!(count(&places), Some(5));
}

#[test]
fn pauses_grow_to_a_limit_and_end_with_the_first_success() {
    let events = [event(1)];
    let mut cursor = Cursor::default();
    let mut pauses = Vec::new();
    for _ in 0..7 {
        let run = cursor.bring(&events, 1000, &mut || false, &mut |_| Err("down".to_owned()));
        assert_eq!((run.delivered, run.failure.as_deref(), cursor.pauses(1000)), (0, Some("down"), true));
        pauses.push(cursor.again_at - 1000);
    }
    assert_eq!(pauses, [15, 30, 60, 120, 240, 300, 300]);
    assert!(!cursor.pauses(1301) && !cursor.pauses(10), "a clock that was set back");
    cursor.bring(&events, 1301, &mut || false, &mut |_| Ok(()));
    assert_eq!((cursor.failures, cursor.again_at, cursor.brought), (0, 0, 1));
}

#[test]
fn a_new_recipient_gets_the_last_hour() {
    let now = clock::wall_seconds();
    let old = |number| Event { time: (now - 7200) * 1000, ..event(number) };
    let events = [old(3), old(4), event(5)];
    let cursor = Cursor::new(&events, now);
    assert_eq!((cursor.brought, cursor.waiting(&events), cursor.lost), (4, 1, 0));
    assert_eq!(Cursor::new(&events[2..], now).brought, 4, "what is gone is not lost for who never waited for it");
}

#[test]
fn an_unknown_recipient_has_its_sentence_and_keeps_no_other_one_waiting() {
    let dir = tempfile::tempdir().unwrap();
    let places = places(dir.path(), Trust::System);
    tell(&places, 1..=1);
    let file = dir.path().join("file");
    let outcomes = deliver(&places, &["mail".to_owned(), format!("file:{}", file.display())], false).unwrap();
    assert!(outcomes[0].failure.as_ref().unwrap().contains("'mail' is not known"), "{outcomes:?}");
    assert_eq!(outcomes[1].delivered, 1);
}

/// Starts an HTTPS server with a self-signed certificate, which responds with `statuses` in turn. Returns its port, the trust in its
/// certificate, and a channel with the requests.
fn server(statuses: &'static [u16]) -> (u16, Trust, mpsc::Receiver<String>) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sent, got) = mpsc::channel();
    let config = Arc::new(config);
    std::thread::spawn(move || {
        let mut statuses = statuses.iter();
        while let Ok((socket, _)) = listener.accept() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = BufReader::new(StreamOwned::new(connection, socket));
            while let Some(body) = request(&mut stream) {
                let Some(status) = statuses.next() else { return };
                let _ = sent.send(body);
                let _ = write!(stream.get_mut(), "HTTP/1.1 {status} Word\r\nContent-Length: 2\r\n\r\nok");
            }
        }
    });
    (port, Trust::Listed(vec![certificate]), got)
}

/// Reads the first line and the body of the next HTTP request. Returns `None` if the client closed the connection.
fn request(stream: &mut impl BufRead) -> Option<String> {
    let (mut first, mut length) = (String::new(), 0);
    if stream.read_line(&mut first).ok()? == 0 {
        return None;
    }
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some(format!("{} {}", first.trim(), String::from_utf8(body).unwrap()))
}

#[test]
fn a_url_is_posted_to_and_what_it_does_not_take_is_brought_again() {
    let (port, trust, got) = server(&[200, 503, 204, 200]);
    let dir = tempfile::tempdir().unwrap();
    let places = places(dir.path(), trust);
    let url = [format!("https://localhost:{port}/hook/SECRET?x=1")];
    tell(&places, 1..=3);
    let outcome = deliver(&places, &url, false).unwrap().remove(0);
    assert_eq!((outcome.delivered, outcome.waiting), (1, 2));
    assert_eq!(outcome.failure, Some("it answered 503 Service Unavailable".to_owned()));
    let outcome = deliver(&places, &url, true).unwrap().remove(0);
    assert_eq!((outcome.delivered, outcome.waiting, outcome.failure), (2, 0, None));
    let posted: Vec<String> = got.try_iter().collect();
    let numbers = [1, 2, 2, 3];
    assert_eq!(posted.len(), numbers.len());
    for (posted, number) in posted.iter().zip(numbers) {
        let body = posted.strip_prefix("POST /hook/SECRET?x=1 HTTP/1.1 ").unwrap();
        assert_eq!(serde_json::from_str::<Event>(body).unwrap().number, number);
    }
}

#[test]
fn a_url_whose_certificate_is_not_trusted_gets_nothing_and_the_complaint_has_no_secret() {
    let (port, _, got) = server(&[200]);
    let dir = tempfile::tempdir().unwrap();
    let places = places(dir.path(), Trust::Listed(Vec::new()));
    tell(&places, 1..=1);
    for url in [format!("https://localhost:{port}/hook/SECRET"), "https://localhost:1/hook/SECRET".to_owned()] {
        let outcome = deliver(&places, &[url], true).unwrap().remove(0);
        let failure = outcome.failure.clone().unwrap();
        assert!(outcome.delivered == 0 && outcome.recipient.starts_with("https://localhost:"), "{outcome:?}");
        assert!(!failure.contains("SECRET"), "{failure}");
    }
    assert!(got.try_recv().is_err());
    let written = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    assert!(!fs::read_dir(&places.state).unwrap().any(|entry| written(&entry.unwrap().path()).contains("SECRET")));
}

#[test]
fn reasons_that_nothing_here_tells_are_one_series_and_one_kept_before_too() {
    let dir = tempfile::tempdir().unwrap();
    let places = places(dir.path(), Trust::System);
    directory(&places.state).unwrap();
    let kept = r#"{"until": 1, "by_reason": {"Made": 2, "Up": 3, "TandemTest": 4}}"#;
    fs::write(places.state.join("counts.json"), kept).unwrap();
    for number in 0..5 {
        assert!(
            append(&places.events, Event { reason: format!("Made{number}"), ..event(number) }, Repeat::Never).unwrap()
        );
    }
    let counted = count(&places).unwrap();
    assert_eq!(counted, [("Other".to_owned(), 9), (reason::TEST.to_owned(), 4)].into());
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 0..3_u64, u64::MAX - 2..=u64::MAX]
}

fn any_events() -> impl Strategy<Value = Vec<Event>> {
    let one = (number(), number()).prop_map(|(number, time)| Event { number, time, ..event(number) });
    proptest::collection::vec(one, 0..8)
}

prop_compose! {
    fn any_cursor()(brought in number(), lost in number(), lost_untold in number(), failures in any::<u32>(), again_at in number())
        -> Cursor {
        Cursor { brought, lost, lost_untold, failures, again_at }
    }
}

proptest! {
    /// Asserts that no combination of event numbers and cursor makes the collector panic. Another program may have written the events,
    /// and the cursor may be damaged.
    #[test]
    fn any_numbers_are_brought_and_counted(events in any_events(), cursor in any_cursor(), now in number(), fails in any::<bool>()) {
        let _ = Cursor::new(&events, now);
        let mut cursor = cursor;
        let _ = cursor.pauses(now);
        let send = |_: &Event| if fails { Err("no".to_owned()) } else { Ok(()) };
        let run = cursor.bring(&events, now, &mut || false, &mut { send });
        prop_assert!(fails || run.delivered <= events.len() as u64);
        let dir = tempfile::tempdir().unwrap();
        let places = places(dir.path(), Trust::System);
        let lines: Vec<String> = events.iter().map(|event| serde_json::to_string(event).unwrap()).collect();
        fs::write(places.events.join("events.jsonl"), lines.join("\n")).unwrap();
        let counted: u64 = count(&places).unwrap().values().sum();
        prop_assert!(counted <= events.len() as u64);
    }
}
