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

/// The peer URL of this node's etcd. The credentials are that etcd's own peer certificate.
#[derive(Clone, Debug)]
pub struct Place {
    /// `https://ADDRESS:PORT` of the peer port.
    pub url: String,
    pub credentials: Credentials,
}

/// The state of a cluster, as its etcd reports it on the peer port. The report needs no quorum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeatSeen {
    pub cluster_id: u64,
    pub version: Version,
    /// The members as of the last entry that the asked etcd has applied.
    pub members: Vec<Member>,
}

/// Asks the etcd at `place` for its cluster, its version and its members.
pub fn look(place: &Place, timeout: Duration) -> Result<SeatSeen, Error> {
    seen(&Http::new(place, Deadline::after(timeout))?, timeout)
}

fn seen(http: &Http, patience: Duration) -> Result<SeatSeen, Error> {
    let (cluster_id, members) = http.members(patience)?;
    Ok(SeatSeen { cluster_id, version: http.version(patience)?, members })
}

/// The vote that a vote proxy casts in place of a dead member. The vote is for this node's etcd, in a later term than `term`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    pub cluster_id: u64,
    /// The member id of this node's etcd, which is to be elected.
    pub me: MemberId,
    /// The id of the member that is proved to be dead.
    pub dead: MemberId,
    /// The term of the last entry that this node's etcd has applied, as that etcd reported it. It equals Raft's current term only if failed
    /// elections do not raise the term (`--pre-vote`, the default since etcd 3.5).
    pub term: u64,
    /// The index up to which etcd had applied its log when it reported `term`; 0 where that is not known. Member changes up to
    /// this index are applied.
    pub applied: u64,
}

/// The time from the start of [`vote_proxy`] to the end of each of its steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// The time until both peer streams were open.
    pub attached: Duration,
    /// The time until etcd had reported its term.
    pub term: Duration,
    /// The time until etcd had accepted the vote.
    pub vote: Duration,
    /// The time until etcd had accepted the first acknowledgement of log entries. From there on etcd acknowledges clients'
    /// writes.
    pub acknowledged: Duration,
    /// The time until etcd's member list no longer had the dead member.
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

/// The steps of [`vote_proxy`], in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProxyStep {
    Look,
    Attach,
    Term,
    /// The step in which the vote proxy orders etcd to campaign, until etcd requests the vote.
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

/// The failure of [`vote_proxy`]: the step at which it gave up, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("given up at the step '{step}': {why}")]
pub struct GivenUp {
    pub step: ProxyStep,
    pub why: String,
    /// True if a vote may have reached etcd. In this case etcd may have led, and may have acknowledged writes that no other member has.
    pub voted: bool,
    /// etcd's term, if it differs from the term in the [`Wish`]; else `None`. The caller may try once more with this term, after a new
    /// proof that no other member was elected.
    pub moved_to: Option<u64>,
}

/// Casts the vote of the dead member `wish.dead` for `wish.me`, and makes etcd remove the dead member. Succeeds only once etcd no longer
/// lists the dead member.
///
/// etcd persists the commit of the removal with the next write. If etcd is killed before a write is acknowledged, it may start with two
/// voters again. No acknowledged write is lost in this case, but etcd needs another vote proxy or a forced new cluster.
pub fn vote_proxy(place: &Place, wish: &Wish, within: Duration) -> Result<Taken, GivenUp> {
    seat::take(place, wish, within, &mut |_| true)
}

/// Works as [`vote_proxy`] does, and calls `go_on` after each step. The proxy gives up if `go_on` returns false. Tests use it to
/// act between two steps.
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
