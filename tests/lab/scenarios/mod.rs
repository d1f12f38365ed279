//! The scenarios: what happens to two hosts, and what must hold afterwards.

mod both_powered_off_and_on;
mod both_stopped_and_started;
mod etcd_killed;
mod graceful_stop_and_return;
mod left_behind;
mod node_failure;
mod partition;
mod survivor_etcd_killed_too;
mod teardown_leaves_nothing;
mod wrong_input;

use std::time::{Duration, Instant};

use crate::cluster;
use crate::demo::Outcome;
use crate::etcd;
use crate::interrupt;
use crate::node::NODES;
use crate::sh::{self, Result};
use crate::state::Lab;
use crate::teardown;
use crate::up::{self, Wish};
use crate::writer::{STEADY, Writers};

/// What a scenario needs to begin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// Two voters, nothing to complain about; a lab that a healthy scenario left serves.
    Healthy,
    /// Hosts and fencing, but no etcd resource yet.
    NoEtcd,
    /// No lab at all: it makes its own.
    Nothing,
}

struct Scenario {
    name: &'static str,
    about: &'static str,
    needs: Needs,
    /// Whether the next scenario may go on in the lab that this one left.
    leaves_healthy: bool,
    run: fn(&Lab, Wish) -> Result<()>,
}

const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "node_failure_leader",
        about: "the power of the node that leads etcd is cut",
        needs: Needs::Healthy,
        leaves_healthy: true,
        run: node_failure::leader,
    },
    Scenario {
        name: "node_failure_follower",
        about: "the power of the node that follows is cut",
        needs: Needs::Healthy,
        leaves_healthy: true,
        run: node_failure::follower,
    },
    Scenario {
        name: "graceful_stop_and_return_leader",
        about: "the leader's node goes to standby and comes back",
        needs: Needs::Healthy,
        leaves_healthy: true,
        run: graceful_stop_and_return::leader,
    },
    Scenario {
        name: "graceful_stop_and_return_follower",
        about: "the follower's node goes to standby and comes back",
        needs: Needs::Healthy,
        leaves_healthy: true,
        run: graceful_stop_and_return::follower,
    },
    Scenario {
        name: "both_stopped_and_started",
        about: "the etcd resource is disabled and enabled",
        needs: Needs::Healthy,
        leaves_healthy: true,
        run: both_stopped_and_started::run,
    },
    Scenario {
        name: "both_powered_off_and_on",
        about: "both nodes lose power under writes and get it back",
        needs: Needs::Healthy,
        leaves_healthy: true,
        run: both_powered_off_and_on::run,
    },
    Scenario {
        name: "etcd_killed",
        about: "one etcd process gets SIGKILL",
        needs: Needs::Healthy,
        leaves_healthy: true,
        run: etcd_killed::run,
    },
    Scenario {
        name: "partition",
        about: "the hosts lose each other: one fences the other, never do both take writes",
        needs: Needs::Healthy,
        leaves_healthy: true,
        run: partition::run,
    },
    Scenario {
        name: "survivor_etcd_killed_too",
        about: "the leader loses power and the survivor's etcd gets SIGKILL: nothing acknowledged is lost",
        needs: Needs::Healthy,
        leaves_healthy: true,
        run: survivor_etcd_killed_too::nothing_lost,
    },
    Scenario {
        name: "left_behind",
        about: "a node returns after its peer went on alone and died: it refuses, until an operator confirms",
        needs: Needs::Healthy,
        leaves_healthy: true,
        run: left_behind::run,
    },
    Scenario {
        name: "loss_is_seen",
        about: "the same with the commit-index step switched off: the loss is reported",
        needs: Needs::Healthy,
        leaves_healthy: false,
        run: survivor_etcd_killed_too::loss_is_seen,
    },
    Scenario {
        name: "wrong_input",
        about: "wrong parameters, files, image and password: one clear sentence each",
        needs: Needs::NoEtcd,
        leaves_healthy: false,
        run: wrong_input::run,
    },
    Scenario {
        name: "teardown_leaves_nothing",
        about: "after a lab with dead parts is taken away, nothing of it is on the machine",
        needs: Needs::Nothing,
        leaves_healthy: false,
        run: teardown_leaves_nothing::run,
    },
];

/// Prints names and descriptions.
pub fn list() {
    for scenario in SCENARIOS {
        println!("{:<36} {}", scenario.name, scenario.about);
    }
}

/// Runs the named scenarios, or all; goes on after a failure and says at the end how many there were.
pub fn run(lab: &Lab, mut wish: Wish, names: &[String]) -> Result<()> {
    let chosen = choose(names)?;
    if lab.exists() {
        return Err("the lab is up already; type 'cargo lab down' first, or use another --name".into());
    }
    if wish.boot_delay == 0 {
        wish.boot_delay = crate::demo::BOOT_DELAY;
    }
    let _guard = teardown::AtEnd(lab);
    let mut current: Option<Needs> = None;
    let mut failed = Vec::new();
    let mut passed = 0;
    for scenario in chosen {
        let began = Instant::now();
        println!("== {}: {}", scenario.name, scenario.about);
        let done = prepare(lab, wish, scenario.needs, &mut current).and_then(|()| (scenario.run)(lab, wish));
        let seconds = began.elapsed().as_secs_f64();
        if interrupt::seen() {
            break;
        }
        match done {
            Ok(()) => {
                passed += 1;
                if !scenario.leaves_healthy {
                    current = None;
                }
                println!("-- {} passed ({seconds:.0} s)", scenario.name);
            }
            Err(error) => {
                println!("-- {} FAILED ({seconds:.0} s): {error}", scenario.name);
                if lab.exists() {
                    println!("   logs: {}", teardown::keep_logs(lab, scenario.name).display());
                    teardown::down(lab);
                }
                current = None;
                failed.push(scenario.name);
            }
        }
    }
    let left = if lab.exists() { teardown::down(lab) } else { Vec::new() };
    interrupt::check()?;
    if !left.is_empty() {
        println!("teardown left behind: {}", left.join(", "));
        failed.push("teardown");
    }
    if !failed.is_empty() {
        println!("failed: {}", failed.join(", "));
    }
    println!("{passed} passed, {} failed", failed.len());
    if failed.is_empty() { Ok(()) } else { Err("not every scenario passed".into()) }
}

fn choose(names: &[String]) -> Result<Vec<&'static Scenario>> {
    if names.is_empty() {
        return Ok(SCENARIOS.iter().collect());
    }
    let find = |name: &String| {
        SCENARIOS
            .iter()
            .find(|scenario| scenario.name == name)
            .ok_or_else(|| format!("there is no scenario '{name}'; type 'cargo lab list' for those there are").into())
    };
    names.iter().map(find).collect()
}

/// Brings the lab into the state that the scenario begins with; one that fits already is used as it is.
fn prepare(lab: &Lab, wish: Wish, needs: Needs, current: &mut Option<Needs>) -> Result<()> {
    if needs == Needs::Healthy && *current == Some(Needs::Healthy) {
        return Ok(());
    }
    if lab.exists() {
        teardown::down(lab);
    }
    *current = None;
    match needs {
        Needs::Nothing => return Ok(()),
        Needs::Healthy => up::up(lab, wish)?,
        Needs::NoEtcd => {
            up::up(lab, Wish { bare: true, ..wish })?;
            cluster::create_fencing(lab, NODES[0])?;
        }
    }
    *current = Some(needs);
    Ok(())
}

/// Starts writers on a healthy lab and waits until they are at work.
fn writing(lab: &Lab) -> Result<Writers> {
    let writers = Writers::start(lab, STEADY)?;
    sh::wait_for("the first writes", Duration::from_secs(20), Duration::from_millis(50), || {
        (writers.count() > 100).then_some(())
    })?;
    Ok(writers)
}

/// The end that every etcd scenario must come to: two voters, as both sides say; nothing acknowledged is lost on
/// either; no sign of two histories; nothing in Pacemaker that needs a human.
fn ends_well(lab: &Lab, writers: &mut Writers) -> Result<()> {
    etcd::wait_two_voters(lab, Duration::from_secs(180))?;
    // Some writes through both members belong to the proof.
    std::thread::sleep(Duration::from_secs(2));
    let verdict = writers.judge()?;
    println!(
        "   {} writes acknowledged, {} lost, longest gap {:.1} s",
        verdict.acknowledged,
        verdict.lost.len(),
        verdict.gap.as_secs_f64()
    );
    verdict.must_be_good()?;
    clean(lab)
}

/// Nothing in Pacemaker that needs a human. Failures that healed by themselves are shown, not hidden.
fn clean(lab: &Lab) -> Result<()> {
    let complaints = cluster::wait_clean(lab)?;
    for failure in cluster::failures(lab, NODES[0]) {
        println!("   note: {failure}");
    }
    if complaints.is_empty() { Ok(()) } else { Err(complaints.join("; ").into()) }
}

/// The end of a scenario that cut one node's power.
fn recovered(lab: &Lab, outcome: &Outcome) -> Result<()> {
    println!(
        "   first write after {:.1} s, two voters after {:.1} s, {} writes acknowledged, {} lost",
        outcome.first_write.as_secs_f64(),
        outcome.voters_after.as_secs_f64(),
        outcome.verdict.acknowledged,
        outcome.verdict.lost.len()
    );
    if outcome.lost_alone > 0 {
        return Err(format!("the survivor alone had lost {} acknowledged writes", outcome.lost_alone).into());
    }
    outcome.verdict.must_be_good()?;
    clean(lab)
}
