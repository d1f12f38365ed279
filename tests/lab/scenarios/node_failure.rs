//! One node's power is cut: the other fences it, runs standalone, and takes it back.

use crate::cluster::up::Wish;
use crate::demo::{Victim, power_cut};
use crate::host::state::Lab;
use crate::load::writer::STEADY;
use crate::sh::Result;

pub fn leader(lab: &Lab, _: Wish) -> Result<()> {
    failure(lab, Victim::Leader)
}

pub fn follower(lab: &Lab, _: Wish) -> Result<()> {
    failure(lab, Victim::Follower)
}

fn failure(lab: &Lab, victim: Victim) -> Result<()> {
    let outcome = power_cut(lab, victim, STEADY, false, |_| Ok(()))?;
    super::recovered(lab, &outcome)
}
