//! The state of each listed member as this node knows it, and the changes for local clients.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use foca::{Member, State};

use super::contact::Contacts;
use super::feeding::log;
use super::input::Name;
use super::output::{Change, ChangeKind, Output, Weight};
use super::snapshot::MemberState;
use super::suspicion::Suspicion;
use super::swim_wire::Id;

/// The state of a listed member, as this node knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) state: MemberState,
    pub(super) lost_at: Option<Duration>,
    number: u64,
    incarnation: u16,
    /// The start number at which the member left cleanly; `None` if it never did.
    left: Option<u64>,
    /// The time since which the member has been present.
    since: Duration,
}

impl Known {
    fn unseen() -> Self {
        Self { state: MemberState::Unseen, lost_at: None, number: 0, incarnation: 0, left: None, since: Duration::ZERO }
    }
}

/// All listed members except this node, their suspicions, and the changes that local clients have not received yet.
#[derive(Debug)]
pub(super) struct Roster {
    me: Name,
    known: BTreeMap<Name, Known>,
    suspicions: BTreeMap<Name, Suspicion>,
    pub(super) suspicions_total: u64,
    pub(super) changes: Vec<Output>,
}

impl Roster {
    pub(super) fn new(me: Name) -> Self {
        Self { me, known: BTreeMap::new(), suspicions: BTreeMap::new(), suspicions_total: 0, changes: Vec::new() }
    }

    /// Replaces the listed members by `others`. Returns those that are no longer listed and that foca knows, each with its start number
    /// and incarnation.
    pub(super) fn list(&mut self, now: Duration, others: &[Name]) -> Vec<(Name, u64, u16)> {
        let wanted: BTreeSet<&Name> = others.iter().collect();
        let gone: Vec<Name> = self.known.keys().filter(|name| !wanted.contains(name)).cloned().collect();
        for name in others {
            self.known.entry(name.clone()).or_insert_with(Known::unseen);
        }
        gone.into_iter()
            .filter_map(|name| {
                self.suspicions.remove(&name);
                let known = self.known.remove(&name)?;
                if known.state.is_present() {
                    let line = log(Weight::Info, format!("LEFT {name}: it is listed no more"));
                    let (source, lost_at) = (self.me.clone(), Some(now));
                    let change = Change { kind: ChangeKind::Left, name: name.clone(), at: now, source, lost_at };
                    self.changes.extend([line, Output::Publish(change)]);
                }
                (known.state != MemberState::Unseen).then_some((name, known.number, known.incarnation))
            })
            .collect()
    }

    pub(super) fn members(&self) -> impl Iterator<Item = (&Name, &Known)> {
        self.known.iter()
    }

    pub(super) fn is_listed(&self, name: &str) -> bool {
        self.known.contains_key(name)
    }

    pub(super) fn is_present(&self, name: &str) -> bool {
        self.known.get(name).is_some_and(|known| known.state.is_present())
    }

    /// Returns the newest known start number of a member; `None` if the member was never seen.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.known.get(name).filter(|known| known.state != MemberState::Unseen).map(|known| known.number)
    }

    pub(super) fn incarnation(&self, name: &str) -> u16 {
        self.known.get(name).map_or(0, |known| known.incarnation)
    }

    /// Returns whether `number` is at least the newest known start number of the member.
    pub(super) fn is_current(&self, name: &str, number: u64) -> bool {
        self.number(name).is_none_or(|known| number >= known)
    }

    /// Returns whether a member may be present with the start number in `id`. It may not if it has left cleanly with this number, or if a
    /// higher number is known.
    pub(super) fn may_return(&self, id: &Id) -> bool {
        let known = self.known.get(&id.name);
        known.is_some_and(|known| known.left.is_none_or(|left| id.number > left))
            && self.is_current(&id.name, id.number)
    }

    /// Records that a member leaves cleanly with the start number `number`. Returns false if this was known or the number is old.
    pub(super) fn leaves(&mut self, name: &str, number: u64) -> bool {
        let is_current = self.is_current(name, number);
        let Some(known) = self.known.get_mut(name).filter(|known| is_current && known.left < Some(number)) else {
            return false;
        };
        known.left = Some(number);
        true
    }

    pub(super) fn suspicion(&self, name: &str) -> Option<&Suspicion> {
        self.suspicions.get(name)
    }

    pub(super) fn suspects(&self) -> Vec<Name> {
        self.suspicions.keys().cloned().collect()
    }

    /// Returns the members without a suspicion that have answered no challenge for `silence`. Each has its incarnation.
    pub(super) fn silent(&self, now: Duration, silence: Duration, contacts: &Contacts) -> Vec<(Id, u16)> {
        let is_silent = |name: &str, known: &Known| {
            let last = contacts.newest(name).map_or(known.since, |contact| contact.max(known.since));
            known.state == MemberState::Alive && last + silence <= now
        };
        let silent = self.known.iter().filter(|(name, known)| is_silent(name, known));
        silent.map(|(name, known)| (Id { name: name.clone(), number: known.number }, known.incarnation)).collect()
    }

    /// Returns the suspects that this node itself failed to reach.
    pub(super) fn accused(&self) -> Vec<Name> {
        let own = self.suspicions.iter().filter(|(_, suspicion)| suspicion.accusers.contains(&self.me));
        own.map(|(name, _)| name.clone()).collect()
    }

    /// Records that the member `accuser` itself failed to reach the suspect `name`.
    pub(super) fn confirm(&mut self, name: &str, accuser: &Name) {
        if let Some(suspicion) = self.suspicions.get_mut(name).filter(|_| **accuser != *name) {
            suspicion.accusers.insert(accuser.clone());
        }
    }

    /// Records that this node failed to reach the suspect `name` by a probe. Does nothing if the suspect has answered a challenge since
    /// `since`, when the probe began.
    pub(super) fn accuse(&mut self, name: &str, me: &Name, contacts: &Contacts, since: Duration) {
        if contacts.newest(name).is_none_or(|contact| contact < since) {
            self.confirm(name, me);
        }
    }

    /// Records that this node fails to reach the suspect `name`. Does nothing if the suspicion is not older than `patience`, or if the
    /// suspect has answered a challenge since the suspicion began.
    pub(super) fn accuse_silent(&mut self, name: &str, now: Duration, patience: Duration, contacts: &Contacts) {
        let me = self.me.clone();
        if let Some(began) = self.suspicions.get(name).map(|found| found.began).filter(|began| *began + patience <= now)
        {
            self.accuse(name, &me, contacts, began);
        }
    }

    /// Returns whether the suspicion of `name` has ended and the member is lost. A member that answered a challenge sent after the
    /// suspicion began is not lost, and the suspicion begins again.
    pub(super) fn is_due(
        &mut self,
        name: &str,
        now: Duration,
        times: (Duration, Duration),
        contacts: &Contacts,
    ) -> bool {
        let listed = self.known.len() + 1;
        let Some(suspicion) = self.suspicions.get_mut(name).filter(|found| found.due(listed, times) <= now) else {
            return false;
        };
        let answers = contacts.newest(name).is_some_and(|contact| contact >= suspicion.began);
        if answers {
            suspicion.restart(now);
        }
        !answers
    }

    /// Returns the next time at which a suspicion ends, or at which this node may confirm one.
    pub(super) fn next_end(
        &self,
        times: (Duration, Duration),
        patience: impl Fn(&Name) -> Duration,
    ) -> Option<Duration> {
        let listed = self.known.len() + 1;
        let ends = self.suspicions.values().map(|suspicion| suspicion.due(listed, times));
        let accuses = self.suspicions.iter().filter(|(_, found)| !found.accusers.contains(&self.me));
        ends.chain(accuses.map(|(name, found)| found.began + patience(name))).min()
    }

    pub(super) fn held_up(&mut self, gap: Duration) {
        self.suspicions.values_mut().for_each(|suspicion| suspicion.held += gap);
    }

    /// Takes over the states of foca's `members`, and records the changes for local clients. `source` is the member that reported them.
    pub(super) fn sync<'a>(
        &mut self,
        now: Duration,
        source: &Name,
        members: impl Iterator<Item = &'a Member<Id>>,
        contacts: &Contacts,
    ) {
        for member in members {
            let (id, incarnation) = (member.id(), member.incarnation());
            let Some(known) = self.known.get_mut(&id.name) else { continue };
            let state = match member.state() {
                State::Alive => MemberState::Alive,
                State::Suspect => MemberState::Suspect,
                State::Down if known.left == Some(id.number) => MemberState::Left,
                State::Down => MemberState::Lost,
            };
            let before = (known.state, known.number, known.incarnation);
            if before == (state, id.number, incarnation) {
                continue;
            }
            (known.state, known.number, known.incarnation) = (state, id.number, incarnation);
            if before.0 != MemberState::Suspect && state == MemberState::Alive {
                known.since = now;
            }
            match (before.0.is_present(), state.is_present()) {
                (false, true) => self.join(now, &id.name, source),
                (true, false) => self.left(now, &id.name, source, contacts),
                _ => {}
            }
            if state == MemberState::Suspect {
                self.suspicions_total += 1;
                let suspicion = Suspicion::new(now, id.number, incarnation, source.clone());
                self.suspicions.insert(id.name.clone(), suspicion);
            } else {
                self.suspicions.remove(&id.name);
            }
        }
    }

    fn join(&mut self, now: Duration, name: &Name, source: &Name) {
        let lost_at = self.known.get(name).and_then(|known| known.lost_at);
        let away = lost_at.map(|at| format!(", away for {} s", now.saturating_sub(at).as_secs()));
        let line = log(Weight::Info, format!("JOIN {name}{}", away.unwrap_or_default()));
        let change = Change { kind: ChangeKind::Join, name: name.clone(), at: now, source: source.clone(), lost_at };
        self.changes.extend([line, Output::Publish(change)]);
    }

    fn left(&mut self, now: Duration, name: &Name, source: &Name, contacts: &Contacts) {
        let Some(known) = self.known.get_mut(name) else { return };
        known.lost_at = Some(now);
        let line = if known.state == MemberState::Left {
            format!("LEFT {name}, in order")
        } else {
            let silent = contacts.newest(name).map(|contact| now.saturating_sub(contact).as_secs_f64());
            let after = silent.map(|silent| format!(", {silent:.1} s after its last answer")).unwrap_or_default();
            let accusers = self.suspicions.get(name).map(|suspicion| suspicion.accusers.iter());
            let others: Vec<&str> =
                accusers.into_iter().flatten().filter(|accuser| *accuser != source).map(AsRef::as_ref).collect();
            let confirmed =
                if others.is_empty() { String::new() } else { format!(", confirmed by {}", others.join(", ")) };
            format!("LEFT {name}{after} (by {source}{confirmed})")
        };
        let change =
            Change { kind: ChangeKind::Left, name: name.clone(), at: now, source: source.clone(), lost_at: Some(now) };
        self.changes.extend([log(Weight::Info, line), Output::Publish(change)]);
    }
}
