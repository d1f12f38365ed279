//! The steps that add the new node: its fence device, its preparation, its place in the cluster, and its etcd's vote.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use zeroize::Zeroizing;

use super::change::{Place, node_ip_map};
use super::facts::Look;
use super::plan::{Old, PairSeen, PairStep};
use super::work::{Took, Work};
use crate::adapters::openshift::machines::Written;
use crate::adapters::pacemaker::fence_options;
use crate::agent::resource::params::Source;
use crate::decide::members::{MachineState, Member};
use crate::fence::examine;
use crate::operate::certs::pki;
use crate::operate::failure::Failure;
use crate::operate::health;
use crate::operate::health::fencing::is_ours;
use crate::operate::members::look::machine_names;
use crate::operate::members::protect;
use crate::operate::setup::bmc::{self, Looked};
use crate::operate::setup::channel;
use crate::operate::setup::cluster::{device_steps, parse_cib};
use crate::operate::setup::description::{
    Bmc, Certificates, Clone as CloneKind, Description, Etcd, Node, fencing_delay,
};
use crate::operate::setup::drive::{self, Drive, Refusal, Relay, Wish};
use crate::operate::setup::local::Secret;
use crate::operate::setup::machine::Here;
use crate::operate::setup::step::State;
use crate::operate::talk::Talk;
use crate::os::clock::Deadline;

const CIB: Duration = Duration::from_secs(30);

impl Work {
    fn new_node(&self) -> Result<Place, Failure> {
        self.change.new.clone().ok_or_else(|| Failure("there is no new node in this change".to_owned()))
    }

    pub(super) fn device(&self, look: &Look) -> Result<Took, Failure> {
        let new = self.new_node()?;
        if !self.change.fence.is_empty() {
            let output = self.programs.run("cibadmin", &["--query"], CIB)?;
            let cib = parse_cib(&output.stdout).map_err(|why| Failure(format!("the CIB is not understood: {why}")))?;
            let mut acted = false;
            for step in device_steps(&cib, &new.name, &self.change.fence, &self.change.here.name) {
                match &step.state {
                    State::Done => {}
                    State::Refused(why) => return Err(Failure(why.clone())),
                    State::ToDo(actions) | State::Differs { actions, .. } => {
                        for action in actions {
                            self.act(action)?;
                        }
                        acted = true;
                    }
                }
            }
            if acted {
                return Ok(Took::Acted(format!("{} has a fence device", new.name)));
            }
        }
        match look.device_failure(&new.name) {
            Some(why) => Err(Failure(format!(
                "the fence device of {0} does not work: {why}: repair that, 'pcs stonith cleanup', and 'tandem member replace' continues",
                new.name
            ))),
            None => Ok(Took::Waits(format!("waits until the fence device of {} has answered", new.name))),
        }
    }

    pub(super) fn map(&self, look: &Look) -> Result<Took, Failure> {
        let map = node_ip_map(&self.change.nodes());
        let mut command = vec!["pcs", "resource", "update", &look.context.resource, &map];
        let primary = self.change.configured_primary(look.context.params.leading.primary.as_deref());
        command.extend(primary.as_deref());
        self.typed(&command)?;
        Ok(Took::Acted(primary.map_or_else(|| map.clone(), |primary| format!("{map} {primary}"))))
    }

    /// Sets up the new machine as 'tandem setup' does. The operator types 'tandem setup join' there, and so gives this node access to the
    /// new machine.
    pub(super) fn prepare(&mut self, look: &Look, talk: &dyn Talk) -> Result<Took, Failure> {
        let new = self.new_node()?;
        let description = self.description(look)?;
        let device = self.device_of_here(look)?;
        let here = Here::new(self.programs.clone(), description.clone(), 0, false);
        let begun = drive::begin(&self.programs, &description, &here).map_err(refused)?;
        let call = channel::joined(&description, 0, self.end.left(), &*self.progress)?;
        let warnings = RefCell::default();
        let done = {
            let relay = Relay { progress: &*self.progress, operator: talk, call: Some(&call), warnings: &warnings };
            let wish = Wish { is_dry: false, changes: false };
            Drive::new(&self.programs, description, 0, &here, wish, &relay).newcomer(
                &begun.facts,
                &call,
                device.as_ref(),
            )
        };
        let text = if done.is_ok() {
            format!("{} adds this node to its cluster", self.change.here.name)
        } else {
            format!("see what it says on {}", self.change.here.name)
        };
        call.end(done.is_ok(), &text);
        let prepared = done.map_err(refused)?;
        self.tie(look, &new.name, prepared.dmi_uuid.as_deref())?;
        Ok(Took::Over(format!("{} has its certificates, etcd's image and pcsd", new.name)))
    }

    /// Sets `system_uuid` of the new node's fence device, once the new machine's firmware and its BMC have reported
    /// the same UUID. The BMC's report alone is no proof, because the BMC at that address may control another
    /// machine.
    fn tie(&self, look: &Look, new: &str, own: Option<&str>) -> Result<(), Failure> {
        let Some(device) = look.devices(new).into_iter().find(|device| is_ours(device)) else { return Ok(()) };
        if device.resource.parameters.contains_key("system_uuid") {
            return Ok(());
        }
        let id = device.resource.id.as_str();
        let lines = fence_options::read(&self.programs)?.lines_of(id)?;
        let plug = device.plugs.get(new).map(String::as_str);
        let note = examine::device(&lines, Some(new), plug).note;
        self.tie_to(id, new, Looked { note, ..Looked::default() }, own)
    }

    fn tie_to(&self, id: &str, new: &str, looked: Looked, own: Option<&str>) -> Result<(), Failure> {
        if let Some(why) = bmc::judge_of_member(new, &self.change.here.name, &looked, own) {
            return Err(goes_on(Failure(why)));
        }
        let Some(uuid) = bmc::compared(&[looked], own) else { return Ok(()) };
        self.typed(&["pcs", "stonith", "update", id, &format!("system_uuid={uuid}")])
    }

    /// Returns the options with which the new node fences this node; `None` if this node has no fence device. They contain the password
    /// itself, because the new machine has no password file yet.
    fn device_of_here(&self, look: &Look) -> Result<Option<Secret>, Failure> {
        let here = &self.change.here.name;
        let Some(device) = look.devices(here).into_iter().next() else { return Ok(None) };
        let lines = fence_options::read(&self.programs)?.lines_of(&device.resource.id)?;
        let mut told = Zeroizing::new(String::with_capacity(lines.len() + 4096));
        let add = |told: &mut String, parts: &[&str]| parts.iter().for_each(|part| told.push_str(part));
        for line in std::str::from_utf8(&lines).unwrap_or_default().lines() {
            match line.split_once('=') {
                Some(("password_file", path)) => {
                    let Secret(password) = drive::password_of(Path::new(path))
                        .map_err(|why| Failure(format!("the password of {here}'s BMC, {path}: {why}")))?;
                    add(&mut told, &["password=", password.lines().next().unwrap_or_default(), "\n"]);
                }
                _ => add(&mut told, &[line, "\n"]),
            }
        }
        if let Some(plug) = device.plugs.get(here) {
            add(&mut told, &["plug=", plug, "\n"]);
        }
        Ok(Some(Secret(told)))
    }

    /// Describes both nodes in the form of the description file for 'tandem setup'.
    fn description(&self, look: &Look) -> Result<Description, Failure> {
        let context = &look.context;
        let Source::Parameters { image, .. } = &context.params.source else {
            return Err(Failure("this pair has its image from a pod manifest".to_owned()));
        };
        let deployment = &context.deployment;
        let (ca, cert, key) = (&deployment.trusted_ca_file, &deployment.server.cert, &deployment.server.key);
        let is_own = ca.parent() == Some(Path::new(pki::DIR)) && cert.parent() == Some(Path::new(pki::DIR));
        let certificates = if is_own {
            Certificates::Own
        } else {
            Certificates::Given { ca: ca.clone(), cert: cert.clone(), key: key.clone() }
        };
        let own = look.links(&self.change.here.name).into_iter().chain([self.change.here.address]);
        let names = if is_own { further_names(own, &self.change.here.name) } else { Vec::new() };
        let new = self.new_node()?;
        Ok(Description {
            cluster: look.corosync.name.clone(),
            nodes: [(&self.change.here, look.links(&self.change.here.name)), (&new, self.change.links.clone())].map(
                |(place, links)| Node {
                    name: place.name.clone(),
                    address: place.address,
                    links,
                    names: names.clone(),
                    bmc: Bmc { options: Vec::new(), password_file: self.password_file(look, &place.name) },
                },
            ),
            preferred: self.change.here.name.clone(),
            fencing_delay: fencing_delay(),
            primary: None,
            race: false,
            lone_boot: false,
            token: Duration::from_secs(3),
            clone: CloneKind::Plain,
            etcd: Etcd { image: image.clone(), data_dir: deployment.data_dir.clone(), settings: Vec::new() },
            certificates,
        })
    }

    /// Returns the path of the password file of `node`'s BMC; empty if the password is in the CIB.
    fn password_file(&self, look: &Look, node: &str) -> PathBuf {
        let typed = self.change.fence.iter().find(|(name, _)| name == "password_file").map(|(_, file)| file.clone());
        let is_new = self.change.new.as_ref().is_some_and(|new| new.name == node);
        let of_device =
            || look.devices(node).iter().find_map(|device| device.resource.parameters.get("password_file").cloned());
        typed.filter(|_| is_new).or_else(of_device).map(PathBuf::from).unwrap_or_default()
    }

    /// Adds the new node to Corosync and Pacemaker, and starts both there. After an interruption, finished parts are repeated without
    /// effect.
    pub(super) fn add(&mut self, look: &Look, seen: &PairSeen) -> Result<Took, Failure> {
        let new = self.new_node()?;
        let name = new.name.as_str();
        if self.is_started {
            if self.end.left() < Duration::from_secs(1) {
                return Ok(Took::Waits(format!("waits until {name} is online; 'pcs cluster start {name}' starts it")));
            }
            return Ok(Took::Waits(format!("waits until {name} is online")));
        }
        if !seen.new_is_known {
            self.forget_in_memory(look)?;
            self.enter(&new)?;
        }
        // pcs sends its known hosts to all nodes of a cluster, and the new node is now one of them.
        if let Err(Failure(why)) = self.hosts() {
            self.progress.keep(&format!("warning: {why}"));
        }
        let _ = std::fs::remove_file(&self.token);
        // pcs' own waiting is not used: it asks the new node, and fails while that has no copy of the CIB.
        for verb in ["enable", "start"] {
            self.typed(&["pcs", "cluster", verb, name]).map_err(goes_on)?;
        }
        self.is_started = true;
        Ok(Took::Acted(format!("{name} is in the cluster")))
    }

    /// Adds the new node to the cluster without starting it, so that a repeated command sees that only the start is missing.
    fn enter(&mut self, new: &Place) -> Result<(), Failure> {
        let mut words = ["pcs", "cluster", "node", "add", &new.name].map(str::to_owned).to_vec();
        words.extend(std::iter::once(&new.address).chain(&self.change.links).map(|address| format!("addr={address}")));
        let added = self.hosts().and_then(|()| self.typed(&words));
        let Err(why) = added else { return Ok(()) };
        // The new machine may have lost its preparation, so that step is repeated.
        self.change.takes_back(PairStep::Prepare);
        self.change.save()?;
        Err(goes_on(why))
    }

    /// Gives pcs access to both nodes with the token that both pcsds accepted. Does nothing if the token was already used.
    fn hosts(&self) -> Result<(), Failure> {
        if !self.token.exists() {
            return Ok(());
        }
        let mut words = ["pcs", "host", "auth"].map(str::to_owned).to_vec();
        for place in self.change.nodes() {
            words.extend([place.name.clone(), format!("addr={}", place.address)]);
        }
        words.extend(["--token".to_owned(), self.token.display().to_string()]);
        self.typed(&words)
    }

    /// Waits until the resource agent has let the new node's etcd join and vote.
    pub(super) fn join(&mut self, look: &Look, seen: &PairSeen) -> Result<Took, Failure> {
        let new = self.change.new.as_ref().map(|new| new.name.clone()).unwrap_or_default();
        // The node may still have the standby of the old machine of that name, which OpenShift's jobs have not removed.
        if self.change.openshift.is_some() && seen.old == (Old::Online { standby: true }) {
            self.typed(&["pcs", "node", "unstandby", &new])?;
            return Ok(Took::Acted(format!("{new} is not in standby any more")));
        }
        if let Some(done) = self.protected(look, &new)? {
            return Ok(Took::Acted(done));
        }
        Ok(Took::Waits(self.joining(look, &new)))
    }

    /// Sets the deletion hook on the new member's Machine before the member votes, if the other voter's Machine has one. Does so only
    /// once per command, because a client that removes the hook after that does so on purpose. Returns a message if the hook was written.
    fn protected(&mut self, look: &Look, new: &str) -> Result<Option<String>, Failure> {
        let is_bare = |member: &&Member| member.machine == MachineState::Stays { is_protected: false };
        let uses_hooks = look.members.as_ref().is_ok_and(|seen| seen.membership.uses_hooks);
        let Some(member) = look.member(new).filter(|member| uses_hooks && is_bare(member)) else { return Ok(None) };
        if std::mem::replace(&mut self.is_protected, true) {
            return Ok(None);
        }
        let written = protect::hook(&look.context.params.kubeconfig, new, &machine_names(member), true)?;
        Ok((written == Some(Written::Yes)).then(|| format!("the deletion of {new}'s Machine waits for it")))
    }

    fn joining(&mut self, look: &Look, new: &str) -> String {
        let Some(member) = look.member(new) else { return format!("waits until etcd starts on {new}") };
        if !member.is_learner {
            return format!("{new} votes; waits until it is healthy");
        }
        let index = look.members.as_ref().ok().and_then(|seen| seen.details.get(&member.id)?.index);
        let (Some(lag), Some(index)) = (member.lag, index) else {
            return format!("{new} is a learner; its copy has begun");
        };
        let (since, first) = *self.copied.get_or_insert_with(|| (Deadline::after(Duration::ZERO), index));
        let rate = index.saturating_sub(first) / since.elapsed().as_secs().max(1);
        format!("{new} lacks {lag} entries, and takes {rate} a second")
    }

    /// Returns the problems of the cluster as 'tandem status' reports them, joined by "; ".
    pub(super) fn problems(look: &Look) -> String {
        let all: Vec<String> = health::assess(&look.cluster).problems.into_iter().map(|problem| problem.text).collect();
        all.join("; ")
    }
}

fn refused(Refusal(faults): Refusal) -> Failure {
    Failure(format!("{}: 'tandem member replace' continues once that is right", faults.join("; ")))
}

pub(super) fn goes_on(Failure(why): Failure) -> Failure {
    Failure(format!("{why}: put that right; 'tandem member replace' continues"))
}

/// Returns the further names and addresses in this node's etcd certificate, such as an address that follows the leader. The node's own
/// name and addresses are left out. The new node's certificate gets the same names.
fn further_names(own: impl Iterator<Item = IpAddr>, node: &str) -> Vec<String> {
    let local = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    let own: Vec<String> = own.chain(local).map(|address| address.to_string()).collect();
    let is_own = |name: &String| name == node || name == "localhost" || own.contains(name);
    let leaf = pki::Files::at(pki::DIR).leaf(pki::Leaf::Etcd).ok().flatten();
    leaf.into_iter().flat_map(|leaf| leaf.names).filter(|name| !is_own(name)).collect()
}

#[cfg(test)]
mod tests;
