//! The rules of a recovery: whether a survivor may run standalone, what proves that, and the two ways of doing so.

pub(super) mod announce;
pub(super) mod proof;
pub(super) mod recover;
pub(super) mod restart;
pub(super) mod slow;
pub(super) mod vote;
pub(super) mod vote_proxy;
