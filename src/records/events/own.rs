//! The resource agent's decisions and effects as events: standalone, redundant again, refused, an alarm, two histories. They
//! follow from a plan that was carried out, and are written when it changes something. A lasting state is reported once, however
//! often it is observed.

use std::path::Path;
use std::time::Duration;

use super::append::append_within;
use super::{Event, Repeat, Type, reason};
use crate::base::shell;
use crate::decide::evidence::{DataDir, Etcd, Evidence, LogPosition};
use crate::decide::reason::{Refusal, Wait};
use crate::decide::{Effect, Reason};
use crate::os::clock;

/// The time for which an action of the agent waits for other writers of events. It is short, because an action has more important work.
const PATIENCE: Duration = Duration::from_millis(100);
/// The milliseconds within which a second event about the same state is dropped.
const ONE_CHANGE: u64 = 10 * 60 * 1000;
/// The milliseconds in a day. A refusal that lasts longer is reported again after each day.
const A_DAY: u64 = 24 * 60 * 60 * 1000;

/// An event, and the rule by which it is dropped if the file of events has one with the same cause.
type Told = (Event, Repeat<'static>);

/// Returns the event about an `effect` that was performed on `node`; `None` if the effect needs no event. The event about a sole voter is
/// an error, unless `is_new` is true, because a new cluster begins with one voter.
pub fn of_effect(node: &str, effect: &Effect, because: &Reason, is_new: bool) -> Option<Told> {
    let told =
        |kind, reason, message, ends| (state(node, kind, reason, message), Repeat::Until { ends, within: ONE_CHANGE });
    match effect {
        Effect::SetStandalone(Some(name)) => {
            let (kind, until) =
                if is_new { (Type::Normal, ", until the other node has joined") } else { (Type::Error, "") };
            let message = format!("the etcd of {name} is the only voter: {because}{until}");
            Some(told(kind, reason::ALONE, message, &[reason::REDUNDANT]))
        }
        Effect::SetAlarm(Some(alarms)) => {
            let (mut event, repeat) = told(Type::Error, reason::ALARM, alarms.clone(), &[reason::ALARM_GONE]);
            event.cause = format!("{} {alarms}", event.cause);
            Some((event, repeat))
        }
        Effect::SetAlarm(None) => {
            Some(told(Type::Normal, reason::ALARM_GONE, "etcd raises no alarm any more".to_owned(), &[reason::ALARM]))
        }
        Effect::AnnounceLoneBoot(name) => {
            let message = format!("{name} boots alone and holds its peer off: {because}");
            Some(told(Type::Warning, reason::LONE_BOOT, message, &[reason::REDUNDANT]))
        }
        _ => None,
    }
}

/// Returns the event of an etcd on `node` that has become leader in its present term.
pub fn of_leader(node: &str, etcd: &Etcd) -> Told {
    let message = format!("the etcd of {node} leads, in term {}", etcd.term);
    let cause = format!("{} {node} {:x} {}", reason::LEADER, etcd.cluster_id, etcd.term);
    (Event::new(clock::wall_millis(), Type::Normal, reason::LEADER, node, message, cause), Repeat::Never)
}

/// Data that this node gave up for the other node's data and keeps on disk.
#[derive(Clone, Debug, Default)]
pub struct GivenUp {
    pub path: String,
    /// The newest revision that the data of both nodes is known to share; `None` if it is unknown.
    pub fork: Option<u64>,
    /// The last revision of the given-up data; `None` if it is unknown.
    pub last: Option<u64>,
    /// The node with the data that the cluster uses instead of the given-up data.
    pub kept: Option<String>,
}

impl GivenUp {
    fn details(self, node: &str) -> Vec<(&'static str, String)> {
        let number = |number: Option<u64>| number.map(|number| number.to_string());
        let diff = format!("tandem data-dir diff {} live", shell::quoted(&self.path));
        let details = [
            ("node", Some(node.to_owned())),
            ("path", Some(self.path)),
            ("fork_revision", number(self.fork)),
            ("last_revision", number(self.last)),
            ("kept_node", self.kept),
            ("diff", Some(diff)),
        ];
        details.into_iter().filter_map(|(name, text)| Some((name, text?))).collect()
    }
}

/// Returns the event about data that this node gave up for the other node's data and keeps on disk. The event has the last position in the
/// given-up data, and the position where the two nodes' data diverged.
pub fn of_given_up_history(node: &str, evidence: &Evidence, because: &Reason, given_up: GivenUp) -> Option<Told> {
    let DataDir::Present(history) = evidence.disk.known()? else { return None };
    let ends = LogPosition { term: history.last_term, index: history.last_index };
    let since = evidence.last_note().and_then(|note| note.alone_since);
    let (event, repeat) = kept(node, ends, since, because);
    Some((event.with_details(given_up.details(node)), repeat))
}

fn kept(node: &str, ends: LogPosition, since: Option<LogPosition>, because: &Reason) -> Told {
    let ends = reach(ends);
    let since = since.map(|since| format!(", of its own since {}", reach(since))).unwrap_or_default();
    let message = format!("data that reaches {ends}{since} is kept as member-history-* on {node}: {because}");
    let cause = format!("{} {node} {ends}", reason::HISTORY_GIVEN_UP);
    let event = Event::new(clock::wall_millis(), Type::Warning, reason::HISTORY_GIVEN_UP, node, message, cause);
    (event, Repeat::Until { ends: &[], within: ONE_CHANGE })
}

fn reach(LogPosition { term, index }: LogPosition) -> String {
    format!("term {term} index {index}")
}

/// Returns the event about a `tandem confirm-recovery` that an operator typed on `node`. By this command the operator gave up the
/// writes that the node `lost` took after `position`. `operator` is a login name.
pub fn of_given_up(node: &str, lost: &str, position: LogPosition, operator: &str) -> Told {
    let position = reach(position);
    let message =
        format!("{operator} gave up the writes of {lost} after {position}, by 'tandem confirm-recovery' on {node}");
    let cause = format!("{} {node} {lost} {position}", reason::GIVEN_UP);
    let event = Event::new(clock::wall_millis(), Type::Warning, reason::GIVEN_UP, node, message, cause);
    (event, Repeat::Until { ends: &[], within: 0 })
}

/// Returns the event "two voters again" if `etcd` on `node` has two voters. Only the node that was the sole voter emits it.
///
/// `was_sole` is true if the agent knows from this boot that the node was the sole voter. If it is false, the node's stored events decide:
/// the newest [`reason::ALONE`] must be newer than the newest [`reason::REDUNDANT`].
pub fn of_two_voters(node: &str, etcd: Option<&Etcd>, was_sole: bool) -> Option<Told> {
    etcd.filter(|etcd| etcd.is_voter_with_leader() && etcd.is_redundant())?;
    let event = state(node, Type::Normal, reason::REDUNDANT, "etcd has two voters again".to_owned());
    let repeat = if was_sole {
        Repeat::Until { ends: &[reason::ALONE], within: ONE_CHANGE }
    } else {
        Repeat::After(reason::ALONE)
    };
    Some((event, repeat))
}

/// Returns an event about a state of the etcd of `node`. Each event about that state has the same cause.
fn state(node: &str, kind: Type, reason: &str, message: String) -> Event {
    Event::new(clock::wall_millis(), kind, reason, node, message, format!("{reason} {node}"))
}

/// Returns the event about an action that the agent refused on `node`; `None` if it was not refused.
pub fn of_refusal(node: &str, resource: &str, because: &Reason) -> Option<Told> {
    /// The reasons of events after which a refusal that continues is reported again.
    const OVER: &[&str] = &[reason::ALONE, reason::REDUNDANT, reason::RESOURCE_STARTED];
    let (Reason::Refused { refusal, .. } | Reason::Waiting(Wait::BeforeFailing { refusal, .. })) = because else {
        return None;
    };
    let reason = if *refusal == Refusal::HistoriesSplit { reason::HISTORIES_SPLIT } else { reason::REFUSED };
    let short = because.short();
    let cause = format!("{reason} {node} {resource} {short}");
    let event = Event::new(clock::wall_millis(), Type::Error, reason, node, short, cause);
    Some((event, Repeat::Until { ends: OVER, within: A_DAY }))
}

/// Adds the last positions and revisions of both nodes' data to an event about diverged data. Returns any other event unchanged. `revision`
/// reads this node's last revision, and is called only if it is needed.
pub fn with_both_ends(told: Option<Told>, evidence: &Evidence, revision: impl FnOnce() -> Option<u64>) -> Option<Told> {
    let (event, repeat) = told?;
    if event.reason != reason::HISTORIES_SPLIT {
        return Some((event, repeat));
    }
    let ends = |disk: Option<&DataDir>| match disk? {
        DataDir::Present(history) => Some(reach(LogPosition { term: history.last_term, index: history.last_index })),
        DataDir::Blank | DataDir::Broken { .. } => None,
    };
    let peer_record = evidence.cib.known().and_then(|cib| cib.peer_record.as_ref());
    let number = |number: Option<u64>| number.map(|number| number.to_string());
    let details = [
        ("node", Some(event.node.clone())),
        ("last_revision", number(revision())),
        ("ends", ends(evidence.disk.known())),
        ("peer", evidence.peer.as_ref().map(|peer| peer.name.clone())),
        ("peer_last_revision", number(peer_record.and_then(|record| record.revision))),
        ("peer_ends", ends(peer_record.map(|record| &record.disk))),
    ];
    let details: Vec<_> = details.into_iter().filter_map(|(name, text)| Some((name, text?))).collect();
    Some((event.with_details(details), repeat))
}

/// Writes the event, if there is one. A failure is only logged, because it must not affect the work for etcd.
pub fn tell(directory: &Path, told: Option<Told>) {
    let Some((event, repeat)) = told else { return };
    if let Err(error) = append_within(directory, event, repeat, PATIENCE) {
        log::debug!("this event cannot be recorded: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;
    use crate::base::Fact;
    use crate::decide::evidence::{Lineage, PublishedState};
    use crate::decide::reason::{LoneBootStep, Rule};
    use crate::records::decision_log::Entry;

    const NODE: &str = "node1";

    fn because() -> Reason {
        Reason::Rule { rule: Rule::SurvivorGoesOnAlone, peer: "node2".to_owned() }
    }

    fn refused(refusal: Refusal) -> Reason {
        Reason::Refused { refusal, peer: "node2".to_owned() }
    }

    fn reasons(directory: &Path) -> Vec<String> {
        read::all(directory).unwrap().into_iter().map(|event| event.reason).collect()
    }

    fn etcd(voters: &[u64]) -> Etcd {
        Etcd::of_test(1, Some(1), voters, &[])
    }

    #[test]
    fn what_changes_is_told_once_and_again_after_it_was_over() {
        let dir = tempfile::tempdir().unwrap();
        let of = |effect: &Effect| tell(dir.path(), of_effect(NODE, effect, &because(), false));
        let alone = Effect::SetStandalone(Some(NODE.to_owned()));
        let alarm = Effect::SetAlarm(Some("NOSPACE of node1".to_owned()));
        of(&alone);
        of(&alone);
        tell(dir.path(), of_two_voters(NODE, Some(&etcd(&[1, 2])), true));
        for effect in [&alone, &alarm, &alarm, &Effect::SetAlarm(None), &alarm, &Effect::ForgetPrimary] {
            of(effect);
        }
        let expected =
            [reason::ALONE, reason::REDUNDANT, reason::ALONE, reason::ALARM, reason::ALARM_GONE, reason::ALARM];
        assert_eq!(reasons(dir.path()), expected);
    }

    #[test]
    fn a_lone_boot_is_told_as_a_warning() {
        let peer = "node2".to_owned();
        let because = Reason::LoneBoot { step: LoneBootStep::Announces, peer };
        let announced = of_effect(NODE, &Effect::AnnounceLoneBoot(NODE.to_owned()), &because, false);
        let (event, _) = announced.unwrap();
        assert_eq!((event.kind, event.reason.as_str(), event.node.as_str()), (Type::Warning, reason::LONE_BOOT, NODE));
        assert!(event.message.starts_with("node1 boots alone and holds its peer off: L1 to L5 hold"), "{event:?}");
    }

    #[test]
    fn the_first_voter_of_a_new_cluster_is_no_error() {
        let alone = Effect::SetStandalone(Some(NODE.to_owned()));
        let kind = |is_new| of_effect(NODE, &alone, &because(), is_new).map(|(event, _)| event.kind);
        assert_eq!((kind(true), kind(false)), (Some(Type::Normal), Some(Type::Error)));
    }

    #[test]
    fn what_is_given_up_or_kept_has_its_position() {
        let dir = tempfile::tempdir().unwrap();
        let position = LogPosition { term: 7, index: 21_279 };
        tell(dir.path(), Some(of_given_up(NODE, "node2", position, "anna")));
        for _ in 0..2 {
            let since = Some(LogPosition { index: 900, ..position });
            tell(dir.path(), Some(kept(NODE, LogPosition { index: 1_000, ..position }, since, &because())));
        }
        assert_eq!(reasons(dir.path()), [reason::GIVEN_UP, reason::HISTORY_GIVEN_UP]);
        let messages: Vec<String> = read::all(dir.path()).unwrap().into_iter().map(|event| event.message).collect();
        assert!(messages[0].starts_with("anna gave up the writes of node2 after term 7 index 21279"), "{messages:?}");
        assert!(
            messages[1].contains("data that reaches term 7 index 1000, of its own since term 7 index 900"),
            "{messages:?}"
        );
    }

    /// Asserts that only the node that was the sole voter emits "two voters again", and only once after each period as the sole voter. The
    /// other node may observe two voters earlier or later.
    #[test]
    fn two_voters_are_told_of_once_by_the_node_that_was_alone() {
        let [survivor, returned] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        for _ in 0..2 {
            tell(survivor.path(), of_effect(NODE, &Effect::SetStandalone(Some(NODE.to_owned())), &because(), false));
            let find = |voters: &[u64], was_sole| {
                tell(survivor.path(), of_two_voters(NODE, Some(&etcd(voters)), was_sole));
                tell(returned.path(), of_two_voters("node2", Some(&etcd(voters)), false));
            };
            find(&[1], true);
            find(&[1, 2], true);
            find(&[1, 2], true);
            find(&[1, 2], false);
        }
        assert_eq!(reasons(survivor.path()), [reason::ALONE, reason::REDUNDANT, reason::ALONE, reason::REDUNDANT]);
        assert_eq!(reasons(returned.path()), [""; 0]);
    }

    #[test]
    fn who_was_rebooted_while_it_was_alone_tells_of_two_voters_too_and_who_lacks_a_leader_does_not() {
        let dir = tempfile::tempdir().unwrap();
        tell(dir.path(), of_effect(NODE, &Effect::SetStandalone(Some(NODE.to_owned())), &because(), false));
        tell(dir.path(), of_two_voters(NODE, Some(&Etcd { leader: None, ..etcd(&[1, 2]) }), false));
        tell(dir.path(), of_two_voters(NODE, None, false));
        assert_eq!(reasons(dir.path()), [reason::ALONE]);
        tell(dir.path(), of_two_voters(NODE, Some(&etcd(&[1, 2])), false));
        assert_eq!(reasons(dir.path()), [reason::ALONE, reason::REDUNDANT]);
    }

    /// Asserts that a node emits "two voters again" if the agent knows that the node was the sole voter. No stored event needs to show
    /// this, because newer events may hide such an event after days of failed fencing.
    #[test]
    fn who_remembers_that_it_was_alone_needs_no_event_of_it() {
        let dir = tempfile::tempdir().unwrap();
        tell(dir.path(), of_two_voters(NODE, Some(&etcd(&[1, 2])), true));
        assert_eq!(reasons(dir.path()), [reason::REDUNDANT]);
    }

    #[test]
    fn a_refusal_that_lasts_is_told_once_and_another_one_too() {
        let dir = tempfile::tempdir().unwrap();
        let blank = || of_refusal(NODE, "etcd", &refused(Refusal::BlankAlone));
        tell(dir.path(), blank());
        tell(dir.path(), blank());
        tell(dir.path(), of_refusal(NODE, "etcd", &refused(Refusal::HistoriesSplit)));
        tell(dir.path(), blank());
        tell(dir.path(), of_two_voters(NODE, Some(&etcd(&[1, 2])), true));
        tell(dir.path(), blank());
        tell(dir.path(), of_refusal(NODE, "etcd", &because()));
        let expected = [reason::REFUSED, reason::HISTORIES_SPLIT, reason::REDUNDANT, reason::REFUSED];
        assert_eq!(reasons(dir.path()), expected);
    }

    #[test]
    fn two_histories_have_both_nodes_ends_and_revisions() {
        let recorded = include_str!("../../../tests/data/fixtures/decisions/one.jsonl").lines().next().unwrap();
        let mut evidence = serde_json::from_str::<Entry>(recorded).unwrap().evidence;
        let split = || of_refusal(NODE, "etcd", &refused(Refusal::HistoriesSplit));
        let revision = |evidence: &Evidence| {
            let (event, _) = with_both_ends(split(), evidence, || Some(9)).unwrap();
            ["last_revision", "peer_last_revision"].map(|name| event.details.get(name).cloned())
        };
        assert_eq!(revision(&evidence), [Some("9".to_owned()), None], "a node of an earlier version publishes none");
        if let Fact::Known(cib) = &mut evidence.cib {
            let record = PublishedState::of("b".to_owned(), DataDir::Blank, Lineage::default());
            cib.peer_record = Some(PublishedState { revision: Some(12), ..record });
        }
        assert_eq!(revision(&evidence), [Some("9".to_owned()), Some("12".to_owned())]);
    }

    #[test]
    fn without_a_directory_nothing_fails() {
        tell(Path::new("/nowhere/events"), of_refusal(NODE, "etcd", &refused(Refusal::BlankAlone)));
    }
}
