//! Whether a node may be stopped or rebooted now without a pause in the writes: the one rule (M14 of `super::members`), for
//! whatever asks.
//!
//! Before one node of a pair under Pacemaker is stopped in good order, its member leaves the membership. Its peer then
//! continues as the sole voter. That needs a peer that votes already, that stays, and that has published its claim. It also
//! needs a Pacemaker that stops etcd instead of leaving it to the machine's end. Everywhere else the voters that are left
//! have to be a majority.

use std::fmt;

use super::evidence::{MemberId, NodeName};
use super::members::{Health, Membership, quorum};
use crate::base::Fact;

/// Facts that decide whether a node of the pair may be stopped (see [`may_stop`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outlook {
    /// Node that is to be stopped.
    pub node: NodeName,
    /// Other node of the pair; `None` in a cluster of one node.
    pub peer: Option<NodeName>,
    /// Pacemaker's view of the pair; `Absent` if Pacemaker is stopped on the node that asks.
    pub care: Fact<Care>,
    /// State of the etcd on the node to be stopped; `Absent` if no etcd runs there.
    pub own_etcd: Fact<Voice>,
    /// State of the peer's etcd; `Absent` if no etcd runs there.
    pub peer_etcd: Fact<Voice>,
    /// True if the peer has published its claim to run standalone; `Absent` if another kind of agent, which publishes no record, runs
    /// on the peer.
    ///
    /// The peer's etcd already votes shortly before the peer's agent publishes and stores the claim. If the node to be stopped were
    /// lost in that time, the peer could not continue.
    pub peer_claims: Fact<bool>,
    /// Description of a membership change that has not ended yet.
    pub change: Option<String>,
}

/// Pacemaker's view of the pair: what it would do with the node to be stopped, and the state of the peer's machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Care {
    pub quorate: bool,
    /// True if Pacemaker leaves the node's etcd alone, because of maintenance or an unmanaged resource.
    pub hands_off: bool,
    /// Node that is being fenced.
    pub fencing: Option<NodeName>,
    pub peer: Machine,
}

/// State of the peer's machine in the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Machine {
    /// Online machine, on which etcd may run.
    Ready,
    Standby,
    /// Machine on which Pacemaker is stopping etcd. The etcd may answer until it ends.
    Stopping,
    /// Machine that is joining or leaving the cluster.
    Moving,
    Unclean,
    #[default]
    Offline,
}

/// State of a running etcd, from its answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Voice {
    pub cluster_id: String,
    pub learner: bool,
    pub has_leader: bool,
    /// True if etcd raises an alarm that prevents writes.
    pub alarm: bool,
    /// Known if etcd answered a linearizable read.
    pub reads: Fact<()>,
    /// Number of voters in etcd's member list.
    pub voters: usize,
}

/// Whether a node may be stopped without a pause in the writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Yes,
    /// Stopping the node would pause writes, or writes are paused already, for these reasons.
    No(Vec<Hindrance>),
    /// There is no answer, because these facts are missing.
    Unknown(Vec<Doubt>),
}

/// Obstacle to stopping a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hindrance {
    OneNode,
    NoQuorum,
    HandsOff { node: NodeName },
    BeingFenced { node: NodeName },
    PeerNotReady { peer: NodeName, machine: Machine },
    PeerRunsNone { peer: NodeName },
    PeerIsLearner { peer: NodeName },
    PeerHasNoLeader { peer: NodeName },
    Alarm,
    OtherCluster { peer: NodeName },
    PeerNotReadyYet { peer: NodeName },
    ChangeUnderWay { change: String },
    NoLeader,
    OtherNotHealthy { member: String, why: String },
    QuorumWouldGo { voters: usize, left: usize },
}

impl Hindrance {
    /// Returns the command that ends this obstacle, or the event that ends it and that an operator has to wait for.
    pub fn instead(&self) -> String {
        match self {
            Self::OneNode => "'tandem member add NAME=ADDRESS' first".to_owned(),
            Self::NoQuorum => "'corosync-quorumtool -s'".to_owned(),
            Self::HandsOff { .. } => "'pcs property set maintenance-mode=false', or 'pcs resource manage'".to_owned(),
            Self::BeingFenced { node } => format!("'pcs stonith history show {node}'"),
            Self::PeerNotReady { peer, machine: Machine::Standby } => format!("'pcs node unstandby {peer}' first"),
            Self::PeerNotReady { .. } => "'tandem status'".to_owned(),
            Self::PeerRunsNone { peer } | Self::PeerHasNoLeader { peer } | Self::OtherCluster { peer } => {
                format!("'tandem explain' on {peer}")
            }
            Self::PeerIsLearner { .. } | Self::PeerNotReadyYet { .. } => {
                "'tandem status --wait-for redundant', and type it again".to_owned()
            }
            Self::Alarm => "'tandem space'".to_owned(),
            Self::ChangeUnderWay { .. } => "wait until it is done: 'tandem member list'".to_owned(),
            Self::NoLeader | Self::OtherNotHealthy { .. } | Self::QuorumWouldGo { .. } => {
                "wait until 'tandem member list' shows every member healthy".to_owned()
            }
        }
    }
}

/// Fact that is needed for an answer, and that could not be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    PacemakerStopped,
    Pacemaker { why: String },
    Etcd { node: NodeName, why: String },
    Reads { node: NodeName, why: String },
    Voters { count: usize },
    Claim { node: NodeName, why: String },
    Member { member: String, why: String },
    Unconfirmed,
}

/// Returns whether a node of a pair under Pacemaker may be stopped now without a pause in the writes.
pub fn may_stop(outlook: &Outlook) -> Answer {
    let Some(peer) = &outlook.peer else { return Answer::No(vec![Hindrance::OneNode]) };
    let mut found = Found::default();
    let votes = found.own(outlook);
    found.care(outlook, peer, votes);
    found.peer(outlook, peer);
    found.change(outlook.change.as_ref());
    found.answer()
}

/// Returns whether the etcd of member `id` may be stopped now. This is for a cluster in which writes continue only with a majority of
/// the voters.
pub fn may_stop_among(membership: &Membership, id: MemberId) -> Answer {
    let mut found = Found::default();
    found.change(membership.change.as_ref());
    if membership.leader.is_none() {
        found.hindrances.push(Hindrance::NoLeader);
    }
    if !membership.is_confirmed {
        found.doubts.push(Doubt::Unconfirmed);
    }
    let mut left = 0;
    for member in membership.members.iter().filter(|member| member.id != id) {
        match &member.health {
            Health::Yes if member.is_learner => {
                let change = format!("{} is to become a voter", member.shown());
                found.hindrances.push(Hindrance::ChangeUnderWay { change });
            }
            Health::Yes => left += 1,
            Health::No(why) => {
                found.hindrances.push(Hindrance::OtherNotHealthy { member: member.shown(), why: why.clone() });
            }
            Health::Unknown(why) => found.doubts.push(Doubt::Member { member: member.shown(), why: why.clone() }),
        }
    }
    let voters = membership.voters().count();
    let votes = membership.member(id).is_some_and(|member| !member.is_learner);
    if votes && left < quorum(voters) && found.doubts.is_empty() {
        found.hindrances.push(Hindrance::QuorumWouldGo { voters, left });
    }
    found.answer()
}

#[derive(Default)]
struct Found {
    hindrances: Vec<Hindrance>,
    doubts: Vec<Doubt>,
}

impl Found {
    fn answer(self) -> Answer {
        match (self.hindrances, self.doubts) {
            (hindrances, _) if !hindrances.is_empty() => Answer::No(hindrances),
            (_, doubts) if !doubts.is_empty() => Answer::Unknown(doubts),
            _ => Answer::Yes,
        }
    }

    fn change(&mut self, change: Option<&String>) {
        if let Some(change) = change.cloned() {
            self.hindrances.push(Hindrance::ChangeUnderWay { change });
        }
    }

    /// Returns whether the etcd on the node to be stopped may have a vote, which a clean stop would give up. Adds a doubt if
    /// there are three or more voters.
    fn own(&mut self, outlook: &Outlook) -> bool {
        match &outlook.own_etcd {
            Fact::Known(etcd) => {
                // Raft's own majorities: this agent neither adds nor removes any of them.
                if !etcd.learner && etcd.voters > 2 {
                    self.doubts.push(Doubt::Voters { count: etcd.voters });
                }
                !etcd.learner
            }
            Fact::Absent => false,
            // The peer's own list shows whether this node has a vote at all, and whether others have.
            Fact::Unknown(_) | Fact::NotAsked => {
                let voters = outlook.peer_etcd.known().map(|peer| peer.voters);
                self.doubts.extend(voters.filter(|count| *count > 2).map(|count| Doubt::Voters { count }));
                voters != Some(1)
            }
        }
    }

    fn care(&mut self, outlook: &Outlook, peer: &NodeName, votes: bool) {
        let care = match &outlook.care {
            Fact::Known(care) => care,
            Fact::Absent => return self.doubts.push(Doubt::PacemakerStopped),
            unknown @ (Fact::Unknown(_) | Fact::NotAsked) => {
                return self.doubts.push(Doubt::Pacemaker { why: unknown.why_unknown().to_owned() });
            }
        };
        if !care.quorate {
            self.hindrances.push(Hindrance::NoQuorum);
        }
        if let Some(node) = care.fencing.clone() {
            self.hindrances.push(Hindrance::BeingFenced { node });
        }
        if care.hands_off && votes {
            self.hindrances.push(Hindrance::HandsOff { node: outlook.node.clone() });
        }
        if care.peer != Machine::Ready {
            self.hindrances.push(Hindrance::PeerNotReady { peer: peer.clone(), machine: care.peer });
        }
    }

    fn peer(&mut self, outlook: &Outlook, peer: &NodeName) {
        let peer = peer.clone();
        let etcd = match &outlook.peer_etcd {
            Fact::Known(etcd) => etcd,
            Fact::Absent => return self.hindrances.push(Hindrance::PeerRunsNone { peer }),
            unknown @ (Fact::Unknown(_) | Fact::NotAsked) => {
                let why = unknown.why_unknown().to_owned();
                return self.doubts.push(Doubt::Etcd { node: peer, why });
            }
        };
        if etcd.alarm {
            self.hindrances.push(Hindrance::Alarm);
        }
        if outlook.own_etcd.known().is_some_and(|own| own.cluster_id != etcd.cluster_id) {
            self.hindrances.push(Hindrance::OtherCluster { peer: peer.clone() });
        }
        if etcd.learner {
            self.hindrances.push(Hindrance::PeerIsLearner { peer });
        } else if !etcd.has_leader {
            self.hindrances.push(Hindrance::PeerHasNoLeader { peer });
        } else if etcd.reads != Fact::Known(()) {
            self.doubts.push(Doubt::Reads { node: peer, why: etcd.reads.why_unknown().to_owned() });
        } else {
            match &outlook.peer_claims {
                Fact::Known(true) | Fact::Absent => {}
                Fact::Known(false) => self.hindrances.push(Hindrance::PeerNotReadyYet { peer }),
                unknown => self.doubts.push(Doubt::Claim { node: peer, why: unknown.why_unknown().to_owned() }),
            }
        }
    }
}

impl fmt::Display for Hindrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OneNode => f.write_str("no other node would continue: this cluster has one node"),
            Self::NoQuorum => f.write_str("this partition has no quorum, so no node would continue"),
            Self::HandsOff { node } => write!(
                f,
                "Pacemaker leaves etcd on {node} alone (maintenance, or unmanaged), so its vote would be lost and not given up"
            ),
            Self::BeingFenced { node } => write!(f, "{node} is being fenced"),
            Self::PeerNotReady { peer, machine } => write!(f, "{peer} would not continue alone: it {machine}"),
            Self::PeerRunsNone { peer } => write!(f, "etcd does not run on {peer}, so no node would continue"),
            Self::PeerIsLearner { peer } => write!(f, "{peer} is a learner, which cannot continue alone"),
            Self::PeerHasNoLeader { peer } => write!(f, "etcd on {peer} has no leader, so no writes are taken now"),
            Self::Alarm => f.write_str("etcd raises an alarm, so no writes are taken now"),
            Self::OtherCluster { peer } => write!(f, "etcd on {peer} belongs to another cluster than this node's"),
            Self::PeerNotReadyYet { peer } => {
                write!(f, "the agent of {peer} has not published yet that it may continue alone")
            }
            Self::ChangeUnderWay { change } => write!(f, "a change of the members is under way: {change}"),
            Self::NoLeader => f.write_str("etcd has no leader, so no writes are taken now"),
            Self::OtherNotHealthy { member, why } => write!(f, "{member} is not healthy: {why}"),
            Self::QuorumWouldGo { voters, left } => {
                write!(f, "{left} of {voters} voters would be left, which is no majority")
            }
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ready => "is online",
            Self::Standby => "is on standby",
            Self::Stopping => "is stopping its etcd",
            Self::Moving => "is joining or leaving",
            Self::Unclean => "is lost and not confirmed off",
            Self::Offline => "is off, or its cluster is stopped",
        })
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PacemakerStopped => f.write_str("Pacemaker is stopped on this node: ask on the other one"),
            Self::Pacemaker { why } => write!(f, "Pacemaker could not be asked: {why}"),
            Self::Etcd { node, why } => write!(f, "etcd on {node} could not be asked: {why}"),
            Self::Reads { node, why } => write!(f, "whether etcd on {node} takes writes could not be asked: {why}"),
            Self::Voters { count } => {
                write!(f, "etcd has {count} voters: 'tandem member plan stop NODE' asks them all")
            }
            Self::Claim { node, why } => {
                write!(f, "whether the agent of {node} may continue alone is not known: {why}")
            }
            Self::Member { member, why } => write!(f, "whether {member} is healthy is not known: {why}"),
            Self::Unconfirmed => f.write_str("no majority confirmed the member list"),
        }
    }
}
