//! A recovery that loses its own machine: the survivor of a power cut is cut in the middle of it, so that what it had
//! written down and not synced is gone.

use std::time::Duration;

use super::{roles, two_voters};
use crate::check;
use crate::power;
use crate::scenarios::steps;
use crate::sh::Result;
use crate::state::Lab;
use crate::up::Wish;
use crate::writer::Writers;

/// What the survivor says at the beginning of its recovery, and once its announcement is in force; and how long after that the recovery may
/// still be under way.
const MOMENTS: [(&str, Duration); 2] = [
    ("announcing that it runs standalone", Duration::from_millis(2_500)),
    ("the announcement is in force", Duration::from_millis(300)),
];
/// Whether a cut comes in the middle is a matter of chance: it does once the survivor has taken no write before.
const TRIES: usize = 6;

pub fn in_the_recovery(lab: &Lab, _: Wish) -> Result<()> {
    let mut writers = crate::scenarios::writing(lab)?;
    let mut chance = steps::chance()?;
    for (words, at_most) in MOMENTS {
        let mut in_the_middle = false;
        for _ in 0..TRIES {
            in_the_middle = cut_after(lab, &writers, words, chance.up_to(at_most))?;
            if in_the_middle {
                break;
            }
        }
        check::must(&format!("a cut came after '{words}' and before the first write"), in_the_middle, |is| *is)?;
    }
    crate::scenarios::ends_well(lab, &mut writers)
}

/// Cuts the leader, and the survivor so long after it has said this. Answers whether that came before the first write.
fn cut_after(lab: &Lab, writers: &Writers, words: &str, pause: Duration) -> Result<bool> {
    let (leader, survivor) = roles(lab)?;
    crate::redundant::wait(lab)?;
    let from = steps::log_length(lab, survivor);
    power::cut(lab, leader)?;
    let alone_since = writers.now();
    steps::wait_said(lab, survivor, from, words, Duration::from_secs(120))?;
    std::thread::sleep(pause);
    power::cut(lab, survivor)?;
    let in_the_middle = writers.first_after(alone_since).is_none();
    // Fencing may have switched the first one on, or be about to.
    std::thread::sleep(Duration::from_secs(2));
    for node in [survivor, leader] {
        power::on(lab, node)?;
    }
    two_voters(lab)?;
    Ok(in_the_middle)
}
