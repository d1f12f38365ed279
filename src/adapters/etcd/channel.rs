//! The connection to an etcd. It accepts the certificates that etcd's own clients accept. An authority of the CA file has signed
//! them, or the CA file has them themselves. An example of the latter is a self-signed certificate that names itself an
//! authority.

use std::sync::Arc;

use etcd_client::{BalancedChannelBuilder, Channel, Error, Identity, TlsOptions};
use rustls::client::danger::ServerCertVerifier;
use rustls_pki_types::CertificateDer;
use tokio::sync::mpsc;
use tonic::transport::channel::Change;
use tonic::transport::{Endpoint, Uri};

use crate::adapters::https::tls;

/// The TLS settings of a connection to etcd: how the server's certificate is verified, and the client certificate.
pub(super) struct Tls {
    /// The client certificate and its key. The authorities are not in these options, because `verifier` has them.
    pub(super) options: TlsOptions,
    verifier: Arc<dyn ServerCertVerifier>,
}

impl Tls {
    /// Creates TLS settings that trust the certificates `authorities` and present the client certificate `identity`.
    pub(super) fn new(authorities: Vec<CertificateDer<'static>>, identity: Identity) -> Self {
        Self { options: TlsOptions::new().identity(identity), verifier: tls::verifier(tls::Trust::Listed(authorities)) }
    }

    fn secured(&self, endpoint: Endpoint) -> Result<Endpoint, tonic::transport::Error> {
        endpoint.tls_config_with_verifier(self.options.clone(), Arc::clone(&self.verifier))
    }
}

/// A builder of connections to etcd, with these TLS settings; `None` for connections without TLS. etcd-client's own TLS options accept
/// authorities, but no verifier.
pub(super) struct Builder(pub(super) Option<Tls>);

impl BalancedChannelBuilder for Builder {
    type Error = Error;

    fn balanced_channel(self, buffer: usize) -> Result<(Channel, mpsc::Sender<Change<Uri, Endpoint>>), Error> {
        let (channel, insert) = tonic::transport::Channel::balance_channel(buffer);
        let Some(tls) = self.0 else { return Ok((Channel::Tonic(channel), insert)) };
        let (sender, mut changes) = mpsc::channel(buffer);
        tokio::spawn(async move {
            while let Some(change) = changes.recv().await {
                let change = match change {
                    Change::Insert(uri, endpoint) => match tls.secured(endpoint) {
                        Ok(endpoint) => Change::Insert(uri, endpoint),
                        // This client's own identity was read before, so an endpoint cannot fail because of it.
                        Err(error) => {
                            log::warn!("etcd's endpoint {uri} cannot be used: {error}");
                            continue;
                        }
                    },
                    Change::Remove(uri) => Change::Remove(uri),
                };
                if insert.send(change).await.is_err() {
                    break;
                }
            }
        });
        Ok((Channel::Tonic(channel), sender))
    }
}
