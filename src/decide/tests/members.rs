//! The rules of members as a table: each allowed and refused, for one to five voters.

use crate::decide::members::*;

pub(super) const VOTERS: usize = 5;
/// Id of the learner. The voters' ids are 1, 2 and so on.
pub(super) const LEARNER: u64 = 9;

pub(super) fn url(id: u64) -> String {
    format!("https://192.0.2.{id}:2380")
}

fn voter(id: u64) -> Member {
    Member {
        id,
        name: format!("node{id}"),
        peer_urls: vec![url(id)],
        health: Health::Yes,
        lag: Some(0),
        lag_before: Some(0),
        knows_the_list: Some(true),
        ..Member::default()
    }
}

pub(super) fn learner() -> Member {
    Member { is_learner: true, knows_the_list: None, ..voter(LEARNER) }
}

/// Returns `count` healthy voters with the ids from 1 to `count`. The cluster is to have as many voters, and voter 1 leads.
pub(super) fn healthy(count: usize) -> Membership {
    let ids = 1..=u64::try_from(count).unwrap();
    Membership {
        members: ids.map(voter).collect(),
        leader: Some(1),
        is_confirmed: true,
        wanted: count,
        promote_max_lag: 100,
        ..Membership::default()
    }
}

pub(super) fn newcomer() -> Newcomer {
    Newcomer { name: "node8".to_owned(), peer_url: url(8) }
}

pub(super) fn dead() -> Health {
    Health::No("nothing listens".to_owned())
}

pub(super) fn silent() -> Health {
    Health::Unknown("its certificate has ended".to_owned())
}

/// Row of the table, with these columns:
///
/// - its name,
/// - a change to a healthy cluster,
/// - the step, made from the last voter's id,
/// - the orders that are given with the step, made from the same id,
/// - for one to five voters, the rule that refuses the step, or an empty text if the step is allowed.
type Row = (&'static str, fn(&mut Membership), fn(u64) -> MemberStep, fn(u64) -> Said, [&'static str; VOTERS]);

/// Orders that are given with a step: the member that the step replaces, and the member that an operator's confirmation names.
#[derive(Default)]
struct Said {
    replaced: Option<u64>,
    fewer: Option<u64>,
}

fn add(_: u64) -> MemberStep {
    MemberStep::AddLearner(newcomer())
}

fn promote(_: u64) -> MemberStep {
    MemberStep::Promote(LEARNER)
}

fn remove_last(last: u64) -> MemberStep {
    MemberStep::Remove(last)
}

fn remove_before_last(last: u64) -> MemberStep {
    MemberStep::Remove(last.saturating_sub(1).max(1))
}

fn remove_learner(_: u64) -> MemberStep {
    MemberStep::Remove(LEARNER)
}

fn remove_leader(_: u64) -> MemberStep {
    MemberStep::Remove(1)
}

fn hand_over(_: u64) -> MemberStep {
    MemberStep::MoveLeader { to: 2 }
}

fn nothing(_: u64) -> Said {
    Said::default()
}

fn replaces_last(last: u64) -> Said {
    Said { replaced: Some(last), fewer: None }
}

fn fewer_by_last(last: u64) -> Said {
    Said { replaced: None, fewer: Some(last) }
}

fn fewer_by_one_before(last: u64) -> Said {
    Said { replaced: None, fewer: Some(last.saturating_sub(1).max(1)) }
}

fn fewer_by_leader(_: u64) -> Said {
    Said { replaced: None, fewer: Some(1) }
}

pub(super) fn same(_: &mut Membership) {}

fn last(membership: &mut Membership) -> &mut Member {
    membership.members.iter_mut().rfind(|member| !member.is_learner).unwrap()
}

pub(super) fn last_dead(membership: &mut Membership) {
    last(membership).health = dead();
}

pub(super) fn last_silent(membership: &mut Membership) {
    last(membership).health = silent();
}

fn two_dead(membership: &mut Membership) {
    membership.members.iter_mut().rev().take(2).for_each(|member| member.health = dead());
}

fn one_too_many(membership: &mut Membership) {
    membership.wanted -= 1;
}

fn pair(membership: &mut Membership) {
    (membership.is_pair, membership.wanted) = (true, 2);
}

fn with(membership: &mut Membership, learner: Member) {
    membership.members.push(learner);
}

pub(super) fn caught_up(membership: &mut Membership) {
    with(membership, learner());
}

fn caught_up_beside_dead(membership: &mut Membership) {
    last_dead(membership);
    caught_up(membership);
}

const ALL: fn(&'static str) -> [&'static str; VOTERS] = |rule| [rule; VOTERS];

fn rows() -> Vec<Row> {
    [rows_of_what_is_added(), rows_of_learners(), rows_of_who_goes()].concat()
}

/// Asserts that a third voter is added only once both nodes vote. Next to a single voting node, the third voter would be the
/// second of two voters, and no agent restarts it.
#[test]
fn a_third_voter_comes_to_a_whole_pair() {
    let pair = |voters: usize| {
        let mut pair = Membership { is_pair: true, third_voter: true, wanted: 3, ..healthy(voters) };
        pair.members.iter_mut().take(2).for_each(|member| member.node = Some(member.name.clone()));
        pair
    };
    let judged = |membership: &Membership, step: &MemberStep| judge(membership, step, None, &Words::default()).err();
    let beside = |mut membership: Membership, learner: Member| {
        membership.members.push(learner);
        judged(&membership, &promote(0))
    };
    assert_eq!(judged(&pair(2), &add(0)), None);
    assert_eq!(judged(&pair(1), &add(0)), Some(Forbidden::HalfAPair));
    assert_eq!(beside(pair(2), learner()), None);
    assert_eq!(beside(pair(1), learner()), Some(Forbidden::HalfAPair));
    let mut with_third_voter = pair(2);
    with_third_voter.members[1].node = None;
    assert_eq!(
        beside(with_third_voter, Member { node: Some("node2".to_owned()), ..learner() }),
        None,
        "the peer is no third one"
    );
    assert!(matches!(judged(&pair(3), &add(0)), Some(Forbidden::TooMany { .. })), "and no fourth");
}

fn rows_of_what_is_added() -> Vec<Row> {
    vec![
        ("one more while one is replaced", same, add, nothing, ALL("")),
        ("and no second one", one_too_many, add, nothing, ALL("M1")),
        ("a surplus voter and a learner", |it| (one_too_many(it), caught_up(it)).0, promote, nothing, ALL("M1")),
        ("a pair has a place for each node", pair, add, nothing, ["", "M1", "M1", "M1", "M1"]),
        ("a learner is listed", |it| (it.wanted = 9, caught_up(it)).0, add, nothing, ALL("M2")),
        ("an unhealthy voter", last_dead, add, nothing, ["M11", "M11", "M3", "M3", "M3"]),
        ("an unhealthy voter that is replaced", last_dead, add, replaces_last, ["M11", "M11", "", "", ""]),
        ("a promotion beside one", caught_up_beside_dead, promote, nothing, ["M11", "M11", "M3", "M3", "M3"]),
        ("of its replacement", caught_up_beside_dead, promote, replaces_last, ["M11", "M11", "", "", ""]),
        ("a healthy voter", same, remove_last, nothing, ["M10", "M4", "M4", "M4", "M4"]),
        ("at an operator's word", same, remove_last, fewer_by_last, ["M10", "", "", "", ""]),
        ("once one is too many", one_too_many, remove_last, nothing, ["M10", "", "", "", ""]),
        ("a dead voter", last_dead, remove_last, nothing, ["M10", "M5", "", "", ""]),
        ("a dead voter of a pair", |it| (pair(it), last_dead(it)).0, remove_last, nothing, ["M10", "M5", "", "", ""]),
        ("one of two dead ones", two_dead, remove_last, nothing, ["M10", "M5", "M5", "M5", ""]),
        (
            "a healthy one beside a dead one",
            last_dead,
            remove_before_last,
            fewer_by_one_before,
            ["M10", "M5", "M5", "M6", "M6"],
        ),
        ("a learner that has caught up", caught_up, promote, nothing, ALL("")),
        (
            "one that never started",
            |it| with(it, Member { name: String::new(), ..learner() }),
            promote,
            nothing,
            ALL("M7"),
        ),
        (
            "one that was seen once",
            |it| with(it, Member { lag_before: None, ..learner() }),
            promote,
            nothing,
            ALL("M7"),
        ),
        ("one that lacks too much", |it| with(it, Member { lag: Some(101), ..learner() }), promote, nothing, ALL("M7")),
        (
            "one that lacked too much",
            |it| with(it, Member { lag_before: Some(101), ..learner() }),
            promote,
            nothing,
            ALL("M7"),
        ),
        (
            "one that lacks as much as it may",
            |it| with(it, Member { lag: Some(100), ..learner() }),
            promote,
            nothing,
            ALL(""),
        ),
        ("one that is dead", |it| with(it, Member { health: dead(), ..learner() }), promote, nothing, ALL("M7")),
        ("one that is silent", |it| with(it, Member { health: silent(), ..learner() }), promote, nothing, ALL("M12")),
        (
            "one whose Machine goes",
            |it| with(it, Member { machine: MachineState::BeingDeleted, ..learner() }),
            promote,
            nothing,
            ALL("M7"),
        ),
    ]
}

fn rows_of_learners() -> Vec<Row> {
    vec![
        (
            "one whose Machine is not known",
            |it| with(it, Member { machine: MachineState::Unknown(String::new()), ..learner() }),
            promote,
            nothing,
            ALL("M12"),
        ),
        (
            "one without a hook where there are hooks",
            |it| {
                it.uses_hooks = true;
                with(it, Member { machine: MachineState::Stays { is_protected: false }, ..learner() });
            },
            promote,
            nothing,
            ALL("M7"),
        ),
        (
            "one with a hook",
            |it| {
                it.uses_hooks = true;
                with(it, Member { machine: MachineState::Stays { is_protected: true }, ..learner() });
            },
            promote,
            nothing,
            ALL(""),
        ),
        (
            "one without a hook where there are none",
            |it| with(it, Member { machine: MachineState::Stays { is_protected: false }, ..learner() }),
            promote,
            nothing,
            ALL(""),
        ),
        ("a voter is promoted", same, |_| MemberStep::Promote(1), nothing, ALL("M7")),
        ("a learner that is about to vote goes", caught_up, remove_learner, nothing, ALL("M8")),
        (
            "one that never started goes",
            |it| with(it, Member { name: String::new(), health: dead(), ..learner() }),
            remove_learner,
            nothing,
            ALL(""),
        ),
        (
            "one whose Machine goes, goes",
            |it| with(it, Member { machine: MachineState::BeingDeleted, ..learner() }),
            remove_learner,
            nothing,
            ALL(""),
        ),
        (
            "one at nobody's address goes",
            |it| with(it, Member { is_strange: true, ..learner() }),
            remove_learner,
            nothing,
            ALL(""),
        ),
        ("a dead one goes", |it| with(it, Member { health: dead(), ..learner() }), remove_learner, nothing, ALL("")),
    ]
}

fn rows_of_who_goes() -> Vec<Row> {
    vec![
        (
            "a silent one stays",
            |it| with(it, Member { health: silent(), ..learner() }),
            remove_learner,
            nothing,
            ALL("M12"),
        ),
        ("another change", |it| it.change = Some("a replacement".to_owned()), add, nothing, ALL("M9")),
        ("a list that nobody confirmed", |it| it.is_confirmed = false, add, nothing, ALL("M9")),
        ("the last change is under way", |it| last(it).knows_the_list = Some(false), add, nothing, ALL("M9")),
        ("an address in use", |it| last(it).peer_urls.push(url(8)), add, nothing, ALL("M9")),
        ("nobody is removed", same, |_| MemberStep::Remove(7), nothing, ALL("M9")),
        ("the leader goes", same, remove_leader, fewer_by_leader, ALL("M10")),
        ("it hands over", same, hand_over, nothing, ["M9", "", "", "", ""]),
        (
            "to a dead one",
            |it| it.members[1..].iter_mut().take(1).for_each(|it| it.health = dead()),
            hand_over,
            nothing,
            ["M9", "M11", "M10", "M10", "M10"],
        ),
        (
            "to a silent one",
            |it| it.members[1..].iter_mut().take(1).for_each(|it| it.health = silent()),
            hand_over,
            nothing,
            ["M9", "M12", "M12", "M12", "M12"],
        ),
        ("no leader", |it| it.leader = None, add, nothing, ALL("M11")),
        (
            "no leader, and one goes",
            |it| it.leader = None,
            remove_last,
            fewer_by_last,
            ["M10", "M11", "M11", "M11", "M11"],
        ),
        ("too few voters", two_dead, add, nothing, ["M11", "M11", "M11", "M11", "M3"]),
        ("too few, and one leads still", two_dead, hand_over, nothing, ["M11", "M11", "M11", "M11", ""]),
        ("a silent voter", last_silent, add, nothing, ALL("M12")),
        ("a silent voter goes", last_silent, remove_last, fewer_by_last, ["M10", "M12", "M12", "M12", "M12"]),
        (
            "one beside a silent one goes",
            last_silent,
            remove_before_last,
            fewer_by_one_before,
            ["M10", "M12", "M12", "M12", "M12"],
        ),
        (
            "a word for another one",
            same,
            remove_last,
            |_| Said { replaced: None, fewer: Some(7) },
            ["M10", "M13", "M13", "M13", "M13"],
        ),
    ]
}

#[test]
fn each_rule_allows_and_refuses_for_one_to_five_voters() {
    let mut seen = std::collections::BTreeSet::new();
    for (what, change, step, said, expected) in rows() {
        for (count, expected) in (1..=VOTERS).zip(expected) {
            let mut membership = healthy(count);
            change(&mut membership);
            let last = u64::try_from(count).unwrap();
            let Said { replaced, fewer } = said(last);
            let answer = judge(&membership, &step(last), replaced, &Words { fewer_voters: fewer });
            let rule = answer.as_ref().map_or_else(Forbidden::rule, |_| "");
            assert_eq!(rule, expected, "{what}, {count} voters: {answer:?}");
            let used = answer.is_ok_and(|passed| passed.uses_word);
            assert_eq!(used, expected.is_empty() && what == "at an operator's word", "{what}, {count} voters");
            seen.insert(rule);
        }
    }
    // M14 has a table of its own.
    let all: Vec<String> = (1..=13).map(|number| format!("M{number}")).collect();
    for rule in all {
        assert!(seen.contains(rule.as_str()), "{rule} refuses nothing here");
    }
}

/// Row with three columns: its name, a change to a pair that has a third voter and a dead node, and the result for the dead
/// node's removal.
type Removal = (&'static str, fn(&mut Membership), Option<Result<(), &'static str>>);

/// Asserts that a dead one of three voters may be removed before its replacement is listed, if the other two live and are a
/// majority.
#[test]
fn a_dead_node_of_a_pair_is_removed_by_the_other_one_and_the_third_voter() {
    let dead_node2 = || {
        let mut all = Membership { is_pair: true, third_voter: true, wanted: 3, ..healthy(3) };
        all.members[0].node = Some("node1".to_owned());
        all.members[1].node = Some("node2".to_owned());
        all.members[1].health = dead();
        all
    };
    let judged = |all: &Membership| {
        all.removal_beside_third_voter(&all.members[1]).map(|judged| judged.map_err(|why| why.rule()).map(drop))
    };
    let rows: [Removal; 10] = [
        ("both of the others live", |_| {}, Some(Ok(()))),
        ("the third voter is dead", |all| all.members[2].health = dead(), Some(Err("M5"))),
        ("the third voter is not known", |all| all.members[2].health = silent(), Some(Err("M12"))),
        ("the node that stays is dead", |all| all.members[0].health = dead(), Some(Err("M5"))),
        ("another change is under way", |all| all.change = Some("a change".to_owned()), Some(Err("M9"))),
        ("nobody leads", |all| all.leader = None, Some(Err("M11"))),
        (
            "the third voter has not applied the list",
            |all| all.members[2].knows_the_list = Some(false),
            Some(Err("M9")),
        ),
        ("the node is not known to be dead", |all| all.members[1].health = silent(), None),
        ("the node lives", |all| all.members[1].health = Health::Yes, None),
        ("the third member learns", |all| all.members[2].is_learner = true, None),
    ];
    for (what, change, said) in rows {
        let mut all = dead_node2();
        change(&mut all);
        assert_eq!(judged(&all), said, "{what}");
    }
    // Then a newcomer is listed and promoted, by the rules that hold for each.
    let mut left = dead_node2();
    left.members.remove(1);
    let new = Member { node: Some("node3".to_owned()), ..learner() };
    let promoted = Membership { members: [left.members.clone(), vec![new]].concat(), ..left };
    assert!(judge(&promoted, &MemberStep::Promote(LEARNER), None, &Words::default()).is_ok());
}
