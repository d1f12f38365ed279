//! Everything that one round knows. Data only: no handles, no clocks, no secrets.

mod disk;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize};

pub use disk::{Backup, DataDir, History, Room};

use super::fact::Fact;
use super::unstartable;

/// A cluster node's name, as Pacemaker has it. Compared exactly.
pub type NodeName = String;
/// An etcd member's id.
pub type MemberId = u64;

/// What the agent knows when it decides.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Snapshot {
    /// Milliseconds since the action began, and how many it has in all.
    pub elapsed_ms: u64,
    pub budget_ms: u64,
    pub me: NodeAddress,
    /// Absent in a cluster of one node.
    pub peer: Option<NodeAddress>,
    /// This boot of this machine, as the kernel names it.
    pub boot_id: String,
    /// Whether Pacemaker runs us as a promotable clone.
    pub promotable: bool,
    /// How far a learner may be behind the leader, in log entries, to be promoted.
    pub promote_max_lag: u64,
    /// What Pacemaker said about its transition; `None` when the agent was started by hand.
    pub notify: Option<Notify>,
    pub cib: Fact<Cib>,
    /// Whether an earlier action, or the podman that a killed one left behind, still starts or ends the container. All
    /// else was looked at after this.
    #[serde(default)]
    pub launching: Fact<bool>,
    pub container: Fact<Container>,
    /// Whether a process has the data dir's files locked; that process is an etcd, whatever podman says.
    #[serde(default)]
    pub data_in_use: Fact<bool>,
    /// The data dir, read offline; asked only while no etcd runs.
    pub disk: Fact<DataDir>,
    /// The room beside the data dir; asked like `disk`.
    #[serde(default)]
    pub room: Fact<Room>,
    pub note: Fact<Note>,
    /// What this boot remembers, in a file that no reboot survives.
    pub boot_memory: Fact<BootMemory>,
    /// The operator's word that this node may go on alone.
    pub authorisation: Fact<Authorisation>,
    /// What this node tells besides; a decision that was recorded without it knew nothing of it.
    #[serde(default)]
    pub local: Local,
    pub own_etcd: Fact<Etcd>,
    pub peer_etcd: Fact<Etcd>,
    /// Set where the etcd here, or the peer's, answers and does not let this agent know how it stands: that is unknown above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_refuses: Option<Box<NoPermission>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_refuses: Option<Box<NoPermission>>,
    /// A number that no other round of this boot has: see [`Record::nonce`].
    #[serde(default)]
    pub nonce: u64,
}

/// What this node tells besides its etcd and its data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Local {
    /// The address of this node's member.
    pub ip: String,
    /// The revision that OpenShift's sidecar last wrote: published for others, and deciding nothing.
    pub revision: Option<u64>,
    /// What stands in the way of a start; asked only while no etcd of ours runs.
    pub obstacle: Option<Obstacle>,
    /// With what a check failed that an operator asked for besides.
    pub failed_check: Option<String>,
    /// Whether OpenShift is deleting the Machine of the node that is to be added: the peer, or on a joiner itself.
    #[serde(default, deserialize_with = "fact_or_bool")]
    pub machine_is_deleted: Fact<bool>,
    /// How often etcd broke down over the data that is here as it was started plainly; none once it has served from it.
    #[serde(default)]
    pub failed_starts: Option<FailedStarts>,
    /// When the log in the data dir was last written to, in seconds since 1970; for people, and deciding nothing.
    #[serde(default)]
    pub log_written: Option<u64>,
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
    /// When the last of them ended, as podman has it: what tells it from the one before.
    pub last_at: String,
    pub last_words: String,
}

/// What has to go before etcd can be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Obstacle {
    /// kubelet's own etcd runs with our data.
    StaticPod,
    /// Somebody else listens on a port of ours.
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

/// Pacemaker's notify variables: what the transition of this action starts and stops. A snapshot of the transition
/// when it was computed, not live state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Notify {
    pub moment: Moment,
    /// `start`, `stop`, `promote` or `demote`; empty outside the notify action.
    pub operation: String,
    pub active: BTreeSet<NodeName>,
    pub start: BTreeSet<NodeName>,
    pub stop: BTreeSet<NodeName>,
}

/// Which side of an operation a notification is on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    Pre,
    Post,
    #[default]
    Outside,
}

/// The part of the CIB that matters here.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cib {
    /// How Pacemaker sees the peer's machine.
    pub peer_node: PeerNode,
    /// What the peer's operation history says of its agent.
    pub peer_agent: PeerAgent,
    pub own_record: Option<Record>,
    pub peer_record: Option<Record>,
    /// The sole voter, where the cluster runs on one.
    pub standalone_node: Option<NodeName>,
    pub learner_node: Option<NodeName>,
    /// The most forks that any node recorded for good: a node whose own data knows fewer was left behind.
    pub lineage: Lineage,
    /// What this node's own attribute says of that, and the peer's: two forks of one count by two authors are two histories.
    #[serde(default)]
    pub own_lineage: Option<Lineage>,
    #[serde(default)]
    pub peer_lineage: Option<Lineage>,
    /// Whether a cluster was ever recorded here: then two blank disks are a loss, not a beginning.
    pub cluster_recorded: bool,
    /// How many starts in a row Pacemaker counted as failed on this node.
    pub own_start_failures: u64,
    /// How often each operation is counted as failed on this node, by Pacemaker's name for it: `start_0`, `monitor_5000`.
    #[serde(default)]
    pub own_failures: BTreeMap<String, u64>,
    /// The promotion score that this node has.
    pub own_promotion_score: Option<u32>,
    /// The ids that this node published last.
    pub own_identity: Option<Identity>,
    /// The alarms of etcd that this node shows.
    #[serde(default)]
    pub own_alarm: Option<String>,
    /// The node whose data an operator chose where the histories split.
    #[serde(default)]
    pub primary: Option<NodeName>,
    /// What this node published for others, and what others asked of it.
    #[serde(default)]
    pub others: Others,
}

impl Cib {
    /// What is known of the peer's machine: see [`PeerNode::as_confirmed_by`].
    pub fn peer_machine(&self) -> PeerNode {
        self.peer_node.as_confirmed_by(self.peer_agent)
    }

    /// See [`PeerNode::is_beyond_asking`].
    pub fn peer_is_beyond_asking(&self) -> bool {
        self.peer_node.is_beyond_asking(self.peer_agent)
    }
}

impl PeerNode {
    /// What is known of a machine whose agent's history is `agent`: `Down` only where that is confirmed.
    ///
    /// A machine is expected to be down as soon as it asks to shut down, and its resources run on until they are stopped: a
    /// network that parts then leaves both nodes with that word about the other. So Pacemaker's scheduler fences a machine
    /// that is gone as expected where its history shows a resource that was not stopped. A clean shutdown leaves the
    /// successful stop in the history, and fencing erases it.
    #[must_use]
    pub fn as_confirmed_by(self, agent: PeerAgent) -> Self {
        match (self, agent) {
            (Self::Down, PeerAgent::Active | PeerAgent::Starting | PeerAgent::Stopping) => Self::Lost,
            (machine, _) => machine,
        }
    }

    /// Whether asking its etcd is in vain: the machine is off, or nobody knows what has become of it, and a machine that is
    /// off does not even refuse. One that left as expected while its agent's history shows an etcd may serve on, as where
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
    /// `force_new_cluster` on this node and on the peer: an operator, or a program on his behalf, says whose data wins.
    pub force_on_me: bool,
    pub force_on_peer: bool,
    /// `restart_no_leave`: the next stop is half of a restart.
    pub restart_no_leave: bool,
    /// `member_removal_lock`: since when this node says that it left the member list.
    pub removal_lock: Option<String>,
}

/// The ids of a member, as a node publishes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    pub cluster_id: u64,
    pub member_id: MemberId,
}

/// How Pacemaker sees the peer's machine.
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

/// What the peer's operation history says of its agent.
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

/// What a node publishes about its data when it starts, in one write, and takes back by leaving the membership.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Record {
    /// The boot that it was written in.
    pub boot_id: String,
    pub disk: DataDir,
    pub lineage: Lineage,
    /// Whether this node reserves the right to go on alone: it was a running voter in this boot and did not give that
    /// up by a stop. While it claims, only fencing (which ends its boot) lets the peer go on without it.
    pub claims: bool,
    /// Whether this node has moved its data aside to join the peer's cluster, and has nothing of that cluster yet: what it
    /// went on with alone before was given up for the peer's history.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub joins: bool,
    /// Whether an operator gave the peer up by name for this history: see [`Note::gave_up`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gave_up: bool,
    /// Tells this write from every earlier one of this boot. Pacemaker applies what is written in one order on all nodes,
    /// so who finds it in his own CIB finds there all that was written before it, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<u64>,
}

/// How often a new cluster was forced in this history, and by whom last: it tells a fork of the history where ids,
/// terms and indexes can be equal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Lineage {
    pub forks: u64,
    pub by: NodeName,
}

impl Lineage {
    /// Whether this history went on alone beyond what `other` knows, or beside it: as many forks, made by another node.
    pub fn is_beyond(&self, other: &Self) -> bool {
        self.forks > other.forks || (self.forks == other.forks && self.by != other.by)
    }
}

/// A container that runs, as podman tells of it.
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
    /// Where it is not running: its exit code and the last thing that etcd said.
    pub exit: Option<String>,
    /// Where etcd broke down by itself, and names nothing around its data as the cause: when that was, as podman has it.
    #[serde(default)]
    pub broke_down_at: Option<String>,
    /// Where only podman could tell that it runs: what the agent is to write down of it. It decides nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<Found>,
    /// Whether its configuration file would force a new cluster at the next start.
    pub forces_new_cluster: bool,
}

/// The durable note beside the data dir.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Note {
    pub lineage: Lineage,
    /// Set before this node goes on alone: how far its data reached then.
    pub alone_since: Option<Position>,
    /// Set before this member leaves the member list.
    pub left_at: Option<Position>,
    /// Set when this node goes on alone at an operator's word, which gave the peer's own history up by name: when the peer
    /// comes back with one, nobody has to choose between the two any more.
    #[serde(default)]
    pub gave_up: bool,
    /// Set when this node joins, until it votes again: what was moved aside meanwhile may be the last copy but one.
    #[serde(default)]
    pub joins: bool,
}

/// A place in a Raft log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Position {
    pub term: u64,
    pub index: u64,
}

/// What this boot remembers of its etcd; gone after a reboot, by being kept where no reboot reaches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BootMemory {
    pub boot_id: String,
    /// Set once our etcd, as a voter of a cluster with a leader, has been seen in this boot; taken back by a stop
    /// that the peer could see. While it stands, and the claim in the CIB with it, the peer cannot have gone on alone: see
    /// [`Snapshot::running_voter`].
    pub voter: Option<RunningVoter>,
    /// Whether Pacemaker promoted this instance.
    pub promoted: bool,
    /// How many failed starts Pacemaker had counted when our etcd last served.
    #[serde(default)]
    pub start_failures: u64,
}

/// The operator's word, given with `tandem confirm-recovery`: for one use, in one boot, for the data as it was then.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Authorisation {
    pub boot_id: String,
    /// The node that is given up, by name.
    pub lost_node: NodeName,
    pub cluster_id: u64,
    pub member_id: MemberId,
    pub position: Position,
    /// Whether the operator accepts that the lost node went on alone, and that those writes are lost.
    pub accept_loss: bool,
}

/// A voter that was seen running.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RunningVoter {
    pub cluster_id: u64,
    pub member_id: MemberId,
    pub lineage: Lineage,
    /// Whether it was the only voter.
    pub sole: bool,
}

/// What an etcd answers about itself.
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
    /// How large its database is.
    #[serde(default)]
    pub db_bytes: u64,
    /// Alarms and errors that it reports, in its words.
    pub alarms: Vec<String>,
}

/// An etcd whose auth is on, and which knows no user of this agent that may ask what it asks. It lives, and whoever restarts it
/// for that ends what serves.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NoPermission {
    /// The user that etcd takes this agent for; `None` where its certificate has no name.
    pub user: Option<String>,
    /// Whether no majority confirmed a read that it was asked for, which it tries before it looks who asks.
    pub leaderless: bool,
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
    /// Whether this entry is the node at `address`: by its peer URL, exactly.
    pub fn is_at(&self, address: &NodeAddress) -> bool {
        self.peer_urls.contains(&address.peer_url)
    }

    /// Whether the member has ever started.
    pub fn has_started(&self) -> bool {
        !self.name.is_empty()
    }
}

impl Etcd {
    /// The voters of its member list.
    pub fn voters(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| !member.is_learner)
    }

    /// Whether its member list has one voter.
    pub fn has_one_voter(&self) -> bool {
        self.voters().count() == 1
    }

    /// Whether it can accept writes, as far as it knows.
    pub fn is_voter_with_leader(&self) -> bool {
        !self.is_learner && self.leader.is_some()
    }

    /// Whether it leads.
    pub fn leads(&self) -> bool {
        self.leader == Some(self.member_id)
    }

    /// The entry of the node at `address`.
    pub fn member_at(&self, address: &NodeAddress) -> Option<&Member> {
        self.members.iter().find(|member| member.is_at(address))
    }

    /// How far its log reaches.
    pub fn position(&self) -> Position {
        Position { term: self.term, index: self.index }
    }
}

impl Snapshot {
    /// The peer's name, for sentences.
    pub fn peer_name(&self) -> &str {
        self.peer.as_ref().map_or("the peer", |peer| peer.name.as_str())
    }

    /// Whether our etcd serves although it tells nothing of itself: a majority has confirmed a read.
    pub fn serves_unseen(&self) -> bool {
        self.own_refuses.as_ref().is_some_and(|refuses| !refuses.leaderless)
    }

    /// Whether our container runs; unknown counts as running, so that nothing is started twice.
    pub fn container_may_run(&self) -> bool {
        match &self.container {
            Fact::Known(container) => container.running,
            Fact::Absent => false,
            Fact::Unknown(_) | Fact::NotAsked => true,
        }
    }

    /// Whether the container may be started beside us, whatever is seen of it now.
    pub fn may_be_launching(&self) -> bool {
        matches!(self.launching, Fact::Known(true) | Fact::Unknown(_))
    }

    /// The operator's word, where it is of this boot and about this data and this peer.
    pub fn authorised(&self, history: &History) -> Option<&Authorisation> {
        let position = Position { term: history.last_term, index: history.last_index };
        self.authorisation.known().filter(|word| {
            word.boot_id == self.boot_id
                && word.lost_node == self.peer_name()
                && (word.cluster_id, word.member_id) == (history.cluster_id, history.member_id)
                && word.position == position
        })
    }

    /// Whether the cluster knows of a fork that our own data does not: somebody went on without us. Where our own forks are
    /// not known, it may.
    pub fn was_left_behind(&self) -> bool {
        let own = self.own_lineage();
        let is_beyond = |lineage: &Lineage| own.as_ref().is_none_or(|own| lineage.is_beyond(own));
        let recorded = |cib: &Cib| is_beyond(&cib.lineage) || cib.peer_lineage.as_ref().is_some_and(is_beyond);
        self.cib.known().is_some_and(recorded)
    }

    /// Whether this member asked the peer to remove it, and has not voted since. The peer may have that in its log,
    /// whether or not we were told, and is the sole voter then.
    pub fn may_have_left(&self) -> bool {
        self.last_note().is_none_or(|note| note.left_at.is_some())
    }

    /// Whether this node left to its peer or moved its data aside to join it, and has not gone on alone since.
    fn gave_its_data_up(&self) -> bool {
        let gave = |note: &Note| (note.joins || note.left_at.is_some()) && note.alone_since.is_none();
        self.note.known().is_some_and(gave)
    }

    fn gave_up(&self) -> bool {
        self.note.known().is_some_and(|note| note.gave_up)
    }

    /// The durable note: an empty one where none was ever written, and none where it cannot be told.
    pub fn last_note(&self) -> Option<Note> {
        match &self.note {
            Fact::Known(note) => Some(note.clone()),
            Fact::Absent => Some(Note::default()),
            Fact::Unknown(_) | Fact::NotAsked => None,
        }
    }

    /// The lineage of our own data, which is in the note.
    pub fn own_lineage(&self) -> Option<Lineage> {
        self.last_note().map(|note| note.lineage)
    }

    /// Whether the node that is to be added is known to be on its way out. Where the Kubernetes API cannot be asked it counts
    /// as one that stays: that API needs etcd itself, and a node must not stay out of etcd because the API is down. What is
    /// added wrongly then is removed again once the API answers, before the Machine is gone.
    pub fn machine_is_deleted(&self) -> bool {
        self.local.machine_is_deleted == Fact::Known(true)
    }

    /// What this boot remembers, if it was this boot that wrote it.
    pub fn memory(&self) -> Option<&BootMemory> {
        self.boot_memory.known().filter(|memory| memory.boot_id == self.boot_id)
    }

    /// The voter that this boot remembers, while the claim that belongs to it is visible. Where Pacemaker ended and came back
    /// in the same boot (in maintenance, say), the claim went with the attributes of its former life, the peer may have passed
    /// over this node since, and what `/run` remembers proves nothing any more.
    pub fn running_voter(&self) -> Option<&RunningVoter> {
        let claims = self.cib.known()?.own_record.as_ref().is_some_and(|record| record.claims);
        self.memory()?.voter.as_ref().filter(|_| claims)
    }

    /// The record that this node publishes while `etcd`, its own, runs as a voter: the same facts, from the living.
    pub fn living_record(&self, etcd: &Etcd) -> Option<Record> {
        let ids = |learners: bool| {
            etcd.members.iter().filter(|member| member.is_learner == learners).map(|member| member.id).collect()
        };
        let history = History {
            cluster_id: etcd.cluster_id,
            member_id: etcd.member_id,
            last_term: etcd.term,
            last_index: etcd.index,
            commit_index: etcd.index,
            voters: ids(false),
            learners: ids(true),
            has_left: false,
            database_ahead: None,
            damage: Vec::new(),
        };
        Some(Record {
            boot_id: self.boot_id.clone(),
            disk: DataDir::Present(history),
            lineage: self.own_lineage()?,
            claims: true,
            joins: false,
            gave_up: self.gave_up(),
            nonce: None,
        })
    }

    /// The record that this node should be publishing now; none where what it rests on is not known.
    pub fn record(&self) -> Option<Record> {
        let disk = unstartable::usable_disk(self)?;
        Some(Record {
            boot_id: self.boot_id.clone(),
            lineage: self.own_lineage()?,
            // Without data there is nothing to go on with.
            claims: matches!(disk, DataDir::Present(_)) && self.running_voter().is_some() && !self.may_have_left(),
            joins: disk == DataDir::Blank && self.gave_its_data_up(),
            gave_up: self.gave_up(),
            disk,
            nonce: None,
        })
    }
}
