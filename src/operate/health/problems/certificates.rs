//! Certificates that expire: each node's own, and those that the BMCs show.

use std::path::Path;

use super::{Found, on};
use crate::adapters::pacemaker::seen::FenceDevice;
use crate::base::shell::command;
use crate::base::utc;
use crate::operate::certs::pki;
use crate::operate::cluster::Cluster;
use crate::operate::health::{Problem, Severity, bmc, view};
use crate::records::bmc_note::BmcNote;

const DAY: u64 = 86_400;
/// Days before a certificate's expiry from which it is reported as a notice. From `SOON` days on it is reported as a warning.
const NEAR: u64 = 30;
const SOON: u64 = 7;

pub(super) fn find(cluster: &Cluster, found: &mut Found) {
    for name in view::names(cluster) {
        let files = view::collected(cluster, &name).map(|known| known.certificates.as_slice()).unwrap_or_default();
        for certificate in files {
            let file = &certificate.file;
            let what = format!("the certificate {file} on {name}");
            if let Some(problem) = ending(cluster.at, certificate.ends, &what, Some(&name)) {
                found.add(problem).typed(what_to_type(cluster, &name, file));
            }
        }
        // etcd shows one of these files, so it only counts if no collector has read them.
        let shown = view::etcd(cluster, &name).and_then(|etcd| etcd.certificate_ends);
        if let Some(ends) = shown.filter(|_| files.is_empty()) {
            let what = format!("the certificate of etcd on {name}");
            if let Some(problem) = ending(cluster.at, ends, &what, Some(&name)) {
                found.add(problem).typed("tandem certs show");
            }
        }
    }
    let devices = cluster.configuration.known().map(|known| known.fence_devices.as_slice()).unwrap_or_default();
    for device in devices {
        let checked = bmc::checked(cluster, device);
        if let Some(problem) = checked.and_then(|(_, note)| of_bmc(cluster.at, device, note)) {
            found.add(problem).typed(command!("tandem fencing check {}", device.resource.id));
        }
    }
}

/// Returns the problem of a BMC's certificate that has expired or expires soon; `None` if it does neither. `note` contains the expiry.
/// The problem has no command yet.
pub(in crate::operate::health) fn of_bmc(now: u64, device: &FenceDevice, note: &BmcNote) -> Option<Problem> {
    let id = &device.resource.id;
    let ends = note.certificate_ends.filter(|_| !is_pinned(device))?;
    Some(ending(now, ends, &format!("the certificate of {id}'s BMC"), None)?.of_device(id))
}

/// Reports expired join files. They contain keys, and may be deleted safely.
pub(super) fn find_stale_join_files(cluster: &Cluster, found: &mut Found) {
    for name in view::names(cluster) {
        let files = view::collected(cluster, &name).map(|known| known.stale_join_files.as_slice()).unwrap_or_default();
        for file in files {
            let text = format!("{file} on {name} is older than a day: it holds keys, and no command takes it any more");
            found.notice("stale-join-file", Some(&name), text).typed(on(cluster, &name, command!("rm {}", file)));
        }
    }
}

/// Returns the command that replaces the certificate in `file` on `node`. If another program issued it, the command only shows the
/// expiry.
fn what_to_type(cluster: &Cluster, node: &str, file: &str) -> String {
    match Path::new(file).strip_prefix(pki::DIR).ok().and_then(Path::to_str) {
        Some(pki::CA_CERT | pki::NEXT_CERT) => return "tandem certs rotate-ca".to_owned(),
        Some(_) => return on(cluster, node, "tandem certs renew"),
        None => {}
    }
    let etcd = cluster.configuration.known().and_then(|configuration| configuration.etcd.as_ref());
    let is_its = |name: &str| etcd.and_then(|etcd| etcd.parameters.get(name)).is_some_and(|path| path == file);
    let command = match () {
        () if is_its("cert_file") => "tandem certs install --cert FILE --key FILE".to_owned(),
        () if is_its("trusted_ca_file") => "tandem certs install --ca FILE".to_owned(),
        // The file was issued by another program, which must issue the next one, too.
        () => command!("openssl x509 -noout -enddate -in {}", file),
    };
    on(cluster, node, command)
}

/// Returns whether a device ignores the expiry of its BMC's certificate, because it pins or does not verify it.
fn is_pinned(device: &FenceDevice) -> bool {
    let is_set = |name: &str| device.resource.parameters.get(name).is_some_and(|value| !value.trim().is_empty());
    is_set("ssl_fingerprint") || is_set("ssl_insecure")
}

/// Returns the problem of a certificate that has expired or expires soon; `None` if it does neither. The problem has no command yet.
fn ending(now: u64, ends: u64, what: &str, node: Option<&str>) -> Option<Problem> {
    let when = utc(ends);
    let Some(left) = ends.checked_sub(now) else {
        let text = format!("{what} has ended, at {when}");
        return Some(Problem::new("certificate-ended", Severity::Critical, node, text));
    };
    let days = left / DAY;
    let text = format!("{what} ends in {days} days, at {when}");
    match days {
        0..SOON => Some(Problem::new("certificate-ends-soon", Severity::Warning, node, text)),
        SOON..NEAR => Some(Problem::new("certificate-ends", Severity::Notice, node, text)),
        _ => None,
    }
}
