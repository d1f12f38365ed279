//! The space of each member's database: its size, the part in use, and the quota.

mod reclaim;

use std::time::Duration;

use serde::Serialize;

pub use self::reclaim::{Defragmented, Reclaimed, reclaim};
use super::look::{self, MembersSeen};
use super::source::Source;
use crate::adapters::etcd::client::Endpoint;
use crate::adapters::etcd::status::{Patience, Status};
use crate::adapters::etcd::{blocking, settings};
use crate::agent::resource::context::Context;
use crate::base::Fact;
use crate::decide::evidence::MemberId;
use crate::decide::members::{Health, Member};
use crate::operate::failure::Failure;
use crate::operate::{health, node};

/// Timeouts of the requests for the state of a member's database.
const PATIENCE: Patience = Patience { state: Duration::from_secs(2), read: Duration::from_millis(1_500) };
/// Text before the member's id in an alarm that etcd's status reports.
const OF_MEMBER: &str = "memberID:";
/// Text before the alarm's name in an alarm that etcd's status reports.
const ALARM: &str = "alarm:";
/// Name of etcd's alarm for a full database.
const NO_SPACE: &str = "NOSPACE";

/// The databases of all members, and their alarms.
#[derive(Clone, Debug, Serialize)]
pub struct Space {
    pub members: Vec<MemberSpace>,
    /// Alarms of members that are no longer listed, as `NOSPACE of ID`.
    pub alarms_of_others: Vec<String>,
}

/// The database of one member, and its alarms.
#[derive(Clone, Debug, Default, Serialize)]
pub struct MemberSpace {
    /// The member's id in hexadecimal, as etcdctl shows it.
    pub id: String,
    /// The name of the member's node, or the member's etcd name if no node of the pair has it.
    pub name: String,
    pub leader: bool,
    pub learner: bool,
    pub db_bytes: Option<u64>,
    pub in_use_bytes: Option<u64>,
    /// The database's quota in bytes; `None` if it is unknown.
    pub quota_bytes: Option<u64>,
    /// The database's size in percent of its quota; `None` if either is unknown.
    pub percent: Option<u64>,
    /// Names of the alarms that this member raises, such as `NOSPACE` or `CORRUPT`.
    pub alarms: Vec<String>,
    /// The reason why the database's size is unknown; `None` if it is known.
    pub why: Option<String>,
}

impl Space {
    /// Returns whether any alarm is raised, also by a member that is no longer listed.
    pub fn has_alarm(&self) -> bool {
        !self.alarms_of_others.is_empty() || self.members.iter().any(|member| !member.alarms.is_empty())
    }

    /// Returns whether any alarm other than NOSPACE is raised.
    pub fn has_other_alarm(&self) -> bool {
        let of_members = self.members.iter().flat_map(|member| &member.alarms);
        of_members.chain(&self.alarms_of_others).any(|alarm| !alarm.starts_with(NO_SPACE))
    }

    /// Returns whether the database of any member is near its quota.
    pub fn is_nearly_full(&self) -> bool {
        self.members.iter().any(|member| member.percent.is_some_and(|percent| percent >= health::NEARLY_FULL))
    }

    /// Returns the members of which the database size is unknown.
    pub fn unknown(&self) -> impl Iterator<Item = &MemberSpace> {
        self.members.iter().filter(|member| member.db_bytes.is_none())
    }

    fn of(asked: &[(&Member, Option<MemberId>, Fact<Status>)], configured_quota: u64) -> Self {
        let known = || asked.iter().filter_map(|(.., status)| status.known());
        let mut alarms: Vec<(MemberId, String)> =
            known().flat_map(|status| &status.errors).filter_map(|words| alarm(words)).collect();
        alarms.sort();
        alarms.dedup();
        let of = |wanted: MemberId| alarms.iter().filter(move |(id, _)| *id == wanted).map(|(_, kind)| kind.clone());
        let is_listed = |id: MemberId| asked.iter().any(|(member, ..)| member.id == id);
        let others = alarms.iter().filter(|(id, _)| !is_listed(*id)).map(|(id, kind)| format!("{kind} of {id:x}"));
        let row = |(member, leader, status): &(&Member, Option<MemberId>, Fact<Status>)| MemberSpace {
            alarms: of(member.id).collect(),
            ..row(member, *leader, status, configured_quota)
        };
        Self { alarms_of_others: others.collect(), members: asked.iter().map(row).collect() }
    }
}

fn row(member: &Member, leader: Option<MemberId>, status: &Fact<Status>, configured_quota: u64) -> MemberSpace {
    let known = status.known();
    // The setting of the resource applies only to the etcds of its nodes.
    let configured = member.node.is_some().then_some(configured_quota);
    let quota_bytes = known.and_then(|known| known.quota_bytes.or(configured)).filter(|quota| *quota > 0);
    let percent = known.zip(quota_bytes).map(|(known, quota)| known.db_bytes.saturating_mul(100) / quota);
    MemberSpace {
        id: format!("{:x}", member.id),
        name: name(member).to_owned(),
        leader: leader == Some(member.id),
        learner: member.is_learner,
        db_bytes: known.map(|known| known.db_bytes),
        in_use_bytes: known.map(|known| known.db_in_use_bytes),
        quota_bytes,
        percent,
        alarms: Vec::new(),
        why: known.is_none().then(|| status.why_unknown().to_owned()),
    }
}

/// Returns the member's name for messages: its node, or else its etcd name.
fn name(member: &Member) -> &str {
    member.node.as_deref().unwrap_or(&member.name)
}

/// Parses an alarm in etcd's status, such as `memberID:10501334649042878790 alarm:NOSPACE`. Returns `None` for any
/// other text.
fn alarm(words: &str) -> Option<(MemberId, String)> {
    let of = |begins: &str| words.split_whitespace().find_map(|word| word.strip_prefix(begins));
    Some((of(OF_MEMBER)?.parse().ok()?, of(ALARM)?.to_owned()))
}

/// Reads the database's size, quota and alarms from every member of this node's etcd resource.
pub fn space(resource: Option<&str>) -> Result<Space, Failure> {
    node::must_be_root()?;
    let context = node::context(resource)?;
    let seen = look::look(&source(&context, None))?;
    Ok(ask(&context, &seen))
}

fn ask(context: &Context, seen: &MembersSeen) -> Space {
    let members = seen.membership.members.iter();
    let asked: Vec<_> = members.map(|member| (member, seen.membership.leader, status(context, seen, member))).collect();
    Space::of(&asked, settings::quota_bytes(&context.deployment.settings))
}

/// Returns the endpoint at which `member` itself answered; `None` if it did not answer.
fn endpoint<'a>(seen: &'a MembersSeen, member: &Member) -> Option<&'a Endpoint> {
    seen.details.get(&member.id)?.endpoint.as_ref()
}

fn status(context: &Context, seen: &MembersSeen, member: &Member) -> Fact<Status> {
    match endpoint(seen, member) {
        Some(endpoint) => blocking::status(endpoint, context.credentials(), PATIENCE),
        None => Fact::Unknown(why_not(member)),
    }
}

fn why_not(member: &Member) -> String {
    match &member.health {
        Health::No(why) | Health::Unknown(why) => why.clone(),
        Health::Yes => "it answered nothing about its database".to_owned(),
    }
}

/// Returns the endpoints and credentials of this node's etcd resource. The kubeconfig is left out, so that no Machines are read.
fn source(context: &Context, own_lock: Option<&str>) -> Source {
    Source { kubeconfig: None, own_lock: own_lock.map(str::to_owned), ..Source::of_pair(context) }
}

#[cfg(test)]
pub(crate) mod samples {
    //! Sample databases for the tests of answers.

    use super::{MemberSpace, Space};

    /// Returns the databases of two nodes, one of which is over its quota and raises NOSPACE.
    pub(crate) fn full() -> Space {
        let member = |id: &str, name: &str, db_bytes: u64, alarms: &[&str]| MemberSpace {
            id: id.to_owned(),
            name: name.to_owned(),
            leader: name == "node1",
            db_bytes: Some(db_bytes),
            in_use_bytes: Some(2_000_000),
            quota_bytes: Some(16_777_216),
            percent: Some(db_bytes * 100 / 16_777_216),
            alarms: alarms.iter().map(|alarm| (*alarm).to_owned()).collect(),
            ..MemberSpace::default()
        };
        let members = vec![member("a1", "node1", 16_800_000, &["NOSPACE"]), member("b2", "node2", 3_000_000, &[])];
        Space { members, alarms_of_others: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(id: MemberId, node: Option<&str>) -> Member {
        Member { id, name: format!("member{id}"), node: node.map(str::to_owned), ..Member::default() }
    }

    fn said(db_bytes: u64, errors: &[&str]) -> Fact<Status> {
        Fact::Known(Status {
            version: "3.4.23".to_owned(),
            cluster_id: 1,
            member_id: 1,
            leader: Some(1),
            term: 1,
            index: 1,
            applied: 1,
            is_learner: false,
            db_bytes,
            db_in_use_bytes: 10,
            quota_bytes: None,
            errors: errors.iter().map(|error| (*error).to_owned()).collect(),
            members: Vec::new(),
            reads: Fact::NotAsked,
            took: Duration::ZERO,
        })
    }

    #[test]
    fn an_alarm_is_of_the_member_that_it_names_and_one_of_a_removed_member_is_not_forgotten() {
        let members = [member(1, Some("node1")), member(2, Some("node2")), member(3, None)];
        let errors = ["memberID:2 alarm:NOSPACE ", "memberID:9 alarm:NOSPACE", "no leader"];
        let asked = [
            (&members[0], Some(1), said(79, &errors)),
            (&members[1], Some(1), said(80, &errors)),
            (&members[2], Some(1), Fact::Unknown("no answer".to_owned())),
        ];
        let space = Space::of(&asked, 100);
        let alarms: Vec<usize> = space.members.iter().map(|member| member.alarms.len()).collect();
        assert_eq!((alarms, space.alarms_of_others.as_slice()), (vec![0, 1, 0], &["NOSPACE of 9".to_owned()][..]));
        assert!(space.has_alarm() && !space.has_other_alarm() && space.is_nearly_full());
        assert_eq!(space.unknown().map(|member| member.name.as_str()).collect::<Vec<_>>(), ["member3"]);
        assert_eq!((space.members[0].percent, space.members[2].quota_bytes), (Some(79), None));
    }

    #[test]
    fn a_database_a_quarter_full_has_no_alarm_and_is_not_nearly_full() {
        let one = member(1, Some("node1"));
        let damaged = Space::of(&[(&one, Some(1), said(25, &["memberID:9 alarm:CORRUPT"]))], 100);
        assert!(damaged.has_alarm() && damaged.has_other_alarm());
        let space = Space::of(&[(&one, Some(1), said(25, &[]))], 100);
        assert!(!space.has_alarm() && !space.is_nearly_full() && space.unknown().next().is_none());
    }
}
