//! The result of an order to change the members.

use super::judge::Planned;
use crate::operate::members::changed::Changed;

/// The result of an operator's order to change the members.
#[derive(Debug)]
pub enum Outcome {
    Changed(Changed),
    /// The plan of a change that did not begin, because it was a dry run or a rule forbids it now.
    Planned(Planned),
    /// The arguments make no sense for this etcd, for the reason in the field.
    Misused(&'static str),
}
