//! The story of each rule, as a person reads it: what is known, what is decided and why, what `crm_mon` shows, and what is
//! done. One file for each situation in `tests/data/golden/decisions`; `TANDEM_BLESS=1` writes them anew, to be read.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use super::world::*;
use crate::admin::evidence;
use crate::base::Fact;
use crate::decide::evidence::*;
use crate::decide::plan::{Exit, Next, Phase, Plan, Progress, Request};

struct Situation {
    name: &'static str,
    request: Request,
    progress: Progress,
    evidence: Evidence,
}

fn begin(name: &'static str, request: Request, evidence: Evidence) -> Situation {
    Situation { name, request, progress: Progress::default(), evidence }
}

fn story(situation: &Situation) -> String {
    let Situation { request, progress, evidence, .. } = situation;
    let plan = decide(*request, evidence, progress);
    let mut text = format!("asked for: {request:?}, after {} ms", evidence.elapsed_ms);
    if progress.phase != Phase::Begin {
        let _ = write!(text, ", phase {:?}", progress.phase);
    }
    let _ = write!(text, "\n\nevidence\n{}", evidence::text(evidence));
    if let Some(notify) = &evidence.notify {
        let operation = serde_json::to_value(notify.operation).unwrap();
        let _ = writeln!(
            text,
            "  {:<18} {:?} {}: start {:?}, stop {:?}",
            "transition",
            notify.moment,
            operation.as_str().unwrap_or_default(),
            notify.start,
            notify.stop
        );
    }
    text + &decision(&plan)
}

fn decision(plan: &Plan) -> String {
    let mut text = format!("\nlog\n  {}\n", plan.because);
    match &plan.next {
        Next::Exit(Exit::Retriable) => {
            let _ = write!(text, "\nexit reason\n  {}\n", plan.because.short());
        }
        Next::Exit(exit) => {
            let _ = write!(text, "\nanswer\n  {exit:?}\n");
        }
        Next::Reobserve { after_ms, progress } => {
            let _ = write!(text, "\nthen\n  looks again after {after_ms} ms, phase {:?}\n", progress.phase);
        }
    }
    text += "\neffects\n";
    for effect in &plan.effects {
        let _ = writeln!(text, "  {effect:?}");
    }
    if plan.effects.is_empty() { text + "  none\n" } else { text }
}

fn pair(me: u64) -> DataDir {
    history(me, &[ME, PEER], &[])
}

fn together(mine: DataDir, peers: DataDir) -> Evidence {
    at_rest().both_start().with_disk(mine).with_peer_record(peers)
}

fn beside_serving(disk: DataDir, voters: &[u64], learners: &[u64]) -> Evidence {
    let mut evidence = at_rest().with_disk(disk).peer_is(PeerNode::Online, PeerAgent::Active);
    evidence.peer_etcd = Fact::Known(etcd(PEER, Some(PEER), voters, learners));
    evidence
}

fn listed_learner(disk: DataDir) -> Evidence {
    let mut evidence = beside_serving(disk, &[PEER], &[]);
    let peer_urls = vec!["https://node1:2380".to_owned()];
    if let Fact::Known(serving) = &mut evidence.peer_etcd {
        serving.members.push(Member { id: 9, name: String::new(), peer_urls, is_learner: true });
    }
    evidence
}

fn alone(disk: DataDir) -> Evidence {
    at_rest().with_disk(disk).peer_is(PeerNode::Down, PeerAgent::NoHistory)
}

fn voter(leader: Option<u64>) -> Evidence {
    at_rest().running(Fact::Known(etcd(ME, leader, &[ME, PEER], &[]))).seen_voting()
}

fn starts() -> Vec<Situation> {
    let start = |name, evidence| begin(name, Request::Start, evidence);
    let full = Room {
        free_bytes: 50 << 20,
        backups: vec![Backup { name: "member-backup-0001".to_owned(), bytes: 300 << 20 }],
    };
    vec![
        start("r0-etcd-runs-and-answers", voter(Some(PEER)).peer_is(PeerNode::Online, PeerAgent::Active)),
        start("r1-listed-member-starts-with-its-data", beside_serving(pair(ME), &[ME, PEER], &[])),
        start("r1-stranger-is-listed-first", beside_serving(pair(ME), &[PEER], &[])),
        start("r1-listed-learner-joins-and-keeps-its-data-aside", listed_learner(pair(ME))),
        start("r1-replaced-node-joins-with-an-empty-disk", listed_learner(DataDir::Blank)),
        start(
            "r1-short-disk-drops-the-oldest-backup",
            Evidence { room: Fact::Known(full.clone()), ..listed_learner(pair(ME)) },
        ),
        start(
            "r1-short-disk-without-a-backup-to-drop-refuses",
            Evidence { room: Fact::Known(Room { backups: Vec::new(), ..full }), ..listed_learner(pair(ME)) },
        ),
        start("r2-two-voters-start-plainly", together(pair(ME), pair(PEER))),
        start("r2-sole-voter-beside-its-learner", together(history(ME, &[ME], &[PEER]), history(PEER, &[ME], &[PEER]))),
        start(
            "r2-learner-beside-the-sole-voter-waits",
            together(history(ME, &[PEER], &[ME]), history(PEER, &[PEER], &[ME])),
        ),
        start("r2-voter-beside-an-empty-disk-goes-on", together(pair(ME), DataDir::Blank)),
        start("r2-empty-disk-beside-a-voter-waits", together(DataDir::Blank, pair(PEER))),
        start("r2-two-histories-refuse", together(history(ME, &[ME], &[]), history(PEER, &[PEER], &[]))),
        start(
            "r2-two-histories-and-a-choice",
            together(history(ME, &[ME], &[]), history(PEER, &[PEER], &[]))
                .cib_with(|cib| cib.primary = Some("node1".to_owned())),
        ),
        start("r2-two-histories-and-a-parameter", super::two_histories::split("node1")),
        start("r2-two-histories-and-a-parameter-for-the-peer", super::two_histories::split("node2")),
        start("r2-two-blank-disks-begin", together(DataDir::Blank, DataDir::Blank)),
        start(
            "r2-two-blank-disks-of-a-cluster-refuse",
            together(DataDir::Blank, DataDir::Blank).cib_with(|cib| cib.cluster_recorded = true),
        ),
        start("r2-two-learners-refuse", together(history(ME, &[7], &[ME]), DataDir::Blank)),
        start("r2-peer-says-nothing-is-waited-for", at_rest().both_start().with_disk(pair(ME))),
    ]
}

fn starts_without_a_peer() -> Vec<Situation> {
    let start = |name, evidence| begin(name, Request::Start, evidence);
    vec![
        start("r3-sole-voter-starts-alone", alone(history(ME, &[ME], &[]))),
        start("r3-survivor-announces", alone(pair(ME)).seen_voting().with_disk(pair(ME))),
        start("r3-after-a-reboot-refuses", alone(pair(ME))),
        start("r3-operators-word-announces", Evidence { confirmation: Fact::Known(word(false)), ..alone(pair(ME)) }),
        start(
            "r3-operators-word-without-the-loss-refuses",
            Evidence { confirmation: Fact::Known(word(false)), ..alone(pair(ME)) }
                .cib_with(|cib| cib.lineage = forks(1, "node2")),
        ),
        start(
            "r3-operators-word-with-the-loss-announces",
            Evidence { confirmation: Fact::Known(word(true)), ..alone(pair(ME)) }
                .cib_with(|cib| cib.lineage = forks(1, "node2")),
        ),
        start("r3-learner-alone-refuses", alone(history(ME, &[PEER], &[ME]))),
        start("r3-departed-member-alone-refuses", alone(departed(ME))),
        start("r3-empty-disk-alone-refuses", alone(DataDir::Blank)),
        start("r3-lost-and-not-fenced-waits", at_rest().with_disk(pair(ME)).peer_is(PeerNode::Lost, PeerAgent::Active)),
        start(
            "r4-voter-starts-beside-a-leaderless-peer",
            at_rest().with_disk(pair(ME)).peer_is(PeerNode::Online, PeerAgent::Active),
        ),
        start(
            "r4-empty-disk-waits-for-a-leaderless-peer",
            at_rest().with_disk(DataDir::Blank).peer_is(PeerNode::Online, PeerAgent::Active),
        ),
        start(
            "an-unreadable-cib-refuses",
            Evidence {
                cib: Fact::Unknown("cibadmin gave no answer within 8.0 s and was killed".to_owned()),
                ..together(pair(ME), pair(PEER))
            },
        ),
        start(
            "an-unreadable-disk-refuses",
            Evidence {
                disk: Fact::Unknown("reading /var/lib/etcd/member/wal: Input/output error".to_owned()),
                ..together(pair(ME), pair(PEER))
            },
        ),
    ]
}

fn while_running() -> Vec<Situation> {
    let fenced = voter(None).peer_is(PeerNode::Down, PeerAgent::NoHistory);
    let announced = Evidence {
        note: Fact::Known(DurableState {
            lineage: forks(1, "node1"),
            alone_since: Some(LogPosition { term: 3, index: 1000 }),
            ..DurableState::default()
        }),
        ..fenced.clone().cib_with(|cib| {
            cib.lineage = forks(1, "node1");
            cib.standalone_node = Some("node1".to_owned());
        })
    };
    let stopped =
        Evidence { own_etcd: Fact::Absent, disk: Fact::Known(pair(ME)), ..announced.clone() }.at_the_barrier();
    let with_alarm = {
        let alarms = vec!["memberID:2 alarm:NOSPACE ".to_owned()];
        let own = Etcd { alarms, ..etcd(ME, Some(ME), &[ME, PEER], &[]) };
        Evidence { own_etcd: Fact::Known(own), ..voter(Some(ME)) }
    };
    let learner = |polls_caught_up| {
        let mut evidence = at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME], &[PEER]))).seen_voting();
        evidence.peer_etcd = Fact::Known(etcd(PEER, Some(ME), &[ME], &[PEER]));
        let progress = Progress { polls_caught_up, ..Progress::default() };
        Situation { name: "monitor-promotes-a-learner-that-caught-up", request: Request::Monitor, progress, evidence }
    };
    let in_phase =
        |name, request, phase, evidence| Situation { name, request, progress: Progress::enter(phase, 0), evidence };
    let sole = at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME], &[]))).seen_voting();
    vec![
        begin(
            "notify-after-fencing-announces",
            Request::Notify,
            fenced.clone().notified(Moment::Post, Operation::Stop, &[], &["node2"]),
        ),
        in_phase("recovery-2-stops-etcd", Request::Notify, Phase::Announced, announced),
        Situation {
            name: "recovery-3-advances-and-forces",
            request: Request::Notify,
            progress: barrier(),
            evidence: stopped,
        },
        begin(
            "notify-before-a-stop-proves-nothing",
            Request::Notify,
            fenced.clone().notified(Moment::Pre, Operation::Stop, &[], &["node2"]),
        ),
        begin(
            "notify-lists-a-returning-peer",
            Request::Notify,
            sole.notified(Moment::Pre, Operation::Start, &["node2"], &[]),
        ),
        begin("monitor-is-the-backstop", Request::Monitor, fenced),
        begin("monitor-waits-for-fencing", Request::Monitor, voter(None).peer_is(PeerNode::Lost, PeerAgent::Active)),
        begin("monitor-shows-an-alarm", Request::Monitor, with_alarm),
        begin(
            "monitor-finds-a-hung-etcd",
            Request::Monitor,
            Evidence {
                own_etcd: Fact::Unknown("https://192.0.2.1:2379 gave no answer within 2.5 s".to_owned()),
                ..voter(Some(ME))
            }
            .peer_is(PeerNode::Online, PeerAgent::Active)
            .after(13_000),
        ),
        learner(1),
    ]
}

fn stops_and_roles() -> Vec<Situation> {
    let leaving = |leader| {
        let mut evidence = voter(Some(leader)).peer_is(PeerNode::Online, PeerAgent::Active).notified(
            Moment::Outside,
            Operation::None,
            &[],
            &["node1"],
        );
        evidence.peer_etcd = Fact::Known(etcd(PEER, Some(leader), &[ME, PEER], &[]));
        evidence
    };
    let mute = Evidence {
        container: Fact::Unknown("podman gave no answer within 8.0 s and was killed".to_owned()),
        ..at_rest()
    }
    .with_disk(pair(ME))
    .after(40_000);
    let asks = {
        let mut evidence = at_rest().running(Fact::Known(etcd(ME, Some(PEER), &[PEER], &[ME])));
        evidence.peer_etcd = Fact::Known(etcd(PEER, Some(PEER), &[PEER], &[ME]));
        let progress = Progress { polls_caught_up: 1, ..Progress::default() };
        Situation { name: "promote-asks-the-peer", request: Request::Promote, progress, evidence }
    };
    vec![
        begin("stop-leader-hands-over", Request::Stop, leaving(ME)),
        begin("stop-follower-leaves", Request::Stop, leaving(PEER)),
        begin(
            "stop-of-both-leaves-nobody-out",
            Request::Stop,
            leaving(PEER).notified(Moment::Outside, Operation::None, &[], &["node1", "node2"]),
        ),
        Situation {
            name: "stop-ends-though-podman-hangs",
            request: Request::Stop,
            progress: Progress::enter(Phase::Stopped, 30_000),
            evidence: mute,
        },
        asks,
    ]
}

fn lone_boots() -> Vec<Situation> {
    let lone_boot = |name, evidence| begin(name, Request::LoneBoot, evidence);
    vec![
        lone_boot("lone-boot-is-announced", super::lone_boot::sole_voter_alone()),
        lone_boot("lone-boot-of-two-voters-refuses", super::lone_boot::two_voters_alone()),
        lone_boot("lone-boot-beside-a-peer-that-is-on-refuses", super::lone_boot::beside_a_peer_that_is_on()),
    ]
}

#[test]
fn each_rule_tells_its_story() {
    let bless = std::env::var_os("TANDEM_BLESS").is_some();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/golden/decisions");
    let mut expected_files = Vec::new();
    let all = starts().into_iter().chain(starts_without_a_peer()).chain(while_running()).chain(stops_and_roles());
    for situation in all.chain(lone_boots()) {
        let path = directory.join(format!("{}.txt", situation.name));
        let story = story(&situation);
        if bless {
            fs::create_dir_all(&directory).unwrap();
            fs::write(&path, &story).unwrap();
        }
        let golden = fs::read_to_string(&path).unwrap_or_default();
        assert!(story == golden, "{} tells another story now:\n{story}", path.display());
        expected_files.push(path);
    }
    expected_files.sort();
    let mut files: Vec<_> = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert_eq!(files, expected_files, "a story that nothing tells");
}
