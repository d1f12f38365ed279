//! Problems of Pacemaker, Corosync and the CIB as a whole.

use super::attempts::WATCH;
use super::{Found, power};
use crate::adapters::options::yes_no;
use crate::base::Fact;
use crate::operate::cluster::{Cluster, Power};
use crate::operate::health::view;

pub(super) fn find(cluster: &Cluster, found: &mut Found) {
    pacemaker(cluster, found);
    configuration(cluster, found);
    quorum(cluster, found);
    maintenance(cluster, found);
    stonith(cluster, found);
    one_node(cluster, found);
}

/// Reports what keeps this node's Pacemaker from fencing any node.
pub(in crate::operate::health) fn find_of_fencing(cluster: &Cluster, found: &mut Found) {
    pacemaker(cluster, found);
    configuration(cluster, found);
    quorum(cluster, found);
    stonith(cluster, found);
}

fn pacemaker(cluster: &Cluster, found: &mut Found) {
    let here = view::here(cluster);
    match &cluster.pacemaker {
        Fact::Absent if cluster.is_starting => {
            let text = format!("Pacemaker is starting on {here}: nothing to type yet");
            found.warning("pacemaker-starting", Some(here), text).typed(WATCH);
        }
        Fact::Absent => found
            .warning(
                "pacemaker-stopped",
                Some(here),
                format!("Pacemaker is stopped on {here}: nothing looks after etcd here"),
            )
            .typed("pcs cluster start"),
        unknown @ (Fact::Unknown(_) | Fact::NotAsked) => {
            let why = unknown.why_unknown();
            found
                .warning("pacemaker-unknown", Some(here), format!("Pacemaker could not be asked on {here}: {why}"))
                .typed("pcs status");
        }
        Fact::Known(_) => {}
    }
}

fn configuration(cluster: &Cluster, found: &mut Found) {
    let why = match &cluster.configuration {
        Fact::Known(_) => return,
        Fact::Absent => "there is none on this node",
        unknown @ (Fact::Unknown(_) | Fact::NotAsked) => unknown.why_unknown(),
    };
    let text = format!("the CIB could not be read: {why}");
    found.warning("cib-unknown", None, text).typed("cibadmin --query");
}

fn quorum(cluster: &Cluster, found: &mut Found) {
    let here = view::here(cluster);
    let quorum = match &cluster.quorum {
        Fact::Known(quorum) => quorum,
        // Without Corosync there is no Pacemaker, which is a problem of its own.
        Fact::Absent => return,
        unknown @ (Fact::Unknown(_) | Fact::NotAsked) => {
            let text = format!("Corosync could not be asked on {here}: {}", unknown.why_unknown());
            return found.warning("quorum-unknown", Some(here), text).typed("corosync-quorumtool -s");
        }
    };
    if quorum.quorate {
        return;
    }
    let peer = view::peer_or_other(cluster, here);
    if quorum.waits_for_all {
        waits_for(cluster, here, &peer, found);
    } else {
        let text = format!("the partition of {here} has no quorum, so Pacemaker starts nothing");
        found.critical("no-quorum", Some(here), text).typed("corosync-quorumtool -s");
    }
}

/// Reports that the node `here` booted alone. The command depends on `peer`'s BMC, because Corosync does not see `peer`, and `pcs` may
/// not reach it.
fn waits_for(cluster: &Cluster, here: &str, peer: &str, found: &mut Found) {
    let way = power::way_back(cluster, peer);
    let text = match view::power(cluster, peer) {
        Some(Power::On) => format!(
            "{here} came up alone, and Corosync waits for {peer} (wait_for_all). {peer}'s BMC says: On: it is probably serving, and only the \
             network between the two is cut, or its cluster is stopped{}",
            power::way_there(cluster, peer)
        ),
        Some(Power::Off) => format!(
            "{here} came up alone, and Corosync waits for {peer} (wait_for_all). {peer}'s BMC says: Off: switch {peer} on, and nothing is \
             lost; 'tandem confirm-recovery' on {here} continues without it, and loses every write that {peer} acknowledged alone"
        ),
        Some(Power::Unknown(why)) => format!(
            "{here} came up alone, and Corosync waits for {peer} (wait_for_all). {peer}'s BMC does not say whether {peer} is on ({why}): look \
             at its console; start {peer}, and nothing is lost; 'tandem confirm-recovery' on {here} continues without it, and loses every write \
             that {peer} acknowledged alone"
        ),
        None => format!(
            "{here} came up alone, and Corosync waits for {peer} (wait_for_all): start {peer}, and nothing is lost; 'tandem \
             confirm-recovery' on {here} continues without it, and loses every write that {peer} acknowledged alone"
        ),
    };
    found.critical("waits-for-peer", Some(here), text).typed(way);
}

fn maintenance(cluster: &Cluster, found: &mut Found) {
    if cluster.pacemaker.known().is_some_and(|pacemaker| pacemaker.maintenance) {
        let text = "the cluster is in maintenance mode, so Pacemaker looks after nothing".to_owned();
        found.warning("cluster-maintenance", None, text).typed("pcs property set maintenance-mode=false");
    }
}

/// Reports that fencing is switched off, by Pacemaker's status or by the CIB. Where Pacemaker is stopped, only the CIB has it.
fn stonith(cluster: &Cluster, found: &mut Found) {
    let property = cluster.configuration.known().and_then(|known| known.properties.get("stonith-enabled"));
    let is_off = property.and_then(|value| yes_no::of_pacemaker(value)) == Some(false);
    if is_off || cluster.pacemaker.known().is_some_and(|pacemaker| !pacemaker.stonith_enabled) {
        let text = "stonith-enabled is false, so no lost node is fenced, and no survivor may continue".to_owned();
        found.critical("stonith-disabled", None, text).typed("pcs property set stonith-enabled=true");
    }
}

fn one_node(cluster: &Cluster, found: &mut Found) {
    if let Some([only]) = cluster.configuration.known().map(|known| known.nodes.as_slice()) {
        let text = format!("the cluster has one node, {only}, and no other one would continue");
        found.warning("one-node", Some(only), text).typed(
            "tandem member add NAME=ADDRESS --fence ip=ADDRESS --fence username=NAME --fence password_file=FILE",
        );
    }
}
