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
    /// The number of the plan that the agent performs, and how many of its effects are done; `None` before the next decision.
    pub plan: Option<(Id, u8)>,
}

/// The notify variables that Pacemaker passes to an action. In each set of nodes, a bit represents a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Vars {
    /// True if Pacemaker passed notify variables. It passes none to a recurring monitor.
    pub given: bool,
    pub moment: Moment,
    pub operation: Operation,
    pub active: u8,
    pub start: u8,
    pub stop: u8,
    /// True if this stop is half of a restart, but so many starts have failed that the agent gives up its claim to run standalone.
    pub in_vain: bool,
}
