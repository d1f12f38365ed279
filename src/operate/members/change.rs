//! The entry to a change of the members, of a pair or of any other etcd.

use super::outcome::Outcome;
use super::{any_etcd, pair};
use crate::operate::failure::Failure;
use crate::operate::members::order::{Order, Terms};
use crate::operate::talk::Talk;

/// Carries out the operator's `order`. The members of a pair are changed by its resource agents, and those of any other etcd by etcd's
/// API.
pub fn change(order: &Order, terms: &Terms, talk: &dyn Talk) -> Result<Outcome, Failure> {
    let mut source = terms.target.source()?;
    if source.pair.is_some() {
        return pair::run(order, terms, talk);
    }
    source.ask_how_many()?;
    any_etcd::run(order, &source, terms, talk)
}
