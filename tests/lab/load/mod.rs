//! The load on a cluster: writers, watches and stalls of the machine.

pub mod chain;
pub mod stalls;
pub mod token_load;
pub mod watches;
pub mod writer;
