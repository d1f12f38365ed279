//! Examines the two BMCs from both nodes with the fence agent's own code. It switches nothing on or off.

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::description::{Bmc, Node};
use super::local::Secret;
use crate::adapters::redfish::flag::Flag;
use crate::fence::examine;
use crate::os::uuid;
use crate::records::bmc_note::BmcNote;

/// Options that choose the BMC certificate to trust. If the description has one of them, setup pins no certificate
/// itself.
const TRUST: [&str; 5] = ["ssl_fingerprint", "ssl_ca_file", "ssl_insecure", "ssl_secure", "ssl"];
/// Part of the fence agent's error for an untrusted certificate that can be pinned.
const MAY_BE_PINNED: &str = "pin it by 'ssl_fingerprint'";

/// The state of one BMC, as one node read it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Looked {
    pub note: BmcNote,
    pub may_reset: Option<bool>,
    pub locked: bool,
    /// The kind of flag that this BMC offers for a race (see [`Flag`]); `None` if no race was asked for.
    pub flag: Option<Flag>,
}

/// Returns the options of `bmc` and its password in the fence agent's input format.
pub fn lines(bmc: &Bmc, password: &Secret) -> Secret {
    let mut lines = Zeroizing::new(String::with_capacity(4096 + password.0.len()));
    for (name, value) in &bmc.options {
        lines.push_str(name);
        lines.push('=');
        lines.push_str(value);
        lines.push('\n');
    }
    lines.push_str("password=");
    lines.push_str(password.0.lines().next().unwrap_or_default());
    lines.push('\n');
    Secret(lines)
}

/// Reads the state of `node`'s BMC. If `races` is set, opens two sessions to prove that the BMC can decide a race.
pub fn look(lines: &Secret, node: &str, races: bool) -> Looked {
    let found = examine::device_within(examine::LONGEST, races, lines.0.as_bytes(), Some(node), None);
    Looked { note: found.note, may_reset: found.may_reset, locked: found.locked, flag: found.flag }
}

/// Returns the fingerprint of an untrusted BMC certificate if all nodes received the same one. Returns `None` if the
/// description has an option that decides the trust.
pub fn to_be_pinned<'a>(bmc: &Bmc, looked: &[&'a Looked]) -> Option<&'a str> {
    if bmc.options.iter().any(|(name, _)| TRUST.contains(&name.as_str())) {
        return None;
    }
    let is_untrusted = |looked: &Looked| looked.note.failure.as_ref().is_some_and(|why| why.contains(MAY_BE_PINNED));
    let (first, rest) = looked.split_first()?;
    let print = first.note.fingerprint.as_deref()?;
    let all_alike = rest.iter().all(|one| one.note.fingerprint.as_deref() == Some(print));
    (all_alike && looked.iter().any(|one| is_untrusted(one))).then_some(print)
}

/// Returns a sentence for each fault of the BMC of `node`, as the node `from` read it. `uuids` are the system UUIDs
/// that the firmware of `node` and of the node `other` reports.
pub fn judge(node: &Node, from: &str, looked: &Looked, uuids: [Option<&str>; 2], other: &str) -> Vec<String> {
    let name = &node.name;
    let note = &looked.note;
    if let Some(why) = &note.failure {
        return vec![format!(
            "the BMC of {name}, asked from {from}: {why}: correct it, or the file; 'man fence_redfish_rs' has each option"
        )];
    }
    let mut faults = Vec::new();
    let [own, others] = uuids;
    let is = |uuid: Option<&str>| uuid.zip(note.uuid.as_deref()).is_some_and(|(one, other)| uuid::same(one, other));
    if is(others) && !is(own) {
        faults.push(format!(
            "the BMC of {name}, asked from {from}, is that of {other}: write each node's own BMC into the file"
        ));
    } else if let (Some(own), Some(theirs)) = (own, &note.uuid)
        && !is(Some(own))
    {
        faults.push(format!(
            "the BMC of {name}, asked from {from}, is that of another machine: it says {theirs}, and {name} is {own}: write its own into the file"
        ));
    }
    match note.power.as_deref() {
        Some("On") | None => {}
        Some(power) => faults.push(format!(
            "the BMC of {name}, asked from {from}, says that the machine is {power}, and it is on: write its own BMC into the file"
        )),
    }
    if let Some(Flag::None(why)) = &looked.flag {
        faults.push(format!(
            "the BMC of {name}, asked from {from}, offers no flag for a race ({why}): write split = \"delay\" into the file"
        ));
    }
    if looked.may_reset == Some(false) {
        faults.push(format!("the BMC of {name}: the account may not reset the machine: give it a role that may there"));
    }
    faults
}

/// Returns the reason why the machine `from` cannot fence the member `name` through the member's BMC; `None` if it can. `own` is the UUID
/// that the member's firmware reports.
pub fn judge_of_member(name: &str, from: &str, looked: &Looked, own: Option<&str>) -> Option<String> {
    let note = &looked.note;
    if let Some(why) = &note.failure {
        return Some(format!(
            "the BMC of {name}, asked from {from}: {why}: correct that on {from}, which is to fence {name}; 'tandem fencing check' on {name} shows the device"
        ));
    }
    let (own, theirs) = own.zip(note.uuid.as_deref())?;
    let is_other = !uuid::same(own, theirs);
    is_other.then(|| {
        format!("the BMC of {name}, asked from {from}, is that of another machine: it says {theirs}, and {name} is {own}: correct the way from {from} to it")
    })
}

/// Returns the UUID to pin as `system_uuid`: the node's own, if its BMC reports the same one. Otherwise returns
/// `None`, because a UUID that only the BMC reports may belong to any machine at that address.
pub fn compared<'a>(looked: &[Looked], own: Option<&'a str>) -> Option<&'a str> {
    let told = looked.iter().find_map(|looked| looked.note.uuid.as_deref())?;
    own.filter(|own| uuid::same(own, told))
}

/// Returns warnings about the BMC of `node` that do not end the setup. `device` is the id of the device that fences the
/// node.
pub fn remarks(node: &Node, device: &str, looked: &Looked, own: Option<&str>) -> Vec<String> {
    let name = &node.name;
    let is_pinned = node.bmc.options.iter().any(|(option, _)| option == "system_uuid");
    let remark = match (&looked.note.uuid, own) {
        _ if looked.note.failure.is_some() => None,
        (Some(_), Some(_)) => None,
        (Some(_), None) if is_pinned => None,
        (Some(theirs), None) => Some(format!(
            "{name}: its BMC says {theirs}, and what {name} says of itself is not known here, so the two were not compared and nothing is pinned: where \
             'cat /sys/class/dmi/id/product_uuid' on {name} says the same, type 'pcs stonith update {device} system_uuid={theirs}'"
        )),
        (None, _) => Some(format!(
            "{name}: neither its BMC nor its firmware proves that they belong together: 'tandem fencing test {name}' is the only proof"
        )),
    };
    remark.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operate::setup::file;

    const OWN: &str = "7a4e1000-0000-4000-8000-000000000001";
    const OTHERS: &str = "7a4e1000-0000-4000-8000-000000000002";

    fn node() -> Node {
        file::read(file::EXAMPLE).unwrap().nodes[0].clone()
    }

    fn well() -> Looked {
        let note = BmcNote {
            uuid: Some(OWN.to_owned()),
            power: Some("On".to_owned()),
            fingerprint: Some("AB:CD".to_owned()),
            ..BmcNote::default()
        };
        Looked { note, may_reset: Some(true), locked: false, flag: Some(Flag::SessionWithContext) }
    }

    fn judged(change: impl FnOnce(&mut Looked)) -> Vec<String> {
        let mut looked = well();
        change(&mut looked);
        judge(&node(), "node2", &looked, [Some(OWN), Some(OTHERS)], "node2")
    }

    #[test]
    fn the_bmc_of_a_member_is_its_own_from_everywhere() {
        let judged = |uuid: &str, failure: Option<&str>| {
            let note = BmcNote { uuid: Some(uuid.to_owned()), failure: failure.map(str::to_owned), ..well().note };
            judge_of_member("node1", "node3", &Looked { note, ..well() }, Some(OWN))
        };
        assert_eq!(judged(&OWN.to_uppercase(), None), None);
        assert!(judged(OTHERS, None).unwrap().contains("is that of another machine"));
        assert!(judged(OWN, Some("timed out")).unwrap().contains("asked from node3: timed out: correct that on node3"));
    }

    #[test]
    fn each_fault_of_a_bmc_is_a_sentence() {
        assert!(judged(|_| {}).is_empty());
        assert!(judged(|looked| looked.note.uuid = None).is_empty());
        for (faults, said) in [
            (judged(|looked| looked.note.uuid = Some(OTHERS.to_uppercase())), "is that of node2"),
            (
                judged(|looked| looked.note.uuid = Some(OWN.replace("7a4e", "ffff"))),
                "is that of another machine: it says ffff",
            ),
            (judged(|looked| looked.note.power = Some("Off".to_owned())), "says that the machine is Off"),
            (judged(|looked| looked.may_reset = Some(false)), "may not reset"),
            (
                judged(|looked| looked.flag = Some(Flag::None("no list".to_owned()))),
                "(no list): write split = \"delay\"",
            ),
            (
                judged(|looked| looked.note.failure = Some("unable to log in".to_owned())),
                "asked from node2: unable to log in",
            ),
        ] {
            assert_eq!(faults.len(), 1, "{said}: {faults:?}");
            assert!(faults[0].contains(said), "{faults:?}");
        }
        assert_eq!(remarks(&node(), "fence-node1", &well(), Some(OWN)), [] as [&str; 0]);
        let mut mute = well();
        mute.note.uuid = None;
        assert!(
            remarks(&node(), "fence-node1", &mute, Some(OWN))[0]
                .contains("'tandem fencing test node1' is the only proof")
        );
    }

    #[test]
    fn only_a_uuid_that_was_compared_is_pinned() {
        let looked = |uuid: Option<&str>| {
            let note = BmcNote { uuid: uuid.map(str::to_owned), ..well().note };
            [Looked { note, ..well() }]
        };
        assert_eq!(compared(&looked(Some(&OWN.to_uppercase())), Some(OWN)), Some(OWN));
        assert_eq!(compared(&looked(Some(OTHERS)), Some(OWN)), None, "judged as a fault");
        assert_eq!(compared(&looked(None), Some(OWN)), None);
        // Without a report from the node's collector, the BMC may belong to a third machine.
        assert_eq!(compared(&looked(Some(OTHERS)), None), None);
        let mut node = node();
        let [remark] = remarks(&node, "fence-node1", &looked(Some(OTHERS))[0], None).try_into().unwrap();
        assert!(remark.ends_with(&format!("type 'pcs stonith update fence-node1 system_uuid={OTHERS}'")), "{remark}");
        node.bmc.options.push(("system_uuid".to_owned(), OTHERS.to_owned()));
        assert_eq!(remarks(&node, "fence-node1", &looked(Some(OTHERS))[0], None), [] as [&str; 0], "the file says so");
    }

    #[test]
    fn a_certificate_is_pinned_where_both_saw_the_same_and_nobody_decided() {
        let mut bmc = node().bmc;
        let mut untrusted = well();
        untrusted.note.failure = Some(format!("not signed by a trusted authority; {MAY_BE_PINNED}AB:CD"));
        assert_eq!(to_be_pinned(&bmc, &[&untrusted, &untrusted]), Some("AB:CD"));
        assert_eq!(
            to_be_pinned(&bmc, &[&untrusted, &well()]),
            Some("AB:CD"),
            "one has an authority that the other lacks"
        );
        let mut another = untrusted.clone();
        another.note.fingerprint = Some("FF:FF".to_owned());
        assert_eq!(to_be_pinned(&bmc, &[&untrusted, &another]), None, "somebody is in between");
        assert_eq!(to_be_pinned(&bmc, &[&well(), &well()]), None);
        bmc.options.push(("ssl_fingerprint".to_owned(), "FF".to_owned()));
        assert_eq!(to_be_pinned(&bmc, &[&untrusted, &untrusted]), None);
    }

    /// Asserts that the fence agent's error for an untrusted certificate contains `MAY_BE_PINNED`, which setup looks
    /// for.
    #[test]
    fn the_agent_says_so_of_a_certificate_that_nobody_signed() {
        use crate::adapters::https::tls;
        let shown = tls::Shown::default();
        let error = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let handshake = tls::Handshake { trust: &tls::Trust::System, shown: &shown, wants_certificate: false };
        assert!(tls::explain(&error, handshake).1.contains(MAY_BE_PINNED));
    }

    #[test]
    fn a_password_is_a_line_and_is_not_shown() {
        let lines = lines(&node().bmc, &Secret(Zeroizing::new("hunter2\nold\n".to_owned())));
        assert!(lines.0.ends_with("\npassword=hunter2\n") && lines.0.starts_with("ip=203.0.113.1\n"));
        assert!(!format!("{lines:?}").contains("hunter2"));
    }
}
