//! The result of an order to change the members.

use super::judge::Planned;
use crate::operate::members::changed::Changed;

/// An answer to an order.
#[derive(Debug)]
pub enum Outcome {
    Changed(Changed),
    /// The members are unchanged, because it was a dry run or a rule forbids the change now.
    Planned(Planned),
    /// The order makes no sense for this etcd, for the given reason.
    Misused(&'static str),
}
