//! A run: write, strike, wait for two voters, and read everything back.

use std::time::Duration;

use super::Outcome;
use super::draw::{Back, Blow, Draw, Role};
use super::slow;
use crate::cluster;
use crate::cluster::etcd;
use crate::cluster::lone_boot;
use crate::cluster::redundant;
use crate::host;
use crate::host::bmc;
use crate::host::disks;
use crate::host::node::{NODES, Node};
use crate::host::power;
use crate::host::state::Lab;
use crate::judge::verdict::Window;
use crate::load::writer::{FIRST_WRITES, SIXTEEN, Writers};
use crate::scenarios::steps;
use crate::sh::{self, Result};

pub(super) const RETURN_LIMIT: Duration = Duration::from_secs(240);
/// The time for which the lab observes a node that booted without its peer. It is long enough for the node to run
/// standalone wrongly.
const LOOKED_AT_ALONE: Duration = Duration::from_secs(5);
/// The agent's log lines when a node begins to run standalone.
const SERVES_ALONE: [&str; 3] = ["announcing that it runs standalone", ": running standalone", "forcing a new cluster"];

/// The state of a running power-cut run: its lab, its leader and its writers.
pub(super) struct Scene<'a> {
    pub(super) lab: &'a Lab,
    leader: Node,
    pub(super) writers: Writers,
    /// The time in which a node took writes that an operator gave up afterwards. `None` if there was none.
    given_up: Option<Window>,
}

pub(super) fn run(lab: &Lab, draw: &Draw) -> Result<Outcome> {
    let leader = etcd::wait_two_voters(lab, RETURN_LIMIT)?.leader;
    redundant::wait(lab)?;
    let is_slow = matches!(draw.blow, Blow::ShutDown(_));
    if is_slow {
        slow::add_service(lab)?;
    }
    let writers = Writers::start(lab, SIXTEEN)?;
    sh::wait_for("the first writes", FIRST_WRITES, Duration::from_millis(20), || {
        (writers.count() > 100).then_some(())
    })?;
    std::thread::sleep(draw.before);
    let mut scene = Scene { lab, leader, writers, given_up: None };
    if let Blow::Swap(swap) = draw.blow {
        return scene.swap(swap);
    }
    scene.strike(draw.blow)?;
    etcd::wait_two_voters(lab, RETURN_LIMIT)?;
    if is_slow {
        slow::remove_service(lab)?;
    }
    scene.writers.wait_on_each()?;
    scene.judge()
}

impl Scene<'_> {
    pub(super) fn node(&self, role: Role) -> Node {
        match role {
            Role::Leader => self.leader,
            Role::Follower => self.leader.other(),
        }
    }

    fn strike(&mut self, blow: Blow) -> Result<()> {
        match blow {
            Blow::Cut(role) => {
                power::cut(self.lab, self.node(role))?;
                self.on_after_recovery(role)
            }
            Blow::SurvivorKilled { victim, after } => {
                let survivor = self.node(victim).other();
                // The process id is read in advance, because the two blows may have to come without a pause.
                let pid = etcd::pid(self.lab, survivor).ok_or("no etcd runs on the survivor")?;
                power::cut(self.lab, self.node(victim))?;
                std::thread::sleep(after);
                self.kill(survivor, after, &pid)?;
                self.on_after_recovery(victim)
            }
            Blow::Disk(role) => {
                power::cut(self.lab, self.node(role))?;
                self.lose_disk(self.node(role))?;
                self.on_after_recovery(role)
            }
            Blow::BothAndDisk(role) => {
                self.cut_both(Role::Leader, Duration::ZERO)?;
                self.lose_disk(self.node(role))?;
                self.on(Role::Leader)?;
                self.on(Role::Follower)
            }
            Blow::Both { first, apart, back } => {
                let alone = self.cut_both(first, apart)?;
                self.back(back, first, alone)
            }
            Blow::ShutDown(draw) => self.shut_down(draw),
            Blow::PacemakerEnds(draw) => self.pacemaker_ends(draw),
            Blow::AgentKilled(draw) => self.agent_killed(draw),
            Blow::Swap(_) => Err("a swapped data dir is judged by itself".into()),
        }
    }

    /// Cuts the power of one node, then of the other one. Returns the period in which the second node ran without its
    /// peer.
    fn cut_both(&self, first: Role, apart: Duration) -> Result<Window> {
        let (first, second) = (self.node(first), self.node(first).other());
        power::cut(self.lab, first)?;
        let from = self.writers.now();
        std::thread::sleep(apart);
        power::cut(self.lab, second)?;
        let to = self.writers.now();
        // The fence agent may have pressed the first one's button, and a BMC executes that even now.
        std::thread::sleep(Duration::from_secs(1));
        power::cut(self.lab, first)?;
        Ok((from, to))
    }

    fn kill(&self, survivor: Node, after: Duration, pid: &str) -> Result<()> {
        if after > Duration::ZERO {
            // It may be another process now, or none for a moment, because a recovery is running.
            let _ = etcd::kill(self.lab, survivor);
            return Ok(());
        }
        host::must(self.lab, survivor, &["kill", "-9", pid])?;
        self.lab.event(&format!("etcd on {survivor} got SIGKILL"));
        Ok(())
    }

    fn lose_disk(&self, node: Node) -> Result<()> {
        disks::empty(&disks::data_dir(self.lab, node))?;
        self.lab.event(&format!("etcd's disk of {node} is lost"));
        Ok(())
    }

    /// Waits for the survivor's recovery. Then switches the lost node on, unless the fence agent has done that.
    pub(super) fn on_after_recovery(&self, role: Role) -> Result<()> {
        let cut_at = self.writers.now();
        sh::wait_for("an acknowledged write after the power cut", RETURN_LIMIT, Duration::from_millis(50), || {
            self.writers.first_after(cut_at)
        })?;
        if power::is_on(self.lab, self.node(role)) { Ok(()) } else { self.on(role) }
    }

    fn on(&self, role: Role) -> Result<()> {
        power::on(self.lab, self.node(role))
    }

    fn back(&mut self, back: Back, cut_first: Role, alone: (Duration, Duration)) -> Result<()> {
        match back {
            Back::Both { first, apart } => {
                // Both buttons are pressed without waiting for a boot.
                self.lab.set("boot-delay", "0")?;
                self.on(first)?;
                std::thread::sleep(apart);
                self.on(first.other())
            }
            Back::OneThenTheOther(role) => {
                self.lab.set("boot-delay", "0")?;
                if lone_boot::is_allowed(self.lab) {
                    self.on_for_a_lone_boot(self.node(role))?;
                } else {
                    self.on_alone(self.node(role))?;
                }
                self.on(role.other())
            }
            Back::OneByConfirmation(role) => {
                let (stays, lost) = (self.node(role), self.node(role.other()));
                self.lab.set("boot-delay", "0")?;
                bmc::set_mode(self.lab, lost, "unreachable")?;
                self.on_alone(stays)?;
                if role == cut_first && self.took_writes(alone) {
                    self.given_up = Some(alone);
                }
                if self.confirm(stays, lost)? {
                    self.serves_alone(stays)?;
                } else if role == cut_first {
                    self.given_up = None;
                } else {
                    return Err(format!("{stays}, which was cut second and has voted until then, is declined").into());
                }
                bmc::set_mode(self.lab, lost, "ok")?;
                // Pacemaker has given up on a device with an unreachable BMC. After the repair of the BMC, an operator
                // cleans it up.
                let device = cluster::fence_device(lost);
                host::must(self.lab, stays, &["crm_resource", "--cleanup", "--resource", &device])?;
                self.on(role.other())
            }
        }
    }

    fn took_writes(&self, (from, to): Window) -> bool {
        self.writers.first_after(from).is_some_and(|ack| ack.ended < to)
    }

    /// Boots a node without its peer, and gives it the time of a lone boot. It serves if it was the sole voter, and otherwise
    /// does nothing. Whether it was right to serve, the end of the run shows: nothing may be lost, and both must vote.
    fn on_for_a_lone_boot(&self, node: Node) -> Result<()> {
        power::on(self.lab, node)?;
        let until = self.writers.now() + sh::patience(lone_boot::WAIT + lone_boot::BESIDES);
        while self.writers.now() < until {
            if etcd::view(self.lab, node).is_ok_and(|view| view.reads) {
                self.lab.event(&format!("{node} has booted alone and serves"));
                // So that its history has writes that its peer lacks.
                return self.takes_a_write(node);
            }
            crate::interrupt::check()?;
            std::thread::sleep(Duration::from_millis(300));
        }
        self.lab.event(&format!("{node} has booted alone and does not serve"));
        Ok(())
    }

    fn takes_a_write(&self, node: Node) -> Result<()> {
        let from = self.writers.now();
        let what = format!("a write on {node}, which booted alone");
        sh::wait_for(&what, Duration::from_secs(60), Duration::from_millis(50), || self.writers.first_after(from))
            .map(drop)
    }

    /// Checks that a node does not serve when it boots without its peer after both were cut. Its peer may have more
    /// data.
    pub(super) fn on_alone(&self, node: Node) -> Result<()> {
        let from = steps::log_length(self.lab, node);
        power::on(self.lab, node)?;
        sh::wait_for("Pacemaker on the node that is on", Duration::from_secs(120), Duration::from_millis(500), || {
            cluster::online(self.lab, node).contains(&node).then_some(())
        })?;
        let until = self.writers.now() + sh::patience(LOOKED_AT_ALONE);
        while self.writers.now() < until {
            if let Ok(view) = etcd::view(self.lab, node) {
                return Err(format!("etcd serves on {node}, which booted alone: {view:?}").into());
            }
            std::thread::sleep(Duration::from_millis(300));
        }
        // It must not have begun to run standalone, either.
        let said = steps::said(self.lab, node, from);
        match said.lines().find(|line| SERVES_ALONE.iter().any(|words| line.contains(words))) {
            None => Ok(()),
            Some(line) => Err(format!("{node}, which booted alone, was about to serve: {line}").into()),
        }
    }

    /// Confirms the loss of `lost` by `tandem confirm-recovery` on `stays`. Returns false if the command declines,
    /// because `stays` has a learner's data or none. In that case `stays` had been fenced, and was joining when the
    /// second power cut came.
    fn confirm(&self, stays: Node, lost: Node) -> Result<bool> {
        let script = |flag: &str| format!("printf '{lost}\\nyes\\n{lost}\\n' | tandem confirm-recovery {flag}");
        let mut output = host::output(self.lab, stays, &["sh", "-c", &script("")])?;
        if !output.ok && output.text().contains("--accept-loss") {
            if self.given_up.is_none() {
                return Err(format!("{stays} counts writes as lost although {lost} took none alone").into());
            }
            output = host::output(self.lab, stays, &["sh", "-c", &script("--accept-loss")])?;
        }
        match output.ok {
            false if DECLINED.iter().any(|words| output.text().contains(words)) => Ok(false),
            false => Err(format!("confirm-recovery on {stays} failed: {}", output.text()).into()),
            true => Ok(true),
        }
    }

    fn serves_alone(&self, node: Node) -> Result<()> {
        sh::wait_for("the confirmed node to serve", Duration::from_secs(150), Duration::from_millis(300), || {
            etcd::view(self.lab, node).ok().filter(|view| view.reads).map(drop)
        })
    }

    pub(super) fn judge(mut self) -> Result<Outcome> {
        let verdict = self.writers.judge_without(self.given_up)?;
        let wrong = verdict.must_be_good().and_then(|()| clean(self.lab)).err().map(|error| error.to_string());
        Ok(Outcome {
            acknowledged: verdict.acknowledged,
            lost: verdict.lost.len(),
            given_up: verdict.given_up,
            gap: verdict.gap,
            wrong,
            ending: None,
        })
    }
}

/// The reasons with which `tandem confirm-recovery` declines on a node that was joining.
const DECLINED: [&str; 2] = ["a learner's", "holds no data to continue with"];

/// Checks that Pacemaker shows no failure that an operator has to clear.
fn clean(lab: &Lab) -> Result<()> {
    let complaints = cluster::wait_clean(lab)?;
    for node in NODES {
        bmc::set_mode(lab, node, "ok")?;
    }
    if complaints.is_empty() { Ok(()) } else { Err(complaints.join("; ").into()) }
}
