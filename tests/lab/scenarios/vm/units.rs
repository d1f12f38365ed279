//! Tandem's units under systemd on a cluster: each does its work within its restrictions.

use std::time::Duration;

use super::watchdogs::is_denied_nothing;
use crate::cluster::etcd;
use crate::cluster::up::Wish;
use crate::cluster::{self, CloneKind};
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::{self, Lab};
use crate::host::tls::{self, Authority};
use crate::judge::check::{eventually, must};
use crate::sh::Result;

const COLLECTOR: &str = "tandem-collect.service";
const SERVICE: &str = "tandem-certs.service";
const TIMER: &str = "tandem-certs.timer";
const PKI: &str = "/etc/tandem/pki";
const DAY: Duration = Duration::from_secs(86_400);
/// The age of the certificates in days. Less than a third of their validity is left, so they are due for renewal.
const BEGAN_BEFORE: u32 = 300;
const ENDS_AFTER: u32 = 65;

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    furnish(lab)?;
    let files = ["ca.crt", "etcd.crt", "etcd.key"].map(|name| format!("{PKI}/{name}"));
    let parameters = ["trusted_ca_file", "cert_file", "key_file"];
    let instead: Vec<(&str, &str)> = parameters.into_iter().zip(files.iter().map(String::as_str)).collect();
    cluster::create_etcd_with(lab, NODES[0], CloneKind::Plain, &instead, false)?;
    etcd::wait_two_voters(lab, Duration::from_secs(180))?;
    crate::cluster::redundant::wait(lab)?;
    collects(lab)?;
    by_hand(lab, NODES[0])?;
    by_timer(lab, NODES[1])?;
    for node in NODES {
        let result = || host::said(lab, node, &["systemctl", "show", "--value", "--property=Result", SERVICE]);
        eventually("the service ends well", result, |said| said.trim() == "success")?;
        is_denied_nothing(lab, node, SERVICE)?;
        let words = ["journalctl", "--boot", "--no-pager", "--quiet", "--priority=warning", "--unit", SERVICE];
        must("it has nothing to warn of", host::must(lab, node, &words)?, String::is_empty)?;
    }
    etcd::wait_two_voters(lab, Duration::from_secs(60)).map(drop)
}

/// Installs a CA in the place of Tandem's own. It issues certificates for each node that are due for renewal, and one
/// for the lab's clients.
fn furnish(lab: &Lab) -> Result<()> {
    let authority = Authority::new("Tandem CA of us")?;
    let (now, key) = (state::since_epoch(), authority.key());
    for node in NODES {
        let times = now.saturating_sub(BEGAN_BEFORE * DAY)..now + ENDS_AFTER * DAY;
        let (certificate, its_key) = authority.issue_for(node.name(), tls::etcd_names(node), times)?;
        for (name, text) in
            [("ca.crt", authority.pem()), ("ca.key", &key), ("etcd.crt", &certificate), ("etcd.key", &its_key)]
        {
            host::put(lab, node, &format!("{PKI}/{name}"), text)?;
        }
        host::must(lab, node, &["sh", "-c", &format!("chmod 0700 {PKI} && chmod 0600 {PKI}/*")])?;
    }
    let (certificate, key) = authority.issue("client", vec!["lab-client".to_owned()])?;
    for (name, text) in [("ca.crt", authority.pem()), ("client.crt", &certificate), ("client.key", &key)] {
        tls::write_secret(&lab.pki().join(name), text.as_bytes())?;
    }
    Ok(())
}

/// Checks that the collector's unit observes the cluster and writes its status.
fn collects(lab: &Lab) -> Result<()> {
    for node in NODES {
        host::must(lab, node, &["systemctl", "start", COLLECTOR])?;
        let written = host::said(lab, node, &["stat", "--format=%a %U", "/var/lib/tandem/status.json"]);
        must("the collector writes its status", written, |said| said.trim() == "600 root")?;
        let status = host::must(lab, node, &["cat", "/var/lib/tandem/status.json"])?;
        must("it has seen both nodes", status, |said| NODES.iter().all(|node| said.contains(node.name())))?;
        is_denied_nothing(lab, node, COLLECTOR)?;
    }
    println!("   {COLLECTOR} wrote its status on both nodes");
    Ok(())
}

fn by_hand(lab: &Lab, node: Node) -> Result<()> {
    let due = fingerprint(lab, node)?;
    host::must(lab, node, &["systemctl", "start", SERVICE])?;
    let new = must("what is due is renewed", fingerprint(lab, node)?, |now| *now != due)?;
    etcd_shows_it(lab, node)?;
    host::must(lab, node, &["systemctl", "start", SERVICE])?;
    must("what is not due stays", fingerprint(lab, node)?, |now| *now == new)?;
    println!("   {SERVICE} renewed a certificate that was due, and etcd shows it");
    Ok(())
}

/// Starts the installed timer for the renewal of certificates, but without its random delay. The timer has missed days, so it must renew
/// the certificate at once.
fn by_timer(lab: &Lab, node: Node) -> Result<()> {
    let due = fingerprint(lab, node)?;
    let at_once = "[Timer]\nRandomizedDelaySec=0\n";
    host::put(lab, node, &format!("/etc/systemd/system/{TIMER}.d/lab.conf"), at_once)?;
    host::must(lab, node, &["systemctl", "daemon-reload"])?;
    let stamp = format!("/var/lib/systemd/timers/stamp-{TIMER}");
    let touch = format!("mkdir -p /var/lib/systemd/timers && touch --date='3 days ago' {stamp}");
    host::must(lab, node, &["sh", "-c", &touch])?;
    host::must(lab, node, &["systemctl", "enable", "--now", TIMER])?;
    let now = || fingerprint(lab, node).unwrap_or_default();
    eventually("the timer has it renewed", now, |now| !now.is_empty() && *now != due)?;
    etcd_shows_it(lab, node)?;
    let next = || host::said(lab, node, &["systemctl", "show", "--value", "--property=NextElapseUSecRealtime", TIMER]);
    eventually("the timer has a next time", next, |said| !said.trim().is_empty())?;
    println!("   {TIMER} fired and had one renewed, and etcd shows it");
    Ok(())
}

fn fingerprint(lab: &Lab, node: Node) -> Result<String> {
    host::must(lab, node, &["openssl", "x509", "-noout", "-fingerprint", "-in", &format!("{PKI}/etcd.crt")])
}

/// Checks that etcd on the node uses the certificate in its file in a handshake.
fn etcd_shows_it(lab: &Lab, node: Node) -> Result<()> {
    let (pair, to) = (format!("-cert {PKI}/etcd.crt -key {PKI}/etcd.key"), format!("{}:2379", node.ip()));
    let script =
        format!("openssl s_client -connect {to} {pair} </dev/null 2>/dev/null | openssl x509 -noout -fingerprint");
    let shown = || host::said(lab, node, &["sh", "-c", &script]);
    let wanted = fingerprint(lab, node)?;
    eventually("etcd shows the new certificate", shown, |shown| *shown == wanted).map(drop)
}
