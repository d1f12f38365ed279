//! The members of an etcd of any size, and which change of them may be made now: rules M1 to M14.
//!
//! etcd itself checks little: of two healthy voters it lets either be removed, and it promotes a learner at 90 % of its
//! leader's index. A program asks these rules instead, before each single step and with an observation of its own, so that a
//! fact that has changed since the last step is seen.
//!
//! | rule | content |
//! |---|---|
//! | M1 | never more members than wanted, and one more while one is replaced; none more in a pair |
//! | M2 | a new member is a learner, and there is one at a time |
//! | M3 | nothing is added or promoted next to an unhealthy voter, except the one to be replaced; nor a third voter next to half a pair |
//! | M4 | a healthy voter goes only once its replacement votes, or at an operator's confirmation |
//! | M5 | a majority commits the change, and the healthy voters are a majority afterwards |
//! | M6 | unhealthy members go before healthy ones, and before what replaces them is listed |
//! | M7 | a learner is promoted that has started, has caught up in two observations, and has a Machine that stays |
//! | M8 | a learner goes at once if no change waits for it |
//! | M9 | one change at a time: a lock, a list that a majority confirmed, and the last change applied everywhere |
//! | M10 | never the last voter, and no leader before it handed over |
//! | M11 | without a leader or a majority nothing is tried |
//! | M12 | what is not known is neither healthy nor gone |
//! | M13 | an operator's confirmation is for one member and one change |
//! | M14 | stopping a node: `super::may_stop` has it, for whatever asks |

mod forbidden;
mod judge;
mod next;

pub use forbidden::Forbidden;
pub use judge::{Passed, judge};
pub use next::{Leaves, Next, leaves, next};

use super::evidence::{MemberId, NodeName};

/// Members of an etcd cluster, as one observation found them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Membership {
    pub members: Vec<Member>,
    pub leader: Option<MemberId>,
    /// True if a majority confirmed a read just before this list was read. Without the confirmation, the list may be outdated,
    /// because each etcd answers a member list from its own memory.
    pub is_confirmed: bool,
    /// Number of voters that the cluster is to have.
    pub wanted: usize,
    /// True if the members are the pair that Pacemaker manages.
    pub is_pair: bool,
    /// Change that another program or operator has not finished, in that program's words.
    pub change: Option<String>,
    /// Largest number of log entries that a learner may lack when it is promoted.
    pub promote_max_lag: u64,
    /// True if the Machines of voters carry a hook that delays their deletion.
    pub uses_hooks: bool,
    /// True if the pair has a third voter outside of it, or is to get one.
    pub third_voter: bool,
}

/// Member of an etcd cluster, with its health.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    pub id: MemberId,
    /// Name of the member; empty until it has started once.
    pub name: String,
    /// Node on which the member runs; `None` for a member that runs on no known node.
    pub node: Option<NodeName>,
    pub peer_urls: Vec<String>,
    pub is_learner: bool,
    pub health: Health,
    /// Number of the leader's log entries that the member lacked in this observation.
    pub lag: Option<u64>,
    /// Number of the leader's log entries that the member lacked in the observation before this one.
    pub lag_before: Option<u64>,
    /// True if the member's own member list is the observed one; `None` if the member does not answer that query.
    pub knows_the_list: Option<bool>,
    pub machine: MachineState,
    /// True if the member's address belongs to no known node.
    pub is_strange: bool,
}

/// State of a member. A healthy member answers in time, belongs to this cluster, follows the observed leader, and has no alarm about
/// corrupt data. A healthy voter also answers a linearizable read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    Yes,
    /// Unhealthy, for this reason, which a query of the member showed.
    No(String),
    /// Unknown, because the member could not be asked, for this reason.
    Unknown(String),
}

impl Default for Health {
    fn default() -> Self {
        Self::Unknown("not asked".to_owned())
    }
}

/// State of the OpenShift Machine on which a member runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MachineState {
    /// No Machine: no program in this cluster makes or deletes Machines.
    #[default]
    None,
    Stays {
        /// True if the Machine's deletion would wait until the member is removed.
        is_protected: bool,
    },
    BeingDeleted,
    Unknown(String),
}

/// Change of the members that an operator or a program wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    Remove(MemberId),
    Promote(MemberId),
    /// Replacement of the member `old` by `new`; `old` is `None` once it is no longer in the member list.
    Replace {
        old: Option<MemberId>,
        new: Newcomer,
    },
    Add(Newcomer),
}

/// Member that is to be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Newcomer {
    pub name: String,
    pub peer_url: String,
}

/// Single request to etcd for a change of the members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberStep {
    AddLearner(Newcomer),
    Promote(MemberId),
    MoveLeader { to: MemberId },
    Remove(MemberId),
}

/// Confirmations that an operator gave in advance for one change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// Voter that may be removed although it is healthy and no other member replaces it.
    pub fewer_voters: Option<MemberId>,
}

impl Membership {
    pub fn member(&self, id: MemberId) -> Option<&Member> {
        self.members.iter().find(|member| member.id == id)
    }

    pub fn at(&self, peer_url: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.peer_urls.iter().any(|url| url == peer_url))
    }

    pub fn voters(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| !member.is_learner)
    }

    pub fn learners(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.is_learner)
    }

    /// Returns whether a third voter, which runs outside of the pair, is to exist and has a vote.
    pub fn has_third_voter(&self) -> bool {
        self.third_voter && self.voters().any(Member::is_third)
    }

    /// Checks whether a node's voter that is down may be removed while a third voter votes, so that it can be replaced. Returns
    /// `None` if no third voter votes, or if the node's voter is not known to be down.
    ///
    /// Two of the three voters have to write the entry of the removal. So it commits only while the other node and the third
    /// voter both live. The entry follows every acknowledged write in the log, so both have all acknowledged writes.
    ///
    /// Before the removal, two of three voters are needed for a write, and one of them is down. After it, both of two are needed,
    /// so the cluster tolerates no fewer failures. A replacement is listed only after the removal, because etcd lists no learner
    /// while a voter is down.
    pub fn removal_beside_third_voter(&self, voter: &Member) -> Option<Result<Passed, Forbidden>> {
        let is_down = matches!(voter.health, Health::No(_)) && !voter.is_learner && voter.node.is_some();
        let remove = || judge(self, &MemberStep::Remove(voter.id), None, &Words::default());
        (is_down && self.has_third_voter()).then(remove)
    }

    /// Returns the number of healthy voters.
    pub fn healthy(&self) -> usize {
        self.voters().filter(|member| member.is_healthy()).count()
    }

    /// Returns the largest number of members. In a pair it is the number wanted. Elsewhere it is one more, for a member that
    /// replaces another one.
    pub fn room(&self) -> usize {
        if self.is_pair { self.wanted } else { self.wanted.saturating_add(1) }
    }
}

impl Member {
    pub fn has_started(&self) -> bool {
        !self.name.is_empty()
    }

    /// Returns whether this member is the third voter next to a pair: its address is known, and belongs to no node.
    pub fn is_third(&self) -> bool {
        self.node.is_none() && !self.is_strange
    }

    pub fn is_healthy(&self) -> bool {
        self.health == Health::Yes
    }

    /// Returns the member's name for a sentence: its node, else its own name, else its id.
    pub fn shown(&self) -> String {
        match &self.node {
            Some(node) => node.clone(),
            None if self.has_started() => self.name.clone(),
            None => format!("member {:x}", self.id),
        }
    }
}

/// Returns the number of voters that are a majority if there are `voters` voters.
pub fn quorum(voters: usize) -> usize {
    voters / 2 + 1
}
