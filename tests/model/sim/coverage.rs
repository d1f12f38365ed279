//! The coverage of the daily searches and the scenarios: a move, an effect, a rule or a refusal that none of them
//! reaches is not tested by the model at all. Each one that is not reached is listed here with its reason, and a new
//! variant does not compile until it has its place.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use tandem::decide::reason::{Health, LoneBootStep, Reason, ReasonStep, Refusal, Rule, Wait};
use tandem::decide::{Effect, RunMode};
use tandem::sim::check::check;
use tandem::sim::moves::{self, Move};
use tandem::sim::mutant::Mutant;
use tandem::sim::pacemaker::Begin;
use tandem::sim::search::Limits;
use tandem::sim::{Bounds, Sim, scenario, story};

/// Makes a list of an enum's variants, each with the reason why no search reaches it, or an empty reason. Also makes a
/// function that returns the name of a variant.
macro_rules! variants {
    ($name:ident, $all:ident, $what:ident: $($variant:ident $(not because $why:literal)?,)*) => {
        fn $name(what: &$what) -> &'static str {
            match what {
                $($what::$variant { .. } => stringify!($variant),)*
            }
        }

        const $all: &[(&str, &str)] = &[$((stringify!($variant), concat!($($why)?))),*];
    };
}

variants! { name_of_move, MOVES, Move:
    Write, Replicate, Learn, Persist, Elect, Leave, StepDown, PowerCut, Destroy, Unblock, Boot, KillEtcd, KillAgent, CutLink,
    HealLink, Lag, CatchUp, Notice, Meet, Fence, Begin, Decide, Effect, GiveUp, Want, Confirm, Choose, Tell, Forget,
    Hide, Erase, PutBack, RollBack, Copy, Unmount, Mount, PromoteElsewhere, LoseThirdVoter, ThirdVoterBack, EndStack, KillStack, StackBack, KillLaunch, Launched, Damage,
    CutUsers, UsersBack, PartEtcd, JoinEtcd, DelayOver, Keep, BmcFails, BmcBack, OffForLong, LoneLook, LoneAct,
    RemoveElsewhere not because "only a search with --others-remove has it",
    CleanUp not because "it takes more faults than these searches have",
}

variants! { name_of_begin, BEGINNINGS, Begin:
    Probe, Start, Monitor, Stop, StopInVain, BeforeStart, AfterStart, AfterStop, Promote, Demote,
}

variants! { name_of_effect, EFFECTS, Effect:
    EndLaunch,
    PublishRecord,
    RestoreRecord,
    PublishIdentity,
    PublishLineage,
    PublishPeerLineage,
    SetStandalone,
    SetLearner,
    WriteNote,
    Remember,
    ConsumeConfirmation,
    SetAlarm not because "no etcd in the model raises an alarm",
    PublishImage not because "it is for people, and no decision rests on it",
    ShowFenceWait not because "the model fences after any time",
    ShowLeader not because "it is for other programs, and no decision rests on it",
    SetReached,
    SetRedundancy,
    ForgetPrimary,
    SetFailures,
    TellOthers,
    SetPromotionScore,
    StopContainer,
    NoteFailedStart not because "the model counts by itself that no etcd starts from damaged data",
    ForgetFailedStarts not because "no etcd of the model serves from data that it did not start from before",
    AdvanceCommit,
    MoveDataAside,
    MoveHistoryAside,
    DropBackups not because "the model's disks are never full",
    PruneBackups,
    RunContainer,
    VoteProxy,
    SettleConfig,
    MoveLeader,
    RemoveMember,
    AddLearner,
    PromoteMember,
    AnnounceLoneBoot not because "no agent performs it: the moves LoneLook and LoneAct do",
    HoldPeerOff not because "no agent performs it: the moves LoneLook and LoneAct do",
    CancelWaitForAll not because "no agent performs it: the moves LoneLook and LoneAct do",
}

variants! { name_of_mode, MODES, RunMode: Normally, Bootstrap, ForceNewCluster, JoinAsLearner, }

variants! { name_of_rule, RULES, Rule:
    AlreadyServing not because "nobody starts etcd by hand in the model, and what a killed agent left behind is waited for",
    PeerServesAndListsThisMember,
    PeerServesAndThisDataIsNotIts,
    PeerServesAndThisNodeIsBlank,
    TwoPlainStarts,
    SoleVoter,
    PeerIsSoleVoter not because "a node that follows its peer gives one reason alone: it waits for the peer to serve",
    ChosenPrimary,
    PeerIsChosenPrimary not because "a node that follows its peer gives one reason alone: it waits for the peer to serve",
    PrimaryIsKept,
    PeerIsKept not because "a node that follows its peer gives one reason alone: it waits for the peer to serve",
    PeerHasTheVotersData not because "a node that follows its peer gives one reason alone: it waits for the peer to serve",
    PeerHasNoData,
    PeerWentOnAlone not because "a node that follows its peer gives one reason alone: it waits for the peer to serve",
    PeerWasLeftBehind not because "it takes more faults than these searches have",
    FirstByNameBootstraps,
    SurvivorGoesOnAlone,
    OperatorConfirmed,
    PeerCameBack,
    PeerJoinedSince,
    PeerActiveButWithoutLeader,
    MoreThanTwoVoters,
    OnlyNode not because "the model has two nodes",
}

variants! { name_of_refusal, REFUSALS, Refusal:
    EarlierActionLasts,
    AddressChanged not because "nobody changes parameters in the model",
    AskedToGoOn not because "nobody changes parameters in the model",
    CibUnreadable,
    DiskUnreadable,
    NoteUnreadable,
    HistoriesSplit,
    PeerWentOnAloneAndLostItsData,
    PeerMayHaveGoneOnAndLostItsData not because "it takes more faults than these searches have",
    DataOfARecordedClusterIsGone,
    OnlyNodesDataIsGone not because "the model has two nodes",
    DiskWasPutBack,
    CopiedDisk,
    AnotherClusterAnswers,
    NoVotersData,
    NoProofThatPeerDidNotGoOn,
    PeerWentOnWithoutUs,
    LearnerAlone,
    DepartedAlone,
    BlankAlone,
    BrokenAlone not because "damaged data of the model counts as broken only beside a peer that has all of it",
    DatabaseAheadOfLog not because "a disk of the model is whole or blank",
    PeerSaysNothing,
    PeerDoesNotServe,
    YieldsToPrimary,
    PrimaryNotReached,
    PeerNotConfirmed,
    EtcdExited,
    EtcdDoesNotAnswer,
    ContainerUnknown,
    NotAVoterYet not because "Pacemaker promotes where an agent has set a score, and a learner sets none",
    StillRunning not because "in the model etcd ends with the effect that stops it",
    NoRoomToJoin not because "the model's disks are never full",
    PeerServesThoughNotChosen not because "it takes more faults than these searches have",
    PeerLostWhileJoining,
    InTheWay not because "no other program runs on the model's machines",
    MachineIsDeleted not because "the model has no OpenShift",
    ConfirmationIsOutdated,
    CheckFailed not because "nobody asks for a check in the model",
    NoPermission not because "etcd has no auth in the model",
    LoneBoot,
    NoTimeToGoOn not because "the machines of the model are quick",
}

variants! { name_of_step, STEPS, ReasonStep:
    EndEarlierAction,
    RestoreRecord,
    AnnounceGoingOnAlone,
    StopBeforeForce,
    RestartInstead,
    VoteProxy,
    TookOver,
    AdvanceAndForce,
    ListPeerAsLearner,
    RemoveStaleEntry,
    RemoveDeleted not because "the model has no OpenShift",
    ListOurselvesAsLearner,
    PromoteLearner,
    RemoveStranger not because "nobody adds a learner of another name in the model",
    ThirdVoterMakesPlace,
    DropBackups not because "the model's disks are never full",
    HandOverLeadership,
    YieldToPrimary,
    LeaveBeforeStop,
    GiveLeadership,
    StopEtcd,
    AskPeerToPromote not because "Pacemaker promotes where an agent has set a score, and a learner sets none",
    TakeBackOutdatedConfirmation,
}

variants! { name_of_wait, WAITS, Wait:
    MoreTime,
    Restart not because "nobody restarts the container behind Pacemaker in the model",
    EarlierAction,
    OwnRecord,
    PeerRecord,
    PeerToServe,
    PeerConfirmed,
    OwnLeader,
    OwnAnswer,
    LearnerToCatchUp,
    Learner,
    SecondLook,
    BeforeFailing not because "the model's starts are not paced",
    PeerVote,
    EtcdToStop not because "in the model etcd ends with the effect that stops it",
    WayToBeFree not because "no other program runs on the model's machines",
}

variants! { name_of_lone_boot, LONE_BOOTS, LoneBootStep:
    HasQuorum not because "the process ends with quorum",
    Waits,
    Announces,
    HoldsPeerOff,
    EndsTheWait,
}

variants! { name_of_health, HEALTHS, Health:
    VoterOfTwo,
    SoleVoter,
    VoterAmong,
    WithoutMajority,
    Learner,
    Alarm not because "no etcd in the model raises an alarm",
    LeaderlessPeerNotConfirmed,
    LeaderlessPeerKeepsItsClaim,
    NotRunning,
    NoPermission not because "etcd has no auth in the model",
    Stopped,
}

/// The moves and decisions that searches and scenarios have reached.
#[derive(Default)]
struct Reached {
    kinds: u128,
    names: BTreeSet<(&'static str, &'static str)>,
}

impl Reached {
    /// Adds the decisions, plans and effects that a search or a scenario has reached.
    fn add(&mut self, sim: &Sim) {
        for reason in (0..sim.said.len()).filter_map(|id| sim.said.get(id.try_into().unwrap()).as_ref()) {
            let name = match reason {
                Reason::Rule { rule, .. } => ("rule", name_of_rule(rule)),
                Reason::Refused { refusal, .. } => ("refusal", name_of_refusal(refusal)),
                Reason::Step(step) => ("step", name_of_step(step)),
                Reason::Waiting(wait) => ("wait", name_of_wait(wait)),
                Reason::Running(health) => ("health", name_of_health(health)),
                Reason::NothingToDo => continue,
                Reason::LoneBoot { step, .. } => ("lone boot", name_of_lone_boot(step)),
            };
            self.names.insert(name);
        }
        for todo in (0..sim.todos.len()).map(|id| sim.todos.get(id.try_into().unwrap())) {
            for effect in todo.effects.iter() {
                self.names.insert(("effect", name_of_effect(effect)));
                if let Effect::RunContainer(mode) = effect {
                    self.names.insert(("mode", name_of_mode(mode)));
                }
            }
        }
    }

    fn add_search(&mut self, bounds: Bounds) {
        let limits = Limits { states: 4_000_000, time: Duration::from_secs(600), stop_at_first: false, threads: 2 };
        let mut sim = Sim::new(bounds, Mutant::None);
        let outcome = check(&mut sim, limits);
        assert_eq!(outcome.cut_short, None, "{bounds:?}");
        assert_eq!(outcome.violations, 0, "{bounds:?}: {:?}", outcome.first_violation);
        self.kinds |= outcome.kinds;
        self.add(&sim);
    }

    fn add_scenarios(&mut self) {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/model/scenarios");
        let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        for path in paths.filter(|path| path.extension().is_some_and(|extension| extension == "scn")) {
            let trace = scenario::parse(&fs::read_to_string(&path).unwrap()).unwrap();
            let mut sim = Sim::new(Bounds::for_scenarios(), Mutant::None);
            assert_eq!(story::tell(&mut sim, &trace).1, Ok(()), "{}", path.display());
            self.kinds |= trace.moves.iter().fold(0, |kinds, what| kinds | 1 << what.kind());
            self.add(&sim);
        }
    }

    /// Adds the names of the moves of all kinds that were reached.
    fn add_moves(&mut self) {
        for what in moves::all().into_iter().filter(|what| self.kinds & (1 << what.kind()) != 0) {
            self.names.insert(("move", name_of_move(&what)));
            if let Move::Begin(_, begin, _) = what {
                self.names.insert(("begin", name_of_begin(&begin)));
            }
        }
    }
}

/// Returns what is wrong with a list of variants: those that should be reached and are not, and those with a reason that are.
fn wrong(reached: &Reached, kind: &'static str, list: &[(&'static str, &'static str)]) -> Vec<String> {
    let is_wrong =
        |(name, why): &&(&'static str, &'static str)| why.is_empty() != reached.names.contains(&(kind, *name));
    let tell = |(name, why): &(&str, &str)| match *why {
        "" => format!("{kind} {name} is not reached"),
        why => format!("{kind} {name} is reached, though {why}"),
    };
    list.iter().filter(is_wrong).map(tell).collect()
}

#[test]
fn everything_is_reached_or_has_a_reason_why_not() {
    let mut reached = Reached::default();
    for bounds in [
        Bounds { forgets: true, others_promote: true, ..Bounds::of_search(2) },
        Bounds { disks: true, unblocks: true, slow_fencing: true, ..Bounds::of_search(1) },
        Bounds { blank: true, disks: true, ..Bounds::of_search(1) },
        Bounds { silent_without_leader: false, ..Bounds::of_search(1) },
        Bounds { damage: true, threshold: 2, ..Bounds::of_search(1) },
        Bounds { blank: true, operators: false, ..Bounds::of_search(1) },
        Bounds { promotable: true, ..Bounds::of_search(1) },
        Bounds { chooses: true, operators: false, ..Bounds::of_search(1) },
        Bounds { third_voter: true, ..Bounds::of_search(2) },
        Bounds { tells: true, blank: true, operators: false, ..Bounds::of_search(1) },
        Bounds { hides: true, blank: true, operators: false, ..Bounds::of_search(1) },
        Bounds { puts_back: true, counts_forks: true, unmounts: true, ..Bounds::of_search(1) },
        Bounds { primary: Some(1), cuts_users: true, parts_etcd: true, ..Bounds::of_search(1) },
        Bounds { primary: Some(0), two_histories: true, ..Bounds::of_search(1) },
        Bounds { lone_boot: true, ..Bounds::of_search(2) },
    ] {
        reached.add_search(bounds);
    }
    reached.add_scenarios();
    reached.add_moves();
    let lists = [
        ("move", MOVES),
        ("begin", BEGINNINGS),
        ("effect", EFFECTS),
        ("mode", MODES),
        ("rule", RULES),
        ("refusal", REFUSALS),
        ("step", STEPS),
        ("wait", WAITS),
        ("lone boot", LONE_BOOTS),
        ("health", HEALTHS),
    ];
    let wrong: Vec<String> = lists.into_iter().flat_map(|(kind, list)| wrong(&reached, kind, list)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Asserts that two moves have the same kind only if they differ in nothing but the node, the moment or a number.
/// Each kind is one bit of an integer.
#[test]
fn every_move_has_a_kind_of_its_own() {
    let all = moves::all();
    for a in &all {
        assert!(a.kind() < 128, "{a:?}");
        for b in all.iter().filter(|b| a.kind() == b.kind()) {
            let without_numbers = |what: &Move| match *what {
                Move::Begin(_, begin, _) => Move::Begin(0, begin, 0),
                Move::Decide(..) => Move::Decide(0, 0),
                Move::PutBack(..) => Move::PutBack(0, 1, false),
                Move::RollBack(..) => Move::RollBack(0, 1, false),
                Move::Copy(..) => Move::Copy(0, true),
                Move::Confirm(_, accept_loss, _) => Move::Confirm(0, accept_loss, false),
                what if what.of_the_other() == what => what,
                what => [what, what.of_the_other()].into_iter().min_by_key(|what| format!("{what:?}")).unwrap(),
            };
            assert_eq!(without_numbers(a), without_numbers(b));
        }
    }
}
