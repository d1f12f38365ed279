//! Everything that one round knows. Data only: no handles, no clocks, no secrets.

mod cib;
mod disk;
mod durable_state;
mod etcd;
mod image;
mod leading;
mod lone_boot;
mod pace;
mod position;
mod version;

use std::collections::BTreeSet;

use serde::{Deserialize, Deserializer, Serialize};

pub use cib::{
    Cib, Identity, Lineage, Others, PeerAgent, PeerNode, PublishedState, Redundancy, START_OPERATION, ShownRole,
    ThirdVoter,
};
pub use disk::{Backup, DataDir, History, Room};
pub use durable_state::{BootState, Confirmation, DataOwner, DurableState, RunningVoter};
pub use etcd::{Container, Etcd, Found, Leaderless, Member, NoPermission};
pub use image::{NextImage, RunningImage};
pub use leading::{Cause, HandOver, Leading, Reach};
pub use lone_boot::{Done, LoneBoot, PeerBmc, Power};
pub use pace::Pace;
pub use position::{DataEnd, LogPosition, Reached};
pub use version::Version;

use crate::base::Fact;

/// Name of a cluster node as Pacemaker spells it. Names are compared exactly.
pub type NodeName = String;
/// An etcd member's id.
pub type MemberId = u64;

/// Everything that the agent knows when it decides what to do.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Evidence {
    /// Milliseconds since the action began.
    pub elapsed_ms: u64,
    /// Milliseconds that the action has in all.
    pub budget_ms: u64,
    pub me: NodeAddress,
    /// The other node of the pair; `None` in a cluster of one node.
    pub peer: Option<NodeAddress>,
    /// Id of this machine's present boot, from the kernel.
    pub boot_id: String,
    /// True if Pacemaker runs the agent as a promotable clone.
    pub promotable: bool,
    /// The largest lag behind the leader, in log entries, at which a learner is promoted.
    pub promote_max_lag: u64,
    /// The notification that Pacemaker sent with this action; `None` when the agent was started by hand.
    pub notify: Option<Notify>,
    pub cib: Fact<Cib>,
    /// True while an earlier action still starts or ends the container. This includes a podman that still runs although its action was
    /// killed. The agent observed all other facts after this one.
    #[serde(default)]
    pub launching: Fact<bool>,
    pub container: Fact<Container>,
    /// True while a process holds the lock on the data dir's files. That process is an etcd, whatever podman reports.
    #[serde(default)]
    pub data_in_use: Fact<bool>,
    /// Content of the data dir, read without etcd. The agent reads it only while no etcd runs.
    pub disk: Fact<DataDir>,
    /// Free space and backups next to the data dir. The agent reads them only while no etcd runs.
    #[serde(default)]
    pub room: Fact<Room>,
    pub note: Fact<DurableState>,
    /// Facts about etcd that the agent stored in this boot (see [`BootState`]), in a file in `/run`, which no reboot preserves.
    pub boot_memory: Fact<BootState>,
    /// The operator's confirmation (`tandem confirm-recovery`) that this node may run standalone.
    // Files of decisions have this name for it from the first version on.
    #[serde(rename = "authorisation")]
    pub confirmation: Fact<Confirmation>,
    /// Facts of this node other than its etcd and its data. In a decision that was recorded before this field existed, the field
    /// has its default.
    #[serde(default)]
    pub local: Local,
    pub own_etcd: Fact<Etcd>,
    pub peer_etcd: Fact<Etcd>,
    /// Set if this node's etcd answers, but its auth refuses this agent. `own_etcd` is then unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_refuses: Option<Box<NoPermission>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    /// Set if the peer's etcd answers, but its auth refuses this agent. `peer_etcd` is then unknown.
    pub peer_refuses: Option<Box<NoPermission>>,
    /// State of this node's etcd while it has no leader. The agent queries it in two cases:
    ///
    /// - A vote proxy may cast the vote of a peer that is confirmed off.
    /// - [`BootState::voter`] is set. This member may meanwhile have become one of three voters, and it may be waiting for a
    ///   majority of them.
    #[serde(default, skip_serializing_if = "Fact::is_not_asked")]
    pub own_leaderless: Fact<Leaderless>,
    /// Way in which a survivor comes to run standalone. In a decision that was recorded before this field existed, it is a restart of etcd.
    #[serde(default, skip_serializing_if = "is_default")]
    pub recovery: Recovery,
    /// Parameters about the node that is to lead; `None` if no parameter names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leading: Option<Box<Leading>>,
    /// Facts that `tandem lone-boot` has found on a node that boots without its peer; `None` in a request of any other kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lone_boot: Option<Box<LoneBoot>>,
    /// Measured slowness of this machine; all zero on a fast one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pace: Pace,
    /// Number that no other observation of this boot has: see [`PublishedState::nonce`].
    #[serde(default)]
    pub nonce: u64,
}

/// The way in which the survivor of a pair comes to run standalone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recovery {
    /// The agent stops etcd, and forces a new cluster from its data.
    #[default]
    Restart,
    /// etcd keeps running, and a vote proxy casts the vote of the member that is off. Only on releases of etcd with which the proxy was
    /// tested.
    #[serde(rename = "stand_in")]
    VoteProxy,
    /// A vote proxy as in [`Recovery::VoteProxy`], on every release of etcd.
    #[serde(rename = "stand_in_untested")]
    VoteProxyUntested,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Facts of this node other than its etcd and its data: its address, obstacles to a start, OpenShift's view.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Local {
    /// IP address of this node's etcd member.
    pub ip: String,
    /// Revision that OpenShift's sidecar last wrote; `None` without one. The agent publishes it for other programs, and no
    /// decision uses it.
    pub revision: Option<u64>,
    /// UUID that this machine's firmware reports; `None` unless the parameters allow a lone boot. Before its own lone boot, the
    /// peer compares this UUID with the one that a BMC reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_uuid: Option<String>,
    /// Address with which the running etcd was started. It is set only if `node_ip_map` now gives this node a different address.
    #[serde(default)]
    pub runs_at: Option<String>,
    /// Obstacle that prevents a start of etcd. The agent checks for obstacles only while this node's etcd does not run.
    pub obstacle: Option<Obstacle>,
    /// Error of a failed additional check, which an operator requested (`OCF_CHECK_LEVEL`, `monitor_cmd`).
    pub failed_check: Option<String>,
    /// True if OpenShift is deleting the Machine of the node to be added: the peer's Machine or, on a joining node, this node's own.
    #[serde(default, deserialize_with = "fact_or_bool")]
    pub machine_is_deleted: Fact<bool>,
    /// Plain starts that failed with the present data; `None` once etcd has served from it.
    #[serde(default)]
    pub failed_starts: Option<FailedStarts>,
    /// Time of the last write to the log in the data dir, in seconds since 1970. It is shown to operators, and no decision uses it.
    #[serde(default)]
    pub log_written: Option<u64>,
    /// Image that etcd runs from. A monitor queries it until this node has published it, and as long as the parameters name a
    /// different image.
    #[serde(default, skip_serializing_if = "Fact::is_not_asked")]
    pub image: Fact<RunningImage>,
}

/// Deserializes a fact, or the plain `true` or `false` of a decision that was recorded before the field became a fact.
fn fact_or_bool<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Fact<bool>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Known(bool),
        Fact(Fact<bool>),
    }
    Ok(match Either::deserialize(deserializer)? {
        Either::Known(value) => Fact::Known(value),
        Either::Fact(fact) => fact,
    })
}

/// Consecutive plain starts that ended in a crash of etcd because of its data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FailedStarts {
    pub count: u64,
    /// Time at which the last failed start ended, in podman's words. A new failure is counted only if its time differs from this
    /// one.
    pub last_at: String,
    pub last_words: String,
}

/// Obstacle that must end before etcd can be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Obstacle {
    /// kubelet runs its own etcd from this node's data.
    StaticPod,
    /// Another process listens on this port, which etcd needs.
    PortTaken(u16),
}

/// Node, and the URLs of its etcd.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeAddress {
    pub name: NodeName,
    /// URL under which other members reach this node's etcd, e.g. `https://192.0.2.1:2380`.
    pub peer_url: String,
    /// URL under which clients reach this node's etcd.
    pub client_url: String,
}

/// Pacemaker's notify variables: what the transition of this action starts and stops. They describe the moment at which Pacemaker computed
/// the transition, not the present.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Notify {
    pub moment: Moment,
    pub operation: Operation,
    pub active: BTreeSet<NodeName>,
    pub start: BTreeSet<NodeName>,
    pub stop: BTreeSet<NodeName>,
}

/// Operation that Pacemaker's notification is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// No operation, because Pacemaker sent no notification.
    #[default]
    #[serde(rename = "")]
    None,
    Start,
    Stop,
    Promote,
    Demote,
}

/// Whether Pacemaker's notification comes before (`Pre`) or after (`Post`) its operation; `Outside` without a notification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    Pre,
    Post,
    #[default]
    Outside,
}

impl Evidence {
    /// Returns the peer's name for use in a sentence.
    pub fn peer_name(&self) -> &str {
        self.peer.as_ref().map_or("the peer", |peer| peer.name.as_str())
    }

    /// Returns the node with the history that continues if two histories meet, by this node's parameters
    /// (`two_histories=primary`).
    pub fn preferred(&self) -> Option<&NodeName> {
        self.leading.as_deref().filter(|leading| leading.keeps_its_history)?.primary.as_ref()
    }

    /// Returns whether this node's etcd serves although its auth refuses this agent. It serves if a majority has confirmed a
    /// read.
    pub fn serves_unseen(&self) -> bool {
        self.own_refuses.as_ref().is_some_and(|refuses| !refuses.leaderless)
    }

    /// Returns whether this node's etcd has a leader. It has one if it reports one, or if a majority has confirmed a read.
    pub fn has_a_leader(&self) -> bool {
        self.serves_unseen() || self.own_etcd.known().is_some_and(|etcd| etcd.leader.is_some())
    }

    /// Returns whether this node's container runs. An unknown state counts as running, so that the agent starts nothing twice.
    pub fn container_may_run(&self) -> bool {
        match &self.container {
            Fact::Known(container) => container.running,
            Fact::Absent => false,
            Fact::Unknown(_) | Fact::NotAsked => true,
        }
    }

    /// Returns whether another action may be starting the container now. It may, even if the agent observed no running container.
    pub fn may_be_launching(&self) -> bool {
        matches!(self.launching, Fact::Known(true) | Fact::Unknown(_))
    }

    /// Returns why this node's etcd has not answered.
    pub fn own_silence(&self) -> &str {
        if self.own_etcd.is_absent() { "nothing listens on its client port" } else { self.own_etcd.why_unknown() }
    }

    /// Returns the operator's confirmation if it was given in this boot and names `history` and the present peer.
    pub fn confirmation_for(&self, history: &History) -> Option<&Confirmation> {
        let position = LogPosition { term: history.last_term, index: history.last_index };
        self.confirmation.known().filter(|word| {
            word.boot_id == self.boot_id
                && word.lost_node == self.peer_name()
                && (word.cluster_id, word.member_id) == (history.cluster_id, history.member_id)
                && word.position == position
        })
    }

    /// Returns whether the CIB records a fork (forced new cluster) that this node's data lacks: another node continued without this one.
    /// Also returns true if this node's own forks are unknown.
    pub fn was_left_behind(&self) -> bool {
        let own = self.own_lineage();
        let is_beyond = |lineage: &Lineage| own.as_ref().is_none_or(|own| lineage.is_beyond(own));
        let recorded = |cib: &Cib| is_beyond(&cib.lineage) || cib.peer_lineage.as_ref().is_some_and(is_beyond);
        self.cib.known().is_some_and(recorded)
    }

    /// Returns whether this member asked the peer to remove it, and has not voted since. Even if the peer did not answer, its log
    /// may contain the removal. The peer is then the sole voter.
    pub fn may_have_left(&self) -> bool {
        self.last_note().is_none_or(|note| note.left_at.is_some())
    }

    /// Returns the durable note (see [`DurableState`]); `None` if it is unknown. The returned note is empty if this node never
    /// wrote one.
    ///
    /// If the note on disk is about other data than the present data, this returns a substitute: a note without any forced new
    /// cluster, in which this member may have left.
    pub fn last_note(&self) -> Option<DurableState> {
        match &self.note {
            Fact::Known(note) if self.is_about_our_data(note) => Some(note.clone()),
            Fact::Known(_) => Some(DurableState { left_at: Some(LogPosition::default()), ..DurableState::default() }),
            Fact::Absent => Some(DurableState::default()),
            Fact::Unknown(_) | Fact::NotAsked => None,
        }
    }

    /// Returns whether the durable note `note` is about the data on this node. That is so in these cases:
    ///
    /// - The note's cluster and member are those of the data.
    /// - This node has no data now, or the note names none.
    /// - The clusters differ, because an operator restored a snapshot on this node.
    fn is_about_our_data(&self, note: &DurableState) -> bool {
        let (Some(of), Some(own)) = (&note.of, self.own_data()) else { return true };
        of.cluster_id != own.cluster_id || *of == own
    }

    /// Returns whether the durable note is known to be about other data than the present one.
    pub fn has_another_ones_note(&self) -> bool {
        self.note.known().is_some_and(|note| !self.is_about_our_data(note))
    }

    /// Returns the owner of the data on this node: from the disk, from the etcd that runs with that data or, while etcd is silent, from
    /// [`BootState::voter`]. `None` if none of them has it.
    pub fn own_data(&self) -> Option<DataOwner> {
        let (cluster_id, member_id) = match (&self.disk, &self.own_etcd) {
            (Fact::Known(DataDir::Present(history)), _) => (history.cluster_id, history.member_id),
            (Fact::Known(_), _) => return None,
            (_, Fact::Known(etcd)) => (etcd.cluster_id, etcd.member_id),
            _ => self.boot_state()?.voter.as_ref().map(|voter| (voter.cluster_id, voter.member_id))?,
        };
        Some(DataOwner { cluster_id, member_id, node: self.me.name.clone() })
    }

    /// Returns the lineage (see [`Lineage`]) of this node's data, which the durable note records; `None` if the note is unknown.
    pub fn own_lineage(&self) -> Option<Lineage> {
        self.last_note().map(|note| note.lineage)
    }

    /// Returns whether OpenShift is known to be deleting the Machine of the node to be added. If the Kubernetes API does not answer, the
    /// Machine counts as one that stays, because that API needs etcd itself. A member that was added wrongly is removed once the API
    /// answers, before the Machine is gone.
    pub fn machine_is_deleted(&self) -> bool {
        self.local.machine_is_deleted == Fact::Known(true)
    }

    /// Returns what the agent stored about etcd in this boot; `None` if the file in `/run` is from another boot.
    pub fn boot_state(&self) -> Option<&BootState> {
        self.boot_memory.known().filter(|memory| memory.boot_id == self.boot_id)
    }

    /// Returns [`BootState::voter`] if the CIB shows this node's claim to run standalone (see [`PublishedState::claims`]).
    ///
    /// If Pacemaker ended and came back in this boot, for example in maintenance, the claim is lost with Pacemaker's attributes.
    /// The peer may have continued without this node while Pacemaker was away, so the stored voter proves nothing.
    pub fn running_voter(&self) -> Option<&RunningVoter> {
        let claims = self.cib.known()?.own_record.as_ref().is_some_and(|record| record.claims);
        self.boot_state()?.voter.as_ref().filter(|_| claims)
    }

    /// Returns [`BootState::voter`] as [`Self::running_voter`] does, but also if the CIB does not answer. The agent decides with
    /// this function whether to keep the stored voter, and never uses it as a proof. Only a CIB that answers shows that the claim
    /// is gone.
    pub fn remembered_voter(&self) -> Option<&RunningVoter> {
        match self.cib {
            Fact::Known(_) => self.running_voter(),
            Fact::Unknown(_) | Fact::Absent | Fact::NotAsked => self.boot_state()?.voter.as_ref(),
        }
    }
}
