//! The steps on one node before there is a cluster: certificates, passwords, etcd's image, units, pcsd. [`look`]
//! observes and changes nothing; [`steps`] is pure.

mod find;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::TOKEN;
use super::action::{Action, File};
use super::description::{Certificates, Description};
use super::found_file::{Files, digest, is_private};
use super::node::{Cib, Corosync, Facts};
use super::step::{Difference, SetupStep, State};

pub use self::find::look;

/// Name of pcs' service, which must start at each boot.
const PCSD: &str = "pcsd";
/// Paths of the certificate that pcsd presents to other nodes, and of its key. pcsd creates both itself, unless the
/// operator replaces them.
const PCSD_PAIR: [&str; 2] = ["/var/lib/pcsd/pcsd.crt", "/var/lib/pcsd/pcsd.key"];
/// Name of the collector's timer, which the package installs and starts.
const COLLECTOR: &str = "tandem-collect.timer";
/// Name of the timer that renews the certificates of Tandem's own CA, which last a year.
const RENEWAL: &str = "tandem-certs.timer";
/// Name of the unit that lets the sole voter serve after a boot without its peer.
const LONE_BOOT: &str = "tandem-lone-boot.service";

/// The files, the image and the token about which a node is to report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    pub files: Vec<PathBuf>,
    /// Name of etcd's image; empty if OpenShift provides it.
    pub image: String,
    /// The token that pcsd is to accept; empty if there is none.
    pub token: Secret,
}

/// A text that is wiped from memory, and is never printed.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secret(pub Zeroizing<String>);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(***)")
    }
}

/// The report of a node about its files, image and units, as an answer to a [`Question`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Found {
    pub files: Files,
    pub has_image: bool,
    pub units: BTreeMap<String, Unit>,
    pub accepts_token: bool,
    /// True if pcsd's certificate and key are both incomplete.
    ///
    /// pcsd writes them without a sync at its first start, so a power cut can leave them empty. With empty files pcsd fails to start. It
    /// creates new ones only if the files are deleted.
    pub has_empty_pcsd_pair: bool,
    /// The reasons why some files or the image could not be read.
    pub failures: Vec<String>,
}

/// The state of one systemd unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    pub is_there: bool,
    pub is_active: bool,
    pub is_enabled: bool,
}

/// The state that one node is to have before there is a cluster.
#[derive(Debug)]
pub struct Wanted<'a> {
    pub description: &'a Description,
    /// Index of the node in the description.
    pub at: usize,
    /// The state of the certificates step on this node.
    pub certificates: State,
    /// The passwords of both BMCs, in the order of the description.
    pub passwords: [Secret; 2],
    /// The token by which the two pcsds authorise each other; `None` once they have done so.
    pub token: Option<Secret>,
    /// True on the node that runs `pcs host auth`. That node keeps the token's file until the command has succeeded.
    pub keeps_token: bool,
    /// True if an interrupted run created the cluster on this node only.
    pub is_half_made: bool,
}

/// Returns the files, the image and the token about which each node is to report.
pub fn question(description: &Description, token: Option<&Secret>) -> Question {
    let passwords = description.nodes.iter().map(|node| node.bmc.password_file.clone());
    let mut files = super::certificates::paths(&description.certificates);
    files.extend(passwords.filter(|path| !path.as_os_str().is_empty()));
    files.push(PathBuf::from(TOKEN));
    files.sort();
    files.dedup();
    let image = if description.is_of_openshift() { String::new() } else { description.etcd.image.clone() };
    Question { files, image, token: token.cloned().unwrap_or_default() }
}

/// Returns the steps on one node that precede the cluster, in their order.
pub fn steps(wanted: &Wanted<'_>, facts: &Facts, found: &Found) -> Vec<SetupStep> {
    let name = &wanted.description.nodes[wanted.at].name;
    let step = |id: &str, title: &str, state: State| SetupStep {
        id: format!("{id}-{name}"),
        title: format!("{title} on {name}"),
        on: name.clone(),
        state,
    };
    let whose = match wanted.description.certificates {
        Certificates::Own => "certificates of our own",
        Certificates::Given { .. } => "your certificates",
        Certificates::OfThePod => "OpenShift's certificates",
    };
    // The image comes first. An image that no registry has is a fault of the description, and must be found before
    // anything is written.
    let steps = vec![
        step("image", "etcd's image", image(wanted, found)),
        step("blank", "no cluster but this one", blank(wanted, facts)),
        step("certificates", whose, wanted.certificates.clone()),
        step("passwords", "the BMCs' passwords", passwords(wanted, found)),
        step("units", "Tandem's units", units(wanted, found)),
        step("pcsd", "pcsd, and its token", pcsd(wanted, found)),
    ];
    // OpenShift provides etcd's image and certificates.
    let is_left_out = |step: &SetupStep| {
        wanted.description.is_of_openshift() && ["image-", "certificates-"].iter().any(|id| step.id.starts_with(id))
    };
    steps.into_iter().filter(|step| !is_left_out(step)).collect()
}

fn typed(words: &[&str]) -> Action {
    Action::Command(words.iter().map(|word| (*word).to_owned()).collect())
}

/// Returns the state of the step that removes a distribution's example cluster, or a cluster that an interrupted setup
/// created on this node only. A cluster with resources stays.
fn blank(wanted: &Wanted<'_>, facts: &Facts) -> State {
    let is_empty = !matches!(facts.cib, Cib::Known { resources: 1.., .. } | Cib::Unreadable(_));
    let is_in_the_way = match &facts.corosync {
        Corosync::Example => true,
        Corosync::Cluster(_) => wanted.is_half_made,
        // pcs refuses to set a cluster up where a CIB exists, even an unused one.
        Corosync::None => facts.cib != Cib::None,
        Corosync::Unreadable(_) => false,
    };
    if is_in_the_way && is_empty {
        State::ToDo(vec![typed(&["pcs", "cluster", "destroy", "--force"])])
    } else {
        State::Done
    }
}

fn passwords(wanted: &Wanted<'_>, found: &Found) -> State {
    let (mut missing, mut differences, mut changes) = (Vec::new(), Vec::new(), Vec::new());
    for (at, node) in wanted.description.nodes.iter().enumerate() {
        let path = &node.bmc.password_file;
        let is_first = !wanted.description.nodes[..at].iter().any(|other| other.bmc.password_file == *path);
        // An empty path means that the device has its password in the CIB.
        if !is_first || path.as_os_str().is_empty() {
            continue;
        }
        let content = Zeroizing::new(wanted.passwords[at].0.as_bytes().to_vec());
        let what = format!("the password of {}'s BMC", node.name);
        let there = found.files.get(path);
        let (is_same, is_closed) =
            there.map_or((false, false), |file| (file.digest == digest(&content), is_private(file.mode)));
        if is_same && is_closed {
            continue;
        }
        let write = Action::Write(File { path: path.clone(), mode: 0o600, content, what });
        if there.is_none() {
            missing.push(write);
        } else if is_same {
            missing.push(typed(&["chmod", "600", &path.display().to_string()]));
        } else {
            let what = format!("{}: {}", wanted.description.nodes[wanted.at].name, path.display());
            let (there, described) = ("another password".to_owned(), "that of the node where this is typed".to_owned());
            differences.push(Difference { what, there, described });
            changes.push(write);
        }
    }
    match (missing.is_empty(), differences.is_empty()) {
        (true, true) => State::Done,
        (false, true) => State::ToDo(missing),
        (_, false) => State::Differs { differences, actions: missing.into_iter().chain(changes).collect() },
    }
}

fn image(wanted: &Wanted<'_>, found: &Found) -> State {
    if found.has_image {
        State::Done
    } else {
        State::ToDo(vec![typed(&["podman", "pull", &wanted.description.etcd.image])])
    }
}

/// Returns the state of the step that enables Tandem's units: the collector, and the renewal of certificates if
/// Tandem's own CA issues them. The lone boot is enabled if the description allows it. A unit that the package lacks is
/// skipped.
fn units(wanted: &Wanted<'_>, found: &Found) -> State {
    let is_own = wanted.description.certificates == Certificates::Own;
    let names = [Some(COLLECTOR), is_own.then_some(RENEWAL)];
    let is_off =
        |name: &&str| found.units.get(*name).is_some_and(|unit| unit.is_there && !(unit.is_active && unit.is_enabled));
    let mut actions: Vec<Action> =
        names.into_iter().flatten().filter(is_off).map(|name| typed(&["systemctl", "enable", "--now", name])).collect();
    // The unit ends once there is quorum, so it is inactive in a running cluster.
    if wanted.description.lone_boot && found.units.get(LONE_BOOT).is_some_and(|unit| unit.is_there && !unit.is_enabled)
    {
        actions.push(typed(&["systemctl", "enable", LONE_BOOT]));
    }
    if actions.is_empty() { State::Done } else { State::ToDo(actions) }
}

fn pcsd(wanted: &Wanted<'_>, found: &Found) -> State {
    let unit = found.units.get(PCSD).copied().unwrap_or_default();
    let name = &wanted.description.nodes[wanted.at].name;
    if !unit.is_there && !unit.is_active {
        return State::Refused(format!("{name}: systemd knows no pcsd: install pcs there"));
    }
    let mut actions = Vec::new();
    if found.has_empty_pcsd_pair && !unit.is_active {
        actions.push(typed(&["rm", "-f", PCSD_PAIR[0], PCSD_PAIR[1]]));
    }
    if !(unit.is_active && unit.is_enabled) {
        actions.push(typed(&["systemctl", "enable", "--now", PCSD]));
    }
    let file = found.files.get(&PathBuf::from(TOKEN));
    if let Some(token) = &wanted.token {
        let is_there = file.is_some_and(|file| file.digest == digest(token.0.as_bytes()) && file.mode == 0o600);
        let is_wanted = !found.accepts_token || wanted.keeps_token;
        if is_wanted && !is_there {
            let content = Zeroizing::new(token.0.as_bytes().to_vec());
            let what = "the token by which the two pcsds get to know each other".to_owned();
            actions.push(Action::Write(File { path: PathBuf::from(TOKEN), mode: 0o600, content, what }));
        }
        if !found.accepts_token {
            actions.push(typed(&["pcs", "pcsd", "accept_token", TOKEN]));
        }
        if !wanted.keeps_token && (!found.accepts_token || file.is_some()) {
            actions.push(typed(&["rm", "-f", TOKEN]));
        }
    }
    if actions.is_empty() { State::Done } else { State::ToDo(actions) }
}
