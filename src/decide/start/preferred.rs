//! Which history continues where two histories meet and no operator chose: a standing word, the parameter `two_histories=primary`.
//!
//! Parameters may differ while one node's CIB lags behind. So each node publishes what its parameters name, and two records that agree
//! count alone. A node that acts on them reads them behind a write of its own (`recovery::restart`), so of two nodes with different
//! parameters the later one finds that they differ. Data of a learner, of a member that may have left, and data that is known to be
//! left behind are never kept for it, and a history that serves is never given up for it.

use super::put_back::is_behind;
use crate::decide::evidence::{Lineage, PublishedState, Reached};
use crate::decide::standing::{Standing, classify};

/// Which node's history continues when two histories meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::decide) enum Kept {
    Mine,
    ThePeers,
}

/// Facts of the cluster that decide which history continues. The two nodes' records are not among them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known<'a> {
    /// This node's name, and the peer's.
    pub(super) names: [&'a str; 2],
    /// Largest number of forks (forced new clusters) that any node recorded permanently.
    pub(super) forks: u64,
    /// Lineages that this node and the peer recorded earlier in their own attributes, in this order.
    pub(super) recorded: [Option<&'a Lineage>; 2],
    pub(super) reached: Option<&'a Reached>,
}

/// Returns which of two histories continues if neither serves. The parameters of both nodes have to name it. `None` if no history
/// may continue.
pub(super) fn kept(me: &PublishedState, peer: &PublishedState, known: &Known<'_>) -> Option<Kept> {
    let agreed = agreed(me, peer, known.names)?;
    let [own, peers] = known.recorded;
    let (kept, other, recorded) = match agreed {
        Kept::Mine => (me, peer, own),
        Kept::ThePeers => (peer, me, peers),
    };
    let is_a_voters = matches!(classify(&kept.disk), Standing::SoleVoter | Standing::VoterBeside(_)) && !kept.left;
    let is_old = was_left_behind(kept, other, known.forks) || is_behind(kept, recorded, known.reached);
    (is_a_voters && !is_old && !other.claims).then_some(agreed)
}

/// Returns whether both records prefer the peer's history, which the peer serves, and no newer fork (forced new cluster) is
/// known.
pub(super) fn serves_there(me: &PublishedState, peer: &PublishedState, names: [&str; 2], forks: u64) -> bool {
    agreed(me, peer, names) == Some(Kept::ThePeers) && !peer.left && !was_left_behind(peer, me, forks)
}

fn agreed(me: &PublishedState, peer: &PublishedState, [own, peers]: [&str; 2]) -> Option<Kept> {
    let name = me.prefers.as_deref().filter(|name| peer.prefers.as_deref() == Some(*name))?;
    match name {
        name if name == own => Some(Kept::Mine),
        name if name == peers => Some(Kept::ThePeers),
        _ => None,
    }
}

/// Returns whether a fork (forced new cluster) is known that the record `kept` does not count. If both histories count equally
/// many forks, neither is known to be newer.
fn was_left_behind(kept: &PublishedState, other: &PublishedState, forks: u64) -> bool {
    kept.lineage.forks < forks.max(other.lineage.forks)
}
