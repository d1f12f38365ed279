//! The part of the CIB that matters here: Pacemaker's view of the peer, and what the nodes publish.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{DataDir, MemberId, NodeName, Reach, Reached, RunningImage};
use crate::base::Fact;

/// Pacemaker's name of a start where it counts failures.
pub const START_OPERATION: &str = "start_0";

/// The part of the CIB that matters here.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own that Pacemaker has")]
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cib {
    /// Pacemaker's view of the peer's machine.
    pub peer_node: PeerNode,
    /// The state of the peer's agent by its operation history.
    pub peer_agent: PeerAgent,
    pub own_record: Option<PublishedState>,
    /// True if Pacemaker's attribute manager still has this node's record. It is asked where a boot that remembers a voter
    /// finds no record in the CIB.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_own_record: bool,
    pub peer_record: Option<PublishedState>,
    /// The sole voter, where the cluster runs on one.
    pub standalone_node: Option<NodeName>,
    pub learner_node: Option<NodeName>,
    /// The most forks that any node recorded for good: a node with data that knows fewer was left behind.
    pub lineage: Lineage,
    /// The lineage in this node's own attribute, and in the peer's. Two lineages of one count by two authors are two
    /// histories.
    #[serde(default)]
    pub own_lineage: Option<Lineage>,
    #[serde(default)]
    pub peer_lineage: Option<Lineage>,
    /// True if a cluster was ever recorded here: then two blank disks are a loss, not a beginning.
    pub cluster_recorded: bool,
    /// The number of starts in a row that Pacemaker counted as failed on this node.
    pub own_start_failures: u64,
    /// The failures of each operation on this node, by Pacemaker's name for it: `start_0`, `monitor_5000`.
    #[serde(default)]
    pub own_failures: BTreeMap<String, u64>,
    /// The promotion score that this node has.
    pub own_promotion_score: Option<u32>,
    /// The ids that this node published last.
    pub own_identity: Option<Identity>,
    /// The ids that the peer published last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_identity: Option<Identity>,
    /// The alarms of etcd that this node shows.
    #[serde(default)]
    pub own_alarm: Option<String>,
    /// The image that this node published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_image: Option<RunningImage>,
    /// The role that this node shows to other programs. A decision that was recorded before there were such attributes did
    /// not ask for it, and nothing is written then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_shown: Option<ShownRole>,
    /// True if the peer's node shows that its etcd leads. `None` where it shows neither, and where its machine is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_leads: Option<bool>,
    /// The cluster property that records whether there are two voters, and since when. A decision that was recorded before
    /// there was such a property did not ask for it, and nothing is written then.
    #[serde(default, skip_serializing_if = "Fact::is_not_asked")]
    pub redundancy: Fact<Redundancy>,
    /// The position that the leader last published. A decision that was recorded before there was such a property did not
    /// ask for it, and nothing is written then.
    #[serde(default, skip_serializing_if = "Fact::is_not_asked")]
    pub reached: Fact<Reached>,
    /// The node with the data that an operator chose where the histories split.
    #[serde(default)]
    pub primary: Option<NodeName>,
    /// The third member, outside of the pair, where an administrator named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "guest")]
    pub third_voter: Option<ThirdVoter>,
    /// The reachability of this node and of the peer for users, by the node attribute that `reach_attribute` names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach: Option<Box<Reach>>,
    /// True if Pacemaker does not manage etcd's resource, on either node.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_maintenance: bool,
    /// True if the peer is on standby, or is about to shut down.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub peer_leaves: bool,
    /// The attributes that this node published for others, and what others asked of it.
    #[serde(default)]
    pub others: Others,
}

/// The attributes of a node for other programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ShownRole {
    /// True if its etcd leads; `None` where it shows neither.
    pub leads: Option<bool>,
    /// True if its fence agent is to wait.
    pub fence_wait: bool,
}

/// A member at none of the two nodes, as the cluster property `etcd_guest` names it: the pair's third voter, or on its way to be.
/// No agent starts it, stops it or fences its machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ThirdVoter {
    pub name: String,
    /// Empty where the property is not understood.
    pub peer_url: String,
    /// The member's id, written down before it may vote. Data that is read offline identifies members only by their ids.
    pub id: Option<MemberId>,
}

impl Cib {
    /// Returns the confirmed state of the peer's machine: see [`PeerNode::as_confirmed_by`].
    pub fn peer_machine(&self) -> PeerNode {
        self.peer_node.as_confirmed_by(self.peer_agent)
    }

    /// See [`PeerNode::is_beyond_asking`].
    pub fn peer_is_beyond_asking(&self) -> bool {
        self.peer_node.is_beyond_asking(self.peer_agent)
    }
}

impl PeerNode {
    /// Returns the confirmed state of a machine with the agent history `agent`: `Down` only where that is confirmed.
    ///
    /// Pacemaker expects a machine to be down as soon as it asks to shut down, and its resources run until they are stopped.
    /// A network that parts meanwhile leaves both nodes with that state of the other. So Pacemaker's scheduler fences a
    /// machine that is gone as expected where its history shows a resource that was not stopped. A clean shutdown leaves the
    /// successful stop in the history, and fencing erases it.
    #[must_use]
    pub fn as_confirmed_by(self, agent: PeerAgent) -> Self {
        match (self, agent) {
            (Self::Down, PeerAgent::Active | PeerAgent::Starting | PeerAgent::Stopping) => Self::Lost,
            (machine, _) => machine,
        }
    }

    /// Returns whether asking its etcd is in vain, because the machine is off or its state is unknown; a machine that is off
    /// does not even refuse. One that left as expected while its agent's history shows an etcd may still serve, as where
    /// Pacemaker ended in maintenance.
    pub fn is_beyond_asking(self, agent: PeerAgent) -> bool {
        match self {
            Self::Lost => true,
            Self::Down => self.as_confirmed_by(agent) == Self::Down,
            Self::Online | Self::Pending | Self::NeverSeen => false,
        }
    }
}

/// The attributes of a node that other programs read and write: OpenShift's etcd operator, its scripts, administrators
/// and the shell agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Others {
    /// The address and the revision that this node published last.
    pub node_ip: Option<String>,
    pub revision: Option<u64>,
    /// `force_new_cluster` on this node and on the peer: an operator, or a program of the operator, chooses the data that
    /// wins.
    /// The UUID of its machine that this node published last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_uuid: Option<String>,
    pub force_on_me: bool,
    pub force_on_peer: bool,
    /// `restart_no_leave`: the next stop is half of a restart.
    pub restart_no_leave: bool,
    /// `member_removal_lock`: the time at which this node published that it left the member list.
    pub removal_lock: Option<String>,
}

/// The ids of a member, as a node publishes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    pub cluster_id: u64,
    pub member_id: MemberId,
}

/// `NAME=URL`, and behind a space the member's id once it is listed.
impl fmt::Display for ThirdVoter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.peer_url)?;
        self.id.map_or(Ok(()), |id| write!(f, " {id:x}"))
    }
}

impl ThirdVoter {
    /// Parses the property. A text of another form still names a member: it is a third voter at an unknown address.
    pub fn parse(text: &str) -> Self {
        let (place, id) = text.trim().split_once(' ').map_or((text.trim(), None), |(place, id)| (place, Some(id)));
        let id = id.map(|id| u64::from_str_radix(id.trim(), 16));
        match (place.split_once('='), id.transpose()) {
            (Some((name, url)), Ok(id)) if !name.is_empty() && url.contains("://") => {
                Self { name: name.to_owned(), peer_url: url.to_owned(), id }
            }
            _ => Self { name: text.to_owned(), ..Self::default() },
        }
    }
}

/// State of the peer's machine as Pacemaker has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PeerNode {
    /// A member of the membership, with Pacemaker running.
    Online,
    /// In the membership, but Pacemaker has not joined (or has left) there.
    Pending,
    /// Gone as expected: shut down cleanly, fenced, or lost after it had asked to shut down; see [`Cib::peer_machine`].
    Down,
    /// Gone, and not confirmed: it may be running.
    Lost,
    /// Never seen since the cluster started.
    NeverSeen,
}

/// State of the peer's agent by its operation history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PeerAgent {
    /// A start has succeeded, and no stop since; or a failed operation left it in doubt.
    Active,
    /// A start is on its way.
    Starting,
    /// A stop on its way: it may still be running.
    Stopping,
    /// A stop, or a probe that found nothing, was the last word.
    Stopped,
    /// No operation is recorded.
    NoHistory,
}

/// Record of a node about its data. The node publishes it in one write when it starts, and takes it back by leaving the
/// membership.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a word of its own in a format that lasts")]
pub struct PublishedState {
    /// The boot that it was written in.
    pub boot_id: String,
    pub disk: DataDir,
    pub lineage: Lineage,
    /// True if this node reserves the right to run standalone: it was a running voter in this boot and did not give that up
    /// by a stop. While it claims, only fencing (which ends its boot) lets the peer continue without it.
    pub claims: bool,
    /// True if this node has backed its data up to join the peer's cluster, and has nothing of that cluster yet. Its former
    /// history was given up for the peer's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub joins: bool,
    /// True if an operator gave the peer up by name for this history: see [`super::Note::gave_up`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gave_up: bool,
    /// True if this member may have asked the peer to remove it: the peer may be the only voter since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub left: bool,
    /// Distinguishes this write from every earlier one of this boot. Pacemaker applies writes in one order on all nodes. A
    /// node that finds this number in its own CIB also finds all that was written before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<u64>,
    /// The last revision in the database, as its node read it when it published this. For events, and deciding nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// The node that keeps its history where two histories meet, by this node's parameters (`two_histories=primary`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefers: Option<NodeName>,
}

/// By hand: the model orders states by this hash, and a field that a record has not may not change it.
impl Hash for PublishedState {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { boot_id, disk, lineage, claims, joins, gave_up, left, nonce, revision, prefers } = self;
        (boot_id, disk, lineage, claims, joins, gave_up, left, nonce).hash(state);
        if let Some(revision) = revision {
            revision.hash(state);
        }
        if let Some(prefers) = prefers {
            prefers.hash(state);
        }
    }
}

impl PublishedState {
    /// Returns the record of data that claims nothing and was given up for nothing.
    pub fn of(boot_id: String, disk: DataDir, lineage: Lineage) -> Self {
        let (claims, joins, gave_up, left) = (false, false, false, false);
        Self { boot_id, disk, lineage, claims, joins, gave_up, left, nonce: None, revision: None, prefers: None }
    }

    /// Returns whether `published` has all of this record that decides anything.
    pub fn is_published_as(&self, published: &Self) -> bool {
        let without = |record: &Self| Self { revision: None, ..record.clone() };
        without(self) == without(published)
    }
}

/// Number of times that a new cluster was forced in this history, and the node that forced it last. It identifies a fork of
/// the history where ids, terms and indexes can be equal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Lineage {
    pub forks: u64,
    pub by: NodeName,
}

/// Record of whether two started voters exist, and since when. The cluster remembers it through every reboot, the same on
/// both nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Redundancy {
    pub is_redundant: bool,
    /// In seconds since 1970, by the clock of the node that saw it change.
    pub since: u64,
}

/// `redundant:1795442548` or `alone:1795442548`.
impl fmt::Display for Redundancy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", if self.is_redundant { REDUNDANT } else { ALONE }, self.since)
    }
}

impl FromStr for Redundancy {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (word, since) = text.split_once(':').ok_or(())?;
        let is_redundant = match word {
            REDUNDANT => true,
            ALONE => false,
            _ => return Err(()),
        };
        Ok(Self { is_redundant, since: since.parse().map_err(|_| ())? })
    }
}

const REDUNDANT: &str = "redundant";
const ALONE: &str = "alone";

impl Lineage {
    /// Returns whether this lineage has more forks than `other`, or as many of which the last was made by another node.
    pub fn is_beyond(&self, other: &Self) -> bool {
        self.forks > other.forks || (self.forks == other.forks && self.by != other.by)
    }
}
