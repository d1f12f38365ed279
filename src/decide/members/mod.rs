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

/// Members of an etcd, as one observation found them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Membership {
    pub members: Vec<Member>,
    pub leader: Option<MemberId>,
    /// True if a majority confirmed a read just before the list was read: etcd answers the list from its own memory.
    pub is_confirmed: bool,
    /// The number of voters that there are to be.
    pub wanted: usize,
    /// True if these are the two members that Pacemaker keeps.
    pub is_pair: bool,
    /// The change that another program or an operator has under way, in that program's words.
    pub change: Option<String>,
    /// The largest number of entries that a learner may lack when it is promoted.
    pub promote_max_lag: u64,
    /// True if voters' Machines carry a hook that holds their deletion up.
    pub uses_hooks: bool,
    /// True if there is a third voter, outside of the pair, or is to be one.
    pub third_voter: bool,
}

/// A member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    pub id: MemberId,
    /// Empty where it never started.
    pub name: String,
    /// The node that it runs on, where nodes have names.
    pub node: Option<NodeName>,
    pub peer_urls: Vec<String>,
    pub is_learner: bool,
    pub health: Health,
    /// The number of entries that it lacks of the leader's, in this observation and in the one before.
    pub lag: Option<u64>,
    pub lag_before: Option<u64>,
    /// True if it has applied the list that is judged; `None` of one that does not answer that question.
    pub knows_the_list: Option<bool>,
    pub machine: MachineState,
    /// At an address of no node that is known.
    pub is_strange: bool,
}

/// State of a member. A healthy member answers in time, in this cluster and with this leader, and has no alarm that its data
/// is corrupt. A healthy voter also answers a read that a majority confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    Yes,
    /// It was asked, and is not: why.
    No(String),
    /// It could not be asked: why.
    Unknown(String),
}

impl Default for Health {
    fn default() -> Self {
        Self::Unknown("not asked".to_owned())
    }
}

/// State of the Machine under a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MachineState {
    /// Nothing here makes or deletes Machines.
    #[default]
    None,
    Stays {
        /// True if its deletion waits for the member.
        is_protected: bool,
    },
    BeingDeleted,
    Unknown(String),
}

/// Change that an operator or a program wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    Remove(MemberId),
    Promote(MemberId),
    /// `old` is `None` once it is not listed any more.
    Replace {
        old: Option<MemberId>,
        new: Newcomer,
    },
    Add(Newcomer),
}

/// A member that is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Newcomer {
    pub name: String,
    pub peer_url: String,
}

/// One change, as etcd makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberStep {
    AddLearner(Newcomer),
    Promote(MemberId),
    MoveLeader { to: MemberId },
    Remove(MemberId),
}

/// Confirmations that an operator gave beforehand, for one change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// The member that may go although it is healthy and nothing replaces it.
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

    /// Returns whether a named member outside of the pair votes.
    pub fn has_third_voter(&self) -> bool {
        self.third_voter && self.voters().any(Member::is_third)
    }

    /// Judges the removal of a node's voter that is down, for its replacement where a third voter votes; `None` where no third voter votes, or
    /// the voter is not known to be down.
    ///
    /// The removal is an entry that two of three have to write, so it commits only where the other node and the third voter both live. It
    /// follows all that was acknowledged, so both have all of that. Two of two have to be there afterwards, as two of three had to before:
    /// the removal costs no tolerance. A newcomer is listed after it, as etcd lists none while a voter is down.
    pub fn removal_beside_third_voter(&self, voter: &Member) -> Option<Result<Passed, Forbidden>> {
        let is_down = matches!(voter.health, Health::No(_)) && !voter.is_learner && voter.node.is_some();
        let remove = || judge(self, &MemberStep::Remove(voter.id), None, &Words::default());
        (is_down && self.has_third_voter()).then(remove)
    }

    /// Returns the number of healthy voters.
    pub fn healthy(&self) -> usize {
        self.voters().filter(|member| member.is_healthy()).count()
    }

    /// Returns the largest number of members: one more than wanted while one is replaced, and in a pair each node has one
    /// place.
    pub fn room(&self) -> usize {
        if self.is_pair { self.wanted } else { self.wanted.saturating_add(1) }
    }
}

impl Member {
    pub fn has_started(&self) -> bool {
        !self.name.is_empty()
    }

    /// Returns whether it is a third member of a pair's etcd: it has no node, and is no stranger.
    pub fn is_third(&self) -> bool {
        self.node.is_none() && !self.is_strange
    }

    pub fn is_healthy(&self) -> bool {
        self.health == Health::Yes
    }

    /// Returns the name that sentences use: the node, the member's name, or as a last resort its id.
    pub fn shown(&self) -> String {
        match &self.node {
            Some(node) => node.clone(),
            None if self.has_started() => self.name.clone(),
            None => format!("member {:x}", self.id),
        }
    }
}

/// Returns the number of voters that are a majority of so many.
pub fn quorum(voters: usize) -> usize {
    voters / 2 + 1
}
