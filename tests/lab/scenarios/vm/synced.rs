//! Data on which the agent relies later is on the disk before it continues: the node's note, and the log with its
//! advanced commit index. The power fails at the very moment at which the agent reports that it has written them.

use std::time::Duration;

use serde_json::Value;

use super::{roles, two_voters};
use crate::cluster;
use crate::cluster::pcs;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::power;
use crate::host::state::Lab;
use crate::judge::check;
use crate::judge::figures;
use crate::programs::faulty;
use crate::scenarios::steps;
use crate::sh::{self, Result};

/// The number of tries to lose an unsynced write. The disk decides whether it loses the write, and another sync of
/// the kernel may include it.
const TRIES: usize = 6;
/// The number of power cuts that must not lose the agent's durable note, because it is synced.
const SYNCED_NOTES: usize = 2;

/// The data that the agent writes before a recovery and relies on later: its durable note (`tandem-note.json`), and
/// etcd's write-ahead log.
#[derive(Clone, Copy, Debug)]
enum Written {
    Note,
    Log,
}

/// The name of the fault (see [`faulty`]) that delays the agent after it has written its durable note.
const WAIT_AFTER_NOTE: &str = "test-wait-after-note";

impl Written {
    /// Returns the name of the fault (see [`faulty`]) that skips the sync of this data.
    fn switch(self) -> &'static str {
        match self {
            Self::Note => "test-skip-note-sync",
            Self::Log => "test-skip-wal-sync",
        }
    }

    /// Returns the log line that follows the write of this data. For the note, only a program that is built with faults
    /// logs one. That program then waits, because the next sync of any file would include the note.
    fn told_by(self) -> &'static str {
        match self {
            Self::Note => "test-wait-after-note: the change is made, and the agent pauses",
            Self::Log => ADVANCED,
        }
    }
}

/// The line that the agent logs in a recovery by restart after it has written to etcd's log. It writes its note
/// before that.
const ADVANCED: &str = "commit index advanced from ";

/// The data that a power cut has lost.
#[derive(Debug, Default)]
struct Found {
    note_lost: bool,
    log_lost: bool,
}

/// Checks that a power cut does not lose what the agent has written to etcd's log, with every sync in place. The sync of the log also
/// syncs the agent's note. [`loss_is_seen`] therefore checks the note by itself, in more power cuts.
pub fn nothing_lost(lab: &Lab, wish: Wish) -> Result<()> {
    let mut writers = crate::scenarios::writing(lab)?;
    is_there(lab, Written::Log)?;
    crate::scenarios::ends_well(lab, &mut writers)?;
    // The next scenario uses this lab.
    lab.set("boot-delay", &wish.boot_delay.to_string())?;
    pcs::run_and_wait(lab, NODES[0], &["resource", "update", cluster::ETCD, "recovery="])?;
    two_voters(lab)
}

fn is_there(lab: &Lab, written: Written) -> Result<()> {
    let found = cut_as_it_is_written(lab, written)?;
    check::must("what was written is there after the cut", found, |found| !found.note_lost && !found.log_lost).map(drop)
}

/// Checks that a power cut can lose the agent's note if the sync of the note is skipped. The same must hold for the log and its sync.
/// Otherwise the checks for a loss would prove nothing. With the syncs, a power cut at the same moment must lose neither.
pub fn loss_is_seen(lab: &Lab, _: Wish) -> Result<()> {
    faulty::install(lab)?;
    // Without writers, a log has no entries over which its commit index must be advanced.
    let mut writers = crate::scenarios::writing(lab)?;
    faulty::switch(lab, WAIT_AFTER_NOTE, true)?;
    for _ in 0..SYNCED_NOTES {
        is_there(lab, Written::Note)?;
    }
    is_lost_without_its_sync(lab, Written::Note)?;
    faulty::switch(lab, WAIT_AFTER_NOTE, false)?;
    is_there(lab, Written::Log)?;
    is_lost_without_its_sync(lab, Written::Log)?;
    writers.stop().map(drop)
}

fn is_lost_without_its_sync(lab: &Lab, written: Written) -> Result<()> {
    faulty::switch(lab, written.switch(), true)?;
    let mut seen = false;
    for attempt in 1..=TRIES {
        let found = cut_as_it_is_written(lab, written)?;
        println!("   attempt {attempt}, {written:?} is not synced: {found:?}");
        seen = match written {
            Written::Note => found.note_lost,
            Written::Log => found.log_lost,
        };
        if seen {
            break;
        }
    }
    faulty::switch(lab, written.switch(), false)?;
    check::must(&format!("{written:?} was lost without its sync"), seen, |seen| *seen).map(drop)
}

/// Cuts the leader's power, and the survivor's as soon as it has logged the write of `written`. Checks the note and
/// the log after the survivor's boot, while its peer is away. Then brings both back.
fn cut_as_it_is_written(lab: &Lab, written: Written) -> Result<Found> {
    let (leader, survivor) = roles(lab)?;
    crate::cluster::redundant::wait(lab)?;
    pcs::run(lab, survivor, &["resource", "update", cluster::ETCD, "recovery=restart"])?;
    let from = steps::log_length(lab, survivor);
    let before = note(lab, survivor)?;
    // The leader must be fenced, and stay off.
    lab.set("boot-delay", "36000")?;
    power::cut(lab, leader)?;
    steps::wait_said(lab, survivor, from, written.told_by(), Duration::from_secs(120))?;
    power::cut(lab, survivor)?;
    let said = steps::said(lab, survivor, from);
    lab.set("boot-delay", "0")?;
    std::thread::sleep(Duration::from_secs(2));
    power::cut(lab, leader)?;
    power::on(lab, survivor)?;
    host::wait_booted(lab, survivor)?;
    let after = note(lab, survivor)?;
    let note_lost = after == before || serde_json::from_str::<Value>(&after).is_err();
    let log_lost = match written {
        Written::Note => false,
        Written::Log => is_behind(lab, survivor, &said)?,
    };
    power::on(lab, leader)?;
    two_voters(lab)?;
    Ok(Found { note_lost, log_lost })
}

/// Returns whether the node's etcd log is behind the index to which the agent had advanced it, as its line in `said`
/// reports.
fn is_behind(lab: &Lab, node: Node, said: &str) -> Result<bool> {
    let mut advanced_to =
        said.lines().filter_map(|line| line.split_once(ADVANCED)?.1.split_once(" to ")?.1.parse().ok());
    let advanced_to: u64 = advanced_to.next_back().ok_or("the survivor does not say how far its log is advanced")?;
    let committed = committed(lab, node)?;
    figures::print(format!("the log was advanced to {advanced_to}, and is at {committed:?}"));
    Ok(committed.is_none_or(|committed| committed < advanced_to))
}

/// Returns the agent's durable note on the node's disk. The text is empty if there is none. Only the note's
/// completeness and age matter here.
fn note(lab: &Lab, node: Node) -> Result<String> {
    host::must(
        lab,
        node,
        &["sh", "-c", "cd /var/lib/etcd; cat tandem/tandem-note.json || [ ! -e tandem/tandem-note.json ]"],
    )
}

/// Returns the commit index of the node's etcd log. `None` if the agent cannot read it.
fn committed(lab: &Lab, node: Node) -> Result<Option<u64>> {
    let what = format!("the agent of {node} explains");
    let said = sh::wait_for(&what, Duration::from_secs(60), Duration::from_secs(1), || {
        let said = host::said(lab, node, &["tandem", "explain", "--json"]);
        serde_json::from_str::<Value>(&said).ok()
    })?;
    Ok(said.pointer("/snapshot/disk/known/Present/commit_index").and_then(Value::as_u64))
}
