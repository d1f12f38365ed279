//! A recovery on a machine that fails: the survivor of a power cut is cut in the middle of its recovery, so that
//! written data that was not synced is lost.

use std::time::Duration;

use super::{roles, two_voters};
use crate::cluster::up::Wish;
use crate::host::power;
use crate::host::state::Lab;
use crate::load::writer::Writers;
use crate::scenarios::steps;
use crate::sh::Result;

/// The survivor's log lines after which its power is cut: at the beginning of its recovery, and when its announcement
/// is in force. A write follows the second line within about a second.
const WORDS: [&str; 2] = ["announcing that it runs standalone", "the announcement is in force"];
/// The longest pause from the log line to the power cut. The line takes a moment to arrive at the lab.
const PAUSE: Duration = Duration::from_millis(600);
/// The number of power cuts that must hit the middle of a recovery: the survivor has taken no write before. Chance
/// decides whether a cut does.
const IN_THE_MIDDLE: usize = 2;
const TRIES: usize = 10;

pub fn in_the_recovery(lab: &Lab, _: Wish) -> Result<()> {
    let mut writers = crate::scenarios::writing(lab)?;
    let mut chance = steps::chance()?;
    let mut in_the_middle = 0;
    for words in WORDS.into_iter().cycle().take(TRIES) {
        in_the_middle += usize::from(cut_after(lab, &writers, words, chance.up_to(PAUSE))?);
        if in_the_middle == IN_THE_MIDDLE {
            return crate::scenarios::ends_well(lab, &mut writers);
        }
    }
    Err(format!("of {TRIES} cuts {in_the_middle} came in the middle of a recovery").into())
}

/// Cuts the leader's power. Then cuts the survivor's power `pause` after it has logged `words`. Returns whether that
/// was before the survivor's first write.
fn cut_after(lab: &Lab, writers: &Writers, words: &str, pause: Duration) -> Result<bool> {
    let (leader, survivor) = roles(lab)?;
    crate::cluster::redundant::wait(lab)?;
    let from = steps::log_length(lab, survivor);
    power::cut(lab, leader)?;
    let alone_since = writers.now();
    steps::wait_said(lab, survivor, from, words, Duration::from_secs(120))?;
    std::thread::sleep(pause);
    power::cut(lab, survivor)?;
    let in_the_middle = writers.first_after(alone_since).is_none();
    // Fencing may have switched the first node on, or be about to.
    std::thread::sleep(Duration::from_secs(2));
    for node in [survivor, leader] {
        power::on(lab, node)?;
    }
    two_voters(lab)?;
    Ok(in_the_middle)
}
