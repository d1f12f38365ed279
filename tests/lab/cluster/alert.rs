//! The alert agent that releases the locks of a fenced node, configured as the page for users of etcd describes.

use crate::cluster::pcs;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::host::tls::LOCKS;
use crate::sh::Result;

const ID: &str = "release-locks";
const PATH: &str = "path=/usr/share/pacemaker/alerts/tandem-release-locks";

/// Creates a Pacemaker alert that runs Tandem's alert agent for the etcd keys below `prefix`. The agent has a client
/// certificate of its own that Pacemaker's user can read.
pub fn create(lab: &Lab, prefix: &str) -> Result<()> {
    for (node, end) in NODES.into_iter().flat_map(|node| [(node, "crt"), (node, "key")]) {
        let file = format!("/etc/tandem/{LOCKS}.{end}");
        host::put(lab, node, &file, &std::fs::read_to_string(lab.pki().join(format!("{LOCKS}.{end}")))?)?;
        host::must(lab, node, &["chown", "hacluster", &file])?;
        host::must(lab, node, &["chmod", "0600", &file])?;
    }
    let id = format!("id={ID}");
    let options = [
        format!("prefix={prefix}"),
        "match=either".to_owned(),
        format!("endpoints={}", NODES.map(Node::endpoint).join(",")),
        "trusted_ca_file=/etc/tandem/ca.crt".to_owned(),
        format!("cert_file=/etc/tandem/{LOCKS}.crt"),
        format!("key_file=/etc/tandem/{LOCKS}.key"),
    ];
    let mut words = vec!["alert", "create", PATH, &id, "options"];
    words.extend(options.iter().map(String::as_str));
    pcs::run(lab, host::any_running(lab)?, &words)
}

pub fn delete(lab: &Lab) -> Result<()> {
    pcs::run(lab, host::any_running(lab)?, &["alert", "delete", ID])
}
