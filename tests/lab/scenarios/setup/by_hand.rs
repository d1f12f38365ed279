//! The basis of `tandem setup`: the needs of pcs on a host, typed by hand on two hosts that have nothing but the
//! packages. No command of Tandem is involved, so a failure here is the lab's.

use std::time::Duration;

use super::on_both;
use crate::cluster::pcs;
use crate::cluster::up::{self, Wish};
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::power;
use crate::host::state::Lab;
use crate::judge::check;
use crate::sh::Result;

const TOKEN: &str = "/root/token";
const SERVICES: &[&str] = &["corosync", "pacemaker", "pcsd"];

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    for node in NODES {
        host::put(lab, node, TOKEN, "a token of the lab's, as long as pcs likes them")?;
        states(lab, node, ["inactive disabled"; 3])?;
        host::must(lab, node, &["systemctl", "enable", "--now", "pcsd"])?;
        pcs::run(lab, node, &["pcsd", "accept_token", TOKEN])?;
    }
    let addresses = NODES.map(|node| [node.name().to_owned(), format!("addr={}", node.ip())]).concat();
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    pcs::run(lab, Node::One, &[&["host", "auth"], &addresses[..], &["--token", TOKEN]].concat())?;
    let knet = ["transport", "knet", "crypto", "cipher=aes256", "hash=sha256", "totem", "token=3000"];
    let setup = [&["cluster", "setup", "tandem"], &addresses[..], &knet, &["--start", "--enable"]].concat();
    pcs::run(lab, Node::One, &setup)?;
    up::wait_online(lab)?;
    on_both(lab, &["corosync-quorumtool", "-s"])?;
    // Enabled units come back with the power, and no other command is needed.
    power::cut(lab, Node::Two)?;
    power::on(lab, Node::Two)?;
    up::wait_online(lab)?;
    states(lab, Node::Two, ["active enabled"; 3])?;
    // Units that need Corosync end before it; independent ones continue.
    host::must(lab, Node::Two, &["systemctl", "stop", "corosync"])?;
    states(lab, Node::Two, ["inactive enabled", "inactive enabled", "active enabled"])?;
    host::must(lab, Node::Two, &["systemctl", "start", "pacemaker"])?;
    up::wait_online(lab)?;
    let ssh = ["ssh", "-o", "BatchMode=yes", Node::Two.name(), "cat", "/sys/class/dmi/id/product_uuid"];
    check::must("the other host tells its UUID over ssh", host::must(lab, Node::One, &ssh)?, |said| {
        said.trim() == Node::Two.uuid()
    })
    .map(drop)
}

/// Waits until `systemctl` on `node` reports the state `wanted` for each of [`SERVICES`].
fn states(lab: &Lab, node: Node, wanted: [&str; 3]) -> Result<()> {
    let state = |unit: &&str| {
        let words = ["is-active", "is-enabled"].map(|verb| host::said(lab, node, &["systemctl", verb, unit]));
        words.map(|word| word.trim().to_owned()).join(" ")
    };
    let look = || SERVICES.iter().map(state).collect::<Vec<_>>();
    let what = format!("systemctl on {node} says {wanted:?} of {SERVICES:?}");
    check::within(Duration::from_secs(20), &what, look, |seen| *seen == wanted).map(drop)
}
