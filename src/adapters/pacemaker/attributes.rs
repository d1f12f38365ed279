//! The attributes that the agent writes to the CIB. Names that other programs already read are kept.

use super::{Error, run};
use crate::adapters::command::Programs;
use crate::decide::evidence::{Identity, Lineage, PublishedState, Reached, Redundancy, RunningImage};
use crate::decide::plan::Notice;
use crate::os::clock;

/// The transient node attribute in which a node's agent describes the node's etcd data. Pacemaker removes it when the node leaves the
/// membership.
pub const RECORD: &str = "etcd_record";
/// The permanent node attribute with the lineage of a node's data (see [`Lineage`]): the number of forks in its history, and the node that
/// made the last fork.
pub const LINEAGE: &str = "etcd_lineage";
/// The cluster property with the node that is the sole voter.
pub const STANDALONE_NODE: &str = "standalone_node";
/// The cluster property with the node that may start as a learner.
pub const LEARNER_NODE: &str = "learner_node";
/// The cluster property that names the node with the data that the cluster is to use. An operator sets it after the two nodes' data have
/// diverged.
pub const PRIMARY: &str = "etcd_primary";
/// The cluster property that shows whether etcd has two voters, and since when.
pub const REDUNDANCY: &str = "etcd_redundancy";
/// The cluster property with the position in etcd's log that the cluster has reached.
pub const REACHED: &str = "etcd_reached";
/// The cluster property with a voting member that runs on neither of the two nodes.
pub const THIRD_VOTER: &str = "etcd_guest";
/// The cluster property that describes the member change that is under way. The command that changes the members writes it.
pub const MEMBER_CHANGE: &str = "etcd_member_change";
/// The cluster property with the node that last booted without its peer, and the time: `NODE:SECONDS`, in seconds since 1970.
pub const LONE_BOOT: &str = "etcd_lone_boot";
/// The cluster property with the time of the last change of a fence device's options, in milliseconds since 1970, and the device.
pub const FENCING_UPDATED: &str = "etcd_fencing_updated";
/// The transient node attribute with the alarms of a node's etcd.
pub const ALARM: &str = "etcd_alarm";
/// The transient node attribute with the role of a node's etcd, for other resources and programs. `1` is the leader, `0` is any other
/// running etcd.
pub const LEADER: &str = "etcd_leader";
/// The transient node attribute with the seconds that a node's fence agent waits before it switches the other node off.
/// `fence_redfish_rs` reads it.
pub const FENCE_WAIT: &str = "etcd_fence_wait";
/// The transient node attribute with the image of a node's running etcd, and the image of its next start.
pub const IMAGE: &str = "etcd_image";
/// The permanent node attribute with the id of etcd's cluster, in decimal.
pub const CLUSTER_ID: &str = "cluster_id";
/// The permanent node attribute with the id of a node's etcd member, in hexadecimal.
pub const MEMBER_ID: &str = "member_id";

/// The permanent node attribute with a node's IP address.
pub const NODE_IP: &str = "node_ip";
/// The permanent node attribute with the revision that OpenShift's sidecar last wrote on a node.
pub const REVISION: &str = "revision";
/// The permanent node attribute with the UUID that a node's machine reports of itself.
pub const SYSTEM_UUID: &str = "etcd_system_uuid";
/// The permanent node attribute with the time at which a node left etcd's member list, in seconds since 1970.
pub const REMOVAL_LOCK: &str = "member_removal_lock";
/// The permanent node attribute with the time at which a node's fencing last passed its test, in seconds since 1970.
pub const FENCING_TESTED: &str = "etcd_fencing_tested";
/// The transient node attribute of a node on which etcd must start with that node's own data, regardless of the other node's data.
pub const FORCE_NEW_CLUSTER: &str = "force_new_cluster";
/// The transient node attribute of a node on which the next stop of etcd is the first half of a restart.
pub const RESTART_NO_LEAVE: &str = "restart_no_leave";

/// The value of [`FENCE_WAIT`] in seconds. A live voter needs less time to fence this node, including the token time-out, the delay of its
/// fence device, and the reset.
pub const FENCE_WAIT_SECONDS: u64 = 30;

/// Publishes the description of the data of `node` ([`RECORD`]), in one write.
pub fn publish_record(programs: &Programs, node: &str, record: &PublishedState) -> Result<(), Error> {
    let value = serde_json::to_string(record).map_err(|error| Error::Parse(error.to_string()))?;
    run(programs, "attrd_updater", &["--node", node, "--name", RECORD, "--update", &value]).map(drop)
}

/// Publishes the alarms of the etcd on `node`. Without alarms deletes the attribute.
pub fn show_alarm(programs: &Programs, node: &str, alarm: Option<&str>) -> Result<(), Error> {
    set_transient(programs, node, ALARM, alarm)
}

/// Publishes whether the etcd on `node` is the leader. `None` deletes the attribute.
pub fn show_leader(programs: &Programs, node: &str, leads: Option<bool>) -> Result<(), Error> {
    set_transient(programs, node, LEADER, leads.map(|leads| if leads { "1" } else { "0" }))
}

/// Reads the value that [`show_leader`] has written; `None` for any other text.
pub fn parse_leader(value: &str) -> Option<bool> {
    match value {
        "1" => Some(true),
        "0" => Some(false),
        _ => None,
    }
}

/// Publishes that the fence agent on `node` must wait. If `waits` is false, deletes the attribute.
pub fn show_fence_wait(programs: &Programs, node: &str, waits: bool) -> Result<(), Error> {
    let seconds = FENCE_WAIT_SECONDS.to_string();
    set_transient(programs, node, FENCE_WAIT, waits.then_some(seconds.as_str()))
}

/// Publishes the image of the etcd that runs on `node`. `None` deletes the attribute.
pub fn publish_image(programs: &Programs, node: &str, image: Option<&RunningImage>) -> Result<(), Error> {
    let value = image.map(serde_json::to_string).transpose().map_err(|error| Error::Parse(error.to_string()))?;
    set_transient(programs, node, IMAGE, value.as_deref())
}

/// Sets the transient attribute `name` of `node`. `None` deletes it.
fn set_transient(programs: &Programs, node: &str, name: &str, value: Option<&str>) -> Result<(), Error> {
    let of_node = ["--node", node, "--name", name];
    let change = value.map_or_else(|| vec!["--delete"], |value| vec!["--update", value]);
    run(programs, "attrd_updater", &[of_node.as_slice(), &change].concat()).map(drop)
}

/// Publishes `lineage` for `node`, as a permanent attribute.
pub fn publish_lineage(programs: &Programs, node: &str, lineage: &Lineage) -> Result<(), Error> {
    set_permanent(programs, node, LINEAGE, &format!("{}:{}", lineage.forks, lineage.by))
}

/// Reads the lineage that [`publish_lineage`] has written; `None` for any other text.
pub fn parse_lineage(value: &str) -> Option<Lineage> {
    let (forks, by) = value.split_once(':')?;
    Some(Lineage { forks: forks.parse().ok()?, by: by.to_owned() })
}

/// Publishes the ids of etcd's cluster and of the member on `node`, under the names that other programs read.
pub fn publish_identity(programs: &Programs, node: &str, identity: Identity) -> Result<(), Error> {
    set_permanent(programs, node, CLUSTER_ID, &identity.cluster_id.to_string())?;
    set_permanent(programs, node, MEMBER_ID, &format!("{:x}", identity.member_id))
}

/// Publishes an attribute that other programs read, or deletes it, as `notice` demands.
pub fn tell(programs: &Programs, node: &str, notice: &Notice) -> Result<(), Error> {
    match notice {
        Notice::Address(ip) => set_permanent(programs, node, NODE_IP, ip),
        Notice::Revision(revision) => set_permanent(programs, node, REVISION, &revision.to_string()),
        Notice::SystemUuid(uuid) => set_permanent(programs, node, SYSTEM_UUID, uuid),
        Notice::Leaving => set_permanent(programs, node, REMOVAL_LOCK, &clock::wall_seconds().to_string()),
        Notice::Member => delete(programs, node, REMOVAL_LOCK, "forever"),
        Notice::ForceDone => delete(programs, node, FORCE_NEW_CLUSTER, "reboot"),
        Notice::RestartDone => delete(programs, node, RESTART_NO_LEAVE, "reboot"),
    }
}

/// Publishes that the next stop of etcd on `node` is the first half of a restart. [`Notice::RestartDone`] deletes it.
pub fn announce_restart(programs: &Programs, node: &str) -> Result<(), Error> {
    let args = ["--node", node, "--lifetime", "reboot", "--name", RESTART_NO_LEAVE, "--update", "true"];
    run(programs, "crm_attribute", &args).map(drop)
}

/// Publishes that the fencing of `node` passed its test at the time `at`.
pub fn publish_fencing_test(programs: &Programs, node: &str, at: u64) -> Result<(), Error> {
    set_permanent(programs, node, FENCING_TESTED, &at.to_string())
}

fn delete(programs: &Programs, node: &str, name: &str, lifetime: &str) -> Result<(), Error> {
    run(programs, "crm_attribute", &["--node", node, "--lifetime", lifetime, "--name", name, "--delete"]).map(drop)
}

fn set_permanent(programs: &Programs, node: &str, name: &str, value: &str) -> Result<(), Error> {
    run(programs, "crm_attribute", &["--node", node, "--lifetime", "forever", "--name", name, "--update", value])
        .map(drop)
}

pub fn set_property(programs: &Programs, name: &str, value: Option<&str>) -> Result<(), Error> {
    let args = match value {
        Some(value) => vec!["--type", "crm_config", "--name", name, "--update", value],
        None => vec!["--type", "crm_config", "--name", name, "--delete"],
    };
    run(programs, "crm_attribute", &args).map(drop)
}

/// Publishes whether etcd has two voters, with the present time.
pub fn say_redundancy(programs: &Programs, is_redundant: bool) -> Result<(), Error> {
    let said = Redundancy { is_redundant, since: clock::wall_seconds() };
    set_property(programs, REDUNDANCY, Some(&said.to_string()))
}

/// Publishes the position in etcd's log that the cluster has reached.
pub fn say_reached(programs: &Programs, reached: &Reached) -> Result<(), Error> {
    set_property(programs, REACHED, Some(&reached.to_string()))
}

/// Returns the name of the node attribute in which Pacemaker stores the promotion score of `resource`.
pub fn promotion_score(resource: &str) -> String {
    format!("master-{resource}")
}

/// Sets the promotion score of `resource` on `node`. `None` deletes it.
pub fn set_promotion_score(programs: &Programs, resource: &str, node: &str, score: Option<u32>) -> Result<(), Error> {
    let promotion = format!("--promotion={resource}");
    let score = score.map(|score| score.to_string());
    let args = match &score {
        Some(score) => vec![promotion.as_str(), "--node", node, "--lifetime", "reboot", "--update", score],
        None => vec![promotion.as_str(), "--node", node, "--lifetime", "reboot", "--delete"],
    };
    run(programs, "crm_attribute", &args).map(drop)
}

/// Returns the name of the node attribute in which Pacemaker counts the failures of an operation of `resource`.
pub fn failures_of(resource: &str, operation: &str) -> String {
    format!("fail-count-{resource}#{operation}")
}

/// Sets the number of failures of an operation of `resource` on `node`.
pub fn set_failures(programs: &Programs, resource: &str, node: &str, operation: &str, count: u64) -> Result<(), Error> {
    let name = failures_of(resource, operation);
    run(programs, "attrd_updater", &["--node", node, "--name", &name, "--update", &count.to_string()]).map(drop)
}
