//! Observes both ports of an etcd: the certificate that its process presents, and the authorities that it trusts.

use std::time::Duration;

use super::Certificate;
use super::rotation::RotationSeen;
use super::site_certs::PeerSeen;
use crate::adapters::etcd::client::{Credentials, Endpoint};
use crate::adapters::etcd::trust::{Looked, look};

/// Timeout of a connection to etcd. An etcd that starts or is busy needs a while.
const CONNECT: Duration = Duration::from_secs(2);
const HANDSHAKE: Duration = Duration::from_secs(5);

/// Reads the certificate that each of etcd's `ports` presents, and the CAs that each port trusts. Fails with the reason unless all
/// ports answer.
pub fn ports(ports: &[Endpoint], own: &Credentials) -> Result<PeerSeen, String> {
    let mut seen = PeerSeen::default();
    for endpoint in ports {
        let port = match look(endpoint, own, CONNECT, HANDSHAKE) {
            Looked::At(port) => port,
            Looked::Nobody => return Err(format!("nobody listens at {}", endpoint.address)),
            Looked::Unknown(why) => return Err(why),
        };
        let what = format!("what {} shows", endpoint.address);
        let chain: Result<Vec<_>, _> = port.chain.iter().map(|der| Certificate::read(der, &what)).collect();
        seen.chains.push(chain.map_err(|error| error.to_string())?);
        seen.trusts.push(port.trusts);
    }
    Ok(seen)
}

impl PeerSeen {
    /// Returns the issuers and the trusted CAs of all ports, which a CA rotation needs.
    pub fn summary(&self) -> RotationSeen {
        let leaves = self.chains.iter().filter_map(|chain| chain.first());
        RotationSeen { issuers: leaves.map(|leaf| leaf.issuer_der.clone()).collect(), trusts: self.trusts.clone() }
    }

    /// Returns whether every port presents exactly `certificate`.
    pub fn show(&self, certificate: &Certificate) -> bool {
        !self.chains.is_empty()
            && self
                .chains
                .iter()
                .all(|chain| chain.first().is_some_and(|leaf| leaf.fingerprint == certificate.fingerprint))
    }
}
