//! The result of a step: done, changes to make, a difference, or a refusal.

use serde::{Deserialize, Serialize};

use super::action::Action;

/// A step of the setup, with its present state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupStep {
    /// Id of the step for `--json` and tests, such as `corosync`, `properties`, `fence-node1` or `etcd`.
    pub id: String,
    /// Title of the step for the operator, such as "fence device of node1".
    pub title: String,
    /// Name of the node on which the step's actions run.
    pub on: String,
    pub state: State,
}

/// The present state of a setup step, compared with the description.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    Done,
    ToDo(Vec<Action>),
    /// An object that exists but differs from the description. Setup runs `actions` only with `--change`.
    Differs {
        differences: Vec<Difference>,
        actions: Vec<Action>,
    },
    /// The reason why the step cannot or must not be done, with what to type.
    Refused(String),
}

/// One value on the node that differs from the description.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The object and its option, such as "fence-node1: pcmk_delay_base".
    pub what: String,
    pub there: String,
    pub described: String,
}
