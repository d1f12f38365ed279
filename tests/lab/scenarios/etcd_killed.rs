//! One etcd process dies. Its data is whole: it must come back with it, as the member it was.

use std::time::Duration;

use crate::etcd;
use crate::sh::{self, Result};
use crate::state::Lab;
use crate::up::Wish;

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let leader = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader;
    let before = etcd::view(lab, leader)?;
    let mut writers = super::writing(lab)?;
    etcd::kill(lab, leader)?;
    let killed_at = writers.now();
    let first = sh::wait_for("a write after the kill", Duration::from_secs(120), Duration::from_millis(50), || {
        writers.first_after(killed_at)
    })?;
    println!("   first write {:.1} s after the kill", first.ended.saturating_sub(killed_at).as_secs_f64());
    super::ends_well(lab, &mut writers)?;
    let after = etcd::view(lab, leader)?;
    if after.member != before.member || after.voters != before.voters {
        return Err("the killed member came back as another one: its data was thrown away".into());
    }
    Ok(())
}
