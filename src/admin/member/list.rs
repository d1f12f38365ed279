//! `tandem member list`: prints every member, and whether it is healthy.

use serde::Serialize;

use super::shown_id;
use super::source::SourceArguments;
use crate::admin::report::{Form, Report};
use crate::decide::members::{Health, MachineState, Member, quorum};
use crate::operate::failure::Failure;
use crate::operate::members::look;
use crate::operate::members::look::MembersSeen;
use crate::os::output::complain;

const HELP: &str = "\
It changes nothing. A member is healthy if it answers within 2 seconds, is in this cluster, follows this leader
and raises no alarm CORRUPT. A healthy voter also answers a read that a majority confirms. What could not be
asked is null, never false.

Without --endpoints and ETCDCTL_ENDPOINTS the command shows the pair of this node's etcd resource.

With --json, ids are hexadecimal strings:
  cluster_id     id of the cluster
  leader         id of the leading member
  voters_wanted  how many voters there should be: as many as the pair has nodes; for any other etcd --voters, else
                 the number in the install config, else the present number
  change         the change that is under way, in a sentence of the program that makes it; or null
  members        one object for each member:
    id, name, node (in a pair), peer_urls, client_urls
    role         voter or learner
    started      whether it has ever started
    leader       whether it leads
    healthy      whether it is healthy; why has the reason where it is not
    index        committed index of its log
    lag          how many of the leader's entries it lacks
    db_bytes     size of its database in bytes
    machine      present or deleting, where its Machine is known
    deleting     whether its Machine is being deleted
    protected    whether a hook delays the deletion of its Machine until the member is removed";

/// Shows the members of an etcd of any size, and which of them are healthy
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(in crate::admin) struct Arguments {
    #[command(flatten)]
    source: SourceArguments,
    #[command(flatten)]
    pub(super) form: Form,
}

#[derive(Debug, Serialize)]
pub(super) struct List {
    cluster_id: String,
    leader: Option<String>,
    voters_wanted: usize,
    change: Option<String>,
    members: Vec<Row>,
    #[serde(skip)]
    no_space: bool,
}

#[derive(Debug, Serialize)]
struct Row {
    id: String,
    name: String,
    node: Option<String>,
    peer_urls: Vec<String>,
    client_urls: Vec<String>,
    role: &'static str,
    started: bool,
    leader: bool,
    healthy: Option<bool>,
    why: Option<String>,
    index: Option<u64>,
    lag: Option<u64>,
    db_bytes: Option<u64>,
    machine: Option<&'static str>,
    deleting: Option<bool>,
    protected: Option<bool>,
}

pub(super) fn run(arguments: &Arguments) -> Result<List, Failure> {
    let seen = look::of_target(&arguments.source.target())?;
    if let Some(why) = &seen.machines_unknown {
        complain(format_args!("tandem: the members' Machines are not known: {why}"));
    }
    if let Some(why) = &seen.wanted_unknown {
        complain(format_args!("tandem: {why}"));
    }
    Ok(List::of(&seen))
}

impl List {
    pub(super) fn of(seen: &MembersSeen) -> Self {
        let membership = &seen.membership;
        Self {
            cluster_id: shown_id(seen.cluster_id),
            leader: membership.leader.map(shown_id),
            voters_wanted: membership.wanted,
            change: membership.change.clone(),
            members: membership.members.iter().map(|member| row(seen, member)).collect(),
            no_space: seen.no_space,
        }
    }
}

fn row(seen: &MembersSeen, member: &Member) -> Row {
    let detail = seen.details.get(&member.id).cloned().unwrap_or_default();
    let (healthy, why) = match &member.health {
        Health::Yes => (Some(true), None),
        Health::No(why) => (Some(false), Some(why.clone())),
        Health::Unknown(why) => (None, Some(why.clone())),
    };
    let (machine, deleting) = match &member.machine {
        MachineState::None | MachineState::Unknown(_) => (None, None),
        MachineState::Stays { .. } => (Some("present"), Some(false)),
        MachineState::BeingDeleted => (Some("deleting"), Some(true)),
    };
    Row {
        id: shown_id(member.id),
        name: member.name.clone(),
        node: member.node.clone(),
        peer_urls: member.peer_urls.clone(),
        client_urls: detail.client_urls,
        role: if member.is_learner { "learner" } else { "voter" },
        started: member.has_started(),
        leader: seen.membership.leader == Some(member.id),
        healthy,
        why,
        index: detail.index,
        lag: member.lag,
        db_bytes: detail.db_bytes,
        machine,
        deleting,
        protected: detail.is_protected,
    }
}

impl Row {
    fn line(&self) -> String {
        let name = self.node.as_ref().unwrap_or(&self.name);
        let role = if self.leader { "leader" } else { self.role };
        let health = match self.healthy {
            Some(true) => "healthy".to_owned(),
            Some(false) => format!("not healthy: {}", self.why.as_deref().unwrap_or_default()),
            None => format!("not known: {}", self.why.as_deref().unwrap_or_default()),
        };
        let lag = match self.lag {
            None | Some(0) => String::new(),
            Some(1) => ", lacks 1 entry".to_owned(),
            Some(lag) => format!(", lacks {lag} entries"),
        };
        let machine = match (self.deleting, self.protected) {
            (Some(true), Some(true)) if self.role == "voter" => format!(
                ", its Machine is being deleted, which waits for 'tandem member replace {name}', or 'tandem member remove {name} \
                 --allow-fewer-voters'"
            ),
            (Some(true), Some(true)) => ", its Machine is being deleted, which waits until it is removed".to_owned(),
            (Some(true), _) => ", its Machine is being deleted".to_owned(),
            _ => String::new(),
        };
        format!("{:<16}  {name:<12}  {role:<7}  {health}{lag}{machine}", self.id)
    }
}

impl Report for List {
    fn text(&self) -> String {
        let voters: Vec<&Row> = self.members.iter().filter(|row| row.role == "voter").collect();
        let healthy = voters.iter().filter(|row| row.healthy == Some(true)).count();
        let (count, majority) = (voters.len(), quorum(voters.len()));
        let mut lines = vec![format!("{healthy} of {count} voters are healthy, {majority} are a majority")];
        if self.voters_wanted != count {
            lines.push(format!("{} voters are wanted", self.voters_wanted));
        }
        if count > 2 && count.is_multiple_of(2) {
            lines.push(format!("{count} voters bear no more losses than {} do", count - 1));
        }
        lines.extend(self.members.iter().map(Row::line));
        if self.no_space {
            lines.push("etcd raises the alarm NOSPACE: it takes no writes".to_owned());
        }
        lines.extend(self.change.iter().map(|change| format!("a change is under way: {change}")));
        lines.join("\n")
    }
}
