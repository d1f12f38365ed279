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

/// The names of the model's two machines.
pub const NAMES: [&str; 2] = ["node1", "node2"];
/// The bit, in a set of writes, that represents all writes from before the initial state. Both nodes hold these writes.
pub const HISTORY: u8 = 0x80;

/// A whole state of the model: both machines, and the networks and other facts between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct World {
    pub nodes: [Node; 2],
    /// True if the cluster network works. Fencing has a network of its own.
    pub link: bool,
    /// True if the two nodes are in one Pacemaker membership, as far as Pacemaker has noticed.
    pub joined: bool,
    /// The node with the replica of the CIB that lags; `None` if neither lags.
    pub lagging: Option<u8>,
    /// The node that last wrote to its CIB while the two nodes were not connected.
    pub newer: Newer,
    /// The writes that a client saw acknowledged. Only invariants read them.
    pub acked: u8,
    /// The acknowledged writes that an operator gave up. Only invariants read them.
    pub given_up: u8,
    /// One bit per node. It is set if this node's history is to replace the other node's, by an operator's decision or by
    /// `two_histories=primary`. Writes that only the other node holds are given up in that case.
    /// With both bits set, an operator has to choose: both histories continued, or no voter's data is left. Only invariants read the bits.
    pub words: u8,
    /// One bit per node. It is set together with the peer's bit in `words`, and until this node's agent has decided with the peer's record.
    /// Only invariants read the bits.
    pub unheard: u8,
    /// The set of writes that clients have begun.
    pub writes: u8,
    /// The number of faults that may still happen.
    pub faults: u8,
    /// True if a disk was put back or copied, and an operator may have to choose because of it. Only invariants read it.
    pub tampered: bool,
    /// True if the third voter's etcd runs and both nodes reach it. It is always false in a search without a third voter.
    pub third_voter: bool,
    /// True for each machine that users do not reach directly. While the two machines reach each other, users reach such a machine through
    /// the other one.
    pub lost_to_users: [bool; 2],
    /// True for each node with a delay that is over. It is the delay before a hand-over, or that of a time without a leader.
    pub delay_over: [bool; 2],
    /// True if the two etcds do not reach each other while Pacemaker's network works. No agent reaches its peer's etcd in that case.
    pub etcd_parted: bool,
    /// The history that each node's parameters keep, in a search with a primary.
    pub kept: [KeptHistory; 2],
    /// The way in which each machine's BMC answers.
    pub bmc: [Bmc; 2],
    /// The progress of `tandem lone-boot` on each node.
    pub lone: [Lone; 2],
}

impl World {
    /// A state of two machines that have booted and hold no data. No fault may happen any more.
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
    /// Returns whether the network lets the two machines' etcds reach each other.
    pub fn etcds_meet(&self) -> bool {
        self.link && !self.etcd_parted
    }

    /// Returns whether an operator has to choose, because operators' decisions have made two histories or have left none.
    pub fn has_been_overridden(&self) -> bool {
        self.words != 0
    }

    /// Returns whether an operator lets node `n` run without its peer, by a confirmation or by the attribute `force_new_cluster`. That
    /// attribute does not name the writes that are given up. So it counts only if `n` knows every forced new cluster in the CIB.
    pub fn is_told_to_go_on(&self, n: usize, was_left_behind: bool) -> bool {
        let Node { word, cib: Cib { told, .. }, .. } = self.nodes[n];
        word != Word::None || (told[n] && !told[1 - n] && !was_left_behind)
    }

    /// Records that an operator's confirmation lets node `n` run without its peer.
    pub fn override_by_word(&mut self, n: usize) {
        self.words |= 1 << n;
        self.unheard |= 1 << (1 - n);
    }

    /// Records that the two nodes have one history again.
    pub fn settle_histories(&mut self) {
        (self.words, self.unheard) = (0, 0);
    }
}

/// Hashes only the fields that nearly every move changes. This is enough to distinguish the few successors of one state. The code names all
/// other fields, too. So a new field does not compile until its author has decided whether to hash it.
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

/// The replica of the CIB that replaces the other one when the two nodes join again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Newer {
    #[default]
    Equal,
    Of(u8),
    Diverged,
}

/// The state of one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about a machine")]
pub struct Node {
    pub on: bool,
    /// True if Pacemaker may run actions on this node: the node has seen its peer since it booted, or an operator unblocked the quorum.
    pub quorum: bool,
    pub cib: Cib,
    pub data: Data,
    pub etcd: Run,
    /// True if etcd's configuration file on this node still has the flag that forces a new cluster.
    pub forces: bool,
    /// The number of the durable state; 0 means none.
    pub note: Id,
    /// The number of the facts about etcd that the agent stored in this boot (`BootState`); 0 means none.
    pub memory: Id,
    pub word: Word,
    pub action: Option<Action>,
    /// True if the agent's last operation failed. Because of the failure, Pacemaker stops the instance and starts it again.
    pub failed: bool,
    /// True if a stop failed on this node. Because of the failure, Pacemaker fences the machine.
    pub unclean: bool,
    pub wanted: Wanted,
    /// True if the peer's Pacemaker knows that this node shuts down, and expects it to leave.
    pub asked: bool,
    pub stack: Stack,
    /// The mode of a start of etcd that continues although its agent was killed; `None` if there is no such start.
    pub launching: Option<Mode>,
    /// True if the power was cut before the last acknowledged write was on disk. [`super::etcd::settle`] then removes that write.
    pub torn: bool,
    /// The number of failed starts that Pacemaker has counted on this node. At Pacemaker's limit it is [`BANNED`].
    pub failures: u8,
    pub damage: Damage,
    /// True if Pacemaker has promoted this node's instance of a promotable clone.
    pub promoted: bool,
    pub blind: Blind,
    /// True if etcd has had a leader since its agent published that it will run standalone. In a real etcd the term would show this.
    /// This field counts only until the CIB shows that record to the agent.
    pub led: bool,
    /// True if etcd leads by the vote of a vote proxy that has since given up. Such a leader acknowledges nothing, and has not yet noticed
    /// that it has no follower.
    pub lingers: bool,
    /// True if Pacemaker has erased this node's record from the CIB. The attribute manager still has the record. In the model the record
    /// stays in this node's own replica for that purpose.
    pub erased: bool,
}

impl Node {
    /// Returns whether the agent on this node has a plan with effects that are not yet performed.
    pub fn has_plan(&self) -> bool {
        self.action.is_some_and(|action| action.plan.is_some())
    }
}

/// The value of `failures` once Pacemaker has counted as many failed starts as it allows. After that, Pacemaker does not start etcd on the
/// node until an operator cleans up.
pub const BANNED: u8 = 3;

/// The damage to a node's data that a power cut left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Damage {
    #[default]
    None,
    /// etcd cannot start from the data, but no failed start has shown that yet.
    Hidden,
    /// etcd cannot start from the data. As many starts have failed as the agent makes quickly, and the file next to the data counts them.
    Counted,
    /// The data is complete, but its disk is not mounted.
    NotMounted,
}

/// The state into which an operator has set a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Wanted {
    #[default]
    Running,
    Standby,
    Shutdown,
}

/// The state of Pacemaker and Corosync on one machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Stack {
    #[default]
    Up,
    /// Pacemaker and Corosync ended cleanly, in maintenance. The node's resources continue, and Pacemaker does not fence the node for that
    /// reason.
    Ended,
    Killed,
}

/// The operator's confirmation on a node, given with `tandem confirm-recovery`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Word {
    #[default]
    None,
    /// A confirmation about the present data. `node_is_on` is false if a BMC reported that the other node is off. It is true if no BMC was
    /// needed for that, because Pacemaker knew it or the operator named the node as one that is on.
    Given { accept_loss: bool, node_is_on: bool },
    /// A confirmation that no longer counts, because the data has changed since it was given.
    Outdated { accept_loss: bool },
}

/// The state of a node's etcd process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Run {
    #[default]
    Off,
    /// etcd runs, but has had no leader since its start. So it does not answer.
    Fresh,
    /// etcd runs, but has lost its leader.
    Leaderless,
    Follower,
    Leader,
}

impl Run {
    /// Returns whether the etcd process runs.
    pub fn is_on(self) -> bool {
        self != Self::Off
    }

    /// Returns whether etcd leads, or follows a leader.
    pub fn is_led(self) -> bool {
        matches!(self, Self::Follower | Self::Leader)
    }
}

/// The mode in which the agent starts etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    Normally,
    Bootstrap,
    /// etcd starts as the only voter of a forced new cluster.
    Force,
    /// etcd starts as a learner of an existing cluster. `members` is the number of members that its configuration names.
    Join {
        members: usize,
    },
}

/// The log position that the leader last published. Of two positions, the later one compares as greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CibReached {
    pub forks: u8,
    pub term: u8,
    /// The index of the entry; 0 before the first publication.
    pub index: u8,
    /// True if the leader had two voters when it published the position.
    pub is_redundant: bool,
}

impl CibReached {
    pub const NEVER: Self = Self { forks: 0, term: 0, index: 0, is_redundant: false };
}

/// One node's replica of the CIB, with the parts that the model needs.
#[derive(Clone, Copy, Debug, Eq)]
pub struct Cib {
    pub machine: [PeerNode; 2],
    pub agent: [PeerAgent; 2],
    /// The number of each node's published record; 0 means none.
    pub record: [Id; 2],
    pub standalone: Option<u8>,
    /// The number of forced new clusters that each node has recorded, and the node that made the last one (1 or 2). (0, 0) means none.
    pub lineage: [(u8, u8); 2],
    /// True for each node that has published the ids of its member.
    pub recorded: [bool; 2],
    /// True for each node with a promotion score. Pacemaker may promote the instance on such a node.
    pub score: [bool; 2],
    /// True for each node on which an operator or a program has set `force_new_cluster`.
    pub told: [bool; 2],
    /// The node that an operator chose between two histories (`etcd_primary`). Its data is kept.
    pub primary: Option<u8>,
    /// The log position that etcd has reached (`etcd_reached`). It is published only in a search with `--put-back`.
    pub reached: CibReached,
    /// The property that records whether there are two voters (`etcd_redundancy`). It is published only in a search with `--lone-boot`.
    pub said: Said,
}

impl Cib {
    /// Returns the larger one of the two nodes' numbers of forced new clusters, and the node that made the last of these.
    pub fn most_forks(&self) -> (u8, u8) {
        let [one, other] = self.lineage;
        one.max(other)
    }
}

/// Compares two replicas. It is written by hand, because derived code would compare arrays in a loop, which is slower.
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
