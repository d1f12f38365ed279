//! Findings from the BMCs' answers: those that this node just got, and the last ones of the other node.

use super::{About, Answer, Case, Level};
use crate::adapters::options::yes_no;
use crate::adapters::pacemaker::seen::FenceDevice;
use crate::base::Fact;
use crate::base::shell::command;
use crate::operate::health::bmc::{is_ours, is_refused_login};
use crate::operate::health::view;
use crate::os::uuid;
use crate::records::bmc_note::BmcNote;

/// Seconds by which a BMC's clock may be wrong. A larger error makes its certificates and its log misleading.
const CLOCK: i64 = 60;
/// Seconds before its expiry at which a BMC's certificate is reported. The alert rules for Prometheus use the same limit.
const ENDS_SOON: u64 = 30 * 86_400;
/// Age in seconds from which the other node's result about a BMC is outdated. By default Pacemaker monitors a device each minute.
const OLD: u64 = 600;

pub(super) fn check(case: &mut Case<'_>) {
    for device in case.devices.clone() {
        let answers: Vec<&Answer> =
            case.asked.answers.iter().filter(|answer| answer.device == device.resource.id).collect();
        if answers.is_empty() {
            not_asked(case, device);
        }
        configured(case, device);
        for answer in answers {
            one(case, device, answer);
        }
        told_by_others(case, device);
    }
}

fn not_asked(case: &mut Case<'_>, device: &FenceDevice) {
    let id = &device.resource.id;
    let text = if let Some(why) = case.asked.unread.get(id) {
        format!("{id}: its BMC was not asked: {why}")
    } else if is_ours(device) {
        format!("{id}: its BMC was not asked")
    } else {
        format!(
            "{id} is of {}, whose BMC cannot be asked here: only what Pacemaker's monitor says is known",
            device.resource.agent
        )
    };
    let command = Some(command!("pcs stonith status {}", id));
    case.add("not-asked", Level::Unknown, About::Device(id), text, command);
}

/// Checks a fence device's options for faults that do not show while the device works.
fn configured(case: &mut Case<'_>, device: &FenceDevice) {
    let id = &device.resource.id;
    let given =
        |name: &str| device.resource.parameters.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
    if !is_ours(device) {
        return;
    }
    if given("system_uuid").is_none() && device.targets.len() < 2 {
        let (first, found) = found_uuid(case, device);
        let text = format!(
            "{id} does not say which machine it is for: a BMC that is recabled, or has another address, is taken for it{first}"
        );
        let command = found.map(|found| command!("pcs stonith update {} system_uuid={}", id, found));
        case.add("no-system-uuid", Level::Warning, About::Device(id), text, command);
    }
    let insecure = given("ssl_insecure").and_then(yes_no::of_fence_agents) == Some(true);
    if insecure {
        let shown = case.asked.answers.iter().find(|answer| answer.device == *id);
        let shown = shown.map(|answer| to_compare(&answer.note, "")).unwrap_or_default();
        let text = format!("{id} trusts anybody who answers at its BMC's address, and sends him the password{shown}");
        let command = pin(device.targets.first().map_or("NODE", String::as_str));
        case.add("not-verified", Level::Warning, About::Device(id), text, Some(command));
    }
}

/// Returns the UUID that a device's BMC reports, to be set as `system_uuid`. The text is a hint on what the operator must compare first.
/// A UUID that the BMC does not report is never returned, because the device would then refuse every action.
fn found_uuid<'a>(case: &Case<'a>, device: &FenceDevice) -> (String, Option<&'a str>) {
    let answer = case.asked.answers.iter().find(|answer| answer.device == device.resource.id);
    let Some((target, theirs)) = answer.and_then(|answer| {
        let reported = answer.note.uuid.as_deref().filter(|reported| uuid::is_valid(reported))?;
        Some((answer.target.as_str(), reported))
    }) else {
        return ("; which UUID it has, its BMC has not shown".to_owned(), None);
    };
    match view::collected(case.cluster, target).and_then(|collected| collected.dmi_uuid.as_deref()) {
        Some(own) if uuid::same(own, theirs) => (String::new(), Some(own)),
        // The BMC is another machine's, which is a finding of its own.
        Some(_) => (String::new(), None),
        None => {
            let shown = format!(
                "; its BMC shows the UUID {theirs}: 'cat /sys/class/dmi/id/product_uuid' on {target} has to show the same one"
            );
            (shown, Some(theirs))
        }
    }
}

/// Returns a hint to compare the certificate's fingerprint at the BMC itself, because any server at its address can present a
/// certificate. The hint is empty if `said` already contains the fingerprint.
fn to_compare(note: &BmcNote, said: &str) -> String {
    match note.fingerprint.as_deref() {
        Some(print) if said.contains(print) => String::new(),
        Some(print) => format!("; it shows the fingerprint {print}: compare it at the BMC itself"),
        None => String::new(),
    }
}

/// Returns the command that pins the certificate of `target`'s BMC. The operator replaces `SHA256` by its fingerprint.
fn pin(target: &str) -> String {
    let target = if target.is_empty() { "NODE" } else { target };
    command!("tandem fencing update {} --ssl-fingerprint SHA256", target)
}

fn one(case: &mut Case<'_>, device: &FenceDevice, answer: &Answer) {
    let (id, target) = (&device.resource.id, answer.target.as_str());
    let about = About::Both(id, target);
    let note = &answer.note;
    if let Some(why) = note.failure.as_ref().filter(|_| answer.misconfigured) {
        let text = format!("{id}: its options do not fit, so no node can fence with it: {why}");
        return case.add("options-wrong", Level::Failure, about, text, Some(command!("pcs stonith config {}", id)));
    }
    if let Some(why) = &note.failure {
        // A node never fences itself. For its own BMC, the other nodes' answers count.
        let is_own = target == case.cluster.here && others_reach(case, target, note);
        let level = if is_own { Level::Warning } else { Level::Failure };
        let command = Some(mend(id, target, note, why));
        let shown = if why.contains("certificate") { to_compare(note, why) } else { String::new() };
        let text = format!("{id}: its BMC at {} does not do what fencing needs: {why}{shown}", note.address);
        return case.add("bmc-fails", level, about, text, command);
    }
    right_machine(case, id, answer);
    account(case, id, answer);
    reset_types(case, id, answer);
    certificate(case, device, answer);
    if let Some(ahead) = note.clock_ahead.filter(|ahead| ahead.abs() > CLOCK) {
        let (by, way) = (ahead.unsigned_abs(), if ahead > 0 { "ahead of" } else { "behind" });
        let text = format!(
            "the clock of the BMC at {} is {by} s {way} this node's: its log and its certificates lie",
            note.address
        );
        case.add("bmc-clock", Level::Warning, about, text, Some("ipmitool sel time set now".to_owned()));
    }
    if note.restore_policy.as_deref() == Some("AlwaysOff") {
        let text =
            format!("{target} stays off when power comes back after an outage, as its BMC's PowerRestorePolicy says");
        case.add("restore-policy", Level::Warning, about, text, Some("ipmitool chassis policy previous".to_owned()));
    }
}

/// Returns the command to type after querying a BMC failed. `why` is the sentence with which the fence agent failed.
fn mend(id: &str, target: &str, note: &BmcNote, why: &str) -> String {
    let address = &note.address;
    let has = |words: &[&str]| words.iter().any(|word| why.contains(word));
    if is_refused_login(why) {
        command!("tandem fencing update {}", target)
    } else if has(&["certificate"]) {
        pin(target)
    } else if has(&["another machine's"]) {
        command!("pcs stonith update {} ip=ADDRESS", id)
    } else if has(&["plug", "systems_uri"]) {
        command!("pcs stonith update {} systems_uri=URI", id)
    } else {
        command!("curl --insecure https://{}/redfish/v1", address)
    }
}

/// Returns whether a node other than `target` has recently reached the BMC behind `note`.
fn others_reach(case: &Case<'_>, target: &str, note: &BmcNote) -> bool {
    case.others_notes(target).any(|(_, theirs)| {
        theirs.address == note.address && theirs.failure.is_none() && theirs.at.saturating_add(OLD) > case.cluster.at
    })
}

impl<'a> Case<'a> {
    /// Returns the results about BMCs that the collectors of all nodes except `node` published.
    fn others_notes(&self, node: &str) -> impl Iterator<Item = (&'a String, &'a BmcNote)> + use<'a> {
        let node = node.to_owned();
        let others = self.cluster.collected.iter().filter(move |(name, _)| **name != node);
        others
            .filter_map(|(name, fact)| Some((name, fact.known()?)))
            .flat_map(|(name, collected)| collected.bmcs.iter().map(move |note| (name, note)))
    }
}

/// Checks that a BMC belongs to the node that its device fences. A BMC of another machine would switch that machine off, and wrongly
/// prove this node off.
fn right_machine(case: &mut Case<'_>, id: &str, answer: &Answer) {
    let (target, note) = (answer.target.as_str(), &answer.note);
    let own =
        case.cluster.collected.get(target).and_then(Fact::known).and_then(|collected| collected.dmi_uuid.as_ref());
    if let (Some(own), Some(theirs)) = (own, &note.uuid)
        && !uuid::same(own, theirs)
    {
        let text = format!(
            "{id} would fence another machine: {target} says that it is {own}, and the BMC at {} has {theirs}",
            note.address
        );
        let command = Some(command!("pcs stonith update {} ip=ADDRESS system_uuid={}", id, own));
        case.add("another-machine", Level::Failure, About::Both(id, target), text, command);
    }
    if note.power.as_deref() == Some("Off") && view::is_online(case.cluster, target) {
        let text = format!(
            "{target} is online, and the BMC at {} says Off: it is another machine's, or does not know its own",
            note.address
        );
        let command = Some(command!("pcs stonith update {} ip=ADDRESS", id));
        case.add("off-while-online", Level::Failure, About::Both(id, target), text, command);
    }
}

fn account(case: &mut Case<'_>, id: &str, answer: &Answer) {
    let about = About::Both(id, &answer.target);
    if answer.may_reset == Some(false) {
        let role = answer.role.as_deref().unwrap_or("?");
        let text = format!("{id} logs in with the role {role}, which may not reset the system");
        let command = Some(command!("tandem fencing update {} --username NAME", answer.target));
        case.add("may-not-reset", Level::Failure, about, text, command);
    }
    if answer.locked {
        let text = format!("{id}: its account is locked on the BMC at {}", answer.note.address);
        let command = Some(command!("tandem fencing update {}", answer.target));
        case.add("account-locked", Level::Warning, about, text, command);
    }
}

/// Warns if the BMC's list of reset types lacks `ForceOff` or `On`. It is only a warning, because such lists are often wrong.
fn reset_types(case: &mut Case<'_>, id: &str, answer: &Answer) {
    let Some(types) = &answer.note.reset_types else { return };
    let has = |names: &[&str]| types.iter().any(|one| names.contains(&one.as_str()));
    let missing = match (has(&["ForceOff"]), has(&["On", "ForceOn"])) {
        (true, true) => return,
        (false, _) => "ForceOff, which 'off' sends",
        (true, false) => "On, which 'on' sends",
    };
    let text =
        format!("the BMC at {} lists {} as reset types, and not {missing}", answer.note.address, types.join(", "));
    let command = (!answer.target.is_empty()).then(|| command!("tandem fencing test {}", answer.target));
    case.add("reset-types", Level::Warning, About::Both(id, &answer.target), text, command);
}

fn certificate(case: &mut Case<'_>, device: &FenceDevice, answer: &Answer) {
    let id = &device.resource.id;
    let is_set = |name: &str| device.resource.parameters.get(name).is_some_and(|value| !value.trim().is_empty());
    // The dates do not matter if the certificate is pinned or not verified.
    if is_set("ssl_fingerprint") || is_set("ssl_insecure") {
        return;
    }
    let Some(ends) = answer.note.certificate_ends else { return };
    if ends > case.cluster.at.saturating_add(ENDS_SOON) {
        return;
    }
    let days = ends.saturating_sub(case.cluster.at) / 86_400;
    let text =
        format!("the certificate of the BMC at {} ends in {days} days, and fencing with it", answer.note.address);
    let command = Some(pin(&answer.target));
    case.add("certificate-ends", Level::Warning, About::Both(id, &answer.target), text, command);
}

/// Reports failures to reach a device's BMC that the other node published. The other node is the one that would have to fence `target`.
fn told_by_others(case: &mut Case<'_>, device: &FenceDevice) {
    let id = &device.resource.id;
    for target in &device.targets {
        let address = case.asked.answers.iter().find(|one| one.device == *id && one.target == *target);
        let Some(address) = address.map(|answer| answer.note.address.clone()) else { continue };
        let notes: Vec<_> = case.others_notes(target).filter(|(_, note)| note.address == address).collect();
        for (node, note) in notes {
            let age = case.cluster.at.saturating_sub(note.at);
            let Some(why) = note.failure.as_ref().filter(|_| *node != case.cluster.here && age <= OLD) else {
                continue;
            };
            let text =
                format!("{id}: {age} s ago its BMC at {address} did not do for {node} what fencing needs: {why}");
            let command = Some(command!("ssh {} tandem fencing check {}", node, id));
            case.add("bmc-fails-there", Level::Failure, About::Both(id, target), text, command);
        }
    }
}
