//! `tandem certs install`: certificates of somebody else's making, put in the place of those that etcd is run with.

use std::fmt::Write as _;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use zeroize::Zeroizing;

use super::here::Here;
use super::site::{self, ThisNode};
use crate::admin::exit::Failure;
use crate::admin::node::{ResourceArgument, must_be_root};
use crate::admin::report::{Form, Report};
use crate::clock::{self, Deadline};
use crate::health::words::rfc3339;
use crate::pki::given::{self, Bundle, Given, Peer};
use crate::pki::{Certificate, read_all};
use crate::{state_file, wiped};

const HELP: &str = "\
They are copied to the files that etcd's resource is configured with on this node, after a look at everything: that the key is the
certificate's, that it has not ended, is for servers and clients, has this node's address, and that both nodes trust it. The key and
the certificate are one rename each, and etcd shows them from the next handshake on. A file of CAs is read when etcd starts: where it has
others than before, etcd is restarted here, without leaving the member list.

For a CA of your own that changes: first, on each node, --ca with a file of the old one and the new one; then --cert and --key on each;
last --ca with the new one alone.

With --json: replaced are the files that were, ends is when the certificate ends (null without one), restarted whether etcd was
restarted, and shown whether etcd shows the certificate (null without one, or where nobody could look).";

const LIMIT: u64 = 4 * 1024 * 1024;
const MODE: u32 = 0o600;
/// How long etcd is looked at for what it shows.
const SHOWN_WITHIN: std::time::Duration = std::time::Duration::from_secs(10);

/// Puts certificates of your own in place, where both nodes could serve with them
#[derive(Args)]
#[command(after_help = HELP)]
pub(in crate::admin) struct Arguments {
    /// The certificate, with the intermediate ones behind it
    #[arg(long, value_name = "FILE", requires = "key", required_unless_present = "ca")]
    cert: Option<PathBuf>,
    /// Its key
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Every CA that is to be trusted from now on
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    #[command(flatten)]
    resource: ResourceArgument,
    #[command(flatten)]
    pub form: Form,
}

/// What was done.
#[derive(Default, Serialize)]
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

/// A file that was named, as text.
fn read(path: &Path) -> Result<Zeroizing<String>, Failure> {
    let failed = |why: String| Failure(format!("cannot read {}: {why}", path.display()));
    let bytes = wiped::read_at_most(path, LIMIT).map_err(|error| failed(error.to_string()))?;
    let text = std::str::from_utf8(&bytes).map_err(|error| failed(error.to_string()))?;
    Ok(Zeroizing::new(text.to_owned()))
}

pub(super) fn run(arguments: &Arguments) -> Result<Installed, Failure> {
    must_be_root()?;
    let here = Here::find(&arguments.resource)?;
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
    let (now, peer) = (clock::wall_seconds(), here.peer());
    let there = read_all(&read(&deployment.trusted_ca_file)?, &deployment.trusted_ca_file.display().to_string())?;
    let bundle = match &arguments.ca {
        Some(file) => Some((file, read(file)?)),
        None => None,
    };
    let certificates = match &bundle {
        Some((file, text)) => read_all(text, &file.display().to_string())?,
        None => there.clone(),
    };
    let file = arguments.ca.as_deref().unwrap_or(&deployment.trusted_ca_file);
    let trusted = Bundle { file, certificates: &certificates };
    let changes = bundle.is_some() && subjects(&certificates) != subjects(&there);
    if changes {
        given::check_bundle(&trusted, peer.as_ref(), now)?;
        ThisNode { here: &here }.may_restart().map_err(Failure)?;
    }
    let pair = match (&arguments.cert, &arguments.key) {
        (Some(cert), Some(key)) => Some((cert, read(cert)?, key, read(key)?)),
        _ => None,
    };
    let leaf = if let Some((cert, cert_pem, key, key_pem)) = &pair {
        let given = Given { cert, cert_pem, key, key_pem };
        Some(given::check(&given, &here.node, here.address, &trusted, peer.as_ref(), now)?)
    } else {
        keeps_own(&here, &trusted, now)?;
        None
    };
    let mut done = Installed { ends: leaf.as_ref().map(|leaf| rfc3339(leaf.ends)), ..Installed::default() };
    if let Some((_, text)) = &bundle {
        put(&mut done, &deployment.trusted_ca_file, text)?;
    }
    if let Some((_, cert_pem, _, key_pem)) = &pair {
        put(&mut done, &deployment.server.key, key_pem)?;
        put(&mut done, &deployment.server.cert, cert_pem)?;
    }
    if changes {
        site::restart(&here).map_err(Failure)?;
        done.restarted = true;
    }
    done.shown = leaf.as_ref().map(|leaf| is_shown(&here, leaf));
    Ok(done)
}

fn subjects(certificates: &[Certificate]) -> Vec<&str> {
    let mut all: Vec<&str> = certificates.iter().map(|one| one.fingerprint.as_str()).collect();
    all.sort_unstable();
    all
}

/// What this node shows now has to be trusted by a file of CAs that comes without a certificate.
fn keeps_own(here: &Here, bundle: &Bundle<'_>, now: u64) -> Result<(), Failure> {
    let seen = here.own_seen();
    let own = Peer { node: here.node.clone(), address: here.address, seen };
    Ok(given::check_bundle(bundle, Some(&own), now)?)
}

/// Replaces a file, which keeps its owner: other programs may read a certificate, too.
fn put(done: &mut Installed, path: &Path, text: &str) -> Result<(), Failure> {
    let owner = std::fs::metadata(path).ok();
    let mode = owner.as_ref().map_or(MODE, |there| there.mode() & 0o777);
    state_file::replace(path, text.as_bytes(), mode)?;
    if let Some(there) = owner {
        std::os::unix::fs::fchown(File::open(path)?, Some(there.uid()), Some(there.gid()))?;
    }
    done.replaced.push(path.display().to_string());
    Ok(())
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
mod tests {
    use super::*;
    use crate::admin::report::golden;

    #[test]
    fn what_was_put_in_place_is_told() {
        let replaced = ["/etc/etcd/ca.crt", "/etc/etcd/etcd.key", "/etc/etcd/etcd.crt"].map(str::to_owned).to_vec();
        let done =
            Installed { replaced, ends: Some("2027-11-23T08:53:20Z".to_owned()), restarted: true, shown: Some(true) };
        golden::compare("certs-install", &done);
    }
}
