//! Two nodes become one by a command, and two again by another; before that, the lines of `docs/operate/maintenance.md` for other programs are run.

use super::super::setup::typed::HERE;
use super::world::{self, World};
use crate::cluster::etcd;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::Second;
use crate::host::state::Lab;
use crate::sh::Result;

pub fn two_one_two(lab: &Lab, wish: Wish) -> Result<()> {
    world::run(lab, wish, "member_removed_and_added", |world| {
        super::super::readme::automation(lab)?;
        let removed = world.begin("tandem member remove node2 --allow-fewer-voters --yes")?.done()?;
        println!("   {}", removed.said.trim().replace('\n', "\n   "));
        removed.must_be(0)?;
        let listed = host::must(lab, HERE, &["tandem", "member", "list"])?;
        if listed.contains("node2") {
            return Err(format!("the member list still has node2: {listed}").into());
        }
        world.bmc_password()?;
        world.swap(Second::Node2)?;
        let command = world.begin(&format!("tandem member add node2=10.99.0.2 {} --yes", World::fence(2)))?;
        world.join(command)?;
        etcd::wait_two_voters(lab, std::time::Duration::from_secs(60))?;
        world.ends_well(None)
    })
}
