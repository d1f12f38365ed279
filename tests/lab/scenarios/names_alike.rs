//! The nodes have the names node1 and node10, so that each comparison of names must use the whole name.

use crate::cluster;
use crate::cluster::teardown;
use crate::cluster::up::{self, Wish};
use crate::host::node::{self, Second};
use crate::host::state::Lab;
use crate::judge::check::must;
use crate::judge::decisions;
use crate::sh::Result;

/// Runs the scenario in a lab of its own, because the second node's name `node10` is in all files of a lab.
pub fn run(lab: &Lab, wish: Wish) -> Result<()> {
    node::call_second(Second::Node10);
    let done =
        up::up(lab, wish).and_then(|()| try_everything(lab, wish)).and_then(|()| decisions::replay(lab, "names_alike"));
    if lab.exists() {
        if done.is_err() {
            println!("   logs: {}", teardown::keep_logs(lab, "names_alike").display());
        }
        teardown::down(lab);
    }
    node::call_second(Second::Node2);
    done.map(drop)
}

fn try_everything(lab: &Lab, wish: Wish) -> Result<()> {
    super::graceful_stop_and_return::follower(lab, wish)?;
    super::node_failure::leader(lab, wish)?;
    let shown = cluster::crm_mon(lab, node::NODES[0])?;
    must("the second node is called node10", shown, |shown| shown.contains("node10")).map(drop)
}
