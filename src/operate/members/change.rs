//! A change of the members, of whichever etcd it is.

use super::outcome::Outcome;
use super::{any_etcd, pair};
use crate::operate::failure::Failure;
use crate::operate::members::order::{Order, Terms};
use crate::operate::talk::Talk;

/// Follows `order`. The agents change a pair's members, in Pacemaker's cluster; those of any other etcd change by its own commands.
pub fn change(order: &Order, terms: &Terms, talk: &dyn Talk) -> Result<Outcome, Failure> {
    let mut source = terms.target.source()?;
    if source.pair.is_some() {
        return pair::run(order, terms, talk);
    }
    source.ask_how_many()?;
    any_etcd::run(order, &source, terms, talk)
}
