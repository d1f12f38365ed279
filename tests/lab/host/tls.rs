//! The lab's certificate authority: certificates for etcd, its client and the BMCs.

use std::fs;
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};

use crate::host::node::{CLIENT_IP, NODES, Node};
use crate::host::state::Lab;
use crate::sh::{self, Result};

/// The name of the etcd user as which the alert agent logs in. The alert agent's certificate has this name.
pub const LOCKS: &str = "locks";

/// The name of the certificate of the third etcd member, which runs at the client's address.
pub const THIRD_VOTER: &str = "etcd-guest";

/// Makes the lab's certificates: `ca.crt`, and `NAME.crt` and `NAME.key` for each node's etcd, the client, the alert
/// agent and each BMC.
pub fn create(lab: &Lab) -> Result<()> {
    let dir = lab.pki();
    sh::make_dir(&dir)?;
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o700))?;
    let authority = Authority::new("Tandem lab CA")?;
    sh::write(&dir.join("ca.crt"), authority.pem())?;
    for node in NODES {
        authority.issue_into(&dir, &etcd_name(node), etcd_names(node))?;
        authority.issue_into(&dir, &bmc_name(node), vec![node.bmc_ip()])?;
    }
    // The certificates of the machine that replaces the second host in some scenarios.
    authority.issue_into(&dir, "bmc-node3", vec!["10.98.0.103".to_owned()])?;
    let names = ["10.99.0.3", "127.0.0.1", "localhost", "node3"].map(str::to_owned);
    authority.issue_into(&dir, "etcd-node3", names.to_vec())?;
    authority.issue_into(
        &dir,
        THIRD_VOTER,
        vec![CLIENT_IP.to_owned(), "127.0.0.1".to_owned(), "localhost".to_owned()],
    )?;
    authority.issue_into(&dir, LOCKS, vec!["lab-locks".to_owned()])?;
    authority.issue_into(&dir, "client", vec!["lab-client".to_owned()])
}

/// Returns the names and addresses in a node's etcd certificate. etcd uses it as a server, and as a client of its
/// peer.
pub fn etcd_names(node: Node) -> Vec<String> {
    let addresses = [node.ip(), node.other_ip(), node.ipv6(), "127.0.0.1".to_owned()];
    [&addresses[..], &["localhost".to_owned(), node.name().to_owned()]].concat()
}

pub fn etcd_name(node: Node) -> String {
    format!("etcd-{node}")
}

pub fn bmc_name(node: Node) -> String {
    format!("bmc-{node}")
}

/// A certificate authority of a site, with its certificate and its key.
pub struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub fn new(name: &str) -> Result<Self> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate()?;
        let pem = params.self_signed(&key)?.pem();
        Ok(Self { pem, issuer: Issuer::new(params, key) })
    }

    pub fn pem(&self) -> &str {
        &self.pem
    }

    pub fn key(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// Issues a certificate for servers and clients both. Returns the certificate and its key as PEM.
    pub fn issue(&self, name: &str, names: Vec<String>) -> Result<(String, String)> {
        self.issue_with(CertificateParams::new(names)?, name)
    }

    /// Issues a certificate that is valid between two times since 1970. Returns the certificate and its key as PEM.
    pub fn issue_for(&self, name: &str, names: Vec<String>, times: Range<Duration>) -> Result<(String, String)> {
        let mut params = CertificateParams::new(names)?;
        params.not_before = date_time_ymd(1970, 1, 1) + times.start;
        params.not_after = date_time_ymd(1970, 1, 1) + times.end;
        self.issue_with(params, name)
    }

    fn issue_with(&self, mut params: CertificateParams, name: &str) -> Result<(String, String)> {
        params.distinguished_name.push(DnType::CommonName, name);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate()?;
        Ok((params.signed_by(&key, &self.issuer)?.pem(), key.serialize_pem()))
    }

    fn issue_into(&self, dir: &Path, name: &str, names: Vec<String>) -> Result<()> {
        let (certificate, key) = self.issue(name, names)?;
        sh::write(&dir.join(format!("{name}.crt")), certificate)?;
        write_secret(&dir.join(format!("{name}.key")), key.as_bytes())
    }
}

/// Writes a file that only its owner may read. The mode is set before the first byte is written.
pub fn write_secret(path: &Path, content: &[u8]) -> Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    Ok(file.write_all(content)?)
}
