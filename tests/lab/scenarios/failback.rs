//! A configured primary leads, and regains leadership with a pause that clients hardly notice, unless an obstacle
//! prevents that.

use std::time::{Duration, Instant};

use etcd_client::AlarmAction;

use super::needs::Needs;
use super::table::{Scenario, scenario};
use super::{alarm, steps};
use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::cluster::up::Wish;
use crate::cluster::{self, CloneKind};
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::judge::check::must;
use crate::judge::figures;
use crate::judge::history;
use crate::load::writer::Writers;
use crate::sh::{self, Result};

pub const SCENARIOS: &[Scenario] = &[
    scenario("failback", "the lead goes to the configured primary, three times: how long writes pause", |lab, _| {
        hand_overs(lab, 3)
    }),
    scenario("failback_twenty", "the same twenty times", |lab, _| hand_overs(lab, 20)).nightly(),
    scenario("failback_refused", "the primary hangs, has an alarm, is on standby, learns: the lead stays", refused)
        .nightly(),
    scenario(
        "failback_reach",
        "users do not reach the leader, by a node attribute: the lead goes, and comes back",
        reach,
    )
    .nightly(),
    scenario(
        "primary_first_boot",
        "a new pair: whichever node boots it, the primary leads after the delay",
        first_boot,
    )
    .nightly()
    .needs(Needs::NoEtcd),
];

/// The delay before leadership moves to the primary. It is the shortest one that the parameter allows.
const DELAY: Duration = Duration::from_secs(10);
/// The time-out until the primary leads: the delay, and the monitor that hands leadership over.
const LIMIT: Duration = Duration::from_secs(90);
/// A time longer than the delay and two full monitors. In it leadership must not move.
const HOLDS: Duration = Duration::from_secs(25);
/// The tolerance for the moment at which the scenario observes that another node leads.
const AROUND: Duration = Duration::from_secs(2);

/// The number of hand-overs from which on their median gap is compared with its limit. The median of three, while two other labs
/// use the same processors, is mostly their load.
const MANY: usize = 20;
/// The limit for the median of the writers' gaps at hand-overs.
const MEDIAN: Duration = Duration::from_millis(100);
/// The limit for each of the writers' gaps at hand-overs.
const WORST: Duration = Duration::from_millis(500);

fn hand_overs(lab: &Lab, count: usize) -> Result<()> {
    etcd::wait_two_voters(lab, Duration::from_secs(60))?;
    let members = steps::members(lab)?;
    let pids = NODES.map(|node| etcd::pid(lab, node));
    let mut writers = super::writing(lab)?;
    let mut gaps = Vec::new();
    for _ in 0..count {
        let primary = leader(lab)?.other();
        let asked = Instant::now();
        name(lab, primary)?;
        let seen = wait_leads(lab, &writers, primary)?;
        must("the lead moves after the delay", asked.elapsed(), |took| *took >= DELAY)?;
        std::thread::sleep(AROUND);
        let (from, to) = (seen.saturating_sub(AROUND), seen + AROUND);
        let (gap, _) = history::longest_beside(&writers.acknowledged(), from, to, &writers.stalls.seen());
        println!("   {primary} leads, no write was acknowledged for {:.3} s", gap.as_secs_f64());
        gaps.push(gap);
    }
    gaps.sort_unstable();
    let (median, worst) = (gaps[gaps.len() / 2], gaps[gaps.len() - 1]);
    figures::print(format!(
        "of {count} hand-overs: median {:.3} s, worst {:.3} s",
        median.as_secs_f64(),
        worst.as_secs_f64()
    ));
    if count >= MANY {
        must("the median of the pauses", median, |median| *median <= MEDIAN)?;
    }
    must("the longest pause", worst, |worst| *worst <= WORST)?;
    must("no etcd was restarted for it", NODES.map(|node| etcd::pid(lab, node)), |now| *now == pids)?;
    unnamed(lab)?;
    super::ends_well(lab, &mut writers)?;
    steps::same_members(lab, members)
}

fn refused(lab: &Lab, _: Wish) -> Result<()> {
    etcd::wait_two_voters(lab, Duration::from_secs(60))?;
    let members = steps::members(lab)?;
    let mut writers = super::writing(lab)?;
    has_an_alarm(lab, &writers, members)?;
    hangs(lab, &writers)?;
    is_on_standby_and_learns(lab, &writers)?;
    unnamed(lab)?;
    super::ends_well(lab, &mut writers)
}

fn has_an_alarm(lab: &Lab, writers: &Writers, members: [u64; 2]) -> Result<()> {
    let first = leader(lab)?;
    alarm::set(lab, first, members[0], AlarmAction::Activate)?;
    let primary = first.other();
    name(lab, primary)?;
    let held = stays(lab, first, HOLDS);
    alarm::set(lab, first, members[0], AlarmAction::Deactivate)?;
    held?;
    wait_leads(lab, writers, primary).map(drop)
}

/// Freezes the primary's etcd until the agent restarts it, so that two voters have no majority. Either node may then
/// be elected. The agents must not hand over leadership to the frozen etcd.
fn hangs(lab: &Lab, writers: &Writers) -> Result<()> {
    let first = leader(lab)?;
    let primary = first.other();
    let pid = etcd::pid(lab, primary).ok_or_else(|| format!("no etcd runs on {primary}"))?;
    let before = handed_over(lab);
    host::must(lab, primary, &["kill", "-STOP", &pid])?;
    lab.event(&format!("etcd on {primary} got SIGSTOP"));
    name(lab, primary)?;
    steps::wait_write(writers, Duration::from_secs(150))?;
    must("nothing is handed to an etcd that hangs", handed_over(lab), |now| *now == before)?;
    wait_leads(lab, writers, primary).map(drop)
}

/// Puts the primary to standby and back, so that it returns as a learner. It must lead only after it has been a voter
/// for the delay.
fn is_on_standby_and_learns(lab: &Lab, writers: &Writers) -> Result<()> {
    let first = leader(lab)?;
    let primary = first.other();
    steps::standby(lab, primary, true)?;
    steps::wait_alone(lab, first)?;
    let before = handed_over(lab);
    name(lab, primary)?;
    stays(lab, first, HOLDS)?;
    steps::standby(lab, primary, false)?;
    etcd::wait_two_voters(lab, Duration::from_secs(180))?;
    let votes = Instant::now();
    wait_leads(lab, writers, primary)?;
    must("a new voter leads after the delay", votes.elapsed(), |took| *took + AROUND >= DELAY)?;
    must("one hand-over was enough", handed_over(lab), |now| *now == before + 1).map(drop)
}

/// Sets the node attribute of `reach_attribute` as a ping resource would. The primary must lose leadership when it
/// loses its users, and regain it with them.
fn reach(lab: &Lab, _: Wish) -> Result<()> {
    let primary = leader(lab)?;
    let mut writers = super::writing(lab)?;
    for node in NODES {
        set_reach(lab, node, "1000")?;
    }
    pcs::run(lab, primary, &["resource", "update", cluster::ETCD, "reach_attribute=users-reach"])?;
    name(lab, primary)?;
    stays(lab, primary, HOLDS)?;
    set_reach(lab, primary, "0")?;
    let lost = Instant::now();
    wait_leads(lab, &writers, primary.other())?;
    must("the leader hands over after ten seconds", lost.elapsed(), |took| *took >= Duration::from_secs(10))?;
    stays(lab, primary.other(), HOLDS)?;
    set_reach(lab, primary, "1000")?;
    wait_leads(lab, &writers, primary)?;
    unnamed(lab)?;
    pcs::run_and_wait(lab, primary, &["resource", "update", cluster::ETCD, "reach_attribute="])?;
    super::ends_well(lab, &mut writers)
}

fn set_reach(lab: &Lab, node: Node, value: &str) -> Result<()> {
    cluster::set_attribute(lab, NODES[0], node, "reboot", "users-reach", value)
}

fn first_boot(lab: &Lab, _: Wish) -> Result<()> {
    let [bootstraps, primary] = NODES;
    let named = [("configured_primary", primary.name()), ("failback_delay", "10")];
    cluster::create_etcd_with(lab, bootstraps, CloneKind::Plain, &named, false)?;
    etcd::wait_two_voters(lab, Duration::from_secs(180))?;
    must("the first node by name has made the cluster", leader(lab)?, |leader| *leader == bootstraps)?;
    let mut writers = super::writing(lab)?;
    wait_leads(lab, &writers, primary)?;
    unnamed(lab)?;
    super::ends_well(lab, &mut writers)
}

fn leader(lab: &Lab) -> Result<Node> {
    Ok(etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader)
}

fn name(lab: &Lab, primary: Node) -> Result<()> {
    let by = host::any_running(lab)?;
    let words = [format!("configured_primary={primary}"), format!("failback_delay={}", DELAY.as_secs())];
    pcs::run(lab, by, &["resource", "update", cluster::ETCD, &words[0], &words[1]])?;
    lab.event(&format!("{primary} is to lead"));
    Ok(())
}

fn unnamed(lab: &Lab) -> Result<()> {
    pcs::run_and_wait(lab, NODES[0], &["resource", "update", cluster::ETCD, "configured_primary=", "failback_delay="])
}

/// Waits until `node` leads. Returns the time since the writers began.
fn wait_leads(lab: &Lab, writers: &Writers, node: Node) -> Result<Duration> {
    let leads = || {
        let view = etcd::view(lab, node).ok()?;
        (view.leader == view.member).then(|| writers.now())
    };
    let seen = sh::wait_for(&format!("{node} to lead"), LIMIT, Duration::from_millis(100), leads)?;
    lab.event(&format!("{node} leads"));
    Ok(seen)
}

/// Checks for the duration `time` that `node` leads.
fn stays(lab: &Lab, node: Node, time: Duration) -> Result<()> {
    let end = Instant::now() + time;
    while Instant::now() < end {
        let view = etcd::view(lab, node)?;
        must(&format!("{node} leads"), view.leader, |leader| *leader == view.member)?;
        std::thread::sleep(Duration::from_millis(500));
    }
    Ok(())
}

/// Returns how often the agents have logged that they handed leadership to a primary.
fn handed_over(lab: &Lab) -> usize {
    let logged = |node| host::said(lab, node, &["cat", "/var/log/messages"]).matches("handing leadership back").count();
    NODES.into_iter().map(logged).sum()
}
