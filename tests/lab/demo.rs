//! The demo of the main job: cut the power of one node under a steady writer, and show how the other node takes over.

use std::time::Duration;

use crate::cluster;
use crate::cluster::etcd;
use crate::cluster::redundant;
use crate::cluster::teardown;
use crate::cluster::up::{self, Wish};
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::power;
use crate::host::state::Lab;
use crate::judge::story::{Story, StoryStep};
use crate::judge::verdict::Verdict;
use crate::load::writer::{FIRST_WRITES, Load, STEADY, Writers};
use crate::sh::{self, Result};

/// The role of the node that loses power in the demonstration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    Leader,
    Follower,
}

impl Victim {
    pub fn parse(text: &str) -> Result<Self> {
        match text {
            "leader" => Ok(Self::Leader),
            "follower" => Ok(Self::Follower),
            other => Err(format!("'{other}' is no victim; type --victim leader or --victim follower").into()),
        }
    }

    /// Returns the node to cut, if `leader` now runs the etcd leader.
    pub fn node(self, leader: Node) -> Node {
        match self {
            Self::Leader => leader,
            Self::Follower => leader.other(),
        }
    }
}

/// The boot delay in seconds. It is as long as real servers take, so that the survivor visibly recovers without its
/// peer.
const BOOT_DELAY: u64 = 15;
const RECOVERY_LIMIT: Duration = Duration::from_secs(120);
const RETURN_LIMIT: Duration = Duration::from_secs(180);

/// Returns the boot delay in seconds that the command line gives. The default is [`BOOT_DELAY`] for hosts of
/// namespaces, which boot at once. It is zero for virtual machines, because their boot takes that long by itself.
pub fn boot_delay(wish: Wish) -> u64 {
    match wish.hosts {
        host::Kind::Namespaces if wish.boot_delay == 0 => BOOT_DELAY,
        host::Kind::Namespaces | host::Kind::Vm => wish.boot_delay,
    }
}

/// Brings a lab up and shows a power cut with the recovery. Takes the lab down even if that fails.
pub fn run(lab: &Lab, mut wish: Wish, victim: Victim) -> Result<()> {
    wish.boot_delay = boot_delay(wish);
    up::up(lab, wish)?;
    let _guard = teardown::AtEnd(lab);
    let shown = show(lab, victim);
    if shown.is_err() {
        println!("logs are kept in {}", teardown::keep_logs(lab, "demo").display());
    }
    let left = teardown::down(lab);
    if !left.is_empty() {
        println!("teardown left behind: {}", left.join(", "));
    }
    shown?;
    if left.is_empty() { Ok(()) } else { Err("the lab could not be taken away entirely".into()) }
}

/// The measurements of one power cut.
pub struct Outcome {
    pub story: Story,
    /// The time from the cut to the first write that was acknowledged after it.
    pub first_write: Duration,
    pub verdict: Verdict,
    /// The number of acknowledged writes that the survivor lacked while it ran standalone.
    pub lost_alone: usize,
    /// The time from the power cut until both members were voters again.
    pub voters_after: Duration,
}

fn show(lab: &Lab, victim: Victim) -> Result<()> {
    let outcome = power_cut(lab, victim, STEADY, true, |_| Ok(()))?;
    let complaints = cluster::wait_clean(lab)?;
    print!("\n{}", host::must(lab, NODES[0], &["crm_mon", "-1", "--exclude=summary", "--group-by-node"])?);
    table(&outcome);
    outcome.verdict.must_be_good()?;
    if outcome.lost_alone > 0 {
        return Err("the survivor alone had lost acknowledged writes".into());
    }
    if complaints.is_empty() { Ok(()) } else { Err(complaints.join("; ").into()) }
}

/// Cuts a node's power while clients write, and waits until two voters are back. Calls `at_cut` with the surviving
/// node right before the cut.
pub fn power_cut(
    lab: &Lab,
    victim: Victim,
    load: Load,
    print: bool,
    at_cut: impl FnOnce(Node) -> Result<()>,
) -> Result<Outcome> {
    let voters = etcd::wait_two_voters(lab, Duration::from_secs(60))?;
    redundant::wait(lab)?;
    let victim = victim.node(voters.leader);
    let survivor = victim.other();
    let mut writers = Writers::start(lab, load)?;
    sh::wait_for("the first writes", FIRST_WRITES, Duration::from_millis(50), || {
        (writers.count() > 500).then_some(())
    })?;
    let mut story = Story::begin(lab, victim, print);
    let role = if victim == voters.leader { "leads etcd" } else { "follows" };
    story.tell(&format!("{} writes acknowledged; cutting the power of {victim}, which {role}", writers.count()));
    let cut_at = writers.now();
    at_cut(survivor)?;
    power::cut(lab, victim)?;
    let dead_at = writers.now();
    let first =
        sh::wait_for("an acknowledged write after the power cut", RECOVERY_LIMIT, Duration::from_millis(50), || {
            story.follow();
            writers.first_after(dead_at)
        })?;
    let first_write = first.ended.saturating_sub(cut_at);
    story.tell(&format!(
        "first write acknowledged by {} ({:.2} s after the cut)",
        first.node,
        first_write.as_secs_f64()
    ));
    let lost_alone = lost_now(&writers, survivor, &story)?;
    if !power::is_on(lab, victim) {
        // The fence agent may have switched it on already.
        power::on(lab, victim)?;
        story.tell(&format!("{victim} is switched on"));
    }
    etcd::wait_two_voters_and(lab, RETURN_LIMIT, || story.follow())?;
    let voters_after = writers.now().saturating_sub(cut_at);
    story.tell("two voters, as both nodes say");
    writers.wait_on_each()?;
    let verdict = writers.judge()?;
    story.follow();
    Ok(Outcome { story, first_write, verdict, lost_alone, voters_after })
}

/// Returns the number of acknowledged writes that `survivor` lacks while it runs standalone and the writers continue.
fn lost_now(writers: &Writers, survivor: Node, story: &Story) -> Result<usize> {
    let acks = writers.acknowledged();
    let lost = crate::judge::history::lost(&acks, &writers.read_back(survivor)?.store).len();
    story.tell(&format!("read back from {survivor} alone: {} acknowledged writes, {lost} of them lost", acks.len()));
    Ok(lost)
}

fn table(outcome: &Outcome) {
    let at = |step: StoryStep| outcome.story.steps.get(&step).copied();
    let lost_node = at(StoryStep::NodeLost).or(at(StoryStep::FencingAsked));
    let fenced = at(StoryStep::Fenced);
    let seconds =
        |time: Option<Duration>| time.map_or_else(|| "not seen".to_owned(), |t| format!("{:.1}", t.as_secs_f64()));
    let between = |from: Option<Duration>, to: Option<Duration>| from.zip(to).map(|(from, to)| to.saturating_sub(from));
    println!();
    println!("  detection (power cut to node lost)            {:>9} s", seconds(lost_node));
    println!("  fencing (node lost to fencing confirmed)      {:>9} s", seconds(between(lost_node, fenced)));
    println!(
        "  recovery (fencing confirmed to first write)   {:>9} s",
        seconds(between(fenced, Some(outcome.first_write)))
    );
    println!("  power cut to two voters again                 {:>9} s", seconds(Some(outcome.voters_after)));
    println!("  longest gap between acknowledged writes       {:>9} s", seconds(Some(outcome.verdict.gap)));
    println!("  writes acknowledged                           {:>9}", outcome.verdict.acknowledged);
    println!(
        "  acknowledged writes lost                      {:>9}",
        outcome.verdict.lost.len().max(outcome.lost_alone)
    );
    println!();
}
