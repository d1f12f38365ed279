//! The state of the two machines and of Pacemaker between them. It is small and has no strings: it contains the numbers
//! of large values, and tables ([`crate::sim::store::intern`]) contain the values.

use std::hash::{Hash, Hasher};

pub use super::action::{Action, Vars};
pub use super::blind::Blind;
pub use super::kept::KeptHistory;
use super::log::Data;
pub use super::lone_boot_state::{Bmc, Lone, Said};
use crate::decide::evidence::{PeerAgent, PeerNode};
use crate::sim::store::intern::Id;

/// The names of the two machines.
pub const NAMES: [&str; 2] = ["node1", "node2"];
/// The bit of all earlier writes, which both nodes hold.
pub const HISTORY: u8 = 0x80;

/// Both machines, and the rest of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct World {
    pub nodes: [Node; 2],
    /// The cluster network. Fencing has its own.
    pub link: bool,
    /// True if the two Pacemakers are one membership, as far as they know.
    pub joined: bool,
    /// The node with a replica of the CIB that lags.
    pub lagging: Option<u8>,
    /// The node that wrote its CIB last while the two were apart.
    pub newer: Newer,
    /// Ghost variables, which no decision reads: writes that a client saw acknowledged, and those that an operator gave
    /// up by name.
    pub acked: u8,
    pub given_up: u8,
    /// Ghost, one bit per node: a confirmation on this node made a second history, or announced one.
    pub words: u8,
    /// Ghost, one bit per node: its peer has such a confirmation, and since then this node's agent has not decided with
    /// the peer's record.
    pub unheard: u8,
    /// The writes that were begun (`writes`), and the number of faults that are left (`faults`).
    pub writes: u8,
    pub faults: u8,
    /// Ghost: a disk was put back or copied, and an operator may have to choose.
    pub tampered: bool,
    /// True if the third voter's etcd runs and reaches the running nodes. Always false without a third voter.
    pub third_voter: bool,
    /// True for each machine that users do not reach. If the two reach each other, users reach each through the other.
    pub lost_to_users: [bool; 2],
    /// True for each node with a delay that is over: that of the hand-over in its memory, or the patience with a lost
    /// leader.
    pub delay_over: [bool; 2],
    /// True if the two etcds do not reach each other, nor an agent its peer's etcd, while Pacemaker does.
    pub etcd_parted: bool,
    /// The history that each node's parameters keep, if there is a primary.
    pub kept: [KeptHistory; 2],
    /// The answer of each machine's BMC (`bmc`), and the progress of each node's lone boot (`lone`).
    pub bmc: [Bmc; 2],
    pub lone: [Lone; 2],
}

impl World {
    /// Two machines that have booted and hold no data, with no fault left.
    pub const BLANK: Self = Self {
        nodes: [Node {
            on: true,
            quorum: true,
            cib: Cib {
                machine: [PeerNode::Online; 2],
                agent: [PeerAgent::NoHistory; 2],
                record: [0; 2],
                standalone: None,
                lineage: [(0, 0); 2],
                recorded: [false; 2],
                score: [false; 2],
                told: [false; 2],
                primary: None,
                reached: CibReached::NEVER,
                said: Said::Nothing,
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
            promoted: false,
            blind: Blind::None,
            led: false,
            lingers: false,
            erased: false,
            asked: false,
            stack: Stack::Up,
            launching: None,
            torn: false,
            failures: 0,
            damage: Damage::None,
        }; 2],
        link: true,
        joined: true,
        lagging: None,
        newer: Newer::Equal,
        acked: 0,
        given_up: 0,
        words: 0,
        unheard: 0,
        writes: 0,
        faults: 0,
        tampered: false,
        third_voter: false,
        lost_to_users: [false; 2],
        delay_over: [false; 2],
        etcd_parted: false,
        kept: [KeptHistory::Primarys; 2],
        bmc: [Bmc::Honest; 2],
        lone: [Lone::Looks; 2],
    };
}

impl World {
    /// Returns whether the two machines' etcds reach each other.
    pub fn etcds_meet(&self) -> bool {
        self.link && !self.etcd_parted
    }

    /// Returns whether operators made two histories, or left none, so that an operator has to choose.
    pub fn has_been_overridden(&self) -> bool {
        self.words != 0
    }

    /// Returns whether an operator, or a program in their place, has node `n` run without its peer, by a confirmation
    /// or by `force_new_cluster`. The attribute does not name the writes that are given up. So it counts only if the
    /// CIB has no fork that `n` has missed.
    pub fn is_told_to_go_on(&self, n: usize, was_left_behind: bool) -> bool {
        let Node { word, cib: Cib { told, .. }, .. } = self.nodes[n];
        word != Word::None || (told[n] && !told[1 - n] && !was_left_behind)
    }

    /// Records that a confirmation lets node `n` run without its peer.
    pub fn override_by_word(&mut self, n: usize) {
        self.words |= 1 << n;
        self.unheard |= 1 << (1 - n);
    }

    /// Records that there is one history again.
    pub fn settle_histories(&mut self) {
        (self.words, self.unheard) = (0, 0);
    }
}

/// Hashes only the fields that nearly every move changes, which is enough to distinguish the few successors of one
/// state. The other fields are named. A new field does not compile until its author has decided about it.
impl Hash for World {
    #[expect(clippy::too_many_lines, reason = "each field is named")]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self {
            nodes,
            link,
            joined,
            lagging: _,
            newer: _,
            acked: _,
            given_up: _,
            words: _,
            unheard: _,
            writes,
            faults,
            tampered: _,
            third_voter: _,
            lost_to_users: _,
            delay_over: _,
            etcd_parted: _,
            kept: _,
            bmc: _,
            lone: _,
        } = self;
        for node in nodes {
            let Node {
                cib,
                data,
                etcd,
                note,
                memory,
                action,
                on: _,
                quorum: _,
                forces: _,
                word: _,
                failed: _,
                unclean: _,
                wanted: _,
                promoted: _,
                blind: _,
                led: _,
                lingers: _,
                erased: _,
                asked: _,
                stack: _,
                launching: _,
                torn: _,
                failures: _,
                damage: _,
            } = node;
            let word = |parts: [u16; 4]| parts.into_iter().fold(0, |word, part| (word << 16) | u64::from(part));
            let low = |id: Id| (id & 0xffff) as u16;
            let Data { mid: _, cluster: _, log, commit, durable, folded: _ } = *data;
            state.write_u64(word([low(log), u16::from_le_bytes([commit, durable]), low(*note), low(*memory)]));
            let (request, progress, plan) =
                action.map_or((u8::MAX, 0, None), |action| (action.request as u8, action.progress, action.plan));
            let (plan, done) = plan.unwrap_or((Id::MAX, 0));
            let [progress, etcd] = [low(progress) << 8 | u16::from(done), *etcd as u16];
            state.write_u64(word([low(plan), progress, u16::from(request), etcd]));
            let Cib {
                machine,
                agent,
                record,
                standalone: _,
                lineage: _,
                recorded: _,
                score: _,
                told: _,
                primary: _,
                reached: _,
                said: _,
            } = cib;
            let seen = [machine.map(|one| one as u8), agent.map(|one| one as u8)].map(u16::from_le_bytes);
            state.write_u64(word([low(record[0]), low(record[1]), seen[0], seen[1]]));
        }
        state.write_u32(u32::from_le_bytes([(*link).into(), (*joined).into(), *writes, *faults]));
    }
}

/// The CIB that wins when two meet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Newer {
    #[default]
    Equal,
    Of(u8),
    Diverged,
}

/// A machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about a machine")]
pub struct Node {
    pub on: bool,
    /// True if Pacemaker may act here: it has seen its peer since it booted, or an operator unblocked it.
    pub quorum: bool,
    pub cib: Cib,
    pub data: Data,
    pub etcd: Run,
    /// True if etcd's configuration file still has "force".
    pub forces: bool,
    /// The numbers of the durable note and of this boot's memory. 0 is none.
    pub note: Id,
    pub memory: Id,
    pub word: Word,
    pub action: Option<Action>,
    /// True if the last operation failed: Pacemaker stops the instance and starts it again.
    pub failed: bool,
    /// True if a stop failed: Pacemaker fences the machine.
    pub unclean: bool,
    pub wanted: Wanted,
    /// True if the peer knows that this node is to shut down: Pacemaker there expects it to leave.
    pub asked: bool,
    pub stack: Stack,
    /// A start of etcd that outlived its agent.
    pub launching: Option<Mode>,
    /// True if the last acknowledged write was not on disk when the power was cut.
    pub torn: bool,
    /// The number of failed starts that Pacemaker has counted, or [`BANNED`].
    pub failures: u8,
    pub damage: Damage,
    /// True if Pacemaker has promoted the instance.
    pub promoted: bool,
    pub blind: Blind,
    /// True if etcd has had a leader since its agent published that it runs standalone, while the agent waits for the
    /// CIB to return that record. A real etcd has another term then.
    pub led: bool,
    /// True if etcd leads by the vote of a vote proxy that has given up since. It acknowledges nothing, and has not
    /// noticed yet.
    pub lingers: bool,
    /// True if Pacemaker has erased this node's record from the CIB. The attribute manager still has it, and in the
    /// model the node's own replica.
    pub erased: bool,
}

impl Node {
    /// Returns whether the agent has decided and not performed all effects yet.
    pub fn has_plan(&self) -> bool {
        self.action.is_some_and(|action| action.plan.is_some())
    }
}

/// The value of `failures` once Pacemaker has counted as many failed starts as it allows. It starts no more on the node
/// until an operator cleans up.
pub const BANNED: u8 = 3;

/// The state of a node's data after a power cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Damage {
    #[default]
    None,
    /// etcd cannot start from the data.
    Hidden,
    /// All quick tries to start from the data have failed, and the count next to the data has that.
    Counted,
    /// The data is whole, and its disk is not mounted.
    NotMounted,
}

/// The state in which the operator wants a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Wanted {
    #[default]
    Running,
    Standby,
    Shutdown,
}

/// The state of Pacemaker and Corosync on a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Stack {
    #[default]
    Up,
    /// Ended in good order, in maintenance. Their resources run on, and Pacemaker fences no node for it.
    Ended,
    Killed,
}

/// The operator's confirmation on a node (`tandem confirm-recovery`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Word {
    #[default]
    None,
    /// A confirmation about the data as it is. With `node_is_on`, no BMC has reported the other node as off, because
    /// Pacemaker knew better or the operator named the node.
    Given { accept_loss: bool, node_is_on: bool },
    /// A confirmation about data that has changed since.
    Outdated { accept_loss: bool },
}

/// The state of etcd's process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Run {
    #[default]
    Off,
    /// Runs and never had a leader, so it does not answer.
    Fresh,
    /// Had a leader and has none.
    Leaderless,
    Follower,
    Leader,
}

impl Run {
    /// Returns whether the process runs.
    pub fn is_on(self) -> bool {
        self != Self::Off
    }

    /// Returns whether etcd has a leader.
    pub fn is_led(self) -> bool {
        matches!(self, Self::Follower | Self::Leader)
    }
}

/// The mode in which etcd is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    Normally,
    Bootstrap,
    /// Starts as the only voter of a new cluster.
    Force,
    /// Starts as a learner of a cluster. The configuration names this number of members.
    Join {
        members: usize,
    },
}

/// The position that etcd has reached, as the leader published it last. The later of two compares greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CibReached {
    pub forks: u8,
    pub term: u8,
    /// 0 before the first publication.
    pub index: u8,
    /// True if there were two voters.
    pub is_redundant: bool,
}

impl CibReached {
    pub const NEVER: Self = Self { forks: 0, term: 0, index: 0, is_redundant: false };
}

/// A node's replica of the CIB.
#[derive(Clone, Copy, Debug, Eq)]
pub struct Cib {
    pub machine: [PeerNode; 2],
    pub agent: [PeerAgent; 2],
    /// The numbers of the records. 0 is none.
    pub record: [Id; 2],
    pub standalone: Option<u8>,
    /// The number of forks that each node has recorded, and the node that made the last one, as 1 or 2. (0, 0) is none.
    pub lineage: [(u8, u8); 2],
    /// True if the node has published its member's ids.
    pub recorded: [bool; 2],
    /// True if the node may be promoted, by the score that its agent sets.
    pub score: [bool; 2],
    /// `force_new_cluster`: true if an operator, or a program for the operator, has set it for this node's data.
    pub told: [bool; 2],
    /// `etcd_primary`: the node that an operator chose after the histories had split. Its data counts.
    pub primary: Option<u8>,
    /// `etcd_reached`. Only with `--put-back`.
    pub reached: CibReached,
    /// `etcd_redundancy`. Only with `--lone-boot`.
    pub said: Said,
}

impl Cib {
    /// Returns the most forks that any node has recorded.
    pub fn most_forks(&self) -> (u8, u8) {
        let [one, other] = self.lineage;
        one.max(other)
    }
}

/// Written by hand because it is faster: derived code compares arrays in a loop.
impl PartialEq for Cib {
    fn eq(&self, other: &Self) -> bool {
        let fields = |cib: &Self| {
            let Self { machine, agent, record, standalone, lineage, recorded, score, told, primary, reached, said } =
                *cib;
            let ([m0, m1], [a0, a1], [r0, r1], [i0, i1]) = (machine, agent, record, recorded);
            let ([s0, s1], [t0, t1], [l0, l1]) = (score, told, lineage);
            ((r0, r1, a0, a1, m0, m1), standalone, (l0, l1), (i0, i1), (s0, s1, t0, t1, primary, reached, said))
        };
        fields(self) == fields(other)
    }
}
