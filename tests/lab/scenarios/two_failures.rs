//! One node is lost for long, its peer runs standalone and loses power too. Only the peer gets power back. It has no
//! quorum, and stays inert until an operator grants it. As the sole voter of its data it then serves, and nothing is
//! lost.

use std::time::Duration;

use super::{steps, words};
use crate::cluster::up::Wish;
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::sh::Result;

const FIRST: Node = Node::Two;
const SECOND: Node = Node::One;

pub fn run(lab: &Lab, wish: Wish) -> Result<()> {
    let mut writers = super::writing(lab)?;
    lab.set("boot-delay", "3600")?;
    steps::cut(lab, FIRST)?;
    steps::wait_write(&writers, Duration::from_secs(90))?;
    std::thread::sleep(Duration::from_secs(2));
    steps::cut(lab, SECOND)?;
    // From here on the first node boots when it is requested, which fencing does.
    steps::on(lab, SECOND, 20)?;
    steps::wait_pacemaker(lab, SECOND)?;
    steps::stays_inert(lab, SECOND, 6)?;
    // Fencing has switched the first node on. Its boot takes an hour, so its BMC reports On.
    words::give_up(lab, SECOND, "--node-is-on node2", &["--confirm node2", "--grant-quorum"])?;
    let served_by = steps::wait_write(&writers, Duration::from_secs(90))?;
    if served_by != SECOND {
        return Err(format!("{served_by} took the first write, which cannot know of all others").into());
    }
    lab.set("boot-delay", &wish.boot_delay.to_string())?;
    super::ends_well(lab, &mut writers)
}
