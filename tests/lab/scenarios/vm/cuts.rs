//! A recovery that loses its own machine: the survivor of a power cut is cut in the middle of it, so that what it had
//! written down and not synced is gone.

use std::time::Duration;

use super::{roles, two_voters};
use crate::power;
use crate::scenarios::steps;
use crate::sh::Result;
use crate::state::Lab;
use crate::up::Wish;

/// What the survivor says at the beginning of its recovery, and once its announcement is in force.
const WORDS: [&str; 2] = ["announcing that it runs standalone", "the announcement is in force"];

pub fn in_the_recovery(lab: &Lab, _: Wish) -> Result<()> {
    let mut writers = crate::scenarios::writing(lab)?;
    let mut chance = steps::Chance::begin()?;
    for words in WORDS {
        let (leader, survivor) = roles(lab)?;
        crate::redundant::wait(lab)?;
        let from = steps::log_length(lab, survivor);
        power::cut(lab, leader)?;
        steps::wait_said(lab, survivor, from, words, Duration::from_secs(120))?;
        std::thread::sleep(chance.pause(Duration::from_secs(6)));
        power::cut(lab, survivor)?;
        // Fencing may have switched the first one on, or be about to.
        std::thread::sleep(Duration::from_secs(2));
        for node in [survivor, leader] {
            power::on(lab, node)?;
        }
        two_voters(lab)?;
    }
    crate::scenarios::ends_well(lab, &mut writers)
}
