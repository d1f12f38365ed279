use std::cell::Cell;
use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::admin::report::golden;
use crate::operate::certs::pki::site_certs::samples::{ADDRESS, Ca, NOW, ca, peer};

#[test]
fn what_was_put_in_place_is_told() {
    let replaced = ["/etc/etcd/ca.crt", "/etc/etcd/etcd.key", "/etc/etcd/etcd.crt"].map(str::to_owned).to_vec();
    let done =
        Installed { replaced, ends: Some("2027-11-23T08:53:20Z".to_owned()), restarted: true, shown: Some(true) };
    golden::compare("certs-install", &done);
}

fn read(file: &str, text: &str) -> Read {
    Read { file: PathBuf::from(file), text: Zeroizing::new(text.to_owned()) }
}

fn cas(all: &[&Ca]) -> Read {
    read("new-ca.crt", &all.iter().map(|ca| ca.pem.as_str()).collect::<String>())
}

fn pair((cert, key): &(String, String)) -> (Read, Read) {
    (read("new.crt", cert), read("new.key", key))
}

/// Returns a site on which both nodes have certificates of the CA `company`.
fn site(company: &Ca) -> Site {
    Site {
        node: "node1".to_owned(),
        address: ADDRESS.parse().unwrap(),
        ca: PathBuf::from("/etc/etcd/ca.crt"),
        trusted: company.certificates(),
        peer: Some(peer(company)),
        now: NOW,
    }
}

/// Returns the certificates of the CA `company` that node1 presents.
fn shown(company: &Ca) -> PeerSeen {
    let chain = read_all(&company.leaf(|_| ()).0, "it").unwrap();
    PeerSeen { chains: vec![chain; 2], trusts: Vec::new() }
}

/// Returns whether installing `named` restarts etcd, if a restart is allowed. Asserts that `judge` asks for permission exactly if
/// etcd is to be restarted.
fn restarts(named: &Named, site: &Site, own: &Ca) -> Result<bool, String> {
    let asked = Cell::new(false);
    let may_restart = || {
        asked.set(true);
        Ok(())
    };
    let judged = judge(named, site, || Ok(shown(own)), may_restart).map_err(|Failure(why)| why)?;
    assert_eq!(judged.restarts, asked.get(), "nobody restarts what he has not asked about");
    Ok(judged.restarts)
}

#[test]
fn etcd_is_restarted_for_other_cas_alone() {
    let (company, next) = (ca("Company CA", 2040), ca("Next CA", 2040));
    let site = site(&company);
    let restarts = |named: &Named| restarts(named, &site, &company);
    assert_eq!(restarts(&Named { pair: Some(pair(&company.leaf(|_| ()))), bundle: None }), Ok(false));
    assert_eq!(restarts(&Named { pair: None, bundle: Some(cas(&[&company])) }), Ok(false), "they are there already");
    assert_eq!(restarts(&Named { pair: None, bundle: Some(cas(&[&company, &next])) }), Ok(true));
    let both = Site { trusted: [company.certificates(), next.certificates()].concat(), ..self::site(&company) };
    let order = super::tests::restarts(&Named { pair: None, bundle: Some(cas(&[&next, &company])) }, &both, &company);
    assert_eq!(order, Ok(false), "in another order");
}

#[test]
fn a_restart_that_may_not_be_changes_nothing() {
    let (company, next) = (ca("Company CA", 2040), ca("Next CA", 2040));
    let named = Named { pair: None, bundle: Some(cas(&[&company, &next])) };
    let refusal = judge(&named, &site(&company), || Ok(shown(&company)), || Err("a learner is there".to_owned()));
    assert_eq!(refusal.err().map(|Failure(why)| why).as_deref(), Some("a learner is there"));
}

#[test]
fn new_cas_keep_both_nodes_in() {
    let (company, next) = (ca("Company CA", 2040), ca("Next CA", 2040));
    let alone = Named { pair: None, bundle: Some(cas(&[&next])) };
    let of_peer = restarts(&alone, &site(&company), &next).unwrap_err();
    assert!(
        of_peer.starts_with("new-ca.crt does not trust what node2 shows: keep the CA 'CN=Company CA'"),
        "{of_peer}"
    );
    let peer_is_over = Site { peer: Some(peer(&next)), ..site(&company) };
    let of_own = restarts(&alone, &peer_is_over, &company).unwrap_err();
    assert!(of_own.starts_with("new-ca.crt does not trust what node1 shows: keep the CA 'CN=Company CA'"), "{of_own}");
    assert_eq!(restarts(&alone, &peer_is_over, &next), Ok(true), "once both have certificates of the next one");
    // A named pair replaces the shown certificate, so the pair counts.
    let with_pair = Named { pair: Some(pair(&next.leaf(|_| ()))), bundle: Some(cas(&[&next])) };
    assert_eq!(restarts(&with_pair, &peer_is_over, &company), Ok(true));
    let silent = judge(&alone, &peer_is_over, || Err("nobody listens".to_owned()), || Ok(()));
    assert!(silent.is_err_and(|Failure(why)| why.contains("node1") && why.contains("nobody listens")));
}

#[test]
fn a_certificate_is_judged_by_the_cas_that_come_with_it() {
    let (company, next) = (ca("Company CA", 2040), ca("Next CA", 2040));
    let trusts_both = {
        let mut peer = peer(&company);
        let subjects: Vec<Vec<u8>> =
            [&company, &next].iter().map(|ca| ca.certificates()[0].subject_der.clone()).collect();
        peer.seen.as_mut().unwrap().trusts = vec![subjects; 2];
        Site { peer: Some(peer), ..site(&company) }
    };
    let of_next = next.leaf(|_| ());
    let alone = restarts(&Named { pair: Some(pair(&of_next)), bundle: None }, &trusts_both, &company).unwrap_err();
    assert!(alone.starts_with("new.crt is not trusted by the CAs in /etc/etcd/ca.crt"), "{alone}");
    let named = Named { pair: Some(pair(&of_next)), bundle: Some(cas(&[&company, &next])) };
    assert_eq!(restarts(&named, &trusts_both, &company), Ok(true));
    let before_its_peer = restarts(&named, &site(&company), &company).unwrap_err();
    assert!(before_its_peer.starts_with("node2 would not trust new.crt: "), "{before_its_peer}");
}

#[test]
fn cas_come_first_and_a_key_before_its_certificate() {
    let named = Named { bundle: Some(read("a", "CAS")), pair: Some((read("b", "CERT"), read("c", "KEY"))) };
    let server = Pair { cert: PathBuf::from("/e/etcd.crt"), key: PathBuf::from("/e/etcd.key") };
    let ca = Path::new("/e/ca.crt");
    let wanted = [(ca, "CAS"), (server.key.as_path(), "KEY"), (server.cert.as_path(), "CERT")];
    assert_eq!(named.places(ca, &server), wanted);
    assert_eq!(Named { bundle: None, ..named }.places(ca, &server), wanted[1..]);
}

#[test]
fn a_file_keeps_its_mode_and_a_new_one_is_roots_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("etcd.crt");
    let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    put(&path, "new", false).unwrap();
    assert_eq!(mode(), 0o600);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let is_root = nix::unistd::geteuid().is_root();
    if is_root {
        std::os::unix::fs::chown(&path, Some(1), Some(2)).unwrap();
    }
    put(&path, "newer", false).unwrap();
    assert_eq!((mode(), std::fs::read_to_string(&path).unwrap().as_str()), (0o640, "newer"));
    if is_root {
        let there = std::fs::metadata(&path).unwrap();
        assert_eq!((there.uid(), there.gid()), (1, 2));
    }
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    put(&path, "a certificate", false).unwrap();
    assert_eq!(mode(), 0o644);
    put(&path, "a key", true).unwrap();
    assert_eq!(mode(), 0o640);
}
