//! Why a node boots alone, and why it does not: each sentence names its rule, L1 to L5 (`docs/design/lone-boot.md`).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::decide::evidence::{MemberId, NodeName, Version};

/// Step of a lone boot, in which a node gets quorum without its peer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoneBootStep {
    /// No step is needed, because this node has quorum.
    HasQuorum,
    /// This node waits until the peer has been off for long enough.
    Waits {
        off_s: u64,
        wait_s: u64,
    },
    Announces,
    HoldsPeerOff,
    EndsTheWait,
}

/// Reason why a node does not boot alone: the parameters do not allow it, or one of the rules L1 to L5 is not met.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoLoneBoot {
    /// The parameters do not allow a lone boot (`lone_boot=never`).
    NotWanted,
    /// Rule L1 is not met: the state of Corosync or Pacemaker could not be asked.
    ClusterUnknown {
        why: String,
    },
    /// Rule L1 is not met: the cluster has no other node.
    NoPeer,
    /// Rule L1 is not met: Corosync has no quorum, and the reason is not that it waits for the peer.
    NotWaiting,
    /// Rule L1 is not met: the peer was in Corosync's membership in this boot.
    PeerWasSeen,
    /// Rule L1 is not met: an etcd runs on this node, or may run.
    EtcdRuns,
    Maintenance,
    /// Rule L2 is not met: this node's data, or the durable note next to it, could not be read.
    DataUnknown {
        why: String,
    },
    NoData,
    /// Rule L2 is not met: this node's data names two or more voters.
    OthersVote,
    Learner,
    /// Rule L2 is not met: this member asked to be removed, or was removed.
    Left,
    /// Rule L2 is not met: this node gave up its data to join the peer's cluster.
    Joins,
    /// Rule L2 is not met: the property `etcd_guest` names a third member.
    ThirdVoter {
        name: NodeName,
    },
    DatabaseAhead,
    /// Rule L2 is not met: a change left this member as the only voter, and it is unknown whether that change is committed.
    NotCommitted,
    /// Rule L2 is not met: the data does not belong to the member that last served on this node.
    AnotherMember {
        member: MemberId,
    },
    /// Rule L3 is not met: the CIB records a fork (forced new cluster) that this node's data lacks.
    LeftBehind,
    /// Rule L3 is not met: this node's data ends before a position that it had already reached.
    PutBack,
    /// Rule L3 is not met: the CIB records two voters, but this node's data has one. So the data is older than the record.
    Redundant,
    /// Rule L3 is not met: the CIB does not record that this node was the only voter.
    NotSaidAlone,
    /// Rule L3 is not met: the CIB names the peer as the sole voter, or as the node that an operator chose for its data.
    PeerIsNamed,
    /// Rule L4 is not met: it is not known which release of etcd wrote the data.
    ReleaseUnknown {
        why: String,
    },
    /// Rule L4 is not met: the release of etcd that wrote the data acknowledges a write before it syncs it to disk.
    Release {
        version: Version,
    },
    /// Rule L5 is not met: the cluster has no fence device of the peer that this node may ask.
    NoDevice,
    DeviceUnknown {
        why: String,
    },
    /// Rule L5 is not met: neither the peer's fence device nor the peer's agent names the UUID of the peer's machine, or the BMC
    /// reports none.
    NoUuid,
    /// Rule L5 is not met: the UUID that the BMC reports is that of this machine, or this machine's UUID is unknown.
    OwnUuid,
    /// Rule L5 is not met: the BMC controls a machine that is not the peer's.
    AnotherMachine {
        found: String,
    },
    On,
    /// Rule L5 is not met: the BMC reports neither on nor off.
    Unclear {
        says: String,
    },
    Silent {
        why: String,
    },
    /// Rule L5 is not met: the BMC's last report about the power state is too old.
    OldLook {
        age_s: u64,
    },
}

impl NoLoneBoot {
    /// Returns the rule that forbids a lone boot, such as `L1`; `None` if the parameters do not allow a lone boot at all.
    pub fn rule(&self) -> Option<&'static str> {
        Some(match self {
            Self::NotWanted => return None,
            Self::ClusterUnknown { .. }
            | Self::NoPeer
            | Self::NotWaiting
            | Self::PeerWasSeen
            | Self::EtcdRuns
            | Self::Maintenance => "L1",
            Self::DataUnknown { .. }
            | Self::NoData
            | Self::OthersVote
            | Self::Learner
            | Self::Left
            | Self::Joins
            | Self::ThirdVoter { .. }
            | Self::DatabaseAhead
            | Self::NotCommitted
            | Self::AnotherMember { .. } => "L2",
            Self::LeftBehind | Self::PutBack | Self::Redundant | Self::NotSaidAlone | Self::PeerIsNamed => "L3",
            Self::ReleaseUnknown { .. } | Self::Release { .. } => "L4",
            Self::NoDevice
            | Self::DeviceUnknown { .. }
            | Self::NoUuid
            | Self::OwnUuid
            | Self::AnotherMachine { .. }
            | Self::On
            | Self::Unclear { .. }
            | Self::Silent { .. }
            | Self::OldLook { .. } => "L5",
        })
    }

    /// Returns whether the reason is a fact that could not be asked. The next observation may be able to ask it.
    pub fn is_unknown(&self) -> bool {
        matches!(
            self,
            Self::ClusterUnknown { .. }
                | Self::DataUnknown { .. }
                | Self::ReleaseUnknown { .. }
                | Self::DeviceUnknown { .. }
                | Self::Silent { .. }
        )
    }

    /// Returns what an operator has to type or do so that etcd can start.
    fn way(&self, peer: &str) -> String {
        let (look, or) = (format!("look at {peer}"), "or 'tandem confirm-recovery'");
        match self {
            Self::NotWanted => "'pcs resource update RESOURCE lone_boot=sole_voter'".to_owned(),
            Self::NotWaiting => "see 'corosync-quorumtool -s'".to_owned(),
            Self::ClusterUnknown { .. } | Self::EtcdRuns => "see 'tandem explain'".to_owned(),
            Self::Maintenance => "'pcs property set maintenance-mode=false'".to_owned(),
            Self::NoPeer => "see 'pcs status'".to_owned(),
            Self::PeerWasSeen | Self::On | Self::Unclear { .. } => format!("{look}, {or}"),
            _ => format!("switch {peer} on, {or}"),
        }
    }

    /// Returns the obstacle as a phrase. `peer` is the peer's name in it, and `peers` is the possessive form of that name.
    fn fact(&self, peer: &str, peers: &str) -> String {
        match self {
            Self::NotWanted => "lone_boot is never".to_owned(),
            Self::ClusterUnknown { why } => format!("the cluster's state is not known: {why}"),
            Self::NoPeer => "this cluster has one node".to_owned(),
            Self::NotWaiting => "Corosync does not wait for the peer".to_owned(),
            Self::PeerWasSeen => format!("{peer} was here in this boot"),
            Self::EtcdRuns => "an etcd runs here, or may".to_owned(),
            Self::Maintenance => "etcd is in maintenance".to_owned(),
            Self::DataUnknown { why } => format!("the data is not known: {why}"),
            Self::NoData => "no data is here".to_owned(),
            Self::OthersVote => "this data names other voters".to_owned(),
            Self::Learner => "this data is a learner's".to_owned(),
            Self::Left => "this member left, or asked to".to_owned(),
            Self::Joins => "this node gave its data up to join".to_owned(),
            Self::ThirdVoter { name } => format!("etcd_guest names {name}"),
            Self::DatabaseAhead => "the log's end is lost".to_owned(),
            Self::NotCommitted => "the last change of members is not committed".to_owned(),
            Self::AnotherMember { member } => format!("this data is of member {member:x}"),
            Self::LeftBehind => format!("{peer} ran standalone after this data"),
            Self::PutBack => "this data was put back".to_owned(),
            Self::Redundant => "two voted after this data".to_owned(),
            Self::NotSaidAlone => "the CIB does not say 'alone'".to_owned(),
            Self::PeerIsNamed => format!("the CIB names {peer} instead"),
            Self::ReleaseUnknown { why } => format!("etcd's release is not known: {why}"),
            Self::Release { version } => format!("etcd {version} can lose a write"),
            Self::NoDevice => format!("no fence_redfish_rs for {peer}"),
            Self::DeviceUnknown { why } => format!("{peers} BMC cannot be asked: {why}"),
            Self::NoUuid => format!("{peers} machine has no known UUID"),
            Self::OwnUuid => format!("{peers} UUID may be this machine's"),
            Self::AnotherMachine { found } => format!("{peers} BMC is {found}'s"),
            Self::On => format!("{peers} BMC says On"),
            Self::Unclear { says } => format!("{peers} BMC says {says}"),
            Self::Silent { why } => format!("{peers} BMC is silent: {why}"),
            Self::OldLook { age_s } => format!("{peers} BMC was asked {age_s} s ago"),
        }
    }

    pub(super) fn short(&self, peer: &str) -> String {
        let rule = self.rule().map(|rule| format!("{rule}: ")).unwrap_or_default();
        format!("{}: {rule}{}", self.way(peer), self.fact("it", "its"))
    }

    pub(super) fn long(&self, peer: &str) -> String {
        let rule = self.rule().map(|rule| format!("{rule}: ")).unwrap_or_default();
        let fact = self.fact(peer, &format!("{peer}'s"));
        format!("{rule}this node does not boot alone, because {fact}: {}", self.way(peer))
    }
}

impl LoneBootStep {
    pub(super) fn write(&self, f: &mut fmt::Formatter<'_>, peer: &str) -> fmt::Result {
        match self {
            Self::HasQuorum => write!(f, "there is quorum: no lone boot is needed"),
            Self::Waits { off_s, wait_s } => {
                write!(f, "L5: {peer} is off for {off_s} s, and this node boots alone after {wait_s} s")
            }
            Self::Announces => {
                write!(f, "L1 to L5 hold: this node is the sole voter, {peer} is off, and this node boots alone")
            }
            Self::HoldsPeerOff => write!(f, "the lone boot is announced: {peer} is held off"),
            Self::EndsTheWait => write!(f, "{peer} is held off: Corosync waits for it no longer"),
        }
    }
}
