//! Tests of the vote proxy: decoding, and the reaction to a peer that does not behave as etcd does.

mod certificates;
mod decoders;
mod false_peer;
mod sequence;
