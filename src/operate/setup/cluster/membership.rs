//! The steps for pcs' access to both nodes and for Corosync.

use std::time::Duration;

use super::ClusterFacts;
use super::corosync::{Corosync, Member};
use super::found::{Found, pcs, refused, step};
use crate::base::Fact;
use crate::operate::setup::TOKEN;
use crate::operate::setup::action::Action;
use crate::operate::setup::description::{Description, Node};
use crate::operate::setup::step::{SetupStep, State};

/// The first version of pcs that accepts setup's arguments.
const OLDEST_PCS: (u32, u32) = (0, 11);
const KNET: &str = "knet";
const CRYPTO: (&str, &str) = ("aes256", "sha256");
/// Corosync's token timeout if `corosync.conf` does not set one.
const DEFAULT_TOKEN: Duration = Duration::from_secs(3);
/// Text in a message in place of an address that `corosync.conf` lacks.
const NOWHERE: &str = "no address";
/// The pcs option with the longest time in seconds to wait until Pacemaker runs.
const WAIT: &str = "--wait=120";

// Titles of the steps.
const ACCESS: &str = "pcs' access to both nodes";
const CLUSTER: &str = "the cluster of both nodes";

/// The cluster name and token timeout with which pcs creates the cluster.
#[derive(Clone, Debug)]
pub(crate) struct Words {
    pub(crate) cluster: String,
    /// The token timeout. `None` leaves transport, encryption and token timeout to pcs. The defaults of pcs equal the values that setup
    /// would otherwise pass.
    pub(crate) token: Option<Duration>,
}

impl Words {
    pub(super) fn of(description: &Description) -> Self {
        Self { cluster: description.cluster.clone(), token: Some(description.token) }
    }
}

pub(crate) fn steps(description: &Description, words: &Words, facts: &ClusterFacts, on: &str) -> Vec<SetupStep> {
    let mut steps = vec![host_auth(description, facts, on)];
    steps.extend(corosync(description, words, facts, on));
    steps
}

/// Returns the step that gives pcs access to both nodes. It is done if a cluster exists, because pcs needed the access
/// to create it.
fn host_auth(description: &Description, facts: &ClusterFacts, on: &str) -> SetupStep {
    let state = match (&facts.pcs, &facts.hosts) {
        (Fact::Absent, _) => State::Refused(
            "pcs is not installed on this node: type 'apt-get install pcs', or 'dnf install pcs'".to_owned(),
        ),
        (Fact::Known(version), _) if is_too_old(version) => {
            State::Refused(format!("pcs {version} does not know the words that are needed: install pcs 0.11 or later"))
        }
        _ if facts.corosync.known().is_some() => State::Done,
        (_, Fact::Known(hosts))
            if description.nodes.iter().all(|node| hosts.get(&node.name) == Some(&node.address)) =>
        {
            State::Done
        }
        _ => {
            let hosts = description.nodes.iter().flat_map(|node| [node.name.clone(), addr(node.address)]);
            let words = ["host".to_owned(), "auth".to_owned()].into_iter().chain(hosts);
            State::ToDo(vec![pcs(words.chain(["--token".to_owned(), TOKEN.to_owned()]))])
        }
    };
    step("host-auth", ACCESS, on, state)
}

/// Returns whether the pcs version is older than [`OLDEST_PCS`]. An unreadable version counts as new enough.
fn is_too_old(version: &str) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
    let (Some(Some(major)), Some(Some(minor))) = (numbers.next(), numbers.next()) else { return false };
    (major, minor) < OLDEST_PCS
}

fn addr(address: impl std::fmt::Display) -> String {
    format!("addr={address}")
}

fn corosync(description: &Description, words: &Words, facts: &ClusterFacts, on: &str) -> Vec<SetupStep> {
    let (id, title) = ("corosync", CLUSTER);
    let mut found = Found::default();
    match &facts.corosync {
        Fact::Absent => found.miss(setup(description, words)),
        Fact::Known(conf) => {
            if let Err(why) = is_ours(conf, description, words) {
                return vec![refused(id, title, on, why)];
            }
            for action in start(description, facts) {
                found.miss(action);
            }
            links(&mut found, conf, description);
            totem(&mut found, conf, words);
        }
        unknown => {
            let why = unknown.why_unknown();
            let why = format!("/etc/corosync/corosync.conf cannot be read ({why}): repair that, and type this again");
            return vec![refused(id, title, on, why)];
        }
    }
    found.steps(id, title, on)
}

/// Returns the pcs command that creates the cluster and starts it on both nodes.
fn setup(description: &Description, words: &Words) -> Action {
    let mut command = vec!["cluster".to_owned(), "setup".to_owned(), words.cluster.clone()];
    for node in &description.nodes {
        command.push(node.name.clone());
        command.extend(addresses(node).map(addr));
    }
    if let Some(token) = words.token {
        let (cipher, hash) = CRYPTO;
        let encrypted = ["transport", KNET, "crypto", &format!("cipher={cipher}"), &format!("hash={hash}")];
        command.extend(encrypted.map(str::to_owned));
        command.extend(["totem".to_owned(), token_word(token)]);
    }
    command.extend(["--start", "--enable", WAIT].map(str::to_owned));
    pcs(command)
}

fn addresses(node: &Node) -> impl Iterator<Item = &std::net::IpAddr> {
    std::iter::once(&node.address).chain(&node.links)
}

fn token_word(token: Duration) -> String {
    format!("token={}", token.as_millis())
}

/// Checks that the existing cluster has the described name, the two described nodes and their addresses.
fn is_ours(conf: &Corosync, description: &Description, words: &Words) -> Result<(), String> {
    let of_both = description.nodes.iter().all(|node| conf.node(&node.name).is_some());
    if conf.name != words.cluster || !of_both || conf.nodes.len() != description.nodes.len() {
        let nodes: Vec<&str> = conf.nodes.iter().map(|node| node.name.as_str()).collect();
        let left_out = description.nodes.iter().find(|node| conf.node(&node.name).is_none());
        if let (Some(missing), [only]) = (left_out, nodes.as_slice())
            && conf.name == words.cluster
            && description.nodes.iter().any(|node| node.name == **only)
        {
            return Err(format!(
                "this node is in the cluster '{}' without {}: type 'tandem member add {}={} --fence ip=ADDRESS --fence username=USER --fence \
                 password_file=FILE'",
                conf.name, missing.name, missing.name, missing.address
            ));
        }
        return Err(format!(
            "this node is in the cluster '{}' of {} already, which is not the one that is described: if it is not needed, type \
             'pcs cluster destroy --all' and this again",
            conf.name,
            nodes.join(" and ")
        ));
    }
    if !matches!(conf.transport.as_str(), "" | KNET) {
        return Err(format!(
            "the cluster '{}' has the transport {}, and only a new one could have knet: make it anew, or continue without setup",
            conf.name, conf.transport
        ));
    }
    for node in &description.nodes {
        let there = conf.node(&node.name).filter(|member| !member.has(0, node.address));
        if let Some(member) = there {
            return Err(format!(
                "{} is at {} in /etc/corosync/corosync.conf, and at {} in the description: correct the one that is wrong, \
                 corosync.conf with 'pcs cluster stop --all' and 'pcs cluster link update 0 {}={}'",
                node.name,
                member.address(0).unwrap_or(NOWHERE),
                node.address,
                node.name,
                node.address
            ));
        }
    }
    Ok(())
}

/// Returns the pcs commands that are still needed for the cluster to run on both nodes and to start at boot.
fn start(description: &Description, facts: &ClusterFacts) -> Vec<Action> {
    let mut missing = Vec::new();
    if facts.enabled.iter().any(|(unit, enabled)| !enabled && matches!(unit.as_str(), "corosync" | "pacemaker")) {
        missing.push(pcs(["cluster", "enable", "--all"]));
    }
    let is_online = |node: &Node| match &facts.pacemaker {
        Fact::Known(pacemaker) => {
            pacemaker.nodes.iter().any(|there| there.name == node.name && there.online && !there.pending)
        }
        Fact::Absent => false,
        // An unknown state is no reason to start anything.
        Fact::Unknown(_) | Fact::NotAsked => true,
    };
    if !description.nodes.iter().all(is_online) {
        missing.push(pcs(["cluster", "start", "--all", WAIT]));
    }
    missing
}

/// Compares Corosync's links other than the first one with the description. pcs changes a link only by removing and
/// adding it.
fn links(found: &mut Found, conf: &Corosync, description: &Description) {
    let [one, other] = &description.nodes;
    let member = |node: &Node, link: u32| conf.node(&node.name).and_then(|member| member.address(link)).unwrap_or("");
    let in_conf = conf.nodes.iter().flat_map(|node: &Member| node.addresses.iter().map(|(link, _)| *link)).max();
    let described = u32::try_from(one.links.len().min(other.links.len())).unwrap_or_default();
    for link in 1..=in_conf.unwrap_or_default().max(described) {
        let wanted = |node: &Node| node.links.get(usize::try_from(link - 1).unwrap_or(usize::MAX)).copied();
        let is_there = [one, other].iter().any(|node| !member(node, link).is_empty());
        let is_right = |node: &Node| match wanted(node) {
            Some(address) => conf.node(&node.name).is_some_and(|member| member.has(link, address)),
            None => member(node, link).is_empty(),
        };
        if is_right(one) && is_right(other) {
            continue;
        }
        if is_there {
            found.change(pcs(["cluster", "link", "remove", &link.to_string()]));
        }
        if let (Some(first), Some(second)) = (wanted(one), wanted(other)) {
            let addresses = [format!("{}={first}", one.name), format!("{}={second}", other.name)];
            let [first, second] = &addresses;
            let number = format!("linknumber={link}");
            found.change(pcs(["cluster", "link", "add", first, second, "options", &number]));
        }
        for node in [one, other] {
            let described = wanted(node).map(|address| address.to_string()).unwrap_or_default();
            found.differ(format!("corosync: ring{link}_addr: {}", node.name), member(node, link), &described);
        }
    }
}

/// Compares Corosync's encryption and token timeout with the description. Both can change while the cluster runs.
fn totem(found: &mut Found, conf: &Corosync, words: &Words) {
    let mut changed = Vec::new();
    if (conf.cipher.as_str(), conf.hash.as_str()) != CRYPTO {
        let (cipher, hash) = CRYPTO;
        found.differ("corosync: crypto_cipher".to_owned(), &conf.cipher, cipher);
        found.differ("corosync: crypto_hash".to_owned(), &conf.hash, hash);
        changed.extend(["crypto".to_owned(), format!("cipher={cipher}"), format!("hash={hash}")]);
    }
    let there = conf.token.map_or(DEFAULT_TOKEN, Duration::from_millis);
    if let Some(token) = words.token.filter(|token| *token != there) {
        found.differ("corosync: token".to_owned(), &there.as_millis().to_string(), &token.as_millis().to_string());
        changed.extend(["totem".to_owned(), token_word(token)]);
    }
    if !changed.is_empty() {
        let words = ["cluster", "config", "update"].into_iter().map(str::to_owned);
        found.change(pcs(words.chain(changed)));
    }
}
