//! Effects in words, for the stories. The model leaves terms and indices out, and so do they.

use crate::decide::evidence::{BootMemory, DataDir, Lineage, Note, PublishedState};
use crate::decide::plan::{Effect, Notice, RunMode, Via};

/// What an effect does.
pub fn effect(effect: &Effect) -> String {
    match effect {
        Effect::PublishRecord(record) => format!("publishes its record: {}", self::record(record)),
        Effect::PublishIdentity(identity) => format!("publishes its member's id, {:x}", identity.member_id),
        Effect::PublishLineage(lineage) => format!("publishes for good: {}", forks(lineage)),
        Effect::PublishPeerLineage(lineage) => format!("publishes for good in its peer's place: {}", forks(lineage)),
        Effect::SetStandalone(Some(node)) => format!("says that {node} is the sole voter"),
        Effect::SetStandalone(None) => "takes back that there is a sole voter".to_owned(),
        Effect::SetLearner(Some(node)) => format!("says that {node} may start as a learner"),
        Effect::SetLearner(None) => "takes back who may start as a learner".to_owned(),
        Effect::WriteNote(note) => format!("writes its durable note: {}", self::note(note)),
        Effect::Remember(memory) => format!("remembers for this boot: {}", self::memory(memory)),
        Effect::NoteFailedStart(failed) => format!("counts failed starts from its data: {}", failed.count),
        Effect::ForgetFailedStarts => "forgets the failed starts from its data".to_owned(),
        Effect::ConsumeAuthorisation => "takes the operator's word as used".to_owned(),
        Effect::SetAlarm(Some(alarm)) => format!("shows the alarm {alarm}"),
        Effect::SetAlarm(None) => "takes the alarm back".to_owned(),
        Effect::ForgetPrimary => "takes the operator's choice between two histories as used".to_owned(),
        Effect::TellOthers(notice) => format!("tells others in the CIB: {}", self::notice(notice)),
        Effect::SetPromotionScore(Some(score)) => format!("sets its promotion score to {score}"),
        Effect::SetPromotionScore(None) => "takes its promotion score back".to_owned(),
        Effect::StopContainer { .. } => "stops etcd".to_owned(),
        Effect::EndLaunch => "ends what an earlier action left behind".to_owned(),
        Effect::AdvanceCommit => "advances the commit index to the end of its log".to_owned(),
        Effect::SetFailures { operation, count } => format!("leaves Pacemaker with {count} failures of {operation}"),
        Effect::MoveDataAside => "moves its data aside, as a backup".to_owned(),
        Effect::MoveHistoryAside => "moves its history aside, to where nothing deletes it".to_owned(),
        Effect::DropBackups(names) => format!("deletes {} old backups", names.len()),
        Effect::PruneBackups => "deletes the oldest backups above the number to keep".to_owned(),
        Effect::RunContainer(mode) => format!("starts etcd {}", self::mode(mode)),
        Effect::SettleConfig => "takes the force out of etcd's configuration".to_owned(),
        Effect::MoveLeader { to } => format!("hands leadership to member {to:x}"),
        Effect::RemoveMember { id, via } => format!("removes member {id:x} from the list{}", asking(*via)),
        Effect::AddLearner { peer_url, via } => format!("lists {peer_url} as a learner{}", asking(*via)),
        Effect::PromoteMember { id, via } => format!("promotes member {id:x} to a voter{}", asking(*via)),
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
        Notice::Leaving => "it leaves".to_owned(),
        Notice::Member => "it is a member".to_owned(),
        Notice::ForceDone => "the force that was asked for is done".to_owned(),
        Notice::RestartDone => "the restart that was asked for is done".to_owned(),
    }
}

fn record(record: &PublishedState) -> String {
    let claim = if record.claims { ", may go on alone" } else { "" };
    let nonce = if record.nonce.is_some() { ", and waits to see this" } else { "" };
    format!("{}, {}{claim}{nonce}", disk(&record.disk), forks(&record.lineage))
}

fn disk(disk: &DataDir) -> String {
    let ids =
        |ids: &std::collections::BTreeSet<u64>| ids.iter().map(|id| format!("{id:x}")).collect::<Vec<_>>().join(" ");
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

fn note(note: &Note) -> String {
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

fn memory(memory: &BootMemory) -> String {
    let promoted = if memory.promoted { ", promoted" } else { "" };
    match &memory.voter {
        None => format!("no voter that could go on alone{promoted}"),
        Some(voter) => {
            let sole = if voter.sole { ", the sole one" } else { "" };
            format!("member {:x} is a running voter{sole}, {}{promoted}", voter.member_id, forks(&voter.lineage))
        }
    }
}

fn forks(lineage: &Lineage) -> String {
    match lineage.forks {
        0 => "no forced new cluster".to_owned(),
        forks => format!("forced new clusters: {forks}, last by {}", lineage.by),
    }
}
