//! Pacemaker's word on the peer: is its agent active, starting, or confirmed stopped? Never guessed.

use super::evidence::{Cib, Evidence, Moment, Notify, Operation, PeerAgent, PeerNode};
use super::standing::{Standing, classify};
use crate::base::Fact;

/// State of the peer that Pacemaker vouches for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PeerStatus {
    /// There is no second node in this cluster.
    Nobody,
    /// Its agent was started and not stopped since.
    Active,
    /// Its agent is starting now.
    Starting,
    /// Its agent is to start in this transition and has not begun. Under load Pacemaker runs one action at a time, so
    /// our own may be what it waits for.
    Planned,
    /// Its machine is a member, and its agent is confirmed stopped.
    Stopped,
    /// Its machine is confirmed down: shut down cleanly or fenced.
    Down,
    /// Its machine is gone and not confirmed off.
    Lost,
    /// Could not be asked.
    Unknown(String),
}

/// Reads Pacemaker's word from the CIB's status section and, where they are given, from the notify variables.
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

/// Refines the state by the transition's own plan, for a peer with a machine that is there.
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

/// Returns whether the peer's record states that it holds no data, and no etcd runs there. Its former data is gone, and its
/// vote too.
pub(super) fn peer_has_nothing(evidence: &Evidence) -> bool {
    peer_holds(evidence, Standing::Nothing)
}

/// Returns whether the peer's record states that its member has left, and no etcd runs there. It votes no more.
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
