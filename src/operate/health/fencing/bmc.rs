//! What the BMCs say: to this node now, and to the other node when it last looked.

use super::{About, Answer, Case, Level};
use crate::adapters::options::yes_no;
use crate::adapters::pacemaker::seen::FenceDevice;
use crate::base::Fact;
use crate::operate::health::view;
use crate::os::uuid;
use crate::records::bmc_note::BmcNote;

/// A clock further off than this makes a BMC's certificates and log lie.
const CLOCK: i64 = 60;
/// As the metrics' alert has it.
const ENDS_SOON: u64 = 30 * 86_400;
/// Older than this, a look of the other node's says nothing of now: its monitor comes each minute by default.
const OLD: u64 = 600;
/// The agents whose BMC can be asked.
const OURS: [&str; 2] = ["fence_redfish_rs", "fence_redfish"];

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

/// Whether this program can ask a device's BMC.
pub fn is_ours(device: &FenceDevice) -> bool {
    let agent = device.resource.agent.rsplit(':').next().unwrap_or_default();
    OURS.contains(&agent)
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
    let command = Some(format!("pcs stonith status {id}"));
    case.add("not-asked", Level::Unknown, About::Device(id), text, command);
}

/// What is wrong with a configuration that works.
fn configured(case: &mut Case<'_>, device: &FenceDevice) {
    let id = &device.resource.id;
    let given =
        |name: &str| device.resource.parameters.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
    if !is_ours(device) {
        return;
    }
    if given("system_uuid").is_none() && device.targets.len() < 2 {
        let text = format!(
            "{id} does not say which machine it is for: a BMC that is recabled, or has another address, is taken for it"
        );
        let uuid =
            case.asked.answers.iter().find(|answer| answer.device == *id).and_then(|answer| answer.note.uuid.clone());
        let command = format!("pcs stonith update {id} system_uuid={}", uuid.as_deref().unwrap_or("UUID"));
        case.add("no-system-uuid", Level::Warning, About::Device(id), text, Some(command));
    }
    let insecure = given("ssl_insecure").and_then(yes_no::of_fence_agents) == Some(true);
    if insecure {
        let shown = case
            .asked
            .answers
            .iter()
            .find(|answer| answer.device == *id)
            .and_then(|answer| answer.note.fingerprint.clone());
        let text = format!("{id} trusts anybody who answers at its BMC's address, and sends him the password");
        let command =
            format!("pcs stonith update {id} ssl_insecure= ssl_fingerprint={}", shown.as_deref().unwrap_or("SHA256"));
        case.add("not-verified", Level::Warning, About::Device(id), text, Some(command));
    }
}

fn one(case: &mut Case<'_>, device: &FenceDevice, answer: &Answer) {
    let (id, target) = (&device.resource.id, answer.target.as_str());
    let about = About::Both(id, target);
    let note = &answer.note;
    if let Some(why) = &note.failure {
        // A node never fences itself: what counts for this one is what the others see.
        let is_own = target == case.cluster.here && others_reach(case, target, note);
        let level = if is_own { Level::Warning } else { Level::Failure };
        let command = Some(mend(id, target, note, why));
        let text = format!("{id}: its BMC at {} does not do what fencing needs: {why}", note.address);
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

/// What to type about a failure: its own sentence says what is wrong.
fn mend(id: &str, target: &str, note: &BmcNote, why: &str) -> String {
    let shown = note.fingerprint.as_deref().unwrap_or("SHA256");
    let address = &note.address;
    let has = |words: &[&str]| words.iter().any(|word| why.contains(word));
    if has(&["unable to log in", "password"]) {
        format!("tandem fencing update {target}")
    } else if has(&["certificate"]) {
        format!("pcs stonith update {id} ssl_fingerprint={shown}")
    } else if has(&["another machine's"]) {
        format!("pcs stonith update {id} ip=ADDRESS")
    } else if has(&["plug", "systems_uri"]) {
        format!("pcs stonith update {id} systems_uri=URI")
    } else {
        format!("curl --insecure https://{address}/redfish/v1")
    }
}

/// Whether a node but `target` itself has reached the BMC lately.
fn others_reach(case: &Case<'_>, target: &str, note: &BmcNote) -> bool {
    case.others_notes(target).any(|(_, theirs)| {
        theirs.address == note.address && theirs.failure.is_none() && theirs.at.saturating_add(OLD) > case.cluster.at
    })
}

impl<'a> Case<'a> {
    /// What the collectors of the nodes but `node` published of BMCs.
    fn others_notes(&self, node: &str) -> impl Iterator<Item = (&'a String, &'a BmcNote)> + use<'a> {
        let node = node.to_owned();
        let others = self.cluster.collected.iter().filter(move |(name, _)| **name != node);
        others
            .filter_map(|(name, fact)| Some((name, fact.known()?)))
            .flat_map(|(name, collected)| collected.bmcs.iter().map(move |note| (name, note)))
    }
}

/// A BMC that is another machine's would fence that one, and prove the wrong node off.
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
        let command = Some(format!("pcs stonith update {id} ip=ADDRESS system_uuid={own}"));
        case.add("another-machine", Level::Failure, About::Both(id, target), text, command);
    }
    if note.power.as_deref() == Some("Off") && view::is_online(case.cluster, target) {
        let text = format!(
            "{target} is online, and the BMC at {} says Off: it is another machine's, or does not know its own",
            note.address
        );
        let command = Some(format!("pcs stonith update {id} ip=ADDRESS"));
        case.add("off-while-online", Level::Failure, About::Both(id, target), text, command);
    }
}

fn account(case: &mut Case<'_>, id: &str, answer: &Answer) {
    let about = About::Both(id, &answer.target);
    if answer.may_reset == Some(false) {
        let role = answer.role.as_deref().unwrap_or("?");
        let text = format!("{id} logs in with the role {role}, which may not reset the system");
        let command = Some(format!("tandem fencing update {} --username NAME", answer.target));
        case.add("may-not-reset", Level::Failure, about, text, command);
    }
    if answer.locked {
        let text = format!("{id}: its account is locked on the BMC at {}", answer.note.address);
        let command = Some(format!("tandem fencing update {}", answer.target));
        case.add("account-locked", Level::Warning, about, text, command);
    }
}

/// A list that lacks what is needed is more often wrong than right: it is said, and stands in nobody's way.
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
    let command = (!answer.target.is_empty()).then(|| format!("tandem fencing test {}", answer.target));
    case.add("reset-types", Level::Warning, About::Both(id, &answer.target), text, command);
}

fn certificate(case: &mut Case<'_>, device: &FenceDevice, answer: &Answer) {
    let id = &device.resource.id;
    let is_set = |name: &str| device.resource.parameters.get(name).is_some_and(|value| !value.trim().is_empty());
    // To one that is pinned, and to one that nobody looks at, its dates do not matter.
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
    let shown = answer.note.fingerprint.as_deref().unwrap_or("SHA256");
    let command = Some(format!("pcs stonith update {id} ssl_fingerprint={shown}"));
    case.add("certificate-ends", Level::Warning, About::Both(id, &answer.target), text, command);
}

/// What the node that would have to do it found, when Pacemaker last let it look.
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
            let command = Some(format!("ssh {node} tandem fencing check {id}"));
            case.add("bmc-fails-there", Level::Failure, About::Both(id, target), text, command);
        }
    }
}
