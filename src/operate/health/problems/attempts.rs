//! The attempts to fence a node: the one in progress, the time that it may take, and the reason why the last one failed.

use std::time::Duration;

use super::Found;
use crate::adapters::pacemaker::seen::{FenceDevice, Fencing};
use crate::base::shell::command;
use crate::base::utc;
use crate::operate::cluster::{Cluster, Power};
use crate::operate::health::bmc;
use crate::operate::health::fencing::longest;
use crate::operate::health::view::{self, ResourceSeen};
use crate::records::bmc_note::FencingNote;

/// Age in seconds up to which a failed fencing belongs to the fencing in progress, because Pacemaker retries immediately.
const RECENT: u64 = 600;

/// The attempts to fence one node. Times are in seconds since 1970.
#[derive(Default)]
struct Attempts<'a> {
    /// The attempt that Pacemaker reports as pending; `None` if there is none.
    pending: Option<&'a Fencing>,
    /// The enabled devices that may fence the node.
    devices: Vec<&'a FenceDevice>,
    /// The time at which the fence agent began its present action; `None` if it has ended that action.
    began: Option<u64>,
    /// The longest expected duration of an attempt, in seconds.
    may_take: u64,
    /// The number of failed attempts since the last success. `failed_at` and `why` belong to the last failure.
    failed: usize,
    failed_at: Option<u64>,
    why: Option<String>,
}

impl<'a> Attempts<'a> {
    fn of(cluster: &'a Cluster, seen: ResourceSeen<'a>, target: &str) -> Self {
        let fences = |device: &&FenceDevice| {
            let is_for = device.targets.is_empty() || device.targets.iter().any(|one| one == target);
            is_for && !view::is_disabled(&device.resource)
        };
        let devices: Vec<&FenceDevice> = seen.configuration.fence_devices.iter().filter(fences).collect();
        let of_target = || seen.pacemaker.fencing.iter().filter(|fencing| fencing.target == target);
        let succeeded = of_target().filter(|one| one.status == "success").filter_map(|one| one.completed).max();
        let is_since = |at: u64| succeeded.is_none_or(|last| last < at);
        let failures: Vec<&Fencing> = of_target()
            .filter(|one| one.status == "failed" && one.completed.is_none_or(is_since))
            .filter(|one| one.completed.is_none_or(|at| at.saturating_add(RECENT) >= cluster.at))
            .collect();
        let acted = devices.iter().filter_map(|device| bmc::last_fencing(cluster, device));
        let acted = acted.max_by_key(|note| note.began_at_millis).filter(|note| is_since(note.began_at_millis / 1_000));
        let by_agent = acted.and_then(|note| Some((note.ended_at_millis? / 1_000, note.failure.clone()?)));
        let by_agent = by_agent.filter(|(at, _)| is_since(*at) && at.saturating_add(RECENT) >= cluster.at);
        let began = acted.filter(|note| is_under_way(note)).map(|note| note.began_at_millis / 1_000);
        let may_take =
            devices.iter().map(|device| longest(cluster, seen.configuration, device, target, began.is_some()));
        Self {
            pending: of_target().find(|one| one.status == "pending"),
            began: began.filter(|at| at.saturating_add(RECENT) >= cluster.at),
            may_take: may_take.max().map_or(0, whole_seconds),
            failed: failures.len().max(usize::from(by_agent.is_some())),
            failed_at: failures
                .iter()
                .filter_map(|one| one.completed)
                .chain(by_agent.as_ref().map(|(at, _)| *at))
                .max(),
            why: by_agent
                .map(|(_, why)| why)
                .or_else(|| monitored(cluster, &devices))
                .or_else(|| failures.first().and_then(|one| one.reason.clone())),
            devices,
        }
    }

    /// Returns the seconds by which the fence agent's action exceeds its expected duration; `None` if it does not.
    fn overdue(&self, now: u64) -> Option<u64> {
        now.checked_sub(self.began?.saturating_add(self.may_take)).filter(|over| *over > 0)
    }

    /// Returns the command to type after the last attempt to fence `target` failed.
    fn mend(&self, target: &str) -> String {
        let device = self.devices.iter().find(|device| bmc::is_ours(device)).or(self.devices.first());
        match (device, &self.why) {
            (Some(_), Some(why)) if bmc::is_refused_login(why) => command!("tandem fencing update {}", target),
            (Some(device), _) => fencing_check(&device.resource.id),
            (None, _) => command!("pcs stonith history show {}", target),
        }
    }
}

fn is_under_way(note: &FencingNote) -> bool {
    note.ended_at_millis.is_none_or(|ended| ended < note.began_at_millis)
}

fn whole_seconds(time: Duration) -> u64 {
    time.as_millis().div_ceil(1_000).try_into().unwrap_or(u64::MAX)
}

/// Returns the reason why the last monitor of one of `devices` failed; `None` if it succeeded or is not recent.
fn monitored(cluster: &Cluster, devices: &[&FenceDevice]) -> Option<String> {
    let checked = devices.iter().filter_map(|device| bmc::checked(cluster, device));
    let (_, note) = checked.max_by_key(|(_, note)| note.at)?;
    note.failure.clone().filter(|_| note.at.saturating_add(RECENT) >= cluster.at)
}

/// Reports a lost node that is not confirmed off, and the progress of its fencing.
pub(super) fn lost(cluster: &Cluster, name: &str, found: &mut Found) {
    let (text, command) = match ResourceSeen::of(cluster) {
        Some(seen) => of_lost(cluster, &Attempts::of(cluster, seen, name), name, seen.pacemaker.stonith_enabled),
        None => nothing_known(name),
    };
    let said = match view::power(cluster, name) {
        // The sentence already contains the reason, because the fencing failed by it.
        Some(Power::Unknown(why)) if text.contains(why.as_str()) => String::new(),
        Some(Power::On) => "; its BMC says: On".to_owned(),
        Some(Power::Off) => "; its BMC says: Off".to_owned(),
        Some(Power::Unknown(why)) => format!("; its BMC does not say whether it is on ({why})"),
        None => String::new(),
    };
    found.critical("node-unclean", Some(name), format!("{text}{said}")).typed(command);
}

fn nothing_known(name: &str) -> (String, String) {
    (format!("{name} is lost and not confirmed off, and no fencing of it is known"), history(name))
}

fn of_lost(cluster: &Cluster, attempts: &Attempts<'_>, name: &str, may_fence: bool) -> (String, String) {
    if attempts.failed > 0 {
        let times = attempts.failed;
        let at =
            attempts.failed_at.map_or_else(|| "at a time that is not known".to_owned(), |at| format!("at {}", utc(at)));
        let why = attempts.why.as_deref().unwrap_or("Pacemaker does not report why");
        let is_trying = attempts.pending.is_some() || attempts.began.is_some();
        let next = if is_trying { "another attempt is under way" } else { "no attempt is under way" };
        let text = format!(
            "{name} is lost and not confirmed off: attempt {times} to fence it failed {at}: {why}; {next}; only where you see with your own eyes \
             that {name} is off, type 'pcs stonith confirm {name}'"
        );
        return (text, attempts.mend(name));
    }
    let limit = attempts.may_take;
    if let Some(began) = attempts.began {
        let age = cluster.at.saturating_sub(began);
        if attempts.overdue(cluster.at).is_some() {
            let text = format!(
                "{name} is lost and not confirmed off: its fencing began {age} s ago, and {limit} s were expected; only where you see with your \
                 own eyes that {name} is off, type 'pcs stonith confirm {name}'"
            );
            return (text, attempts.mend(name));
        }
        let text = format!(
            "{name} is lost and not confirmed off: its fencing began {age} s ago and may take {limit} s: nothing to type yet"
        );
        return (text, WATCH.to_owned());
    }
    if may_fence && !attempts.devices.is_empty() {
        let text = format!(
            "{name} is lost and not confirmed off: Pacemaker fences it, which may take {limit} s: nothing to type yet"
        );
        return (text, WATCH.to_owned());
    }
    nothing_known(name)
}

/// Returns the command that queries the BMC of the fence device `id`.
pub(super) fn fencing_check(id: &str) -> String {
    command!("tandem fencing check {}", id)
}

/// The command that shows the cluster's progress, for a problem that should pass by itself.
pub(super) const WATCH: &str = "tandem status --watch";

fn history(name: &str) -> String {
    command!("pcs stonith history show {}", name)
}

/// Reports the last fencing of each node that is not lost, if that fencing is in progress or failed.
pub(super) fn of_others(cluster: &Cluster, seen: ResourceSeen<'_>, found: &mut Found) {
    for name in view::names(cluster) {
        if view::node(cluster, &name).is_some_and(|node| node.unclean && !node.online) {
            continue;
        }
        let Some(last) = seen.pacemaker.fencing.iter().find(|fencing| fencing.target == name) else { continue };
        let action = &last.action;
        match last.status.as_str() {
            "pending" => {
                let attempts = Attempts::of(cluster, seen, &name);
                let limit = attempts.may_take;
                let (text, command) = if attempts.overdue(cluster.at).is_some() {
                    (
                        format!("{name} is being fenced ({action}), longer than the {limit} s that were expected"),
                        history(&name),
                    )
                } else {
                    let text =
                        format!("{name} is being fenced ({action}), which may take {limit} s: nothing to type yet");
                    (text, WATCH.to_owned())
                };
                found.warning("fencing-pending", Some(&name), text).typed(command);
            }
            "failed" => {
                let text = format!("the last fencing of {name} ({action}) did not complete{}", fencing_ended(last));
                found.notice("fencing-failed", Some(&name), text).typed(history(&name));
            }
            _ => {}
        }
    }
}

/// Returns the time and the reason of a failed fencing, as far as they are known: ` at TIME: REASON`.
fn fencing_ended(last: &Fencing) -> String {
    let when = last.completed.map(|at| format!(" at {}", utc(at))).unwrap_or_default();
    let why = last.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    format!("{when}{why}")
}
