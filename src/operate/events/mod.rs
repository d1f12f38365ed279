//! Events from Pacemaker's alerts ([`alert`]) and from what the collector sees change ([`seen`]), and their delivery to
//! the recipients that the cluster names ([`deliver`]). Their file is `crate::records::events`.

pub mod alert;
pub mod deliver;
pub mod seen;
