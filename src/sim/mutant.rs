//! Deliberately broken rules. Each changes what the core sees, or the plan that it returns, from the outside, because
//! the core itself has no switch. A checker that finds nothing wrong with them proves nothing.
//!
//! The table lists the rules that were once found missing. Each row has the mutant that breaks the rule. Without a
//! mutant, it has the reason why the model cannot show the fault, and the test in `decide::tests` that fails without
//! the rule.
//!
//! | rule | mutant, or the reason why there is none, and the test |
//! |---|---|
//! | a node that asked to shut down is not down while its etcd runs | `expected-counts-as-down` |
//! | of two histories neither starts by itself | `split-not-refused`; next to a peer with a failed start `active-peers-history-ignored`; of two forks of one rank `greater-name-is-newer` |
//! | no history is backed up for another that no operator chose | `history-beside-given-up` |
//! | a history that lost is kept | every backup of the model is kept: `r1_a_history_that_the_serving_peer_does_not_know_is_not_moved_aside` |
//! | a node is not asked for a choice if its peer was given up by name | the search asks for no way back where an operator made two histories: `an_announcement_at_an_operators_word_does_not_revive_a_memory_without_its_claim` covers the write, `r1_a_history_that_the_serving_peer_does_not_know_is_not_moved_aside` the read |
//! | the memory of this boot counts only together with its claim | `proof-outlives-its-claim` |
//! | and is kept where an observation does not find the claim | `unseen-claim-forgotten` |
//! | data that ends before the position it had reached does not start | `reached-ignored` |
//! | nor does data that ends before this boot's last stop | losing a write by it takes four faults: the scenario `rolled-back-within-one-boot`, and `data_that_ends_before_the_last_stop_of_this_boot_was_put_back` |
//! | nor is anything forced from data that ends before the stopped peer's | the search that loses a write by it takes ten minutes: the scenarios `put-back-behind-a-dead-follower`, `put-back-behind-a-dead-leader`, `a_voter_whose_peer_has_more_as_committed_does_not_run_standalone` |
//! | an operator's confirmation overrides no node that is on, unless it names that node | `bmc-not-asked` |
//! | an etcd of another cluster at the peer's address is not joined | `stranger-believed` |
//! | a mount point without its disk is no blank data dir | `mount-not-checked` |
//! | failures never add up to a ban | `failures-add-up` |
//! | the agent waits for what a killed agent began | `launch-ignored` |
//! | and ends it if it lasts too long | a launch of the model comes to its end: `a_stop_and_a_start_end_what_takes_too_long_and_nobody_else_does` |
//! | `force_new_cluster` gives up no known data | `told-beside-a-known-fork` |
//! | and two voters take it back | the rule above refuses anything that it would lead to: `a_stale_wish_to_force_is_taken_back_and_gives_nothing_up` |
//! | data from which etcd never starts is given up if no node needs it | `failed-starts-ignored` |
//! | and is kept if a node may need it | searched with two faults and `--damage`, and nothing is lost by it there: `data_that_may_hold_what_nobody_else_has_is_never_given_up` |
//! | each breakdown counts once | one start of the model represents all: `each_breakdown_of_a_plain_start_counts_once` |
//! | a confirmation about other data is deleted | `outdated-word-stands` |
//! | before a force the CIB is read again, after a write of our own | `last-word-not-awaited` |
//! | no cluster is bootstrapped while the etcd of the peer listens | `bootstrap-beside-a-listener` |
//! | no agent waits for a vote that is gone | `vote-that-is-gone-awaited` |
//! | a fork that was never made keeps no sole voter from starting | `fork-never-made-counts` |
//! | a new voter claims and remembers in one action | every machine of the model boots again, and one that returns without its data, or behind, proves as much: `a_new_voter_claims_and_remembers_in_one_action` |
//! | and only once it has all that its leader had | a promotion of the model is applied as it is committed, so the leader acknowledges nothing as the only voter: `a_new_voter_remembers_only_once_it_has_what_its_leader_had` |
//! | two voters publish one lineage | searched with two faults, and only the number of states differs: `a_voter_of_two_publishes_the_lineage_that_was_settled` |
//! | a start fails late once many have failed | time is abstracted: `a_refusal_paces_itself_once_the_first_quick_tries_are_used_up`, `a_start_whose_effects_fail_paces_itself_as_a_refusal_does` |
//! | a promotion asks again | a promotion that fails is begun again, which costs nothing in the model: `a_voter_that_is_slow_to_answer_is_promoted_all_the_same` |
//! | no force begins without the time to finish it | effects take no time: `going_on_alone_begins_only_with_the_time_to_end_it`, `podman_is_not_called_for_a_force_that_would_be_cut_short` |
//! | three and more voters are plain Raft | `third-voter-overlooked` |
//! | an announcement that precedes the third voter's promotion is called off | `called-off-for-three-counts` |
//! | a removal from among three counts once it is committed | no removal of the model's third voter is left uncommitted: `a_removal_from_among_three_voters_counts_once_it_is_committed` in `tests/data_dir` |
//! | a node and the third voter are plain Raft, too | no disk is lost with the model's third voter, so three vote: `a_node_and_the_third_voter_are_plain_raft` |
//! | a node's memory does not prove what a majority acknowledged without the node | no operator removes the model's third voter: `what_three_acknowledged_is_no_proof_for_two` |
//! | a majority does not serve a history that continued without it | no node is forced with the model's third voter: `old_data_does_not_serve_with_a_third_vote` |
//! | the third voter is no stranger, and gives way to the peer | the model's third voter votes: `the_third_voter_is_no_stranger_and_gives_way_to_a_peer_that_returns` |
//! | a node is not promoted while its Machine is being deleted | the model has no OpenShift: `a_learner_whose_machine_is_being_deleted_is_promoted_by_nobody` |
//! | a peer may have continued if it reported that it runs standalone (`standalone_node`) | both nodes of the model record their forks as well: `a_peer_of_another_kind_that_said_it_is_alone_may_have_gone_on` |
//! | a peer that is gone is listed at once | the model lists it when it comes back as well: `a_peer_that_is_confirmed_to_be_gone_is_listed_at_once` |
//! | an etcd that refuses this agent lives | no etcd of the model has auth: `an_etcd_that_serves_and_refuses_this_agent_lives_and_names_the_user` |
//! | a fork that only the peer's record contains is kept | `peers-fork-not-kept` |
//! | a sole voter waits for the record of a peer that is online | `silent-peer-not-awaited` |
//! | so does a voter of two | the forks in the CIB and the voter's own note refuse what it would force without that record: `r2_both_start_from_their_records` |
//! | a vote proxy votes only in the term that was seen before the announcement | `term-not-looked-at` |
//! | and only after it, once it came back | `stand-in-before-announcement`, `last-word-not-awaited` |
//! | and for a peer that is confirmed off | `lost-counts-as-down`, `expected-counts-as-down`; for a peer with a running machine: `nobody_votes_for_a_peer_whose_machine_is_there` |
//! | and next to exactly one other voter | the model has two nodes: `whoever_breaks_a_precondition_restarts_etcd_and_says_why`, and `etcd::peer` checks it as well |
//! | and the announcement is not taken back while a vote proxy's leader has no follower | `abandoned-leader-believed` |
//! | and only if no promotion is unsettled | the model copies whole logs, so a new voter has all that its leader had: `what_this_boot_does_not_prove_is_restarted` |
//! | `force_new_cluster` does not override a peer that reports that it is the sole voter | found by random runs, and too long for a search: `force_new_cluster_is_no_word_against_a_peer_that_says_it_is_the_sole_voter` |
//! | if only etcd's network parts, a node yields without a claim | `yields-and-keeps-its-claim` |
//! | and to a primary that is there | `yields-to-a-peer-unseen` |
//! | leadership goes back only to a voter | `learner-is-to-lead` |
//! | that lacks nothing | `laggard-is-to-lead` |
//! | and was well for the delay | `led-before-the-delay` |
//! | and it does go back | `lead-never-given-back` |
//! | two records that agree keep a history for a parameter, a voter's, and give none up that serves | `one-sides-word-counts`, `learners-history-kept`, `serving-history-given-up` |
//! | nor keep one that is known to be old | both refuse then: `a_parameter_keeps_no_history_that_is_known_to_be_old` |
//! | two voters' data boots no node alone | `two-voters-data-boots-alone` |
//! | nor does a learner's | `learners-data-boots-alone` |
//! | nor does a node with a peer that is not Off | `on-is-off`, `silence-is-off` |
//! | by its own BMC | `anothers-off-counts` |
//! | at the moment when the fencer fences it | `one-look-is-enough` |
//! | nor data that lacks what the CIB shows | `known-fork-ignored`, `redundant-ignored` |
//! | nor data with a removal of the peer that only one log has | `uncommitted-removal-counts` |
//! | nor data of a release that acknowledges before it syncs | with such a release a sole voter loses writes without it: `what_breaks_one_rule_alone_is_refused_by_that_rule` |
//! | nothing is forced from a database ahead of its log | the model has logs only: `nothing_is_announced_or_forced_from_a_database_ahead_of_its_log` |

mod bent;
mod forged;
mod lone_boot;
mod names;

pub use names::{ALL, Mutant};

use self::bent::{forget_unseen, vote_proxy_first};
use self::forged::{
    believe_the_stranger, bend_cib, bend_history, carry_out_what_was_called_off, claim, forge_claim, forge_memory,
    overlook_the_third_voter, overlook_what_serves, pass_for_restored, take_a_learner_for_a_voter,
    take_the_peer_at_our_word, take_the_peer_for_close, yield_unseen, yielded, yields,
};
use crate::base::Fact;
use crate::decide::evidence::{Cib, DataDir, Etcd, Evidence, Lineage, PeerAgent, PeerNode};
use crate::decide::plan::{Effect, Exit, Next, Phase, Plan, Progress, RunMode};
use crate::decide::reason::{Reason, ReasonStep, Refusal, Rule, Wait};
use crate::decide::{self, Request};

impl Mutant {
    /// Changes the evidence, before the core decides from it, as this broken rule requires.
    pub fn blind(self, evidence: &mut Evidence, progress: &Progress) {
        match self {
            Self::ProofSurvivesReboot => {
                forge_memory(evidence);
                forge_claim(evidence);
            }
            _ if evidence.lone_boot.is_some() => lone_boot::blind(self, evidence),
            Self::ProofOutlivesItsClaim => forge_claim(evidence),
            // With nothing hidden, only a disk that is not mounted leaves the data unknown.
            Self::MountNotChecked if matches!(evidence.disk, Fact::Unknown(_)) => {
                evidence.disk = Fact::Known(DataDir::Blank);
            }
            Self::StrangerBelieved => believe_the_stranger(evidence),
            Self::LaggardIsToLead => take_the_peer_for_close(evidence),
            Self::LeadNeverGivenBack => evidence.leading.iter_mut().for_each(|to| to.failback = false),
            Self::LedBeforeTheDelay => evidence.leading.iter_mut().for_each(|to| to.ready_for_s = Some(u64::MAX)),
            Self::OneSidesWordCounts => take_the_peer_at_our_word(evidence),
            Self::LearnersHistoryKept => take_a_learner_for_a_voter(evidence),
            Self::ServingHistoryGivenUp if has_one_voter(evidence) => overlook_what_serves(evidence),
            Self::LaunchIgnored => evidence.launching = Fact::Known(false),
            Self::FailedStartsIgnored => evidence.local.failed_starts = None,
            Self::ToldBesideAKnownFork => pass_for_restored(evidence),
            Self::BootstrapBesideAListener if is_blank_with_blank_peer(evidence) => evidence.peer_etcd = Fact::Absent,
            Self::LearnerCountsAsVoter => bend_history(evidence, |history| !history.has_left),
            Self::DepartedCountsAsVoter => {
                bend_history(evidence, |history| history.has_left);
                // The node's own note would hold it back, too.
                if let Fact::Known(note) = &mut evidence.note {
                    note.left_at = None;
                }
            }
            Self::SilentPeerNotAwaited if has_one_voter(evidence) => {
                bend_cib(evidence, |cib| {
                    if cib.peer_record.is_none() && cib.peer_agent == PeerAgent::NoHistory {
                        cib.peer_node = PeerNode::Lost;
                    }
                });
            }
            Self::OwnRecordNotAwaited => {
                let record = evidence.published_state();
                bend_cib(evidence, |cib| cib.own_record = record.clone().or(cib.own_record.take()));
            }
            Self::LastWordNotAwaited => {
                if let Phase::Barrier { nonce } | Phase::VoteProxy { nonce, .. } = progress.phase {
                    bend_cib(evidence, |cib| cib.own_record.iter_mut().for_each(|own| own.nonce = Some(nonce)));
                }
            }
            Self::ThirdVoterOverlooked => overlook_the_third_voter(evidence),
            Self::CalledOffForThreeCounts => carry_out_what_was_called_off(evidence),
            Self::AbandonedLeaderBelieved if leads_two(evidence) => {
                evidence.peer_etcd = Fact::Unknown("it is not looked at".to_owned());
            }
            _ => bend_cib(evidence, |cib| self.blind_cib(cib)),
        }
    }

    fn blind_cib(self, cib: &mut Cib) {
        match self {
            Self::LostCountsAsDown if cib.peer_node == PeerNode::Lost => {
                (cib.peer_node, cib.peer_agent) = (PeerNode::Down, PeerAgent::NoHistory);
            }
            Self::ExpectedCountsAsDown if cib.peer_node == PeerNode::Down => cib.peer_agent = PeerAgent::NoHistory,
            Self::StoppedCountsAsDown if cib.peer_agent == PeerAgent::Stopped => cib.peer_node = PeerNode::Down,
            Self::PeersClaimIgnored => claim(&mut cib.peer_record, false),
            Self::OwnClaimNotAwaited => claim(&mut cib.own_record, true),
            Self::ForksIgnored => {
                cib.lineage = Lineage::default();
            }
            Self::HistoryBesideGivenUp => cib.peer_record.iter_mut().for_each(|peer| peer.gave_up = true),
            Self::GreaterNameIsNewer => cib.peer_lineage = None,
            Self::ReachedIgnored => cib.reached = Fact::Absent,
            _ => {}
        }
    }

    /// Changes the plan that the core has returned, as this broken rule requires.
    pub fn bend(self, request: Request, evidence: &Evidence, progress: &Progress, mut plan: Plan) -> Plan {
        match self {
            Self::CommitIndexNotAdvanced => plan.effects.retain(|effect| *effect != Effect::AdvanceCommit),
            Self::ForkNotRecorded if progress.phase == Phase::Begin => {
                plan.effects.retain(|effect| !matches!(effect, Effect::PublishLineage(_) | Effect::WriteNote(_)));
            }
            Self::FailuresAddUp => plan.effects.retain(|effect| !matches!(effect, Effect::SetFailures { .. })),
            Self::PeersForkNotKept => {
                plan.effects.retain(|effect| !matches!(effect, Effect::PublishPeerLineage(_)));
            }
            Self::LearnerIsToLead if request == Request::Monitor && evidence.leading.is_some() => {
                for effect in &mut plan.effects {
                    if let Effect::PromoteMember { id, .. } = *effect {
                        *effect = Effect::MoveLeader { to: id };
                    }
                }
            }
            Self::YieldsAndKeepsItsClaim if yields(&plan) => return yielded(evidence),
            Self::YieldsToAPeerUnseen if request == Request::Monitor => yield_unseen(evidence, &mut plan),
            Self::DataNotMovedAside => plan.effects.retain(|effect| *effect != Effect::MoveDataAside),
            Self::LearnerNeverPromoted => {
                plan.effects.retain(|effect| !matches!(effect, Effect::PromoteMember { .. }));
            }
            Self::JoinerStartsPlainly => {
                run_otherwise(&mut plan, &RunMode::Normally, |mode| matches!(mode, RunMode::JoinAsLearner { .. }));
            }
            Self::PlainStartForces => {
                run_otherwise(&mut plan, &RunMode::ForceNewCluster, |mode| *mode == RunMode::Normally);
            }
            Self::RecordNotPublished => plan.effects.retain(|effect| !matches!(effect, Effect::PublishRecord(_))),
            Self::LearnerNeverListed => plan.effects.retain(|effect| !matches!(effect, Effect::AddLearner { .. })),
            Self::DataMovedAsideEarly if waits_for_the_peer_to_serve(&plan) && has_data(evidence) => {
                plan.effects.push(Effect::MoveDataAside);
            }
            Self::BothBootstrap if waits_for_the_peer_to_serve(&plan) && is_blank_with_blank_peer(evidence) => {
                let progress = Progress::enter(Phase::Started(RunMode::Bootstrap), evidence.elapsed_ms);
                let because = Reason::Rule { rule: Rule::FirstByNameBootstraps, peer: String::new() };
                return Plan::then_look(vec![Effect::RunContainer(RunMode::Bootstrap)], 0, progress, because);
            }
            Self::SplitNotRefused if is_refused(&plan, &Refusal::HistoriesSplit) && has_one_voter(evidence) => {
                return run_plainly(evidence);
            }
            Self::ActivePeersHistoryIgnored if is_beside_an_active_peer(request, evidence, progress, &plan) => {
                return run_plainly(evidence);
            }
            Self::OutdatedWordStands => return with_an_outdated_word(request, evidence, progress, plan),
            Self::ForkNeverMadeCounts if starts_beside_a_fork(request, evidence, &plan) => {
                return Plan::exit(Vec::new(), Exit::Retriable, plan.because);
            }
            Self::VoteThatIsGoneAwaited if request == Request::Monitor && awaits_a_vote_in_vain(&plan) => {
                return Plan::exit(Vec::new(), Exit::Success, plan.because);
            }
            Self::UnseenClaimForgotten if request == Request::Monitor => forget_unseen(evidence, &mut plan),
            Self::VoteProxyBeforeAnnouncement => vote_proxy_first(evidence, &mut plan),
            Self::StopWithoutEtcdStopped if plan.effects.iter().any(is_stop) && request == Request::Stop => {
                plan.effects.clear();
                plan.next = Next::Exit(Exit::Success);
            }
            Self::ReturningVoterRejoinsWithoutListing => {
                plan.effects.retain(|effect| !matches!(effect, Effect::RemoveMember { .. }));
            }
            Self::SurvivorNeverGoesOn
                if plan.effects.iter().any(|effect| matches!(effect, Effect::SetStandalone(Some(_)))) =>
            {
                return Plan::exit(Vec::new(), Exit::Retriable, plan.because);
            }
            _ => {}
        }
        plan
    }
}

fn leads_two(evidence: &Evidence) -> bool {
    evidence.own_etcd.known().is_some_and(|etcd| etcd.leads() && etcd.voters().count() == 2)
}

fn run_otherwise(plan: &mut Plan, instead: &RunMode, which: impl Fn(&RunMode) -> bool) {
    for effect in &mut plan.effects {
        if matches!(effect, Effect::RunContainer(mode) if which(mode)) {
            *effect = Effect::RunContainer(instead.clone());
        }
    }
}

/// Returns whether a sole voter's start waits next to an active peer that has no claim to run standalone, does not serve, and has
/// recorded no more forced new clusters than the sole voter.
fn is_beside_an_active_peer(request: Request, evidence: &Evidence, progress: &Progress, plan: &Plan) -> bool {
    let Some(cib) = evidence.cib.known() else { return false };
    let is_active = cib.peer_node == PeerNode::Online && cib.peer_agent == PeerAgent::Active;
    let claims_nothing = cib.peer_record.as_ref().is_some_and(|record| !record.claims);
    let serves = evidence.peer_etcd.known().is_some_and(Etcd::is_voter_with_leader);
    let is_newest = evidence.own_lineage().is_some_and(|own| own >= cib.lineage);
    let decides = request == Request::Start && progress.phase == Phase::Begin && !runs(evidence);
    decides && plan.effects.is_empty() && is_active && claims_nothing && !serves && is_newest && has_one_voter(evidence)
}

/// Returns whether the plan starts a sole voter with data that lacks a recorded forced new cluster.
fn starts_beside_a_fork(request: Request, evidence: &Evidence, plan: &Plan) -> bool {
    let is_plain = plan.effects.contains(&Effect::RunContainer(RunMode::Normally));
    request == Request::Start && is_plain && has_one_voter(evidence) && evidence.was_left_behind()
}

fn runs(evidence: &Evidence) -> bool {
    evidence.container.known().is_some_and(|container| container.running)
}

fn has_one_voter(evidence: &Evidence) -> bool {
    let Fact::Known(DataDir::Present(history)) = &evidence.disk else { return false };
    history.is_voter() && history.voters.len() == 1
}

fn run_plainly(evidence: &Evidence) -> Plan {
    let progress = Progress::enter(Phase::Started(RunMode::Normally), evidence.elapsed_ms);
    let because = Reason::Rule { rule: Rule::PeerActiveButWithoutLeader, peer: evidence.peer_name().to_owned() };
    Plan::then_look(vec![Effect::RunContainer(RunMode::Normally)], 100, progress, because)
}

/// Returns the plan of an agent that follows a confirmation about other data, and deletes it only in a start that finds a leader.
fn with_an_outdated_word(request: Request, evidence: &Evidence, progress: &Progress, mut plan: Plan) -> Plan {
    if plan.because == Reason::Step(ReasonStep::TakeBackOutdatedConfirmation) {
        return decide::decide(request, &Evidence { confirmation: Fact::Absent, ..evidence.clone() }, progress).plan;
    }
    if request != Request::Start || plan.next != Next::Exit(Exit::Success) {
        plan.effects.retain(|effect| *effect != Effect::ConsumeConfirmation);
    }
    plan
}

fn is_refused(plan: &Plan, why: &Refusal) -> bool {
    matches!(&plan.because, Reason::Refused { refusal, .. } if refusal == why)
}

fn awaits_a_vote_in_vain(plan: &Plan) -> bool {
    let Reason::Refused { refusal: Refusal::EtcdDoesNotAnswer { why }, .. } = &plan.because else { return false };
    why.contains("whose vote it waits for")
}

fn waits_for_the_peer_to_serve(plan: &Plan) -> bool {
    matches!(plan.because, Reason::Waiting(Wait::PeerToServe { .. }))
}

fn has_data(evidence: &Evidence) -> bool {
    matches!(evidence.disk, Fact::Known(DataDir::Present(_)))
}

fn is_blank_with_blank_peer(evidence: &Evidence) -> bool {
    let peer_is_blank = evidence
        .cib
        .known()
        .and_then(|cib| cib.peer_record.as_ref())
        .is_some_and(|record| record.disk == DataDir::Blank);
    peer_is_blank && evidence.disk == Fact::Known(DataDir::Blank)
}

fn is_stop(effect: &Effect) -> bool {
    matches!(effect, Effect::StopContainer { .. })
}
