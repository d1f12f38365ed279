//! A company's CA and its certificates, for tests.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, date_time_ymd,
};

use super::{Peer, PeerSeen};
use crate::operate::certs::pki::{Certificate, read_all};

/// The time of the tests, 2026-11-23, in seconds since 1970.
pub(crate) const NOW: u64 = 1_795_400_000;
pub(crate) const ADDRESS: &str = "192.0.2.1";
pub(crate) const PEER: &str = "192.0.2.2";

/// A fake CA of a company, which is not Tandem's own.
pub(crate) struct Ca {
    pub(crate) issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
}

pub(crate) fn ca(name: &str, until: i32) -> Ca {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.not_after = date_time_ymd(until, 1, 1);
    let key = KeyPair::generate().unwrap();
    let pem = params.self_signed(&key).unwrap().pem();
    Ca { issuer: Issuer::new(params, key), pem }
}

impl Ca {
    pub(crate) fn certificates(&self) -> Vec<Certificate> {
        read_all(&self.pem, "it").unwrap()
    }

    /// Issues a certificate with parameters that `change` modifies. Returns the certificate and its key in PEM.
    pub(crate) fn leaf(&self, change: impl FnOnce(&mut CertificateParams)) -> (String, String) {
        let mut params = CertificateParams::new([ADDRESS.to_owned()]).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        (params.not_before, params.not_after) = (date_time_ymd(2026, 1, 1), date_time_ymd(2028, 1, 1));
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }
}

pub(crate) fn for_name(name: &str) -> Vec<rcgen::SanType> {
    CertificateParams::new([name.to_owned()]).unwrap().subject_alt_names
}

pub(crate) fn peer(ca: &Ca) -> Peer {
    let (pem, _) = ca.leaf(|params| params.subject_alt_names = for_name(PEER));
    let seen = PeerSeen {
        chains: vec![read_all(&pem, "it").unwrap(); 2],
        trusts: vec![vec![ca.certificates()[0].subject_der.clone()]; 2],
    };
    Peer { node: "node2".to_owned(), address: PEER.parse().unwrap(), seen: Ok(seen) }
}
