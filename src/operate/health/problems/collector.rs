//! Problems with the collectors, and with the facts that they publish.

use std::collections::BTreeMap;

use super::{Found, on};
use crate::adapters::systemd;
use crate::agent::resource::params;
use crate::base::Fact;
use crate::base::shell::command;
use crate::operate::cluster::{Cluster, Collected};
use crate::operate::health::{view, words};

/// Age in seconds from which a collector's facts are stale. A collector runs every 30 s, so stale facts mean several missed runs.
const STALE: u64 = 300;
/// Share of free space in a file system, in percent, below which the file system is reported.
const LITTLE: u64 = 5;
/// Default directory of etcd's data.
const DATA_DIR: &str = "/var/lib/etcd";

pub(super) fn find(cluster: &Cluster, found: &mut Found) {
    // Without Pacemaker the node cannot read what was published, and the missing Pacemaker is reported already.
    if cluster.pacemaker.known().is_some() {
        for name in view::names(cluster).iter().filter(|name| is_there(cluster, name)) {
            published(cluster, name, found);
        }
    }
    versions(cluster, found);
}

/// Returns whether the node is online, so that its collector can publish facts.
fn is_there(cluster: &Cluster, name: &str) -> bool {
    view::node(cluster, name).is_some_and(|node| node.online && !node.pending)
}

/// Reports each collector of an online node that publishes nothing, or nothing new.
pub(in crate::operate::health) fn find_silent(cluster: &Cluster, found: &mut Found) {
    for name in view::names(cluster).iter().filter(|name| is_there(cluster, name)) {
        facts(cluster, name, found);
    }
}

/// Returns the facts that the collector of `name` published. Reports facts that are missing or old.
fn facts<'a>(cluster: &'a Cluster, name: &str, found: &mut Found) -> Option<&'a Collected> {
    let collected = match cluster.collected.get(name) {
        Some(Fact::Known(collected)) => collected,
        Some(Fact::Unknown(why)) => {
            let text = format!("what {name}'s collector publishes could not be read: {why}");
            found
                .notice("collector-unknown", Some(name), text)
                .typed("attrd_updater --query --all --name tandem-collected");
            return None;
        }
        Some(Fact::Absent | Fact::NotAsked) | None => {
            let text = format!(
                "{name}'s collector publishes nothing: its UUID, certificates, BMC logins and free room are not known"
            );
            found.notice("collector-missing", Some(name), text).typed(on(
                cluster,
                name,
                "systemctl enable --now tandem-collect.timer",
            ));
            return None;
        }
    };
    let age = cluster.at.saturating_sub(collected.at);
    if age > STALE {
        let text =
            format!("{name}'s collector published last {}: what is known of that node is old", words::ago(age, 0));
        found.notice("collector-stale", Some(name), text).typed(on(
            cluster,
            name,
            "systemctl status tandem-collect.timer tandem-collect.service",
        ));
    }
    Some(collected)
}

fn published(cluster: &Cluster, name: &str, found: &mut Found) {
    let Some(collected) = facts(cluster, name, found) else { return };
    if let (Some(free), Some(size)) = (collected.free_bytes, collected.size_bytes.filter(|size| *size > 0))
        && free.saturating_mul(100) / size < LITTLE
    {
        let text =
            format!("the file system of etcd's data on {name} has {} free of {}", words::size(free), words::size(size));
        let configured = cluster.configuration.known().and_then(|known| known.etcd.as_ref());
        let directory = configured.and_then(|etcd| etcd.parameters.get("data_dir")).map_or(DATA_DIR, String::as_str);
        found.warning("disk-full", Some(name), text).typed(on(cluster, name, command!("df -h {}", directory)));
    }
    lone_boot(cluster, name, collected, found);
}

/// Warns if the parameter `lone_boot` allows a lone boot but systemd does not start the unit for it. Such a node would wait for an
/// operator after a power cut.
fn lone_boot(cluster: &Cluster, name: &str, collected: &Collected, found: &mut Found) {
    let etcd = cluster.configuration.known().and_then(|known| known.etcd.as_ref());
    let is_allowed =
        etcd.and_then(|etcd| etcd.parameters.get("lone_boot")).is_some_and(|word| word == params::SOLE_VOTER);
    if is_allowed && collected.enabled.get(systemd::LONE_BOOT) == Some(&false) {
        let text = format!(
            "lone_boot=sole_voter, and {name} does not start tandem-lone-boot at boot: after it has booted alone it waits for an operator"
        );
        found.warning("lone-boot-not-enabled", Some(name), text).typed(on(
            cluster,
            name,
            "systemctl enable tandem-lone-boot",
        ));
    }
}

fn versions(cluster: &Cluster, found: &mut Found) {
    let known = |name: &String| Some((name.clone(), view::collected(cluster, name)?.tandem.clone()));
    let tandem: BTreeMap<String, String> = view::names(cluster).iter().filter_map(known).collect();
    if let Some(two) = versions_by_node(&tandem) {
        let text = format!("two versions of tandem run: {two}");
        found.notice("tandem-versions", None, text).typed("tandem --version");
    }
    let known = |name: &String| Some((name.clone(), view::etcd(cluster, name)?.version.clone()));
    let etcd: BTreeMap<String, String> = view::names(cluster).iter().filter_map(known).collect();
    if let Some(two) = versions_by_node(&etcd) {
        let text = format!("two versions of etcd run: {two}");
        found.notice("etcd-versions", None, text).typed("podman exec etcd etcd --version");
    }
}

/// Returns the versions by node as text, if they differ; else `None`.
fn versions_by_node(versions: &BTreeMap<String, String>) -> Option<String> {
    let mut values = versions.values().filter(|version| !version.is_empty());
    let first = values.next()?;
    if values.all(|version| version == first) {
        return None;
    }
    Some(versions.iter().map(|(node, version)| format!("{version} on {node}")).collect::<Vec<_>>().join(", "))
}
