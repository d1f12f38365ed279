//! The CA: makes it, loads it, and issues certificates. All keys are ECDSA P-256.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData, SerialNumber,
};
use ring::rand::{SecureRandom, SystemRandom};
use time::OffsetDateTime;
use zeroize::Zeroizing;

use super::certificate::{self, Certificate};
use super::{BACKDATED, CA_LASTS, Error, LEAF_LASTS, Result};
use crate::base::utc;

/// The beginning of the name of each CA that Tandem makes. A CA with another name is not used.
const OURS: &str = "Tandem CA of ";
/// Largest number of characters of the cluster's name in the CA's name, because a CommonName has at most 64.
const LONGEST_CLUSTER: usize = 28;
/// Bytes of a certificate's serial number, so many that two random numbers never collide.
const SERIAL: usize = 16;

/// A certificate and its key, both in PEM.
#[derive(Clone)]
pub struct Pair {
    pub certificate_pem: String,
    pub key_pem: Zeroizing<String>,
}

impl std::fmt::Debug for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pair").field("certificate_pem", &self.certificate_pem).finish_non_exhaustive()
    }
}

/// A CA of Tandem with its key, which can issue certificates.
pub struct Authority {
    certificate: Certificate,
    certificate_pem: String,
    key_pem: Zeroizing<String>,
    issuer: Issuer<'static, KeyPair>,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

impl Authority {
    /// Creates a new CA for the cluster named `cluster`. The CA's name contains the time `now`, so that two CAs of one
    /// cluster can be distinguished.
    pub fn new(cluster: &str, now: u64) -> Result<Self> {
        let cluster: String = cluster.chars().take(LONGEST_CLUSTER).collect();
        let name = format!("{OURS}{cluster}, {}", utc(now));
        let key = KeyPair::generate().map_err(failed)?;
        let mut params = ca_params(&name);
        (params.not_before, params.not_after) = (at(now.saturating_sub(BACKDATED))?, at(now + CA_LASTS)?);
        params.serial_number = Some(serial()?);
        let certificate_pem = params.self_signed(&key).map_err(failed)?.pem();
        Self::load(&certificate_pem, &Zeroizing::new(key.serialize_pem()))
    }

    /// Loads a CA from its key and its certificate. `cert_pem` may also contain certificates of other CAs. Uses the certificate that
    /// contains the key's public half.
    pub fn load(cert_pem: &str, key_pem: &str) -> Result<Self> {
        let key = key(key_pem, "the CA's key")?;
        let all = certificate::read_all(cert_pem, "the CA's certificate")?;
        let mine = all.into_iter().find(|one| one.public_key == key.subject_public_key_info());
        let certificate = mine.ok_or(Error::KeyOfAnother)?;
        let name = certificate.name().filter(|name| name.starts_with(OURS) && certificate.is_ca);
        let name = name.ok_or_else(|| Error::Foreign(certificate.subject.clone()))?;
        let issuer = Issuer::new(ca_params(name), key);
        let certificate_pem = certificate.pem();
        Ok(Self { certificate, certificate_pem, key_pem: Zeroizing::new(key_pem.to_owned()), issuer })
    }

    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    pub fn key_pem(&self) -> &Zeroizing<String> {
        &self.key_pem
    }

    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// Issues the certificate that the etcd of the node `name` presents as a server, and as a client to its peer.
    ///
    /// etcd accepts a peer's certificate only if it contains the address from which the peer connects. `reached_at`,
    /// addresses and DNS names, must therefore contain all addresses of the node.
    pub fn node(&self, name: &str, reached_at: &[String], now: u64) -> Result<Pair> {
        let key = new_key()?;
        Ok(Pair { certificate_pem: self.node_with_key(name, reached_at, &key, now)?, key_pem: key })
    }

    /// Issues a certificate as [`Self::node`] does, but for an existing key.
    pub fn node_with_key(&self, name: &str, reached_at: &[String], key_pem: &str, now: u64) -> Result<String> {
        let local = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)].map(|local| local.to_string());
        let own = [name.to_owned(), "localhost".to_owned()];
        let more: BTreeSet<&String> = reached_at.iter().chain(&local).filter(|more| !own.contains(more)).collect();
        let names = own.iter().chain(more).cloned().collect();
        let usages = [ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(name, names, &usages, key_pem, now)
    }

    /// Issues a certificate for a client, and creates its key. etcd's auth maps the certificate to the user `name`.
    pub fn client(&self, name: &str, now: u64) -> Result<Pair> {
        let key = new_key()?;
        Ok(Pair { certificate_pem: self.client_with_key(name, &key, now)?, key_pem: key })
    }

    /// Issues a certificate as [`Self::client`] does, but for an existing key.
    pub fn client_with_key(&self, name: &str, key_pem: &str, now: u64) -> Result<String> {
        self.issue(name, Vec::new(), &[ExtendedKeyUsagePurpose::ClientAuth], key_pem, now)
    }

    fn issue(
        &self,
        name: &str,
        names: Vec<String>,
        usages: &[ExtendedKeyUsagePurpose],
        key_pem: &str,
        now: u64,
    ) -> Result<String> {
        if name.is_empty() || name.len() > 64 || name.chars().any(char::is_control) {
            return Err(Error::NoName(name.to_owned()));
        }
        if self.certificate.ends <= now {
            return Err(Error::Ended(utc(self.certificate.ends)));
        }
        let key = key(key_pem, "the key")?;
        let mut params = CertificateParams::new(names).map_err(|_| Error::NoName(name.to_owned()))?;
        params.distinguished_name = common_name(name);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = usages.to_vec();
        params.use_authority_key_identifier_extension = true;
        params.serial_number = Some(serial()?);
        // No certificate outlives the CA.
        (params.not_before, params.not_after) =
            (at(now.saturating_sub(BACKDATED))?, at((now + LEAF_LASTS).min(self.certificate.ends))?);
        Ok(params.signed_by(&key, &self.issuer).map_err(failed)?.pem())
    }
}

/// Creates a new private key, in PEM.
pub(super) fn new_key() -> Result<Zeroizing<String>> {
    Ok(Zeroizing::new(KeyPair::generate().map_err(failed)?.serialize_pem()))
}

/// Returns the public half of a private key, in the form in which a certificate contains it.
pub(super) fn public_key(pem: &str) -> Result<Vec<u8>> {
    Ok(key(pem, "the key")?.subject_public_key_info())
}

fn key(pem: &str, what: &str) -> Result<KeyPair> {
    KeyPair::from_pem(pem).map_err(|error| Error::NoKey { what: what.to_owned(), why: error.to_string() })
}

/// Returns the parameters of a CA with this name. A CA's creation and its loading must use equal parameters, because they determine
/// the issuer's name and the key identifier in each issued certificate.
fn ca_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = common_name(name);
    // The CA issues only leaves, no further CA.
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn common_name(name: &str) -> DistinguishedName {
    let mut all = DistinguishedName::new();
    all.push(DnType::CommonName, name);
    all
}

/// Draws a random serial number. rcgen would derive the number from the key, but a renewed certificate has the same key
/// as its predecessor.
fn serial() -> Result<SerialNumber> {
    let mut bytes = [0; SERIAL];
    SystemRandom::new().fill(&mut bytes).map_err(|_| Error::Failed("this machine has no random numbers".to_owned()))?;
    // The number must be positive and must not begin with a zero byte.
    bytes[0] = bytes[0] & 0x3f | 0x40;
    Ok(SerialNumber::from_slice(&bytes))
}

fn at(seconds: u64) -> Result<OffsetDateTime> {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    OffsetDateTime::from_unix_timestamp(seconds).map_err(|error| Error::Failed(error.to_string()))
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn failed(error: rcgen::Error) -> Error {
    Error::Failed(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time at which the tests issue certificates, 2026-11-23, in seconds since 1970.
    const NOW: u64 = 1_795_400_000;

    fn node(authority: &Authority, now: u64) -> Certificate {
        let pair = authority.node("node1", &["192.0.2.1".to_owned()], now).unwrap();
        certificate::first(&pair.certificate_pem, "it").unwrap()
    }

    #[test]
    fn what_is_issued_has_every_name_begins_before_now_and_lasts_a_year() {
        let authority = Authority::new("demo", NOW).unwrap();
        let ca = authority.certificate();
        assert!(ca.is_ca && ca.subject == ca.issuer, "{ca:?}");
        assert_eq!((ca.begins, ca.ends), (NOW - BACKDATED, NOW + CA_LASTS));
        let leaf = node(&authority, NOW);
        assert_eq!((leaf.begins, leaf.ends), (NOW - 3_600, NOW + LEAF_LASTS));
        assert_eq!(leaf.names, ["node1", "localhost", "127.0.0.1", "192.0.2.1", "::1"]);
        assert_eq!((leaf.issuer.as_str(), leaf.name()), (ca.subject.as_str(), Some("node1")));
        assert!(leaf.for_servers && leaf.for_clients && !leaf.is_ca);
        let more = ["etcd.example.org", "node1", "192.0.2.10"].map(str::to_owned);
        let pair = authority.node("node1", &more, NOW).unwrap();
        let leaf = certificate::first(&pair.certificate_pem, "it").unwrap();
        assert_eq!(leaf.names, ["node1", "localhost", "127.0.0.1", "192.0.2.10", "::1", "etcd.example.org"]);
        let client = authority.client("root", NOW).unwrap();
        let client = certificate::first(&client.certificate_pem, "it").unwrap();
        assert!(!client.for_servers && client.for_clients && client.names.is_empty());
    }

    #[test]
    fn it_is_loaded_from_its_files_also_out_of_a_bundle() {
        let (old, new) = (Authority::new("demo", NOW).unwrap(), Authority::new("demo", NOW + 1).unwrap());
        let bundle = old.certificate_pem().to_owned() + new.certificate_pem();
        let loaded = Authority::load(&bundle, new.key_pem()).unwrap();
        assert_eq!(loaded.certificate(), new.certificate());
        assert_eq!(node(&loaded, NOW).issuer, new.certificate().subject);
        let without = Authority::load(old.certificate_pem(), new.key_pem()).unwrap_err();
        assert_eq!(without, Error::KeyOfAnother);
    }

    #[test]
    fn nothing_outlives_the_ca_and_one_that_ended_issues_nothing() {
        let authority = Authority::new("demo", NOW).unwrap();
        let end = NOW + CA_LASTS;
        assert_eq!(node(&authority, end - 60).ends, end);
        let ended = authority.client("root", end).unwrap_err().to_string();
        assert!(ended.contains("'tandem certs rotate-ca'"), "{ended}");
    }

    #[test]
    fn a_renewed_certificate_has_its_key_and_a_number_of_its_own() {
        let authority = Authority::new("demo", NOW).unwrap();
        let pair = authority.node("node1", &[], NOW).unwrap();
        let renewed = authority.node_with_key("node1", &[], &pair.key_pem, NOW + 1).unwrap();
        let [old, new] = [&pair.certificate_pem, &renewed].map(|pem| certificate::first(pem, "it").unwrap());
        assert_eq!(old.public_key, new.public_key);
        assert_ne!(old.serial, new.serial);
    }

    #[test]
    fn another_ones_ca_and_a_name_that_is_none_are_refused() {
        let key = KeyPair::generate().unwrap();
        let foreign = ca_params("Company CA").self_signed(&key).unwrap().pem();
        assert_eq!(
            Authority::load(&foreign, &key.serialize_pem()).unwrap_err(),
            Error::Foreign("CN=Company CA".to_owned())
        );
        let authority = Authority::new(&"x".repeat(100), NOW).unwrap();
        assert!(authority.certificate().name().unwrap().len() <= 64);
        for wrong in ["", "a\nb", &"x".repeat(65)] {
            assert_eq!(authority.client(wrong, NOW).unwrap_err(), Error::NoName(wrong.to_owned()));
        }
        assert!(matches!(Authority::load("", "rubbish").unwrap_err(), Error::NoKey { .. }));
    }

    #[test]
    fn a_key_is_in_no_debug_output() {
        let authority = Authority::new("demo", NOW).unwrap();
        let pair = authority.client("root", NOW).unwrap();
        let shown = format!("{authority:?} {pair:?}");
        assert!(!shown.contains("PRIVATE KEY"), "{shown}");
    }
}
