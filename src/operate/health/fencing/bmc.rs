//! Problems by the BMCs' answers: those that this node just got, and the last ones of the other node.

use super::{About, Answer, Case, Severity};
use crate::adapters::options::yes_no;
use crate::adapters::pacemaker::seen::FenceDevice;
use crate::base::shell::command;
use crate::operate::cluster::Cluster;
use crate::operate::health::bmc::{Stranger, is_ours, is_refused_login, notes, stranger};
use crate::operate::health::problems::{self, certificates};
use crate::operate::health::{Problem, view};
use crate::os::uuid;
use crate::records::bmc_note::BmcNote;

/// Seconds by which a BMC's clock may be wrong. A larger error makes its certificates and its log misleading.
const CLOCK: i64 = 60;

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
    case.add("not-asked", Severity::Warning, About::Device(id), text, command);
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
        case.add("no-system-uuid", Severity::Warning, About::Device(id), text, command);
    }
    let insecure = given("ssl_insecure").and_then(yes_no::of_fence_agents) == Some(true);
    if insecure {
        let shown = case.asked.answers.iter().find(|answer| answer.device == *id);
        let shown = shown.map(|answer| to_compare(&answer.note, "")).unwrap_or_default();
        let text = format!("{id} trusts anybody who answers at its BMC's address, and sends him the password{shown}");
        let command = pin(device.targets.first().map_or("NODE", String::as_str));
        case.add("not-verified", Severity::Warning, About::Device(id), text, Some(command));
    }
}

/// Returns the UUID that a device's BMC reports, to be set as `system_uuid`. Also returns a hint on what the operator must compare first.
/// The UUID is `None` if the BMC reports none, because with any other UUID the device would refuse every action.
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
        // The BMC is another machine's, which is a problem of its own.
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
        return case.add("options-wrong", Severity::Critical, about, text, Some(command!("pcs stonith config {}", id)));
    }
    let (cluster, named) = (case.cluster, Some(target).filter(|target| !target.is_empty()));
    if let Some(problem) = problems::bmc::fault(cluster, device, named, view::here(cluster), note) {
        let is_of_certificate = note.failure.as_ref().filter(|why| why.contains("certificate"));
        let shown = is_of_certificate.map(|why| to_compare(note, why)).unwrap_or_default();
        let command = Some(mend(cluster, id, target, note));
        case.put(Problem { text: problem.text.clone() + &shown, command, ..problem });
    }
    if let Some(problem) = certificates::of_bmc(cluster.at, device, note) {
        case.put(Problem { command: Some(pin(target)), ..problem });
    }
    if note.failure.is_some() {
        return;
    }
    account(case, id, answer);
    reset_types(case, id, answer);
    if let Some(ahead) = note.clock_ahead.filter(|ahead| ahead.abs() > CLOCK) {
        let (by, way) = (ahead.unsigned_abs(), if ahead > 0 { "ahead of" } else { "behind" });
        let text = format!(
            "the clock of the BMC at {} is {by} s {way} this node's: its log and its certificates lie",
            note.address
        );
        case.add("bmc-clock", Severity::Warning, about, text, Some("ipmitool sel time set now".to_owned()));
    }
    if note.restore_policy.as_deref() == Some("AlwaysOff") {
        let text =
            format!("{target} stays off when power comes back after an outage, as its BMC's PowerRestorePolicy says");
        case.add("restore-policy", Severity::Warning, about, text, Some("ipmitool chassis policy previous".to_owned()));
    }
}

/// Returns the command to type after the BMC of `target` gave an answer with a fault.
fn mend(cluster: &Cluster, id: &str, target: &str, note: &BmcNote) -> String {
    match (&note.failure, stranger(cluster, target, note)) {
        (Some(why), _) => mend_failed(id, target, note, why),
        (None, Some(Stranger::OtherMachine { ours, .. })) => {
            command!("pcs stonith update {} ip=ADDRESS system_uuid={}", id, ours)
        }
        (None, Some(Stranger::SaysOff)) => command!("pcs stonith update {} ip=ADDRESS", id),
        (None, None) => command!("tandem power status {}", target),
    }
}

/// Returns the command to type after querying a BMC failed. `why` is the sentence with which the fence agent failed.
fn mend_failed(id: &str, target: &str, note: &BmcNote, why: &str) -> String {
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

fn account(case: &mut Case<'_>, id: &str, answer: &Answer) {
    let about = About::Both(id, &answer.target);
    if answer.may_reset == Some(false) {
        let role = answer.role.as_deref().unwrap_or("?");
        let text = format!("{id} logs in with the role {role}, which may not reset the system");
        let command = Some(command!("tandem fencing update {} --username NAME", answer.target));
        case.add("may-not-reset", Severity::Critical, about, text, command);
    }
    if answer.locked {
        let text = format!("{id}: its account is locked on the BMC at {}", answer.note.address);
        let command = Some(command!("tandem fencing update {}", answer.target));
        case.add("account-locked", Severity::Warning, about, text, command);
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
    case.add("reset-types", Severity::Warning, About::Both(id, &answer.target), text, command);
}

/// Reports the failures to reach a device's BMC that other nodes have published. Skips the failures that the device's target published,
/// because a node never fences itself.
fn told_by_others(case: &mut Case<'_>, device: &FenceDevice) {
    let (id, cluster) = (&device.resource.id, case.cluster);
    for target in &device.targets {
        for (node, note) in notes(cluster, device).filter(|(node, _)| *node != cluster.here && node != target) {
            let is_recent = note.at.saturating_add(problems::bmc::RECENT) >= cluster.at;
            let failed = note.failure.as_ref().filter(|_| is_recent);
            let problem = failed.and_then(|_| problems::bmc::fault(cluster, device, Some(target), node, note));
            if let Some(problem) = problem {
                let command = Some(command!("ssh {} tandem fencing check {}", node, id));
                case.put(Problem { command, ..problem });
            }
        }
    }
}
