//! `fencing-agent`: knows which members of a list are reachable, and lets a minority reset itself.
//!
//! [`core`] is pure: events in, outputs out. It has no clock, no socket and no file.

pub(crate) mod core;
