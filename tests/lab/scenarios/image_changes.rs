//! The image of etcd changes: a typo takes nothing down.

use std::time::Duration;

use super::steps;
use crate::asked;
use crate::check::{eventually, must};
use crate::cluster;
use crate::etcd;
use crate::host;
use crate::image;
use crate::node::NODES;
use crate::pcs;
use crate::sh::Result;
use crate::state::Lab;
use crate::up::Wish;

const LIMIT: Duration = Duration::from_secs(120);
const TYPO: &str = "localhost/tandem/etcd:TYPO";
const NOT_HERE: &str = "image-not-here";

/// The lab's own image.
fn own(lab: &Lab) -> String {
    image::name(&lab.setting("etcd").unwrap_or_default())
}

fn set(lab: &Lab, image: &str) -> Result<()> {
    pcs::run_and_wait(lab, NODES[0], &["resource", "update", cluster::ETCD, &format!("image={image}")])?;
    lab.event(&format!("image={image}"));
    Ok(())
}

pub fn typo(lab: &Lab, _: Wish) -> Result<()> {
    etcd::wait_two_voters(lab, Duration::from_secs(60))?;
    let own = own(lab);
    let before = NODES.map(|node| etcd::pid(lab, node));
    let mut writers = super::writing(lab)?;
    set(lab, TYPO)?;
    for node in NODES {
        let warns = || asked::ask(lab, node).is_ok_and(|answer| answer.names(NOT_HERE));
        eventually(&format!("status on {node} names the image that is not here"), warns, |warns| *warns)?;
    }
    let (code, told) = host::typed(lab, NODES[0], "tandem status")?;
    let resolves = format!("pcs resource update {} image={own}", cluster::ETCD);
    must("status ends as degraded and names what resolves it", (code, told), |(code, told)| {
        *code == 3 && told.contains(&resolves) && told.contains(&format!("podman pull {TYPO}"))
    })?;
    must("both members run on", NODES.map(|node| etcd::pid(lab, node)), |after| *after == before)?;
    // A member that is lost comes back from the image that it had.
    etcd::kill(lab, NODES[1])?;
    std::thread::sleep(steps::THREE_MONITORS);
    etcd::wait_two_voters(lab, LIMIT)?;
    let killed = NODES.map(|node| etcd::pid(lab, node));
    set(lab, &own)?;
    for node in NODES {
        let warns = || asked::ask(lab, node).map_or(true, |answer| answer.names(NOT_HERE) || answer.names("image-pending"));
        eventually(&format!("status on {node} names no image"), warns, |warns| !warns)?;
    }
    must("the way back restarts nothing", NODES.map(|node| etcd::pid(lab, node)), |after| *after == killed)?;
    super::ends_well(lab, &mut writers)
}
