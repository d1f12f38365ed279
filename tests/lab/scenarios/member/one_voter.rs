//! Two nodes become one by a command, and two again by another.

use super::super::setup::typed::HERE;
use super::world::{self, PASSWORD};
use crate::etcd;
use crate::host;
use crate::node::{BMC_PASSWORD, BMC_USER, Second};
use crate::sh::Result;
use crate::state::Lab;
use crate::up::Wish;

/// The BMC of the machine that comes back under the same name.
fn fence() -> String {
    format!(
        "--fence ip=10.98.0.102 --fence username={BMC_USER} \
         --fence systems_uri=/redfish/v1/Systems/System.Embedded.2 --fence password_file={PASSWORD}"
    )
}

pub fn two_one_two(lab: &Lab, wish: Wish) -> Result<()> {
    world::run(lab, wish, "member_removed_and_added", |world| {
        let removed = world.begin("tandem member remove node2 --allow-fewer-voters --yes")?.done()?;
        println!("   {}", removed.said.trim().replace('\n', "\n   "));
        removed.must_be(0)?;
        let listed = host::must(lab, HERE, &["tandem", "member", "list"])?;
        if listed.contains("node2") {
            return Err(format!("the member list still has node2: {listed}").into());
        }
        host::put(lab, HERE, PASSWORD, &format!("{BMC_PASSWORD}\n"))?;
        host::must(lab, HERE, &["chmod", "600", PASSWORD])?;
        world.swap(Second::Node2)?;
        let command = world.begin(&format!("tandem member add node2=10.99.0.2 {} --yes", fence()))?;
        world.join(command)?;
        etcd::wait_two_voters(lab, std::time::Duration::from_secs(60))?;
        world.ends_well(None)
    })
}
