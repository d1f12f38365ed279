//! Expiry dates of certificates on this node's disk.

use std::path::Path;

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use super::Certificate;
use crate::adapters::etcd::client::PEM_LIMIT;
use crate::adapters::https::shown::end;
use crate::os::regular_file;

/// Reads the earliest expiry among the certificates of a PEM file. Returns `None` if the file contains no certificate, such as a key
/// file.
pub(super) fn of_file(path: &Path) -> Option<Certificate> {
    let text = regular_file::read_at_most(path, PEM_LIMIT).ok()?;
    let ends = CertificateDer::pem_slice_iter(&text).filter_map(|der| end(&der.ok()?)).min()?;
    Some(Certificate { file: path.display().to_string(), ends })
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    fn until(year: i32, key: &KeyPair) -> String {
        let mut params = CertificateParams::new(vec!["node1".to_owned()]).unwrap();
        params.not_after = date_time_ymd(year, 1, 1);
        params.self_signed(key).unwrap().pem()
    }

    #[test]
    fn of_several_certificates_the_one_that_ends_first_counts() {
        let dir = tempfile::tempdir().unwrap();
        let key = KeyPair::generate().unwrap();
        let path = dir.path().join("ca.crt");
        std::fs::write(&path, until(2040, &key) + &until(2030, &key) + &until(2035, &key)).unwrap();
        let found = of_file(&path).unwrap();
        assert_eq!((found.ends, found.file), (1_893_456_000, path.display().to_string()));
    }

    #[test]
    fn a_key_rubbish_and_nothing_have_no_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("etcd.key");
        for text in [KeyPair::generate().unwrap().serialize_pem(), "-----BEGIN CERTIFICATE-----\nAA==".to_owned()] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(of_file(&path), None);
        }
        assert_eq!((of_file(&dir.path().join("none")), end(b"rubbish")), (None, None));
    }
}
