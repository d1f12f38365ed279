//! Certificates of the cluster's own authority.

pub mod pki;
