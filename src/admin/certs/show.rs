//! `tandem certs show`: all certificates that the cluster uses, with their ends.

use std::collections::BTreeMap;
use std::path::Path;

use clap::Args;
use comfy_table::{Table, presets};
use serde::Serialize;

use crate::adapters::command::Programs;
use crate::adapters::pace::limits::Limits;
use crate::adapters::pacemaker;
use crate::admin::exit::Exit;
use crate::admin::node::ResourceArgument;
use crate::admin::report::{Form, Report};
use crate::base::Fact;
use crate::operate::certs::here::{self, Here};
use crate::operate::certs::pki::site_certs::PeerSeen;
use crate::operate::certs::pki::{self, Certificate};
use crate::operate::cluster::{self, Cluster};
use crate::operate::failure::Failure;
use crate::operate::health;
use crate::operate::health::words::{rfc3339, span};
use crate::operate::node::must_be_root;
use crate::os::clock;
use crate::os::regular_file;

const HELP: &str = "\
The command shows the certificates in these places: the files that the etcd resource names on this node, Tandem's own
/etc/tandem/pki, the ssl_ca_file of fence devices, what both etcds show in a handshake now, and what the BMCs showed to the
last monitor.

Exit codes:
  0  all is well
  3  a certificate ends within 30 days
  4  a certificate has ended

With --json:
  at            when the certificates were read
  here          the node that read them
  certificates  for each: where (file or address), node, what (it is for), subject, names, issuer, begins and ends (in
                RFC 3339), fingerprint (SHA-256), own (whether it is Tandem's own CA, or issued by it), and shown (for a
                file of etcd, whether etcd shows it; for a CA, whether etcd has read it; null if that is not known)
  missing       what could not be read, each with where and why";

/// Seconds before its expiry from which a certificate counts as near its end. `tandem status` uses the same limit.
const NEAR: u64 = 30 * 86_400;
const LIMIT: u64 = 4 * 1024 * 1024;

/// Shows the names, issuer and end of each certificate in use
#[derive(Args)]
#[command(after_help = HELP)]
pub(in crate::admin) struct Arguments {
    #[command(flatten)]
    resource: ResourceArgument,
    #[command(flatten)]
    pub form: Form,
}

/// The report of `tandem certs show`: all certificates in use.
#[derive(Default, Serialize)]
pub(super) struct Shown {
    at: String,
    here: String,
    certificates: Vec<Row>,
    missing: Vec<Missing>,
    #[serde(skip)]
    now: u64,
}

#[derive(Default, Serialize)]
struct Row {
    r#where: String,
    node: Option<String>,
    what: String,
    subject: Option<String>,
    names: Vec<String>,
    issuer: Option<String>,
    begins: Option<String>,
    ends: String,
    fingerprint: Option<String>,
    own: bool,
    shown: Option<bool>,
    #[serde(skip)]
    ends_at: u64,
}

#[derive(Serialize)]
struct Missing {
    r#where: String,
    why: String,
}

impl Report for Shown {
    fn text(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(["CERTIFICATE", "WHERE", "SUBJECT", "ISSUER", "ENDS", "ETCD"]);
        for row in &self.certificates {
            let left = match row.ends_at.checked_sub(self.now) {
                Some(left) => format!("in {}", span(left)),
                None => "has ended".to_owned(),
            };
            let shown = match row.shown {
                Some(true) => "has read it",
                Some(false) => "not yet",
                None => "",
            };
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            table.add_row([&row.what, &row.r#where, &text(&row.subject), &text(&row.issuer), &left, shown]);
        }
        let mut lines: Vec<String> = table.lines().map(|line| line.trim().to_owned()).collect();
        for row in self.certificates.iter().filter(|row| !row.names.is_empty()) {
            lines.push(format!("{} is good for {}", row.r#where, row.names.join(", ")));
        }
        lines.extend(self.missing.iter().map(|missing| format!("without {}: {}", missing.r#where, missing.why)));
        lines.join("\n")
    }

    fn exit(&self) -> Exit {
        let first = self.certificates.iter().map(|row| row.ends_at).min().unwrap_or(u64::MAX);
        match first.checked_sub(self.now) {
            None => Exit::Worst,
            Some(0..NEAR) => Exit::Degraded,
            Some(_) => Exit::Done,
        }
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<Shown, Failure> {
    must_be_root()?;
    let programs = Programs::default();
    let here = Here::find(arguments.resource.id()).ok();
    let node = here.as_ref().map(|here| here.node.clone());
    let node = node.or_else(|| pacemaker::local_node(&programs).ok()).unwrap_or_default();
    let now = clock::wall_seconds();
    let mut shown = Shown { at: rfc3339(now), here: node, now, ..Shown::default() };
    let own = here.as_ref().map(Here::own_seen);
    shown.files(here.as_ref(), own.as_ref().and_then(|own| own.as_ref().ok()));
    if let Some(here) = &here {
        if let Some(own) = own {
            shown.handshakes(&here.node, own);
        }
        if let Some(peer) = here.peer() {
            shown.handshakes(&peer.node, peer.seen);
        }
    }
    shown.bmcs(&cluster::look(&programs, arguments.resource.id(), &Limits::patient()));
    Ok(shown)
}

impl Shown {
    /// Adds the certificate files of this node, each once, with its purpose.
    fn files(&mut self, here: Option<&Here>, seen: Option<&PeerSeen>) {
        let own = here::files();
        let mut files: BTreeMap<std::path::PathBuf, String> = BTreeMap::new();
        for (name, what) in [
            (pki::CA_CERT, "CA"),
            (pki::NEXT_CERT, "CA to come"),
            (pki::ETCD_CERT, "etcd"),
            (pki::CLIENT_CERT, "client"),
        ] {
            if own.has(name) {
                files.insert(own.path(name), what.to_owned());
            }
        }
        for (name, path) in here.into_iter().flat_map(|here| &here.context.deployment.files) {
            if !name.contains("key") {
                files.entry(path.clone()).or_insert_with(|| (*name).trim_end_matches("_file").to_owned());
            }
        }
        let authority = own.authority().ok().map(|authority| authority.certificate().clone());
        for (path, what) in files {
            self.file(&path, &what, authority.as_ref(), seen);
        }
    }

    fn file(&mut self, path: &Path, what: &str, own: Option<&Certificate>, seen: Option<&PeerSeen>) {
        let name = path.display().to_string();
        let text = regular_file::text_of_at_most(path, LIMIT).map_err(|error| error.to_string());
        match text.and_then(|text| pki::read_all(&text, &name).map_err(|error| error.to_string())) {
            Ok(all) => self.certificates.extend(all.iter().map(|one| row(&name, None, what, one, own, seen))),
            Err(why) => self.missing.push(Missing { r#where: name, why }),
        }
    }

    fn handshakes(&mut self, node: &str, seen: Result<PeerSeen, String>) {
        let seen = match seen {
            Ok(seen) => seen,
            Err(why) => return self.missing.push(Missing { r#where: format!("etcd on {node}"), why }),
        };
        let own = here::files().authority().ok().map(|authority| authority.certificate().clone());
        let leaves = seen.chains.iter().filter_map(|chain| chain.first());
        for (leaf, port) in leaves.zip(["clients", "its peer"]) {
            let place = format!("{node}, for {port}");
            self.certificates.push(row(&place, Some(node), "shown by etcd", leaf, own.as_ref(), None));
        }
    }

    /// Adds the certificates that BMCs presented, and the CAs with which fence devices verify BMCs.
    fn bmcs(&mut self, cluster: &Cluster) {
        let Fact::Known(configuration) = &cluster.configuration else { return };
        for device in &configuration.fence_devices {
            let id = &device.resource.id;
            let parameter = |name: &str| device.resource.parameters.get(name).filter(|value| !value.is_empty());
            if let Some(file) = parameter("ssl_ca_file") {
                self.file(Path::new(file), &format!("CA of {id}"), None, None);
            }
            let how = match (parameter("ssl_fingerprint"), parameter("ssl_insecure")) {
                (Some(_), _) => "BMC, pinned",
                (None, Some(_)) => "BMC, not looked at",
                (None, None) => "BMC",
            };
            let Some((_, note)) = health::checked(cluster, device) else { continue };
            let Some(ends_at) = note.certificate_ends else { continue };
            self.certificates.push(Row {
                r#where: id.clone(),
                node: device.targets.first().cloned(),
                what: how.to_owned(),
                ends: rfc3339(ends_at),
                fingerprint: note.fingerprint.clone(),
                // A pinned certificate stays trusted after its end.
                ends_at: if how == "BMC" { ends_at } else { ends_at.max(self.now + NEAR) },
                ..Row::default()
            });
        }
    }
}

fn row(
    place: &str,
    node: Option<&str>,
    what: &str,
    one: &Certificate,
    own: Option<&Certificate>,
    seen: Option<&PeerSeen>,
) -> Row {
    let knows = |seen: &PeerSeen| seen.trusts.iter().all(|port| port.contains(&one.subject_der));
    let has_read = |seen: &PeerSeen| if one.is_ca { !seen.trusts.is_empty() && knows(seen) } else { seen.show(one) };
    let is_etcds = ["CA", "etcd", "trusted_ca", "cert", "certificate"].contains(&what);
    Row {
        r#where: place.to_owned(),
        node: node.map(str::to_owned),
        what: what.to_owned(),
        subject: Some(one.subject.clone()),
        names: one.names.clone(),
        issuer: Some(one.issuer.clone()),
        begins: Some(rfc3339(one.begins)),
        ends: rfc3339(one.ends),
        fingerprint: Some(one.fingerprint.clone()),
        own: own.is_some_and(|own| own.subject_der == one.issuer_der),
        shown: seen.filter(|_| is_etcds).map(has_read),
        ends_at: one.ends,
    }
}

#[cfg(test)]
mod tests;
