//! A trace as a story: each move in words, the reason of every decision, and the state after it.

use std::fmt::Write;

use crate::decide::{Exit, Progress};
use crate::sim::model::agent;
use crate::sim::model::steps::EffectStep;
use crate::sim::model::timing::MOMENTS;
use crate::sim::model::view;
use crate::sim::model::world::{NAMES, Run, World};
use crate::sim::model::{etcd, log};
use crate::sim::moves::scenario::Trace;
use crate::sim::moves::{self, Move};
use crate::sim::{Sim, Violation};

/// Replays a run, and returns its description as text. The second value is the violation in which the run ends; `Ok` if it ends in
/// none.
pub fn tell(sim: &mut Sim, trace: &Trace) -> (String, Result<(), Violation>) {
    let mut text = String::new();
    trace.set_bounds(&mut sim.bounds);
    let mut world = trace.begin.world(sim);
    let _ = writeln!(text, "     {}", standing(sim, &world));
    for (number, what) in trace.moves.iter().enumerate() {
        let _ = writeln!(text, "{:>3}. {}", number + 1, what.text());
        for line in reasons(sim, &world, *what) {
            let _ = writeln!(text, "       {line}");
        }
        match moves::apply(sim, &world, *what) {
            Ok(Some(next)) => {
                let (before, after) = (standing(sim, &world), standing(sim, &next));
                if before != after {
                    let _ = writeln!(text, "     {after}");
                }
                world = next;
            }
            Ok(None) => {
                return (text, Err(cannot_happen(sim, &world, number, *what)));
            }
            Err(violation) => {
                let _ = writeln!(text, "     VIOLATION: {}", violation.0);
                return (text, Err(violation));
            }
        }
    }
    (text, Ok(()))
}

/// Returns the error about a move that cannot happen in `world`. It lists the moves that can.
fn cannot_happen(sim: &mut Sim, world: &World, number: usize, what: Move) -> Violation {
    let mut instead = Vec::new();
    moves::apply_all(sim, world, |what, _| instead.push(what.text()));
    Violation::new(format!(
        "move {}: '{}' cannot happen here; these can:\n  {}",
        number + 1,
        what.text(),
        instead.join("\n  ")
    ))
}

/// Returns the reason of the decision that the move `what` makes, or a description of the effect that it performs. Returns nothing for
/// other moves.
pub fn reasons(sim: &mut Sim, world: &World, what: Move) -> Vec<String> {
    let (n, moment, mut scratch) = match what {
        Move::Decide(n, moment) => (n, moment, *world),
        Move::Begin(n, begin, moment) => {
            let mut begun = *world;
            if !crate::sim::model::pacemaker::begin(&mut begun, n, begin, etcd::has_learner(sim, world))
                || crate::sim::moves::is_pending(begin)
            {
                return Vec::new();
            }
            (n, moment, begun)
        }
        Move::Effect(n) | Move::GiveUp(n) => return vec![effect(sim, world, n)],
        _ => return Vec::new(),
    };
    let Some(action) = scratch.nodes[n].action.take() else { return Vec::new() };
    scratch.nodes[n].action = Some(action);
    let view = view::look(sim, &scratch, n, action);
    let progress: Progress = sim.progresses.get(action.progress).clone();
    let (plan, _) = agent::decide_at(sim, &view, &progress, MOMENTS[moment]);
    let mut lines = vec![format!("because {}", plan.because)];
    if let crate::decide::Next::Exit(exit) = plan.next {
        let when = if plan.effects.is_empty() { "" } else { ", after its effects" };
        lines.push(format!("answers '{}'{when}", answer(exit)));
    }
    lines
}

fn answer(exit: Exit) -> &'static str {
    match exit {
        Exit::Success => "success",
        Exit::Promoted => "running, promoted",
        Exit::NotRunning => "not running",
        Exit::Retriable => "failed for now",
    }
}

fn effect(sim: &Sim, world: &World, n: usize) -> String {
    let Some((plan, done)) = world.nodes[n].action.and_then(|action| action.plan) else { return String::new() };
    if sim.is_stood_in_for(world, n) {
        return "has etcd remove that member".to_owned();
    }
    let before =
        (0..done).filter(|step| sim.plans.step(plan, *step).is_some_and(EffectStep::is_the_first_of_two)).count();
    let effects = &sim.todos.get(plan).effects;
    effects.get(usize::from(done).saturating_sub(before)).map_or_else(String::new, ToString::to_string)
}

/// Returns a description of the state in one line.
pub fn standing(sim: &Sim, world: &World) -> String {
    let mut text = String::new();
    for (n, node) in world.nodes.iter().enumerate() {
        let power = if node.on { "" } else { " off," };
        let _ = write!(text, "{}:{power} {}, {} | ", NAMES[n], process(node.etcd), data(sim, world, n));
    }
    let acked = (0..7).filter(|bit| world.acked & (1 << bit) != 0).map(|bit| format!("w{}", bit + 1));
    let _ = write!(text, "acknowledged: {}", or_none(&acked.collect::<Vec<_>>().join(" ")));
    text
}

fn process(run: Run) -> &'static str {
    match run {
        Run::Off => "etcd off",
        Run::Fresh => "etcd waits",
        Run::Leaderless => "etcd has no leader",
        Run::Follower => "etcd follows",
        Run::Leader => "etcd leads",
    }
}

fn data(sim: &Sim, world: &World, n: usize) -> String {
    let data = world.nodes[n].data;
    if data.is_blank() {
        return "blank".to_owned();
    }
    let sum = data.newest(&sim.logs);
    let names = |set: u16| {
        let names = (1..16).filter(|mid| set & log::bit(*mid) != 0).map(|mid| format!("{mid:x}"));
        or_none(&names.collect::<Vec<_>>().join(" "))
    };
    let writes = (0..7).filter(|bit| sum.writes & (1 << bit) != 0).map(|bit| format!("w{}", bit + 1));
    let above = data.len(&sim.logs) - data.commit;
    let tail = if above > 0 { format!(", {above} above commit") } else { String::new() };
    let learners =
        if sum.conf.learners == 0 { String::new() } else { format!(" learners {}", names(sum.conf.learners)) };
    format!(
        "member {:x} [{}] voters {}{learners}{tail}",
        data.mid,
        writes.collect::<Vec<_>>().join(" "),
        names(sum.conf.voters)
    )
}

fn or_none(text: &str) -> String {
    if text.is_empty() { "none".to_owned() } else { text.to_owned() }
}
