//! The container that runs etcd, and what an etcd answers about itself.

use serde::{Deserialize, Serialize};

use super::{LogPosition, MemberId, NodeAddress, Version};

/// Running container, as podman reports it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Found {
    pub id: String,
    /// Its first process.
    pub pid: i32,
}

/// The container that runs etcd.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Container {
    pub running: bool,
    /// Its exit code and etcd's last log line, where it is not running.
    pub exit: Option<String>,
    /// The time, as podman has it, at which etcd broke down by itself without a cause around its data.
    #[serde(default)]
    pub broke_down_at: Option<String>,
    /// True where etcd ended with success because its member was removed, as its log shows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
    /// Set where only podman showed that it runs: the agent is to write this down. It decides nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<Found>,
    /// True if its configuration file would force a new cluster at the next start.
    pub forces_new_cluster: bool,
}

/// Answers of an etcd about itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Etcd {
    pub cluster_id: u64,
    pub member_id: MemberId,
    /// `None` while it has no leader.
    pub leader: Option<MemberId>,
    pub term: u64,
    /// Its last log index.
    pub index: u64,
    pub is_learner: bool,
    /// Empty where it is a learner: those do not answer that question.
    pub members: Vec<Member>,
    /// The size of its database, in bytes.
    #[serde(default)]
    pub db_bytes: u64,
    /// Alarms and errors that it reports, in its words.
    pub alarms: Vec<String>,
}

/// The rejection of this agent by etcd's auth. The server is healthy: a restart would end what serves.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NoPermission {
    /// The user that etcd takes this agent for; `None` where its certificate has no name.
    pub user: Option<String>,
    /// True if no majority confirmed a read. etcd tries that before it checks the permission.
    pub leaderless: bool,
}

/// State of an etcd without a leader: its own, and the list that it has applied.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Leaderless {
    pub cluster_id: u64,
    pub member_id: MemberId,
    pub term: u64,
    /// Up to which index it has applied its log.
    pub applied: u64,
    pub version: Version,
    pub members: Vec<Member>,
}

/// One line of a member list.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Member {
    pub id: MemberId,
    /// Empty until the member has started once.
    pub name: String,
    pub peer_urls: Vec<String>,
    pub is_learner: bool,
}

impl Member {
    /// Returns whether this entry is the node at `address`: by its peer URL, exactly.
    pub fn is_at(&self, address: &NodeAddress) -> bool {
        self.peer_urls.contains(&address.peer_url)
    }

    /// Returns whether the member has ever started.
    pub fn has_started(&self) -> bool {
        !self.name.is_empty()
    }
}

impl Leaderless {
    /// Returns how far it has applied its log.
    pub fn position(&self) -> LogPosition {
        LogPosition { term: self.term, index: self.applied }
    }

    /// Returns the voters of its member list.
    pub fn voters(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| !member.is_learner)
    }
}

impl Etcd {
    /// Returns the voters of its member list.
    pub fn voters(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| !member.is_learner)
    }

    /// Returns whether its member list has one voter.
    pub fn has_one_voter(&self) -> bool {
        self.voters().count() == 1
    }

    /// Returns whether three or more vote.
    pub fn has_more_than_two_voters(&self) -> bool {
        self.voters().count() > 2
    }

    /// Returns whether its member list has two voters that have both started.
    pub fn is_redundant(&self) -> bool {
        self.voters().filter(|member| member.has_started()).count() > 1
    }

    /// Returns whether it can accept writes, as far as it knows.
    pub fn is_voter_with_leader(&self) -> bool {
        !self.is_learner && self.leader.is_some()
    }

    /// Returns whether it leads.
    pub fn leads(&self) -> bool {
        self.leader == Some(self.member_id)
    }

    /// Returns the entry of the node at `address`.
    pub fn member_at(&self, address: &NodeAddress) -> Option<&Member> {
        self.members.iter().find(|member| member.is_at(address))
    }

    /// Returns the end of its log.
    pub fn position(&self) -> LogPosition {
        LogPosition { term: self.term, index: self.index }
    }
}

#[cfg(test)]
impl Etcd {
    /// Makes one with so many voters and learners, by their ids.
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
