//! What the agent counts on later is on the disk before it goes on: the node's note, and the log whose commit index was
//! advanced. Its power goes at the very moment at which it says that it has written them.

use std::time::Duration;

use serde_json::Value;

use super::{roles, two_voters};
use crate::check;
use crate::cluster;
use crate::faulty;
use crate::host;
use crate::node::Node;
use crate::pcs;
use crate::power;
use crate::scenarios::steps;
use crate::sh::{self, Result};
use crate::state::Lab;
use crate::up::Wish;

/// Each drops the sync of one thing, in a program that was built to be so switched.
const SWITCHES: [&str; 2] = ["test-skip-note-sync", "test-skip-wal-sync"];
/// Whether an unsynced write is lost is the disk's choice, and the kernel may have synced it with another one.
const TRIES: usize = 6;
/// What the restarting recovery says once it has written to etcd's log.
const ADVANCED: &str = "commit index advanced from ";

/// What came of one cut.
#[derive(Debug, Default)]
struct Found {
    note_lost: bool,
    log_lost: bool,
}

/// With every sync in its place: each thing that was said to be written is there.
pub fn nothing_lost(lab: &Lab, _: Wish) -> Result<()> {
    let mut writers = crate::scenarios::writing(lab)?;
    for _ in 0..2 {
        let found = cut_as_it_is_written(lab)?;
        check::must("what was written is there after the cut", found, |found| !found.note_lost && !found.log_lost)?;
    }
    crate::scenarios::ends_well(lab, &mut writers)
}

/// Without, the loss must show, or the check above proves nothing.
pub fn loss_is_seen(lab: &Lab, _: Wish) -> Result<()> {
    faulty::install(lab)?;
    for (switch, what) in SWITCHES.into_iter().zip(["the note", "the advanced log"]) {
        faulty::switch(lab, switch, true)?;
        let mut seen = false;
        for attempt in 1..=TRIES {
            let found = cut_as_it_is_written(lab)?;
            println!("   attempt {attempt}, {what} is not synced: {found:?}");
            seen |= if switch == SWITCHES[0] { found.note_lost } else { found.log_lost };
            if seen {
                break;
            }
        }
        faulty::switch(lab, switch, false)?;
        check::must(&format!("{what} was lost without its sync"), seen, |seen| *seen)?;
    }
    Ok(())
}

/// Cuts the leader, and the survivor as soon as it says that its log is advanced, which is after its note; looks at both
/// when it has booted, while its peer is away; then brings both back.
fn cut_as_it_is_written(lab: &Lab) -> Result<Found> {
    let (leader, survivor) = roles(lab)?;
    crate::redundant::wait(lab)?;
    pcs::run(lab, survivor, &["resource", "update", cluster::ETCD, "recovery=restart"])?;
    let from = steps::log_length(lab, survivor);
    let before = note(lab, survivor)?;
    // It is to be fenced, and not to come back.
    lab.set("boot-delay", "36000")?;
    power::cut(lab, leader)?;
    steps::wait_said(lab, survivor, from, ADVANCED, Duration::from_secs(120))?;
    power::cut(lab, survivor)?;
    let said = steps::said(lab, survivor, from);
    let mut advanced_to =
        said.lines().filter_map(|line| line.split_once(ADVANCED)?.1.split_once(" to ")?.1.parse().ok());
    let advanced_to: u64 = advanced_to.next_back().ok_or("the survivor does not say how far its log is advanced")?;
    lab.set("boot-delay", "0")?;
    std::thread::sleep(Duration::from_secs(2));
    power::cut(lab, leader)?;
    power::on(lab, survivor)?;
    host::wait_booted(lab, survivor)?;
    let after = note(lab, survivor)?;
    let committed = committed(lab, survivor)?;
    println!("   the log was advanced to {advanced_to}, and is at {committed:?}");
    power::on(lab, leader)?;
    two_voters(lab)?;
    Ok(Found { note_lost: after == before, log_lost: committed.is_none_or(|committed| committed < advanced_to) })
}

/// The note as it lies on the node's disk: what it says does not matter here, but that it is the newest.
fn note(lab: &Lab, node: Node) -> Result<String> {
    host::output(lab, node, &["cat", "/var/lib/etcd/tandem-note.json"]).map(|done| done.stdout)
}

/// How far the node's etcd log says that it is committed; nothing where it cannot be read.
fn committed(lab: &Lab, node: Node) -> Result<Option<u64>> {
    let what = format!("the agent of {node} explains");
    let said = sh::wait_for(&what, Duration::from_secs(60), Duration::from_secs(1), || {
        let said = host::said(lab, node, &["tandem", "explain", "--json"]);
        serde_json::from_str::<Value>(&said).ok()
    })?;
    Ok(said.pointer("/snapshot/disk/known/Present/commit_index").and_then(Value::as_u64))
}
