//! Tests of the output for a state.

use super::*;
use crate::fencing_agent::shell::state::Writer;
use crate::os::proc;

const SECOND: u64 = 1_000_000_000;

fn member(name: &str, state: &str, contact: Option<f64>) -> Member {
    Member { name: name.to_owned(), state: state.to_owned(), contacts: vec![contact], round_trip: contact.map(|_| 0.4) }
}

fn state() -> State {
    State {
        boot: proc::boot_id(),
        written: clock::boot_nanoseconds(),
        pid: 17,
        node: "a".to_owned(),
        group: "g".to_owned(),
        on_quorum_loss: "watchdog".to_owned(),
        device: Some("/dev/watchdog".to_owned()),
        identity: Some("Software Watchdog".to_owned()),
        timeout: 15,
        quorum: 2,
        reachable: 2,
        window: 3.0,
        armed: true,
        fed: true,
        deadline: Some(5 * SECOND),
        disarmed: None,
        unfed: None,
        score: 1,
        suspicions: 3,
        joins: 2,
        leaves: 1,
        datagrams: vec![Datagrams { direction: "sent".to_owned(), network: "eth0".to_owned(), count: 9 }],
        dropped: BTreeMap::from([("seal".to_owned(), 4)]),
        api_up: None,
        watch_age: None,
        members: vec![member("a", "alive", None), member("b", "alive", Some(0.25)), member("c", "lost", None)],
    }
}

fn of(state: State) -> Status {
    Status::of(state, Duration::ZERO, 3 * SECOND)
}

#[test]
fn a_state_is_written_at_news_and_each_two_seconds_without() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::new();
    let mut is_written = |after_ms: u64, change: fn(&mut State)| {
        let mut state = State { written: SECOND + after_ms * 1_000_000, ..state() };
        change(&mut state);
        writer.write(state.clone(), dir.path()).unwrap();
        State::read(dir.path()).unwrap() == Some(state)
    };
    assert!(is_written(0, |_| {}), "the first");
    let idle: [fn(&mut State); 3] = [
        |state| state.deadline = None,
        |state| state.datagrams[0].count += 1,
        |state| state.members[1].contacts = vec![Some(0.5)],
    ];
    for change in idle {
        assert!(!is_written(1_000, change), "one second later, without news");
    }
    assert!(is_written(2_000, |_| {}), "two seconds later");
    let news: [fn(&mut State); 4] = [
        |state| state.fed = false,
        |state| state.reachable = 1,
        |state| state.members[1].state = "suspect".to_owned(),
        |state| state.leaves += 1,
    ];
    for (at, change) in (2_001..).zip(news) {
        assert!(is_written(at, change), "news {at}");
    }
}

#[test]
fn people_see_whether_it_is_fed_and_each_member() {
    let fed = of(state());
    assert!(!fed.is_unfed());
    assert_eq!(
        fed.text(),
        "fed\ndevice: /dev/watchdog (Software Watchdog), time-out 15 s\nnode: a of group g\nreachable: 2 of 3, quorum 2\n  \
         a: alive (this node)\n  b: alive, last answer 0.2 s ago, round trip 0.4 ms\n  c: lost, no answer yet"
    );
    let lost = State { fed: false, unfed: Some("quorum lost".to_owned()), ..state() };
    assert!(of(lost.clone()).is_unfed() && of(lost).text().starts_with("not fed: quorum lost\n"));
    for why in
        ["no quorum since the start, and /dev/watchdog was left running", "mux.sock closed without V (Broken pipe)"]
    {
        let waits = Some("no 10 s of contact with a quorum yet".to_owned());
        let unfed = State { fed: false, armed: false, disarmed: waits, unfed: Some(why.to_owned()), ..state() };
        assert!(of(unfed.clone()).is_unfed() && of(unfed).text().starts_with(&format!("not fed: {why}\n")), "{why}");
    }
    let disarmed = State { fed: false, armed: false, disarmed: Some("maintenance".to_owned()), ..state() };
    assert!(!of(disarmed.clone()).is_unfed());
    assert!(of(disarmed).text().starts_with("not armed: maintenance\n"));
    let waits = State { fed: false, armed: false, on_quorum_loss: "wait".to_owned(), ..state() };
    assert!(of(waits.clone()).text().starts_with("no watchdog: on_quorum_loss is wait\n") && !of(waits).is_unfed());
}

#[test]
fn a_state_that_stands_still_is_one_of_a_dead_agent() {
    let stale = Status::of(state(), Duration::from_secs(6), 3 * SECOND);
    assert!(stale.is_unfed() && stale.text().starts_with("not fed: the agent has written nothing for 6 s\n"));
}

#[test]
fn a_dead_agent_is_unfed_only_if_its_watchdog_runs() {
    let dead = |state: State| Status::of(state, Duration::from_secs(6), 3 * SECOND);
    let silent = "the agent has written nothing for 6 s";
    for word in ["wait", "notify"] {
        let without = State { fed: false, armed: false, device: None, on_quorum_loss: word.to_owned(), ..state() };
        let without = dead(without);
        assert!(!without.is_unfed() && !without.metrics().contains("_agent_unfed"), "{word}");
        assert!(without.text().starts_with(&format!("no watchdog: on_quorum_loss is {word}; {silent}\n")), "{word}");
    }
    let disarmed = State { fed: false, armed: false, disarmed: Some("maintenance".to_owned()), ..state() };
    assert!(!dead(disarmed.clone()).is_unfed() && dead(disarmed.clone()).metrics().contains("_agent_unfed 0\n"));
    assert!(dead(disarmed.clone()).text().starts_with(&format!("not armed: maintenance; {silent}\n")));
    // Without the magic close, maintenance feeds the device, and so the death of the agent is a reset.
    let fed = State { fed: true, ..disarmed.clone() };
    assert!(dead(fed).text().starts_with(&format!("not fed: {silent}\n")));
    let left_running = State { unfed: Some("no quorum since the start".to_owned()), ..disarmed };
    assert!(dead(left_running).is_unfed());
}

#[test]
fn the_metrics_have_all_names() {
    let page = of(state()).metrics();
    for line in [
        "members{state=\"alive\"} 2",
        "members{state=\"lost\"} 1",
        "quorum 2",
        "reachable 2",
        "armed 1",
        "fed 1",
        "unfed 0",
        "deadline_seconds 2",
        "health_score 1",
        "suspicions_total 3",
        "events_total{type=\"LEFT\"} 1",
        "datagrams_total{direction=\"sent\",network=\"eth0\"} 9",
        "dropped_total{reason=\"seal\"} 4",
    ] {
        assert!(page.lines().any(|found| found == format!("tandem_fencing_agent_{line}")), "{line}: {page}");
    }
    let unfed = of(State { fed: false, unfed: Some("quorum lost".to_owned()), ..state() });
    assert!(unfed.metrics().contains("\ntandem_fencing_agent_unfed 1\n"));
    assert!(!of(State { on_quorum_loss: "wait".to_owned(), ..state() }).metrics().contains("_agent_fed"));
    let watched = of(State { watch_age: Some(2.5), ..state() }).metrics();
    assert!(!page.contains("watch_age") && watched.contains("watch_age_seconds 2.5"));
    assert!(!page.contains("api_up") && of(State { api_up: Some(true), ..state() }).metrics().contains("api_up 1"));
}

#[test]
fn what_is_read_is_what_was_written_in_this_boot() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(Status::read(dir.path()), Err(Unknown::NotRunning)));
    Writer::new().write(state(), dir.path()).unwrap();
    assert!(Status::read(dir.path()).unwrap().fed);
    Writer::new().write(State { boot: "another".to_owned(), ..state() }, dir.path()).unwrap();
    assert!(matches!(Status::read(dir.path()), Err(Unknown::NotRunning)));
    std::fs::write(dir.path().join("status.json"), "{").unwrap();
    assert!(matches!(Status::read(dir.path()), Err(Unknown::Unreadable(_))));
}

#[test]
fn every_key_is_explained_in_the_help() {
    let help = super::super::command_line();
    let help = help.find_subcommand("status").unwrap().get_after_help().unwrap().to_string();
    let json: serde_json::Value = serde_json::from_str(&of(state()).json().unwrap()).unwrap();
    let inner = json["members"][0].as_object().unwrap().keys().chain(json["datagrams"][0].as_object().unwrap().keys());
    for key in json.as_object().unwrap().keys().chain(inner) {
        assert!(help.contains(key.as_str()), "{key}");
    }
}
