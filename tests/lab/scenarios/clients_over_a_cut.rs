//! The clients' view of the leader's death, with etcd's auth on. A lease with keep-alives survives, a lock stays with
//! its holder, and a watch gets every event. Locks of the dead node are released as soon as its fencing is confirmed,
//! if the alert agent is configured. It makes no difference to clients whether the survivor's etcd keeps running or is
//! restarted, because they reconnect by themselves.

use std::path::PathBuf;
use std::time::Duration;

use super::steps;
use crate::cluster::alert;
use crate::cluster::etcd;
use crate::cluster::redundant;
use crate::cluster::up::Wish;
use crate::host::node::{NODES, Node};
use crate::host::power;
use crate::host::state::Lab;
use crate::host::tls;
use crate::judge::check::{eventually, must, within};
use crate::load::watches;
use crate::load::writer::Writers;
use crate::programs::etcdctl::{Etcdctl, Running};
use crate::sh::Result;

/// The time to live of leases in seconds. It is longer than etcd is without a leader here.
const TTL: &str = "60";
const LOCK: &str = "lab/lock";
const ROOT: &str = "root";
/// The time-out for detection of the lost node, fencing and recovery.
const RECOVERED: Duration = Duration::from_secs(90);

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let victim = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader;
    let etcdctl = Etcdctl::at(lab, victim.other())?;
    enable_auth(&etcdctl)?;
    lab.event("authentication is switched on");
    let mut writers = super::writing(lab)?;
    Locks::have_an_alert_agent(lab, &etcdctl)?;
    over_the_cut(lab, &etcdctl, &writers, victim)?;
    Locks::have_none_any_more(lab, &etcdctl)?;
    etcd::wait_two_voters(lab, Duration::from_secs(180))?;
    disable_auth(&etcdctl)?;
    lab.event("authentication is switched off");
    super::ends_well(lab, &mut writers)
}

fn over_the_cut(lab: &Lab, etcdctl: &Etcdctl, writers: &Writers, victim: Node) -> Result<()> {
    redundant::wait(lab)?;
    let mut lease = Lease::keep(lab, etcdctl)?;
    let mut lock = Lock::take(lab, etcdctl)?;
    let locks = Locks::of(etcdctl, victim)?;
    let mut watch = watches::ByEtcdctl::begin(lab, etcdctl, writers)?;
    let without_leader = watches::WithoutLeader::begin(lab, victim.other(), etcdctl, writers)?;
    println!("   cutting the power of {victim}, which leads etcd");
    steps::cut(lab, victim)?;
    let cut_at = writers.now();
    within(RECOVERED, "somebody acknowledges writes again", || writers.first_after(cut_at), Option::is_some)?;
    locks.are_free(lab, etcdctl)?;
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

/// Returns the users that etcd must know before authentication is enabled: root, and the names in the certificates of
/// the clients and the agents.
fn users() -> Vec<String> {
    let agents = NODES.into_iter().map(tls::etcd_name);
    agents.chain([ROOT, "client"].map(str::to_owned)).collect()
}

/// Enables authentication in etcd by the commands in the guides.
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

/// An etcd lease, and the running `etcdctl lease keep-alive` that renews it.
struct Lease {
    id: String,
    keeper: Running,
}

impl Lease {
    fn keep(lab: &Lab, etcdctl: &Etcdctl) -> Result<Self> {
        let id = leased(etcdctl, TTL, &[("lab/leased", "held")])?;
        let keeper = etcdctl.start(&["lease", "keep-alive", &id], &log(lab, "lease"))?;
        eventually("the lease is kept alive", || keeper.said(), |said| said.contains("keepalived"))?;
        Ok(Self { id, keeper })
    }

    /// Checks that the lease is still renewed after the power cut, and that its keys exist.
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

/// Puts keys into etcd on a new lease, and returns the lease's id.
fn leased(etcdctl: &Etcdctl, ttl: &str, pairs: &[(&str, &str)]) -> Result<String> {
    let granted = etcdctl.must(&["lease", "grant", ttl])?;
    let id = granted.split_whitespace().nth(1).ok_or_else(|| format!("no lease: {granted}"))?.to_owned();
    for (key, value) in pairs {
        etcdctl.must(&["put", &format!("--lease={id}"), key, value])?;
    }
    Ok(id)
}

/// Keys in etcd that each name a node as the holder of a lock. Nothing renews their leases, but these last longer
/// than the scenario. So if a key is gone, the alert agent has released it.
struct Locks {
    victim: Node,
    freed: String,
}

const DEAD: &str = "/locks/dead";
const MEMBER: &str = "/locks/members/";
const ALIVE: &str = "/locks/alive";
const SHARED: [&str; 2] = ["/locks/shared-1", "/locks/shared-2"];
/// The time-out for one run of Tandem's alert agent, including Pacemaker's call.
const AT_ONCE: Duration = Duration::from_secs(5);

impl Locks {
    /// Configures Tandem's alert agent as the guide describes. Its etcd user may change the locks, and nothing else.
    fn have_an_alert_agent(lab: &Lab, etcdctl: &Etcdctl) -> Result<()> {
        let user = tls::LOCKS;
        etcdctl.must(&["role", "add", user])?;
        etcdctl.must(&["role", "grant-permission", user, "readwrite", "/locks/", "--prefix"])?;
        etcdctl.must(&["user", "add", user, "--no-password"])?;
        etcdctl.must(&["user", "grant-role", user, user])?;
        alert::create(lab, "/locks/")
    }

    fn have_none_any_more(lab: &Lab, etcdctl: &Etcdctl) -> Result<()> {
        alert::delete(lab)?;
        etcdctl.must(&["user", "delete", tls::LOCKS])?;
        etcdctl.must(&["role", "delete", tls::LOCKS]).map(drop)
    }

    fn of(etcdctl: &Etcdctl, victim: Node) -> Result<Self> {
        const LONG: &str = "3600";
        let survivor = victim.other();
        let members = [victim, survivor].map(|node| format!("{MEMBER}{node}"));
        let freed = leased(etcdctl, LONG, &[(DEAD, victim.name()), (&members[0], "as Patroni has it")])?;
        leased(etcdctl, LONG, &[(ALIVE, survivor.name()), (&members[1], "as Patroni has it")])?;
        leased(etcdctl, LONG, &[(SHARED[0], victim.name()), (SHARED[1], survivor.name())])?;
        Ok(Self { victim, freed })
    }

    fn are_free(&self, lab: &Lab, etcdctl: &Etcdctl) -> Result<()> {
        let there = || etcdctl.must(&["get", "--prefix", "/locks/", "--keys-only"]);
        let released = |said: &Result<String>| said.as_ref().is_ok_and(|said| !said.contains(DEAD));
        let said = within(AT_ONCE, "the dead node's lock is free", there, released)??;
        let left: Vec<&str> = said.split_whitespace().collect();
        let survivor = self.victim.other();
        let member = format!("{MEMBER}{survivor}");
        must("nobody else's is", left, |left| *left == [ALIVE, &member, SHARED[0], SHARED[1]])?;
        let words = format!("{} is fenced: lease {} is revoked", self.victim, self.freed);
        eventually("the journal says so", || steps::said(lab, survivor, 0), |log| log.contains(&words)).map(drop)
    }
}

/// A lock by `etcdctl lock`: the client that holds it, and one that waits for it.
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

    /// Checks that the first client still holds the lock. Its key must be the oldest one below the lock's name.
    fn is_held(&mut self, etcdctl: &Etcdctl) -> Result<()> {
        let seen = (self.holder.goes_on(), self.holder.said(), self.waits.goes_on(), self.waits.said(), keys(etcdctl)?);
        must("one holds the lock as before, and the other one waits", seen, |(holds, _, waits, told, keys)| {
            *holds && *waits && told.is_empty() && keys.len() == 2 && keys[0] == self.key
        })
        .map(drop)
    }

    /// Checks that the waiting client gets the lock as soon as the first client releases it.
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
