//! A data dir that the agent moves aside is still aside after a power cut at that moment. Without the sync of its
//! directory it is back in its place, and the check detects that.

use std::time::Duration;

use super::{roles, two_voters};
use crate::cluster::up::Wish;
use crate::host;
use crate::host::power;
use crate::host::state::Lab;
use crate::judge::check;
use crate::programs::faulty;
use crate::scenarios::steps;
use crate::sh::{self, Result};

/// The number of tries to lose an unsynced rename. The disk decides whether it loses the rename, and another sync of
/// the kernel may include it.
const TRIES: usize = 6;
/// The number of power cuts after a rename that is synced.
const SYNCED: usize = 2;
const SKIP_SYNC: &str = "test-skip-rename-sync";
/// The name of the fault (see [`faulty`]) that delays the agent after the rename, because any later sync would
/// include the rename.
const WAIT: &str = "test-wait-after-rename";
/// The line that the agent logs during that delay.
const RENAMED: &str = "test-wait-after-rename: the change is made, and the agent pauses";

pub fn loss_is_seen(lab: &Lab, _: Wish) -> Result<()> {
    faulty::install(lab)?;
    faulty::switch(lab, WAIT, true)?;
    for _ in 0..SYNCED {
        let is_back = is_back_in_its_place(lab)?;
        check::must("the data dir is aside after the cut", is_back, |is_back| !*is_back)?;
    }
    faulty::switch(lab, SKIP_SYNC, true)?;
    let mut is_lost = false;
    for attempt in 1..=TRIES {
        is_lost = is_back_in_its_place(lab)?;
        println!("   attempt {attempt}, the rename is not synced: {}", if is_lost { "lost" } else { "there" });
        if is_lost {
            break;
        }
    }
    faulty::switch(lab, SKIP_SYNC, false)?;
    faulty::switch(lab, WAIT, false)?;
    check::must("a rename was lost without its sync", is_lost, |is_lost| *is_lost).map(drop)
}

/// Cuts the follower's power, and cuts it again as the follower moves its data aside to join anew. Returns whether the data is in its old
/// place after the next boot. The node is in standby during that boot, so that its agent changes nothing.
fn is_back_in_its_place(lab: &Lab) -> Result<bool> {
    let (_, follower) = roles(lab)?;
    crate::cluster::redundant::wait(lab)?;
    let from = steps::log_length(lab, follower);
    // Fencing switches it on.
    lab.set("boot-delay", "0")?;
    power::cut(lab, follower)?;
    steps::wait_said(lab, follower, from, RENAMED, Duration::from_secs(180))?;
    // Fencing presses its button again, and the node stays off.
    lab.set("boot-delay", "36000")?;
    let resets = steps::resets_asked(lab);
    power::cut(lab, follower)?;
    steps::standby(lab, follower, true)?;
    let is_fenced = || (steps::resets_asked(lab) > resets).then_some(());
    sh::wait_for("the node to be fenced", Duration::from_secs(120), Duration::from_millis(300), is_fenced)?;
    power::cut(lab, follower)?;
    lab.set("boot-delay", "0")?;
    power::on(lab, follower)?;
    host::wait_booted(lab, follower)?;
    let is_back = host::output(lab, follower, &["test", "-e", "/var/lib/etcd/member"])?.ok;
    steps::standby(lab, follower, false)?;
    two_voters(lab)?;
    Ok(is_back)
}
