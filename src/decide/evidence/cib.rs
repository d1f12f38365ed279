//! The part of the CIB that matters here: Pacemaker's view of the peer, and what the nodes publish.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{DataDir, MemberId, NodeName, Reach, Reached, RunningImage};
use crate::base::Fact;

/// Name under which Pacemaker counts failures of a start.
pub const START_OPERATION: &str = "start_0";

/// Content of Pacemaker's CIB, as far as the agent uses it.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own that Pacemaker has")]
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cib {
    /// State of the peer's machine in Pacemaker.
    pub peer_node: PeerNode,
    /// State of the agent on the peer, from Pacemaker's operation history.
    pub peer_agent: PeerAgent,
    pub own_record: Option<PublishedState>,
    /// True if Pacemaker's attribute manager still has this node's published record. The agent asks only if [`super::BootState::voter`] is
    /// set and the CIB contains no record of this node.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_own_record: bool,
    pub peer_record: Option<PublishedState>,
    /// Node that the CIB names as the sole voter; `None` if it names none.
    pub standalone_node: Option<NodeName>,
    pub learner_node: Option<NodeName>,
    /// Largest lineage that any node recorded permanently (see [`Lineage`]). Data with a smaller lineage was left behind.
    pub lineage: Lineage,
    /// Lineage in this node's own attribute (see [`Lineage`]); `peer_lineage` is the peer's. There are two histories if both lineages
    /// count equally many forced new clusters, but name different nodes for the last one.
    #[serde(default)]
    pub own_lineage: Option<Lineage>,
    #[serde(default)]
    pub peer_lineage: Option<Lineage>,
    /// True if the CIB records that a cluster once existed. Two blank disks are then a loss of data, and not the beginning of a
    /// new cluster.
    pub cluster_recorded: bool,
    /// Number of consecutive starts on this node that Pacemaker counted as failed.
    pub own_start_failures: u64,
    /// Number of failures of each operation on this node, by Pacemaker's name of the operation: `start_0`, `monitor_5000`.
    #[serde(default)]
    pub own_failures: BTreeMap<String, u64>,
    /// This node's promotion score in Pacemaker.
    pub own_promotion_score: Option<u32>,
    /// Cluster id and member id that this node published last.
    pub own_identity: Option<Identity>,
    /// Cluster id and member id that the peer published last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_identity: Option<Identity>,
    /// Value of this node's attribute that shows etcd's alarms; `None` if the attribute is not set.
    #[serde(default)]
    pub own_alarm: Option<String>,
    /// Image that this node published for its running etcd.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_image: Option<RunningImage>,
    /// Attributes with which this node shows its role to other programs. In a decision that was recorded before these attributes
    /// existed, this is `None`, and the agent writes none of the attributes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_shown: Option<ShownRole>,
    /// True if the peer's node attribute shows that its etcd leads. `None` if the peer shows no role, or its machine has left the
    /// membership.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_leads: Option<bool>,
    /// Cluster property that records whether there are two voters, and since when. In a decision that was recorded before this
    /// property existed, this is `NotAsked`, and the agent does not write the property.
    #[serde(default, skip_serializing_if = "Fact::is_not_asked")]
    pub redundancy: Fact<Redundancy>,
    /// Log position that the leader last published. In a decision that was recorded before this property existed, this is
    /// `NotAsked`, and the agent does not write the property.
    #[serde(default, skip_serializing_if = "Fact::is_not_asked")]
    pub reached: Fact<Reached>,
    /// Node that an operator chose in the cluster property `etcd_primary` after the histories of the nodes split. The data on
    /// this node is kept.
    #[serde(default)]
    pub primary: Option<NodeName>,
    /// Third member, outside of the pair; `None` unless an administrator named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "guest")]
    pub third_voter: Option<ThirdVoter>,
    /// Whether users can reach this node and the peer. The parameter `reach_attribute` names the node attribute with this
    /// information.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach: Option<Box<Reach>>,
    /// True if Pacemaker does not manage etcd's resource on one of the nodes, or on both.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_maintenance: bool,
    /// True if the peer is on standby, or is about to shut down.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub peer_leaves: bool,
    /// Attributes that this node published for other programs, and attributes by which other programs make a request to this
    /// node.
    #[serde(default)]
    pub others: Others,
}

/// Attributes with which a node shows its role to other programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ShownRole {
    /// True if this node's etcd leads; `None` if no attribute shows whether it does.
    pub leads: Option<bool>,
    /// True if this node's fence agent is to wait before it switches the peer off.
    pub fence_wait: bool,
}

/// Member that runs on neither node of the pair, and that the cluster property `etcd_guest` names. It is the third voter, or is
/// to become the third voter. No agent starts it, stops it or fences its machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ThirdVoter {
    pub name: String,
    /// Peer URL of the third voter; empty if the property cannot be parsed.
    pub peer_url: String,
    /// Id of the third voter; `None` until the property names it. An operator's command writes it before the member may vote,
    /// because data that is read offline identifies members only by their ids.
    pub id: Option<MemberId>,
}

impl Cib {
    /// Returns the state of the peer's machine, `Down` only if that is confirmed: see [`PeerNode::as_confirmed_by`].
    pub fn peer_machine(&self) -> PeerNode {
        self.peer_node.as_confirmed_by(self.peer_agent)
    }

    /// Returns whether a query of the peer's etcd would be in vain: see [`PeerNode::is_beyond_asking`].
    pub fn peer_is_beyond_asking(&self) -> bool {
        self.peer_node.is_beyond_asking(self.peer_agent)
    }
}

impl PeerNode {
    /// Returns the state of a machine, but `Lost` in place of `Down` unless the operations of the machine's agent (`agent`)
    /// confirm `Down`.
    ///
    /// From the moment at which a machine asks to shut down, Pacemaker expects it to leave, and does not see its loss as a
    /// failure. Its resources still run until they are stopped. If the network is partitioned in that time, the machine is `Down`
    /// for the other node while etcd runs on it. Pacemaker's scheduler fences such a machine, because its operation history shows
    /// a resource that was not stopped. A clean shutdown leaves a successful stop in the history, and fencing erases the history.
    #[must_use]
    pub fn as_confirmed_by(self, agent: PeerAgent) -> Self {
        match (self, agent) {
            (Self::Down, PeerAgent::Active | PeerAgent::Starting | PeerAgent::Stopping) => Self::Lost,
            (machine, _) => machine,
        }
    }

    /// Returns whether a query of the machine's etcd would be in vain, because the machine is off or its state is unknown. A
    /// machine that is off does not even refuse a connection. A machine that left as expected may still serve if Pacemaker ended
    /// there in maintenance. In that case the operations of its agent (`agent`) show a running etcd.
    pub fn is_beyond_asking(self, agent: PeerAgent) -> bool {
        match self {
            Self::Lost => true,
            Self::Down => self.as_confirmed_by(agent) == Self::Down,
            Self::Online | Self::Pending | Self::NeverSeen => false,
        }
    }
}

/// Attributes of a node that other programs read and write. Such programs are OpenShift's etcd operator, its scripts,
/// administrators and the shell agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Others {
    /// IP address of this node's member, as this node published it last.
    pub node_ip: Option<String>,
    /// Revision that OpenShift's sidecar wrote, as this node published it last.
    pub revision: Option<u64>,
    /// UUID of this machine, as this node published it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_uuid: Option<String>,
    /// True if the attribute `force_new_cluster` is set on this node. An operator or OpenShift's etcd operator sets it to choose
    /// this node's data.
    pub force_on_me: bool,
    /// True if the attribute `force_new_cluster` is set on the peer, so that the peer's data is chosen.
    pub force_on_peer: bool,
    /// True if the attribute `restart_no_leave` is set, so that the next stop is the first half of a restart.
    pub restart_no_leave: bool,
    /// Value of the attribute `member_removal_lock`: the time at which this node published that it was leaving the member list.
    pub removal_lock: Option<String>,
}

/// Cluster id and member id that a node publishes for its member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    pub cluster_id: u64,
    pub member_id: MemberId,
}

/// Prints `NAME=URL`, and after a space the member's id once it is listed.
impl fmt::Display for ThirdVoter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.peer_url)?;
        self.id.map_or(Ok(()), |id| write!(f, " {id:x}"))
    }
}

impl ThirdVoter {
    /// Parses the value of the property `etcd_guest`. If the text has another form, it still names a third voter, but the voter's
    /// address is unknown.
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

/// State of the peer's machine in Pacemaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PeerNode {
    /// Machine in the cluster membership, with Pacemaker running.
    Online,
    /// Machine in the membership on which Pacemaker has not joined yet, or has left.
    Pending,
    /// Machine that left as expected: shut down cleanly, fenced, or lost after it asked to shut down; see [`Cib::peer_machine`].
    Down,
    /// Machine that left without confirmation, and may be running.
    Lost,
    /// Machine that never joined since the cluster started.
    NeverSeen,
}

/// State of the agent on the peer, from Pacemaker's operation history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PeerAgent {
    /// Active: a start succeeded and no stop followed, or a failed operation left it unknown whether the agent is active.
    Active,
    /// A start that has not ended yet.
    Starting,
    /// A stop that has not ended yet: etcd may still be running.
    Stopping,
    /// Stopped: the last operation was a stop, or a probe that found nothing.
    Stopped,
    /// No operation in the history.
    NoHistory,
}

/// Record in the CIB by which a node describes its data. The agent publishes it in one write during a start. Pacemaker drops it when
/// the node leaves the membership.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a word of its own in a format that lasts")]
pub struct PublishedState {
    /// Id of the boot in which the node published this record.
    pub boot_id: String,
    pub disk: DataDir,
    pub lineage: Lineage,
    /// True if this node reserves the right to run standalone: in this boot its etcd was a running voter, and no stop has given
    /// up the right. While the claim is published, the peer may continue without this node only after fencing, which ends this
    /// boot.
    pub claims: bool,
    /// True if this node backed its own data up to join the peer's cluster, and has not yet received that cluster's data. The
    /// node has given up its former history in favour of the peer's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub joins: bool,
    /// True if an operator gave up the peer by name in favour of this node's history: see [`super::DurableState::gave_up`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gave_up: bool,
    /// True if this member may have asked the peer to remove it. In that case the peer may have become the only voter.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub left: bool,
    /// Number that distinguishes this write of the record from every earlier write of this boot. Pacemaker applies writes in one
    /// order on all nodes. So when a node finds this number in its own CIB, everything that was written before is there, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<u64>,
    /// Last revision in the database when the node published this record. It is printed in events, and no decision uses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// Node that the publishing node's parameters prefer if two histories meet (`two_histories=primary`): its history is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefers: Option<NodeName>,
}

/// Hashes each optional field only if it is set, so that the hash of a record without optional fields is the same as before the
/// fields existed. The model orders states by that hash.
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
    /// Returns a record of this data with every flag unset: the node claims nothing, joins no peer, gave no peer up, and did not ask to be
    /// removed.
    pub fn of(boot_id: String, disk: DataDir, lineage: Lineage) -> Self {
        let (claims, joins, gave_up, left) = (false, false, false, false);
        Self { boot_id, disk, lineage, claims, joins, gave_up, left, nonce: None, revision: None, prefers: None }
    }

    /// Returns whether `published` agrees with this record in every field that decisions use.
    pub fn is_published_as(&self, published: &Self) -> bool {
        let without = |record: &Self| Self { revision: None, ..record.clone() };
        without(self) == without(published)
    }
}

/// Number of forks of this history (new clusters that were forced), and the node that forced the last one. Together they identify
/// a fork even if two histories have equal ids, terms and indexes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Lineage {
    pub forks: u64,
    pub by: NodeName,
}

/// Record of whether there are two started voters, and since when. It is a property of the CIB, so every reboot preserves it and
/// both nodes read the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Redundancy {
    pub is_redundant: bool,
    /// Time of the last change in seconds since 1970, by the clock of the node that saw the change.
    pub since: u64,
}

/// Prints `redundant:1795442548` or `alone:1795442548`.
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
    /// Returns whether this lineage counts more forced new clusters than `other`. Also returns true if it counts equally many, but
    /// another node forced the last one.
    pub fn is_beyond(&self, other: &Self) -> bool {
        self.forks > other.forks || (self.forks == other.forks && self.by != other.by)
    }
}
