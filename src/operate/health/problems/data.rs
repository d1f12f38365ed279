//! The histories of both nodes' data, and data that was moved aside.

use super::{Found, power};
use crate::adapters::pacemaker::attributes::{LINEAGE, PRIMARY, parse_lineage};
use crate::base::{shell_word, utc};
use crate::decide::evidence::Lineage;
use crate::operate::cluster::Cluster;
use crate::operate::health::{view, words};

/// How often each node's history was forked, by its own attribute.
fn lineages(cluster: &Cluster) -> Vec<(String, Lineage)> {
    let Some(configuration) = cluster.configuration.known() else { return Vec::new() };
    let of = |name: String| {
        let lineage = parse_lineage(configuration.permanent.get(&name)?.get(LINEAGE)?)?;
        Some((name, lineage))
    };
    view::names(cluster).into_iter().filter_map(of).collect()
}

pub(super) fn find_histories(cluster: &Cluster, found: &mut Found) {
    // Two voters have one history, whatever was written down of earlier ones.
    if view::voters(cluster).is_some_and(|voters| voters >= 2) {
        return;
    }
    let all = lineages(cluster);
    let [(one, first), (other, second)] = all.as_slice() else { return };
    if first.forks == second.forks {
        let chosen = cluster.configuration.known().is_some_and(|known| known.properties.contains_key(PRIMARY));
        if first.is_beyond(second) && !chosen {
            let text = format!(
                "{one} and {other} both ran standalone, and no program can merge what they took: choose the data to keep"
            );
            found.critical("histories-split", None, text).typed("crm_attribute --name etcd_primary --update NODE");
        }
        return;
    }
    let (ahead, behind) = if first.forks > second.forks { (one, other) } else { (other, one) };
    let serves = view::etcd(cluster, behind).is_some_and(|etcd| etcd.leader.is_some());
    if !view::is_online(cluster, ahead) && view::is_online(cluster, behind) && !serves {
        let text = format!(
            "{ahead} ran standalone and may have taken writes that {behind} lacks: start {ahead}, and nothing is lost"
        );
        found.critical("left-behind", Some(behind), text).typed(power::way_back(cluster, ahead));
    }
}

pub(super) fn find_moved_aside(cluster: &Cluster, found: &mut Found) {
    for name in view::names(cluster) {
        for moved in view::collected(cluster, &name).map(|known| known.moved_aside.as_slice()).unwrap_or_default() {
            let (path, at, size) = (&moved.path, utc(moved.at), words::size(moved.bytes));
            let text = format!(
                "data that was moved aside lies in {path} on {name}, of {at}, {size}: 'rm -r' it once you know that nothing in it is missed"
            );
            found.notice("moved-aside", Some(&name), text).typed(format!("du -sh {}", shell_word(path)));
        }
    }
}
