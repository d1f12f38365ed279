//! The certificates that etcd presents: issued by our own authority, or checked if the description names some. Pure,
//! except that keys are drawn.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use zeroize::Zeroizing;

use super::action::{Action, File};
use super::description::{Certificates, Node};
use super::found_file::{Files, digest, is_private};
use super::step::{Difference, State};
use crate::operate::certs::pki::{self, Authority, Pair, Use, is_der_trusted};

/// Mode of the certificate and key files in `/etc/tandem/pki`: only root may read them.
const MODE: u32 = 0o600;

fn own(name: &str) -> PathBuf {
    Path::new(pki::DIR).join(name)
}

/// Returns the paths of the certificate and key files that a node reports to the setup.
pub(super) fn paths(certificates: &Certificates) -> Vec<PathBuf> {
    match certificates {
        Certificates::Own => {
            let names = [pki::CA_KEY, pki::CA_CERT, pki::ETCD_KEY, pki::ETCD_CERT, pki::CLIENT_KEY, pki::CLIENT_CERT];
            names.into_iter().chain([pki::NEXT_CERT]).map(own).collect()
        }
        Certificates::Given { ca, cert, key } => vec![ca.clone(), cert.clone(), key.clone()],
        Certificates::OfThePod => Vec::new(),
    }
}

/// Returns every address and DNS name that the etcd certificate of `node` must contain.
fn reached_at(node: &Node) -> Vec<String> {
    let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    let addresses = std::iter::once(node.address).chain(node.links.iter().copied()).chain(loopback);
    addresses.map(|address| address.to_string()).chain(node.names.iter().cloned()).collect()
}

/// Checks that `ca` signed `chain`, a PEM with the leaf first, for a client and for a server at each of `reached_at`. The error is the
/// reason why it did not.
fn is_good(chain: &str, ca: &str, reached_at: &[String], now: u64) -> Result<(), String> {
    let read = |text: &str| -> Vec<CertificateDer<'static>> {
        CertificateDer::pem_slice_iter(text.as_bytes()).flatten().collect()
    };
    let (chain, bundle) = (read(chain), read(ca));
    if chain.is_empty() {
        return Err("it holds no certificate".to_owned());
    }
    let mut uses = std::iter::once(Use::Client).chain(reached_at.iter().map(|name| Use::Server(name)));
    uses.try_for_each(|wanted| is_der_trusted(&chain, &bundle, wanted, now))
}

/// Returns the state of the operator's own certificates on `node`: done if they exist and fit, else refused.
pub(super) fn given(node: &Node, files: [&Path; 3], found: &Files, now: u64) -> State {
    let [ca, cert, key] = files;
    for path in files {
        if !found.contains_key(path) {
            let name = &node.name;
            return State::Refused(format!(
                "{name}: {} is not there: put the file there, or leave [certificates] out",
                path.display()
            ));
        }
    }
    let text = |path: &Path| found.get(path).and_then(|file| file.certificates.as_deref()).unwrap_or_default();
    if found.get(key).is_some_and(|file| !is_private(file.mode)) {
        return State::Refused(format!(
            "{}: others can read {}: type 'chmod 600 {}' there",
            node.name,
            key.display(),
            key.display()
        ));
    }
    let asked_at: Vec<String> = std::iter::once(node.address.to_string()).chain(node.names.iter().cloned()).collect();
    match is_good(text(cert), text(ca), &asked_at, now) {
        Ok(()) => State::Done,
        Err(why) => State::Refused(format!(
            "{}: a client would not trust {} for {} ({why}): issue one there with all of that in it, signed by {}",
            node.name,
            cert.display(),
            asked_at.join(", "),
            ca.display()
        )),
    }
}

/// The certificate and key of Tandem's CA that this node has.
#[derive(Debug)]
pub(super) enum Kept {
    Nothing,
    Whole { certificate: String, key: Zeroizing<String> },
    Half,
}

/// Returns the CA of this node, or a new CA if neither node has one. `other` is the other node's name with the
/// certificate of its CA.
pub(super) fn authority(
    cluster: &str,
    kept: &Kept,
    here: &str,
    other: Option<(&str, Option<&str>)>,
    now: u64,
) -> Result<Authority, String> {
    let dir = pki::DIR;
    match (kept, other) {
        (Kept::Whole { certificate, key }, _) => Authority::load(certificate, key)
            .map_err(|error| format!("{here}: {dir}/{}: {error}: restore the file, or move {dir} away", pki::CA_CERT)),
        (Kept::Half, _) => Err(format!(
            "{here}: {dir} has only one of {} and {}: restore the other from the other node, or move {dir} away",
            pki::CA_CERT,
            pki::CA_KEY
        )),
        (Kept::Nothing, Some((name, Some(_)))) => Err(format!(
            "{name} has an authority in {dir}, and {here} has none: type 'tandem setup' on {name}, or move {dir} away there"
        )),
        (Kept::Nothing, _) => {
            Authority::new(cluster, now).map_err(|error| format!("{here}: {error}: see 'man tandem-setup'"))
        }
    }
}

/// Returns the state of the certificates of Tandem's own CA on `node`, with the actions that complete them.
pub(super) fn ours(authority: &Authority, node: &Node, found: &Files, now: u64) -> Result<State, String> {
    // During a rotation the nodes trust two authorities and present certificates of either. Only the rotation knows its
    // next step.
    if found.contains_key(&own(pki::NEXT_CERT)) {
        return Err(format!(
            "{}: the authority in {} is being rotated: type 'tandem certs rotate-ca' until that is over, then this again",
            node.name,
            pki::DIR
        ));
    }
    let mut work = Work { found, missing: Vec::new(), differences: Vec::new(), changes: Vec::new() };
    let ca = authority.certificate_pem();
    // The key is written first. A key without certificates comes from an interrupted run, and nothing trusts it yet.
    if [pki::CA_CERT, pki::ETCD_CERT].iter().any(|name| found.contains_key(&own(name))) {
        work.file(pki::CA_KEY, "the authority's key", authority.key_pem().as_bytes(), node);
    } else {
        work.missing.push(write(pki::CA_KEY, "the authority's key", authority.key_pem().as_bytes()));
    }
    work.file(pki::CA_CERT, "the authority's certificate", ca.as_bytes(), node);
    let failed = |error: pki::Error| format!("{}: {error}: type this again", node.name);
    let pairs: [(&str, &str, &str, Vec<String>); 2] = [
        (pki::ETCD_KEY, pki::ETCD_CERT, "etcd's", reached_at(node)),
        (pki::CLIENT_KEY, pki::CLIENT_CERT, "etcdctl's", Vec::new()),
    ];
    for (key, certificate, whose, addresses) in pairs {
        let there = found.get(&own(certificate)).and_then(|file| file.certificates.as_deref());
        let is_whole = found.contains_key(&own(key));
        let judged = there.map(|text| is_good(text, ca, &addresses, now));
        if is_whole && matches!(judged, Some(Ok(()))) {
            work.mode(certificate);
            work.mode(key);
            continue;
        }
        let Pair { certificate_pem, key_pem } = if addresses.is_empty() {
            authority.client(pki::CLIENT, now).map_err(failed)?
        } else {
            authority.node(&node.name, &addresses, now).map_err(failed)?
        };
        // The key is written first, so that a certificate on disk always has its key.
        let actions = [
            write(key, &format!("{whose} key"), key_pem.as_bytes()),
            write(certificate, &format!("{whose} certificate"), certificate_pem.as_bytes()),
        ];
        match judged.filter(|_| is_whole) {
            Some(Err(why)) => {
                let what = format!("{}: {}", node.name, own(certificate).display());
                work.differences.push(Difference {
                    what,
                    there: why,
                    described: format!("signed by {}/{}", pki::DIR, pki::CA_CERT),
                });
                work.changes.extend(actions);
            }
            _ => work.missing.extend(actions),
        }
    }
    Ok(work.state())
}

fn write(name: &str, what: &str, content: &[u8]) -> Action {
    Action::Write(File {
        path: own(name),
        mode: MODE,
        content: Zeroizing::new(content.to_vec()),
        what: what.to_owned(),
    })
}

/// The certificate files of one node that are missing or differ, collected for a step's [`State`].
struct Work<'a> {
    found: &'a Files,
    missing: Vec<Action>,
    differences: Vec<Difference>,
    changes: Vec<Action>,
}

impl Work<'_> {
    fn file(&mut self, name: &str, what: &str, content: &[u8], node: &Node) {
        let Some(there) = self.found.get(&own(name)) else { return self.missing.push(write(name, what, content)) };
        if there.digest != digest(content) {
            let what = format!("{}: {}", node.name, own(name).display());
            let (there, described) = ("another one".to_owned(), "the one of the node where this is typed".to_owned());
            self.differences.push(Difference { what, there, described });
            self.changes.push(write(name, "the authority's", content));
        } else if there.mode != MODE {
            self.mode(name);
        }
    }

    /// Restricts the file `name` to root if others can read it. Its content stays the same.
    fn mode(&mut self, name: &str) {
        if self.found.get(&own(name)).is_some_and(|file| file.mode != MODE) {
            let words = ["chmod", "600", &own(name).display().to_string()].map(str::to_owned);
            self.missing.push(Action::Command(words.to_vec()));
        }
    }

    fn state(self) -> State {
        match (self.missing.is_empty(), self.differences.is_empty()) {
            (true, true) => State::Done,
            (_, false) => {
                let actions = self.missing.into_iter().chain(self.changes).collect();
                State::Differs { differences: self.differences, actions }
            }
            (false, true) => State::ToDo(self.missing),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operate::setup::file;
    use crate::operate::setup::found_file::FoundFile;

    const NOW: u64 = 1_800_000_000;
    const YEAR: u64 = 366 * 24 * 3_600;

    fn node() -> Node {
        file::read(file::EXAMPLE).unwrap().nodes[0].clone()
    }

    /// Returns the files of a node as they are after `actions`.
    fn after(files: &Files, actions: &[Action]) -> Files {
        let mut files = files.clone();
        for action in actions {
            match action {
                Action::Write(file) => {
                    let text = String::from_utf8(file.content.to_vec()).unwrap();
                    let certificates = text.contains("BEGIN CERTIFICATE").then_some(text);
                    let found = FoundFile { mode: file.mode, digest: digest(&file.content), certificates };
                    files.insert(file.path.clone(), found);
                }
                Action::Command(words) => files.get_mut(Path::new(&words[2])).unwrap().mode = 0o600,
            }
        }
        files
    }

    fn actions(state: State) -> Vec<Action> {
        match state {
            State::ToDo(actions) => actions,
            other => panic!("{other:?}"),
        }
    }

    /// Asserts that a setup may be killed after any of its writes. When it is run again, it completes the certificates, and a further run
    /// finds nothing to do.
    #[test]
    fn certificates_are_made_once_however_often_it_is_killed() {
        let (node, authority) = (node(), Authority::new("tandem", NOW).unwrap());
        let all = actions(ours(&authority, &node, &Files::new(), NOW).unwrap());
        assert_eq!(all.len(), 6);
        for killed_after in 0..=all.len() {
            let half = after(&Files::new(), &all[..killed_after]);
            let whole = match ours(&authority, &node, &half, NOW).unwrap() {
                State::Done => half,
                state => after(&half, &actions(state)),
            };
            assert_eq!(ours(&authority, &node, &whole, NOW).unwrap(), State::Done, "after {killed_after}");
            let mut open = whole.clone();
            open.get_mut(&own(pki::CA_KEY)).unwrap().mode = 0o644;
            let state = ours(&authority, &node, &open, NOW).unwrap();
            assert!(
                matches!(&state, State::ToDo(actions) if actions[0].to_string() == "chmod 600 /etc/tandem/pki/ca.key")
            );
            for action in &all {
                assert!(!format!("{action:?}{action}").contains("PRIVATE"), "{action}");
            }
        }
    }

    #[test]
    fn a_key_without_its_certificate_gives_way_to_the_authority_of_the_next_run() {
        let (node, first) = (node(), Authority::new("tandem", NOW).unwrap());
        let left = after(&Files::new(), &actions(ours(&first, &node, &Files::new(), NOW).unwrap())[..1]);
        let next = Authority::new("tandem", NOW).unwrap();
        let state = ours(&next, &node, &left, NOW).unwrap();
        assert!(matches!(state, State::ToDo(_)), "{state:?}");
        assert_eq!(ours(&next, &node, &after(&left, &actions(state)), NOW).unwrap(), State::Done);
    }

    /// Asserts that setup refuses to continue while the CA is rotated. During a rotation the files belong to two CAs, so that a
    /// comparison would find differences everywhere.
    #[test]
    fn an_authority_that_is_being_rotated_is_left_to_the_rotation() {
        let (node, authority) = (node(), Authority::new("tandem", NOW).unwrap());
        let mut files = after(&Files::new(), &actions(ours(&authority, &node, &Files::new(), NOW).unwrap()));
        let next = Authority::new("tandem", NOW).unwrap();
        files.insert(own(pki::NEXT_CERT), files[&own(pki::CA_CERT)].clone());
        for authority in [&authority, &next] {
            let refused = ours(authority, &node, &files, NOW).unwrap_err();
            assert!(refused.contains("'tandem certs rotate-ca'"), "{refused}");
        }
        assert!(paths(&Certificates::Own).contains(&own(pki::NEXT_CERT)), "so that it is seen");
    }

    #[test]
    fn what_another_authority_made_or_what_has_ended_differs() {
        let (node, authority) = (node(), Authority::new("tandem", NOW).unwrap());
        let files = after(&Files::new(), &actions(ours(&authority, &node, &Files::new(), NOW).unwrap()));
        let other = Authority::new("tandem", NOW).unwrap();
        let State::Differs { differences, actions } = ours(&other, &node, &files, NOW).unwrap() else { panic!() };
        assert_eq!((differences.len(), actions.len()), (4, 6));
        assert_eq!(ours(&other, &node, &after(&files, &actions), NOW).unwrap(), State::Done);
        assert!(matches!(ours(&authority, &node, &files, NOW + 2 * YEAR).unwrap(), State::Differs { .. }));
        let named = Node { names: vec!["192.0.2.10".to_owned(), "etcd.example.com".to_owned()], ..node.clone() };
        let State::Differs { actions, .. } = ours(&authority, &named, &files, NOW).unwrap() else { panic!() };
        assert_eq!(ours(&authority, &named, &after(&files, &actions), NOW).unwrap(), State::Done);
        let mut moved = node.clone();
        moved.address = "192.0.2.77".parse().unwrap();
        assert!(matches!(ours(&authority, &moved, &files, NOW).unwrap(), State::Differs { .. }));
    }

    #[test]
    fn an_authority_is_made_only_where_neither_node_has_one() {
        let made = authority("tandem", &Kept::Nothing, "node1", Some(("node2", None)), NOW).unwrap();
        let key = made.key_pem().clone();
        let kept = Kept::Whole { certificate: made.certificate_pem().to_owned(), key };
        let same = authority("tandem", &kept, "node1", None, NOW).unwrap();
        assert_eq!(same.certificate_pem(), made.certificate_pem());
        let refused = |kept: &Kept, other| authority("tandem", kept, "node1", other, NOW).err().unwrap();
        assert!(refused(&Kept::Nothing, Some(("node2", Some("x")))).contains("type 'tandem setup' on node2"));
        assert!(refused(&Kept::Half, None).contains("has only one of ca.crt and ca.key"));
        let broken = Kept::Whole { certificate: "x".to_owned(), key: Zeroizing::new("y".to_owned()) };
        assert!(refused(&broken, None).contains("restore the file"));
    }

    #[test]
    fn certificates_of_ones_own_are_only_looked_at() {
        let (node, authority) = (node(), Authority::new("tandem", NOW).unwrap());
        let files = after(&Files::new(), &actions(ours(&authority, &node, &Files::new(), NOW).unwrap()));
        let paths = [own(pki::CA_CERT), own(pki::ETCD_CERT), own(pki::ETCD_KEY)];
        let places = paths.each_ref().map(PathBuf::as_path);
        assert_eq!(given(&node, places, &files, NOW), State::Done);
        let refused = |node: &Node, files: &Files| match given(node, places, files, NOW) {
            State::Refused(why) => why,
            other => panic!("{other:?}"),
        };
        let mut less = files.clone();
        less.remove(&paths[1]);
        assert!(refused(&node, &less).contains("node1: /etc/tandem/pki/etcd.crt is not there"));
        let mut open = files.clone();
        open.get_mut(&paths[2]).unwrap().mode = 0o640;
        assert!(refused(&node, &open).contains("chmod 600"));
        let mut moved = node.clone();
        moved.address = "192.0.2.77".parse().unwrap();
        assert!(refused(&moved, &files).contains("would not trust /etc/tandem/pki/etcd.crt for 192.0.2.77"));
    }
}
