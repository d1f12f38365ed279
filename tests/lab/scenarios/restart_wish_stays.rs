//! `restart_no_leave` cannot be deleted. The start that serves does not succeed before it is deleted, so that no later
//! stop finds an old wish.

use std::time::Duration;

use super::steps;
use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::cluster::up::Wish;
use crate::cluster::{self, Failure};
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::judge::check::eventually;
use crate::sh::Result;

const WISH: &str = "restart_no_leave";
const TOOL: &str = "/usr/sbin/crm_attribute";
/// The path of the real `crm_attribute` while the wrapper is in its place.
const REAL: &str = "/usr/sbin/crm_attribute.real";
const PREPARED: &str = "/usr/sbin/crm_attribute.prepared";
/// A wrapper of `crm_attribute`. It fails if the agent deletes the attribute `restart_no_leave`.
const IN_ITS_PLACE: &str = "#!/bin/sh
case \"$*\" in
    *restart_no_leave*--delete*) echo 'the write fails in this test' >&2; exit 1 ;;
esac
exec /usr/sbin/crm_attribute.real \"$@\"
";

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let node = etcd::wait_two_voters(lab, Duration::from_secs(60))?.leader.other();
    let members = steps::members(lab)?;
    let logs = NODES.map(|node| steps::log_length(lab, node));
    let mut writers = super::writing(lab)?;
    // A program of that name exists at each step, because the agent's monitors continue.
    host::must(lab, node, &["cp", "--preserve", TOOL, REAL])?;
    host::put(lab, node, PREPARED, IN_ITS_PLACE)?;
    host::must(lab, node, &["chmod", "755", PREPARED])?;
    let failed = host::must(lab, node, &["mv", PREPARED, TOOL]).and_then(|_| start_fails(lab, node));
    host::must(lab, node, &["mv", REAL, TOOL])?;
    failed?;
    eventually("the wish is taken back", || wish(lab, node), Option::is_none)?;
    etcd::wait_two_voters(lab, Duration::from_secs(120))?;
    steps::same_members(lab, members)?;
    steps::nothing_forced(lab, logs)?;
    pcs::run(lab, node, &["resource", "cleanup", cluster::ETCD])?;
    super::ends_well(lab, &mut writers)
}

fn start_fails(lab: &Lab, node: Node) -> Result<()> {
    cluster::set_attribute(lab, node.other(), node, "reboot", WISH, "1")?;
    etcd::kill(lab, node)?;
    let tells =
        |failure: &Failure| failure.action == "etcd_start_0" && failure.reason.contains("the write fails in this test");
    steps::wait_failure(lab, node.other(), "a start that fails", tells)?;
    // The wish is not set again, so it stays away once it is deleted.
    eventually("the wish is there, as nobody could take it back", || wish(lab, node), Option::is_some).map(drop)
}

fn wish(lab: &Lab, node: Node) -> Option<String> {
    cluster::attribute(lab, node, "reboot", WISH)
}
