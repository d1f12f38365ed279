//! The view of a tool, in the form that the rules read.

use super::mutant::Mutant;
use super::world::{Condition, Errand, Member, Stage, TOOLS, World};
use crate::decide::members::{self, Health, MachineState, Membership, Newcomer, Wish, Words};

/// The number of log entries that a learner may lack and still be promoted.
const MOST: u64 = 100;
/// A member id that the cluster does not list.
const NOBODY: u64 = 99;

/// Returns the place of the member `id` in the state. In an observation, a member's id is its place, counted from 1.
pub(super) fn place(id: u64) -> usize {
    usize::try_from(id).unwrap_or_default().saturating_sub(1)
}

/// Returns the membership that `tool` observes now. Each member's id is its place in `world`, counted from 1.
pub(super) fn look(world: &World, tool: usize, mutant: Mutant) -> Membership {
    let is_stale = mutant == Mutant::StaleListBelieved;
    let ids = 1..;
    let mut members: Vec<members::Member> = Vec::new();
    let mut leader = None;
    for (id, member) in ids.zip(world.members) {
        let is_seen = if is_stale { was_listed(member) } else { member.is_listed() };
        if is_seen {
            members.push(seen(id, member, is_stale, mutant));
        }
        leader = leader.or(member.leads().then_some(id));
    }
    let someone_else = world.lock.is_some_and(|holder| usize::from(holder) != tool);
    let stops_anyway = mutant == Mutant::StopDuringChange && world.tools[tool].errand == Errand::Stop;
    let is_ignored = mutant == Mutant::LockIgnored || stops_anyway;
    let mut membership = Membership {
        members,
        leader: leader.filter(|_| has_majority(world)),
        is_confirmed: has_majority(world) && (world.is_settled() || is_stale),
        wanted: usize::from(world.wanted),
        is_pair: false,
        change: (someone_else && !is_ignored).then(|| "another tool's".to_owned()),
        promote_max_lag: MOST,
        uses_hooks: false,
        third_voter: false,
    };
    if mutant == Mutant::SecondLearner {
        let own = newcomer_url(tool);
        membership.members.retain(|member| !member.is_learner || member.peer_urls.contains(&own));
    }
    mutant.distort(&mut membership);
    membership
}

/// Returns whether the voters that live are a majority, so that etcd can commit writes.
pub(super) fn has_majority(world: &World) -> bool {
    world.living_voters() >= members::quorum(world.voters())
}

/// Returns whether `member` was in the member list before the last change of the list.
fn was_listed(member: Member) -> bool {
    member.is_gone() || member.is_listed() && (member.votes() || !member.is_recent())
}

fn seen(id: u64, member: Member, is_stale: bool, mutant: Mutant) -> members::Member {
    let health = match member.condition() {
        _ if mutant == Mutant::UnstartedPromoted && member.stage() == Stage::Unstarted => Health::Yes,
        _ if member.stage() == Stage::Unstarted => Health::No(String::new()),
        Condition::Up => Health::Yes,
        Condition::Down => Health::No(String::new()),
        Condition::HiddenUp | Condition::HiddenDown => Health::Unknown(String::new()),
    };
    let lag = |is_close: bool| Some(if is_close { 0 } else { MOST + 1 });
    let has_started = member.stage() != Stage::Unstarted || mutant == Mutant::UnstartedPromoted;
    members::Member {
        id,
        name: if has_started { "started".to_owned() } else { String::new() },
        node: None,
        peer_urls: (0..TOOLS).filter(|tool| member.is_new(*tool)).map(newcomer_url).collect(),
        is_learner: !member.was_voter() || is_stale && member.is_recent() && !member.is_gone(),
        health,
        lag: lag(matches!(member.stage(), Stage::Near | Stage::Whole)),
        lag_before: lag(member.stage() == Stage::Whole),
        knows_the_list: Some(true),
        machine: if member.is_deleted() {
            MachineState::BeingDeleted
        } else {
            MachineState::Stays { is_protected: true }
        },
        is_strange: false,
    }
}

fn newcomer_url(tool: usize) -> String {
    format!("new{tool}")
}

/// Returns the change that `tool` was called for, with the ids of the current observation; `None` if it was not called for a change.
pub(super) fn wish(world: &World, tool: usize) -> Option<Wish> {
    let subject = subject(world, tool);
    let new = Newcomer { name: "new".to_owned(), peer_url: newcomer_url(tool) };
    match world.tools[tool].errand {
        Errand::None | Errand::Stop => None,
        Errand::Remove => Some(Wish::Remove(subject.unwrap_or(NOBODY))),
        Errand::Promote => Some(Wish::Promote(subject.unwrap_or(NOBODY))),
        Errand::Replace => Some(Wish::Replace { old: subject, new }),
        Errand::Add => Some(Wish::Add(new)),
    }
}

/// Returns the id of the member that `tool` was called for; `None` once the cluster does not list that member.
pub(super) fn subject(world: &World, tool: usize) -> Option<u64> {
    let ids = 1..;
    let mut members = ids.zip(world.members);
    members.find(|(_, member)| member.is_listed() && member.is_subject(tool)).map(|(id, _)| id)
}

pub(super) fn words(world: &World, tool: usize, mutant: Mutant) -> Words {
    let has_word = world.tools[tool].word || mutant == Mutant::FewerWithoutAWord;
    Words { fewer_voters: subject(world, tool).filter(|_| has_word) }
}
