//! The members of an etcd, of a pair or of any other, and the changes of them.

pub mod changed;
pub mod order;
pub mod source;
