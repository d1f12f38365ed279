//! The case in which a plain forced new cluster loses writes: the leader loses power, and the survivor's etcd dies
//! before it has recorded the last entries as committed.

use std::cell::Cell;

use crate::cluster::etcd;
use crate::cluster::up::Wish;
use crate::demo::{Outcome, Victim, power_cut};
use crate::host;
use crate::host::node::NODES;
use crate::host::state::Lab;
use crate::judge::figures;
use crate::load::writer::ONE_BY_ONE;
use crate::programs::faulty;
use crate::sh::{self, Result};

/// The name of the fault (see [`faulty`]) that keeps the recovery from recording the survivor's whole log as committed
/// before it forces a new cluster.
const SWITCH: &str = "test-skip-advance-commit";
/// The number of tries to see a loss. A loss is likely in each try but not certain, because it needs a write that is
/// in flight at the right moment.
const TRIES: usize = 8;

/// Checks that the recovery loses no acknowledged write. Before it forces a new cluster, it records every entry of the
/// survivor's log as committed.
pub fn nothing_lost(lab: &Lab, _: Wish) -> Result<()> {
    let outcome = cut_and_kill(lab)?;
    super::recovered(lab, &outcome)
}

/// Checks that acknowledged writes are lost if the recovery does not record the entries of the survivor's log as
/// committed before it forces a new cluster. Otherwise [`nothing_lost`] would prove nothing.
///
/// etcd may also have applied entries to its store that the forced etcd then discards from its log. From then on the
/// two members hold different data, so the lab is not used again.
pub fn loss_is_seen(lab: &Lab, _: Wish) -> Result<()> {
    faulty::install(lab)?;
    faulty::switch(lab, SWITCH, true)?;
    let mut seen = false;
    for attempt in 1..=TRIES {
        let outcome = cut_and_kill(lab)?;
        let lost = outcome.lost_alone.max(outcome.verdict.lost.len());
        figures::print(format!("attempt {attempt}: {lost} acknowledged writes lost"));
        if lost > 0 {
            seen = true;
            break;
        }
    }
    faulty::switch(lab, SWITCH, false)?;
    if seen { super::clean(lab) } else { Err("no loss was seen with the commit-index step switched off".into()) }
}

fn cut_and_kill(lab: &Lab) -> Result<Outcome> {
    let pids = NODES.map(|node| etcd::pid(lab, node));
    let at = Cell::new(None);
    power_cut(lab, Victim::Leader, ONE_BY_ONE, false, |survivor| {
        at.set(Some(survivor));
        // The process id is read in advance, because signal and power cut must come together.
        let pid = pids[usize::from(survivor.number() - 1)].as_deref().ok_or("no etcd runs on the survivor")?;
        host::must(lab, survivor, &["kill", "-9", pid])?;
        lab.event(&format!("etcd on {survivor} got SIGKILL"));
        Ok(())
    })
    .map_err(|error| -> sh::Error { format!("{error} (survivor: {:?})", at.get()).into() })
}
