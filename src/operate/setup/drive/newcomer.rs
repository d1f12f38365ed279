//! Prepares a machine that should join an existing cluster: all that a node has before Pacemaker starts. This node gets
//! the token by which the two pcsds authorise each other.

use super::locals::{Local, differs, kept, token};
use super::{Drive, Refusal, Shown, Talk};
use crate::operate::certs::pki;
use crate::operate::setup::bmc;
use crate::operate::setup::certificates::Kept;
use crate::operate::setup::description::Certificates;
use crate::operate::setup::local::{self, Secret};
use crate::operate::setup::machine::Machine;
use crate::operate::setup::node::judge::{self, Judgement};
use crate::operate::setup::node::{Corosync, Facts};

/// The report and the UUID of a machine that is ready for 'pcs cluster node add'.
#[derive(Debug)]
pub struct Prepared {
    pub shown: Vec<Shown>,
    /// The system UUID that the machine's firmware reports; `None` if it is unknown.
    pub dmi_uuid: Option<String>,
}

impl<T: Talk> Drive<'_, T> {
    /// Checks a machine that is to join the cluster. If it has no fault, performs all steps that precede 'pcs cluster
    /// node add'.
    ///
    /// `device` has the options of the device that fences this node, with the password, because the joining node will
    /// run that device.
    pub fn newcomer(mut self, own: &Facts, other: &dyn Machine, device: Option<&Secret>) -> Result<Prepared, Refusal> {
        let theirs = self.look_at(own, other, device)?;
        let mut judged = Judgement::default();
        let passwords = self.passwords(&mut judged);
        if !judged.faults.is_empty() {
            return Err(Refusal(judged.faults));
        }
        let passwords = passwords.map_err(|()| Refusal(Vec::new()))?;
        if self.description.certificates == Certificates::Own && matches!(kept(), Kept::Nothing) {
            return Err(Refusal::from(format!(
                "{}: {} is gone, and no certificate for {} can be made without it: restore the directory",
                self.name(),
                pki::DIR,
                other.name()
            )));
        }
        let token = token()?;
        let question = local::question(&self.description, Some(&token));
        let found = other.find(&question)?;
        let authority = self.authority(Some((other.name(), &found)))?;
        let here = self.here;
        for (at, machine, facts) in [(self.at, here as &dyn Machine, own), (1 - self.at, other, &theirs)] {
            let node = Local {
                at,
                passwords: passwords.clone(),
                token: Some(token.clone()),
                keeps_token: at == self.at,
                is_half_made: false,
            };
            if let Some(step) = self.node(&node, machine, facts, &question, authority.as_ref())?.first() {
                return Err(Refusal::from(differs(step)));
            }
        }
        self.await_pcsd()?;
        Ok(Prepared { shown: self.shown, dmi_uuid: theirs.dmi_uuid })
    }

    fn look_at(&self, own: &Facts, other: &dyn Machine, device: Option<&Secret>) -> Result<Facts, Refusal> {
        let (name, at) = (other.name(), 1 - self.at);
        let nodes = [self.at, at].map(|at| &self.description.nodes[at]);
        let (theirs, ahead) = self.look_there(other)?;
        let mut judged = judge::one(&self.description, at, &theirs, false);
        judge::clocks(&mut judged, nodes, ahead.unsigned_abs());
        if theirs.corosync == Corosync::Cluster(self.description.cluster.clone()) {
            judged.faults.push(format!(
                "{name}: it has the configuration of this cluster from before: 'pcs cluster destroy' there gives that up, and leaves etcd's data alone"
            ));
        }
        let closed = self.closed(other, self.here, &theirs)?;
        judge::unreached(&mut judged, nodes[1], nodes[0], &closed);
        if let Some(lines) = device {
            self.talk.progress(&format!("asks the BMC of {} from {name}", self.name()));
            let looked = other.bmc(self.name(), lines)?;
            judged.faults.extend(bmc::judge_of_member(self.name(), name, &looked, own.dmi_uuid.as_deref()));
        }
        judged.warnings.iter().for_each(|warning| self.talk.warn(warning));
        if judged.faults.is_empty() { Ok(theirs) } else { Err(Refusal(judged.faults)) }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::super::Wish;
    use super::*;
    use crate::adapters::command::Programs;
    use crate::operate::setup::bmc::Looked;
    use crate::operate::setup::file;
    use crate::operate::setup::machine::{Answer, Here, Request};
    use crate::records::bmc_note::BmcNote;

    struct Silent;

    impl Talk for Silent {
        fn progress(&self, _: &str) {}
        fn warn(&self, _: &str) {}
        fn confirm(&self, _: &str, _: &str) -> Result<bool, String> {
            Err("nobody is there".to_owned())
        }
    }

    /// A fake machine that does not reach the BMC of the node that stays.
    struct Newcomer {
        asked: RefCell<Vec<String>>,
    }

    impl Machine for Newcomer {
        fn name(&self) -> &'static str {
            "node2"
        }

        fn ask(&self, request: Request) -> Result<Answer, String> {
            let (word, answer) = match request {
                Request::Look => ("look", Answer::Facts(Box::default())),
                Request::Bmc { node, lines } => {
                    assert_eq!((&*node, &**lines.0), ("node1", "ip=192.0.2.9\n"));
                    let failure = Some("no route to host".to_owned());
                    (
                        "bmc",
                        Answer::Bmc(Box::new(Looked {
                            note: BmcNote { failure, ..BmcNote::default() },
                            ..Looked::default()
                        })),
                    )
                }
                Request::Listen(_) | Request::Quiet => ("ports", Answer::Done),
                _ => ("more", Answer::Done),
            };
            self.asked.borrow_mut().push(word.to_owned());
            Ok(answer)
        }
    }

    /// Asserts that a joining machine is refused if it cannot reach the BMC of the node that stays. Otherwise the next
    /// fencing of that node would fail, without an earlier sign.
    #[test]
    fn a_machine_that_cannot_fence_the_node_that_stays_gets_nothing() {
        let mut description = file::read(file::EXAMPLE).unwrap();
        description.nodes[1].address = "127.0.0.1".parse().unwrap();
        let programs = Programs::default();
        let here = Here::new(programs.clone(), description.clone(), 0, false);
        let other = Newcomer { asked: RefCell::default() };
        let drive = || {
            let wish = Wish { is_dry: false, changes: false };
            Drive::new(&programs, description.clone(), 0, &here, wish, &Silent)
        };
        let is_about_the_bmc = |why: &String| why.starts_with("the BMC of node1, asked from node2: no route to host");
        let lines = Secret("ip=192.0.2.9\n".to_owned().into());
        let Err(Refusal(faults)) = drive().newcomer(&Facts::default(), &other, Some(&lines)) else { panic!("taken") };
        assert!(faults.iter().any(is_about_the_bmc), "{faults:?}");
        assert!(!other.asked.borrow().iter().any(|word| word == "more"), "{:?}", other.asked);
        // Without a device that fences the staying node, there is no BMC to check.
        let Err(Refusal(faults)) = drive().newcomer(&Facts::default(), &other, None) else { panic!("taken") };
        assert!(!faults.iter().any(is_about_the_bmc), "{faults:?}");
    }
}
