//! Pacemaker's word on the peer: is its agent active, starting, or confirmed stopped? Never guessed.

use super::evidence::{Cib, Evidence, Moment, Notify, Operation, PeerAgent, PeerNode};
use super::standing::{Standing, classify};
use crate::base::Fact;

/// State of the peer, from Pacemaker's records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PeerStatus {
    /// No peer, because the cluster has one node.
    Nobody,
    /// Active: the peer's agent was started and not stopped since.
    Active,
    /// Starting: the start of the peer's agent has begun and not ended.
    Starting,
    /// About to start: the transition contains a start of the peer's agent that has not begun. Under load Pacemaker runs one
    /// action at a time. So the peer's start may have to wait for the end of this action.
    Planned,
    /// Stopped: the peer's machine is in the membership, and its agent is confirmed stopped.
    Stopped,
    /// Confirmed down: the peer's machine was shut down cleanly or fenced.
    Down,
    /// Lost: the peer's machine has left the membership and is not confirmed off.
    Lost,
    /// Unknown: Pacemaker could not be asked, for this reason.
    Unknown(String),
}

/// Returns the peer's state from the CIB. In a notification, the notify variables refine it.
pub(super) fn peer_word(evidence: &Evidence) -> PeerStatus {
    let Some(peer) = &evidence.peer else { return PeerStatus::Nobody };
    let cib = match &evidence.cib {
        Fact::Known(cib) => cib,
        Fact::Absent | Fact::Unknown(_) | Fact::NotAsked => {
            return PeerStatus::Unknown(evidence.cib.why_unknown().to_owned());
        }
    };
    let Some(notify) = &evidence.notify else { return from_cib(cib) };
    match from_cib(cib) {
        // The machine's state is newer than the transition's variables, and stronger.
        word @ (PeerStatus::Lost | PeerStatus::Down | PeerStatus::Unknown(_)) => word,
        word => refined_by(notify, &peer.name, word),
    }
}

/// Refines the state `word` of a peer with a machine in the membership, by the operations on that machine in the present
/// transition.
fn refined_by(notify: &Notify, peer: &str, word: PeerStatus) -> PeerStatus {
    // This notification is handled before anything is started again.
    if notify.stop.contains(peer) && notify.operation == Operation::Stop && notify.moment == Moment::Post {
        return PeerStatus::Stopped;
    }
    if notify.start.contains(peer) {
        // Its start may have begun, or ended, already.
        return if matches!(word, PeerStatus::Active | PeerStatus::Starting) { word } else { PeerStatus::Planned };
    }
    if notify.active.contains(peer) && !notify.stop.contains(peer) {
        return PeerStatus::Active;
    }
    word
}

/// Returns whether the peer publishes that it holds no data, and no etcd runs there. The peer's former data is gone in that case,
/// and with it the peer's vote.
pub(super) fn peer_has_nothing(evidence: &Evidence) -> bool {
    peer_holds(evidence, Standing::Nothing)
}

/// Returns whether the peer publishes that its member has left the member list, and no etcd runs there. Such a member no longer votes.
pub(super) fn peer_has_left(evidence: &Evidence) -> bool {
    peer_holds(evidence, Standing::Departed)
}

fn peer_holds(evidence: &Evidence, data: Standing) -> bool {
    let record = evidence.cib.known().and_then(|cib| cib.peer_record.as_ref());
    record.is_some_and(|record| classify(&record.disk) == data) && evidence.peer_etcd.is_absent()
}

fn from_cib(cib: &Cib) -> PeerStatus {
    match cib.peer_machine() {
        PeerNode::Down => PeerStatus::Down,
        PeerNode::Lost | PeerNode::NeverSeen => PeerStatus::Lost,
        PeerNode::Pending => PeerStatus::Unknown("its machine is joining the cluster".to_owned()),
        PeerNode::Online => match cib.peer_agent {
            PeerAgent::Active | PeerAgent::Stopping => PeerStatus::Active,
            PeerAgent::Starting => PeerStatus::Starting,
            PeerAgent::Stopped => PeerStatus::Stopped,
            PeerAgent::NoHistory => PeerStatus::Unknown("Pacemaker has not asked its agent yet".to_owned()),
        },
    }
}
