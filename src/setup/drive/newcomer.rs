//! A machine that is to be a node of a cluster that is there: it gets what a node has before Pacemaker begins, and this node
//! gets the token by which the two pcsds get to know each other.

use super::locals::{Local, differs, kept, token};
use super::{Drive, Refusal, Shown, Talk};
use crate::clock;
use crate::pki;
use crate::setup::certificates::Kept;
use crate::setup::description::Certificates;
use crate::setup::local;
use crate::setup::machine::{Machine, Request};
use crate::setup::node::judge::{self, Judgement};
use crate::setup::node::ports::{self, Port};
use crate::setup::node::{Corosync, Facts};

impl<T: Talk> Drive<'_, T> {
    /// Looks at the machine, and where nothing is wrong with it does all that it takes before 'pcs cluster node add'.
    pub fn newcomer(mut self, own: &Facts, other: &dyn Machine) -> Result<Vec<Shown>, Refusal> {
        let theirs = self.look_at(other)?;
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
        Ok(self.shown)
    }

    fn look_at(&self, other: &dyn Machine) -> Result<Facts, Refusal> {
        let (name, at) = (other.name(), 1 - self.at);
        self.talk.progress(&format!("looks at {name}"));
        let theirs = other.look()?;
        let ahead = i128::from(theirs.at_millis) - i128::from(clock::wall_millis());
        let mut judged = judge::one(&self.description, at, &theirs, false);
        if ahead.unsigned_abs() > judge::APART.into() {
            judged.faults.push(format!(
                "{name}: its clock is {} s away from this one's: 'chronyc makestep' (or 'timedatectl set-ntp true') on the one that is wrong",
                ahead.abs() / 1_000
            ));
        }
        if theirs.corosync == Corosync::Cluster(self.description.cluster.clone()) {
            judged.faults.push(format!(
                "{name}: it has the configuration of this cluster from before: 'pcs cluster destroy' there gives that up, and leaves etcd's data alone"
            ));
        }
        let wanted: Vec<Port> = ports::ALL.into_iter().filter(|port| !theirs.taken.contains(&port.word())).collect();
        other.done(Request::Listen(wanted.clone()))?;
        let closed = self.here.closed(&wanted, &[Port::Pcsd]);
        other.done(Request::Quiet)?;
        let node = &self.description.nodes[at];
        judge::unreached(&mut judged, node, &self.description.nodes[self.at], &closed?);
        judged.warnings.iter().for_each(|warning| self.talk.warn(warning));
        if judged.faults.is_empty() { Ok(theirs) } else { Err(Refusal(judged.faults)) }
    }
}
