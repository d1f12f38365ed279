//! The blows: what the bench does to the hosts, and the times that it measures.

use std::time::Duration;

use super::table::{Figure, Sheet};
use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::power;
use crate::host::state::{self, Lab};
use crate::judge::history;
use crate::judge::story::{Story, StoryStep};
use crate::load::writer::{STEADY, Writers};
use crate::sh::{self, Result};

/// The longest time that the bench waits for a lost node's return. It is twice the slowest return under the shell
/// agent.
const LIMIT: Duration = Duration::from_secs(240);
/// The longest time that the bench waits for an etcd that crashed. It is shorter than [`LIMIT`], because a crash
/// needs neither fencing nor a boot.
pub(super) const CRASH_LIMIT: Duration = Duration::from_secs(120);
/// The boot delay in seconds that keeps a lost node off, because the bench measures its return separately.
const NEVER: &str = "86400";
/// The interval at which the bench asks the members whether they are two voters.
const POLL: Duration = Duration::from_millis(100);
/// The line that Pacemaker logs when it calls the etcd resource's `start`, with Tandem's agent or the shell agent.
const START: &str = "Requesting local execution of start operation for etcd";

/// One run of the bench: its lab, its writers, and its beginning on the hosts' clock.
pub(super) struct Run<'a> {
    lab: &'a Lab,
    writers: Writers,
    began: Duration,
    leader: Node,
}

/// Returns the node that the failure hits: the leader in runs with an even number, the follower in the others.
fn victim(leader: Node, run: u32) -> Node {
    if run.is_multiple_of(2) { leader } else { leader.other() }
}

pub(super) fn power_cut(lab: &Lab, run: u32, sheet: &mut Sheet) -> Result<()> {
    lost(lab, run, sheet, power::cut, &OF_A_CUT)
}

/// Measures the outage after one node hangs: its BMC reports power on, and no process on it runs any more.
pub(super) fn node_hung(lab: &Lab, run: u32, sheet: &mut Sheet) -> Result<()> {
    lost(lab, run, sheet, host::namespaces::hang, &OF_A_HANG)
}

/// The figures to record when a node is lost: one for the whole outage, and one for the end of each part of it.
struct OfALoss {
    whole: Figure,
    parts: [(StoryStep, Figure); 3],
    after_fencing: Option<Figure>,
}

const OF_A_CUT: OfALoss = OfALoss {
    whole: Figure::CutToWrite,
    parts: [
        (StoryStep::NodeLost, Figure::CutToLost),
        (StoryStep::BmcAsked, Figure::CutToBmc),
        (StoryStep::Fenced, Figure::CutToFenced),
    ],
    after_fencing: Some(Figure::FencedToWrite),
};
const OF_A_HANG: OfALoss = OfALoss {
    whole: Figure::HungToWrite,
    parts: [
        (StoryStep::NodeLost, Figure::HungToLost),
        (StoryStep::BmcAsked, Figure::HungToBmc),
        (StoryStep::Fenced, Figure::HungToFenced),
    ],
    after_fencing: None,
};

fn lost(lab: &Lab, run: u32, sheet: &mut Sheet, strike: fn(&Lab, Node) -> Result<()>, figures: &OfALoss) -> Result<()> {
    let mut this = Run::begin(lab)?;
    let victim = victim(this.leader, run);
    lab.set("boot-delay", NEVER)?;
    let mut story = Story::begin(lab, victim, false);
    let cut_at = this.writers.now();
    strike(lab, victim)?;
    let dead_at = this.writers.now();
    let first = this.first_write(dead_at)?;
    sheet.add(figures.whole, first.saturating_sub(cut_at).as_secs_f64());
    let fenced = sh::wait_for("word of the fencing", LIMIT, POLL, || {
        story.follow();
        story.steps.get(&StoryStep::Fenced).copied()
    })?;
    for (step, figure) in figures.parts {
        story.steps.get(&step).iter().for_each(|after| sheet.add(figure, after.as_secs_f64()));
    }
    if let Some(figure) = figures.after_fencing {
        sheet.add(figure, first.saturating_sub(cut_at).saturating_sub(fenced).as_secs_f64());
    }
    lab.set("boot-delay", "0")?;
    let on_at = this.writers.now();
    power::on(lab, victim)?;
    let returned = this.returned(victim, on_at)?;
    sheet.add(Figure::CutReturn, returned.as_secs_f64());
    this.end(sheet)
}

pub(super) fn etcd_killed(lab: &Lab, run: u32, sheet: &mut Sheet) -> Result<()> {
    let mut this = Run::begin(lab)?;
    etcd::kill(lab, victim(this.leader, run))?;
    let killed_at = this.writers.now();
    let since = |moment: Duration| moment.saturating_sub(killed_at).as_secs_f64();
    match this.first_write_within(killed_at, CRASH_LIMIT) {
        Ok(first) => sheet.add(Figure::KilledToWrite, since(first)),
        Err(error) => {
            sheet.add_never(Figure::KilledToWrite);
            sheet.add_never(Figure::KilledToVoters);
            return Err(error);
        }
    }
    match sh::wait_for("two voters", CRASH_LIMIT, POLL, || etcd::two_voters(lab).ok()) {
        Ok(_) => sheet.add(Figure::KilledToVoters, since(this.writers.now())),
        Err(error) => {
            sheet.add_never(Figure::KilledToVoters);
            return Err(error);
        }
    }
    this.end(sheet)
}

pub(super) fn graceful_stop(lab: &Lab, run: u32, sheet: &mut Sheet) -> Result<()> {
    let mut this = Run::begin(lab)?;
    let node = victim(this.leader, run);
    let from = this.writers.now();
    pcs::run(lab, node.other(), &["node", "standby", node.name()])?;
    let asked_at = this.writers.now();
    sh::wait_for("etcd to stop", LIMIT, POLL, || etcd::pid(lab, node).is_none().then_some(()))?;
    this.first_write(asked_at)?;
    std::thread::sleep(Duration::from_secs(5));
    sheet.add(Figure::StopGap, this.longest_gap(from));
    let back_at = this.writers.now();
    pcs::run(lab, node.other(), &["node", "unstandby", node.name()])?;
    let returned = this.returned(node, back_at)?;
    sheet.add(Figure::StopReturn, returned.as_secs_f64());
    this.end(sheet)
}

pub(super) fn both_cut(lab: &Lab, _: u32, sheet: &mut Sheet) -> Result<()> {
    let mut this = Run::begin(lab)?;
    for node in NODES {
        power::cut(lab, node)?;
    }
    std::thread::sleep(Duration::from_secs(3));
    lab.set("boot-delay", "0")?;
    let on_at = this.writers.now();
    for node in NODES {
        power::on(lab, node)?;
    }
    let first = this.first_write(on_at)?;
    let starts = NODES.map(|node| this.start_of(node, on_at));
    let later = starts.into_iter().collect::<Result<Vec<_>>>()?.into_iter().max().unwrap_or_default();
    sheet.add(Figure::BothToWrite, first.saturating_sub(later).as_secs_f64());
    this.two_voters()?;
    this.end(sheet)
}

impl<'a> Run<'a> {
    pub(super) fn begin(lab: &'a Lab) -> Result<Self> {
        let leader = etcd::wait_two_voters(lab, LIMIT)?.leader;
        let (writers, began) = (Writers::start(lab, STEADY)?, state::since_epoch());
        sh::wait_for("the first writes", Duration::from_secs(20), Duration::from_millis(20), || {
            (writers.count() > 300).then_some(())
        })?;
        Ok(Self { lab, writers, began, leader })
    }

    /// Returns the time since the writers began.
    pub(super) fn now(&self) -> Duration {
        self.writers.now()
    }

    /// Returns the longest time since `from` without an acknowledged write, in seconds.
    pub(super) fn longest_gap(&self, from: Duration) -> f64 {
        history::longest_gap(&self.writers.acknowledged(), from, self.writers.now()).0.as_secs_f64()
    }

    /// Waits for the first write that began after `moment` and was acknowledged. Returns the time of its acknowledgement. Both times count
    /// from the beginning of the writers.
    pub(super) fn first_write(&self, moment: Duration) -> Result<Duration> {
        self.first_write_within(moment, LIMIT)
    }

    fn first_write_within(&self, moment: Duration, limit: Duration) -> Result<Duration> {
        sh::wait_for("an acknowledged write", limit, Duration::from_millis(20), || {
            self.writers.first_after(moment).map(|ack| ack.ended)
        })
    }

    /// Returns the time since the run's beginning at which Pacemaker first requested etcd's start on `node` after
    /// `moment`.
    fn start_of(&self, node: Node, moment: Duration) -> Result<Duration> {
        sh::wait_for("the agent's start", LIMIT, POLL, || {
            let log = std::fs::read_to_string(self.lab.messages(node)).unwrap_or_default();
            let starts = log.lines().rev().take(5000).filter(|line| line.contains(START));
            let times = starts.filter_map(|line| Some(state::since_stamp(line.split_once(' ')?.0, self.began)));
            times.filter(|time| *time > moment).min()
        })
    }

    pub(super) fn two_voters(&self) -> Result<Duration> {
        sh::wait_for("two voters", LIMIT, POLL, || etcd::two_voters(self.lab).ok())?;
        Ok(self.writers.now())
    }

    /// Returns the time from the start that Pacemaker requested on `node` after `moment` until two voters are back.
    fn returned(&self, node: Node, moment: Duration) -> Result<Duration> {
        let start = self.start_of(node, moment)?;
        Ok(self.two_voters()?.saturating_sub(start))
    }

    pub(super) fn end(&mut self, sheet: &mut Sheet) -> Result<()> {
        let verdict = self.writers.judge()?;
        sheet.add(Figure::Lost, f64::from(u32::try_from(verdict.lost.len())?));
        Ok(())
    }
}
