//! Both nodes lose power under writes. Both disks survive, so every acknowledged write must.

use std::time::Duration;

use crate::cluster::up::Wish;
use crate::host::node::NODES;
use crate::host::power;
use crate::host::state::Lab;
use crate::sh::Result;

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
