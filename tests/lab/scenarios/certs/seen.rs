//! Observations of certificates: in handshakes as OpenSSL reports them, and in the files of both nodes.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::cluster::etcd;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::judge::check::must;
use crate::sh::{self, Result};

pub(super) const PKI: &str = "/etc/tandem/pki";
const PORTS: [u16; 2] = [2379, 2380];
/// The directories of a node that the lab searches for remains of a CA.
const PLACES: &str = "/etc /root /run /var/lib/tandem /tmp";

/// The TLS handshake of one port of an etcd, as OpenSSL reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Handshake {
    /// The SHA-256 fingerprint of the server's certificate, in the format of `tandem certs show --json`.
    pub(super) fingerprint: String,
    pub(super) issuer: String,
    /// The names of the CAs that this port accepts for clients.
    pub(super) trusts: BTreeSet<String>,
}

/// Connects to the client port and the peer port of a node's etcd from that node. It uses the node's own certificate,
/// which the peer port accepts, too.
pub(super) fn handshakes(lab: &Lab, node: Node, cert: &str, key: &str) -> Result<Vec<Handshake>> {
    PORTS.iter().map(|port| handshake(lab, node, *port, cert, key)).collect()
}

fn handshake(lab: &Lab, node: Node, port: u16, cert: &str, key: &str) -> Result<Handshake> {
    let to = format!("{}:{port}", node.ip());
    let script = format!("openssl s_client -connect {to} -cert {cert} -key {key} </dev/null 2>/dev/null");
    let said = host::said(lab, node, &["sh", "-c", &script]);
    let pem = said.split_inclusive('\n').skip_while(|line| !line.starts_with("-----BEGIN CERTIFICATE"));
    let pem: String = pem.take_while(|line| !line.starts_with("---\n")).collect();
    if pem.is_empty() {
        return Err(format!("{to} shows no certificate: {said}").into());
    }
    let mut read = host::command(lab, node, &["openssl", "x509", "-noout", "-fingerprint", "-sha256", "-issuer"])?;
    let read = sh::feed(&mut read, &pem)?;
    let line = |name: &str| read.lines().find_map(|line| Some(line.split_once(name)?.1.trim().to_owned()));
    let names = said.lines().skip_while(|line| !line.starts_with("Acceptable client certificate CA names")).skip(1);
    let trusts = names.take_while(|line| line.contains("CN")).map(plain).collect();
    Ok(Handshake {
        fingerprint: line("Fingerprint=").unwrap_or_default().replace(':', "").to_lowercase(),
        issuer: plain(&line("issuer=").unwrap_or_default()),
        trusts,
    })
}

/// Returns a CA's name without the decorations that OpenSSL adds.
fn plain(name: &str) -> String {
    name.trim_start_matches("CN").trim_start_matches([' ', '=']).trim_matches('"').to_owned()
}

/// Checks the certificates that the ports of both nodes' etcds use. All must have one issuer, and each port must
/// trust only that issuer. Returns the issuer.
pub(super) fn one_ca(lab: &Lab) -> Result<String> {
    let mut names = BTreeSet::new();
    for node in NODES {
        for seen in handshakes(lab, node, &format!("{PKI}/etcd.crt"), &format!("{PKI}/etcd.key"))? {
            must("an etcd trusts its own issuer alone", &seen, |seen| {
                seen.trusts.len() == 1 && seen.trusts.contains(&seen.issuer)
            })?;
            names.insert(seen.issuer);
        }
    }
    let names = must("both show certificates of one CA", names, |names| names.len() == 1)?;
    Ok(names.into_iter().next().unwrap_or_default())
}

/// A CA for which the lab searches. Lines of its certificate and of its key identify it, because no other CA has
/// them.
#[derive(Clone, Debug)]
pub(super) struct Ca(Vec<String>);

/// Returns the CA that signs certificates on a node.
pub(super) fn ca(lab: &Lab, node: Node) -> Result<Ca> {
    let mut lines = Vec::new();
    for name in ["ca.crt", "ca.key"] {
        let text = host::must(lab, node, &["cat", &format!("{PKI}/{name}")])?;
        let certificates = text.matches("-----BEGIN").count();
        must(&format!("{name} holds one thing"), certificates, |count| *count == 1)?;
        // The first line is the same in other keys of this kind.
        lines.extend(text.lines().nth(2).map(str::to_owned));
    }
    Ok(Ca(must("a CA has a certificate and a key", lines, |lines| lines.len() == 2)?))
}

impl Ca {
    /// Returns the files of a node that contain a line of the CA's certificate or key.
    fn on(&self, lab: &Lab, node: Node) -> Result<Vec<String>> {
        let words: Vec<String> = self.0.iter().map(|line| format!("-e '{line}'")).collect();
        let script = format!("grep -rlF {} {PLACES} 2>/dev/null; true", words.join(" "));
        let found = host::must(lab, node, &["sh", "-c", &script])?;
        Ok(found.lines().map(str::to_owned).collect())
    }

    /// Checks that both nodes have the CA's certificate and key in their files.
    pub(super) fn must_be_in_use(&self, lab: &Lab) -> Result<()> {
        for node in NODES {
            must(&format!("the CA is in the files of {node}"), self.on(lab, node)?, |found| found.len() >= 2)?;
        }
        Ok(())
    }

    /// Checks that no file of either node contains a line of the CA's certificate or key.
    pub(super) fn must_be_gone(&self, lab: &Lab) -> Result<()> {
        for node in NODES {
            must(&format!("nothing of the old CA is left on {node}"), self.on(lab, node)?, Vec::is_empty)?;
        }
        Ok(())
    }
}

/// Checks that nothing of an unfinished rotation is left on either node: no next CA, no join file, and no
/// `restart_no_leave` in the CIB.
pub(super) fn nothing_is_under_way(lab: &Lab) -> Result<()> {
    for node in NODES {
        let script = format!("ls {PKI}/next.* {PKI}/.*.new /etc/tandem/*.join /root/*.join 2>/dev/null; true");
        let left = host::must(lab, node, &["sh", "-c", &script])?;
        must(&format!("no file of a rotation is left on {node}"), left, String::is_empty)?;
        let mark = "//nvpair[@name='restart_no_leave']";
        let mark = host::said(lab, node, &["cibadmin", "--query", "--xpath", mark]);
        must("no mark of a restart is left", mark, |mark| !mark.contains("value="))?;
    }
    Ok(())
}

/// Checks that `tandem certs show --json` on `node` agrees with OpenSSL about the certificate of each etcd. The etcd on `node` must use
/// the certificate in its file.
pub(super) fn shown_is_so(lab: &Lab, node: Node) -> Result<()> {
    let (code, said) = host::typed(lab, node, "tandem certs show --json 2>/dev/null")?;
    must("certs show's exit code", code, |code| *code == 0)?;
    let shown: Value = serde_json::from_str(&said)?;
    let rows = shown["certificates"].as_array().cloned().unwrap_or_default();
    for of in NODES {
        let seen = handshakes(lab, of, &format!("{PKI}/etcd.crt"), &format!("{PKI}/etcd.key"))?;
        let mine = |row: &&Value| row["what"] == "shown by etcd" && row["node"] == of.name();
        let told: Vec<String> =
            rows.iter().filter(mine).map(|row| row["fingerprint"].as_str().unwrap_or_default().to_owned()).collect();
        let seen: Vec<String> = seen.into_iter().map(|seen| seen.fingerprint).collect();
        must(&format!("certs show tells what the etcd of {of} shows"), (&told, &seen), |(told, seen)| told == seen)?;
        if of == node {
            let file = rows.iter().find(|row| row["where"] == format!("{PKI}/etcd.crt")).cloned().unwrap_or_default();
            must("the file's certificate is shown", &file, |file| {
                file["fingerprint"] == seen[0].as_str() && file["shown"] == true && file["own"] == true
            })?;
        }
    }
    Ok(())
}

/// Returns the container and the process of each node's etcd. They change when etcd is restarted.
pub(super) fn starts(lab: &Lab) -> Result<[String; 2]> {
    let of = |node: Node| -> Result<String> {
        let format = "{{.State.Pid}} {{.State.StartedAt}}";
        let said = host::must(lab, node, &["podman", "inspect", "--format", format, "etcd"])?;
        must("etcd runs", etcd::pid(lab, node), Option::is_some)?;
        Ok(said.trim().to_owned())
    };
    let [one, two] = NODES.map(of);
    Ok([one?, two?])
}
