//! One node's power is cut: the other fences it, runs standalone, and takes it back.

use crate::demo::{Victim, power_cut};
use crate::sh::Result;
use crate::state::Lab;
use crate::up::Wish;
use crate::writer::STEADY;

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
