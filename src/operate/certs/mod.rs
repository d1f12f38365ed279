//! Certificates: the cluster's own authority ([`pki`]), and its files on this node and on the other one.

pub mod here;
pub mod join_file;
pub mod pki;
pub mod site;
