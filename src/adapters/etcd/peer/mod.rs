//! A vote proxy for a dead member. It casts the one vote that a surviving etcd of two lacks, over etcd's own peer protocol, so
//! that etcd need not be restarted. `docs/design/peer-protocol.md` describes which part of the protocol it uses, and why that is
//! safe.
//!
//! It decides nothing: its caller has proved that the other member is dead and that no other node continues standalone. It is a
//! client of this node's own etcd's peer port only. It listens on no port and changes no file. A proxy that gives up half-way has
//! only closed its connections.

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

/// The peer URL of this node's etcd, and the credentials for it: that etcd's own peer certificate.
#[derive(Clone, Debug)]
pub struct Place {
    /// `https://ADDRESS:PORT`
    pub url: String,
    pub credentials: Credentials,
}

/// The answer of the peer port, which needs no quorum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeatSeen {
    pub cluster_id: u64,
    pub version: Version,
    /// The members, as of the last entry that this etcd has applied.
    pub members: Vec<Member>,
}

/// Asks the peer port for the members.
pub fn look(place: &Place, timeout: Duration) -> Result<SeatSeen, Error> {
    seen(&Http::new(place, Deadline::after(timeout))?, timeout)
}

fn seen(http: &Http, patience: Duration) -> Result<SeatSeen, Error> {
    let (cluster_id, members) = http.members(patience)?;
    Ok(SeatSeen { cluster_id, version: http.version(patience)?, members })
}

/// The vote to cast: the candidate, the dead member that would cast it, and the term after which it is cast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    pub cluster_id: u64,
    /// The id of this node's etcd.
    pub me: MemberId,
    /// The id of the member that is known to be dead.
    pub dead: MemberId,
    /// The term in which this node's etcd was observed. etcd's status reports the term of the last applied entry. The two are
    /// equal only if failed elections do not raise the term (`--pre-vote`, the default since etcd 3.5).
    pub term: u64,
    /// The index up to which etcd had applied its log then, and with it every member change; 0 where that is not known.
    pub applied: u64,
}

/// The time at which each step was complete, since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Both streams were attached.
    pub attached: Duration,
    /// etcd had answered its term.
    pub term: Duration,
    /// etcd had accepted the vote.
    pub vote: Duration,
    /// etcd had accepted the first acknowledgement. From here on it acknowledges writes.
    pub acknowledged: Duration,
    /// etcd's list no longer had the dead member.
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

/// The steps of a vote proxy, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProxyStep {
    Look,
    Attach,
    Term,
    /// Lasts from the order to campaign until etcd asks for the vote.
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

/// The step at which a vote proxy gave up, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("given up at the step '{step}': {why}")]
pub struct GivenUp {
    pub step: ProxyStep,
    pub why: String,
    /// Whether a vote may have reached etcd. It may then have led, and have acknowledged writes that no other member has.
    pub voted: bool,
    /// The term that etcd is in, where it differs from the wish. The caller may wish for it after it has checked again that no
    /// other member could have been elected.
    pub moved_to: Option<u64>,
}

/// Casts the vote of `wish.dead` for `wish.me`, and has that member removed. Succeeds only once `/members` no longer lists it.
///
/// etcd persists the commit of the removal with the next write. Until a write is acknowledged, an etcd that is killed may start
/// with two voters again. It then needs a vote proxy or a forced new cluster once more, and no acknowledged write is lost.
pub fn vote_proxy(place: &Place, wish: &Wish, within: Duration) -> Result<Taken, GivenUp> {
    seat::take(place, wish, within, &mut |_| true)
}

/// Works as [`vote_proxy`] does, and calls `go_on` after each step. Tests use it to act between two steps, and to end the proxy
/// after one.
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
