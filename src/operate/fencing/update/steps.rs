//! The steps of an update. After each step, one of the passwords that each node has is valid at the BMC, so that an
//! update may be cut off anywhere.

use std::path::Path;

use super::device::Device;
use super::values::{self, New};
use super::{Order, Updated, other, race};
use crate::adapters::command::Programs;
use crate::adapters::https::address::{Address, HTTPS_PORT};
use crate::adapters::openshift::fencing_secret::{self, Changes};
use crate::adapters::pacemaker::fence_update;
use crate::base::Fact;
use crate::fence::examine::{self, Examined};
use crate::fence::password_file::{self, PasswordFile};
use crate::fence::renewal::{self, Asks, Settled};
use crate::operate::cluster::Cluster;
use crate::operate::failure::Failure;
use crate::operate::fencing::copies;
use crate::operate::health::view;
use crate::operate::node;
use crate::os::secret::Secret;
use crate::os::uuid;

/// A run of `tandem fencing update`: the change to make, and the report of what was done.
pub(super) struct Work<'a> {
    order: &'a Order,
    programs: &'a Programs,
    cluster: &'a Cluster,
    device: Device,
    new: New,
    report: Updated,
}

impl<'a> Work<'a> {
    pub(super) fn new(
        order: &'a Order,
        programs: &'a Programs,
        cluster: &'a Cluster,
        device: Device,
        new: New,
    ) -> Self {
        let report = Updated { node: device.node.clone(), device: device.id.clone(), ..Updated::default() };
        Self { order, programs, cluster, device, new, report }
    }

    pub(super) fn run(mut self) -> Result<Updated, Failure> {
        let (password, file) = (self.new.password.take(), self.device.password_file.clone());
        match (password, file) {
            (password, None) => self.in_the_cib(password.as_ref())?,
            (Some(new), Some(file)) if self.order.stage => self.stage(&new, &file)?,
            (Some(new), Some(file)) if self.order.change_at_bmc => self.change_at_bmc(&new, &file)?,
            (Some(new), Some(file)) if self.new.options.is_empty() => self.take_over(&new, &file)?,
            (Some(new), Some(file)) => self.both(&new, &file)?,
            (None, Some(file)) if self.new.options.is_empty() => self.settle_on_both(&file)?,
            (None, Some(_)) => {
                self.proven(None)?;
                self.write_cib(None)?;
                self.follow(None);
            }
        }
        if let Some(file) = &self.device.password_file {
            self.report.lines = PasswordFile::look(file).ok().map(|file| file.lines.len());
        }
        self.compare_the_race();
        Ok(self.report)
    }

    /// Changes a device without a password file. All new values are written to the CIB at once.
    fn in_the_cib(&mut self, password: Option<&Secret>) -> Result<(), Failure> {
        let id = &self.device.id;
        if self.order.stage {
            return Err(Failure(format!(
                "{id} has its password in the CIB, which holds one: change it at the BMC and type this without --stage at once, \
                 or type 'pcs stonith update {id} password= password_file=FILE' first"
            )));
        }
        if self.order.change_at_bmc {
            return Err(Failure(format!(
                "{id} has its password in the CIB, which holds one, so that its BMC could have another for a moment: \
                 type 'pcs stonith update {id} password= password_file=FILE' first"
            )));
        }
        self.proven(password)?;
        self.write_cib(password)?;
        self.follow(password);
        Ok(())
    }

    /// Writes a new password to the password files, after proving that the BMC already accepts it.
    fn take_over(&mut self, new: &Secret, file: &Path) -> Result<(), Failure> {
        self.proven(Some(new))?;
        hold(file)?.replace(vec![new.clone()]).map_err(|error| unwritten(file, &error))?;
        self.done(format!("the BMC accepts the new password, and {} has it", file.display()));
        self.there(&["--password-stdin"], Some(new), &[]);
        self.follow(Some(new));
        Ok(())
    }

    /// Writes a new password as the second line of the password files, before the BMC accepts it.
    fn stage(&mut self, new: &Secret, file: &Path) -> Result<(), Failure> {
        self.stage_here(new, file)?;
        self.there(&["--stage", "--password-stdin"], Some(new), &["--stage"]);
        let node = &self.device.node;
        self.report.next.push(format!("change it at the BMC, then type: tandem fencing update {node}"));
        Ok(())
    }

    fn stage_here(&mut self, new: &Secret, path: &Path) -> Result<(), Failure> {
        let mut file = hold(path)?;
        let valid = renewal::valid_line(&self.device.options(&[], None), &file);
        let lines = password_file::staged(&file.lines, valid, new).ok_or_else(|| {
            let (path, node) = (path.display(), &self.device.node);
            Failure(format!(
                "{path} has two passwords, and it is not known which is valid: type 'tandem fencing update {node}' first"
            ))
        })?;
        if lines != file.lines {
            file.replace(lines).map_err(|error| unwritten(path, &error))?;
        }
        self.done(format!("{} has the new password as its second line", path.display()));
        Ok(())
    }

    /// Stages the new password on both nodes, changes it at the BMC, then drops the old one. After an interruption at any point, one line
    /// of each file is valid.
    fn change_at_bmc(&mut self, new: &Secret, path: &Path) -> Result<(), Failure> {
        self.proven_as_it_is()?;
        self.stage_on_both(new, path, "--change-at-bmc")?;
        let (target, plug) = (self.device.node.clone(), self.device.plug.clone());
        let options = self.device.options(&[], None);
        let changed = examine::change_password(&options, Some(&target), plug.as_deref(), new);
        // The BMC's answer to the change proves nothing. Only the next login shows which password the BMC accepts.
        let options = self.device.options(&[], Some(new.reveal()));
        let seen = examine::device(&options, Some(&target), plug.as_deref());
        if let Some(why) = seen.note.failure {
            let is_refused = !seen.login.refused.is_empty();
            let answer = changed.map_err(|error| error.to_string());
            return Err(Failure(not_seen_changed(answer, &why, is_refused, &target, path)));
        }
        self.done(format!("the BMC of {target} has the new password"));
        self.settle_on_both(path)?;
        self.follow(Some(new));
        Ok(())
    }

    /// Changes the password in the file and options in the CIB, one after the other. Between the two changes, either
    /// the old options or the second line of the file still work.
    fn both(&mut self, new: &Secret, path: &Path) -> Result<(), Failure> {
        self.proven(Some(new))?;
        self.stage_on_both(new, path, "the other options")?;
        self.write_cib(None)?;
        hold(path)?.replace(vec![new.clone()]).map_err(|error| unwritten(path, &error))?;
        self.done(format!("the BMC accepts the new password, and {} has it alone", path.display()));
        self.there(&["--password-stdin"], Some(new), &[]);
        self.follow(Some(new));
        Ok(())
    }

    fn stage_on_both(&mut self, new: &Secret, path: &Path, what: &str) -> Result<(), Failure> {
        let Some(other) = self.other() else { return self.stage_here(new, path) };
        let (node, id) = (self.device.node.clone(), self.device.id.clone());
        let stage = format!("tandem fencing update {node} --device {id} --stage");
        match &self.order.ssh {
            Some(host) => {
                let words = [node.as_str(), "--device", id.as_str(), "--stage", "--password-stdin"];
                let staged = other::run(self.programs, host, &words, Some(new.reveal()), self.order.timeout);
                staged.map_err(|why| {
                    Failure(format!(
                        "nothing was changed: the password cannot be staged on {other} ({why}); type there '{stage}'"
                    ))
                })?;
                self.done(format!("{other} has the new password as its second line"));
            }
            None if copies::has(self.cluster, &other, &id, new) => {}
            None if view::is_online(self.cluster, &other) => {
                return Err(Failure(format!(
                    "nothing was changed: {other} does not have the new password, and {what} would shut it out; add --ssh {other}, \
                     or type there '{stage}', wait half a minute, and type this again"
                )));
            }
            None => {
                self.done(format!("{other} is not online: its copy will be old when it is back"));
            }
        }
        self.stage_here(new, path)
    }

    /// Finds out on both nodes which line of the password file the BMC accepts. Drops the first line if the second one is valid.
    fn settle_on_both(&mut self, path: &Path) -> Result<(), Failure> {
        let (node, plug) = (self.device.node.clone(), self.device.plug.clone());
        let options = self.device.options(&[], None);
        let settled = renewal::settle(&options, Some(&node), plug.as_deref(), path, Asks::Now);
        match settled.map_err(|error| unwritten(path, &error))? {
            Settled::Dropped => {
                self.done(format!("the BMC accepts the new password, and {} has it alone", path.display()));
            }
            Settled::Single | Settled::NotDue => self.done(format!("{} has one password", path.display())),
            Settled::FirstIsValid => {
                self.done("the BMC accepts the old password still, and both stay".to_owned());
                self.report.next.push(format!("change it at the BMC, then type: tandem fencing update {node}"));
                return Ok(());
            }
            Settled::Unknown(why) => {
                return Err(Failure(format!("both passwords stay, as it is not known which is valid: {why}")));
            }
        }
        self.there(&["--no-question"], None, &[]);
        Ok(())
    }

    /// Runs `tandem fencing update` with the arguments `words` on the other node. Without ssh, or if that run fails, reports the command
    /// to type there. The reported command ends with the arguments `by_hand`.
    fn there(&mut self, words: &[&str], password: Option<&Secret>, by_hand: &[&str]) {
        let Some(other) = self.other() else { return };
        let (node, id) = (self.device.node.clone(), self.device.id.clone());
        let to_type = [&["tandem", "fencing", "update", &node], by_hand].concat().join(" ");
        match &self.order.ssh {
            Some(host) => {
                let all = [&[node.as_str(), "--device", id.as_str()], words].concat();
                let password = password.map(Secret::reveal);
                match other::run(self.programs, host, &all, password, self.order.timeout) {
                    Ok(()) => return self.done(format!("the same on {other}")),
                    Err(why) => self.done(format!("not on {other}: {why}")),
                }
            }
            // The other node has the valid password. If it still has the old one too, its collector drops that.
            None if self.newest().is_some_and(|new| copies::has(self.cluster, &other, &id, &new)) => return,
            None => {}
        }
        self.report.next.push(format!("type on {other}: {to_type}"));
        self.report.old_on = Some(other);
    }

    /// Returns the last line of this node's password file, which is the newest password; `None` if no such line can
    /// be read.
    fn newest(&self) -> Option<Secret> {
        PasswordFile::look(self.device.password_file.as_ref()?).ok()?.lines.pop()
    }

    /// Returns the name of the other node, or `None` in a cluster of one node.
    fn other(&self) -> Option<String> {
        let nodes = &self.cluster.configuration.known()?.nodes;
        nodes.iter().find(|node| **node != self.cluster.here).cloned()
    }

    /// Checks that the BMC accepts the device's options without the change.
    fn proven_as_it_is(&self) -> Result<(), Failure> {
        self.judged(examine::device(
            &self.device.options(&[], None),
            Some(&self.device.node),
            self.device.plug.as_deref(),
        ))
    }

    /// Checks the BMC with the new options and `password`. The BMC must belong to the node and support what fencing needs.
    fn proven(&self, password: Option<&Secret>) -> Result<(), Failure> {
        let values: Vec<(&str, &str)> = self.values();
        let options = self.device.options(&values, password.map(Secret::reveal));
        self.judged(examine::device(&options, Some(&self.device.node), self.device.plug.as_deref()))
    }

    fn judged(&self, seen: Examined) -> Result<(), Failure> {
        let node = &self.device.node;
        if let Some(why) = seen.note.failure {
            let is_refused = !seen.login.refused.is_empty();
            let way = if is_refused { "; where the BMC is to have it only later, add --stage" } else { "" };
            return Err(Failure(format!("nothing was changed: {why}{way}")));
        }
        let own = self.cluster.collected.get(node).and_then(Fact::known).and_then(|known| known.dmi_uuid.clone());
        let (theirs, address) = (seen.note.uuid.as_deref(), &seen.note.address);
        // If the device has `system_uuid`, the fence agent has compared it.
        let may_be_anothers = self.new.is_elsewhere() && !self.device.has("system_uuid");
        is_of(node, own.as_deref(), theirs, may_be_anothers, address).map_err(Failure)
    }

    fn values(&self) -> Vec<(&'static str, &str)> {
        self.new.options.iter().map(|(name, value)| (*name, value.as_str())).collect()
    }

    /// Writes all new options to the CIB at once. `password` is included if the device has its password in the CIB.
    fn write_cib(&mut self, password: Option<&Secret>) -> Result<(), Failure> {
        let mut values = self.values();
        values.extend(password.and_then(values::text).map(|password| ("password", password)));
        fence_update::set(self.programs, &self.device.id, &values)?;
        let names: Vec<&str> = values.iter().map(|(name, _)| *name).collect();
        let done = format!("{} has another {}", self.device.id, names.join(", "));
        self.done(done);
        Ok(())
    }

    /// Reports the command that renews the other device's `race_with`, if that option names this BMC with old values. Until then that
    /// device's agent does not reach this BMC, and waits as without a race.
    fn compare_the_race(&mut self) {
        let configuration = self.cluster.configuration.known();
        let devices = configuration.map(|known| known.fence_devices.as_slice()).unwrap_or_default();
        let stale = race::stale(devices, &self.device, &self.values());
        let Some((other, command)) = stale else { return };
        self.done(format!("race_with of {other} has old values of this BMC"));
        self.report.next.push(format!("type: {command}"));
    }

    /// Writes the change to OpenShift's Secret of the node, if there is one.
    fn follow(&mut self, password: Option<&Secret>) {
        if self.order.from_secret {
            self.report.secret = Some(true);
            return;
        }
        let Ok(kubeconfig) = node::kubeconfig(self.order.resource.as_deref()) else { return };
        let host = self.order.ip.as_deref().and_then(|ip| Address::parse(ip, HTTPS_PORT).ok());
        let host = host.map(|address| address.short());
        let changes = Changes {
            username: self.order.username.as_deref(),
            password: password.map(Secret::reveal),
            host: host.as_deref(),
            system: self.order.systems_uri.as_deref(),
        };
        let before = self.device.value("ip").or_else(|| self.device.value("ipaddr"));
        let before = before.and_then(|ip| Address::parse(&ip, HTTPS_PORT).ok());
        let whose = (self.device.node.as_str(), before.as_ref().map(Address::host));
        match fencing_secret::follow(&kubeconfig, whose, &changes, self.order.timeout) {
            Fact::Known(()) => {
                self.report.secret = Some(true);
                self.done("OpenShift's Secret follows".to_owned());
            }
            Fact::Unknown(why) => {
                self.report.secret = Some(false);
                self.done(format!("OpenShift's Secret does not follow: {why}"));
                let again = format!("tandem fencing update {} with the same options", self.device.node);
                self.report.next.push(format!("type again, when the API answers: {again}"));
            }
            Fact::Absent | Fact::NotAsked => {}
        }
    }

    fn done(&mut self, sentence: String) {
        self.report.done.push(sentence);
    }
}

fn hold(path: &Path) -> Result<PasswordFile, Failure> {
    PasswordFile::hold(path).map_err(|error| unwritten(path, &error))
}

fn unwritten(path: &Path, error: &std::io::Error) -> Failure {
    Failure(format!("the password file {} cannot be changed: {error}", path.display()))
}

/// Returns the error for a BMC that did not prove the new password. `answer` is the result of the change itself. If
/// `is_refused` is false, the BMC did not respond after the change, and may have the new password.
fn not_seen_changed(answer: Result<(), String>, why: &str, is_refused: bool, node: &str, path: &Path) -> String {
    let path = path.display();
    match answer {
        Ok(()) if !is_refused => format!(
            "the BMC of {node} took the new password, and has not answered since ({why}): type 'tandem fencing update {node}', which \
             finds out which line of {path} is valid"
        ),
        answer => {
            let why = answer.err().unwrap_or_else(|| why.to_owned());
            format!(
                "the password was not changed at the BMC ({why}); it is the second line of {path} now: change it there by hand, or \
                 type the old one with 'tandem fencing update {node} --password-file FILE'"
            )
        }
    }
}

/// Checks that the BMC at `address` belongs to `node`. `theirs` is the UUID that the BMC reports. `own` is the UUID that the node's
/// kernel reports. Also fails if `own` is unknown and `may_be_anothers` is set, because fencing could then switch off another machine.
fn is_of(
    node: &str,
    own: Option<&str>,
    theirs: Option<&str>,
    may_be_anothers: bool,
    address: &str,
) -> Result<(), String> {
    match (own, theirs) {
        (Some(own), Some(theirs)) if !uuid::same(own, theirs) => Err(format!(
            "nothing was changed: the BMC at {address} has the machine {theirs}, and {node} is {own}: type the address of its own \
             with --ip"
        )),
        (None, Some(theirs)) if may_be_anothers => Err(format!(
            "nothing was changed: the BMC at {address} has the machine {theirs}, and whether that is {node} is not known: type \
             'tandem collect' on {node}, then this again"
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{is_of, not_seen_changed};

    #[test]
    fn a_bmc_that_is_silent_after_it_took_a_password_has_not_refused_it() {
        let said = |answer, is_refused| not_seen_changed(answer, "no answer", is_refused, "node2", Path::new("/f"));
        assert!(
            said(Ok(()), false)
                .ends_with("type 'tandem fencing update node2', which finds out which line of /f is valid")
        );
        assert!(said(Ok(()), true).starts_with("the password was not changed at the BMC (no answer)"));
        let refused = said(Err("too short".to_owned()), false);
        assert!(refused.starts_with("the password was not changed at the BMC (too short)"), "{refused}");
    }

    #[test]
    fn another_bmc_is_stored_only_where_its_machine_is_known_to_be_the_nodes() {
        let own = Some("4c4c4544-0031-4a10-8052-b4c04f4e3532");
        let theirs = Some("4c4c4544-0032-4a10-8052-b4c04f4e3533");
        let wrong =
            |own, theirs, may_be_anothers| is_of("node2", own, theirs, may_be_anothers, "b").err().unwrap_or_default();
        assert!(
            wrong(own, theirs, false).contains("has the machine 4c4c4544-0032-4a10-8052-b4c04f4e3533, and node2 is")
        );
        assert!(wrong(None, theirs, true).contains("'tandem collect' on node2"));
        assert_eq!(wrong(own, own, true), "");
        assert_eq!(wrong(None, theirs, false), "", "a new password for the same BMC");
        assert_eq!(wrong(own, None, true), "", "it does not say whose it is");
    }
}
