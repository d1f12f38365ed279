//! A node leaves in good order, and its transient attributes are back in the CIB. Pacemaker up to 3.0.1 can do that
//! when a new attribute writer restores what it remembers. The survivor does not use a record of that node. Once the
//! node is back, it does not take a wish as its own. It does not endlessly retry to delete what Pacemaker cannot
//! delete.

use std::time::Duration;

use crate::cluster;
use crate::cluster::pacemaker;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::judge::check;
use crate::scenarios::steps;
use crate::sh::{self, Result};

const LEAVES: Node = Node::Two;
const STAYS: Node = Node::One;
/// The attributes by which an operator or OpenShift requests something of the agent. The scenario writes them for the node that left, as
/// if they had been left behind.
const WISHES: [&str; 2] = ["force_new_cluster", "restart_no_leave"];
/// The time of several monitors, which run every five seconds.
const A_FEW_MONITORS: Duration = Duration::from_secs(15);

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let logs = NODES.map(|node| steps::log_length(lab, node));
    let mut writers = crate::scenarios::writing(lab)?;
    let record = cluster::attribute(lab, STAYS, "reboot", "etcd_record");
    let record = record.ok_or_else(|| format!("{STAYS} has published nothing"))?;
    pacemaker::end(lab, LEAVES)?;
    steps::wait_alone(lab, STAYS)?;
    put_back(lab, &record)?;
    let known = host::said(lab, STAYS, &["tandem", "explain"]);
    let whose = format!("{LEAVES}'s record ");
    let is_none = |said: &String| said.lines().any(|line| line.contains(&whose) && line.ends_with(" none"));
    check::must("a record of a node that has left counts as none", known, is_none)?;

    pacemaker::begin(lab, LEAVES)?;
    crate::cluster::etcd::wait_two_voters(lab, Duration::from_secs(120))?;
    // The node's attribute manager may have removed them as it started, or not.
    put_back(lab, &record)?;
    std::thread::sleep(A_FEW_MONITORS);
    let plan = host::said(lab, LEAVES, &["tandem", "explain"]);
    check::must("nothing is to be taken back", plan, |said| !said.contains("the force that was asked for"))?;
    check::must("the wishes are in the CIB still", stuck(lab), |names| names.len() == WISHES.len())?;

    let from = steps::log_length(lab, LEAVES);
    steps::standby(lab, LEAVES, true)?;
    steps::wait_said(lab, LEAVES, from, "leaving the member list", Duration::from_secs(60))?;
    steps::wait_alone(lab, STAYS)?;
    take_away(lab)?;
    steps::standby(lab, LEAVES, false)?;
    crate::scenarios::ends_well(lab, &mut writers)?;
    steps::nothing_forced(lab, logs)
}

/// Writes `record` and the attributes in [`WISHES`] for the node that left directly into the CIB. Pacemaker's attribute managers do not
/// learn of them.
fn put_back(lab: &Lab, record: &str) -> Result<()> {
    let (id, name) = (LEAVES.number(), LEAVES.name());
    let pair = |key: &str, value: &str| {
        let value = value.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
        format!("<nvpair id=\"status-{id}-{key}\" name=\"{key}\" value=\"{value}\"/>")
    };
    let wishes = WISHES.map(|key| pair(key, name)).concat();
    // While the node is online, the record is its own.
    let gone = !cluster::online(lab, STAYS).contains(&LEAVES);
    let record = if gone { pair("etcd_record", record) } else { String::new() };
    let xml = format!(
        "<node_state id=\"{id}\" uname=\"{name}\"><transient_attributes id=\"{id}\"><instance_attributes \
         id=\"status-{id}\">{record}{wishes}</instance_attributes></transient_attributes></node_state>"
    );
    let words = ["cibadmin", "--modify", "--allow-create", "--scope", "status", "--xml-text", &xml];
    host::must(lab, STAYS, &words)?;
    lab.event(&format!("transient attributes of {LEAVES} are put back into the CIB"));
    Ok(())
}

/// Returns those of [`WISHES`] that the CIB contains for the node that left.
fn stuck(lab: &Lab) -> Vec<&'static str> {
    let there = |name: &&str| host::must(lab, STAYS, &["cibadmin", "--query", "--xpath", &place(name)]).is_ok();
    WISHES.into_iter().filter(there).collect()
}

fn take_away(lab: &Lab) -> Result<()> {
    for name in stuck(lab) {
        host::must(lab, STAYS, &["cibadmin", "--delete", "--xpath", &place(name)])?;
    }
    sh::wait_for("the wishes to be gone", Duration::from_secs(20), Duration::from_millis(300), || {
        stuck(lab).is_empty().then_some(())
    })
}

fn place(name: &str) -> String {
    format!("//node_state[@uname='{LEAVES}']/transient_attributes//nvpair[@name='{name}']")
}
