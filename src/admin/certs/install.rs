//! `tandem certs install`: replaces the certificates of etcd with those of another CA than Tandem's own.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use zeroize::Zeroizing;

use crate::adapters::etcd::config::Pair;
use crate::admin::node::ResourceArgument;
use crate::admin::report::{Form, Report};
use crate::operate::certs::here::Here;
use crate::operate::certs::pki::site_certs::{self, Bundle, Given, Peer, PeerSeen};
use crate::operate::certs::pki::{Certificate, read_all};
use crate::operate::certs::site::{self, ThisNode};
use crate::operate::failure::Failure;
use crate::operate::health::words::rfc3339;
use crate::operate::node::must_be_root;
use crate::os::clock::{self, Deadline};
use crate::os::wiped;
use crate::records::state_file;

const HELP: &str = "\
The command copies the files to the places that the etcd resource names on this node. It first checks that the key is the
certificate's, that the certificate has not ended, is for servers and clients, and has this node's address, and that both
nodes trust it. Key and certificate are replaced by one rename each, and etcd shows the new one from the next handshake on.
etcd reads a file of CAs only when it starts. So if --ca has other CAs than before, the command restarts etcd on this node,
which stays in the member list.

To replace a CA of your own: first, on each node, --ca with a file that has the old one and the new one; then --cert and
--key on each node; last, on each node, --ca with only the new one.

With --json:
  replaced   paths of the files that were replaced
  ends       when the certificate ends; null without --cert
  restarted  whether etcd was restarted
  shown      whether etcd shows the certificate; null without --cert, or if that is not known";

const LIMIT: u64 = 4 * 1024 * 1024;
const MODE: u32 = 0o600;
/// The file permissions of users other than the owner and the group.
const OTHERS: u32 = 0o007;
/// Longest time for etcd to present a newly installed certificate.
const SHOWN_WITHIN: std::time::Duration = std::time::Duration::from_secs(10);

/// Puts certificates of your own in place, once it is checked that both nodes can serve with them
#[derive(Args)]
#[command(after_help = HELP)]
pub(in crate::admin) struct Arguments {
    /// File with the certificate, followed by the intermediate ones
    #[arg(long, value_name = "FILE", requires = "key", required_unless_present = "ca")]
    cert: Option<PathBuf>,
    /// File with the private key of --cert
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// File with every CA that is to be trusted from now on
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    #[command(flatten)]
    resource: ResourceArgument,
    #[command(flatten)]
    pub form: Form,
}

/// The report of `tandem certs install`.
#[derive(Serialize)]
pub(super) struct Installed {
    replaced: Vec<String>,
    ends: Option<String>,
    restarted: bool,
    shown: Option<bool>,
}

impl Report for Installed {
    fn text(&self) -> String {
        let mut text = format!("replaced: {}", self.replaced.join(", "));
        if let Some(ends) = &self.ends {
            let _ = write!(text, "; until {ends}");
        }
        if self.restarted {
            text.push_str("; etcd was restarted");
        }
        text + match self.shown {
            Some(true) => "; etcd shows it",
            Some(false) => "; etcd does not show it yet",
            None => "",
        }
    }
}

/// The content of the files that the operator named: the CAs, and the certificate with its key.
struct Named {
    bundle: Option<Read>,
    pair: Option<(Read, Read)>,
}

/// The path and text of a file that the operator named.
struct Read {
    file: PathBuf,
    text: Zeroizing<String>,
}

impl Named {
    fn read(arguments: &Arguments) -> Result<Self, Failure> {
        let bundle = arguments.ca.as_deref().map(read).transpose()?;
        let pair = match (&arguments.cert, &arguments.key) {
            (Some(cert), Some(key)) => Some((read(cert)?, read(key)?)),
            _ => None,
        };
        Ok(Self { bundle, pair })
    }

    /// Returns each file to replace with its new text, in the order of replacement: CAs, key, certificate. Because the certificate is
    /// the last file, a program that reads the new certificate also reads the new key and the new CAs.
    fn places<'a>(&'a self, ca: &'a Path, server: &'a Pair) -> Vec<(&'a Path, &'a str)> {
        let bundle = self.bundle.iter().map(|bundle| (ca, bundle.text.as_str()));
        let pair = self.pair.iter().flat_map(|(cert, key)| {
            [(server.key.as_path(), key.text.as_str()), (server.cert.as_path(), cert.text.as_str())]
        });
        bundle.chain(pair).collect()
    }
}

fn read(file: &Path) -> Result<Read, Failure> {
    let failed = |why: String| Failure(format!("cannot read {}: {why}", file.display()));
    let bytes = wiped::read_at_most(file, LIMIT).map_err(|error| failed(error.to_string()))?;
    let text = std::str::from_utf8(&bytes).map_err(|error| failed(error.to_string()))?;
    Ok(Read { file: file.to_owned(), text: Zeroizing::new(text.to_owned()) })
}

/// The present certificates of this node, and the state of its peer.
struct Site {
    node: String,
    address: IpAddr,
    /// Path of the file with the trusted CAs.
    ca: PathBuf,
    trusted: Vec<Certificate>,
    peer: Option<Peer>,
    now: u64,
}

/// The result of checking the operator's files.
struct Judged {
    leaf: Option<Certificate>,
    /// True if etcd must restart, because the trusted CAs change and etcd reads them only at its start.
    restarts: bool,
}

/// Checks whether both nodes can serve with the operator's files. `own` returns the certificates that this node presents.
/// `may_restart` fails if this node may not stop its etcd briefly. `own` and `may_restart` are called only if their results matter.
fn judge(
    named: &Named,
    site: &Site,
    own: impl FnOnce() -> Result<PeerSeen, String>,
    may_restart: impl FnOnce() -> Result<(), String>,
) -> Result<Judged, Failure> {
    let (peer, now) = (site.peer.as_ref(), site.now);
    let (file, certificates) = match &named.bundle {
        Some(bundle) => (bundle.file.as_path(), read_all(&bundle.text, &bundle.file.display().to_string())?),
        None => (site.ca.as_path(), site.trusted.clone()),
    };
    let trusted = Bundle { file, certificates: &certificates };
    let restarts = named.bundle.is_some() && fingerprints(&certificates) != fingerprints(&site.trusted);
    if restarts {
        site_certs::check_bundle(&trusted, peer, now)?;
        may_restart().map_err(Failure)?;
    }
    let leaf = if let Some((cert, key)) = &named.pair {
        let given = Given { cert: &cert.file, cert_pem: &cert.text, key: &key.file, key_pem: &key.text };
        Some(site_certs::check(&given, &site.node, site.address, &trusted, peer, now)?)
    } else {
        // The certificate that this node shows stays, so these CAs must trust it.
        let own = Peer { node: site.node.clone(), address: site.address, seen: own() };
        site_certs::check_bundle(&trusted, Some(&own), now)?;
        None
    };
    Ok(Judged { leaf, restarts })
}

fn fingerprints(certificates: &[Certificate]) -> Vec<&str> {
    let mut all: Vec<&str> = certificates.iter().map(|one| one.fingerprint.as_str()).collect();
    all.sort_unstable();
    all
}

/// Checks that the certificates come from the operator and not from Tandem's CA. Checks that etcd uses the same certificate for clients
/// and for its peer.
fn must_be_given(here: &Here) -> Result<(), Failure> {
    let deployment = &here.context.deployment;
    if deployment.manifest.is_some() || here.has_own_ca() {
        here.must_have_own_ca()?;
        return Err(Failure(
            "these are of Tandem's own CA: type 'tandem certs renew', or name other files in the resource".to_owned(),
        ));
    }
    if deployment.peer != deployment.server {
        let file = deployment.peer.cert.display();
        return Err(Failure(format!("{file} is another certificate for the peer, which is to be replaced by hand")));
    }
    Ok(())
}

pub(super) fn run(arguments: &Arguments) -> Result<Installed, Failure> {
    must_be_root()?;
    let here = Here::find(arguments.resource.id())?;
    must_be_given(&here)?;
    let (ca, server) = (&here.context.deployment.trusted_ca_file, &here.context.deployment.server);
    let named = Named::read(arguments)?;
    let site = Site {
        node: here.node.clone(),
        address: here.address,
        ca: ca.clone(),
        trusted: read_all(&read(ca)?.text, &ca.display().to_string())?,
        peer: here.peer(),
        now: clock::wall_seconds(),
    };
    let judged = judge(&named, &site, || here.own_seen(), || ThisNode { here: &here }.may_restart())?;
    let mut replaced = Vec::new();
    for (path, text) in named.places(ca, server) {
        put(path, text, text.contains("PRIVATE KEY"))?;
        replaced.push(path.display().to_string());
    }
    if judged.restarts {
        site::restart(&here).map_err(Failure)?;
    }
    let leaf = judged.leaf.as_ref();
    Ok(Installed {
        replaced,
        ends: leaf.map(|leaf| rfc3339(leaf.ends)),
        restarted: judged.restarts,
        shown: leaf.map(|leaf| is_shown(&here, leaf)),
    })
}

/// Replaces a file. Its owner and group stay, because other programs may read a certificate too.
fn put(path: &Path, text: &str, is_key: bool) -> Result<(), Failure> {
    let there = std::fs::metadata(path).ok();
    let mut mode = there.as_ref().map_or(MODE, |there| there.mode() & 0o777);
    if is_key && mode & OTHERS != 0 {
        log::warn!(
            "the key {} was readable for every user, and the new key is readable only for its owner and group",
            path.display()
        );
        mode &= !OTHERS;
    }
    let owner = there.map(|there| (there.uid(), there.gid()));
    Ok(state_file::replace_as(path, text.as_bytes(), mode, owner)?)
}

fn is_shown(here: &Here, leaf: &Certificate) -> bool {
    let end = Deadline::after(SHOWN_WITHIN);
    loop {
        let shown = here.own_seen().is_ok_and(|seen| seen.show(leaf));
        if shown || end.has_passed() {
            return shown;
        }
        end.sleep(std::time::Duration::from_millis(300));
    }
}

#[cfg(test)]
mod tests;
