//! The members that an order is about. An order that makes no sense is refused before anything is changed.

use super::super::judge::{self, called};
use super::removed::Removed;
use crate::decide::members::{Member, Membership, Newcomer, Wish};
use crate::operate::failure::Failure;
use crate::operate::members::order::Order;
use crate::operate::members::source::endpoint;

/// An operator's order, translated into a [`Wish`] about listed members.
#[derive(Debug)]
pub(super) struct Meant {
    pub(super) word: &'static str,
    pub(super) node: String,
    pub(super) wish: Wish,
    pub(super) new: Option<Newcomer>,
    pub(super) allow_fewer: bool,
}

/// The reason why an operator's order is refused before any change.
#[derive(Debug)]
pub(super) enum Wrong {
    /// The arguments make no sense for an etcd that is no pair, whatever its members are.
    Usage(&'static str),
    Members(Failure),
}

impl From<Failure> for Wrong {
    fn from(why: Failure) -> Self {
        Self::Members(why)
    }
}

/// Translates an operator's order into a [`Wish`] about listed members. `removed` is the last removed member; it is used if the order
/// names a member that is no longer listed.
pub(super) fn meant(order: &Order, membership: &Membership, removed: Option<&Removed>) -> Result<Meant, Wrong> {
    let plain = |word, node: &str, wish| Meant { word, node: node.to_owned(), wish, new: None, allow_fewer: false };
    Ok(match order {
        Order::AddOutside { .. } => {
            return Err(Wrong::Usage("'--outside' is for a pair: type 'tandem member add NAME=ADDRESS'"));
        }
        Order::Add { fence, links, .. } if !fence.is_empty() || !links.is_empty() => {
            return Err(Wrong::Usage("'--fence' and '--link' are for a pair: leave them out, or name no endpoints"));
        }
        Order::Add { new, .. } => {
            is_free(new, membership, None)?;
            Meant { new: Some(new.clone()), ..plain("add", &new.name, Wish::Add(new.clone())) }
        }
        Order::Promote { node } => plain("promote", node, Wish::Promote(called(membership, node)?.id)),
        Order::Remove { node, allow_fewer_voters } => {
            let gone = removed.filter(|removed| removed.is_called(node)).map(|removed| Ok(removed.id));
            let id = gone.unwrap_or_else(|| called(membership, node).map(|member| member.id))?;
            let wish = Wish::Remove(id);
            Meant { allow_fewer: *allow_fewer_voters, ..plain("remove", node, wish) }
        }
        Order::Replace { fence, links, old_is_off, abort, .. }
            if !fence.is_empty() || !links.is_empty() || *old_is_off || *abort =>
        {
            return Err(Wrong::Usage(
                "'--fence', '--link', '--old-is-off' and '--abort' are for a pair: leave them out",
            ));
        }
        Order::Replace { old: Some(old), new: Some(new), .. } => replacement(old, new, membership, removed)?,
        Order::Replace { .. } => return Err(Wrong::Usage("type 'tandem member replace OLD --new NAME=ADDRESS'")),
    })
}

fn replacement(
    old: &str,
    new: &Newcomer,
    membership: &Membership,
    removed: Option<&Removed>,
) -> Result<Meant, Failure> {
    judge::must_be_one(membership, old)?;
    let found = judge::find(membership, old);
    let is_old = |member: &Member| member.name == new.name || member.peer_urls.contains(&new.peer_url);
    if old == new.name || found.is_some_and(is_old) {
        return Err(Failure(format!("--new has the name or the address of {old}: give the new member its own")));
    }
    is_free(new, membership, found)?;
    let arrived = membership.at(&new.peer_url).is_some();
    let was_removed = removed.is_some_and(|removed| removed.is_called(old) && removed.is_replaced_by(&new.peer_url));
    let id = match found {
        Some(member) => Some(member.id),
        // An earlier call has already removed it.
        None if arrived || was_removed => None,
        None => {
            let (why, url) = (called(membership, old).map_or_else(|why| why.0, Member::shown), &new.peer_url);
            return Err(Failure(format!("{why}; where it is removed already: 'tandem member add {}={url}'", new.name)));
        }
    };
    let wish = Wish::Replace { old: id, new: new.clone() };
    Ok(Meant { word: "replace", node: old.to_owned(), wish, new: Some(new.clone()), allow_fewer: false })
}

/// Fails if another member has the name or the peer URL of `new`. Accepts the new member itself, which an interrupted command may have
/// added.
fn is_free(new: &Newcomer, membership: &Membership, old: Option<&Member>) -> Result<(), Failure> {
    if endpoint(&new.peer_url).is_err() {
        return Err(Failure(format!(
            "the address '{}' is not ADDRESS, ADDRESS:PORT or https://ADDRESS:PORT",
            new.peer_url
        )));
    }
    let others = || membership.members.iter().filter(|member| old.is_none_or(|old| old.id != member.id));
    let has_url = |member: &&Member| member.peer_urls.contains(&new.peer_url);
    if let Some(other) = others().find(|member| has_url(member) && member.has_started() && member.name != new.name) {
        let (url, name) = (&new.peer_url, other.shown());
        return Err(Failure(format!("{url} is the address of {name} already: type the address of the new member")));
    }
    if others().any(|member| member.name == new.name && !has_url(&member)) {
        let name = &new.name;
        return Err(Failure(format!("a member is called {name} already: give the new one another name")));
    }
    Ok(())
}

/// Returns the number of voters that the cluster is to have after the change, if the operator typed no number.
pub(super) fn wanted(membership: &Membership, meant: &Meant) -> usize {
    match &meant.wish {
        Wish::Replace { old: Some(old), new } => judge::wanted(membership, membership.member(*old), new),
        _ => membership.voters().count(),
    }
}
