//! What clients of the survivor see of the leader's death, with etcd's auth on: a lease with its keep-alive lives, a lock stays
//! with who holds it, a watch gets every event. Whether the survivor's etcd runs on or is restarted is no concern of theirs: what
//! a broken connection ends, the client begins again by itself.

use std::path::PathBuf;
use std::time::Duration;

use super::steps;
use crate::check::{eventually, must, within};
use crate::etcd;
use crate::etcdctl::{Etcdctl, Running};
use crate::node::{NODES, Node};
use crate::power;
use crate::redundant;
use crate::sh::Result;
use crate::state::Lab;
use crate::tls;
use crate::up::Wish;
use crate::watches;
use crate::writer::Writers;

/// Longer than etcd is without a leader here.
const TTL: &str = "60";
const LOCK: &str = "lab/lock";
const ROOT: &str = "root";
/// For a death to be noticed, for fencing and for the recovery.
const RECOVERED: Duration = Duration::from_secs(90);

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let victim = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader;
    let etcdctl = Etcdctl::at(lab, victim.other())?;
    enable_auth(&etcdctl)?;
    lab.event("authentication is switched on");
    let mut writers = super::writing(lab)?;
    over_the_cut(lab, &etcdctl, &writers, victim)?;
    etcd::wait_two_voters(lab, Duration::from_secs(180))?;
    disable_auth(&etcdctl)?;
    lab.event("authentication is switched off");
    super::ends_well(lab, &mut writers)
}

fn over_the_cut(lab: &Lab, etcdctl: &Etcdctl, writers: &Writers, victim: Node) -> Result<()> {
    redundant::wait(lab)?;
    let mut lease = Lease::keep(lab, etcdctl)?;
    let mut lock = Lock::take(lab, etcdctl)?;
    let mut watch = watches::ByEtcdctl::begin(lab, etcdctl, writers)?;
    let without_leader = watches::WithoutLeader::begin(lab, victim.other(), etcdctl, writers)?;
    println!("   cutting the power of {victim}, which leads etcd");
    steps::cut(lab, victim)?;
    let cut_at = writers.now();
    within(RECOVERED, "somebody acknowledges writes again", || writers.first_after(cut_at), Option::is_some)?;
    lease.lives(etcdctl)?;
    lock.is_held(etcdctl)?;
    if !power::is_on(lab, victim) {
        power::on(lab, victim)?;
    }
    etcd::wait_two_voters(lab, Duration::from_secs(180))?;
    lease.lives(etcdctl)?;
    lock.is_held(etcdctl)?;
    watch.has_told_all(writers)?;
    without_leader.has_told_all(writers)?;
    lock.is_handed_over()
}

/// The users that etcd is to know before its auth is on: the certificates' names, the agents' among them.
fn users() -> Vec<String> {
    let agents = NODES.into_iter().map(tls::etcd_name);
    agents.chain([ROOT, "client"].map(str::to_owned)).collect()
}

/// As the guides have it.
fn enable_auth(etcdctl: &Etcdctl) -> Result<()> {
    etcdctl.must(&["role", "add", ROOT])?;
    for user in users() {
        etcdctl.must(&["user", "add", &user, "--no-password"])?;
        etcdctl.must(&["user", "grant-role", &user, ROOT])?;
    }
    etcdctl.must(&["auth", "enable"]).map(drop)
}

fn disable_auth(etcdctl: &Etcdctl) -> Result<()> {
    eventually("auth is off again", || etcdctl.must(&["auth", "disable"]), Result::is_ok)??;
    for user in users() {
        etcdctl.must(&["user", "delete", &user])?;
    }
    etcdctl.must(&["role", "delete", ROOT]).map(drop)
}

/// `etcdctl lease keep-alive`.
struct Lease {
    id: String,
    keeper: Running,
}

impl Lease {
    fn keep(lab: &Lab, etcdctl: &Etcdctl) -> Result<Self> {
        let granted = etcdctl.must(&["lease", "grant", TTL])?;
        let id = granted.split_whitespace().nth(1).ok_or_else(|| format!("no lease: {granted}"))?.to_owned();
        etcdctl.must(&["put", &format!("--lease={id}"), "lab/leased", ""])?;
        let keeper = etcdctl.start(&["lease", "keep-alive", &id], &log(lab, "lease"))?;
        eventually("the lease is kept alive", || keeper.said(), |said| said.contains("keepalived"))?;
        Ok(Self { id, keeper })
    }

    /// It is kept alive from now on, too, and what it holds is there.
    fn lives(&mut self, etcdctl: &Etcdctl) -> Result<()> {
        let before = self.keeper.said().len();
        eventually(
            "the lease is kept alive after the cut",
            || self.keeper.said(),
            |said| said.get(before..).is_some_and(|new| new.contains("keepalived")),
        )?;
        must("its keeper goes on", (self.keeper.goes_on(), self.keeper.said()), |(goes_on, _)| *goes_on)?;
        let left = etcdctl.must(&["lease", "timetolive", &self.id, "--keys"])?;
        must("the lease lives and has its key", left, |left| left.contains("remaining") && left.contains("lab/leased"))
            .map(drop)
    }
}

/// `etcdctl lock`, by who holds it and by who waits for it.
struct Lock {
    holder: Running,
    waits: Running,
    key: String,
}

impl Lock {
    fn take(lab: &Lab, etcdctl: &Etcdctl) -> Result<Self> {
        let words = ["lock", "--ttl", TTL, LOCK];
        let holder = etcdctl.start(&words, &log(lab, "lock-holder"))?;
        let key = eventually("somebody holds the lock", || holder.said(), |said| said.contains(LOCK))?;
        let waits = etcdctl.start(&words, &log(lab, "lock-waits"))?;
        let both = |answer: &Result<Vec<String>>| answer.as_ref().is_ok_and(|keys| keys.len() == 2);
        eventually("somebody else waits for it", || keys(etcdctl), both)??;
        Ok(Self { holder, waits, key: key.trim().to_owned() })
    }

    /// The oldest key below the lock's name holds it.
    fn is_held(&mut self, etcdctl: &Etcdctl) -> Result<()> {
        let seen = (self.holder.goes_on(), self.holder.said(), self.waits.goes_on(), self.waits.said(), keys(etcdctl)?);
        must("one holds the lock as before, and the other one waits", seen, |(holds, _, waits, told, keys)| {
            *holds && *waits && told.is_empty() && keys.len() == 2 && keys[0] == self.key
        })
        .map(drop)
    }

    /// Who waits gets it as soon as it is given back.
    fn is_handed_over(&self) -> Result<()> {
        self.holder.interrupt()?;
        eventually("who waited for the lock has it", || self.waits.said(), |said| said.contains(LOCK)).map(drop)
    }
}

fn keys(etcdctl: &Etcdctl) -> Result<Vec<String>> {
    let said = etcdctl.must(&["get", "--prefix", &format!("{LOCK}/"), "--keys-only", "--sort-by=CREATE"])?;
    Ok(said.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

fn log(lab: &Lab, what: &str) -> PathBuf {
    lab.dir().join(format!("client-{what}.log"))
}
