//! The check that the measured times fit into the configured ones, and that the BMC and the peer have different networks.

use std::time::Duration;

use super::{About, Answer, Case, Severity, race, seconds};
use crate::adapters::pacemaker::attributes::FENCE_WAIT_SECONDS;
use crate::adapters::pacemaker::duration::millis;
use crate::adapters::pacemaker::seen::{Configuration, FenceDevice};
use crate::base::Fact;
use crate::base::shell::command;
use crate::operate::cluster::Cluster;
use crate::operate::health::bmc;

/// Pacemaker's default for `stonith-timeout`. The constants below are the monitor's default timeout and the fence agent's.
const STONITH_TIMEOUT: Duration = Duration::from_secs(60);
const MONITOR_TIMEOUT: Duration = Duration::from_secs(20);
const ACTING: Duration = Duration::from_secs(55);
const ASKING: Duration = Duration::from_secs(15);
/// The shortest `fencing_delay` that `cluster.toml` may have, in seconds.
const SHORTEST_DESCRIBED: u64 = 5;
/// Time that a fencing takes in addition to the time to Off. It covers the login, the way back to On, and Pacemaker's own steps.
const BESIDE: Duration = Duration::from_secs(6);

pub(super) fn check(case: &mut Case<'_>, is_whole: bool) {
    for device in case.devices.clone() {
        let answers: Vec<&Answer> =
            case.asked.answers.iter().filter(|answer| answer.device == device.resource.id).collect();
        for answer in answers {
            slow_answer(case, device, answer);
            slow_off(case, device, answer);
            one_network(case, device, answer);
        }
    }
    if is_whole {
        delays(case);
    }
}

fn parse(text: &str) -> Option<Duration> {
    millis(text).map(Duration::from_millis)
}

fn time(device: &FenceDevice, name: &str) -> Option<Duration> {
    parse(device.resource.parameters.get(name)?)
}

/// Returns the shortest of the times that are set, with the name of its option.
fn least(of: impl IntoIterator<Item = (&'static str, Option<Duration>)>) -> Option<(&'static str, Duration)> {
    of.into_iter().filter_map(|(name, time)| Some((name, time?))).min_by_key(|(_, time)| *time)
}

fn slow_answer(case: &mut Case<'_>, device: &FenceDevice, answer: &Answer) {
    let id = &device.resource.id;
    let monitor = device.resource.operations.iter().find(|(name, ..)| name == "monitor");
    let operation = monitor.map(|(_, _, timeout)| Duration::from_millis(*timeout)).filter(|time| !time.is_zero());
    let limits = [
        ("pcmk_monitor_timeout", time(device, "pcmk_monitor_timeout")),
        ("the monitor's timeout", Some(operation.unwrap_or(MONITOR_TIMEOUT))),
        ("action_timeout", Some(time(device, "action_timeout").unwrap_or(ASKING))),
    ];
    let Some((name, limit)) = least(limits) else { return };
    if answer.note.failure.is_some() || Duration::from_millis(answer.note.millis) * 2 <= limit {
        return;
    }
    let text = format!(
        "the BMC at {} took {} s for a look, and {name} is {} s: on a bad day that is a failure",
        answer.note.address,
        seconds(answer.note.millis),
        limit.as_secs()
    );
    let command = command!(
        "pcs stonith update {} action_timeout=40 pcmk_monitor_timeout=45 op monitor interval=60s timeout=45s",
        id
    );
    case.add("slow-answer", Severity::Warning, About::Both(id, &answer.target), text, Some(command));
}

/// Returns the longest measured time to Off through `device`, in milliseconds, from the results of all nodes; `None` if none was
/// measured.
fn to_off(case: &Case<'_>, device: &FenceDevice) -> Option<u64> {
    let answers = case.asked.answers.iter().filter(|answer| answer.device == device.resource.id);
    let addresses: Vec<&str> = answers.clone().map(|answer| answer.note.address.as_str()).collect();
    let published = case.cluster.collected.values().filter_map(Fact::known).flat_map(|collected| &collected.bmcs);
    let published = published.filter(|note| addresses.contains(&note.address.as_str()));
    answers.map(|answer| &answer.note).chain(published).filter_map(|note| note.millis_to_off).max()
}

fn slow_off(case: &mut Case<'_>, device: &FenceDevice, answer: &Answer) {
    let id = &device.resource.id;
    let Some(to_off) = to_off(case, device) else { return };
    let stonith_timeout = case.configuration.properties.get("stonith-timeout").and_then(|text| parse(text));
    let usual = Some(stonith_timeout.unwrap_or(STONITH_TIMEOUT));
    let limits = [
        ("pcmk_off_timeout", time(device, "pcmk_off_timeout")),
        ("pcmk_reboot_timeout", time(device, "pcmk_reboot_timeout")),
        ("stonith-timeout", usual.filter(|_| time(device, "pcmk_reboot_timeout").is_none())),
        ("action_timeout", Some(time(device, "action_timeout").unwrap_or(ACTING))),
    ];
    let Some((name, limit)) = least(limits) else { return };
    let needed = Duration::from_millis(to_off) + time(device, "delay").unwrap_or_default() + fence_wait(device);
    if needed * 4 <= limit * 3 {
        return;
    }
    let text = format!(
        "{} was off {} s after its reset when that was last measured, and {name} is {} s: fencing fails on a bad day",
        answer.target,
        seconds(to_off),
        limit.as_secs()
    );
    let longer = needed.as_secs() * 2;
    let command = command!(
        "pcs stonith update {} action_timeout={} pcmk_off_timeout={} pcmk_reboot_timeout={}",
        id,
        longer,
        longer + 10,
        longer + 10
    );
    case.add("slow-off", Severity::Warning, About::Both(id, &answer.target), text, Some(command));
}

/// Returns how long a node that does not vote waits before it fences with `device`.
fn fence_wait(device: &FenceDevice) -> Duration {
    let waits =
        bmc::is_ours(device) && device.resource.parameters.get("wait_attribute").is_none_or(|name| name != "none");
    if waits { Duration::from_secs(FENCE_WAIT_SECONDS) } else { Duration::ZERO }
}

/// Returns whether a node that fences `target` is a learner. Its fence agent waits, so that the voter can fence first.
fn is_fenced_by_a_learner(cluster: &Cluster, target: &str) -> bool {
    cluster.etcd.iter().any(|(name, etcd)| name != target && etcd.known().is_some_and(|etcd| etcd.learner))
}

/// Warns if this node reaches the BMC and the peer over the same interface. A single broken switch would then cut off the peer and also
/// prevent its fencing.
fn one_network(case: &mut Case<'_>, device: &FenceDevice, answer: &Answer) {
    let (id, target) = (&device.resource.id, &answer.target);
    let Some(here) = case.cluster.collected.get(&case.cluster.here).and_then(Fact::known) else { return };
    let peer = case.configuration.permanent.get(target).and_then(|attributes| attributes.get("node_ip"));
    let host = answer.note.address.rsplit_once(':').filter(|(host, _)| !host.contains(':') || host.ends_with(']'));
    let host = host.map_or(answer.note.address.as_str(), |(host, _)| host.trim_matches(['[', ']']));
    let bmc = here.routes.get(&answer.note.address).or_else(|| here.routes.get(host));
    let peer = peer.and_then(|peer| here.routes.get(peer)).or_else(|| here.routes.get(target));
    let (Some(bmc), Some(peer)) = (bmc, peer) else { return };
    if bmc != peer || *target == case.cluster.here {
        return;
    }
    let text =
        format!("{target} and its BMC are reached over the same interface, {bmc}: what cuts off one cuts off both");
    let command = Some(command!("ip route get {}", host));
    case.add("one-network", Severity::Warning, About::Both(id, target), text, command);
}

/// Returns the longest time that `device` is expected to take to fence `target`. Delays are included unless the fencing `has_begun`. If
/// the time to Off was measured, the result may be shorter than Pacemaker's timeout.
pub(in crate::operate::health) fn longest(
    cluster: &Cluster,
    configuration: &Configuration,
    device: &FenceDevice,
    target: &str,
    has_begun: bool,
) -> Duration {
    let stonith_timeout = configuration.properties.get("stonith-timeout").and_then(|text| parse(text));
    let patience = time(device, "pcmk_reboot_timeout").or(stonith_timeout).unwrap_or(STONITH_TIMEOUT);
    let measured =
        bmc::notes(cluster, device).filter_map(|(_, note)| note.millis_to_off).max().map(Duration::from_millis);
    let own = time(device, "delay").unwrap_or_default();
    // The agent notes the beginning of an action before its wait.
    let wait = if is_fenced_by_a_learner(cluster, target) { fence_wait(device) } else { Duration::ZERO };
    let acting = measured.map_or(patience, |to_off| (own + wait + (to_off * 2).max(to_off + BESIDE)).min(patience));
    if has_begun {
        return acting;
    }
    let base = delay(device, target).saturating_sub(own).max(time(device, "pcmk_delay_max").unwrap_or_default());
    let priority =
        configuration.properties.get("priority-fencing-delay").and_then(|text| parse(text)).unwrap_or_default();
    acting + base.max(priority)
}

/// Returns the delay before `device` fences `target`. `pcmk_delay_base` contains one time for all nodes, or one for each.
pub(super) fn delay(device: &FenceDevice, target: &str) -> Duration {
    let base = device.resource.parameters.get("pcmk_delay_base").map(String::as_str).unwrap_or_default();
    let of_target = base.split([';', ' ']).filter_map(|pair| pair.split_once(':')).find(|(node, _)| *node == target);
    let base = parse(of_target.map_or(base, |(_, time)| time)).unwrap_or_default();
    base + time(device, "delay").unwrap_or_default()
}

/// Checks the fencing delays. Two nodes that lose each other both begin to fence, and only different delays let one of them finish first.
fn delays(case: &mut Case<'_>) {
    let [one, other] = &case.configuration.nodes[..] else { return };
    let (Some(to_one), Some(to_other)) = (case.device_of(one), case.device_of(other)) else { return };
    let devices = [(to_one, one.as_str()), (to_other, other.as_str())];
    if race::decides(case, devices) || prefers_the_promoted(case) {
        return;
    }
    let apart = delay(to_one, one).abs_diff(delay(to_other, other));
    let measured = to_off(case, to_one).max(to_off(case, to_other));
    if !apart.is_zero() && Duration::from_millis(measured.unwrap_or(0)) < apart {
        return;
    }
    let text = match measured {
        Some(measured) => format!(
            "the delays before {one} and {other} are fenced differ by {} s, and it takes {} s to switch one off: two \
             nodes that lose each other may switch each other off",
            apart.as_secs(),
            seconds(measured)
        ),
        None => format!(
            "nothing delays the fencing of {one} more than that of {other}: two nodes that lose each other may switch each \
             other off"
        ),
    };
    let enough = measured.unwrap_or(0) / 1_000 * 2 + 10;
    let command = Some(command!("pcs stonith update {} pcmk_delay_base={}s", to_one.resource.id, enough));
    case.add("delays", Severity::Warning, About::Cluster, text, command);
}

/// Returns the node that is fenced later, and a sentence with its delay and the shortest safe delay. Returns `None` if no delay decides a
/// split.
pub(super) fn preference(case: &Case<'_>) -> Option<(String, String)> {
    let [one, other] = &case.configuration.nodes[..] else { return None };
    let devices = [(case.device_of(one)?, one), (case.device_of(other)?, other)];
    if devices.iter().all(|(device, _)| device.resource.parameters.contains_key("race_with")) {
        return None;
    }
    let [(longest, node), (shortest, _)] = match devices.map(|(device, node)| (delay(device, node), node)) {
        [one, other] if one.0 < other.0 => [other, one],
        [one, other] if one.0 > other.0 => [one, other],
        _ => return None,
    };
    let wait = format!("fenced after {} s", longest.as_secs());
    let Some(to_off) = devices.iter().filter_map(|(device, _)| to_off(case, device)).max() else {
        return Some((node.clone(), format!("{wait}; the time to Off was not measured: 'tandem fencing test' does")));
    };
    let least = (shortest.as_secs() + to_off.div_ceil(1_000) + 1).max(SHORTEST_DESCRIBED);
    Some((node.clone(), format!("{wait}; {least} s is the least that {} s to Off allow", seconds(to_off))))
}

/// Returns whether `priority-fencing-delay` protects the promoted etcd. If so, Pacemaker adds this delay to the devices' delays when it
/// fences the node with the promoted etcd.
pub(super) fn prefers_the_promoted(case: &Case<'_>) -> bool {
    let by_priority = case.configuration.properties.get("priority-fencing-delay").and_then(|text| parse(text));
    let etcd = case.configuration.etcd.as_ref();
    let has_priority = etcd.is_some_and(|etcd| {
        etcd.promotable
            && etcd.meta.get("priority").is_some_and(|priority| priority.parse::<i64>().is_ok_and(|one| one > 0))
    });
    let slowest = case.devices.iter().filter_map(|device| to_off(case, device)).max().unwrap_or(0);
    has_priority && by_priority.is_some_and(|delay| delay > Duration::from_millis(slowest))
}
