//! The CommonName of a certificate. With `client-cert-auth`, etcd takes it for the user's name once its auth is on.

use std::path::Path;

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use crate::os::regular_file;

/// The size in bytes of the largest certificate file that is read.
const LIMIT: u64 = 1 << 20;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const VERSION: u8 = 0xa0;
/// The object identifier of the CommonName (2.5.4.3) in DER, with its tag and length.
const COMMON_NAME: &[u8] = &[0x06, 0x03, 0x55, 0x04, 0x03];
/// The number of fields before a certificate's subject: serial number, algorithm, issuer, validity.
const FIELDS_BEFORE_THE_SUBJECT: usize = 4;

/// Returns the CommonName of the first certificate of a PEM file; `None` where it cannot be read or has none.
pub(super) fn of_file(path: &Path) -> Option<String> {
    of_certificate(&CertificateDer::from_pem_slice(&regular_file::read_at_most(path, LIMIT).ok()?).ok()?)
}

fn of_certificate(der: &[u8]) -> Option<String> {
    let (_, certificate, _) = element(der)?;
    let (_, mut fields, _) = element(certificate)?;
    if let (VERSION, _, rest) = element(fields)? {
        fields = rest;
    }
    for _ in 0..FIELDS_BEFORE_THE_SUBJECT {
        fields = element(fields)?.2;
    }
    let (_, mut names, _) = element(fields)?;
    let mut last = None;
    // The last CommonName counts, as in Go's library, which etcd uses.
    while let Some((SET, set, rest)) = element(names) {
        last = common_name(set).or(last);
        names = rest;
    }
    last
}

fn common_name(mut set: &[u8]) -> Option<String> {
    while let Some((SEQUENCE, pair, rest)) = element(set) {
        if let Some((_, value, _)) = pair.strip_prefix(COMMON_NAME).and_then(element) {
            return String::from_utf8(value.to_vec()).ok().filter(|name| !name.is_empty());
        }
        set = rest;
    }
    None
}

/// Splits DER after its first element. Returns the element's tag and content, and the bytes after the element.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, mut rest) = rest.split_first()?;
    let mut length = usize::from(first);
    if first >= 0x80 {
        let (bytes, after) = rest.split_at_checked(usize::from(first & 0x7f))?;
        length = bytes.iter().try_fold(0_usize, |sum, byte| sum.checked_mul(256)?.checked_add(usize::from(*byte)))?;
        rest = after;
    }
    let (content, after) = rest.split_at_checked(length)?;
    Some((tag, content, after))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
mod tests {
    use rcgen::{CertificateParams, DnType, Issuer, KeyPair};

    use super::*;

    fn certificate(names: &[(DnType, &str)]) -> Vec<u8> {
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.distinguished_name.push(DnType::CommonName, "the authority");
        let issuer = Issuer::new(authority, KeyPair::generate().unwrap());
        let mut params = CertificateParams::new(vec!["node1".to_owned()]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, name) in names {
            params.distinguished_name.push(kind.clone(), *name);
        }
        params.signed_by(&KeyPair::generate().unwrap(), &issuer).unwrap().der().to_vec()
    }

    #[test]
    fn the_subjects_name_is_found_and_not_the_issuers() {
        let of = |names: &[(DnType, &str)]| of_certificate(&certificate(names));
        assert_eq!(of(&[(DnType::CommonName, "etcd-node1")]).as_deref(), Some("etcd-node1"));
        let many = [(DnType::OrganizationName, "system:masters"), (DnType::CommonName, "kube etcd é")];
        assert_eq!(of(&many).as_deref(), Some("kube etcd é"));
        assert_eq!(of(&[(DnType::OrganizationName, "nobody")]), None);
    }

    #[test]
    fn what_is_no_certificate_has_no_name() {
        let whole = certificate(&[(DnType::CommonName, "etcd-node1")]);
        for length in 0..whole.len() {
            assert_eq!(of_certificate(&whole[..length]), None, "cut after {length} bytes");
        }
        for odd in [&[0x30, 0xff][..], &[0x30, 0x88, 255, 255, 255, 255, 255, 255, 255, 255], b"-----BEGIN"] {
            assert_eq!(of_certificate(odd), None);
        }
    }
}
