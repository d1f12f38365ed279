//! A vote proxy for a dead member: it casts the one vote that a surviving etcd of two lacks, over etcd's own peer protocol, so
//! that etcd need not be started anew. `docs/design/peer-protocol.md` says what is used of the protocol and why it is safe.
//!
//! It decides nothing: who calls it has shown that the other member is dead and that nobody else goes on alone. It is a
//! client of our own etcd's peer port and of nothing else, listens nowhere and changes no file; given up half-way it has only
//! closed its connections.

mod beside;
mod http;
mod seat;
mod stream;
mod wire;

use std::time::Duration;

use super::client::{Credentials, Error};
use super::version::Version;
use crate::decide::evidence::{Member, MemberId};
use crate::os::clock::Deadline;
use http::Http;

/// Where our etcd's peers reach it, and what it is asked with: our etcd's own peer certificate.
#[derive(Clone, Debug)]
pub struct Place {
    /// `https://ADDRESS:PORT`
    pub url: String,
    pub credentials: Credentials,
}

/// What the peer port tells without a quorum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeatSeen {
    pub cluster_id: u64,
    pub version: Version,
    /// As of what this etcd has applied.
    pub members: Vec<Member>,
}

/// Asks the peer port who the members are.
pub fn look(place: &Place, timeout: Duration) -> Result<SeatSeen, Error> {
    seen(&Http::new(place, Deadline::after(timeout))?, timeout)
}

fn seen(http: &Http, patience: Duration) -> Result<SeatSeen, Error> {
    let (cluster_id, members) = http.members(patience)?;
    Ok(SeatSeen { cluster_id, version: http.version(patience)?, members })
}

/// For whom a vote is cast, in whose name, and after which term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    pub cluster_id: u64,
    /// The member that our etcd is.
    pub me: MemberId,
    /// The member that is known to be dead.
    pub dead: MemberId,
    /// The term in which our etcd was seen. What etcd's status calls so is the term of the last entry that it has applied,
    /// which is the same only where elections in vain do not count (`--pre-vote`, the default from etcd 3.5 on).
    pub term: u64,
    /// Up to which index it had applied its log then, and with it every change of members; 0 where that is not known.
    pub applied: u64,
}

/// How long each step had taken when it was done, since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Both streams are attached.
    pub attached: Duration,
    /// Our etcd has answered its term.
    pub term: Duration,
    /// It has taken the vote.
    pub vote: Duration,
    /// It has taken the first acknowledgement: writes are acknowledged from here on.
    pub acknowledged: Duration,
    /// It lists the dead member no more.
    pub removed: Duration,
}

impl std::fmt::Display for Taken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { attached, term, vote, acknowledged, removed } = self;
        let [attached, term, vote, acknowledged, removed] =
            [attached, term, vote, acknowledged, removed].map(Duration::as_secs_f64);
        write!(
            f,
            "attached after {attached:.3} s, term known after {term:.3} s, voted after {vote:.3} s, first \
             acknowledgement after {acknowledged:.3} s, dead member removed after {removed:.3} s"
        )
    }
}

/// The steps of a vote proxy, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProxyStep {
    Look,
    Attach,
    Term,
    /// From telling our etcd to campaign until it asks for the vote.
    Campaign,
    Vote,
    Acknowledge,
    Remove,
    Check,
}

impl std::fmt::Display for ProxyStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Look => "look",
            Self::Attach => "attach",
            Self::Term => "term",
            Self::Campaign => "campaign",
            Self::Vote => "vote",
            Self::Acknowledge => "acknowledge",
            Self::Remove => "remove",
            Self::Check => "check",
        })
    }
}

/// At which step a vote proxy ended without having taken over, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("given up at the step '{step}': {why}")]
pub struct GivenUp {
    pub step: ProxyStep,
    pub why: String,
    /// Whether a vote may have reached our etcd: it may have led, and acknowledged what nobody else has.
    pub voted: bool,
    /// The term that our etcd is in, where that is not the wished one: what may be wished after another look at who else
    /// could have been elected.
    pub moved_to: Option<u64>,
}

/// Casts the vote of `wish.dead` for `wish.me`, and has that member removed; done only when `/members` lists it no more.
///
/// etcd writes to its disk that the removal is committed with the next write, not before: until one is acknowledged, an etcd
/// that is killed may start with two voters again, and need a vote proxy or a forced new cluster once more. Nothing that was
/// acknowledged is lost by that.
pub fn vote_proxy(place: &Place, wish: &Wish, within: Duration) -> Result<Taken, GivenUp> {
    seat::take(place, wish, within, &mut |_| true)
}

/// As [`vote_proxy`], but asks `go_on` after each step: what happens in between, and what is left behind by one that ends, is
/// what tests look at.
#[doc(hidden)]
pub fn vote_proxy_while(
    place: &Place,
    wish: &Wish,
    within: Duration,
    go_on: &mut dyn FnMut(ProxyStep) -> bool,
) -> Result<Taken, GivenUp> {
    seat::take(place, wish, within, go_on)
}

#[cfg(test)]
mod tests;
