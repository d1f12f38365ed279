//! The lab's certificate authority: certificates for etcd, its client and the BMCs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

use crate::node::{NODES, Node};
use crate::sh::{self, Result};
use crate::state::Lab;

/// The user of etcd that the alert agent asks as.
pub const LOCKS: &str = "locks";

/// Makes `ca.crt`, and `NAME.crt` and `NAME.key` for each node's etcd, the client, the alert agent and each BMC.
pub fn create(lab: &Lab) -> Result<()> {
    let dir = lab.pki();
    sh::make_dir(&dir)?;
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o700))?;

    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.distinguished_name.push(DnType::CommonName, "Tandem lab CA");
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    sh::write(&dir.join("ca.crt"), certificate.pem())?;
    let authority = Issuer::new(params, key);

    for node in NODES {
        // etcd dials its peer with the same certificate that it shows: both usages.
        let names =
            vec![node.ip(), node.ipv6(), "127.0.0.1".to_owned(), "localhost".to_owned(), node.name().to_owned()];
        issue(&dir, &etcd_name(node), names, &authority)?;
        issue(&dir, &bmc_name(node), vec![node.bmc_ip()], &authority)?;
    }
    issue(&dir, LOCKS, vec!["lab-locks".to_owned()], &authority)?;
    issue(&dir, "client", vec!["lab-client".to_owned()], &authority)
}

pub fn etcd_name(node: Node) -> String {
    format!("etcd-{node}")
}

pub fn bmc_name(node: Node) -> String {
    format!("bmc-{node}")
}

fn issue(dir: &Path, name: &str, names: Vec<String>, authority: &Issuer<'_, KeyPair>) -> Result<()> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, name);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate()?;
    let certificate: Certificate = params.signed_by(&key, authority)?;
    sh::write(&dir.join(format!("{name}.crt")), certificate.pem())?;
    write_secret(&dir.join(format!("{name}.key")), key.serialize_pem().as_bytes())
}

/// A file that only its owner may read, from its first byte on.
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
