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

/// A cluster node's name, as Pacemaker has it. Compared exactly.
pub type NodeName = String;
/// An etcd member's id.
pub type MemberId = u64;

/// Everything that the agent knows when it decides.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Evidence {
    /// Milliseconds since the action began, and how many it has in all.
    pub elapsed_ms: u64,
    pub budget_ms: u64,
    pub me: NodeAddress,
    /// Absent in a cluster of one node.
    pub peer: Option<NodeAddress>,
    /// This boot of this machine, as the kernel names it.
    pub boot_id: String,
    /// True if Pacemaker runs the agent as a promotable clone.
    pub promotable: bool,
    /// The largest lag behind the leader, in log entries, at which a learner is promoted.
    pub promote_max_lag: u64,
    /// The notification that Pacemaker sent with this action; `None` when the agent was started by hand.
    pub notify: Option<Notify>,
    pub cib: Fact<Cib>,
    /// True while an earlier action, or the podman that a killed action left behind, still starts or ends the container. All
    /// other facts were observed after this one.
    #[serde(default)]
    pub launching: Fact<bool>,
    pub container: Fact<Container>,
    /// True while a process has the data dir's files locked. That process is an etcd, whatever podman reports.
    #[serde(default)]
    pub data_in_use: Fact<bool>,
    /// The data dir, read offline; asked only while no etcd runs.
    pub disk: Fact<DataDir>,
    /// The free space and the backups next to the data dir; asked like `disk`.
    #[serde(default)]
    pub room: Fact<Room>,
    pub note: Fact<DurableState>,
    /// The memory of this boot, in a file that no reboot survives.
    pub boot_memory: Fact<BootState>,
    /// The operator's confirmation that this node may run standalone.
    // Files of decisions have this name for it from the first version on.
    #[serde(rename = "authorisation")]
    pub confirmation: Fact<Confirmation>,
    /// Other facts of this node. Decisions that were recorded before there was this field have none.
    #[serde(default)]
    pub local: Local,
    pub own_etcd: Fact<Etcd>,
    pub peer_etcd: Fact<Etcd>,
    /// Set where etcd here, or on the peer, answers but refuses its state to this agent; that state is unknown above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_refuses: Option<Box<NoPermission>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_refuses: Option<Box<NoPermission>>,
    /// The answers of our etcd without a leader. They are asked where a vote proxy may vote for a peer that is confirmed
    /// off. They are also asked where this boot remembers a voter next to others, because three may vote now and a majority
    /// is awaited.
    #[serde(default, skip_serializing_if = "Fact::is_not_asked")]
    pub own_leaderless: Fact<Leaderless>,
    /// The way in which a survivor continues. Decisions that were recorded before there was a choice restarted etcd.
    #[serde(default, skip_serializing_if = "is_default")]
    pub recovery: Recovery,
    /// The node that is to lead, where a parameter names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leading: Option<Box<Leading>>,
    /// The measured slowness of this machine; zero where it is fast.
    /// What a node that boots without its peer finds out. Only `tandem lone-boot` asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lone_boot: Option<Box<LoneBoot>>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub pace: Pace,
    /// A number that no other round of this boot has: see [`PublishedState::nonce`].
    #[serde(default)]
    pub nonce: u64,
}

/// The way in which the survivor of a pair comes to run standalone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recovery {
    /// etcd is stopped, and a new cluster is forced from its data.
    #[default]
    Restart,
    /// etcd runs on, and a vote proxy casts the vote of the member that is off; on the releases that this was tested with.
    #[serde(rename = "stand_in")]
    VoteProxy,
    /// The same on every release.
    #[serde(rename = "stand_in_untested")]
    VoteProxyUntested,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Facts of this node other than its etcd and its data: its address, obstacles to a start, OpenShift's view.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Local {
    /// The address of this node's member.
    pub ip: String,
    /// The revision that OpenShift's sidecar last wrote: published for others, and deciding nothing.
    pub revision: Option<u64>,
    /// The UUID that this machine's firmware reports, where the parameters allow a lone boot: the peer compares it with what a BMC reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_uuid: Option<String>,
    /// The address that the etcd which runs was started with, where `node_ip_map` gives this node another one by now.
    #[serde(default)]
    pub runs_at: Option<String>,
    /// The obstacle to a start; asked only while no etcd of ours runs.
    pub obstacle: Option<Obstacle>,
    /// The error of a failed check that an operator asked for in addition.
    pub failed_check: Option<String>,
    /// True if OpenShift is deleting the Machine of the node to be added: the peer's, or on a joiner its own.
    #[serde(default, deserialize_with = "fact_or_bool")]
    pub machine_is_deleted: Fact<bool>,
    /// The failed plain starts from the data that is here; `None` once etcd has served from it.
    #[serde(default)]
    pub failed_starts: Option<FailedStarts>,
    /// Time of the last write to the log in the data dir, in seconds since 1970. It is for operators, and decides nothing.
    #[serde(default)]
    pub log_written: Option<u64>,
    /// The image that etcd runs from; asked by a monitor, where this node has not published it yet or the parameters name another one.
    #[serde(default, skip_serializing_if = "Fact::is_not_asked")]
    pub image: Fact<RunningImage>,
}

/// Decisions that were recorded before this was a fact have a plain truth value.
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

/// Plain starts of etcd, in a row, that it broke down in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FailedStarts {
    pub count: u64,
    /// Time at which the last of them ended, as podman has it. It distinguishes that start from the one before.
    pub last_at: String,
    pub last_words: String,
}

/// Obstacle that has to go before etcd can be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Obstacle {
    /// kubelet's own etcd runs with our data.
    StaticPod,
    /// Another process listens on a port of ours.
    PortTaken(u16),
}

/// A node and where its etcd is reached.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeAddress {
    pub name: NodeName,
    /// The URL under which the members reach it, e.g. `https://192.0.2.1:2380`.
    pub peer_url: String,
    /// The URL under which clients reach it.
    pub client_url: String,
}

/// Pacemaker's notify variables: what the transition of this action starts and stops, as it was when the transition was
/// computed, not as it is now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Notify {
    pub moment: Moment,
    pub operation: Operation,
    pub active: BTreeSet<NodeName>,
    pub start: BTreeSet<NodeName>,
    pub stop: BTreeSet<NodeName>,
}

/// Operation that a notification is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Nothing: this is no notification.
    #[default]
    #[serde(rename = "")]
    None,
    Start,
    Stop,
    Promote,
    Demote,
}

/// Side of the operation that a notification is on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    Pre,
    Post,
    #[default]
    Outside,
}

impl Evidence {
    /// Returns the peer's name, for sentences.
    pub fn peer_name(&self) -> &str {
        self.peer.as_ref().map_or("the peer", |peer| peer.name.as_str())
    }

    /// Returns the node that keeps its history where two histories meet, by this node's parameters.
    pub fn preferred(&self) -> Option<&NodeName> {
        self.leading.as_deref().filter(|leading| leading.keeps_its_history)?.primary.as_ref()
    }

    /// Returns whether our etcd serves although it refuses its state to this agent: a majority has confirmed a read.
    pub fn serves_unseen(&self) -> bool {
        self.own_refuses.as_ref().is_some_and(|refuses| !refuses.leaderless)
    }

    /// Returns whether our etcd has a leader, by its own answer or a majority's.
    pub fn has_a_leader(&self) -> bool {
        self.serves_unseen() || self.own_etcd.known().is_some_and(|etcd| etcd.leader.is_some())
    }

    /// Returns whether our container runs. Unknown counts as running, so that nothing is started twice.
    pub fn container_may_run(&self) -> bool {
        match &self.container {
            Fact::Known(container) => container.running,
            Fact::Absent => false,
            Fact::Unknown(_) | Fact::NotAsked => true,
        }
    }

    /// Returns whether another action may be starting the container now, whatever was observed of it.
    pub fn may_be_launching(&self) -> bool {
        matches!(self.launching, Fact::Known(true) | Fact::Unknown(_))
    }

    /// Returns why the state of our etcd is unknown.
    pub fn own_silence(&self) -> &str {
        if self.own_etcd.is_absent() { "nothing listens on its client port" } else { self.own_etcd.why_unknown() }
    }

    /// Returns the operator's confirmation, where it is of this boot and about this data and this peer.
    pub fn confirmation_for(&self, history: &History) -> Option<&Confirmation> {
        let position = LogPosition { term: history.last_term, index: history.last_index };
        self.confirmation.known().filter(|word| {
            word.boot_id == self.boot_id
                && word.lost_node == self.peer_name()
                && (word.cluster_id, word.member_id) == (history.cluster_id, history.member_id)
                && word.position == position
        })
    }

    /// Returns whether the cluster records a fork that our own data does not have: another node continued without this one.
    /// Where our own forks are not known, this returns true.
    pub fn was_left_behind(&self) -> bool {
        let own = self.own_lineage();
        let is_beyond = |lineage: &Lineage| own.as_ref().is_none_or(|own| lineage.is_beyond(own));
        let recorded = |cib: &Cib| is_beyond(&cib.lineage) || cib.peer_lineage.as_ref().is_some_and(is_beyond);
        self.cib.known().is_some_and(recorded)
    }

    /// Returns whether this member asked the peer to remove it, and has not voted since. The peer may have that removal in
    /// its log even if its answer was lost, and is the sole voter then.
    pub fn may_have_left(&self) -> bool {
        self.last_note().is_none_or(|note| note.left_at.is_some())
    }

    /// Returns the durable note: an empty one where none was ever written, and none where it is not known. A note about
    /// other data proves nothing: it counts as the note of data that knows no fork and may have left.
    pub fn last_note(&self) -> Option<DurableState> {
        match &self.note {
            Fact::Known(note) if self.is_about_our_data(note) => Some(note.clone()),
            Fact::Known(_) => Some(DurableState { left_at: Some(LogPosition::default()), ..DurableState::default() }),
            Fact::Absent => Some(DurableState::default()),
            Fact::Unknown(_) | Fact::NotAsked => None,
        }
    }

    /// Returns whether a note is about the data that is here. Where no data is, it is about what was. Data of another cluster is a
    /// snapshot that was restored: the note is about the node then.
    fn is_about_our_data(&self, note: &DurableState) -> bool {
        let (Some(of), Some(own)) = (&note.of, self.own_data()) else { return true };
        of.cluster_id != own.cluster_id || *of == own
    }

    /// Returns whether the note is known to be about other data than what is here.
    pub fn has_another_ones_note(&self) -> bool {
        self.note.known().is_some_and(|note| !self.is_about_our_data(note))
    }

    /// Names the data that is here, as far as it is known: by the disk, or by the etcd that runs from it. While that is silent, this
    /// boot may remember it.
    pub fn own_data(&self) -> Option<DataOwner> {
        let (cluster_id, member_id) = match (&self.disk, &self.own_etcd) {
            (Fact::Known(DataDir::Present(history)), _) => (history.cluster_id, history.member_id),
            (Fact::Known(_), _) => return None,
            (_, Fact::Known(etcd)) => (etcd.cluster_id, etcd.member_id),
            _ => self.boot_state()?.voter.as_ref().map(|voter| (voter.cluster_id, voter.member_id))?,
        };
        Some(DataOwner { cluster_id, member_id, node: self.me.name.clone() })
    }

    /// Returns the lineage of our own data, which is in the note.
    pub fn own_lineage(&self) -> Option<Lineage> {
        self.last_note().map(|note| note.lineage)
    }

    /// Returns whether the node to be added is known to be on its way out. A Kubernetes API that cannot be asked counts as a
    /// node that stays, because that API needs etcd itself. A member that is added wrongly is removed again once the API
    /// answers, before the Machine is gone.
    pub fn machine_is_deleted(&self) -> bool {
        self.local.machine_is_deleted == Fact::Known(true)
    }

    /// Returns the memory of this boot, if this boot wrote it.
    pub fn boot_state(&self) -> Option<&BootState> {
        self.boot_memory.known().filter(|memory| memory.boot_id == self.boot_id)
    }

    /// Returns the voter that this boot remembers, while the claim that belongs to it is visible. Pacemaker may have ended
    /// and come back in the same boot (in maintenance, say). Then the claim went with the attributes of its former life, the
    /// peer may have continued without this node, and the memory in `/run` proves nothing any more.
    pub fn running_voter(&self) -> Option<&RunningVoter> {
        let claims = self.cib.known()?.own_record.as_ref().is_some_and(|record| record.claims);
        self.boot_state()?.voter.as_ref().filter(|_| claims)
    }

    /// Returns the same for what is kept, not for what is proved. Where the CIB does not answer, it is unknown whether the
    /// claim is gone. A memory given up because of that would be missed when the peer is lost.
    pub fn remembered_voter(&self) -> Option<&RunningVoter> {
        match self.cib {
            Fact::Known(_) => self.running_voter(),
            Fact::Unknown(_) | Fact::Absent | Fact::NotAsked => self.boot_state()?.voter.as_ref(),
        }
    }
}
