//! `restart_no_leave` cannot be taken back: the start that serves does not succeed before it is, so that no later stop
//! finds a wish of another time.

use std::time::Duration;

use super::steps;
use crate::cluster::{self, Failure};
use crate::etcd;
use crate::host;
use crate::node::{NODES, Node};
use crate::sh::{self, Result};
use crate::state::Lab;
use crate::up::Wish;

const WISH: &str = "restart_no_leave";
/// Found before the real one in every search, and fails where the wish is to be taken back.
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
    host::must(lab, node, &["mv", "/usr/sbin/crm_attribute", "/usr/sbin/crm_attribute.real"])?;
    let failed = host::put(lab, node, "/usr/sbin/crm_attribute", IN_ITS_PLACE)
        .and_then(|()| host::must(lab, node, &["chmod", "755", "/usr/sbin/crm_attribute"]))
        .and_then(|_| start_fails(lab, node));
    host::must(lab, node, &["mv", "/usr/sbin/crm_attribute.real", "/usr/sbin/crm_attribute"])?;
    failed?;
    sh::wait_for("the wish to be taken back", Duration::from_secs(120), Duration::from_millis(300), || {
        wish(lab, node).is_none().then_some(())
    })?;
    etcd::wait_two_voters(lab, Duration::from_secs(120))?;
    steps::same_members(lab, members)?;
    steps::nothing_forced(lab, logs)?;
    cluster::pcs(lab, node, &["resource", "cleanup", cluster::ETCD])?;
    super::ends_well(lab, &mut writers)
}

fn start_fails(lab: &Lab, node: Node) -> Result<()> {
    let set = ["crm_attribute", "--lifetime", "reboot", "--node", node.name(), "--name", WISH, "--update", "1"];
    host::must(lab, node.other(), &set)?;
    etcd::kill(lab, node)?;
    sh::wait_for("the start to fail", Duration::from_secs(120), Duration::from_millis(300), || {
        let tells = |failure: &Failure| {
            failure.action == "etcd_start_0" && failure.reason.contains("the write fails in this test")
        };
        cluster::failures(lab, node.other()).into_iter().find(tells)
    })?;
    if wish(lab, node).is_none() {
        return Err(format!("{WISH} is gone although nobody could take it back").into());
    }
    Ok(())
}

fn wish(lab: &Lab, node: Node) -> Option<String> {
    let words = ["crm_attribute", "--lifetime", "reboot", "--node", node.name(), "--name", WISH, "--query", "--quiet"];
    let output = host::output(lab, node.other(), &words).ok()?;
    Some(output.stdout.trim().to_owned()).filter(|value| output.ok && !value.is_empty())
}
