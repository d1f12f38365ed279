//! Examines both machines and both BMCs before anything is changed.

use std::path::Path;

use zeroize::Zeroizing;

use super::{Drive, Refusal, Talk};
use crate::adapters::pace::limits::Limits;
use crate::operate::cluster;
use crate::operate::setup::bmc::{self, Looked};
use crate::operate::setup::description::Description;
use crate::operate::setup::local::Secret;
use crate::operate::setup::machine::{Machine, Request};
use crate::operate::setup::node::judge::{self, Judgement, NodeSeen};
use crate::operate::setup::node::ports::{self, Port};
use crate::operate::setup::node::{Corosync, Facts};
use crate::os::clock;
use crate::os::wiped;

/// Largest size of a password file, in bytes.
const PASSWORD: u64 = 64 * 1024;

/// The facts and BMC passwords of both machines, in the order of the description.
pub(super) struct Machines {
    /// The facts of each machine; `None` for the other machine if it was not asked.
    pub(super) facts: [Option<Facts>; 2],
    pub(super) passwords: [Secret; 2],
}

impl<T: Talk> Drive<'_, T> {
    /// Examines both machines and their BMCs. Fails with all faults if there is one.
    pub(super) fn machines(&mut self, own: &Facts, other: Option<&dyn Machine>) -> Result<Machines, Refusal> {
        let (mut judged, facts) = match other {
            Some(other) => {
                let (judged, theirs) = self.look_at_both(own, other)?;
                (judged, self.in_order(own.clone(), Some(theirs)))
            }
            None => (judge::one(&self.description, self.at, own, false), self.in_order(own.clone(), None)),
        };
        let passwords = self.passwords(&mut judged);
        if let Ok(passwords) = &passwords {
            self.bmcs(&mut judged, &facts, passwords, other, [true; 2])?;
        }
        judged.warnings.iter().for_each(|warning| self.talk.warn(warning));
        if !judged.faults.is_empty() {
            return Err(Refusal(judged.faults));
        }
        let passwords = passwords.map_err(|()| Refusal(Vec::new()))?;
        Ok(Machines { facts, passwords })
    }

    /// Examines the BMCs of the nodes that have no fence device yet. `known` is true for a node with a device, which stores the findings
    /// of an earlier run. The other node's UUID is read from its collector's report. Without that report, the other node's BMC is neither
    /// compared nor pinned.
    pub(super) fn bmcs_of_a_member(&mut self, own: &Facts, known: [bool; 2]) -> Result<(), Refusal> {
        if known == [true; 2] {
            return Ok(());
        }
        let mut judged = Judgement::default();
        let passwords = self.passwords(&mut judged);
        if let Ok(passwords) = &passwords {
            let mut cluster = cluster::look(self.programs, None, &Limits::default());
            let other = &self.description.nodes[1 - self.at].name;
            let collected = cluster.collected.remove(other);
            let dmi_uuid = collected.and_then(|collected| collected.known().and_then(|known| known.dmi_uuid.clone()));
            let theirs = Facts { dmi_uuid, ..Facts::default() };
            let facts = self.in_order(own.clone(), Some(theirs));
            self.bmcs(&mut judged, &facts, passwords, None, known.map(|known| !known))?;
        }
        judged.warnings.iter().for_each(|warning| self.talk.warn(warning));
        if judged.faults.is_empty() { Ok(()) } else { Err(Refusal(judged.faults)) }
    }

    fn in_order<V>(&self, own: V, theirs: Option<V>) -> [Option<V>; 2] {
        if self.at == 0 { [Some(own), theirs] } else { [theirs, Some(own)] }
    }

    fn look_at_both(&self, own: &Facts, other: &dyn Machine) -> Result<(Judgement, Facts), Refusal> {
        let (theirs, ahead_millis) = self.look_there(other)?;
        self.talk.progress("asks each node for the other one's ports");
        let closed = self.closed(other, self.here, &theirs)?;
        let seen_there = NodeSeen { facts: theirs.clone(), ahead_millis, closed };
        let closed = self.closed(self.here, other, own)?;
        let seen_here = NodeSeen { facts: own.clone(), ahead_millis: 0, closed };
        let seen = if self.at == 0 { [&seen_here, &seen_there] } else { [&seen_there, &seen_here] };
        Ok((judge::both(&self.description, seen), theirs))
    }

    /// Returns the facts of the other machine, and the milliseconds by which the other machine's clock is ahead of
    /// this machine's clock.
    pub(super) fn look_there(&self, other: &dyn Machine) -> Result<(Facts, i64), Refusal> {
        self.talk.progress(&format!("looks at {}", other.name()));
        let theirs = other.look()?;
        let ahead = i128::from(theirs.at_millis) - i128::from(clock::wall_millis());
        Ok((theirs, i64::try_from(ahead).unwrap_or(i64::MAX)))
    }

    /// Returns the ports of the machine `listens` that the machine `asks` cannot reach. Skips a port that another program holds, because
    /// that is reported as another fault. Skips Corosync's port if an interrupted setup created the cluster on `listens`.
    pub(super) fn closed(&self, listens: &dyn Machine, asks: &dyn Machine, facts: &Facts) -> Result<Vec<Port>, String> {
        let is_ours = facts.corosync == Corosync::Cluster(self.description.cluster.clone());
        let is_asked = |port: &Port| !(facts.taken.contains(&port.word()) || (*port == Port::Corosync && is_ours));
        let wanted: Vec<Port> = ports::ALL.into_iter().filter(is_asked).collect();
        listens.done(Request::Listen(wanted.clone()))?;
        let closed = asks.closed(&wanted, &[Port::Pcsd]);
        listens.done(Request::Quiet)?;
        closed
    }

    /// Returns the password of each BMC, from OpenShift's API or from this node's files. Adds a fault for each
    /// unreadable file.
    pub(super) fn passwords(&self, judged: &mut Judgement) -> Result<[Secret; 2], ()> {
        if let Some(asked) = &self.asked {
            return Ok(asked.passwords.clone());
        }
        from_files(&self.description, &mut judged.faults)
    }

    /// Examines the BMCs of the nodes in `which` from this node and from `other`. If the operator confirms an untrusted
    /// certificate, it is pinned. The UUID that both a BMC and its node report is added to the description.
    fn bmcs(
        &mut self,
        judged: &mut Judgement,
        facts: &[Option<Facts>; 2],
        passwords: &[Secret; 2],
        other: Option<&dyn Machine>,
        which: [bool; 2],
    ) -> Result<(), Refusal> {
        let from: Vec<&dyn Machine> = std::iter::once(self.here as &dyn Machine).chain(other).collect();
        let uuid = |at: usize| facts[at].as_ref().and_then(|facts| facts.dmi_uuid.as_deref());
        for (at, password) in passwords.iter().enumerate().filter(|(at, _)| which[*at]) {
            let name = self.description.nodes[at].name.clone();
            self.talk.progress(&format!("asks the BMC of {name}"));
            let mut looked = self.look_at_bmc(at, password, &from)?;
            let print = {
                let all: Vec<&Looked> = looked.iter().collect();
                bmc::to_be_pinned(&self.description.nodes[at].bmc, &all).map(str::to_owned)
            };
            if let Some(print) = print {
                if self.wish.is_dry {
                    self.talk.warn(&format!(
                        "the BMC of {name} shows a certificate that nobody signed, with the fingerprint {print}: that is asked for without --dry-run, unless the file has ssl_fingerprint"
                    ));
                    continue;
                }
                if !self.talk.confirm(&name, &print)? {
                    judged.faults.push(format!(
                        "the certificate of {name}'s BMC was not confirmed: compare its fingerprint at the BMC itself, and write ssl_fingerprint = \"{print}\" into the file"
                    ));
                    continue;
                }
                self.description.nodes[at].bmc.options.push(("ssl_fingerprint".to_owned(), print));
                looked = self.look_at_bmc(at, password, &from)?;
            }
            let node = &self.description.nodes[at];
            let other_name = &self.description.nodes[1 - at].name;
            for (machine, looked) in from.iter().zip(&looked) {
                judged.faults.extend(bmc::judge(node, machine.name(), looked, [uuid(at), uuid(1 - at)], other_name));
            }
            if let Some(first) = looked.first().filter(|_| facts[at].is_some()) {
                let device = if self.asked.is_some() { format!("{name}_redfish") } else { format!("fence-{name}") };
                judged.warnings.extend(bmc::remarks(node, &device, first, uuid(at)));
            }
            let options = &mut self.description.nodes[at].bmc.options;
            if let Some(uuid) = bmc::compared(&looked, uuid(at)).filter(|_| self.asked.is_none())
                && !options.iter().any(|(name, _)| name == "system_uuid")
            {
                options.push(("system_uuid".to_owned(), uuid.to_owned()));
            }
        }
        Ok(())
    }

    fn look_at_bmc(&self, at: usize, password: &Secret, from: &[&dyn Machine]) -> Result<Vec<Looked>, String> {
        let node = &self.description.nodes[at];
        let lines = bmc::lines(&node.bmc, password);
        from.iter().map(|machine| machine.bmc(&node.name, &lines)).collect()
    }
}

/// Returns the faults of this node that do not depend on the other node, so that the operator can mend them first.
/// `asked` is true if OpenShift has the passwords.
pub fn faults_here(description: &Description, at: usize, facts: &Facts, asked: bool) -> Vec<String> {
    let mut faults = judge::alone(description, at, facts);
    if !asked {
        let _ = from_files(description, &mut faults);
    }
    faults
}

/// Reads the password of each BMC from this node's files. Adds a fault for each unreadable file.
fn from_files(description: &Description, faults: &mut Vec<String>) -> Result<[Secret; 2], ()> {
    let mut read = |at: usize| {
        let node = &description.nodes[at];
        let (path, name) = (&node.bmc.password_file, &node.name);
        if path.as_os_str().is_empty() {
            return Ok(Secret::default());
        }
        password_of(path).map_err(|why| {
            faults.push(format!(
                "the password of {name}'s BMC, {}: {why}: write it there, on a line of its own, and 'chmod 600' the file",
                path.display()
            ));
        })
    };
    let (first, second) = (read(0), read(1));
    Ok([first?, second?])
}

/// Reads a password file. Returns the whole file, because the other node gets the same content.
pub fn password_of(path: &Path) -> Result<Secret, String> {
    let bytes = wiped::read_at_most(path, PASSWORD).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "the file is not there".to_owned(),
        _ => error.to_string(),
    })?;
    let text = std::str::from_utf8(&bytes).map_err(|_| "it is no text".to_owned())?;
    if text.lines().next().unwrap_or_default().is_empty() {
        return Err("its first line is empty".to_owned());
    }
    Ok(Secret(Zeroizing::new(text.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operate::setup::file;

    /// Asserts that a machine's own faults are found without the other node. The unchanged example, for instance,
    /// describes no real machine.
    #[test]
    fn what_is_wrong_here_is_known_before_the_other_node_is_waited_for() {
        let mut description = file::read(file::EXAMPLE).unwrap();
        let elsewhere = std::net::IpAddr::from([203, 0, 113, 9]);
        let facts = Facts { addresses: vec![elsewhere], ..Facts::default() };
        let faults = faults_here(&description, 0, &facts, false).join("\n");
        for words in ["the machine has no address", "password of node1's BMC", "password of node2's BMC"] {
            assert!(faults.contains(words), "{words}: {faults}");
        }
        let asked = faults_here(&description, 0, &facts, true).join("\n");
        assert!(!asked.contains("password"), "OpenShift has them: {asked}");
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("password");
        std::fs::write(&path, "secret\n").unwrap();
        for node in &mut description.nodes {
            node.bmc.password_file.clone_from(&path);
        }
        assert!(!faults_here(&description, 0, &facts, false).join("\n").contains("password"));
    }
}
