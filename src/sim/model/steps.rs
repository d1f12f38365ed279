//! The effects of plans, with the numbers of the values that they write. A decision is taken once and performed
//! millions of times.

use std::sync::Arc;

use super::etcd;
use super::leading;
use super::log::{Data, Entry, Mid};
use super::lone_boot;
use super::members::{self, Reply};
use super::mids::{small, unused_mid};
use super::pacemaker;
use super::view;
use super::vote_proxy;
use super::world::{Action, CibReached, Damage, Mode, NAMES, Word, World};
use crate::decide::evidence::{DurableState, Lineage, LogPosition};
use crate::decide::plan::{Effect, Notice, Phase, RunMode, Via};
use crate::decide::{Exit, Next, OnFailure};
use crate::sim::mutant::Mutant;
use crate::sim::store::intern::Id;
use crate::sim::{Sim, Violation};

/// A decided plan without its reason. It has only what the model carries out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Todo {
    pub effects: Arc<[Effect]>,
    pub next: Next,
    pub on_failure: OnFailure,
    /// True if a monitor is to fail because this node yields to the configured primary.
    pub yields: bool,
}

impl Default for Todo {
    fn default() -> Self {
        Self {
            effects: Arc::default(),
            next: Next::Exit(Exit::Success),
            on_failure: OnFailure::FailInTime,
            yields: false,
        }
    }
}

/// All plans of the search. A plan's index is the number of its [`Todo`].
#[derive(Clone, Debug, Default)]
pub struct Plans(Vec<Steps>);

#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is something of its own that a plan does")]
pub struct Steps {
    pub steps: Vec<EffectStep>,
    pub then: Then,
    pub on_failure: OnFailure,
    /// True if the plan moves the data to a backup.
    pub moves_aside: bool,
    /// True if the plan forces a new cluster.
    pub forces: bool,
    /// True if a vote proxy casts the peer's vote.
    pub stands_in: bool,
    /// True if leadership moves to the peer.
    pub hands_over: bool,
    /// True if the node yields to the configured primary.
    pub yields: bool,
}

/// What follows once all effects of a plan are done: the action ends with an exit code, or the agent decides again with this progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    Exit(Exit),
    Again(Id),
}

/// One effect of a plan, as the model performs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectStep {
    Publish {
        record: Id,
        bears_nonce: bool,
    },
    RestoreRecord,
    PublishIdentity,
    PublishLineage((u8, u8)),
    PublishPeerLineage((u8, u8)),
    SetStandalone(Option<u8>),
    WriteNote {
        note: Id,
        announces: bool,
    },
    Remember(Id),
    ConsumeConfirmation,
    SetScore(bool),
    ForgetPrimary,
    /// Publishes the log position that etcd has reached (`etcd_reached`).
    SetReached(CibReached),
    SetRedundancy(bool),
    /// Clears the operator's request to force a new cluster (`force_new_cluster`).
    ForceDone,
    StopContainer,
    AdvanceCommit,
    MoveDataAside,
    RunContainer(Mode),
    /// Lets the vote proxy cast the vote of a member that is off. The vote proxy acknowledges the leader's entries until
    /// [`Self::VoteProxyRemoves`] is done.
    VoteProxyVotes,
    /// Lets the leader remove the dead member, after the vote proxy has cast that member's vote.
    VoteProxyRemoves,
    SettleConfig,
    /// Resets Pacemaker's count of failed starts, so that Pacemaker does not ban the resource from the node.
    ForgetFailures,
    /// Ends a start of etcd that still runs although its agent was killed.
    EndLaunch,
    MoveLeader,
    Remove(Mid, Via),
    Promote(Mid, Via),
    /// Adds a learner to the member list, for the node with this index.
    AddLearner(usize, Via),
    /// An effect that informs people, or that keeps the disk from filling. No decision of the model depends on it.
    ForPeople {
        is_for_show: bool,
    },
}

impl Plans {
    /// Returns the plan with the number `plan`.
    pub fn get(&self, plan: Id) -> &Steps {
        &self.0[plan as usize]
    }

    /// Returns the effect that follows the first `done` effects of a plan.
    pub fn step(&self, plan: Id, done: u8) -> Option<EffectStep> {
        self.get(plan).steps.get(usize::from(done)).copied()
    }
}

impl Sim {
    /// Returns whether the agent in `action` waits until a vote proxy may vote, or is about to begin this wait.
    pub(in crate::sim) fn stands_in(&self, action: Action) -> bool {
        let waits = |progress: Id| matches!(self.progresses.get(progress).phase, Phase::VoteProxy { .. });
        let then = action.plan.map(|(plan, _)| self.plans.get(plan).then);
        waits(action.progress) || matches!(then, Some(Then::Again(progress)) if waits(progress))
    }

    /// Returns whether a vote proxy has cast the peer's vote for node `n`, and still acknowledges the entries of `n`.
    pub(in crate::sim) fn is_stood_in_for(&self, world: &World, n: usize) -> bool {
        let next = world.nodes[n].action.and_then(|action| action.plan);
        next.and_then(|(plan, done)| self.plans.step(plan, done)) == Some(EffectStep::VoteProxyRemoves)
    }

    /// Returns the number of a plan, and assigns one if the plan is new.
    pub(in crate::sim) fn plan(&mut self, todo: Todo) -> Id {
        let id = self.todos.id(todo);
        self.add_plans();
        id
    }

    /// Adds to [`Plans`] all plans that have a number, including those from other threads.
    pub(in crate::sim) fn add_plans(&mut self) {
        for id in self.plans.0.len()..self.todos.len() {
            let todo = self.todos.get(Id::try_from(id).unwrap_or(Id::MAX)).clone();
            let mut steps: Vec<EffectStep> = Vec::new();
            for effect in todo.effects.iter() {
                steps.push(EffectStep::of(self, effect));
                // It is one effect that can end in its middle.
                steps.extend(matches!(effect, Effect::VoteProxy(_)).then_some(EffectStep::VoteProxyRemoves));
            }
            let then = match todo.next {
                Next::Exit(exit) => Then::Exit(exit),
                Next::Reobserve { progress, .. } => Then::Again(self.progresses.id(progress)),
            };
            self.plans.0.push(Steps {
                moves_aside: steps.contains(&EffectStep::MoveDataAside),
                forces: steps.contains(&EffectStep::RunContainer(Mode::Force)),
                stands_in: steps.contains(&EffectStep::VoteProxyVotes),
                hands_over: steps.contains(&EffectStep::MoveLeader),
                yields: todo.yields,
                steps,
                then,
                on_failure: todo.on_failure,
            });
        }
    }
}

impl EffectStep {
    fn of(sim: &mut Sim, effect: &Effect) -> Self {
        let by = |name: &str| u8::try_from(NAMES.iter().position(|known| *known == name).unwrap_or(0)).unwrap_or(0);
        let forks = |lineage: &Lineage| {
            let author = if lineage.by.is_empty() { 0 } else { 1 + by(&lineage.by) };
            (small(lineage.forks), author)
        };
        match effect {
            Effect::PublishRecord(record) => {
                Self::Publish { bears_nonce: record.nonce.is_some(), record: sim.records.id(Some(record.clone())) }
            }
            Effect::RestoreRecord => Self::RestoreRecord,
            Effect::PublishIdentity(_) => Self::PublishIdentity,
            Effect::PublishLineage(lineage) => Self::PublishLineage(forks(lineage)),
            Effect::PublishPeerLineage(lineage) => Self::PublishPeerLineage(forks(lineage)),
            Effect::SetStandalone(name) => Self::SetStandalone(name.as_deref().map(by)),
            Effect::WriteNote(note) => {
                let is_empty = *note == DurableState::default();
                let announces = note.alone_since.is_some();
                Self::WriteNote { note: if is_empty { 0 } else { sim.notes.id(note.clone()) }, announces }
            }
            Effect::Remember(memory) => Self::Remember(sim.memories.id(memory.clone())),
            Effect::ConsumeConfirmation => Self::ConsumeConfirmation,
            Effect::StopContainer { .. } => Self::StopContainer,
            Effect::AdvanceCommit => Self::AdvanceCommit,
            Effect::MoveDataAside | Effect::MoveHistoryAside => Self::MoveDataAside,
            Effect::RunContainer(mode) => Self::RunContainer(match mode {
                RunMode::Normally => Mode::Normally,
                RunMode::Bootstrap => Mode::Bootstrap,
                RunMode::ForceNewCluster => Mode::Force,
                RunMode::JoinAsLearner { initial_cluster } => Mode::Join { members: initial_cluster.len() },
            }),
            Effect::VoteProxy(_) => Self::VoteProxyVotes,
            Effect::SettleConfig => Self::SettleConfig,
            Effect::SetFailures { .. } => Self::ForgetFailures,
            Effect::EndLaunch => Self::EndLaunch,
            Effect::MoveLeader { .. } => Self::MoveLeader,
            Effect::RemoveMember { id, via } => Self::Remove(small(*id), *via),
            Effect::PromoteMember { id, via } => Self::Promote(small(*id), *via),
            Effect::AddLearner { peer_url, via } => Self::AddLearner(usize::from(peer_url.contains(NAMES[1])), *via),
            Effect::SetPromotionScore(score) => Self::SetScore(score.is_some()),
            Effect::SetReached(reached) => {
                let LogPosition { term, index } = reached.position;
                Self::SetReached(CibReached {
                    forks: small(reached.forks),
                    term: small(term),
                    index: small(index),
                    is_redundant: reached.is_redundant,
                })
            }
            Effect::ForgetPrimary => Self::ForgetPrimary,
            Effect::SetRedundancy(is_redundant) => Self::SetRedundancy(*is_redundant),
            Effect::TellOthers(Notice::ForceDone) => Self::ForceDone,
            Effect::SetLearner(_) | Effect::TellOthers(_) | Effect::PruneBackups => {
                Self::ForPeople { is_for_show: true }
            }
            Effect::SetAlarm(_)
            | Effect::PublishImage(_)
            | Effect::ShowLeader(_)
            | Effect::ShowFenceWait(_)
            | Effect::AnnounceLoneBoot(_)
            | Effect::HoldPeerOff(_)
            | Effect::CancelWaitForAll
            | Effect::DropBackups(_)
            | Effect::NoteFailedStart(_)
            | Effect::ForgetFailedStarts => Self::ForPeople { is_for_show: false },
        }
    }

    /// Returns whether the model performs the effect together with the previous one. It does if neither a decision of the other node
    /// nor an invariant depends on the effect.
    pub fn is_for_show(self) -> bool {
        matches!(
            self,
            Self::PublishIdentity
                | Self::SettleConfig
                | Self::SetScore(_)
                | Self::ForgetFailures
                | Self::ForPeople { is_for_show: true }
        )
    }

    /// Returns whether this step and the next one in the plan together perform a single effect.
    pub fn is_the_first_of_two(self) -> bool {
        self == Self::VoteProxyVotes
    }

    /// Returns whether a vote proxy performs this step. A vote proxy may give up at any moment, and even then the plan continues.
    pub fn is_of_a_vote_proxy(self) -> bool {
        matches!(self, Self::VoteProxyVotes | Self::VoteProxyRemoves)
    }

    /// Returns whether the effect can fail, or may have to wait for another node.
    pub fn may_fail(self) -> bool {
        matches!(
            self,
            Self::MoveDataAside
                | Self::RunContainer(_)
                | Self::MoveLeader
                | Self::Remove(..)
                | Self::Promote(..)
                | Self::AddLearner(..)
                | Self::VoteProxyVotes
                | Self::VoteProxyRemoves
        )
    }

    /// Returns whether the effect was requested and is not yet done. In that case a second request would change nothing.
    pub fn is_awaited(self, sim: &Sim, world: &World, n: usize) -> bool {
        // A record with a nonce is awaited until the CIB returns it, which happens only once the membership has
        // changed.
        if matches!(self, Self::Publish { bears_nonce: true, .. }) {
            return pacemaker::holds_writes_back(world) && sim.mutant != Mutant::LastWordNotAwaited;
        }
        let change = self.change(sim, world);
        change.is_some_and(|(entry, via)| members::is_awaited(sim, world, asked(n, via), n, entry))
    }

    /// Returns the change of the membership that the effect requests, and the etcd that receives the request; `None` if the effect
    /// requests no such change.
    fn change(self, sim: &Sim, world: &World) -> Option<(Entry, Via)> {
        match self {
            Self::Remove(mid, via) => Some((Entry::Remove(mid), via)),
            Self::Promote(mid, via) => Some((Entry::Promote(mid), via)),
            Self::AddLearner(node, via) => Some((Entry::AddLearner(unused_mid(sim, world, node)), via)),
            _ => None,
        }
    }

    /// Performs the effect on node `n`.
    pub fn perform(self, sim: &mut Sim, world: &mut World, n: usize) -> Result<Reply, Violation> {
        if self.is_awaited(sim, world, n) {
            return Ok(Reply::NotYet);
        }
        if let Some((entry, via)) = self.change(sim, world) {
            return Ok(members::change(sim, world, asked(n, via), n, entry));
        }
        match self {
            Self::Publish { record, bears_nonce } => {
                world.nodes[n].led &= !bears_nonce;
                world.nodes[n].erased = false;
                pacemaker::write(world, n, |cib| cib.record[n] = record);
            }
            Self::RestoreRecord => pacemaker::restore(world, n),
            Self::PublishIdentity => pacemaker::write(world, n, |cib| cib.recorded[n] = true),
            Self::PublishLineage(lineage) => pacemaker::write(world, n, |cib| cib.lineage[n] = lineage),
            Self::PublishPeerLineage(lineage) => pacemaker::write(world, n, |cib| cib.lineage[1 - n] = lineage),
            Self::SetStandalone(name) => pacemaker::write(world, n, |cib| cib.standalone = name),
            Self::WriteNote { note, announces } => {
                let own = &sim.notes.get(world.nodes[n].note).lineage;
                let was_left_behind = view::was_left_behind(&world.nodes[n].cib, n, own);
                // A file below the mount point of an unmounted disk does not last.
                if world.nodes[n].damage != Damage::NotMounted {
                    world.nodes[n].note = note;
                }
                if announces {
                    leading::announce(sim, world, n, was_left_behind);
                }
            }
            Self::Remember(memory) => leading::remember(sim, world, n, memory),
            Self::ConsumeConfirmation => world.nodes[n].word = Word::None,
            Self::SetScore(is_set) => pacemaker::write(world, n, |cib| cib.score[n] = is_set),
            Self::ForgetPrimary => pacemaker::write(world, n, |cib| cib.primary = None),
            Self::SetReached(reached) => {
                pacemaker::write(world, n, |cib| cib.reached = reached);
            }
            Self::SetRedundancy(is_redundant) => pacemaker::write(world, n, |cib| lone_boot::say(cib, is_redundant)),
            Self::ForceDone => pacemaker::write(world, n, |cib| cib.told[n] = false),
            Self::StopContainer => etcd::stop(world, n),
            Self::AdvanceCommit => {
                let length = world.nodes[n].data.len(&sim.logs);
                let data = &mut world.nodes[n].data;
                (data.commit, data.durable) = (length, length);
            }
            Self::MoveDataAside => move_aside(sim, world, n)?,
            Self::RunContainer(mode) => {
                // The new start replaces one that was under way.
                world.nodes[n].launching = None;
                // Without assertions etcd ends.
                etcd::run(sim, world, n, mode)
                    .or_else(|violation| if sim.judges() { Err(violation) } else { Ok(()) })?;
            }
            Self::VoteProxyVotes => {
                let has_moved = world.nodes[n].led && sim.mutant != Mutant::TermNotLookedAt;
                if !has_moved {
                    vote_proxy::vote(sim, world, n);
                }
            }
            Self::VoteProxyRemoves => vote_proxy::remove_the_dead(sim, world, n),
            Self::SettleConfig => world.nodes[n].forces = false,
            Self::ForgetFailures => world.nodes[n].failures = 0,
            Self::EndLaunch => world.nodes[n].launching = None,
            Self::MoveLeader => return Ok(if leading::hand_over(sim, world, n) { Reply::Done } else { Reply::Failed }),
            Self::Remove(..) | Self::Promote(..) | Self::AddLearner(..) | Self::ForPeople { .. } => {}
        }
        Ok(Reply::Done)
    }
}

/// Returns the index of the node that runs the etcd to which node `n` sends a request.
fn asked(n: usize, via: Via) -> usize {
    if via == Via::Own { n } else { 1 - n }
}

/// Moves the data of node `n` to a backup. Asserts that the peer's data has all acknowledged writes of this data, unless an operator
/// gave them up.
fn move_aside(sim: &Sim, world: &mut World, n: usize) -> Result<(), Violation> {
    let here = world.nodes[n].data.newest(&sim.logs).writes;
    let there = world.nodes[1 - n].data.newest(&sim.logs).writes;
    // If disks are lost or put back, the other node's disk may lack the writes because of that, and not because of this
    // decision. The backup remains, and the invariant about lost writes judges the node that serves without them.
    let is_lost = world.acked & here & !there & !world.given_up != 0;
    if sim.judges() && !sim.bounds.puts_back && !sim.bounds.disks && is_lost {
        return Err(Violation::new(format!("{}: the only copy of an acknowledged write is backed up", NAMES[n])));
    }
    // If the peer started before it could learn of this history, the writes here count as given up. That is no choice
    // between the two.
    let is_a_history_beside = world.words == 1 << n && world.acked & here & !there != 0;
    if sim.judges() && is_a_history_beside {
        return Err(Violation::new(format!("{}: a history is backed up that nobody gave up for another", NAMES[n])));
    }
    if world.nodes[n].etcd.is_on() {
        return Err(Violation::new(format!("{}: data is backed up under a running etcd", NAMES[n])));
    }
    if world.nodes[n].damage == Damage::NotMounted {
        return Err(Violation::new(format!("{}: the disk of data that is backed up is not mounted", NAMES[n])));
    }
    (world.nodes[n].data, world.nodes[n].damage) = (Data::default(), Damage::None);
    // The backup keeps the writes that were only here, and one history is left.
    world.settle_histories();
    Ok(())
}
