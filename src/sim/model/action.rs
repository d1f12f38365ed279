//! The agent's action in a state.

use crate::decide::Request;
use crate::decide::evidence::{Moment, Operation};
use crate::sim::store::intern::Id;

/// An action of Pacemaker that the resource agent performs in the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Action {
    pub request: Request,
    pub notify: Vars,
    pub progress: Id,
    /// The number of the plan that the agent performs, and the number of its effects that are done. `None` before the
    /// next decision.
    pub plan: Option<(Id, u8)>,
}

/// The notify variables that Pacemaker passes to an action. Each set of nodes is a number with a bit for each node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Vars {
    /// True if Pacemaker passed notify variables. A recurring monitor has none.
    pub given: bool,
    pub moment: Moment,
    pub operation: Operation,
    pub active: u8,
    pub start: u8,
    pub stop: u8,
    /// True if so many starts have failed that the agent treats this stop as final, although Pacemaker starts the
    /// instance again.
    pub in_vain: bool,
}
