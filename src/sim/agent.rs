//! The agent in the model: rounds as `agent::rounds` has them, with [`decide::decide`] itself in the middle. One move is
//! one look with its decision, or one effect, so that a crash can come between any two of them.

use std::sync::Arc;

use super::dead;
use super::etcd;
use super::log::{Entry, Mid, bit};
use super::members::{self, Reply};
use super::mutant::Mutant;
use super::pacemaker;
use super::view::{self, NAMES, View};
use super::world::{Action, Run, World};
use super::{Sim, Violation};
use crate::decide::plan::{Effect, Phase, RunMode, Via};
use crate::decide::snapshot::{Note, PeerNode, Position, Record};
use crate::decide::{self, Exit, Next, Plan, Progress, Request};

/// A plan without its reason: what is still to be done.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Todo {
    pub effects: Arc<[Effect]>,
    pub next: Next,
    /// The answer of a monitor whose effects fail.
    pub failed_upkeep: Exit,
}

impl Default for Todo {
    fn default() -> Self {
        Self { effects: Arc::default(), next: Next::Exit(Exit::Success), failed_upkeep: Exit::Success }
    }
}

/// Moments of an action, in milliseconds: at once, and past each patience that the core has.
pub const MOMENTS: [(&str, u64); 4] = [("", 0), ("a little later", 6_000), ("later", 16_500), ("much later", 82_000)];

/// Not decided yet, in place of the number of a [`Todo`].
const UNDECIDED: u32 = u32::MAX;

/// What is decided in a view at each moment up to `last`: numbers of [`Todo`]s.
fn decide(sim: &mut Sim, view: View, last: usize) -> [u32; MOMENTS.len()] {
    let mut todos = sim.decided.get(&view).copied().unwrap_or([UNDECIDED; MOMENTS.len()]);
    if todos[last] != UNDECIDED {
        return todos;
    }
    let progress = sim.progresses.get(view.progress).clone();
    for (todo, (_, elapsed_ms)) in todos.iter_mut().zip(MOMENTS).take(last + 1) {
        if *todo == UNDECIDED {
            let elapsed_ms = elapsed_ms.min(view::budget_ms(view.request) - 1_000);
            let (_, decided) = decide_at(sim, &view, &progress, elapsed_ms);
            *todo = sim.todos.id(decided);
        }
    }
    sim.decided.insert(view, todos);
    todos
}

/// One decision, with its reason.
pub fn decide_at(sim: &Sim, view: &View, progress: &Progress, elapsed_ms: u64) -> (Plan, Todo) {
    let mut snapshot = view::snapshot(sim, view, elapsed_ms);
    sim.mutant.blind(&mut snapshot, progress);
    let plan = sim.strategy.decide(view.request, &snapshot, progress);
    let plan = sim.mutant.bend(view.request, &snapshot, progress, plan);
    let failed_upkeep = decide::after_failed_upkeep(&snapshot);
    let canonical = |effect: &Effect| if sim.judges() { canonical(effect) } else { effect.clone() };
    let effects = plan.effects.iter().map(canonical).collect();
    let next = match &plan.next {
        Next::Exit(exit) => Next::Exit(*exit),
        Next::Reobserve { progress, .. } => {
            Next::Reobserve { after_ms: 0, progress: canonical_progress(progress.clone()) }
        }
    };
    (plan, Todo { effects, next, failed_upkeep })
}

/// Positions that are only told to people are left out.
fn canonical(effect: &Effect) -> Effect {
    match effect.clone() {
        Effect::PublishRecord(record) => Effect::PublishRecord(canonical_record(record)),
        Effect::WriteNote(mut note) => {
            note.alone_since = note.alone_since.map(|_| Position::default());
            note.left_at = note.left_at.map(|_| Position::default());
            Effect::WriteNote(note)
        }
        Effect::StopContainer { .. } => Effect::StopContainer { grace_s: 1 },
        effect => effect,
    }
}

/// Of the mode in which etcd was started only its kind is asked for later.
fn canonical_progress(progress: Progress) -> Progress {
    let phase = match progress.phase {
        Phase::Started(RunMode::JoinAsLearner { .. }) => {
            Phase::Started(RunMode::JoinAsLearner { initial_cluster: Vec::new() })
        }
        phase => phase,
    };
    Progress { phase, since_ms: 0, ..progress }
}

fn canonical_record(mut record: Record) -> Record {
    if let decide::snapshot::DataDir::Present(history) = &mut record.disk {
        (history.last_term, history.last_index, history.commit_index) = (1, 0, 0);
    }
    record
}

/// One round's look and decision. False where nothing comes of it.
pub fn round(sim: &mut Sim, world: &mut World, n: usize, moment: usize) -> Result<bool, Violation> {
    let Some(action) = world.nodes[n].action.filter(|action| action.plan.is_none()) else { return Ok(false) };
    let view = view::look(sim, world, n, action);
    let plan = decide(sim, view, moment)[moment];
    carry_out(sim, world, n, action, plan)
}

/// The moments at which the next decision of `n` differs, each with the number of its [`Todo`]: later ones only where
/// time may pass.
pub fn choices(sim: &mut Sim, world: &World, n: usize) -> impl Iterator<Item = (usize, u32)> + use<> {
    let action = world.nodes[n].action.filter(|action| action.plan.is_none());
    let mut todos = [UNDECIDED; MOMENTS.len()];
    if let Some(action) = action {
        let view = view::look(sim, world, n, action);
        todos = decide(sim, view, 0);
        let may_differ = todos.iter().any(|todo| *todo != todos[0]);
        if may_differ && may_wait(sim, world) {
            todos = decide(sim, view, MOMENTS.len() - 1);
        } else {
            todos[1..].fill(UNDECIDED);
        }
    }
    let is_distinct = move |moment: &usize| todos[*moment] != UNDECIDED && !todos[..*moment].contains(&todos[*moment]);
    (0..MOMENTS.len()).filter(is_distinct).map(move |moment| (moment, todos[moment]))
}

/// Whether time may pass: etcd and Pacemaker's membership have come to rest, nobody is being fenced (unless fencing is
/// slow), and both agents wait.
pub fn may_wait(sim: &mut Sim, world: &World) -> bool {
    let awaits_fencing = !sim.bounds.slow_fencing && (0..2).any(|by| pacemaker::may_fence(world, by));
    !awaits_fencing
        && !pacemaker::holds_writes_back(world)
        && !etcd::is_busy(sim, world)
        && (0..2).all(|n| is_waiting(sim, world, n))
}

/// Whether nothing comes of the action of `n` now.
fn is_waiting(sim: &mut Sim, world: &World, n: usize) -> bool {
    let Some(action) = world.nodes[n].action else { return true };
    if action.plan.is_some() {
        return false;
    }
    let view = view::look(sim, world, n, action);
    let plan = decide(sim, view, 0)[0];
    let todo = sim.todos.get(plan);
    match &todo.next {
        Next::Reobserve { progress, .. } => todo.effects.is_empty() && progress == sim.progresses.get(action.progress),
        Next::Exit(_) => false,
    }
}

/// Begins what was decided.
pub fn carry_out(sim: &mut Sim, world: &mut World, n: usize, action: Action, plan: u32) -> Result<bool, Violation> {
    let todo = sim.todos.get(plan);
    if todo.effects.is_empty() {
        let next = todo.next.clone();
        return finish(sim, world, n, &next);
    }
    if sim.judges() {
        check_plan(sim, world, n, &todo.effects)?;
    }
    world.nodes[n].action = Some(Action { plan: Some((plan, 0)), ..action });
    Ok(true)
}

/// What must be true when something drastic is decided, whatever happens before it is done.
fn check_plan(sim: &Sim, world: &World, n: usize, effects: &[Effect]) -> Result<(), Violation> {
    let (me, peer) = (&world.nodes[n], &world.nodes[1 - n]);
    let moves_aside = effects.contains(&Effect::MoveDataAside);
    if moves_aside && !peer.etcd.is_led() {
        return Err(Violation::new(format!(
            "{}: its data is to be moved aside, and {} does not serve",
            NAMES[n],
            NAMES[1 - n]
        )));
    }
    let forces = effects.iter().any(|effect| matches!(effect, Effect::RunContainer(decide::RunMode::ForceNewCluster)));
    let unconfirmed = matches!(me.cib.machine[1 - n], PeerNode::Lost | PeerNode::NeverSeen);
    // A peer that has booted since it was confirmed down claims nothing, and cannot go on alone.
    let may_go_on = sim.memories.get(peer.memory).voter.is_some();
    if forces && unconfirmed && peer.on && may_go_on {
        return Err(Violation::new(format!(
            "{}: a new cluster is to be forced, and {} runs, lost and not fenced",
            NAMES[n],
            NAMES[1 - n]
        )));
    }
    Ok(())
}

/// Whether the next effect of a plan can happen.
pub fn may_act(sim: &Sim, world: &World, n: usize) -> bool {
    let Some((plan, done)) = world.nodes[n].action.and_then(|action| action.plan) else { return false };
    let effect = sim.todos.get(plan).effects.get(usize::from(done));
    effect.is_some_and(|effect| !is_awaited(sim, world, n, effect))
}

/// Whether an effect was begun before and is not done yet, so that trying again changes nothing.
fn is_awaited(sim: &Sim, world: &World, n: usize, effect: &Effect) -> bool {
    // What bears a nonce is awaited until it comes back, and nothing does before the membership has changed.
    if matches!(effect, Effect::PublishRecord(Record { nonce: Some(_), .. })) {
        return pacemaker::holds_writes_back(world) && sim.mutant != Mutant::LastWordNotAwaited;
    }
    change(sim, world, effect).is_some_and(|(entry, via)| members::is_awaited(sim, world, asked(n, via), n, entry))
}

/// The change of the membership that an effect asks for, and by which etcd.
fn change(sim: &Sim, world: &World, effect: &Effect) -> Option<(Entry, Via)> {
    Some(match effect {
        Effect::RemoveMember { id, via } => (Entry::Remove(small(*id)), *via),
        Effect::PromoteMember { id, via } => (Entry::Promote(small(*id)), *via),
        Effect::AddLearner { peer_url, via } => {
            let node = usize::from(peer_url.contains(NAMES[1]));
            (Entry::AddLearner(unused_mid(sim, world, node)), *via)
        }
        _ => return None,
    })
}

/// The node whose etcd is asked.
fn asked(n: usize, via: Via) -> usize {
    if via == Via::Own { n } else { 1 - n }
}

/// The next effect of a plan. `gives_up` says whether a failure ends the action or only the round.
pub fn effect(sim: &mut Sim, world: &mut World, n: usize, gives_up: bool) -> Result<bool, Violation> {
    let Some(action) = world.nodes[n].action else { return Ok(false) };
    let Some((plan, done)) = action.plan else { return Ok(false) };
    let todo = sim.todos.get(plan).clone();
    let Some(effect) = todo.effects.get(usize::from(done)) else { return Ok(false) };
    match perform(sim, world, n, effect)? {
        Reply::NotYet => return Ok(!gives_up),
        Reply::Failed => {
            fail(sim, world, n, action, &todo, gives_up)?;
            return Ok(true);
        }
        Reply::Done if gives_up => return Ok(false),
        Reply::Done => {}
    }
    let mut done = done + 1;
    while let Some(effect) = todo.effects.get(usize::from(done)).filter(|effect| is_for_show(effect)) {
        perform(sim, world, n, effect)?;
        done += 1;
    }
    if usize::from(done) < todo.effects.len() {
        world.nodes[n].action = Some(Action { plan: Some((plan, done)), ..action });
        return Ok(true);
    }
    world.nodes[n].action = Some(Action { plan: None, ..action });
    finish(sim, world, n, &todo.next)?;
    Ok(true)
}

/// What no decision and no invariant of the other node rests on is done along with what it follows.
fn is_for_show(effect: &Effect) -> bool {
    matches!(
        effect,
        Effect::SetLearner(_)
            | Effect::SettleConfig
            | Effect::SetPromotionScore(_)
            | Effect::PublishIdentity(_)
            | Effect::PruneBackups
            | Effect::TellOthers(_)
    )
}

/// The round ends with the effect that failed; a monitor's upkeep fails without the monitor.
fn fail(sim: &Sim, world: &mut World, n: usize, action: Action, todo: &Todo, gives_up: bool) -> Result<(), Violation> {
    let begins = *sim.progresses.get(action.progress) == Progress::default();
    if action.request == Request::Monitor && begins {
        return pacemaker::answered(world, n, todo.failed_upkeep);
    }
    if gives_up {
        return pacemaker::answered(world, n, Exit::Retriable);
    }
    world.nodes[n].action = Some(Action { plan: None, ..action });
    Ok(())
}

/// What follows the effects. False where the next round is like this one.
fn finish(sim: &mut Sim, world: &mut World, n: usize, next: &Next) -> Result<bool, Violation> {
    match next {
        Next::Exit(exit) => pacemaker::answered(world, n, *exit).map(|()| true),
        Next::Reobserve { progress, .. } => {
            let id = sim.progresses.id(progress.clone());
            let Some(action) = &mut world.nodes[n].action else { return Ok(false) };
            let is_news = action.progress != id;
            action.progress = id;
            dead::check_progress(action.request, action.notify, &progress.phase)?;
            Ok(is_news)
        }
    }
}

fn perform(sim: &mut Sim, world: &mut World, n: usize, effect: &Effect) -> Result<Reply, Violation> {
    let by = |name: &str| u8::try_from(NAMES.iter().position(|known| *known == name).unwrap_or(0)).unwrap_or(0);
    let done = Ok(Reply::Done);
    if is_awaited(sim, world, n, effect) {
        return Ok(Reply::NotYet);
    }
    match effect {
        Effect::PublishRecord(record) => {
            let id = sim.records.id(Some(record.clone()));
            pacemaker::write(world, n, |cib| cib.record[n] = id);
        }
        Effect::PublishIdentity(_) => pacemaker::write(world, n, |cib| cib.recorded[n] = true),
        Effect::PublishLineage(lineage) => {
            let lineage = (small(lineage.forks), if lineage.by.is_empty() { 0 } else { 1 + by(&lineage.by) });
            pacemaker::write(world, n, |cib| cib.lineage = cib.lineage.max(lineage));
        }
        Effect::SetStandalone(name) => {
            let name = name.as_deref().map(by);
            pacemaker::write(world, n, |cib| cib.standalone = name);
        }
        // These tell people something, or keep the disk from filling; no decision here rests on them.
        Effect::SetLearner(_)
        | Effect::SetPromotionScore(_)
        | Effect::SetAlarm(_)
        | Effect::TellOthers(_)
        | Effect::ForgetPrimary
        | Effect::DropBackups(_)
        | Effect::PruneBackups => {}
        Effect::WriteNote(note) => {
            let is_empty = *note == Note::default();
            world.nodes[n].note = if is_empty { 0 } else { sim.notes.id(note.clone()) };
            world.overridden |= note.alone_since.is_some() && world.nodes[n].word != super::world::Word::None;
        }
        Effect::Remember(memory) => world.nodes[n].memory = sim.memories.id(memory.clone()),
        Effect::ConsumeAuthorisation => world.nodes[n].word = super::world::Word::None,
        Effect::StopContainer { .. } => etcd::stop(world, n),
        Effect::AdvanceCommit => {
            let length = world.nodes[n].data.len(&sim.logs);
            let data = &mut world.nodes[n].data;
            (data.commit, data.durable) = (length, length);
        }
        Effect::MoveDataAside => return move_aside(sim, world, n),
        Effect::RunContainer(mode) => {
            // Where nobody judges, etcd just ends.
            etcd::run(sim, world, n, mode).or_else(|violation| if sim.judges() { Err(violation) } else { Ok(()) })?;
        }
        Effect::SettleConfig => world.nodes[n].forces = false,
        Effect::MoveLeader { .. } => {
            return Ok(if etcd::hand_over(world, n) { Reply::Done } else { Reply::Failed });
        }
        Effect::RemoveMember { .. } | Effect::PromoteMember { .. } | Effect::AddLearner { .. } => {
            let Some((entry, via)) = change(sim, world, effect) else { return done };
            return Ok(members::change(sim, world, asked(n, via), n, entry));
        }
    }
    done
}

fn small(id: u64) -> u8 {
    u8::try_from(id).unwrap_or(u8::MAX)
}

/// What is moved aside must be in the peer's data, or given up by an operator.
fn move_aside(sim: &Sim, world: &mut World, n: usize) -> Result<Reply, Violation> {
    let here = world.nodes[n].data.newest(&sim.logs).writes;
    let there = world.nodes[1 - n].data.newest(&sim.logs).writes;
    if sim.judges() && world.acked & here & !there & !world.given_up != 0 {
        return Err(Violation::new(format!("{}: the only copy of an acknowledged write is moved aside", NAMES[n])));
    }
    if world.nodes[n].etcd.is_on() {
        return Err(Violation::new(format!("{}: data is moved aside under a running etcd", NAMES[n])));
    }
    world.nodes[n].data = super::log::Data::default();
    Ok(Reply::Done)
}

/// A member id that nothing in the world remembers: etcd never gives one twice, and ids that are forgotten everywhere
/// are as good as new.
fn unused_mid(sim: &Sim, world: &World, node: usize) -> Mid {
    let mut used = 0_u16;
    let mut note = |mid: Mid| used |= bit(mid & 15);
    for machine in &world.nodes {
        note(machine.data.mid);
        for entry in machine.data.entries(&sim.logs) {
            match *entry {
                Entry::Base { conf, .. } => (0..16).filter(|mid| conf.lists(*mid)).for_each(&mut note),
                Entry::AddLearner(mid) | Entry::Started(mid) | Entry::Promote(mid) | Entry::Remove(mid) => note(mid),
                Entry::Write(_) => {}
            }
        }
        for record in machine.cib.record.iter().filter_map(|id| sim.records.get(*id).as_ref()) {
            if let decide::snapshot::DataDir::Present(history) = &record.disk {
                note(small(history.member_id));
                history.voters.iter().chain(&history.learners).for_each(|mid| note(small(*mid)));
            }
        }
        if let Some(voter) = &sim.memories.get(machine.memory).voter {
            note(small(voter.member_id));
        }
        if let Some((plan, _)) = machine.action.and_then(|action| action.plan) {
            sim.todos.get(plan).effects.iter().for_each(|effect| note(mid_of(effect)));
        }
    }
    let first = if node == 0 { 1 } else { 9 };
    (first..first + 7).find(|mid| used & bit(*mid) == 0).unwrap_or(first + 6)
}

fn mid_of(effect: &Effect) -> Mid {
    match effect {
        Effect::RemoveMember { id, .. } | Effect::PromoteMember { id, .. } => small(*id),
        Effect::Remember(memory) => memory.voter.as_ref().map_or(0, |voter| small(voter.member_id)),
        _ => 0,
    }
}

/// The invariants that hold in every state.
pub fn check(sim: &Sim, world: &World) -> Result<(), Violation> {
    if world.nodes.iter().all(|node| node.etcd == Run::Leader) {
        return Err(Violation::new("both nodes accept writes, and neither knows of the other's".to_owned()));
    }
    for (n, node) in world.nodes.iter().enumerate().filter(|(_, node)| node.etcd == Run::Leader) {
        let missing = world.acked & !world.given_up & !node.data.newest(&sim.logs).writes;
        if missing != 0 {
            let name = |bit: u8| if bit == 7 { "history".to_owned() } else { format!("w{}", bit + 1) };
            let which = (0..8).filter(|bit| missing & (1 << bit) != 0).map(name);
            return Err(Violation::new(format!(
                "acknowledged write {} is lost: {} serves without it",
                which.collect::<Vec<_>>().join(", "),
                NAMES[n]
            )));
        }
    }
    Ok(())
}
