//! Requests, effects and answers, in words: one text each, for logs, `tandem explain`, `tandem replay` and the model's
//! stories. The effects do not print positions in a log, because the evidence does.

use std::collections::BTreeSet;
use std::fmt;

use super::evidence::{
    BootState, DataDir, DurableState, HandOver, Lineage, NextImage, PublishedState, RunningImage, RunningVoter,
};
use super::plan::{Effect, Exit, Notice, Phase, Request, RunMode, Via};

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Monitor => "monitor",
            Self::Probe => "probe",
            Self::Notify => "notify",
            Self::Promote => "promote",
            Self::Demote => "demote",
            Self::Reload => "reload-agent",
            Self::LoneBoot => "lone boot",
        })
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Success => "success",
            Self::Promoted => "running, promoted",
            Self::NotRunning => "not running",
            Self::Retriable => "failed for now; Pacemaker tries again",
        })
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Begin => f.write_str("at its beginning"),
            Self::Started(mode) => write!(f, "once etcd was started {}", self::mode(mode)),
            Self::Announced => f.write_str("once it was announced that this node runs standalone"),
            Self::Barrier { .. } => f.write_str("once the announcement was published anew, which has to come back"),
            Self::VoteProxy { .. } => f.write_str("once the announcement was published, which has to come back"),
            Self::StoodIn => f.write_str("once the vote of the member that is off was cast"),
            Self::HandedOver => f.write_str("once leadership was handed over"),
            Self::Left => f.write_str("once this member left the list"),
            Self::Stopped => f.write_str("once etcd was stopped"),
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PublishRecord(record) => write!(f, "publishes its record: {}", self::record(record)),
            Self::RestoreRecord => f.write_str("has Pacemaker's attribute manager write its record again"),
            Self::PublishIdentity(identity) => write!(f, "publishes its member's id, {:x}", identity.member_id),
            Self::PublishLineage(lineage) => write!(f, "publishes for good: {}", forks(lineage)),
            Self::PublishPeerLineage(lineage) => {
                write!(f, "publishes for good in its peer's place: {}", forks(lineage))
            }
            Self::SetStandalone(Some(node)) => write!(f, "says that {node} is the sole voter"),
            Self::SetStandalone(None) => f.write_str("takes back that there is a sole voter"),
            Self::SetLearner(Some(node)) => write!(f, "says that {node} may start as a learner"),
            Self::SetLearner(None) => f.write_str("takes back who may start as a learner"),
            Self::WriteNote(note) => write!(f, "writes its durable note: {}", self::note(note)),
            Self::Remember(memory) => write!(f, "remembers for this boot: {}", self::memory(memory)),
            Self::NoteFailedStart(failed) => write!(f, "counts failed starts from its data: {}", failed.count),
            Self::ForgetFailedStarts => f.write_str("forgets the failed starts from its data"),
            Self::ConsumeConfirmation => f.write_str("takes the operator's confirmation as used"),
            Self::SetAlarm(Some(alarm)) => write!(f, "shows the alarm {alarm}"),
            Self::SetAlarm(None) => f.write_str("takes the alarm back"),
            Self::PublishImage(Some(running)) => write!(f, "publishes its image: {}", image(running)),
            Self::PublishImage(None) => f.write_str("takes its image back"),
            Self::ShowLeader(Some(true)) => f.write_str("shows that it leads"),
            Self::ShowLeader(Some(false)) => f.write_str("shows that it does not lead"),
            Self::ShowLeader(None) => f.write_str("takes back whether it leads"),
            Self::ShowFenceWait(true) => f.write_str("has its fence agent yield to a voter"),
            Self::ShowFenceWait(false) => f.write_str("has its fence agent yield to no peer"),
            Self::SetRedundancy(true) => f.write_str("says that there are two voters from now on"),
            Self::SetReached(_) => f.write_str("publishes for good how far it has reached"),
            Self::SetRedundancy(false) => f.write_str("says that this voter is alone from now on"),
            Self::ForgetPrimary => f.write_str("takes the operator's choice between two histories as used"),
            Self::TellOthers(notice) => write!(f, "tells others in the CIB: {}", self::notice(notice)),
            Self::SetPromotionScore(Some(score)) => write!(f, "sets its promotion score to {score}"),
            Self::SetPromotionScore(None) => f.write_str("takes its promotion score back"),
            Self::StopContainer { .. } => f.write_str("stops etcd"),
            Self::EndLaunch => f.write_str("ends what an earlier action left behind"),
            Self::AdvanceCommit => f.write_str("advances the commit index to the end of its log"),
            Self::SetFailures { operation, count } => {
                write!(f, "leaves Pacemaker with {count} failures of {operation}")
            }
            Self::MoveDataAside => f.write_str("backs its data up"),
            Self::MoveHistoryAside => f.write_str("backs its history up where nothing deletes it"),
            Self::DropBackups(names) => write!(f, "deletes {} old backups", names.len()),
            Self::PruneBackups => f.write_str("deletes the oldest backups above the number to keep"),
            Self::RunContainer(mode) => write!(f, "starts etcd {}", self::mode(mode)),
            Self::VoteProxy(_) => {
                f.write_str("votes in the place of its peer's member, which is off, until etcd has removed it")
            }
            Self::SettleConfig => f.write_str("takes the force out of etcd's configuration"),
            Self::MoveLeader { to } => write!(f, "hands leadership to member {to:x}"),
            Self::RemoveMember { id, via } => write!(f, "removes member {id:x} from the list{}", asking(*via)),
            Self::AddLearner { peer_url, via } => write!(f, "lists {peer_url} as a learner{}", asking(*via)),
            Self::PromoteMember { id, via } => write!(f, "promotes member {id:x} to a voter{}", asking(*via)),
            Self::AnnounceLoneBoot(node) => write!(f, "says in the CIB that {node} boots alone"),
            Self::HoldPeerOff(peer) => write!(f, "has the fencer hold {peer} off"),
            Self::CancelWaitForAll => f.write_str("has Corosync wait for its peer no longer"),
        }
    }
}

fn asking(via: Via) -> &'static str {
    match via {
        Via::Own => "",
        Via::Peer => ", asking its peer's etcd",
    }
}

fn mode(mode: &RunMode) -> &'static str {
    match mode {
        RunMode::Normally => "with the data that is there",
        RunMode::Bootstrap => "as the first member of a new cluster",
        RunMode::ForceNewCluster => "as the only voter of a new cluster forced from its data",
        RunMode::JoinAsLearner { .. } => "as a learner of its peer's cluster, without data",
    }
}

fn notice(notice: &Notice) -> String {
    match notice {
        Notice::Address(address) => format!("its address, {address}"),
        Notice::Revision(revision) => format!("its revision, {revision}"),
        Notice::SystemUuid(uuid) => format!("its machine's UUID, {uuid}"),
        Notice::Leaving => "it leaves".to_owned(),
        Notice::Member => "it is a member".to_owned(),
        Notice::ForceDone => "the force that was asked for is done".to_owned(),
        Notice::RestartDone => "the restart that was asked for is done".to_owned(),
    }
}

fn image(running: &RunningImage) -> String {
    match &running.next {
        None => running.image.clone(),
        Some(NextImage { image, id: Some(_), .. }) => format!("{}, and {image} with its next start", running.image),
        Some(NextImage { image, id: None, .. }) => format!("{}, as {image} is not on this node", running.image),
    }
}

fn record(record: &PublishedState) -> String {
    let claim = if record.claims { ", may run standalone" } else { "" };
    let nonce = if record.nonce.is_some() { ", and waits to see this" } else { "" };
    format!("{}, {}{claim}{nonce}", disk(&record.disk), forks(&record.lineage))
}

fn disk(disk: &DataDir) -> String {
    let ids = |ids: &BTreeSet<u64>| ids.iter().map(|id| format!("{id:x}")).collect::<Vec<_>>().join(" ");
    match disk {
        DataDir::Blank => "no data".to_owned(),
        DataDir::Broken { why } => format!("broken data ({why})"),
        DataDir::Present(history) => {
            let left = if history.has_left { " that has left" } else { "" };
            let learners = if history.learners.is_empty() {
                String::new()
            } else {
                format!(", learners {}", ids(&history.learners))
            };
            format!("member {:x}{left}, voters {}{learners}", history.member_id, ids(&history.voters))
        }
    }
}

fn note(note: &DurableState) -> String {
    let mut text = forks(&note.lineage);
    for (said, is_so) in [
        (", alone from here on", note.alone_since.is_some()),
        (", leaves here", note.left_at.is_some()),
        (", joins as a learner", note.joins),
    ] {
        text += if is_so { said } else { "" };
    }
    text
}

fn memory(memory: &BootState) -> String {
    let promoted = if memory.promoted { ", promoted" } else { "" };
    let due = match memory.hand_over {
        Some(HandOver { tries: 0, .. }) => ", leadership is to move".to_owned(),
        Some(HandOver { tries, .. }) => format!(", leadership is to move, tries: {tries}"),
        None => String::new(),
    };
    let leaderless = if memory.leaderless_since_s.is_some() { ", no leader" } else { "" };
    let due = due + leaderless;
    match &memory.voter {
        None => format!("no voter that could run standalone{promoted}{due}"),
        Some(voter) => {
            let sole = match voter {
                RunningVoter { sole: true, .. } => ", the sole one",
                RunningVoter { among_many: true, .. } => ", one of three or more",
                _ => "",
            };
            format!("member {:x} is a running voter{sole}, {}{promoted}{due}", voter.member_id, forks(&voter.lineage))
        }
    }
}

fn forks(lineage: &Lineage) -> String {
    match lineage.forks {
        0 => "no forced new cluster".to_owned(),
        forks => format!("forced new clusters: {forks}, last by {}", lineage.by),
    }
}
