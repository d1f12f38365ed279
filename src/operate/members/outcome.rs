//! What came of an order to change the members.

use super::judge::Planned;
use crate::operate::members::changed::Changed;

/// An answer to an order.
#[derive(Debug)]
pub enum Outcome {
    Changed(Changed),
    /// Nothing was changed: it was a dry run, or a rule forbids the change now.
    Planned(Planned),
    /// The order makes no sense for this etcd, for the reason given; nothing was done.
    Misused(&'static str),
}
