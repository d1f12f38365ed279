//! The moves: a request that a BMC serves, an answer that arrives or is lost, a wait that ends, an agent that is
//! killed.

use super::mutant::Mutant;
use super::world::{Agent, Left, Marks, World, place};
use super::{MOST_DELAYS_OF_LEARNER, Options};
use crate::fence::race::{Listing, Mark, Pause, Race, RaceEvent, RaceStep, Raised, SITES, Site};

/// The kind of a move. A race has to end by normal moves alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    Normal,
    /// A move that may never happen: a fault, or the recovery of the network.
    Chance,
}

/// The number of waits for `race_delay` that the other node begins during a wait of twice that time. The second of these waits ends
/// only after the long wait.
const DELAYS_IN_A_LONG_ONE: u8 = 2;

type Found<'a> = &'a mut dyn FnMut(Course, String, World);

/// Passes to `found` each move that can follow `world`, with the next state.
pub(super) fn each(world: &World, options: Options, mut found: impl FnMut(Course, String, World)) {
    if world.is_decided() || world.are_both_off() {
        return;
    }
    for node in 0..2 {
        power(world, node, &mut found);
        if world.nodes[node].lives {
            network(world, node, &mut found);
            agent(world, node, options, &mut found);
        }
        ages(world, node, options, &mut found);
    }
}

fn name(node: usize) -> &'static str {
    if node == 0 { "P" } else { "N" }
}

fn faulty(world: &World) -> Option<World> {
    (world.faults > 0).then(|| World { faults: world.faults - 1, ..*world })
}

/// Lets a reset of `node`, which was sent before, take effect.
fn power(world: &World, node: usize, found: Found<'_>) {
    if !world.bmcs[node].has_reset {
        return;
    }
    let mut next = world.orphaned(node);
    next.nodes[node].lives = false;
    (next.bmcs[node].has_reset, next.bmcs[node].by_wait) = (false, false);
    found(Course::Normal, format!("{} is off", name(node)), next);
}

fn network(world: &World, node: usize, found: Found<'_>) {
    for bmc in 0..2 {
        let mut toggle = |world: World, what: &str, reaches| {
            let mut next = world;
            next.nodes[node].reaches[bmc] = reaches;
            found(Course::Chance, format!("{} {what} the BMC of {}", name(node), name(bmc)), next);
        };
        match (world.nodes[node].reaches[bmc], faulty(world)) {
            (false, Some(world)) => toggle(world, "reaches", true),
            (true, Some(world)) => toggle(world, "loses", false),
            (_, None) => {}
        }
    }
    let mut back = *world;
    back.nodes.iter_mut().for_each(|node| node.reaches = [true; 2]);
    if node == 0 && back != *world {
        found(Course::Chance, "the network is back".to_owned(), back);
    }
}

/// Expires the mark sessions that a killed agent of `node` left open on the BMCs. They expire only after the killed agent's reset has
/// worked, or if it never will.
fn ages(world: &World, node: usize, options: Options, found: Found<'_>) {
    if world.bmcs[1 - node].has_reset && options.mutant != Mutant::YoungIsKilled {
        return;
    }
    for bmc in 0..2 {
        if world.bmcs[bmc].marks[node].left == Left::Before {
            let mut next = *world;
            next.bmcs[bmc].change(node, |marks| marks.left = Left::None);
            found(Course::Normal, format!("what {} left on the BMC of {} ages", name(node), name(bmc)), next);
        }
    }
}

fn agent(world: &World, node: usize, options: Options, found: Found<'_>) {
    let who = name(node);
    match world.nodes[node].agent {
        // An agent reads its target before it races for it.
        Agent::Idle if !world.reaches(node, Site::Target) => {}
        Agent::Idle => {
            let uses_seen = options.mutant == Mutant::LookBeforeRaise;
            let seen = SITES.map(|site| uses_seen && world.bmcs[place(node, site)].marks[1 - node].any());
            let is_preferred = options.mutant.is_preferred(node);
            let next = world.with_agent(node, Agent::Races { race: Race::new(is_preferred), seen });
            found(Course::Normal, format!("{who}'s agent is called"), next);
            if options.learner && is_preferred {
                let next = world.with_agent(node, Agent::Races { race: Race::new(false), seen });
                found(Course::Normal, format!("{who}'s agent is called, and {who} holds no vote"), next);
            }
        }
        Agent::Races { race, seen } => races(world, node, options, (race, seen), found),
        Agent::Resets => resets(world, node, options, found),
        Agent::Ends => {
            let ended = SITES.into_iter().fold(*world, |world, site| world.lowered(node, site)).orphaned(node);
            found(Course::Normal, format!("{who} takes its marks down and ends"), ended);
        }
    }
    if let Some(world) = faulty(world).filter(|world| world.nodes[node].agent != Agent::Idle) {
        found(Course::Chance, format!("{who}'s agent is killed"), world.orphaned(node));
    }
}

/// Takes the next step in the race of `node`. A BMC answers the request of this step, or the network loses the request or the answer.
fn races(world: &World, node: usize, options: Options, (race, seen): (Race, [bool; 2]), found: Found<'_>) {
    let who = name(node);
    // An answer changes only what its agent knows, which no other agent sees. So it is one step with the request. The
    // agent's next step may come at any time, and everything else before it.
    let answered = |world: &World, event| {
        let race = race.after(event);
        let mut next = world.with_agent(node, Agent::Races { race, seen });
        if race.step() == RaceStep::Wait(Pause::Delay) && options.timely {
            count_delay(&mut next, node, options);
        }
        next
    };
    let step = options.mutant.step(race);
    match step {
        RaceStep::Raise(open) => {
            for site in SITES.into_iter().filter(|site| open.has(*site)) {
                raise(world, node, site, options, |course, what, world, done| {
                    found(
                        course,
                        format!("{who} marks {site:?}{what}"),
                        answered(&world, RaceEvent::Raised(site, done)),
                    );
                });
            }
        }
        RaceStep::Read(open) => {
            for site in SITES.into_iter().filter(|site| open.has(*site)) {
                let at_first = seen[usize::from(site == Site::Own)];
                read(world, node, site, options, |course, what, world, listing| {
                    let listing = options.mutant.listing(site, listing, at_first);
                    let event = RaceEvent::Listed(site, listing);
                    found(course, format!("{who} reads {site:?}{what}"), answered(&world, event));
                });
            }
        }
        RaceStep::Lower => {
            let reached = if options.mutant == Mutant::NeverWithdraws { &[][..] } else { &SITES };
            let marked = |site: &Site| world.bmcs[place(node, *site)].marks[node].known;
            match reached.iter().copied().find(marked) {
                Some(site) => {
                    found(Course::Normal, format!("{who} takes its mark down, {site:?}"), world.lowered(node, site));
                }
                None => found(Course::Normal, format!("{who} has withdrawn"), answered(world, RaceEvent::Lowered)),
            }
        }
        RaceStep::Wait(pause) => {
            for site in SITES {
                let is_up = world.bmcs[place(node, site)].marks[node].known;
                if is_up && matches!(race.mark(site), Mark::Failed | Mark::Silent) {
                    let race = race.after(RaceEvent::Raised(site, Raised::Acknowledged));
                    let next = world.with_agent(node, Agent::Races { race, seen });
                    found(Course::Normal, format!("{who} hears of its mark, {site:?}"), next);
                }
            }
            let must_wait = acts(world, 1 - node) || (options.learner && other_ends_first(world, node));
            if pause != Pause::Delay || !options.timely || !must_wait {
                let mut next = answered(world, RaceEvent::Waited);
                // A list is stale for less than the shortest wait.
                next.bmcs.iter_mut().for_each(|bmc| bmc.stale = bmc.marks);
                found(Course::Normal, format!("{who} has waited: {pause:?}"), next);
            }
            if !options.timely {
                found(Course::Normal, format!("{who}'s time is over"), world.with_agent(node, Agent::Ends));
            }
        }
        RaceStep::Reset { proven } => post(world, node, options, proven, found),
    }
}

fn raise(world: &World, node: usize, site: Site, options: Options, mut found: impl FnMut(Course, &str, World, Raised)) {
    let marked = |world: &World, known: bool| {
        let mut next = *world;
        next.bmcs[place(node, site)].change(node, |marks| {
            marks.known |= known;
            if !known {
                marks.left = Left::Now;
            }
        });
        next
    };
    if !world.reaches(node, site) {
        return found(Course::Normal, " in vain", *world, Raised::Unanswered);
    }
    if !options.mutant.marks_own() && site == Site::Own {
        return found(Course::Normal, " without a mark", *world, Raised::Acknowledged);
    }
    if world.is_late(node, site) {
        let known = options.mutant != Mutant::LateForgotten;
        return found(Course::Normal, ", the answer is late", marked(world, known), Raised::Unanswered);
    }
    found(Course::Normal, "", marked(world, true), Raised::Acknowledged);
    if !world.bmcs[place(node, site)].habits.lists {
        found(Course::Normal, ", which is refused", *world, Raised::Refused);
    }
    if let Some(world) = faulty(world) {
        found(Course::Chance, ", the answer is lost", marked(&world, false), Raised::Unanswered);
        found(Course::Chance, ", the request is lost", world, Raised::Unanswered);
    }
}

fn read(
    world: &World,
    node: usize,
    site: Site,
    options: Options,
    mut found: impl FnMut(Course, &str, World, Option<Listing>),
) {
    if !world.reaches(node, site) || world.is_late(node, site) {
        return found(Course::Normal, " in vain", *world, None);
    }
    found(Course::Normal, "", *world, Some(listing(world, node, site, options, false)));
    if let Some(world) = faulty(world) {
        found(Course::Chance, ", the answer is lost", world, None);
        found(Course::Chance, ", stale", world, Some(listing(&world, node, site, options, true)));
    }
}

fn listing(world: &World, node: usize, site: Site, options: Options, stale: bool) -> Listing {
    let bmc = &world.bmcs[place(node, site)];
    let marks = if stale { &bmc.stale } else { &bmc.marks };
    let ours_left = !options.context && marks[node].left != Left::None;
    Listing {
        ours: bmc.habits.lists && marks[node].known,
        rivals: bmc.habits.lists && (marks[1 - node].any() || ours_left),
    }
}

/// Counts a wait of `node` for `race_delay` when it begins. A preferred node without a vote waits for twice that time, and its wait
/// counts once.
fn count_delay(world: &mut World, node: usize, options: Options) {
    world.nodes[node].delays = (world.nodes[node].delays + 1).min(MOST_DELAYS_OF_LEARNER + 1);
    if !options.learner {
        return;
    }
    if node == 0 {
        world.nodes[0].waits_within = 0;
    } else if waits_for_delay(world, 0) {
        world.nodes[0].waits_within = (world.nodes[0].waits_within + 1).min(DELAYS_IN_A_LONG_ONE);
    }
}

/// Returns whether the other node ends its wait for `race_delay` before `node` does.
fn other_ends_first(world: &World, node: usize) -> bool {
    let is_nearly_over = world.nodes[0].waits_within == DELAYS_IN_A_LONG_ONE;
    waits_for_delay(world, 1 - node) && (is_nearly_over == (node == 1))
}

fn waits_for_delay(world: &World, node: usize) -> bool {
    let step = match world.nodes[node].agent {
        Agent::Races { race, .. } if world.nodes[node].lives => Some(race.step()),
        _ => None,
    };
    step == Some(RaceStep::Wait(Pause::Delay))
}

/// Returns whether the agent of `node` soon takes another step, without any other event.
fn acts(world: &World, node: usize) -> bool {
    world.nodes[node].lives
        && world.reaches(node, Site::Target)
        && match world.nodes[node].agent {
            Agent::Races { race, .. } => match race.step() {
                RaceStep::Wait(Pause::Poll) => !world.has_mark(1 - node),
                RaceStep::Wait(Pause::Delay) => false,
                _ => true,
            },
            Agent::Idle => false,
            _ => true,
        }
}

fn post(world: &World, node: usize, options: Options, proven: bool, found: Found<'_>) {
    let (who, other) = (name(node), 1 - node);
    if !world.reaches(node, Site::Target) {
        return found(Course::Normal, format!("{who} cannot reset"), world.with_agent(node, Agent::Ends));
    }
    // If waits decide, they differ by more than a reset takes, as the default delays do.
    let is_behind = world.bmcs[node].has_reset && world.bmcs[node].by_wait;
    if !proven && is_behind && options.mutant.waits_differ() {
        return;
    }
    let mut next = world.with_agent(node, Agent::Resets);
    (next.bmcs[other].has_reset, next.bmcs[other].by_wait) = (true, !proven);
    found(Course::Normal, format!("{who} resets"), next);
    if let Some(world) = faulty(world) {
        found(Course::Chance, format!("{who}'s reset is refused"), world.with_agent(node, Agent::Ends));
    }
}

/// Takes the step of an agent that waits for the proof that its reset has worked. If the agent ends before it has this proof, its mark
/// sessions stay open.
fn resets(world: &World, node: usize, options: Options, found: Found<'_>) {
    let who = name(node);
    if !world.nodes[1 - node].lives && world.reaches(node, Site::Target) {
        let mut next = world.with_agent(node, Agent::Ends);
        next.bmcs.iter_mut().for_each(|bmc| bmc.change(1 - node, |marks| *marks = Marks::default()));
        found(Course::Normal, format!("{who} has proven that {} is off", name(1 - node)), next);
    }
    if options.mutant == Mutant::LoweredEarly && world.has_mark(node) {
        let next = SITES.into_iter().fold(*world, |world, site| world.lowered(node, site));
        found(Course::Normal, format!("{who} takes its marks down early"), next);
    }
}
