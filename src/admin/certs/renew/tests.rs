use super::*;
use crate::admin::report::golden;
use crate::operate::certs::pki::{self, Authority, BACKDATED, LEAF_LASTS, rotation};

/// The time 2026-11-23, in seconds since 1970.
const NOW: u64 = 1_795_400_000;

struct World {
    _dir: tempfile::TempDir,
    files: Files,
    holder: Holder,
}

fn world() -> World {
    let dir = tempfile::tempdir().unwrap();
    let files = Files::at(dir.path().join("pki"));
    let authority = Authority::new("demo", NOW).unwrap();
    files.write(pki::CA_CERT, authority.certificate_pem()).unwrap();
    files.write(pki::CA_KEY, authority.key_pem()).unwrap();
    let holder = Holder { node: "node1".to_owned(), reached_at: vec!["192.0.2.1".to_owned()] };
    for leaf in [Leaf::Etcd, Leaf::Client] {
        files.renew(leaf, &authority, &holder, NOW).unwrap();
    }
    World { _dir: dir, files, holder }
}

impl World {
    fn due_at(&self, now: u64) -> Renewed {
        renew(&self.files, &self.holder, true, false, now).unwrap()
    }

    fn bytes(&self, name: &str) -> String {
        self.files.need(name).unwrap().to_string()
    }
}

#[test]
fn a_certificate_is_renewed_once_a_third_of_its_time_is_left_and_keeps_its_key() {
    let world = world();
    let key = world.bytes(pki::ETCD_KEY);
    let ends = NOW + LEAF_LASTS;
    let third = (LEAF_LASTS + BACKDATED) / 3;
    assert!(world.due_at(ends - third - 60).renewed.is_empty());
    let before = world.bytes(pki::ETCD_CERT);
    let mut done = world.due_at(ends - third);
    assert_eq!((done.renewed.len(), done.kept.len()), (2, 0));
    assert_eq!(world.bytes(pki::ETCD_KEY), key);
    assert_ne!(world.bytes(pki::ETCD_CERT), before);
    assert!(world.due_at(ends - third + 60).renewed.is_empty(), "it was renewed");
    done.kept.push(done.renewed.pop().map(|one| One { why: "not due".to_owned(), ..one }).unwrap());
    for one in done.renewed.iter_mut().chain(&mut done.kept) {
        one.file = one.file.rsplit('/').next().map(|name| format!("/etc/tandem/pki/{name}")).unwrap();
    }
    done.renewed[0].shown = Some(true);
    golden::compare("certs-renew", &done);
}

#[test]
fn an_address_that_is_new_and_a_pair_that_is_mixed_or_gone_are_due() {
    let mut world = world();
    let renewed = |world: &World| world.due_at(NOW).renewed.iter().map(|one| one.why.clone()).collect::<Vec<_>>();
    assert!(renewed(&world).is_empty());
    world.holder.reached_at.push("192.0.2.9".to_owned());
    assert_eq!(renewed(&world), ["it lacked an address or a name"]);
    // The state after a crash between the two renames of a new key.
    let client = world.bytes(pki::CLIENT_KEY);
    world.files.write(pki::ETCD_KEY, &client).unwrap();
    assert_eq!(renewed(&world), ["it did not fit its key"]);
    assert!(world.files.fits(Leaf::Etcd).unwrap());
    world.files.remove(pki::CLIENT_CERT).unwrap();
    world.files.write(pki::CLIENT_KEY, "half a k").unwrap();
    assert_eq!(renewed(&world), ["there was none"]);
    assert!(world.files.fits(Leaf::Client).unwrap());
}

#[test]
fn a_new_key_is_made_where_it_is_asked_for() {
    let world = world();
    let key = world.bytes(pki::ETCD_KEY);
    renew(&world.files, &world.holder, false, true, NOW).unwrap();
    assert_ne!(world.bytes(pki::ETCD_KEY), key);
    assert!(world.files.fits(Leaf::Etcd).unwrap() && world.files.fits(Leaf::Client).unwrap());
}

/// Asserts that during a CA rotation a certificate is renewed by the CA that issued the present one. The peer may no longer trust the
/// other CA.
#[test]
fn amid_a_rotation_a_renewal_is_of_the_ca_that_the_present_certificate_is_of() {
    let world = world();
    let issuer = |world: &World| world.files.leaf(Leaf::Etcd).unwrap().unwrap().issuer;
    let (old, next) = (issuer(&world), rotation::begin(&world.files, "demo", true, NOW + 5).unwrap().unwrap());
    renew(&world.files, &world.holder, false, false, NOW + 6).unwrap();
    assert_eq!(issuer(&world), old);
    world.files.renew(Leaf::Etcd, &next, &world.holder, NOW + 7).unwrap();
    renew(&world.files, &world.holder, false, false, NOW + 8).unwrap();
    assert_eq!(issuer(&world), next.certificate().subject);
}

#[test]
fn the_directory_and_its_files_are_their_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let world = world();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(world.files.dir()), 0o700);
    for entry in std::fs::read_dir(world.files.dir()).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    let _lock = world.files.lock().unwrap();
    assert!(world.files.lock().unwrap_err().to_string().contains("another command changes"));
}
