//! The words of rules, waits, steps and states.

use std::fmt;

use super::written::At;
use super::{Health, Held, NoVoteProxy, ReasonStep, Rule, Wait, grant, megabytes};
use crate::decide::evidence::{Cause, Obstacle};

impl Rule {
    #[expect(clippy::too_many_lines, reason = "a table of sentences")]
    pub(super) fn write(self, f: &mut fmt::Formatter<'_>, peer: &str) -> fmt::Result {
        match self {
            Self::AlreadyServing => write!(f, "R0: etcd runs here and answers"),
            Self::PeerServesAndListsThisMember => {
                write!(f, "R1: {peer}'s etcd has a leader and lists this member: starting normally, nothing is wiped")
            }
            Self::PeerServesAndThisDataIsNotIts => {
                write!(
                    f,
                    "R1: {peer}'s etcd has a leader and this data is not a member's of its cluster: joining as a learner, the data dir is kept as a backup"
                )
            }
            Self::PeerServesAndThisNodeIsBlank => {
                write!(f, "R1: {peer}'s etcd has a leader and this node holds no data: joining as a learner")
            }
            Self::TwoPlainStarts => {
                write!(
                    f,
                    "R2: this node and {peer} hold the data of two voters that name each other: both start normally, nothing is wiped or forced"
                )
            }
            Self::SoleVoter => write!(f, "R2/R3: this node is the sole voter of its data: starting normally"),
            Self::PeerIsSoleVoter => write!(f, "R2: {peer} is the sole voter: following it as a learner"),
            Self::ChosenPrimary => {
                write!(f, "R2: the histories split and an operator chose this node's: continuing with it")
            }
            Self::PeerIsChosenPrimary => {
                write!(f, "R2: the histories split and an operator chose {peer}'s: following it")
            }
            Self::PrimaryIsKept => {
                write!(f, "R2: the histories split and two_histories=primary keeps this node's: continuing with it")
            }
            Self::PeerIsKept => {
                write!(f, "R2: the histories split and two_histories=primary keeps {peer}'s: following it")
            }
            Self::PeerHasTheVotersData => write!(f, "R2: {peer} holds the voters' data: following it as a learner"),
            Self::PeerHasNoData => {
                write!(
                    f,
                    "R2: {peer} holds no data and this node holds all that was acknowledged: running standalone with it"
                )
            }
            Self::PeerWentOnAlone => write!(f, "R2: {peer} ran standalone since this data was written: following it"),
            Self::PeerWasLeftBehind => {
                write!(f, "R2: this node ran standalone since {peer}'s data was written: continuing with ours")
            }
            Self::FirstByNameBootstraps => {
                write!(
                    f,
                    "R2: both nodes are blank and no cluster was ever recorded: the first by name bootstraps it, the other joins"
                )
            }
            Self::SurvivorGoesOnAlone => {
                write!(
                    f,
                    "R3: {peer} is confirmed stopped or fenced and could not have gone on without this voter: running standalone"
                )
            }
            Self::PeerJoinedSince => {
                write!(f, "R2: {peer} has joined again since it said what it holds: starting normally with our data")
            }
            Self::PeerCameBack => {
                write!(f, "R3: {peer} came back before this node ran standalone: starting normally with our data")
            }
            Self::OperatorConfirmed => {
                write!(f, "R3: an operator confirmed that {peer} is given up: running standalone with this node's data")
            }
            Self::PeerActiveButWithoutLeader => {
                write!(
                    f,
                    "R4: {peer}'s agent is active and its etcd shows no leader: starting normally with our data, forcing nothing"
                )
            }
            Self::MoreThanTwoVoters => {
                write!(
                    f,
                    "three or more voters: starting normally; their majority decides, and nothing is forced or removed here"
                )
            }
            Self::OnlyNode => write!(f, "this is the only node of node_ip_map"),
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OwnRecord => write!(f, "our own record to be visible in the CIB"),
            Self::PeerRecord { peer } => write!(f, "{peer} to say what data it holds"),
            Self::PeerToServe { peer } => write!(f, "{peer}'s etcd to have a leader"),
            Self::PeerConfirmed { peer, why } => write!(f, "{peer} to be back, or confirmed off ({why})"),
            Self::OwnLeader => write!(f, "our etcd to have a leader"),
            Self::OwnAnswer { why } => write!(f, "our etcd to answer ({why})"),
            Self::LearnerToCatchUp { lag } => write!(f, "the learner to catch up ({lag} entries behind)"),
            Self::Learner => write!(f, "the learner to answer"),
            Self::SecondLook { peer } => write!(f, "a second look at {peer}, before leadership moves to it"),
            Self::BeforeFailing { refusal, peer } => {
                write!(f, "this to pass: ")?;
                refusal.write(f, peer)
            }
            Self::PeerVote { peer } => {
                write!(f, "{peer}'s vote: etcd runs here and has no leader until its peer is there")
            }
            Self::EtcdToStop => write!(f, "etcd to be gone"),
            Self::MoreTime => {
                write!(
                    f,
                    "the next action, which has time to run standalone: this one could be cut short in the middle"
                )
            }
            Self::Restart => write!(f, "etcd to be back: 'restart_no_leave' says that another program restarts it"),
            Self::EarlierAction => {
                write!(f, "an earlier action to be over: it, or its podman, still starts or ends etcd's container")
            }
            Self::WayToBeFree { obstacle: Obstacle::StaticPod } => {
                write!(f, "kubelet's static pod to end its etcd, which runs with our data")
            }
            Self::WayToBeFree { obstacle: Obstacle::PortTaken(port) } => {
                write!(f, "port {port} to be free: another program listens on it")
            }
        }
    }
}

const RESTORE_RECORD: &str =
    "this node's record is gone from the CIB: its attribute manager, which has it, writes it again";
const ADVANCE_AND_FORCE: &str = "advancing the commit index to the end of the log and forcing a new cluster: all that was acknowledged is in this \
     log";

impl fmt::Display for ReasonStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AnnounceGoingOnAlone { peer, position } => {
                let from = At(" from", *position);
                write!(
                    f,
                    "R3: {peer} is confirmed stopped or fenced, etcd has no leader, and this voter ran until then: announcing that it runs standalone{from}"
                )
            }
            Self::StopBeforeForce => write!(f, "stopping etcd, to force a new cluster from its data"),
            Self::RestartInstead { why } => {
                write!(f, "stopping etcd, to force a new cluster from its data; no stand-in votes: {why}")
            }
            Self::VoteProxy { peer } => {
                write!(
                    f,
                    "the announcement is in force: casting the vote of {peer}, which is confirmed off, while etcd runs on"
                )
            }
            Self::TookOver { restarted, ms } => {
                let how = if *restarted { "after a restart" } else { "without a restart" };
                let (seconds, hundredths) = (ms / 1000, ms % 1000 / 10);
                write!(
                    f,
                    "etcd takes writes again {how}, as the sole voter, {seconds}.{hundredths:02} s after this action began"
                )
            }
            Self::AdvanceAndForce => f.write_str(ADVANCE_AND_FORCE),
            Self::TakeBackOutdatedConfirmation => {
                write!(f, "taking 'tandem confirm-recovery' back: this node's data has changed since it was typed")
            }
            Self::ListPeerAsLearner { peer } => write!(f, "{peer} returns: listing it as a learner"),
            Self::RemoveStranger { id } => {
                write!(f, "removing the learner {id:x}, which is at neither node's address, to make place for the peer")
            }
            Self::ThirdVoterMakesPlace { id } => {
                write!(
                    f,
                    "removing the learner {id:x}, the guest's, to make place for the pair's own node: etcd has one for a learner"
                )
            }
            Self::DropBackups { names, needed_bytes } => {
                write!(
                    f,
                    "joining needs about {} MB: deleting the oldest backups, {}",
                    megabytes(*needed_bytes),
                    names.join(", ")
                )
            }
            Self::RemoveStaleEntry { id } => write!(f, "removing the stale member {id:x} that has our address"),
            Self::RemoveDeleted { id } => write!(f, "removing the learner {id:x}: its Machine is being deleted"),
            Self::ListOurselvesAsLearner => write!(f, "R1: asking the peer to list this node as a learner"),
            Self::PromoteLearner { peer, lag } => {
                write!(f, "{peer} has caught up ({lag} entries behind in two polls): promoting it to a voter")
            }
            Self::HandOverLeadership { peer } => write!(f, "handing leadership to {peer} before leaving"),
            Self::GiveLeadership { peer, cause } => f.write_str(&given(peer, *cause)),
            Self::YieldToPrimary { peer } => {
                write!(f, "giving up this node's claim to run standalone, so that {peer}, the configured primary, can")
            }
            Self::LeaveBeforeStop { peer } => {
                write!(f, "leaving the member list before stopping, so that {peer} runs standalone without a pause")
            }
            Self::StopEtcd => write!(f, "stopping etcd"),
            Self::EndEarlierAction => {
                write!(f, "ending an earlier action, or its podman: it takes too long to start or end etcd's container")
            }
            Self::RestoreRecord => f.write_str(RESTORE_RECORD),
            Self::AskPeerToPromote { peer } => write!(f, "asking {peer} to make this learner a voter"),
        }
    }
}

impl fmt::Display for NoVoteProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotWanted => write!(f, "recovery=restart"),
            Self::PeerIsThere => write!(f, "the peer's machine is not confirmed off"),
            Self::NotProven => write!(f, "this boot's memory of a running voter is not what lets this node continue"),
            Self::NotTold { why } => write!(f, "etcd does not tell its term and members ({why})"),
            Self::OtherVoters => write!(f, "the voters are not exactly this member and the peer's"),
            Self::UntestedRelease { version } => {
                write!(f, "etcd {version} speaks a peer protocol that is not known here")
            }
            Self::TermMoves => write!(f, "the term moves, as in an election"),
            Self::InVain => write!(f, "it was tried in vain"),
        }
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::VoterOfTwo => write!(f, "a voter of two"),
            Self::VoterAmong { voters } => write!(f, "a voter among {voters}"),
            Self::SoleVoter => write!(f, "the sole voter"),
            Self::Learner => write!(f, "a learner"),
            Self::Alarm { alarms } => {
                write!(f, "etcd raises the alarm {alarms}: see 'tandem space'")?;
                if alarms.contains(NO_SPACE) {
                    write!(f, "; it takes no writes until 'tandem space --reclaim' has made room and disarmed it")?;
                }
                Ok(())
            }
            Self::NoPermission { user } => write!(
                f,
                "etcd serves and its auth refuses this agent, which cannot tell how it stands nor change its members: {}",
                grant(user.as_deref())
            ),
            Self::LeaderlessPeerNotConfirmed { peer } => {
                write!(f, "etcd has no leader; waiting until {peer} is back or confirmed stopped or fenced")
            }
            Self::LeaderlessPeerKeepsItsClaim { peer } => write!(
                f,
                "etcd has no leader; {peer} stopped in the middle of a restart and may still run standalone: start etcd there ('pcs node unstandby {peer}', 'pcs resource clear'), or type 'pcs cluster stop {peer}', and this node continues"
            ),
            Self::WithoutMajority { others } => write!(
                f,
                "etcd has no leader and waits for a majority of its voters: start {others}; beside a third voter nothing is forced"
            ),
            Self::NotRunning => write!(f, "etcd does not run here"),
            Self::Stopped => write!(f, "etcd is stopped"),
        }
    }
}

/// Name of etcd's alarm for a database that has reached its quota.
const NO_SPACE: &str = "NOSPACE";

fn given(peer: &str, cause: Cause) -> String {
    match cause {
        Cause::Primary => format!("handing leadership back to {peer}, the configured primary, which is well"),
        Cause::Reach => format!("handing leadership to {peer}, which users reach: they do not reach this node"),
    }
}

impl Held {
    /// Returns the obstacle as a sentence about the peer, with `peer` as its name.
    pub fn about(self, peer: &str) -> String {
        match self {
            Self::CibUnknown => "the CIB cannot be read".to_owned(),
            Self::Silent => format!("{peer}'s etcd does not answer"),
            Self::NoVoter => format!("{peer} has no vote"),
            Self::AnotherLeader => format!("{peer} follows another leader"),
            Self::Lags { lag } => format!("{peer} lacks {lag} entries"),
            Self::NotReached => format!("users do not reach {peer}"),
            Self::Alarm => "etcd raises an alarm".to_owned(),
            Self::NotActive => format!("{peer}'s agent is not active"),
            Self::Leaves => format!("{peer} is on standby or shuts down"),
            Self::MembersChange => "the members change".to_owned(),
            Self::Maintenance => "Pacemaker leaves etcd alone, in maintenance".to_owned(),
        }
    }
}
