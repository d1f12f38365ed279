//! The scenarios: the failures of two hosts, and the conditions that must hold afterwards.

mod address;
mod agent_killed;
mod alarm;
mod all_returns_at_once;
mod api_address;
mod attributes;
mod auth_enabled;
mod bmc_refuses;
mod both_etcds_killed;
mod both_powered_off_and_on;
mod both_stopped_and_started;
mod both_stopped_one_returns;
mod certificates_rotated;
mod certs;
mod check_levels;
mod cib_hangs;
mod clients_over_a_cut;
mod cold_boot;
mod contracts;
mod corosync_parts;
mod cut_at_random;
mod cut_off_from_users;
mod database_damaged;
mod disk_full;
mod disk_lost;
mod etcd_hung;
mod etcd_killed;
mod etcd_network_parts;
mod events_of_a_cut;
mod failback;
mod fence_race;
mod fencing_by_hand;
mod fencing_check_and_test;
mod fencing_update;
mod force_attribute_left_behind;
mod graceful_stop_and_return;
pub mod image_changes;
mod ipv6_addresses;
mod knowing;
mod known_states;
mod kubelet_failure;
mod leader_address;
mod left_behind;
mod lone_boot;
mod member;
mod mixed_pair;
mod names_alike;
mod needs;
mod new_voters_peer_dies;
mod node_failure;
mod openshift_created;
mod openshift_manifest_change;
mod openshift_node_replaced;
mod openshift_restored;
mod openshift_two_to_one_to_two;
mod operators_day;
mod pacemaker_ends_in_maintenance;
mod parameters_change;
mod partition;
mod partition_without_fencing;
mod patroni;
mod peer_black_holed;
mod podman_broken;
mod podman_hangs;
mod promote_slow_etcd;
mod readme;
mod refused_for_long;
mod restart_wish_stays;
mod rolling_upgrade;
mod settings_upgrade;
mod setup;
mod shutdown_then_partition;
mod slow_machine;
pub mod steps;
mod survivor_etcd_killed_too;
mod table;
mod takeover;
mod teardown_leaves_nothing;
mod third_voter;
mod two_failures;
mod two_histories;
mod vm;
mod voter_wins_the_race;
mod words;
mod wrong_input;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::cluster::etcd;
use crate::cluster::redundant;
use crate::cluster::teardown;
use crate::cluster::up::{self, Wish};
use crate::cluster::{self, CloneKind};
use crate::demo::Outcome;
use crate::host;
use crate::host::blank::Blank;
use crate::host::node::NODES;
use crate::host::state::{self, Lab};
use crate::interrupt;
use crate::judge::decisions;
use crate::judge::evidence;
use crate::judge::figures;
use crate::judge::journals;
use crate::judge::report::{Done, Failed, Report};
use crate::judge::results;
use crate::load::writer::{FIRST_WRITES, STEADY, Writers};
use crate::programs::shell_agent::Agent;
use crate::sh::{self, Result};
use crate::side_by_side;
use needs::{Hosts, Needs};
use table::Scenario;

/// Prints the name and the description of each scenario. With `is_long` it also prints when, where and from which
/// state the scenario runs.
pub fn list(is_long: bool) {
    for scenario in table::all() {
        if is_long {
            let when = if scenario.nightly { "nightly" } else { "daily" };
            let (hosts, begins) = (scenario.hosts.words(), scenario.needs.words());
            println!("{}\n  {}\n  {when}, {hosts}; begins with {begins}\n", scenario.name, scenario.about);
            continue;
        }
        let nightly = if scenario.nightly { " (nightly)" } else { "" };
        let vms = if scenario.hosts == Hosts::Vms { " (virtual machines)" } else { "" };
        println!("{:<36} {}{vms}{nightly}", scenario.name, scenario.about);
    }
}

/// The selection of scenarios for a run.
pub enum Wanted {
    /// The scenarios that run daily.
    Daily,
    /// The daily scenarios, and also those that are long or depend on chance.
    Nightly,
    Named(Vec<String>),
}

/// The options of `cargo lab run`.
pub struct Manner {
    pub wanted: Wanted,
    /// The number of labs that run scenarios at the same time.
    pub jobs: usize,
    /// The file to which a run writes its report instead of the final output. `None` unless this is one of several
    /// labs that run at the same time.
    pub report: Option<PathBuf>,
    /// The file of results in which the run replaces the rows of its scenarios.
    pub results: Option<PathBuf>,
}

/// Runs the scenarios. It continues after a failed scenario, and prints the number of failures at the end.
pub fn run(lab: &Lab, mut wish: Wish, manner: &Manner) -> Result<()> {
    let chosen = choose(&manner.wanted, wish.hosts)?;
    wish.boot_delay = crate::demo::boot_delay(wish);
    let jobs = manner.jobs.min(chosen.len());
    let report = if jobs > 1 {
        let names: Vec<&str> = chosen.iter().map(|scenario| scenario.name).collect();
        side_by_side::run(lab, wish, &names, jobs)?
    } else {
        in_turn(lab, wish, &chosen)?
    };
    if let Some(path) = &manner.results {
        results::keep(path, report.rows(wish))?;
    }
    match &manner.report {
        Some(path) => report.save(path),
        None => report.sum_up(),
    }
}

fn in_turn(lab: &Lab, wish: Wish, chosen: &[&Scenario]) -> Result<Report> {
    teardown::make_room(lab)?;
    let _guard = teardown::AtEnd(lab);
    let mut current: Option<Needs> = None;
    let mut report = Report::default();
    let mut by_tandem = false;
    for scenario in chosen {
        let began = Instant::now();
        println!("== {}: {}", scenario.name, scenario.about);
        let done = one(lab, wish, scenario, &mut current);
        let seconds = began.elapsed().as_secs_f64();
        if interrupt::seen() {
            break;
        }
        let failed = match done {
            Ok(count) => {
                report.replayed += count;
                by_tandem |= WITH_VOTERS.contains(&scenario.needs);
                if !scenario.leaves_healthy {
                    current = None;
                }
                println!("-- {} passed ({seconds:.0} s)", scenario.name);
                None
            }
            Err(error) => {
                let seen = look_at(lab, scenario);
                let why = error.to_string();
                println!("-- {} FAILED ({seconds:.0} s): {}", scenario.name, why.lines().next().unwrap_or_default());
                current = None;
                Some(Failed { why, seen })
            }
        };
        report.done.push(Done { name: scenario.name.to_owned(), seconds, failed, figures: figures::take() });
    }
    let left = if lab.exists() { teardown::down(lab) } else { Vec::new() };
    interrupt::check()?;
    if !left.is_empty() {
        report.besides.push(format!("teardown left behind: {}", left.join(", ")));
    }
    if by_tandem && report.replayed == 0 {
        report.besides.push("no decision was recorded, so that none could be replayed".to_owned());
    }
    Ok(report)
}

/// Describes a lab in which a scenario has failed, keeps its logs, and takes it down.
fn look_at(lab: &Lab, scenario: &Scenario) -> Vec<String> {
    if !lab.exists() {
        return Vec::new();
    }
    let seen = evidence::of_failure(lab);
    println!("   logs: {}", teardown::keep_logs(lab, scenario.name).display());
    teardown::down(lab);
    seen
}

/// Runs one scenario, and replays the decisions of its agents. Returns the number of decisions.
fn one(lab: &Lab, wish: Wish, scenario: &Scenario, current: &mut Option<Needs>) -> Result<usize> {
    prepare(lab, wish, scenario.needs, current)?;
    let began = state::since_epoch();
    (scenario.run)(lab, wish)?;
    journals::must_hold_no_error(lab, began, &scenario.errors.concat())?;
    if lab.exists() { decisions::replay(lab, scenario.name) } else { Ok(0) }
}

fn choose(wanted: &Wanted, hosts: host::Kind) -> Result<Vec<&'static Scenario>> {
    let names = match wanted {
        Wanted::Daily => {
            let daily = |scenario: &&Scenario| scenario.hosts.include(hosts) && !scenario.nightly;
            return Ok(table::all().filter(daily).collect());
        }
        Wanted::Nightly => return Ok(table::all().filter(|scenario| scenario.hosts.include(hosts)).collect()),
        Wanted::Named(names) => names,
    };
    let find = |name: &String| {
        table::all()
            .find(|scenario| scenario.name == name)
            .ok_or_else(|| format!("there is no scenario '{name}'; type 'cargo lab list' for those there are").into())
    };
    names.iter().map(find).collect()
}

/// The states with two voters of Tandem's, which a scenario may pass on to the next.
const WITH_VOTERS: [Needs; 5] = [Needs::Healthy, Needs::Promotable, Needs::EtcdDisk, Needs::Kubelet, Needs::SetUp];

/// Brings the lab into the state in which the scenario begins. A lab that is in that state already is used as it is.
fn prepare(lab: &Lab, wish: Wish, needs: Needs, current: &mut Option<Needs>) -> Result<()> {
    if WITH_VOTERS.contains(&needs) && *current == Some(needs) {
        return Ok(());
    }
    if lab.exists() {
        teardown::down(lab);
    }
    *current = None;
    match needs {
        Needs::Nothing => return Ok(()),
        Needs::Healthy => up::up(lab, wish)?,
        Needs::ShellAgent => up::up(lab, Wish { agent: Agent::Shell, ..wish })?,
        Needs::Promotable => up::up(lab, Wish { clone: CloneKind::Promotable, ..wish })?,
        Needs::EtcdDisk => up::up(lab, Wish { etcd_disk: true, ..wish })?,
        Needs::Kubelet => {
            up::up(lab, wish)?;
            vm::kubelet::furnish(lab)?;
        }
        Needs::SetUp => {
            up::up(lab, Wish { blank: Some(Blank::Rpm), ..wish })?;
            certs::set_up(lab)?;
        }
        Needs::Blank => up::up(lab, Wish { blank: Some(Blank::Rpm), ..wish })?,
        Needs::BlankDebian => up::up(lab, Wish { blank: Some(Blank::Debian), ..wish })?,
        Needs::NoEtcd => {
            up::up(lab, Wish { bare: true, ..wish })?;
            cluster::create_fencing(lab, NODES[0])?;
        }
    }
    *current = Some(needs);
    Ok(())
}

/// Starts writers on a healthy lab, and waits for their first writes.
fn writing(lab: &Lab) -> Result<Writers> {
    let writers = Writers::start(lab, STEADY)?;
    sh::wait_for("the first writes", FIRST_WRITES, Duration::from_millis(50), || {
        (writers.count() > 100).then_some(())
    })?;
    Ok(writers)
}

/// Checks the end that every etcd scenario must reach. Both nodes report two voters. No acknowledged write is lost on
/// either node. There is no sign of two histories. Pacemaker shows no failure that an operator must clear.
fn ends_well(lab: &Lab, writers: &mut Writers) -> Result<()> {
    etcd::wait_two_voters(lab, Duration::from_secs(180))?;
    writers.wait_on_each()?;
    let verdict = writers.judge()?;
    figures::print(format!(
        "{} writes acknowledged, {} lost, longest gap {:.1} s",
        verdict.acknowledged,
        verdict.lost.len(),
        verdict.gap.as_secs_f64()
    ));
    verdict.must_be_good()?;
    clean(lab)
}

/// Checks that no failure in Pacemaker needs an operator, and that the loss of either node is safe again. Prints the
/// failures from which Pacemaker has recovered.
fn clean(lab: &Lab) -> Result<()> {
    let complaints = cluster::wait_clean(lab)?;
    for failure in cluster::failures(lab, NODES[0]) {
        println!("   note: {failure}");
    }
    if complaints.is_empty() { redundant::wait(lab) } else { Err(complaints.join("; ").into()) }
}

/// Checks that no write was lost in a scenario that cut one node's power, and that two voters were back in time.
fn recovered(lab: &Lab, outcome: &Outcome) -> Result<()> {
    figures::print(format!(
        "first write after {:.1} s, two voters after {:.1} s, {} writes acknowledged, {} lost",
        outcome.first_write.as_secs_f64(),
        outcome.voters_after.as_secs_f64(),
        outcome.verdict.acknowledged,
        outcome.verdict.lost.len()
    ));
    if outcome.lost_alone > 0 {
        return Err(format!("the survivor alone had lost {} acknowledged writes", outcome.lost_alone).into());
    }
    outcome.verdict.must_be_good()?;
    etcd::must_be_in_time(outcome.voters_after)?;
    clean(lab)
}
