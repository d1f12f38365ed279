//! Collects the parts of a step: what is missing, what differs, and the commands.

use std::collections::BTreeMap;

use super::value::Wanted;
use crate::operate::setup::action::Action;
use crate::operate::setup::step::{Difference, SetupStep, State};

/// Returns the action that runs pcs with the arguments `words`.
pub(crate) fn pcs<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> Action {
    let words = words.into_iter().map(|word| word.as_ref().to_owned());
    Action::Command(std::iter::once("pcs".to_owned()).chain(words).collect())
}

/// Returns the action that runs the command `words`.
pub(crate) fn command(words: &[&str]) -> Action {
    Action::Command(words.iter().map(|word| (*word).to_owned()).collect())
}

pub(crate) fn refused(id: &str, title: &str, on: &str, why: String) -> SetupStep {
    step(id, title, on, State::Refused(why))
}

pub(crate) fn step(id: &str, title: &str, on: &str, state: State) -> SetupStep {
    SetupStep { id: id.to_owned(), title: title.to_owned(), on: on.to_owned(), state }
}

/// The missing and differing parts of a setup step, collected while the cluster is compared with the description.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Commands that create missing objects.
    missing: Vec<Action>,
    differences: Vec<Difference>,
    /// Commands that change existing objects to what the description demands.
    changes: Vec<Action>,
}

impl Found {
    pub(crate) fn miss(&mut self, action: Action) {
        self.missing.push(action);
    }

    pub(crate) fn differ(&mut self, what: String, there: &str, described: &str) {
        let described = described.to_owned();
        self.differences.push(Difference { what, there: there.to_owned(), described });
    }

    pub(crate) fn change(&mut self, action: Action) {
        self.changes.push(action);
    }

    /// Compares the `wanted` options of the object `whose` with its present ones, `there`. Returns the pcs arguments
    /// that change the differing ones.
    pub(crate) fn compare(&mut self, whose: &str, wanted: &[Wanted], there: &BTreeMap<String, String>) -> Vec<String> {
        let mut words = Vec::new();
        for option in wanted {
            let value = there.get(&option.name).map_or("", String::as_str);
            if !option.is(value) {
                self.differ(format!("{whose}: {}", option.name), value, &option.value);
                words.push(option.word());
            }
        }
        words
    }

    /// Compares options as [`Self::compare`] does. If any differ, adds the pcs command `words` with the arguments that
    /// change them.
    pub(crate) fn compare_and_change(
        &mut self,
        words: &[&str],
        whose: &str,
        wanted: &[Wanted],
        there: &BTreeMap<String, String>,
    ) {
        let changed = self.compare(whose, wanted, there);
        if !changed.is_empty() {
            self.change(pcs(words.iter().copied().chain(changed.iter().map(String::as_str))));
        }
    }

    pub(crate) fn steps(self, id: &str, title: &str, on: &str) -> Vec<SetupStep> {
        let mut steps = Vec::new();
        if !self.missing.is_empty() {
            steps.push(step(id, title, on, State::ToDo(self.missing)));
        }
        if !self.differences.is_empty() {
            let state = State::Differs { differences: self.differences, actions: self.changes };
            steps.push(step(id, title, on, state));
        }
        if steps.is_empty() {
            steps.push(step(id, title, on, State::Done));
        }
        steps
    }
}
