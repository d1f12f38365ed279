//! `tandem space`: shows how full each member's database is, and makes room in it.

use std::borrow::Cow;

use clap::Args;
use serde::Serialize;

use super::exit::Exit;
use super::node::ResourceArgument;
use super::progress::Progress;
use super::report::{Form, Report};
use crate::operate::failure::Failure;
use crate::operate::health::words::size;
use crate::operate::members::space::{self, MemberSpace, Reclaimed, Space};

const HELP: &str = "\
etcd takes no more writes once a database has reached its quota (quota-backend-bytes; 2 GiB unless etcd_settings has
another value), and raises the alarm NOSPACE. The bytes in use are fewer than the size of the database after keys were
deleted or compacted.

--reclaim makes room while etcd serves:
  1. It compacts to the current revision. Watches that ask for an older revision end.
  2. It defragments one member after the other, the leader last, and waits until each is healthy again. Meanwhile that
     member answers no read, for some seconds for each gigabyte.
  3. It disarms NOSPACE.

If it was cut off, type it again: it continues. It refuses while there is a learner, a change of the members, a member
that is not healthy, or another alarm.

Exit codes:
  0  there is room in each database
  3  a database has reached 80 % of its quota
  4  an alarm is raised
  1  a member's database is not known, or the command refused

With --json, what is not known is null:
  members           for each member: id, name, leader, learner, db_bytes, in_use_bytes, quota_bytes, percent (of the
                    quota), alarms (NOSPACE, CORRUPT), and why (the reason if its database is not known)
  alarms_of_others  alarms of members that were removed
  reclaimed         null without --reclaim; otherwise compacted_to (the revision), defragmented (each with name,
                    bytes_before, bytes_after) and disarmed (how many alarms)";

/// Shows how full each member's database is, and makes room with --reclaim
#[derive(Args)]
#[command(after_help = HELP)]
pub(super) struct Arguments {
    /// Compacts, defragments one member after the other, and disarms NOSPACE
    #[arg(long)]
    reclaim: bool,
    #[command(flatten)]
    resource: ResourceArgument,
    #[command(flatten)]
    pub form: Form,
}

/// The report of `tandem space`: the members' databases, and the result of `--reclaim`.
#[derive(Serialize)]
pub(super) struct Shown {
    #[serde(flatten)]
    space: Space,
    reclaimed: Option<Reclaimed>,
}

pub(super) fn run(arguments: &Arguments) -> Result<Shown, Failure> {
    let resource = arguments.resource.id();
    if !arguments.reclaim {
        return Ok(Shown { space: space::space(resource)?, reclaimed: None });
    }
    let (reclaimed, space) = space::reclaim(resource, &Progress::new())?;
    Ok(Shown { space, reclaimed: Some(reclaimed) })
}

/// Returns the line of text for a member's database.
fn line(member: &MemberSpace) -> String {
    let role = match (member.leader, member.learner) {
        (true, _) => "leader",
        (_, true) => "learner",
        _ => "voter",
    };
    let Some(bytes) = member.db_bytes else {
        return format!("{:<12}  {role:<7}  not known: {}", member.name, member.why.as_deref().unwrap_or_default());
    };
    let in_use = member.in_use_bytes.map(|bytes| format!(", {} in use", size(bytes))).unwrap_or_default();
    let quota = match (member.percent, member.quota_bytes) {
        (Some(percent), Some(quota)) => format!(", {percent} % of its quota of {}", size(quota)),
        _ => ", its quota is not known".to_owned(),
    };
    let alarms: Vec<String> = member.alarms.iter().map(|alarm| format!(", alarm {alarm}")).collect();
    format!("{:<12}  {role:<7}  {}{in_use}{quota}{}", member.name, size(bytes), alarms.concat())
}

impl Report for Shown {
    fn text(&self) -> String {
        let of_others = self.space.alarms_of_others.iter().map(|alarm| format!("alarm {alarm}, which was removed"));
        let mut lines: Vec<String> = self.space.members.iter().map(line).chain(of_others).collect();
        if self.space.has_other_alarm() {
            lines.push("see 'tandem etcdctl endpoint hashkv --cluster'".to_owned());
        } else if self.space.has_alarm() || self.space.is_nearly_full() {
            lines.push("'tandem space --reclaim' makes room".to_owned());
        }
        lines.join("\n")
    }

    fn complaint(&self) -> Option<Cow<'_, str>> {
        let unknown = self.space.unknown().next().filter(|_| !self.space.has_alarm())?;
        let why = unknown.why.as_deref().unwrap_or_default();
        Some(format!("how full the database on {} is is not known: {why}: type 'tandem status'", unknown.name).into())
    }

    fn exit(&self) -> Exit {
        match (self.space.has_alarm(), self.space.is_nearly_full()) {
            (true, _) => Exit::Worst,
            (_, true) => Exit::Degraded,
            _ => Exit::Done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::report::golden;
    use crate::operate::members::space::Defragmented;
    use crate::operate::members::space::samples::full;

    #[test]
    fn a_full_database_is_the_worst_answer_and_one_that_is_nearly_full_the_next() {
        let defragmented =
            vec![Defragmented { name: "node2".to_owned(), bytes_before: 16_800_000, bytes_after: 3_000_000 }];
        let reclaimed = Some(Reclaimed { compacted_to: 4711, defragmented, disarmed: 0 });
        let mut shown = Shown { space: full(), reclaimed };
        golden::compare("space", &shown);
        assert_eq!((shown.exit(), shown.complaint()), (Exit::Worst, None));
        shown.space.members[0].alarms.clear();
        assert_eq!(shown.exit(), Exit::Degraded);
        shown.space.members.remove(0);
        assert_eq!(shown.exit(), Exit::Done);
        let silent =
            MemberSpace { name: "node1".to_owned(), why: Some("no answer".to_owned()), ..MemberSpace::default() };
        shown.space.members.push(silent);
        assert!(shown.complaint().is_some_and(|why| why.contains("no answer")));
        assert!(shown.text().contains("not known: no answer"));
    }
}
