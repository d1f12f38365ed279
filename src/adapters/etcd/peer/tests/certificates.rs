//! Tests that an unusable certificate file ends in an error that names the file.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair};

use super::super::{Place, look};
use crate::adapters::etcd::client::Credentials;

fn place(dir: &Path) -> Place {
    let file = |name: &str| dir.join(name);
    let credentials =
        Credentials { trusted_ca_file: file("ca.crt"), cert_file: file("peer.crt"), key_file: file("peer.key") };
    Place { url: "https://127.0.0.1:1".to_owned(), credentials }
}

#[test]
fn what_cannot_be_used_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let told = || look(&place(dir.path()), Duration::from_secs(2)).unwrap_err().to_string();
    assert!(told().contains("ca.crt"), "{}", told());
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let (key, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let certificate = params.self_signed(&key).unwrap().pem();
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    write("ca.crt", "nothing");
    write("peer.crt", &certificate);
    write("peer.key", "nothing");
    assert!(told().contains("peer.key: it holds no key"), "{}", told());
    // ureq would panic at this key.
    write("peer.key", &other.serialize_pem());
    assert!(told().contains("peer.key: "), "{}", told());
    write("peer.key", &key.serialize_pem());
    assert!(told().contains("ca.crt: it holds no certificate"), "{}", told());
    write("ca.crt", &certificate);
    assert!(told().starts_with("cannot ask https://127.0.0.1:1: "), "{}", told());
}
