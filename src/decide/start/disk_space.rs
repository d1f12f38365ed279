//! Room on the disk for a learner's copy of the data. Moving data aside is a rename and takes none, but keeps what it held.
//! Where the new copy does not fit next to it, the oldest backups go, and never one that may still be needed.

use crate::decide::evidence::{DataDir, Etcd, Evidence, Room};
use crate::decide::plan::{Effect, Plan, Progress};
use crate::decide::reason::{Reason, ReasonStep, Refusal};
use crate::decide::timing::LOOK_AT_ONCE_MS;

/// Bytes that etcd needs in addition to its database: two preallocated files of its write-ahead log, and a margin.
const BESIDE_THE_DATABASE: u64 = 160 << 20;

/// Returns the step that frees disk space for a learner's copy of the data before the learner joins; `None` if the copy fits.
pub(super) fn make(evidence: &Evidence, disk: &DataDir, peer_etcd: &Etcd) -> Option<Plan> {
    let room = evidence.room.known()?;
    let needed = peer_etcd.db_bytes.saturating_add(BESIDE_THE_DATABASE);
    if room.free_bytes >= needed {
        return None;
    }
    let doomed = oldest(room, dispensable(evidence, disk, room), needed - room.free_bytes);
    if doomed.is_empty() {
        let refusal = Refusal::NoRoomToJoin { needed_bytes: needed, free_bytes: room.free_bytes };
        return Some(evidence.refuse(refusal));
    }
    let because = Reason::Step(ReasonStep::DropBackups { names: doomed.clone(), needed_bytes: needed });
    Some(Plan::then_look(vec![Effect::DropBackups(doomed)], LOOK_AT_ONCE_MS, Progress::default(), because))
}

/// Returns how many of the backups, from the oldest on, may be deleted. If the data dir is blank, the newest backup is kept,
/// because it may be from a join that was cut short. During a join, no backup may be deleted.
fn dispensable(evidence: &Evidence, disk: &DataDir, room: &Room) -> usize {
    let may_join = evidence.last_note().is_none_or(|note| note.joins);
    match disk {
        _ if may_join => 0,
        DataDir::Present(_) | DataDir::Broken { .. } => room.backups.len(),
        DataDir::Blank => room.backups.len().saturating_sub(1),
    }
}

fn oldest(room: &Room, dispensable: usize, lacking: u64) -> Vec<String> {
    let mut freed = 0_u64;
    let mut names = Vec::new();
    for backup in room.backups.iter().take(dispensable) {
        if freed >= lacking {
            break;
        }
        freed = freed.saturating_add(backup.bytes);
        names.push(backup.name.clone());
    }
    names
}
