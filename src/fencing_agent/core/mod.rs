//! The pure core of `fencing-agent`: `Agent::handle(now, event, random) -> outputs`, in the daemon and in the simulation.
//!
//! `now` is the time since the machine started, sleep included. The wall clock is no input, so a step of it has no effect. Two
//! mechanisms are separate, and neither waits for the other: the list follows SWIM, and feeding follows this node's own contact.
//! `docs/design/fencing-agent.md` has the proof that a minority is always reset.
//!
//! - [`contact`], [`quorum`] and [`feeding`]: own contact, its value, and the watchdog.
//! - [`swim`] around the crate foca, [`swim_wire`], [`roster`] and [`suspicion`]: the list.
//! - [`agent`] combines both; [`timing`] and [`wire`] serve both.

mod agent;
mod contact;
mod feeding;
mod input;
mod output;
mod quorum;
mod roster;
mod snapshot;
mod suspicion;
mod swim;
mod swim_wire;
mod timing;
mod wire;

#[cfg(test)]
mod tests;

pub(crate) use agent::Agent;
pub(crate) use input::{Event, Name, NetworkRule, OnQuorumLoss, Settings, TieBreaker, TimingOverrides, Watchdog};
pub(crate) use output::{Change, ChangeKind, Line, Output, Weight};
pub(crate) use snapshot::{MemberState, MemberView, Snapshot};
pub(crate) use timing::Timing;
pub(crate) use wire::{Datagram, LONGEST_NAME, Message};
