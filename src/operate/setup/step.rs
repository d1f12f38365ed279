//! What a step finds: nothing to do, changes that are missing, or something that was made otherwise.

use serde::{Deserialize, Serialize};

use super::action::Action;

/// A step, as it stands now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupStep {
    /// For `--json` and tests: `corosync`, `properties`, `fence-node1`, `etcd`, ...
    pub id: String,
    /// For people: "fence device of node1".
    pub title: String,
    /// The node on which its actions are typed.
    pub on: String,
    pub state: State,
}

/// What there is, against what is wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    Done,
    ToDo(Vec<Action>),
    /// There, but otherwise than described: what is shown, and what `--change` would do.
    Differs {
        differences: Vec<Difference>,
        actions: Vec<Action>,
    },
    /// It cannot or must not be done: a sentence with what to type.
    Refused(String),
}

/// One value that is not as described.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Whose: "fence-node1: pcmk_delay_base".
    pub what: String,
    pub there: String,
    pub described: String,
}
