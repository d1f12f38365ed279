//! Runs in which a node boots with another data dir than it left: an older copy, the other node's, or none for one boot.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Outcome;
use super::draw::{Both, Copied, NotMounted, Outage, PutBack, Return, Swap};
use super::ending;
use super::newest::Log;
use super::run::{RETURN_LIMIT, Scene};
use crate::cluster::ETCD_CLONE;
use crate::cluster::etcd;
use crate::cluster::pacemaker;
use crate::cluster::pcs;
use crate::cluster::redundant;
use crate::host;
use crate::host::disks;
use crate::host::namespaces::frozen;
use crate::host::node::{NODES, Node};
use crate::host::power;
use crate::host::state::Lab;
use crate::scenarios::steps;
use crate::sh::{self, Result};

/// The boot delay in seconds while a node must stay off even if it is fenced.
const AWAY: u64 = 36_000;
/// The directories below `/var/lib` with the state of Tandem, Pacemaker and Corosync.
const STATE: [&str; 3] = ["tandem", "pacemaker", "corosync"];
/// The time-out for a node that has to serve without its peer. It covers fencing of the peer, with its delays, and
/// two starts of etcd.
const ALONE_LIMIT: Duration = Duration::from_secs(60);
/// The time-out for the next acknowledged write while one node lacks etcd's disk. If no write is acknowledged by its
/// end, that node must have refused to serve.
const SOME_TIME: Duration = Duration::from_secs(120);

/// The node that must hold every acknowledged write at the end of a run, and its log.
#[derive(Debug)]
pub(super) struct Holder {
    /// The node with every acknowledged write on its disk.
    pub(super) node: Node,
    /// The write-ahead log of that node when both nodes were last off. `None` if that node has served all the time.
    pub(super) log: Option<Log>,
}

impl Scene<'_> {
    pub(super) fn swap(mut self, swap: Swap) -> Result<Outcome> {
        let node = match swap {
            Swap::PutBack(draw) => self.node(draw.node),
            Swap::Copied(draw) => self.node(draw.from).other(),
            Swap::NotMounted(draw) => self.node(draw.node),
        };
        let mut holder = Holder { node: node.other(), log: None };
        let early = match swap {
            Swap::PutBack(draw) => self.put_back(node, draw, &mut holder)?,
            Swap::Copied(draw) => self.copied(node, draw, &mut holder)?,
            Swap::NotMounted(draw) => self.not_mounted(node, draw, &mut holder)?,
        };
        match early {
            Some(outcome) => Ok(outcome),
            None => ending::judge(self, &holder),
        }
    }

    fn put_back(&mut self, node: Node, draw: PutBack, holder: &mut Holder) -> Result<Option<Outcome>> {
        let lab = self.lab;
        if draw.sole {
            steps::standby(lab, node.other(), true)?;
            steps::wait_alone(lab, node)?;
        }
        std::thread::sleep(draw.at);
        let copy = lab.node_dir(node).join("copy");
        if draw.running {
            frozen(lab, node, || take(lab, node, &copy))?;
        } else {
            let running: &[Node] = if draw.sole { &[node] } else { &NODES };
            pcs::run(lab, node, &["resource", "disable", ETCD_CLONE])?;
            steps::wait_stopped(lab, running)?;
            take(lab, node, &copy)?;
            pcs::run(lab, node, &["resource", "enable", ETCD_CLONE])?;
        }
        let copied = self.writers.now();
        lab.event(&format!("the data dir of {node} is copied"));
        if draw.sole {
            steps::standby(lab, node.other(), false)?;
        }
        etcd::wait_two_voters(lab, RETURN_LIMIT)?;
        redundant::wait(lab)?;
        self.wait_write_after(copied)?;
        std::thread::sleep(draw.after);
        self.go_off(node, draw.outage, holder)?;
        put(lab, node, &copy, draw.whole)?;
        lab.event(&format!("the copy of {node}'s data dir is put back"));
        self.come_back(node, draw.outage)
    }

    fn copied(&mut self, node: Node, draw: Copied, holder: &mut Holder) -> Result<Option<Outcome>> {
        let lab = self.lab;
        self.go_off(node, draw.outage, holder)?;
        let [from, to] = [node.other(), node].map(|node| disks::data_dir(lab, node));
        let copy = || {
            if draw.own_files {
                return disks::replace(&from, &to);
            }
            disks::replace(&from.join("member"), &to.join("member"))
        };
        if draw.outage.both.is_some() {
            copy()?;
        } else {
            frozen(lab, node.other(), copy)?;
        }
        lab.event(&format!("{node} has a copy of {}'s data dir", node.other()));
        self.come_back(node, draw.outage)
    }

    fn not_mounted(&mut self, node: Node, draw: NotMounted, holder: &mut Holder) -> Result<Option<Outcome>> {
        let lab = self.lab;
        if draw.known {
            self.start_from_own_disk(node)?;
        }
        self.go_off(node, draw.outage, holder)?;
        disks::give_own_disk(lab, node)?;
        disks::empty(&disks::mount_point(lab, node))?;
        disks::set_mounted(lab, node, false)?;
        if let Some(Both { back: Return::Alone { quorum }, .. }) = draw.outage.both {
            let early = self.alone(node, quorum)?;
            if early.is_some() {
                return Ok(early);
            }
            must_be_empty(lab, node, draw.known)?;
            power::cut(lab, node)?;
            disks::set_mounted(lab, node, true)?;
            lab.set("boot-delay", "0")?;
            power::on(lab, node)?;
            power::on(lab, node.other())?;
            return Ok(None);
        }
        self.come_back(node, draw.outage)?;
        let Some((stays, next)) = draw.next else { return Ok(None) };
        steps::wait_pacemaker(lab, node)?;
        std::thread::sleep(stays);
        let serves = self.serves_or_refuses(node)?;
        must_be_empty(lab, node, draw.known)?;
        if !serves {
            power::cut(lab, node)?;
            disks::set_mounted(lab, node, true)?;
            return power::on(lab, node).map(|()| None);
        }
        *holder = Holder { node: node.other(), log: None };
        self.go_off(node, next, holder)?;
        disks::set_mounted(lab, node, true)?;
        self.come_back(node, next)
    }

    /// Waits until a write is acknowledged, and returns true. Returns false if none is, because `node` refuses to serve and its peer waits
    /// for it. `node`, which lacks etcd's disk, refuses if it has a record of the mount, even from an earlier run. Its peer waits if both
    /// nodes went off before the peer ran standalone.
    fn serves_or_refuses(&self, node: Node) -> Result<bool> {
        let Err(why) = self.wait_write_within(self.writers.now(), SOME_TIME) else { return Ok(true) };
        crate::interrupt::check()?;
        let Some(reason) = ending::refusal(self.lab, node, node) else { return Err(why) };
        ending::must_name_something(node, &reason)?;
        self.lab.event(&format!("no node serves, and {node} refuses: {reason}"));
        Ok(false)
    }

    fn wait_write_within(&self, moment: Duration, limit: Duration) -> Result<()> {
        sh::wait_for("an acknowledged write", limit, Duration::from_millis(50), || {
            self.writers.first_after(moment).map(drop)
        })
    }

    /// Gives etcd on a node a disk of its own, and starts it from there, so that the node then has a record of the
    /// mount.
    fn start_from_own_disk(&self, node: Node) -> Result<()> {
        let lab = self.lab;
        lab.set("boot-delay", &AWAY.to_string())?;
        off(lab, node, true)?;
        self.wait_write_after(self.writers.now())?;
        disks::give_own_disk(lab, node)?;
        lab.event(&format!("etcd of {node} has a disk of its own"));
        lab.set("boot-delay", "0")?;
        power::on(lab, node)?;
        etcd::wait_two_voters(lab, RETURN_LIMIT)?;
        redundant::wait(lab)?;
        let known = "/var/lib/tandem/data-mount-etcd.json";
        host::must(lab, node, &["test", "-e", known])?;
        self.wait_write_after(self.writers.now())
    }

    fn wait_write_after(&self, moment: Duration) -> Result<()> {
        self.wait_write_within(moment, RETURN_LIMIT)
    }

    /// Switches the node off, and keeps it off even if fencing presses its power button. If the other node goes off
    /// as well, stores that node's write-ahead log.
    fn go_off(&self, node: Node, outage: Outage, holder: &mut Holder) -> Result<()> {
        let lab = self.lab;
        lab.set("boot-delay", &AWAY.to_string())?;
        off(lab, node, outage.in_good_order)?;
        match outage.both {
            None => self.wait_write_after(self.writers.now())?,
            Some(Both { apart, .. }) => {
                std::thread::sleep(apart);
                off(lab, node.other(), outage.in_good_order)?;
                // The fence agent may have pressed a button already, and the BMC executes that a moment later.
                std::thread::sleep(Duration::from_secs(1));
                power::cut(lab, node.other())?;
                holder.log = Some(Log::of(&disks::data_dir(lab, node.other()).join("member"))?);
            }
        }
        power::cut(lab, node)?;
        lab.set("boot-delay", "0")
    }

    fn come_back(&mut self, node: Node, outage: Outage) -> Result<Option<Outcome>> {
        let lab = self.lab;
        let Some(Both { back, .. }) = outage.both else { return power::on(lab, node).map(|()| None) };
        match back {
            Return::Together { first, apart } => {
                let first = self.node(first);
                power::on(lab, first)?;
                std::thread::sleep(apart);
                power::on(lab, first.other())?;
                Ok(None)
            }
            Return::Alone { quorum } => {
                let early = self.alone(node, quorum)?;
                lab.set("boot-delay", "0")?;
                if early.is_none() {
                    power::on(lab, node.other())?;
                }
                Ok(early)
            }
        }
    }

    /// Boots the node without its peer. Returns the outcome of the run if the node serves and lacks an acknowledged
    /// write, and otherwise `None`.
    fn alone(&mut self, node: Node, quorum: bool) -> Result<Option<Outcome>> {
        if !quorum {
            self.lab.set("boot-delay", "0")?;
            return self.on_alone(node).map(|()| None);
        }
        let acknowledged = self.writers.acknowledged();
        // The fence agent presses the button of the other node, which stays off.
        steps::on(self.lab, node, AWAY)?;
        steps::wait_pacemaker(self.lab, node)?;
        steps::grant_quorum(self.lab, node)?;
        let answers = || {
            let serves = etcd::view(self.lab, node).is_ok_and(|view| view.reads && !view.learner);
            serves.then_some(None).or_else(|| ending::refusal(self.lab, node, node).map(Some))
        };
        let answer = sh::wait_for("it to serve or refuse", ALONE_LIMIT, Duration::from_millis(500), answers);
        crate::interrupt::check()?;
        match answer {
            // Its etcd may wait for the other node's vote, and does not serve meanwhile.
            Err(_) => Ok(None),
            Ok(Some(reason)) => {
                self.lab.event(&format!("{node}, alone, refuses: {reason}"));
                ending::must_name_something(node, &reason).map(|()| None)
            }
            Ok(None) => ending::serves_alone(self, node, &acknowledged),
        }
    }
}

/// Switches a node off, by a shutdown of Pacemaker first if `in_good_order` is true.
fn off(lab: &Lab, node: Node, in_good_order: bool) -> Result<()> {
    if in_good_order && host::running(lab, node).is_some() {
        pacemaker::end(lab, node)?;
    }
    power::cut(lab, node)
}

/// Fails if etcd was started on an empty mount point although the node has a record of the mount (`known`).
fn must_be_empty(lab: &Lab, node: Node, known: bool) -> Result<()> {
    let began = known && disks::mount_point(lab, node).join("member").exists();
    if began { Err(format!("etcd of {node} was started on an empty mount point").into()) } else { Ok(()) }
}

/// Copies etcd's data dir and the directories in [`STATE`] from a node.
fn take(lab: &Lab, node: Node, copy: &Path) -> Result<()> {
    let var_lib = lab.disk(node, "var-lib");
    disks::replace(&disks::data_dir(lab, node), &copy.join("etcd"))?;
    STATE.iter().try_for_each(|name| disks::replace(&var_lib.join(name), &copy.join(name)))
}

/// Puts a copy back on a node: etcd's data dir, and with `whole` also the directories in [`STATE`].
fn put(lab: &Lab, node: Node, copy: &Path, whole: bool) -> Result<()> {
    let var_lib: PathBuf = lab.disk(node, "var-lib");
    disks::replace(&copy.join("etcd"), &disks::data_dir(lab, node))?;
    let state = STATE.iter().filter(|_| whole);
    state.into_iter().try_for_each(|name| disks::replace(&copy.join(name), &var_lib.join(name)))
}
