//! The agent's action in a state.

use crate::decide::Request;
use crate::decide::evidence::{Moment, Operation};
use crate::sim::store::intern::Id;

/// An action of the agent that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Action {
    pub request: Request,
    pub notify: Vars,
    pub progress: Id,
    /// The number of the plan that the agent performs, and how many of its effects are done; none between rounds.
    pub plan: Option<(Id, u8)>,
}

/// The notify variables. Sets of nodes are bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Vars {
    /// True if Pacemaker passed variables: a recurring monitor has none.
    pub given: bool,
    pub moment: Moment,
    pub operation: Operation,
    pub active: u8,
    pub start: u8,
    pub stop: u8,
    /// True if Pacemaker's count of starts in vain has reached the limit.
    pub in_vain: bool,
}
