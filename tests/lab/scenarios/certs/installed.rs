//! `tandem certs install` under writers. It refuses files that would lock a node out, and changes nothing then. A
//! site's CA is replaced by another one of the site, and its certificates are replaced without a restart.

use std::time::Duration;

use super::super::setup::typed::{HERE, THERE};
use super::super::steps;
use super::replaced::GAP;
use super::seen;
use crate::cluster::etcd;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::host::tls::{self, Authority};
use crate::judge::check::must;
use crate::sh::Result;

/// The path of etcd's certificate in the resource of the lab's clusters.
const CERT: &str = "/etc/tandem/etcd.crt";
/// The path of the key of etcd's certificate in the resource of the lab's clusters.
const KEY: &str = "/etc/tandem/etcd.key";
/// The directory for the files that a site sent to the operator. It is not below `/root`, because hosts share that
/// directory unless they are blank.
const SENT: &str = "/etc/tandem/sent";
const LIMIT: Duration = Duration::from_secs(60);

pub(super) fn run(lab: &Lab, _: Wish) -> Result<()> {
    let members = steps::members(lab)?;
    let booted = steps::boots(lab);
    let old = std::fs::read_to_string(lab.pki().join("ca.crt"))?;
    let site = Authority::new("Site CA of another year")?;
    let both = format!("{old}{}", site.pem());
    for node in NODES {
        send(lab, node, "both.crt", &both)?;
        send(lab, node, "new.crt", site.pem())?;
        send_pair(lab, node, "own", site.issue("etcd", tls::etcd_names(node))?)?;
    }
    let mut writers = super::super::writing(lab)?;
    refusals(lab, &site)?;

    NODES.into_iter().try_for_each(|node| restarts(lab, node, "both.crt"))?;
    become_a_client(lab, &site, &both)?;
    let starts = seen::starts(lab)?;
    for node in NODES {
        shows(lab, node, "own")?;
    }
    send_pair(lab, HERE, "renewed", site.issue("etcd", tls::etcd_names(HERE))?)?;
    shows(lab, HERE, "renewed")?;
    must("no certificate restarts an etcd", seen::starts(lab)?, |now| *now == starts)?;
    refused(lab, "--cert sent/foreign.crt --key sent/foreign.key", "is not trusted by the CAs in")?;

    NODES.into_iter().try_for_each(|node| restarts(lab, node, "new.crt"))?;
    for node in NODES {
        for port in seen::handshakes(lab, node, CERT, KEY)? {
            must(&format!("{node} shows and trusts the new CA alone"), &port, |port| {
                port.issuer.contains("Site CA") && port.trusts.len() == 1 && port.trusts.contains(&port.issuer)
            })?;
        }
    }
    become_a_client(lab, &site, site.pem())?;
    let (wait, at) = writers.longest_wait();
    println!("   the longest time without a write was {:.1} s", wait.as_secs_f64());
    must("no write waits long", (wait, at), |(wait, _)| *wait <= GAP)?;
    steps::same_members(lab, members)?;
    super::super::ends_well(lab, &mut writers)?;
    steps::nobody_was_fenced(lab, booted)
}

/// Runs `tandem certs install` with files that it must refuse while both nodes trust only the old CA.
fn refusals(lab: &Lab, site: &Authority) -> Result<()> {
    let other = Authority::new("Site CA of nobody")?;
    send_pair(lab, HERE, "foreign", other.issue("etcd", tls::etcd_names(HERE))?)?;
    send_pair(lab, HERE, "elsewhere", site.issue("etcd", tls::etcd_names(THERE))?)?;
    send(lab, HERE, "ca.key", "")?;
    let not_here = format!("is not good for {}, the address of {HERE}", HERE.ip());
    let not_there = format!("{THERE} would not trust");
    let drops = format!("does not trust what {THERE} shows");
    for (words, said) in [
        ("--cert sent/own.crt --key sent/foreign.key", "is not that of the certificate"),
        ("--cert sent/elsewhere.crt --key sent/elsewhere.key", not_here.as_str()),
        ("--cert sent/elsewhere.crt --key sent/elsewhere.key --ca sent/both.crt", not_here.as_str()),
        ("--cert sent/own.crt --key sent/own.key", "is not trusted by the CAs in"),
        ("--cert sent/own.crt --key sent/own.key --ca sent/both.crt", not_there.as_str()),
        ("--ca sent/new.crt", drops.as_str()),
        ("--ca sent/own.crt", "which is no CA's certificate"),
        ("--cert sent/own.crt --key sent/ca.key", "is no key that can be read"),
        ("--cert sent/new.crt --key sent/own.key", "is not that of the certificate"),
        ("--cert sent/none.crt --key sent/own.key", "cannot read"),
    ] {
        refused(lab, words, said)?;
    }
    Ok(())
}

/// Checks that `tandem certs install` with the arguments `words` is refused with `what` in its output. No file may
/// change, and no etcd may restart.
fn refused(lab: &Lab, words: &str, what: &str) -> Result<()> {
    let before = (files(lab)?, seen::starts(lab)?);
    let (code, said) = host::typed(lab, HERE, &format!("cd /etc/tandem; tandem certs install {words}"))?;
    println!("   {words}: {}", said.lines().last().unwrap_or_default());
    must(&format!("install {words}"), (code, said), |(code, said)| *code == 1 && said.contains(what))?;
    must("nothing is changed by a refusal", (files(lab)?, seen::starts(lab)?), |after| *after == before)?;
    Ok(())
}

fn files(lab: &Lab) -> Result<[String; 2]> {
    let [one, two] = NODES.map(|node| {
        host::must(
            lab,
            node,
            &["sh", "-c", "cd /etc/tandem && find . -type f -printf '%p %m %u %T@ ' -exec sha256sum {} +"],
        )
    });
    Ok([one?, two?])
}

/// Installs another file of CAs on a node by `tandem certs install`. The command must restart etcd on this node only.
fn restarts(lab: &Lab, node: Node, file: &str) -> Result<()> {
    let before = seen::starts(lab)?;
    let said = installed(lab, node, &format!("--ca {SENT}/{file}"))?;
    must("it says that etcd was restarted", said, |said| said.contains("etcd was restarted"))?;
    let at = usize::from(node.number() - 1);
    let restarted = |after: &[String; 2]| after[at] != before[at] && after[1 - at] == before[1 - at];
    must(&format!("the etcd of {node} alone was restarted"), seen::starts(lab)?, restarted)?;
    etcd::wait_two_voters(lab, LIMIT).map(drop)
}

/// Installs another certificate with its key on a node by `tandem certs install`. etcd must use it in the next
/// handshake, without a restart.
fn shows(lab: &Lab, node: Node, name: &str) -> Result<()> {
    let said = installed(lab, node, &format!("--cert {SENT}/{name}.crt --key {SENT}/{name}.key"))?;
    must("it says that etcd shows it", said, |said| said.contains("; etcd shows it") && !said.contains("restarted"))?;
    let print =
        |file: &str| host::must(lab, node, &["openssl", "x509", "-noout", "-fingerprint", "-sha256", "-in", file]);
    let sent = print(&format!("{SENT}/{name}.crt"))?.replace(':', "").to_lowercase();
    for port in seen::handshakes(lab, node, CERT, KEY)? {
        must(&format!("{node} shows what was sent"), (&sent, &port), |(sent, port)| {
            sent.trim().ends_with(&port.fingerprint)
        })?;
    }
    let modes = host::must(lab, node, &["stat", "--format", "%a %U", KEY])?;
    must("the key is root's alone", modes.trim().to_owned(), |modes| modes == "600 root")?;
    Ok(())
}

fn installed(lab: &Lab, node: Node, words: &str) -> Result<String> {
    println!("   {node}: tandem certs install {words}");
    let (code, said) = host::typed(lab, node, &format!("tandem certs install {words}"))?;
    Ok(must("it was done", (code, said), |(code, _)| *code == 0)?.1)
}

fn send(lab: &Lab, node: Node, name: &str, text: &str) -> Result<()> {
    host::put(lab, node, &format!("{SENT}/{name}"), text)
}

fn send_pair(lab: &Lab, node: Node, name: &str, (cert, key): (String, String)) -> Result<()> {
    send(lab, node, &format!("{name}.crt"), &cert)?;
    send(lab, node, &format!("{name}.key"), &key)
}

/// Gives the lab's clients a certificate that the CA `site` issues, and `trusted` as the CAs that they trust.
fn become_a_client(lab: &Lab, site: &Authority, trusted: &str) -> Result<()> {
    let (cert, key) = site.issue("client", vec!["lab-client".to_owned()])?;
    for (name, text) in [("ca.crt", trusted), ("client.crt", &cert), ("client.key", &key)] {
        let aside = lab.pki().join(format!(".{name}.next"));
        tls::write_secret(&aside, text.as_bytes())?;
        std::fs::rename(aside, lab.pki().join(name))?;
    }
    Ok(())
}
