//! What comes from the other side, decoded; and what is done about another side that does not do as etcd does.

mod certificates;
mod decoders;
mod false_peer;
mod sequence;
