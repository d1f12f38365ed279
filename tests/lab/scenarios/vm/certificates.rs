//! `tandem-certs.service` and its timer under systemd: each renews a certificate that is due, within what the unit may do.

use std::process::Command;

use super::watchdogs::is_denied_nothing;
use crate::check::{eventually, must};
use crate::host;
use crate::node::{NODES, Node};
use crate::sh::{self, Result};
use crate::state::Lab;
use crate::tls;

const SERVICE: &str = "tandem-certs.service";
const TIMER: &str = "tandem-certs.timer";
const PKI: &str = "/etc/tandem/pki";
const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";
/// A certificate of a year that was made so long ago has less than a third of its time left.
const LONG_AGO: &str = "-300d";

/// By hand on one node, by the timer on the other one, whose last run was days ago.
pub(super) fn renewed_by_systemd(lab: &Lab) -> Result<()> {
    let [by_hand, by_timer] = NODES;
    let known = fingerprint(lab, by_hand)?;
    host::must(lab, by_hand, &["systemctl", "start", SERVICE])?;
    must("what is not due stays", fingerprint(lab, by_hand)?, |now| *now == known)?;
    let aged = age(lab, by_hand)?;
    host::must(lab, by_hand, &["systemctl", "start", SERVICE])?;
    must("what is due is renewed", fingerprint(lab, by_hand)?, |now| *now != aged)?;
    etcd_shows_it(lab, by_hand)?;

    let aged = age(lab, by_timer)?;
    // But for the random delay, it is the timer as it is installed: it has missed days.
    let at_once = "[Timer]\nRandomizedDelaySec=0\n";
    host::put(lab, by_timer, &format!("/etc/systemd/system/{TIMER}.d/lab.conf"), at_once)?;
    host::must(lab, by_timer, &["systemctl", "daemon-reload"])?;
    host::must(lab, by_timer, &["systemctl", "stop", TIMER])?;
    let stamp = format!("/var/lib/systemd/timers/stamp-{TIMER}");
    host::must(lab, by_timer, &["touch", "--date=3 days ago", &stamp])?;
    host::must(lab, by_timer, &["systemctl", "start", TIMER])?;
    let now = || fingerprint(lab, by_timer).unwrap_or_else(|error| error.to_string());
    eventually("the timer has it renewed", now, |now| now.contains("ingerprint") && *now != aged)?;
    etcd_shows_it(lab, by_timer)?;
    for node in NODES {
        let result = || host::said(lab, node, &["systemctl", "show", "--value", "--property=Result", SERVICE]);
        eventually("the service ends well", result, |said| said.trim() == "success")?;
        let next = host::said(lab, node, &["systemctl", "show", "--value", "--property=NextElapseUSecRealtime", TIMER]);
        must("the timer is due again", next, |said| !said.trim().is_empty())?;
        is_denied_nothing(lab, node, SERVICE)?;
        let words = ["journalctl", "--boot", "--no-pager", "--quiet", "--priority=warning", "--unit", SERVICE];
        must("it has nothing to warn of", host::must(lab, node, &words)?, String::is_empty)?;
    }
    Ok(())
}

/// Replaces the node's certificate by one of the same content and key that was made long ago. Returns its fingerprint.
fn age(lab: &Lab, node: Node) -> Result<String> {
    let dir = lab.dir().join(format!("aged-{node}"));
    sh::make_dir(&dir)?;
    for name in ["ca.crt", "ca.key", "etcd.crt", "etcd.key"] {
        let text = host::must(lab, node, &["cat", &format!("{PKI}/{name}")])?;
        tls::write_secret(&dir.join(name), text.as_bytes())?;
    }
    let asked = ["-x509toreq", "-in", "etcd.crt", "-signkey", "etcd.key", "-out", "request"];
    let signed = ["-req", "-in", "request", "-days", "365", "-set_serial", "4711", "-CA", "ca.crt", "-CAkey", "ca.key"];
    for words in [&asked[..], &[&signed[..], &["-out", "made.crt"]].concat()] {
        let mut openssl = Command::new("openssl");
        openssl.current_dir(&dir).env("LD_PRELOAD", FAKETIME).env("FAKETIME", LONG_AGO);
        sh::must(openssl.arg("x509").args(words).args(["-copy_extensions", "copyall"]))?;
    }
    host::feed(lab, node, &["sh", "-c", &format!("cat > {PKI}/etcd.crt")], &dir.join("made.crt"))?;
    std::fs::remove_dir_all(dir)?;
    fingerprint(lab, node)
}

fn fingerprint(lab: &Lab, node: Node) -> Result<String> {
    host::must(lab, node, &["openssl", "x509", "-noout", "-fingerprint", "-in", &format!("{PKI}/etcd.crt")])
}

/// What the node's etcd shows in a handshake is what is in the file now.
fn etcd_shows_it(lab: &Lab, node: Node) -> Result<()> {
    let pair = format!("-cert {PKI}/etcd.crt -key {PKI}/etcd.key");
    let to = format!("{}:2379", node.ip());
    let script = format!("openssl s_client -connect {to} {pair} </dev/null 2>/dev/null | openssl x509 -noout -fingerprint");
    let shown = || host::said(lab, node, &["sh", "-c", &script]);
    let wanted = fingerprint(lab, node)?;
    eventually("etcd shows the new certificate", shown, |shown| *shown == wanted).map(drop)
}
