//! The step for the properties of the cluster.

use super::found::{Found, pcs};
use super::value::Wanted;
use crate::adapters::pacemaker::layout::Cib;
use crate::operate::setup::step::SetupStep;

const TITLE: &str = "properties of the cluster";

/// Returns the step that sets the cluster properties that are missing. A property with another value is reported as a
/// difference.
pub(crate) fn steps(cib: &Cib, wanted: &[Wanted], on: &str) -> Vec<SetupStep> {
    let mut found = Found::default();
    let (there, missing): (Vec<&Wanted>, Vec<&Wanted>) =
        wanted.iter().partition(|property| cib.properties.contains_key(&property.name));
    if !missing.is_empty() {
        found.miss(set(missing.into_iter().map(Wanted::word)));
    }
    let there: Vec<Wanted> = there.into_iter().cloned().collect();
    let differing = found.compare("cluster", &there, &cib.properties);
    if !differing.is_empty() {
        found.change(set(differing));
    }
    found.steps("properties", TITLE, on)
}

fn set(words: impl IntoIterator<Item = String>) -> crate::operate::setup::action::Action {
    pcs(["property".to_owned(), "set".to_owned()].into_iter().chain(words))
}
