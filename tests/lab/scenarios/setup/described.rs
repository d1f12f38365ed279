//! The operator's input: FILE, and the BMCs' passwords.

use std::fs;

use super::typed::HERE;
use crate::cluster::CloneKind;
use crate::host;
use crate::host::node::{BMC_PASSWORD, BMC_USER, NODES, Node};
use crate::host::state::Lab;
use crate::host::tls;
use crate::programs::image;
use crate::sh::Result;

pub const FILE: &str = "/etc/tandem/cluster.toml";
/// The directory below `/etc` with the certificates of a site that has its own CA.
pub const SITE: &str = "etcd-pki";

/// The cluster that a configuration file of `tandem setup` describes.
#[derive(Clone, Copy, Debug)]
pub struct Described {
    pub clone: CloneKind,
    pub ipv6: bool,
    /// True if the cluster uses certificates of the site's own CA. Otherwise Tandem makes a CA.
    pub own_certificates: bool,
}

impl Default for Described {
    fn default() -> Self {
        Self { clone: CloneKind::Promotable, ipv6: false, own_certificates: false }
    }
}

impl Described {
    /// Returns the text of the configuration file for `tandem setup`, with correct values for this lab.
    pub fn text(self, lab: &Lab) -> String {
        let mut text =
            format!("cluster = \"tandem\"\npreferred = \"{}\"\nclone = \"{}\"\n\n", Node::One, self.clone.word());
        for node in NODES {
            let address = if self.ipv6 { node.ipv6() } else { node.ip() };
            // etcd's clients may use the further link, too, as the lab's clients do.
            let links = if self.ipv6 { format!("links = [\"{}\"]\n", node.ip()) } else { String::new() };
            text.push_str(&format!(
                "[[node]]\nname = \"{node}\"\naddress = \"{address}\"\n{links}[node.bmc]\nip = \"{}\"\nusername = \"{BMC_USER}\"\n\
                 systems_uri = \"/redfish/v1/Systems/{}\"\npassword_file = \"{}\"\n\n",
                node.bmc_ip(),
                node.system_id(),
                password_file(node)
            ));
        }
        let image = image::name(&lab.setting("etcd").unwrap_or_default());
        text.push_str(&format!("[etcd]\nimage = \"{image}\"\n"));
        if self.own_certificates {
            text.push_str(&format!(
                "\n[certificates]\nca = \"/etc/{SITE}/ca.crt\"\ncert = \"/etc/{SITE}/etcd.crt\"\nkey = \"/etc/{SITE}/etcd.key\"\n"
            ));
        }
        text
    }

    /// Writes the configuration file, the passwords and a site's certificates to the nodes, as an operator does
    /// before `tandem setup`.
    pub fn write(self, lab: &Lab) -> Result<()> {
        if self.own_certificates {
            NODES.into_iter().try_for_each(|node| give_certificates(lab, node))?;
        }
        write_passwords(lab)?;
        host::put(lab, HERE, FILE, &self.text(lab))?;
        // A file that an operator wrote earlier survives a power cut.
        NODES.into_iter().try_for_each(|node| host::must(lab, node, &["sync"]).map(drop))
    }
}

/// Installs on a node a certificate for etcd that the lab's CA issued, in the way in which a site would distribute its own
/// certificates.
pub fn give_certificates(lab: &Lab, node: Node) -> Result<()> {
    let name = tls::etcd_name(node);
    for (from, to) in [("ca.crt", "ca.crt"), (&format!("{name}.crt"), "etcd.crt"), (&format!("{name}.key"), "etcd.key")]
    {
        let path = format!("/etc/{SITE}/{to}");
        host::put(lab, node, &path, &fs::read_to_string(lab.pki().join(from))?)?;
        host::must(lab, node, &["chmod", "600", &path])?;
    }
    Ok(())
}

pub fn password_file(node: Node) -> String {
    format!("/etc/tandem/bmc-{node}.password")
}

/// Writes the BMCs' passwords to the first node only, because `tandem setup` passes them on.
pub fn write_passwords(lab: &Lab) -> Result<()> {
    for node in NODES {
        host::put(lab, HERE, &password_file(node), &format!("{BMC_PASSWORD}\n"))?;
        host::must(lab, HERE, &["chmod", "600", &password_file(node)])?;
    }
    Ok(())
}
