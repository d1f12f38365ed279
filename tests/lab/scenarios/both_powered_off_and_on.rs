//! Both nodes lose power under writes. Both disks survive, so every acknowledged write must.

use std::time::Duration;

use crate::node::NODES;
use crate::power;
use crate::sh::Result;
use crate::state::Lab;
use crate::up::Wish;

pub fn run(lab: &Lab, wish: Wish) -> Result<()> {
    let mut writers = super::writing(lab)?;
    for node in NODES {
        power::cut(lab, node)?;
    }
    std::thread::sleep(Duration::from_secs(2));
    // Both hosts boot at once, because no step waits for a slow boot.
    lab.set("boot-delay", "0")?;
    for node in NODES {
        power::on(lab, node)?;
    }
    lab.set("boot-delay", &wish.boot_delay.to_string())?;
    super::ends_well(lab, &mut writers)
}
