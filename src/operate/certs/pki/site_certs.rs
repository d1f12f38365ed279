//! Certificates of another CA than ours. Checks that this node's etcd can serve with them before they are installed.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::trust::{Use, is_trusted};
use super::{Certificate, Error, read_all};
use crate::base::utc;

/// The certificate and the key to install, as text and with their paths.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    pub cert: &'a Path,
    pub cert_pem: &'a str,
    pub key: &'a Path,
    pub key_pem: &'a str,
}

/// The CA certificates that this node trusts, or is to trust, with the path of their file.
#[derive(Clone, Copy, Debug)]
pub struct Bundle<'a> {
    pub file: &'a Path,
    pub certificates: &'a [Certificate],
}

/// The other node, where etcd must accept the certificates to install.
#[derive(Clone, Debug)]
pub struct Peer {
    pub node: String,
    pub address: IpAddr,
    /// What the other node's etcd presents and trusts. The error is the reason why that is unknown.
    pub seen: Result<PeerSeen, String>,
}

#[derive(Clone, Debug, Default)]
pub struct PeerSeen {
    /// The certificate chain that each of etcd's ports presents, the leaf first.
    pub chains: Vec<Vec<Certificate>>,
    /// The subjects of the CAs that each of etcd's ports trusts, in DER.
    pub trusts: Vec<Vec<Vec<u8>>>,
}

/// The reason why certificates of another CA must not be installed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error(transparent)]
    Unreadable(#[from] Error),
    #[error("the key in {key} is not that of the certificate in {cert}: give the two that were made together")]
    KeyOfAnother { cert: String, key: String },
    #[error("{0} is a CA's own certificate: give one that it has issued")]
    IsCa(String),
    #[error("{0} ended at {1}: have a new one issued")]
    Ended(String, String),
    #[error("{0} begins only at {1}: wait until then, or set the clock right where it was issued")]
    NotYet(String, String),
    #[error("{cert} is not good for {address}, the address of {node}: have one issued with that address in it")]
    LacksAddress { cert: String, address: IpAddr, node: String },
    #[error("{0} is not for servers and clients both, as etcd needs it: have one issued for both")]
    Usage(String),
    #[error(
        "{cert} is not trusted by the CAs in {file} ({why}): add its CA with --ca FILE, beside those that are there"
    )]
    NotTrustedHere { cert: String, file: String, why: String },
    #[error(
        "{node} would not trust {cert}: have it trust its CA first, with 'tandem certs install --ca FILE' typed there"
    )]
    NotTrustedThere { cert: String, node: String },
    #[error(
        "whether {node} would trust {cert} is not known, as its etcd does not answer ({why}): type it again when it runs"
    )]
    Unseen { cert: String, node: String, why: String },
    #[error("{file} holds '{subject}', which is no CA's certificate: leave it out")]
    NoCa { file: String, subject: String },
    #[error("{file} holds the CA '{subject}', which ended at {at}: leave it out")]
    CaEnded { file: String, subject: String, at: String },
    #[error(
        "{file} does not trust what {node} shows: keep the CA '{issuer}' in it until {node} has another certificate"
    )]
    DropsTheOther { file: String, node: String, issuer: String },
}

/// Checks that the etcd of `node` could serve at `address` with the certificate `given` at the time `now`. Returns the
/// certificate.
pub fn check(
    given: &Given<'_>,
    node: &str,
    address: IpAddr,
    bundle: &Bundle<'_>,
    other: Option<&Peer>,
    now: u64,
) -> Result<Certificate, Unfit> {
    let cert = given.cert.display().to_string();
    let chain = read_all(given.cert_pem, &cert)?;
    let Some(leaf) = chain.first().cloned() else { return Err(Unfit::Usage(cert)) };
    belong_together(given, &chain)?;
    if leaf.is_ca {
        return Err(Unfit::IsCa(cert));
    }
    if leaf.ends <= now {
        return Err(Unfit::Ended(cert, utc(leaf.ends)));
    }
    if leaf.begins > now {
        return Err(Unfit::NotYet(cert, utc(leaf.begins)));
    }
    if !(leaf.for_servers && leaf.for_clients) {
        return Err(Unfit::Usage(cert));
    }
    if !leaf.addresses().contains(&address) {
        return Err(Unfit::LacksAddress { cert, address, node: node.to_owned() });
    }
    trusted_by_both(&chain, address, bundle.certificates, now).map_err(|why| Unfit::NotTrustedHere {
        cert: cert.clone(),
        file: bundle.file.display().to_string(),
        why,
    })?;
    if let Some(other) = other {
        trusted_there(&chain, &cert, address, bundle, other, now)?;
    }
    Ok(leaf)
}

/// Checks CA certificates that are to replace the trusted ones. They must be valid CAs, and the other node's
/// certificates must be trusted by them.
pub fn check_bundle(bundle: &Bundle<'_>, other: Option<&Peer>, now: u64) -> Result<(), Unfit> {
    let file = bundle.file.display().to_string();
    for one in bundle.certificates {
        let subject = one.subject.clone();
        if !one.is_ca {
            return Err(Unfit::NoCa { file, subject });
        }
        if one.ends <= now {
            return Err(Unfit::CaEnded { file, subject, at: utc(one.ends) });
        }
    }
    let Some(other) = other else { return Ok(()) };
    let node = other.node.clone();
    let seen = other.seen.as_ref().map_err(|why| Unfit::Unseen {
        cert: file.clone(),
        node: node.clone(),
        why: why.clone(),
    })?;
    for chain in &seen.chains {
        if trusted_by_both(chain, other.address, bundle.certificates, now).is_err() {
            let issuer = chain.last().map(|last| last.issuer.clone()).unwrap_or_default();
            return Err(Unfit::DropsTheOther { file, node, issuer });
        }
    }
    Ok(())
}

fn belong_together(given: &Given<'_>, chain: &[Certificate]) -> Result<(), Unfit> {
    let (cert, key) = (given.cert.display().to_string(), given.key.display().to_string());
    let parsed = PrivateKeyDer::from_pem_slice(given.key_pem.as_bytes())
        .map_err(|error| Error::NoKey { what: key.clone(), why: error.to_string() })?;
    let ders = chain.iter().map(|one| CertificateDer::from(one.der.clone())).collect();
    match CertifiedKey::from_der(ders, parsed, &Arc::new(ring::default_provider())) {
        Ok(_) => Ok(()),
        Err(rustls::Error::InconsistentKeys(_)) => Err(Unfit::KeyOfAnother { cert, key }),
        Err(error) => Err(Error::NoKey { what: key, why: error.to_string() }.into()),
    }
}

/// Checks that `bundle` trusts a chain for both uses: as a server at `address` and as a client.
fn trusted_by_both(chain: &[Certificate], address: IpAddr, bundle: &[Certificate], now: u64) -> Result<(), String> {
    is_trusted(chain, bundle, Use::Server(&address.to_string()), now)?;
    is_trusted(chain, bundle, Use::Client, now)
}

/// Checks that the other node trusts the chain. Only the names of the CAs that the other node trusts are known. The
/// check therefore uses the CAs of this node that have these names.
fn trusted_there(
    chain: &[Certificate],
    cert: &str,
    address: IpAddr,
    bundle: &Bundle<'_>,
    other: &Peer,
    now: u64,
) -> Result<(), Unfit> {
    let (cert, node) = (cert.to_owned(), other.node.clone());
    let seen = match &other.seen {
        Ok(seen) => seen,
        Err(why) => return Err(Unfit::Unseen { cert, node, why: why.clone() }),
    };
    for port in &seen.trusts {
        let common = bundle.certificates.iter().filter(|one| port.contains(&one.subject_der));
        let common: Vec<Certificate> = common.cloned().collect();
        if trusted_by_both(chain, address, &common, now).is_err() {
            return Err(Unfit::NotTrustedThere { cert, node });
        }
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;
