//! What people read: short enough for Pacemaker, and with a way on.

use crate::decide::reason::{Reason, Refusal};
use crate::decide::snapshot::Obstacle;
use crate::decide::snapshot::Position;

/// Every refusal whose words are ours; the others quote somebody else's.
fn refusals() -> Vec<Refusal> {
    let position = Position { term: 1_000, index: 10_000_000 };
    vec![
        Refusal::MoreThanTwoVoters,
        Refusal::HistoriesSplit,
        Refusal::PeerWentOnAloneAndLostItsData { peer_forks: 3 },
        Refusal::DataOfARecordedClusterIsGone,
        Refusal::NoVotersData,
        Refusal::NoProofThatPeerDidNotGoOn { position, written: None },
        Refusal::PeerWentOnWithoutUs { position, written: None },
        Refusal::LearnerAlone { position },
        Refusal::DepartedAlone { position },
        Refusal::BlankAlone,
        Refusal::BrokenAlone { why: "no wal".to_owned() },
        Refusal::PeerSaysNothing,
        Refusal::PeerDoesNotServe,
        Refusal::PeerNotConfirmed { why: "it is lost".to_owned() },
        Refusal::NotAVoterYet,
        Refusal::StillRunning,
        Refusal::NoRoomToJoin { needed_bytes: 9 << 30, free_bytes: 5 << 30 },
        Refusal::PeerServesThoughNotChosen,
        Refusal::PeerLostWhileJoining,
        Refusal::InTheWay { obstacle: Obstacle::StaticPod },
        Refusal::InTheWay { obstacle: Obstacle::PortTaken(2379) },
        Refusal::MachineIsDeleted,
    ]
}

#[test]
fn a_refusal_fits_into_an_exit_reason_with_its_way_on() {
    for refusal in refusals() {
        let reason = Reason::Refused { refusal, peer: "master-1".to_owned() };
        let short = reason.short();
        assert!(short.len() <= crate::ocf::exit::REASON_LIMIT, "{} bytes: {short}", short.len());
        let names_a_way_on = ["'", "start master-1", "not caught up"].iter().any(|words| short.contains(words));
        assert!(names_a_way_on, "{short}");
    }
}

/// A peer whose machine is gone cannot be started: where that is the way on, there is another one.
#[test]
fn where_the_peer_is_to_be_started_there_is_a_way_without_it() {
    let ways = ["restore", "back", "confirm-recovery"];
    for refusal in refusals() {
        let reason = Reason::Refused { refusal, peer: "master-1".to_owned() };
        for text in [reason.short(), reason.to_string()] {
            let only_the_peer = text.contains("start master-1") && !ways.iter().any(|words| text.contains(words));
            assert!(!only_the_peer, "{text}");
        }
    }
}
