//! The operator's domain: what the commands know, judge and change. It asks nothing of a terminal.

pub mod events;
