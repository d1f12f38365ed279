//! The members of an etcd, of a pair or of any other, and their changes.

mod any_etcd;
mod ask;
pub mod change;
pub mod changed;
pub mod guard;
pub mod judge;
pub mod look;
pub mod order;
pub mod outcome;
mod pair;
pub mod planned;
pub mod protect;
#[cfg(test)]
#[path = "tests/samples.rs"]
pub(crate) mod samples;
pub mod source;
pub mod space;
mod step;
#[cfg(test)]
mod tests;
pub mod under_way;
pub mod watch;
