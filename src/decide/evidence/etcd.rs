//! The container that runs etcd, and what an etcd answers about itself.

use serde::{Deserialize, Serialize};

use super::{LogPosition, MemberId, NodeAddress, Version};

/// Running container of etcd, as podman reports it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Found {
    pub id: String,
    /// Process id of the container's first process.
    pub pid: i32,
}

/// Container that runs etcd.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Container {
    pub running: bool,
    /// Exit code of the container and last log line of etcd; `None` while the container runs.
    pub exit: Option<String>,
    /// Time, in podman's words, at which etcd crashed because of its data; `None` if etcd ended in another way or runs.
    #[serde(default)]
    pub broke_down_at: Option<String>,
    /// True if etcd exited with success, and its log shows that it did so because its member was removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
    /// The container's process, set if the agent learnt only from podman that the container runs. The agent then records the
    /// process, and no decision uses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<Found>,
    /// True if etcd's configuration file would force a new cluster at the next start.
    pub forces_new_cluster: bool,
}

/// State of a running etcd, from its own answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Etcd {
    pub cluster_id: u64,
    pub member_id: MemberId,
    /// Id of the leader; `None` while this etcd has no leader.
    pub leader: Option<MemberId>,
    pub term: u64,
    /// Last log index of this etcd.
    pub index: u64,
    pub is_learner: bool,
    /// Member list; empty if this etcd is a learner, because a learner does not answer that query.
    pub members: Vec<Member>,
    /// Size of this etcd's database, in bytes.
    #[serde(default)]
    pub db_bytes: u64,
    /// Alarms and errors that this etcd reports, in its own words.
    pub alarms: Vec<String>,
}

/// Rejection of this agent by etcd's auth. The server is healthy, and a restart would only interrupt its service.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NoPermission {
    /// User that etcd takes this agent for; `None` if the agent's certificate has no name.
    pub user: Option<String>,
    /// True if no majority confirmed a read. The agent can know this without a permission, because etcd confirms a read before it
    /// checks the permission.
    pub leaderless: bool,
}

/// State of an etcd without a leader: its term, and the member list that it has applied.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Leaderless {
    pub cluster_id: u64,
    pub member_id: MemberId,
    pub term: u64,
    /// Log index up to which this etcd has applied its log.
    pub applied: u64,
    pub version: Version,
    pub members: Vec<Member>,
}

/// Entry of etcd's member list.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Member {
    pub id: MemberId,
    /// Name of the member; empty until it has started once.
    pub name: String,
    pub peer_urls: Vec<String>,
    pub is_learner: bool,
}

impl Member {
    /// Returns whether this entry is the member of the node at `address`: the peer URLs are equal.
    pub fn is_at(&self, address: &NodeAddress) -> bool {
        self.peer_urls.contains(&address.peer_url)
    }

    /// Returns whether the member has ever started.
    pub fn has_started(&self) -> bool {
        !self.name.is_empty()
    }
}

impl Leaderless {
    /// Returns the term of this etcd and the index up to which it has applied its log.
    pub fn position(&self) -> LogPosition {
        LogPosition { term: self.term, index: self.applied }
    }

    /// Returns the voters in the member list of this leaderless etcd.
    pub fn voters(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| !member.is_learner)
    }
}

impl Etcd {
    /// Returns the voters in this etcd's member list.
    pub fn voters(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| !member.is_learner)
    }

    /// Returns whether this etcd's member list contains exactly one voter.
    pub fn has_one_voter(&self) -> bool {
        self.voters().count() == 1
    }

    /// Returns whether this etcd's member list contains three or more voters.
    pub fn has_more_than_two_voters(&self) -> bool {
        self.voters().count() > 2
    }

    /// Returns whether this etcd's member list contains exactly two voters, both of them started.
    pub fn is_redundant(&self) -> bool {
        self.voters().filter(|member| member.has_started()).count() > 1
    }

    /// Returns whether this etcd is a voter and knows a leader. As far as such an etcd knows, it can accept writes.
    pub fn is_voter_with_leader(&self) -> bool {
        !self.is_learner && self.leader.is_some()
    }

    /// Returns whether this etcd is the leader.
    pub fn leads(&self) -> bool {
        self.leader == Some(self.member_id)
    }

    /// Returns the member list's entry of the node at `address`.
    pub fn member_at(&self, address: &NodeAddress) -> Option<&Member> {
        self.members.iter().find(|member| member.is_at(address))
    }

    /// Returns the term and index at which this etcd's log ends.
    pub fn position(&self) -> LogPosition {
        LogPosition { term: self.term, index: self.index }
    }
}

#[cfg(test)]
impl Etcd {
    /// Makes the state of an etcd for a test. `me` is its member id, and `voters` and `learners` are the ids in its member list.
    pub(crate) fn of_test(me: u64, leader: Option<u64>, voters: &[u64], learners: &[u64]) -> Self {
        let member = |id: &u64, is_learner| Member {
            id: *id,
            name: format!("node{id}"),
            peer_urls: vec![format!("https://node{id}:2380")],
            is_learner,
        };
        let members = voters.iter().map(|id| member(id, false)).chain(learners.iter().map(|id| member(id, true)));
        Self {
            cluster_id: 7,
            member_id: me,
            leader,
            term: 3,
            index: 1000,
            is_learner: learners.contains(&me),
            members: members.collect(),
            db_bytes: 0,
            alarms: Vec::new(),
        }
    }
}
