//! The case in which a plain forced new cluster loses writes: the leader loses power and the survivor's etcd dies
//! without having noted how far the last entries were committed.

use std::cell::Cell;

use crate::demo::{Outcome, Victim, power_cut};
use crate::etcd;
use crate::faulty;
use crate::host;
use crate::node::NODES;
use crate::sh::{self, Result};
use crate::state::Lab;
use crate::up::Wish;
use crate::writer::ONE_BY_ONE;

/// Switches the commit-index step off where it exists, in a program that was built to be so switched.
const SWITCH: &str = "test-skip-advance-commit";
/// The loss is likely each time, not certain: it takes a write that is in flight at the right moment.
const TRIES: usize = 8;

/// With the step on: nothing is lost.
pub fn nothing_lost(lab: &Lab, _: Wish) -> Result<()> {
    let outcome = cut_and_kill(lab)?;
    super::recovered(lab, &outcome)
}

/// With the step off the loss must show, or the check for lost writes proves nothing.
///
/// Without the step, etcd may also have applied to its store what it then discards from its log, and the two members
/// hold different data from then on: nobody goes on in this lab.
pub fn loss_is_seen(lab: &Lab, _: Wish) -> Result<()> {
    faulty::install(lab)?;
    faulty::switch(lab, SWITCH, true)?;
    let mut seen = false;
    for attempt in 1..=TRIES {
        let outcome = cut_and_kill(lab)?;
        let lost = outcome.lost_alone.max(outcome.verdict.lost.len());
        println!("   attempt {attempt}: {lost} acknowledged writes lost");
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
        // Looked up beforehand: signal and power cut must come together.
        let pid = pids[usize::from(survivor.number() - 1)].as_deref().ok_or("no etcd runs on the survivor")?;
        host::must(lab, survivor, &["kill", "-9", pid])?;
        lab.event(&format!("etcd on {survivor} got SIGKILL"));
        Ok(())
    })
    .map_err(|error| -> sh::Error { format!("{error} (survivor: {:?})", at.get()).into() })
}
