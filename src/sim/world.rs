//! The state of the two machines and of Pacemaker between them: small, without strings, equal where nothing that can
//! still happen differs.

use std::hash::{Hash, Hasher};

use super::intern::Id;
use super::log::Data;
use crate::decide::snapshot::{PeerAgent, PeerNode};
use crate::decide::{Request, snapshot::Moment};

/// Both machines and what is between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct World {
    pub nodes: [Node; 2],
    /// The cluster network. Fencing has its own.
    pub link: bool,
    /// Whether the two Pacemakers are one membership, as far as they know.
    pub joined: bool,
    /// The node whose replica of the CIB stands still.
    pub lagging: Option<u8>,
    /// Whose CIB was written last while they were apart.
    pub newer: Newer,
    /// Ghost: writes that a client saw acknowledged, and those that an operator gave up by name.
    pub acked: u8,
    pub given_up: u8,
    /// Ghost: an operator's word made a second history, or announced one.
    pub overridden: bool,
    /// Which writes were begun, and how many faults are left.
    pub writes: u8,
    pub faults: u8,
}

impl World {
    /// Two machines that have booted and hold no data, and no fault is left.
    pub const BLANK: Self = Self {
        nodes: [Node {
            on: true,
            quorum: true,
            cib: Cib {
                machine: [PeerNode::Online; 2],
                agent: [PeerAgent::NoHistory; 2],
                record: [0; 2],
                standalone: None,
                lineage: (0, 0),
                recorded: [false; 2],
            },
            data: Data { mid: 0, cluster: 0, log: 0, commit: 0, durable: 0, folded: 0 },
            etcd: Run::Off,
            forces: false,
            note: 0,
            memory: 0,
            word: Word::None,
            action: None,
            failed: false,
            unclean: false,
            wanted: Wanted::Running,
        }; 2],
        link: true,
        joined: true,
        lagging: None,
        newer: Newer::Equal,
        acked: 0,
        given_up: 0,
        overridden: false,
        writes: 0,
        faults: 0,
    };
}

/// Of what changes with nearly every move: the few states that follow one state are told apart by it.
impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for Node { cib, data, etcd, note, memory, action, .. } in &self.nodes {
            let word = |parts: [u16; 4]| parts.into_iter().fold(0, |word, part| (word << 16) | u64::from(part));
            let low = |id: Id| (id & 0xffff) as u16;
            let commit = u16::from_le_bytes([data.commit, data.durable]);
            state.write_u64(word([low(data.log), commit, low(*note), low(*memory)]));
            let (request, progress, plan) =
                action.map_or((u8::MAX, 0, None), |action| (action.request as u8, action.progress, action.plan));
            let (plan, done) = plan.unwrap_or((Id::MAX, 0));
            let [progress, etcd] = [low(progress) << 8 | u16::from(done), *etcd as u16];
            state.write_u64(word([low(plan), progress, u16::from(request), etcd]));
            let [machine, agent] = [cib.machine.map(|one| one as u8), cib.agent.map(|one| one as u8)];
            let seen = [machine, agent].map(u16::from_le_bytes);
            state.write_u64(word([low(cib.record[0]), low(cib.record[1]), seen[0], seen[1]]));
        }
        state.write_u32(u32::from_le_bytes([self.link.into(), self.joined.into(), self.writes, self.faults]));
    }
}

/// Which of two CIBs wins when they meet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Newer {
    #[default]
    Equal,
    Of(u8),
    Diverged,
}

/// One machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about a machine")]
pub struct Node {
    pub on: bool,
    /// Whether Pacemaker may act here: it has seen its peer since it booted, or an operator said so.
    pub quorum: bool,
    pub cib: Cib,
    pub data: Data,
    pub etcd: Run,
    /// Whether etcd's configuration file still says "force".
    pub forces: bool,
    /// Numbers of the durable note and of this boot's memory; 0 is none.
    pub note: Id,
    pub memory: Id,
    pub word: Word,
    pub action: Option<Action>,
    /// The last operation failed: Pacemaker stops the instance and starts it again.
    pub failed: bool,
    /// A stop failed: Pacemaker fences the machine.
    pub unclean: bool,
    pub wanted: Wanted,
}

impl Node {
    /// Whether its agent has decided and not done yet what it decided.
    pub fn has_plan(&self) -> bool {
        self.action.is_some_and(|action| action.plan.is_some())
    }
}

/// What the administrator wants of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Wanted {
    #[default]
    Running,
    Standby,
    Shutdown,
}

/// The operator's word on a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Word {
    #[default]
    None,
    /// About the data as it is.
    Given { accept_loss: bool },
    /// About data that has changed since.
    Outdated { accept_loss: bool },
}

/// etcd's process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Run {
    #[default]
    Off,
    /// Runs and never had a leader: it answers nobody.
    Fresh,
    /// Had a leader and has none.
    Leaderless,
    Follower,
    Leader,
}

impl Run {
    /// Whether the process lives.
    pub fn is_on(self) -> bool {
        self != Self::Off
    }

    /// Whether it has a leader.
    pub fn is_led(self) -> bool {
        matches!(self, Self::Follower | Self::Leader)
    }
}

/// One node's replica of the CIB.
#[derive(Clone, Copy, Debug, Eq)]
pub struct Cib {
    pub machine: [PeerNode; 2],
    pub agent: [PeerAgent; 2],
    /// Numbers of the records; 0 is none.
    pub record: [Id; 2],
    pub standalone: Option<u8>,
    /// The most forks that any node recorded and, as 1 or 2, by whom last; 0 is nobody. Each node has an attribute of
    /// its own, which never goes back: the highest is what is read.
    pub lineage: (u8, u8),
    /// Whether a node has ever published its member's ids.
    pub recorded: [bool; 2],
}

/// Field by field: arrays are compared by a loop.
impl PartialEq for Cib {
    fn eq(&self, other: &Self) -> bool {
        let fields = |cib: &Self| {
            let Self { machine: [m0, m1], agent: [a0, a1], record: [r0, r1], recorded: [i0, i1], .. } = *cib;
            ((r0, r1, a0, a1, m0, m1), cib.standalone, cib.lineage, (i0, i1))
        };
        fields(self) == fields(other)
    }
}

/// An action of the agent that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Action {
    pub request: Request,
    pub notify: Vars,
    pub progress: Id,
    /// The number of the plan whose effects are being performed, and how many of them are done; none between rounds.
    pub plan: Option<(Id, u8)>,
}

/// The notify variables; sets of nodes are bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Vars {
    /// Whether there are any: a recurring monitor has none.
    pub given: bool,
    pub moment: Moment,
    pub operation: Operation,
    pub active: u8,
    pub start: u8,
    pub stop: u8,
    /// Whether starts have been in vain so often that Pacemaker's count of them says so.
    pub in_vain: bool,
}

/// The operation that a notification is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Operation {
    #[default]
    None,
    Start,
    Stop,
}
