//! R3: a start without a peer that could be asked.

use super::start::{refusal, run_mode};
use super::world::*;
use crate::base::Fact;
use crate::decide::evidence::*;
use crate::decide::plan::{Effect, Exit, Request, RunMode};
use crate::decide::reason::{Reason, Refusal, Rule};

#[test]
fn r3_a_sole_voter_needs_no_proof_and_no_force() {
    let evidence = at_rest().with_disk(history(ME, &[ME], &[])).peer_is(PeerNode::Down, PeerAgent::NoHistory);
    assert_eq!(run_mode(&evidence), RunMode::Normally);
}

#[test]
fn a_sole_voter_commits_what_made_it_that_before_it_starts() {
    // The peer's removal may lie above the commit index: etcd would wait for the vote of a member that has left.
    let sole = at_rest().with_disk(history(ME, &[ME], &[])).peer_is(PeerNode::Down, PeerAgent::NoHistory);
    let plan = first(Request::Start, &sole);
    assert_eq!(plan.effects, [Effect::AdvanceCommit, Effect::RunContainer(RunMode::Normally)]);
    let DataDir::Present(whole) = history(ME, &[ME], &[]) else { panic!("a history") };
    let committed = DataDir::Present(History { commit_index: whole.last_index, ..whole });
    let plan = first(Request::Start, &sole.with_disk(committed));
    assert_eq!(plan.effects, [Effect::RunContainer(RunMode::Normally)]);
}

#[test]
fn a_voter_that_asked_to_leave_has_no_proof_that_the_peer_did_not_go_on() {
    let down = at_rest().seen_voting().peer_is(PeerNode::Down, PeerAgent::NoHistory);
    let survivor = down.with_disk(history(ME, &[ME, PEER], &[]));
    assert!(first(Request::Start, &survivor).effects.iter().any(|effect| matches!(effect, Effect::PublishLineage(_))));
    let note = DurableState { left_at: Some(LogPosition { term: 3, index: 990 }), ..DurableState::default() };
    let asked = Evidence { note: Fact::Known(note), ..survivor }.with_disk(history(ME, &[ME, PEER], &[]));
    assert!(matches!(refusal(&asked), Refusal::NoProofThatPeerDidNotGoOn { .. }));
}

#[test]
fn a_sole_voter_that_was_left_behind_is_no_longer_sure_of_itself() {
    let left_behind = |agent, node| {
        let sole = at_rest().with_disk(history(ME, &[ME], &[]));
        sole.cib_with(|cib| {
            (cib.lineage, cib.peer_agent, cib.peer_node) = (forks(1, "node2"), agent, node);
        })
    };
    let alone = left_behind(PeerAgent::Stopped, PeerNode::Down);
    assert!(matches!(refusal(&alone), Refusal::PeerWentOnWithoutUs { .. }));
    for (agent, node) in [(PeerAgent::Stopped, PeerNode::Lost), (PeerAgent::Active, PeerNode::Online)] {
        let plan = first(Request::Start, &left_behind(agent, node));
        assert_eq!(plan.effects, Vec::new(), "{agent:?} {node:?}");
        assert!(matches!(plan.because, Reason::Waiting(_)), "{agent:?} {node:?}: {:?}", plan.because);
    }
    let accepted = Evidence { confirmation: Fact::Known(word(true)), ..alone };
    assert!(first(Request::Start, &accepted).effects.iter().any(|effect| matches!(effect, Effect::PublishLineage(_))));
}

#[test]
fn r3_a_voter_that_was_itself_killed_refuses_alone() {
    let mut evidence = at_rest().with_disk(history(ME, &[ME, PEER], &[])).peer_is(PeerNode::Down, PeerAgent::NoHistory);
    evidence.local.log_written = Some(951_782_399);
    let refused = refusal(&evidence);
    let position = LogPosition { term: 3, index: 1000 };
    assert_eq!(refused, Refusal::NoProofThatPeerDidNotGoOn { position, written: Some(951_782_399) });
    let told = Reason::Refused { refusal: refused, peer: "node2".to_owned() }.to_string();
    assert!(told.contains(", which reaches term 3 index 1000, last written 2000-02-28 23:59:59Z: start"), "{told}");
    let unknown = Refusal::NoProofThatPeerDidNotGoOn { position: LogPosition::default(), written: None };
    let told = Reason::Refused { refusal: unknown, peer: "node2".to_owned() }.to_string();
    assert!(told.contains("without this node's data: start"), "{told}");
    assert_eq!(exit(&first(Request::Start, &evidence)), Some(Exit::Retriable));
    let sentence = first(Request::Start, &evidence).because.to_string();
    assert!(sentence.contains("start node2") && sentence.contains("tandem confirm-recovery"), "{sentence}");
}

#[test]
fn r3_a_voter_that_ran_until_the_peer_was_fenced_goes_on_alone() {
    let down = at_rest().peer_is(PeerNode::Down, PeerAgent::NoHistory).seen_voting();
    let evidence = down.with_disk(history(ME, &[ME, PEER], &[]));
    let plan = first(Request::Start, &evidence);
    assert_eq!(plan.because, evidence.rule(Rule::SurvivorGoesOnAlone));
    assert!(matches!(plan.effects[0], Effect::WriteNote(_)));
}

#[test]
fn r3_the_memory_of_another_boot_or_member_or_history_proves_nothing() {
    let down = at_rest().peer_is(PeerNode::Down, PeerAgent::NoHistory).seen_voting();
    let mut other_boot = down.clone();
    other_boot.boot_id = "boot2".to_owned();
    let other_boot = other_boot.with_disk(history(ME, &[ME, PEER], &[]));
    let other_member = down.clone().with_disk(history(7, &[7, PEER], &[]));
    let other_fork = down.with_disk(history(ME, &[ME, PEER], &[])).cib_with(|cib| cib.lineage = forks(1, "node2"));
    for evidence in [other_boot, other_member, other_fork] {
        let refused = refusal(&evidence);
        assert!(
            matches!(refused, Refusal::NoProofThatPeerDidNotGoOn { .. } | Refusal::PeerWentOnWithoutUs { .. }),
            "{refused:?}"
        );
    }
}

#[test]
fn r3_a_learners_or_departed_members_data_is_never_forced() {
    let down = || at_rest().peer_is(PeerNode::Down, PeerAgent::NoHistory).seen_voting();
    assert!(matches!(refusal(&down().with_disk(history(ME, &[PEER], &[ME]))), Refusal::LearnerAlone { .. }));
    assert!(matches!(refusal(&down().with_disk(departed(ME))), Refusal::DepartedAlone { .. }));
    assert_eq!(refusal(&down().with_disk(DataDir::Blank)), Refusal::BlankAlone);
}

#[test]
fn a_lost_peer_that_nobody_confirmed_is_waited_for_and_never_forced() {
    for word in [PeerNode::Lost, PeerNode::NeverSeen, PeerNode::Pending] {
        let evidence =
            at_rest().peer_is(word, PeerAgent::NoHistory).seen_voting().with_disk(history(ME, &[ME, PEER], &[]));
        let plan = first(Request::Start, &evidence);
        assert!(plan.effects.is_empty() && exit(&plan).is_none(), "{word:?}");
        assert!(matches!(refusal(&evidence.after(5_000)), Refusal::PeerNotConfirmed { .. }), "{word:?}");
    }
}

/// Asserts that a sole voter waits for the record of a peer that is online. The record is lost when Pacemaker ends on the peer,
/// or when a merge of two partitions drops the CIB that had it.
#[test]
fn a_sole_voter_waits_for_word_of_a_peer_that_is_there() {
    let sole = at_rest().with_disk(history(ME, &[ME], &[]));
    let silent = |machine, agent| sole.clone().peer_is(machine, agent).cib_with(|cib| cib.peer_record = None);
    let listening = |silent| Evidence { peer_etcd: Fact::Unknown("no answer".to_owned()), ..silent };
    let absent = |silent| Evidence { peer_etcd: Fact::Absent, ..silent };
    let waits = |evidence: &Evidence| {
        let plan = first(Request::Start, evidence);
        plan.effects.is_empty() && exit(&plan).is_none()
    };
    let unasked = || silent(PeerNode::Online, PeerAgent::NoHistory);
    assert!(waits(&absent(unasked())), "Pacemaker is about to ask its agent");
    assert_eq!(refusal(&absent(unasked()).after(5_000)), Refusal::PeerSaysNothing);
    let active = silent(PeerNode::Online, PeerAgent::Active);
    assert_eq!(run_mode(&listening(active)), RunMode::Normally, "its probe has told a fork, had there been one");
    // One that hangs in between joins never.
    let joining = || silent(PeerNode::Pending, PeerAgent::NoHistory);
    assert!(waits(&absent(joining()).after(10_000)));
    assert_eq!(run_mode(&absent(joining()).after(16_000)), RunMode::Normally);
    assert_eq!(refusal(&listening(joining()).after(16_000)), Refusal::PeerSaysNothing);
    let lost = listening(silent(PeerNode::Lost, PeerAgent::NoHistory));
    assert_eq!(run_mode(&lost), RunMode::Normally, "nobody is there to say anything");
}

#[test]
fn r3_an_operators_word_leads_on_and_is_used_up() {
    let mut alone = at_rest().with_disk(history(ME, &[ME, PEER], &[])).peer_is(PeerNode::Down, PeerAgent::NoHistory);
    alone.confirmation = Fact::Known(word(false));
    assert_eq!(first(Request::Start, &alone).because, alone.rule(Rule::OperatorConfirmed));
    let mut serving = at_rest().running(Fact::Known(etcd(ME, Some(ME), &[ME], &[]))).seen_voting();
    serving.confirmation = Fact::Known(word(false));
    assert!(first(Request::Start, &serving).effects.contains(&Effect::ConsumeConfirmation));
}

#[test]
fn r3_an_operators_word_is_for_one_boot_one_node_and_one_state_of_the_data() {
    let alone = at_rest().with_disk(history(ME, &[ME, PEER], &[])).peer_is(PeerNode::Down, PeerAgent::NoHistory);
    let wrong = [
        Confirmation { boot_id: "boot0".to_owned(), ..word(true) },
        Confirmation { lost_node: "node3".to_owned(), ..word(true) },
        Confirmation { cluster_id: 7, ..word(true) },
        Confirmation { member_id: 7, ..word(true) },
        Confirmation { position: LogPosition { term: 3, index: 999 }, ..word(true) },
    ];
    for word in wrong {
        let evidence = Evidence { confirmation: Fact::Known(word.clone()), ..alone.clone() };
        assert_eq!(first(Request::Start, &evidence).effects, [Effect::ConsumeConfirmation], "{word:?}");
    }
    assert!(matches!(refusal(&alone), Refusal::NoProofThatPeerDidNotGoOn { .. }));
    // The word is about the peer's data; that its machine is off is fencing's business.
    let lost = Evidence { confirmation: Fact::Known(word(true)), ..alone };
    let lost = lost.peer_is(PeerNode::Lost, PeerAgent::Active);
    assert!(first(Request::Start, &lost).effects.is_empty());
}

#[test]
fn r3_a_known_loss_is_accepted_by_name_or_not_at_all() {
    let mut alone = at_rest().with_disk(history(ME, &[ME, PEER], &[])).peer_is(PeerNode::Down, PeerAgent::NoHistory);
    alone = alone.cib_with(|cib| cib.lineage = forks(4, "node2"));
    alone.confirmation = Fact::Known(word(false));
    assert!(matches!(refusal(&alone), Refusal::PeerWentOnWithoutUs { .. }));
    alone.confirmation = Fact::Known(word(true));
    let plan = first(Request::Start, &alone);
    assert!(plan.effects.contains(&Effect::PublishLineage(forks(5, "node1"))), "ours counts from now on");
}

#[test]
fn alone_two_forks_of_one_count_are_two_histories() {
    let mut sole = at_rest().peer_is(PeerNode::Down, PeerAgent::NoHistory);
    sole.note = Fact::Known(DurableState { lineage: forks(1, "node2"), ..DurableState::default() });
    let sole = sole.with_disk(history(ME, &[ME], &[])).cib_with(|cib| cib.lineage = forks(1, "node2"));
    assert_eq!(run_mode(&sole), RunMode::Normally);
    // The greater name is the maximum, and the other fork is still there.
    let rival = sole.cib_with(|cib| cib.peer_lineage = Some(forks(1, "node1")));
    assert!(matches!(refusal(&rival), Refusal::PeerWentOnWithoutUs { .. }));
}
