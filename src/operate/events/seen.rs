//! Reports as events what changes between two observations of the collector and is not reported by Pacemaker's alerts.
//!
//! Both nodes observe. Each node reports changes of its own, and the designated controller reports those of the
//! cluster.

use std::collections::BTreeMap;

use crate::adapters::pacemaker::seen::{Instance, Node, Pacemaker};
use crate::operate::cluster::Cluster;
use crate::operate::health::secret_differs;
use crate::records::events::{Event, Type, reason};

/// Seconds after which the facts that a collector published are stale.
pub const STALE_AFTER: u64 = 300;
/// Times before a certificate's expiry at which an event reports the certificate, in seconds, each with the event's
/// severity.
const CERTIFICATE_STEPS: [(u64, Type); 2] = [(30 * DAY, Type::Warning), (7 * DAY, Type::Error)];
const DAY: u64 = 24 * 60 * 60;

/// Returns the events that the changes from `before` to `now` cause. Without `before`, bad states count as changes.
pub fn changes(before: Option<&Cluster>, now: &Cluster) -> Vec<Event> {
    let mut events = certificates(before, now);
    let Some(pacemaker) = now.pacemaker.known() else { return events };
    let last = before.and_then(|before| before.pacemaker.known());
    if pacemaker.dc.as_deref() == Some(now.here.as_str()) {
        events.extend(maintenance(now, last, pacemaker));
        events.extend(stale(before, now, pacemaker));
        events.extend(secrets(before, now));
    }
    if let Some(node) = node_of(pacemaker, &now.here) {
        let was = last.and_then(|last| node_of(last, &now.here));
        events.extend(unhealthy(now, was, node));
        events.extend(resources(now, last, pacemaker, node));
    }
    events
}

fn told(now: &Cluster, kind: Type, reason: &str, node: &str, message: String) -> Event {
    let cause = format!("{reason} {node} {} {message}", now.at);
    Event::new(now.at * 1000, kind, reason, node, message, cause)
}

fn node_of<'a>(pacemaker: &'a Pacemaker, name: &str) -> Option<&'a Node> {
    pacemaker.nodes.iter().find(|node| node.name == name)
}

fn maintenance(now: &Cluster, last: Option<&Pacemaker>, pacemaker: &Pacemaker) -> Option<Event> {
    let was = last.is_some_and(|last| last.maintenance);
    let here = now.here.as_str();
    match (was, pacemaker.maintenance) {
        (false, true) => {
            let message = "the cluster is in maintenance: Pacemaker starts, stops and fences nothing".to_owned();
            Some(told(now, Type::Error, reason::IN_MAINTENANCE, here, message))
        }
        (true, false) => {
            let message = "the cluster is not in maintenance any more".to_owned();
            Some(told(now, Type::Normal, reason::OUT_OF_MAINTENANCE, here, message))
        }
        _ => None,
    }
}

/// Returns an event for each other node with a collector that stopped publishing while Pacemaker runs there.
fn stale(before: Option<&Cluster>, now: &Cluster, pacemaker: &Pacemaker) -> Vec<Event> {
    let age = |cluster: &Cluster, name: &str| {
        let collected = cluster.collected.get(name)?.known()?;
        Some(cluster.at.saturating_sub(collected.at))
    };
    let others = pacemaker.nodes.iter().filter(|node| node.online && node.name != now.here);
    let newly = others.filter(|node| {
        let is_stale = |cluster: &Cluster| age(cluster, &node.name).is_some_and(|age| age > STALE_AFTER);
        is_stale(now) && !before.is_some_and(is_stale)
    });
    newly
        .map(|node| {
            let age = age(now, &node.name).unwrap_or_default();
            let message =
                format!("{} has published nothing of itself for {age} s: see tandem-collect.timer", node.name);
            told(now, Type::Error, reason::STATUS_STALE, &node.name, message)
        })
        .collect()
}

/// Returns an event for each fence device that newly differs from OpenShift's Secret.
fn secrets(before: Option<&Cluster>, now: &Cluster) -> Vec<Event> {
    let devices = now.configuration.known().map(|known| known.fence_devices.as_slice()).unwrap_or_default();
    let new = devices.iter().filter_map(|device| {
        let (id, target) = (&device.resource.id, device.targets.first()?);
        let differs = secret_differs(now, id)?;
        let was = before.and_then(|before| secret_differs(before, id));
        if was.is_some() {
            return None;
        }
        let message = format!(
            "fencing-secret-differs: OpenShift's Secret has another {differs} than {id}: type 'tandem fencing update {target} --from-secret'"
        );
        Some(told(now, Type::Warning, reason::SECRET_DIFFERS, target, message))
    });
    new.collect()
}

fn unhealthy(now: &Cluster, was: Option<&Node>, node: &Node) -> Vec<Event> {
    let states =
        |node: &Node| [(node.standby, "in standby"), (node.maintenance, "in maintenance"), (node.unclean, "unclean")];
    let before = was.map_or([(false, ""); 3], states);
    let changed = states(node).into_iter().zip(before).filter(|((is, _), (was, _))| is != was);
    changed
        .map(|((is, word), _)| {
            let name = &node.name;
            if is {
                told(now, Type::Error, reason::NODE_UNHEALTHY, name, format!("{name} is {word}"))
            } else {
                told(now, Type::Normal, reason::NODE_HEALTHY, name, format!("{name} is not {word} any more"))
            }
        })
        .collect()
}

/// Returns an event for each of this node's resources that is newly blocked, unmanaged or failed. Starts and stops are left to
/// Pacemaker's alerts.
fn resources(now: &Cluster, last: Option<&Pacemaker>, pacemaker: &Pacemaker, node: &Node) -> Vec<Event> {
    let is_here = |instance: &&Instance| instance.nodes.contains(&node.name);
    let why = |instance: &Instance| match () {
        () if instance.blocked => Some("is blocked: Pacemaker does nothing with it"),
        () if instance.failed => Some("has failed"),
        () if !instance.managed => Some("is unmanaged: Pacemaker does not look after it"),
        () => None,
    };
    let faults = |pacemaker: &Pacemaker| -> BTreeMap<String, &'static str> {
        let here = pacemaker.resources.iter().filter(is_here);
        here.filter_map(|instance| Some((instance.id.clone(), why(instance)?))).collect()
    };
    // In maintenance every resource is unmanaged, and the maintenance was reported.
    if pacemaker.maintenance || node.maintenance {
        return Vec::new();
    }
    let before = last.filter(|last| !last.maintenance).map(faults).unwrap_or_default();
    let new = faults(pacemaker).into_iter().filter(|(id, why)| before.get(id) != Some(why));
    new.map(|(id, why)| {
        let message = format!("{id} on {} {why}", node.name);
        told(now, Type::Error, reason::RESOURCE_UNHEALTHY, &node.name, message)
    })
    .collect()
}

/// Returns an event for each certificate of this node that has newly reached a step of [`CERTIFICATE_STEPS`] before its expiry.
fn certificates(before: Option<&Cluster>, now: &Cluster) -> Vec<Event> {
    let Some(collected) = now.collected.get(&now.here).and_then(|fact| fact.known()) else { return Vec::new() };
    let last = before.map_or(0, |before| before.at);
    let mut events = Vec::new();
    for certificate in &collected.certificates {
        let is_near = |at: u64, step: u64| certificate.ends.saturating_sub(at) <= step;
        let reached = |step: u64| is_near(now.at, step) && (last == 0 || !is_near(last, step));
        let Some((step, kind)) = CERTIFICATE_STEPS.into_iter().rev().find(|(step, _)| reached(*step)) else { continue };
        let days = certificate.ends.saturating_sub(now.at) / DAY;
        let message = format!("the certificate {} ends in {days} days", certificate.file);
        let cause = format!("certificate {} {} {step}", certificate.file, certificate.ends);
        events.push(Event::new(now.at * 1000, kind, reason::CERTIFICATE, &now.here, message, cause));
    }
    events
}

/// Returns the event that the cluster has become healthy again; `None` if it has not, or if this node is not the designated controller.
/// `before` and `verdict` are verdicts in one word.
pub fn verdict(now: &Cluster, before: Option<&str>, verdict: &str) -> Option<Event> {
    let is_dc = now.pacemaker.known().and_then(|known| known.dc.as_deref()) == Some(now.here.as_str());
    let is_well_again = verdict == "redundant" && before.is_some_and(|before| before != "redundant");
    (is_dc && is_well_again)
        .then(|| told(now, Type::Normal, reason::HEALTHY, &now.here, "the cluster is healthy again".to_owned()))
}

#[cfg(test)]
mod tests;
