//! Whom an order is about, once the members are known: what cannot be meant is told before anything is changed.

use super::super::look::Seen;
use super::super::source::endpoint;
use super::super::words::Order;
use crate::admin::exit::Failure;
use crate::decide::members::{Member, Membership, Newcomer, Wish};

/// An order, with the members that it is about.
#[derive(Debug)]
pub(super) struct Meant {
    pub(super) word: &'static str,
    pub(super) node: String,
    pub(super) wish: Wish,
    pub(super) new: Option<Newcomer>,
    pub(super) allow_fewer: bool,
}

/// Why an order is not followed.
#[derive(Debug)]
pub(super) enum Wrong {
    /// The arguments make no sense here, whatever the members are.
    Usage(&'static str),
    Members(Failure),
}

impl From<Failure> for Wrong {
    fn from(why: Failure) -> Self {
        Self::Members(why)
    }
}

pub(super) fn meant(order: &Order, membership: &Membership) -> Result<Meant, Wrong> {
    let plain = |word, node: &str, wish| Meant { word, node: node.to_owned(), wish, new: None, allow_fewer: false };
    Ok(match order {
        Order::AddOutside { .. } => {
            return Err(Wrong::Usage("'--outside' is for a pair: type 'tandem member add NAME=ADDRESS'"));
        }
        Order::Add { fence, .. } if !fence.is_empty() => {
            return Err(Wrong::Usage("'--fence' is for a pair: leave it out, or name no endpoints"));
        }
        Order::Add { new, .. } => {
            is_free(new, membership, None)?;
            Meant { new: Some(new.clone()), ..plain("add", &new.name, Wish::Add(new.clone())) }
        }
        Order::Promote { node } => plain("promote", node, Wish::Promote(called(membership, node)?.id)),
        Order::Remove { node, allow_fewer_voters } => {
            let wish = Wish::Remove(called(membership, node)?.id);
            Meant { allow_fewer: *allow_fewer_voters, ..plain("remove", node, wish) }
        }
        Order::Replace { fence, old_is_off, abort, .. } if !fence.is_empty() || *old_is_off || *abort => {
            return Err(Wrong::Usage("'--fence', '--old-is-off' and '--abort' are for a pair: leave them out"));
        }
        Order::Replace { old: Some(old), new: Some(new), .. } => replacement(old, new, membership)?,
        Order::Replace { .. } => return Err(Wrong::Usage("type 'tandem member replace OLD --new NAME=ADDRESS'")),
    })
}

fn replacement(old: &str, new: &Newcomer, membership: &Membership) -> Result<Meant, Failure> {
    let found = find(membership, old);
    let is_old = |member: &Member| member.name == new.name || member.peer_urls.contains(&new.peer_url);
    if old == new.name || found.is_some_and(is_old) {
        return Err(Failure(format!("--new has the name or the address of {old}: give the new member its own")));
    }
    is_free(new, membership, found)?;
    let arrived = membership.at(&new.peer_url).is_some();
    let id = match found {
        Some(member) => Some(member.id),
        // A call before this one removed it already.
        None if arrived => None,
        None => {
            let (why, url) = (called(membership, old).map_or_else(|why| why.0, Member::shown), &new.peer_url);
            return Err(Failure(format!("{why}; where it is removed already: 'tandem member add {}={url}'", new.name)));
        }
    };
    let wish = Wish::Replace { old: id, new: new.clone() };
    Ok(Meant { word: "replace", node: old.to_owned(), wish, new: Some(new.clone()), allow_fewer: false })
}

/// Whether nobody else has the newcomer's name or address; a half-made one of the same wish is no other.
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

pub(super) fn find<'a>(membership: &'a Membership, name: &str) -> Option<&'a Member> {
    membership.members.iter().find(|member| super::super::judge::is_called(member, name))
}

fn called<'a>(membership: &'a Membership, name: &str) -> Result<&'a Member, Failure> {
    find(membership, name).ok_or_else(|| {
        let known: Vec<String> = membership.members.iter().map(Member::shown).collect();
        Failure(format!("no member is called '{name}'; there are: {}", known.join(", ")))
    })
}

/// How many voters there are to be: where the old one and the new one vote already, one of them is too many.
pub(super) fn wanted(seen: &Seen, meant: &Meant) -> usize {
    let votes = |member: Option<&Member>| member.is_some_and(|member| !member.is_learner);
    let voters = seen.membership.voters().count();
    match &meant.wish {
        Wish::Replace { old: Some(old), new }
            if votes(seen.membership.member(*old)) && votes(seen.membership.at(&new.peer_url)) =>
        {
            voters - 1
        }
        _ => voters,
    }
}
