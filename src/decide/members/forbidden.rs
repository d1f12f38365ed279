//! Why a change of the members may not be made now, and the way on.

use std::fmt;

use crate::decide::may_stop::{Doubt, Hindrance};

/// Rule that forbids a change of the members (rules M1 to M14), with the facts for its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Forbidden {
    TooMany {
        members: usize,
        wanted: usize,
        is_pair: bool,
    },
    LearnerListed {
        learner: String,
    },
    UnhealthyBeside {
        member: String,
        why: String,
    },
    /// Rule M3: a third voter would be added to a pair of which only one node votes.
    HalfAPair,
    NoReplacement {
        member: String,
        wanted: usize,
    },
    CannotCommit {
        voters: usize,
        healthy: usize,
        is_pair: bool,
    },
    QuorumWouldGo {
        voters: usize,
        healthy: usize,
    },
    UnhealthyFirst {
        member: String,
        unhealthy: String,
    },
    NotStarted {
        member: String,
    },
    SeenOnce {
        member: String,
    },
    Lags {
        member: String,
        lag: u64,
        most: u64,
    },
    LearnerUnhealthy {
        member: String,
        why: String,
    },
    BeingDeleted {
        member: String,
    },
    Unprotected {
        member: String,
    },
    VotesAlready {
        member: String,
    },
    Joining {
        member: String,
    },
    ChangeUnderWay {
        change: String,
    },
    Unconfirmed,
    NotApplied {
        member: String,
    },
    AddressInUse {
        url: String,
        member: String,
    },
    NotListed {
        member: String,
    },
    LastVoter {
        member: String,
    },
    Leads {
        member: String,
        is_pair: bool,
    },
    NoHeir,
    NoLeader {
        is_pair: bool,
    },
    NoQuorum {
        voters: usize,
        healthy: usize,
        is_pair: bool,
    },
    Unknown {
        member: String,
        why: String,
    },
    MachineUnknown {
        member: String,
        why: String,
    },
    WordForAnother {
        given: String,
        member: String,
    },
    /// Rule M14: a node may not be stopped now.
    MayNotStop(Hindrance),
    StopUnknown(Doubt),
}

impl Forbidden {
    /// Returns the number of the rule that forbids the change, such as `M1`.
    pub fn rule(&self) -> &'static str {
        match self {
            Self::TooMany { .. } => "M1",
            Self::LearnerListed { .. } => "M2",
            Self::UnhealthyBeside { .. } | Self::HalfAPair => "M3",
            Self::NoReplacement { .. } => "M4",
            Self::CannotCommit { .. } | Self::QuorumWouldGo { .. } => "M5",
            Self::UnhealthyFirst { .. } => "M6",
            Self::NotStarted { .. }
            | Self::SeenOnce { .. }
            | Self::Lags { .. }
            | Self::LearnerUnhealthy { .. }
            | Self::BeingDeleted { .. }
            | Self::Unprotected { .. }
            | Self::VotesAlready { .. } => "M7",
            Self::Joining { .. } => "M8",
            Self::ChangeUnderWay { .. }
            | Self::Unconfirmed
            | Self::NotApplied { .. }
            | Self::AddressInUse { .. }
            | Self::NotListed { .. } => "M9",
            Self::LastVoter { .. } | Self::Leads { .. } | Self::NoHeir => "M10",
            Self::NoLeader { .. } | Self::NoQuorum { .. } => "M11",
            Self::Unknown { .. } | Self::MachineUnknown { .. } => "M12",
            Self::WordForAnother { .. } => "M13",
            Self::MayNotStop(_) | Self::StopUnknown(_) => "M14",
        }
    }

    /// Returns whether the obstacle ends by itself, so that waiting helps.
    pub fn passes(&self) -> bool {
        matches!(
            self,
            Self::NotStarted { .. }
                | Self::SeenOnce { .. }
                | Self::Lags { .. }
                | Self::NotApplied { .. }
                | Self::Unconfirmed
                | Self::HalfAPair
                | Self::NoLeader { .. }
        )
    }

    /// Returns the command after which the change is allowed, or the event that an operator has to wait for.
    pub fn instead(&self) -> String {
        match self {
            Self::TooMany { is_pair: true, .. } => {
                "'tandem member replace OLD' puts another node in one's place".to_owned()
            }
            Self::TooMany { .. } => {
                "'tandem member replace OLD', or '--voters NUMBER' where more are wanted".to_owned()
            }
            Self::LearnerListed { learner } => {
                format!("wait until {learner} votes, or 'tandem member remove {learner}' where it never will")
            }
            Self::UnhealthyBeside { member, .. } => {
                format!("start etcd on {member}, or 'tandem member replace {member}'")
            }
            Self::HalfAPair => "start the other node, and wait until it votes: 'tandem status'".to_owned(),
            Self::NoReplacement { member, .. } => {
                format!("'tandem member replace {member}', or '--allow-fewer-voters' where nothing is to replace it")
            }
            Self::CannotCommit { is_pair: true, .. } => {
                "'pcs stonith fence NODE' for the dead one: the survivor's agent continues standalone".to_owned()
            }
            Self::CannotCommit { .. } => {
                "start a voter that is down: no member list changes without a majority".to_owned()
            }
            Self::QuorumWouldGo { .. } => "start the voters that are down first".to_owned(),
            Self::UnhealthyFirst { unhealthy, .. } => {
                format!("start etcd on {unhealthy}, or 'tandem member remove {unhealthy}' first")
            }
            Self::NotStarted { member } => format!("start etcd on the new machine, or 'tandem member remove {member}'"),
            Self::SeenOnce { .. } | Self::Lags { .. } => {
                "wait: 'tandem member list' shows how many entries it lacks".to_owned()
            }
            Self::LearnerUnhealthy { member, .. } => {
                format!("start etcd on {member}, or 'tandem member remove {member}'")
            }
            Self::BeingDeleted { member } => format!("'tandem member remove {member}', and add another one"),
            Self::Unprotected { member } => format!("'tandem member protect {member}'"),
            Self::VotesAlready { .. } => "nothing".to_owned(),
            Self::Joining { member } => {
                format!("'tandem member promote {member}', or stop its etcd for good, and then remove it")
            }
            Self::ChangeUnderWay { .. } => "wait until it is done: 'tandem member list'".to_owned(),
            Self::Unconfirmed | Self::NotApplied { .. } => "wait some seconds, and type it again".to_owned(),
            Self::AddressInUse { .. } | Self::NotListed { .. } => "'tandem member list' shows who is there".to_owned(),
            Self::LastVoter { .. } => "'tandem member add NAME=ADDRESS' first".to_owned(),
            Self::Leads { is_pair: true, .. } => "'tandem etcdctl move-leader ID' first".to_owned(),
            // No resource has the endpoints of such an etcd.
            Self::Leads { .. } => "'etcdctl move-leader ID' first".to_owned(),
            Self::NoHeir => "start a second voter first".to_owned(),
            Self::NoLeader { is_pair: true } | Self::NoQuorum { is_pair: true, .. } => "'tandem explain'".to_owned(),
            Self::NoLeader { .. } | Self::NoQuorum { .. } => {
                "start the voters that are down; where they are gone for good: 'etcdutl snapshot restore'".to_owned()
            }
            Self::Unknown { .. } => "mend what keeps it from being asked, and type it again".to_owned(),
            Self::MachineUnknown { .. } => "'oc get machines', and type it again".to_owned(),
            Self::WordForAnother { member, .. } => format!("'tandem member remove {member} --allow-fewer-voters'"),
            Self::MayNotStop(hindrance) => hindrance.instead(),
            Self::StopUnknown(_) => "'tandem status', and type it again".to_owned(),
        }
    }
}

impl fmt::Display for Forbidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany { members, wanted, is_pair: true } => {
                write!(f, "each of the {wanted} nodes has its member: there are {members}")
            }
            Self::TooMany { members, wanted, .. } => {
                write!(f, "there are {members} members, and {wanted} voters are wanted, with one more at most")
            }
            Self::LearnerListed { learner } => write!(f, "{learner} is a learner still, and there is one at a time"),
            Self::UnhealthyBeside { member, why } => {
                write!(f, "nothing is added or promoted while the voter {member} is not healthy: {why}")
            }
            Self::HalfAPair => f.write_str("one node of the pair votes, and a third voter comes once both do"),
            Self::NoReplacement { member, wanted } => {
                write!(f, "{member} is healthy, {wanted} voters are wanted, and nothing that votes replaces it")
            }
            Self::CannotCommit { voters, healthy, .. } => {
                write!(f, "{healthy} of {voters} voters are healthy, too few to commit the change")
            }
            Self::QuorumWouldGo { voters, healthy } => {
                write!(f, "of the {voters} voters left {healthy} would be healthy, which is no majority")
            }
            Self::UnhealthyFirst { member, unhealthy } => {
                write!(f, "{member} is healthy and {unhealthy} is not: unhealthy members go first")
            }
            Self::NotStarted { member } => write!(f, "{member} has never started"),
            Self::SeenOnce { member } => write!(f, "{member} has not been seen caught up in two looks"),
            Self::Lags { member, lag, most } => write!(f, "{member} lacks {lag} entries, and may lack {most}"),
            Self::LearnerUnhealthy { member, why } => write!(f, "the learner {member} is not healthy: {why}"),
            Self::BeingDeleted { member } => write!(f, "the Machine of {member} is being deleted"),
            Self::Unprotected { member } => write!(f, "the Machine of {member} has no hook that holds its deletion up"),
            Self::VotesAlready { member } => write!(f, "{member} votes already"),
            Self::Joining { member } => write!(f, "{member} is a healthy learner that is about to vote"),
            Self::ChangeUnderWay { change } => write!(f, "another change is under way: {change}"),
            Self::Unconfirmed => f.write_str("no majority confirmed the member list"),
            Self::NotApplied { member } => write!(f, "{member} has not applied the last change yet"),
            Self::AddressInUse { url, member } => write!(f, "{url} is the address of {member}"),
            Self::NotListed { member } => write!(f, "{member} is not in the member list"),
            Self::LastVoter { member } => write!(f, "{member} is the last voter"),
            Self::Leads { member, .. } => write!(f, "{member} leads, and has not handed over"),
            Self::NoHeir => f.write_str("no other healthy voter could take leadership over"),
            Self::NoLeader { .. } => f.write_str("etcd has no leader, so nothing can be changed"),
            Self::NoQuorum { voters, healthy, .. } => {
                write!(f, "{healthy} of {voters} voters are healthy, which is no majority")
            }
            Self::Unknown { member, why } => write!(f, "whether {member} is healthy is not known: {why}"),
            Self::MachineUnknown { member, why } => {
                write!(f, "whether the Machine of {member} stays is not known: {why}")
            }
            Self::WordForAnother { given, member } => {
                write!(f, "that there may be fewer voters was said of {given}, not of {member}")
            }
            Self::MayNotStop(hindrance) => hindrance.fmt(f),
            Self::StopUnknown(doubt) => doubt.fmt(f),
        }
    }
}
