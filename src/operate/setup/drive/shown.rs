//! The steps as they are printed, and the choice of the next one. Pure.

use serde::Serialize;

use crate::operate::setup::step::{Difference, SetupStep, State};

/// The state of a setup step in the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Standing {
    #[serde(rename = "done")]
    Done,
    /// A step that this run has performed.
    #[serde(rename = "made")]
    Made,
    #[serde(rename = "to do")]
    ToDo,
    #[serde(rename = "differs")]
    Differs,
    #[serde(rename = "refused")]
    Refused,
}

impl Standing {
    pub fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Made => "made",
            Self::ToDo => "to do",
            Self::Differs => "differs",
            Self::Refused => "refused",
        }
    }
}

/// A setup step as the report shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shown {
    pub id: String,
    pub title: String,
    pub on: String,
    pub state: Standing,
    /// The commands that were run or would be run. For a file, its path, mode and description.
    pub commands: Vec<String>,
    pub differences: Vec<Difference>,
    /// The reason why the step was refused, or why only the other node can judge it; `None` for other steps.
    pub why: Option<String>,
}

impl Shown {
    /// Returns the report's entry for a step in its present state.
    pub fn of(step: &SetupStep) -> Self {
        let (state, actions, differences, why) = match &step.state {
            State::Done => (Standing::Done, &[][..], Vec::new(), None),
            State::ToDo(actions) => (Standing::ToDo, actions.as_slice(), Vec::new(), None),
            State::Differs { differences, actions } => {
                (Standing::Differs, actions.as_slice(), differences.clone(), None)
            }
            State::Refused(why) => (Standing::Refused, &[][..], Vec::new(), Some(why.clone())),
        };
        let commands = actions.iter().map(ToString::to_string).collect();
        let SetupStep { id, title, on, .. } = step.clone();
        Self { id, title, on, state, commands, differences, why }
    }

    /// Returns the report's entry for a step that this run has performed.
    pub fn made(step: &SetupStep) -> Self {
        Self { state: Standing::Made, ..Self::of(step) }
    }
}

/// Returns the first step that must be performed now. If `changes` is false, a step that differs is added to `passed`
/// and skipped. A refused step is an error.
pub(super) fn next<'s>(
    steps: &'s [SetupStep],
    passed: &mut Vec<SetupStep>,
    changes: bool,
) -> Result<Option<&'s SetupStep>, String> {
    for step in steps {
        match &step.state {
            State::Done => {}
            State::Refused(why) => return Err(why.clone()),
            State::Differs { .. } if !changes => {
                if !passed.iter().any(|one| one.id == step.id) {
                    passed.push(step.clone());
                }
            }
            State::ToDo(_) | State::Differs { .. } => return Ok(Some(step)),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operate::setup::action::Action;

    fn step(id: &str, state: State) -> SetupStep {
        SetupStep { id: id.to_owned(), title: String::new(), on: "node1".to_owned(), state }
    }

    fn actions() -> Vec<Action> {
        vec![Action::Command(vec!["pcs".to_owned()])]
    }

    fn differs() -> State {
        let difference = Difference { what: "a".to_owned(), there: "1".to_owned(), described: "2".to_owned() };
        State::Differs { differences: vec![difference], actions: actions() }
    }

    #[test]
    fn what_differs_is_changed_only_where_that_is_asked_for() {
        let steps = [step("a", State::Done), step("b", differs()), step("c", State::ToDo(actions()))];
        let mut passed = Vec::new();
        assert_eq!(next(&steps, &mut passed, false).unwrap().unwrap().id, "c");
        assert_eq!(next(&steps[..2], &mut passed, false).unwrap(), None);
        assert_eq!(passed.len(), 1, "noted once");
        assert_eq!(next(&steps, &mut passed, true).unwrap().unwrap().id, "b");
    }

    #[test]
    fn what_is_refused_ends_it_but_not_before_what_comes_first() {
        let steps = [step("a", State::ToDo(actions())), step("b", State::Refused("no".to_owned()))];
        assert_eq!(next(&steps, &mut Vec::new(), false).unwrap().unwrap().id, "a");
        assert_eq!(next(&steps[1..], &mut Vec::new(), false), Err("no".to_owned()));
        assert_eq!(Shown::of(&steps[1]).why.as_deref(), Some("no"));
        assert_eq!(Shown::made(&steps[0]).state, Standing::Made);
    }
}
