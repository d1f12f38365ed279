//! Reclaims space: compacts to the current revision, defragments one member after the other, and disarms NOSPACE. Each step checks what
//! is left to do, so that the same command continues after an interruption.

use std::time::Duration;

use serde::Serialize;

use super::super::any_etcd::held::{self, Held};
use super::super::look::{self, MembersSeen};
use super::{Space, ask, endpoint, name, source, status, why_not};
use crate::adapters::etcd::client::Endpoint;
use crate::adapters::etcd::space::{Alarm, Kind};
use crate::adapters::etcd::{blocking, settings};
use crate::agent::resource::context::Context;
use crate::decide::evidence::MemberId;
use crate::decide::members::{Member, Membership};
use crate::operate::cluster;
use crate::operate::failure::Failure;
use crate::operate::health::words;
use crate::operate::node;
use crate::operate::talk::Progress;
use crate::os::clock::{self, Deadline};
use crate::os::proc;

/// Timeout of a request that reads, writes a key or disarms an alarm.
const PATIENCE: Duration = Duration::from_secs(5);
/// Timeout of a compaction or a defragmentation of one member.
const WORK: Duration = Duration::from_secs(600);
/// Time for a member to be healthy again after its defragmentation.
const RETURNS: Duration = Duration::from_secs(60);
/// Time between two requests for a member's state. The size in use counts as final if it is equal in two of them.
const PAUSE: Duration = Duration::from_millis(500);
/// Longest time to wait until a member has deleted the compacted revisions. etcd itself waits only for the member that received the
/// request.
const DELETES: Duration = Duration::from_secs(60);
/// Free space up to which a database is not defragmented: a percentage of its size, and a number of bytes. Both must be exceeded.
const WORTH_IT: (u64, u64) = (5, 256 * 1024);
/// Time after which the member-change lock of a killed command has expired, with a margin.
const OUTLASTS: Duration = Duration::from_secs(2 * held::LEASE_S.unsigned_abs());
/// End of the error messages of a command that stopped early.
const AGAIN: &str = "type 'tandem space --reclaim' again";

/// The result of `tandem space --reclaim`.
#[derive(Clone, Debug, Serialize)]
pub struct Reclaimed {
    /// The revision before which etcd has deleted all old values.
    pub compacted_to: i64,
    pub defragmented: Vec<Defragmented>,
    /// Number of NOSPACE alarms that were disarmed.
    pub disarmed: usize,
}

/// A member with a defragmented database, and the database's size before and after.
#[derive(Clone, Debug, Serialize)]
pub struct Defragmented {
    pub name: String,
    pub bytes_before: u64,
    pub bytes_after: u64,
}

/// Compacts and defragments the database of every member of this node's etcd resource, and disarms NOSPACE. Returns what was done, and
/// the databases afterwards.
pub fn reclaim(resource: Option<&str>, progress: &dyn Progress) -> Result<(Reclaimed, Space), Failure> {
    node::must_be_root()?;
    let mut work = Work { context: node::context(resource)?, lock: None, progress };
    let done = work.all();
    progress.end();
    done
}

struct Work<'a> {
    context: Context,
    /// The member-change lock; `None` while NOSPACE keeps etcd from granting it.
    lock: Option<Held>,
    progress: &'a dyn Progress,
}

impl Work<'_> {
    fn all(&mut self) -> Result<(Reclaimed, Space), Failure> {
        self.outlast_a_killed_one();
        let seen = self.look()?;
        let full = self.no_space(&seen)?;
        // A full etcd grants no lock to any command, so no change of the members can begin before the alarm is disarmed.
        if full.is_empty() {
            self.lock = Some(self.take_the_lock(&seen)?);
        }
        let compacted_to = self.compact(&seen)?;
        let mut defragmented = Vec::new();
        for id in order(&seen.membership) {
            defragmented.extend(self.defragment(id)?);
        }
        let seen = self.look()?;
        let disarmed = self.disarm(&seen)?;
        if disarmed > 0 {
            self.progress.keep("the alarm NOSPACE is disarmed, and etcd takes writes");
        }
        Ok((Reclaimed { compacted_to, defragmented, disarmed }, ask(&self.context, &seen)))
    }

    /// Waits until the member-change lock of an earlier 'tandem space --reclaim' expires, if its process was killed on this node.
    fn outlast_a_killed_one(&self) {
        let deadline = Deadline::after(OUTLASTS);
        let lives = |process| proc::name(process).is_some_and(|name| name == "tandem");
        while let Ok(seen) = look::look(&source(&self.context, None))
            && seen.membership.change.is_some_and(|change| was_killed(&change, &self.context.me.name, lives))
            && !deadline.has_passed()
        {
            self.progress.say("waits until the lock of the one that was killed ends");
            deadline.sleep(PAUSE);
        }
    }

    /// Observes the members. Fails if no member may pause now, as [`hindrance`] describes.
    fn look(&self) -> Result<MembersSeen, Failure> {
        let lock = self.lock.as_ref().map(|lock| lock.key.as_str());
        let mut seen = look::look(&source(&self.context, lock))?;
        seen.beside(&cluster::ask(Some(&self.context.resource))?);
        match hindrance(&seen.membership) {
            Some(why) => Err(Failure(why)),
            None => Ok(seen),
        }
    }

    /// Returns the ids of the members that raise NOSPACE. Fails if any other alarm is raised.
    fn no_space(&self, seen: &MembersSeen) -> Result<Vec<MemberId>, Failure> {
        let alarms = blocking::alarms(leader(seen)?, self.context.credentials(), PATIENCE)?;
        full(&alarms)
    }

    fn take_the_lock(&self, seen: &MembersSeen) -> Result<Held, Failure> {
        let holder = format!("{}{}", holder(&self.context.me.name), std::process::id());
        match held::take(&[leader(seen)?.clone()], self.context.credentials(), &holder)? {
            Ok(held) => Ok(held),
            Err(change) => Err(Failure(under_way(&change))),
        }
    }

    fn compact(&self, seen: &MembersSeen) -> Result<i64, Failure> {
        let (leader, credentials) = (leader(seen)?, self.context.credentials());
        let revision = blocking::revision(leader, credentials, PATIENCE)?;
        self.progress.say(&format!("compacting to revision {revision}"));
        blocking::compact(leader, credentials, revision, WORK)?;
        self.progress.keep(&format!("compacted: what keys were before revision {revision} is gone"));
        Ok(revision)
    }

    /// Defragments the member's database if that makes it smaller, and waits until the member is healthy again. Returns `None` if nothing
    /// was to do.
    fn defragment(&self, id: MemberId) -> Result<Option<Defragmented>, Failure> {
        let seen = self.look()?;
        // A member that was removed in the meantime needs nothing.
        let Some(member) = seen.membership.member(id) else { return Ok(None) };
        let Some(endpoint) = endpoint(&seen, member) else { return Err(Failure(unanswered(member))) };
        let (bytes_before, in_use) = self.settled(&seen, member)?;
        let name = name(member).to_owned();
        if !is_worth_it(bytes_before, in_use) {
            self.progress.keep(&format!("{name}: {}, nothing of it is free", words::size(bytes_before)));
            return Ok(None);
        }
        self.progress.say(&format!("defragmenting {name}, {}", words::size(bytes_before)));
        blocking::defragment(endpoint, self.context.credentials(), WORK)?;
        let bytes_after = self.returns(id, &name)?;
        let (before, after) = (words::size(bytes_before), words::size(bytes_after));
        self.progress.keep(&format!("{name}: defragmented, {before} before and {after} now"));
        Ok(Some(Defragmented { name, bytes_before, bytes_after }))
    }

    /// Returns the member's database size and the size in use in bytes, once both are equal in two successive requests.
    fn settled(&self, seen: &MembersSeen, member: &Member) -> Result<(u64, u64), Failure> {
        let deadline = Deadline::after(DELETES);
        let mut before = None;
        loop {
            let status = status(&self.context, seen, member);
            let Some(known) = status.known() else { return Err(Failure(unanswered(member))) };
            let now = (known.db_bytes, known.db_in_use_bytes);
            if before == Some(now) || deadline.has_passed() {
                return Ok(now);
            }
            before = Some(now);
            deadline.sleep(PAUSE);
        }
    }

    /// Waits until the member is healthy again after its defragmentation. Returns the size of its database in bytes.
    fn returns(&self, id: MemberId, name: &str) -> Result<u64, Failure> {
        let deadline = Deadline::after(RETURNS);
        let lock = self.lock.as_ref().map(|lock| lock.key.as_str());
        loop {
            if let Ok(seen) = look::look(&source(&self.context, lock))
                && let Some(member) = seen.membership.member(id).filter(|member| member.is_healthy())
                && let Some(known) = status(&self.context, &seen, member).known()
            {
                return Ok(known.db_bytes);
            }
            if deadline.has_passed() {
                let seconds = RETURNS.as_secs();
                return Err(Failure(format!(
                    "{name} is not healthy {seconds} s after its defragmentation: 'tandem status' shows why; then {AGAIN}"
                )));
            }
            clock::sleep(PAUSE);
        }
    }

    /// Disarms NOSPACE if every database is below its quota, and proves by a write that etcd accepts writes. Returns the number of
    /// disarmed alarms.
    fn disarm(&self, seen: &MembersSeen) -> Result<usize, Failure> {
        let full = self.no_space(seen)?;
        if full.is_empty() {
            return Ok(0);
        }
        let space = ask(&self.context, seen);
        let over = space.members.iter().find(|member| member.percent.is_some_and(|percent| percent >= 100));
        if let Some(member) = over {
            let quota = settings::quota_bytes(&self.context.deployment.settings);
            let quota = member.quota_bytes.unwrap_or(quota);
            return Err(Failure(format!(
                "the database on {} needs {} of its quota of {}: delete keys with 'tandem etcdctl del', or raise quota-backend-bytes; then {AGAIN}",
                member.name,
                words::size(member.db_bytes.unwrap_or_default()),
                words::size(quota)
            )));
        }
        let (leader, credentials) = (leader(seen)?, self.context.credentials());
        for member in &full {
            blocking::disarm_no_space(leader, credentials, *member, PATIENCE)?;
        }
        blocking::accepted_write(leader, credentials, PATIENCE)?;
        Ok(full.len())
    }
}

/// Returns the beginning of the lock holder's name that 'tandem space --reclaim' uses on `node`. The process id follows.
fn holder(node: &str) -> String {
    format!("'tandem space --reclaim' on {node}, process ")
}

/// Returns whether `change` is the lock of a 'tandem space --reclaim' that ran on this node, and the command's process has ended.
fn was_killed(change: &str, here: &str, lives: impl Fn(i32) -> bool) -> bool {
    let process = change.strip_prefix(&holder(here)).and_then(|process| process.parse().ok());
    process.is_some_and(|process| !lives(process))
}

/// Returns the members' ids in the order of their defragmentation, with the leader's last. A member does not respond during its
/// defragmentation, and without the leader etcd accepts no write.
fn order(membership: &Membership) -> Vec<MemberId> {
    let mut all: Vec<MemberId> = membership.members.iter().map(|member| member.id).collect();
    all.sort_by_key(|id| membership.leader == Some(*id));
    all
}

/// Returns the leader's endpoint, or that of another healthy voter if the leader has none.
fn leader(seen: &MembersSeen) -> Result<&Endpoint, Failure> {
    look::voter(seen, None).ok_or_else(|| Failure(no_leader()))
}

/// Returns the reason why no member may pause for a defragmentation now; `None` if one may.
fn hindrance(membership: &Membership) -> Option<String> {
    if let Some(change) = &membership.change {
        return Some(under_way(change));
    }
    if let Some(learner) = membership.learners().next() {
        return Some(format!(
            "{} is a learner that catches up, and no member may pause meanwhile: once 'tandem status' shows that it votes, {AGAIN}",
            learner.shown()
        ));
    }
    if membership.leader.is_none() || !membership.is_confirmed {
        return Some(no_leader());
    }
    membership.members.iter().find(|member| !member.is_healthy()).map(unanswered)
}

fn no_leader() -> String {
    "etcd has no leader, so that nothing can be reclaimed: see 'tandem explain'".to_owned()
}

fn under_way(change: &str) -> String {
    format!("a change of the members is under way ({change}): wait until 'tandem member list' shows none, then {AGAIN}")
}

fn unanswered(member: &Member) -> String {
    format!(
        "the member {} is not healthy: {}: 'tandem status' shows what to type; then {AGAIN}",
        name(member),
        why_not(member)
    )
}

/// Returns the ids of the members that raise NOSPACE. Fails if `alarms` has any other alarm.
fn full(alarms: &[Alarm]) -> Result<Vec<MemberId>, Failure> {
    if alarms.iter().any(|alarm| alarm.kind == Kind::Other) {
        return Err(Failure(
            "etcd raises an alarm that is not NOSPACE, and no space is reclaimed before that is resolved: \
             'tandem etcdctl endpoint hashkv --cluster'"
                .to_owned(),
        ));
    }
    Ok(alarms.iter().map(|alarm| alarm.member).collect())
}

/// Returns whether a database of `bytes` has enough free space to be defragmented (see [`WORTH_IT`]).
fn is_worth_it(bytes: u64, in_use: u64) -> bool {
    let (percent, at_least) = WORTH_IT;
    bytes.saturating_sub(in_use) > at_least.max(bytes / 100 * percent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::members::Health;

    fn pair() -> Membership {
        let member = |id, node: &str| Member {
            id,
            name: node.to_owned(),
            node: Some(node.to_owned()),
            health: Health::Yes,
            ..Member::default()
        };
        Membership {
            members: vec![member(1, "node1"), member(2, "node2")],
            leader: Some(1),
            is_confirmed: true,
            wanted: 2,
            is_pair: true,
            ..Membership::default()
        }
    }

    fn hindered(change: impl FnOnce(&mut Membership)) -> String {
        let mut membership = pair();
        change(&mut membership);
        hindrance(&membership).unwrap_or_default()
    }

    #[test]
    fn the_leader_is_defragmented_last() {
        assert_eq!(order(&pair()), [2, 1]);
        assert_eq!(order(&Membership { leader: Some(2), ..pair() }), [1, 2]);
    }

    #[test]
    fn no_member_pauses_beside_a_learner_a_change_or_a_member_that_is_not_well() {
        assert_eq!(hindrance(&pair()), None);
        assert!(hindered(|pair| pair.members[1].is_learner = true).starts_with("node2 is a learner"));
        assert!(hindered(|pair| pair.change = Some("node2 is replaced".into())).contains("(node2 is replaced)"));
        assert!(
            hindered(|pair| pair.members[1].health = Health::No("silent".into()))
                .contains("node2 is not healthy: silent")
        );
        assert_eq!(hindered(|pair| pair.leader = None), no_leader());
        assert_eq!(hindered(|pair| pair.is_confirmed = false), no_leader());
    }

    #[test]
    fn the_lock_of_a_command_that_was_killed_here_is_told_from_all_others() {
        let ended = |change: &str| was_killed(change, "node1", |process| process == 7);
        assert!(ended("'tandem space --reclaim' on node1, process 8"));
        for other in ["'tandem space --reclaim' on node1, process 7", "'tandem space --reclaim' on node2, process 8"] {
            assert!(!ended(other), "{other}");
        }
        assert!(!ended("node2 is to be replaced") && !ended("'tandem space --reclaim' on node1, process "));
    }

    #[test]
    fn an_alarm_that_is_not_about_space_is_never_touched() {
        let alarm = |member, kind| Alarm { member, kind };
        assert_eq!(full(&[]).unwrap(), Vec::<MemberId>::new());
        assert_eq!(full(&[alarm(2, Kind::NoSpace), alarm(9, Kind::NoSpace)]).unwrap(), [2, 9]);
        assert!(full(&[alarm(2, Kind::NoSpace), alarm(1, Kind::Other)]).is_err());
    }

    #[test]
    fn a_database_that_is_as_small_as_it_gets_is_left_alone() {
        for (bytes, in_use, worth_it) in [
            (20_480, 16_384, false),
            (16_000_000, 15_000_000, true),
            (1_000_000_000, 960_000_000, false),
            (1_000_000_000, 0, true),
            (5, 9, false),
        ] {
            assert_eq!(is_worth_it(bytes, in_use), worth_it, "{bytes} {in_use}");
        }
    }
}
