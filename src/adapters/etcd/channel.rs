//! The connection to an etcd. Its certificate counts as etcd's own clients count it: signed by an authority of the file, or one that is in the
//! file itself, as a self-signed certificate is that names itself an authority.

use std::sync::Arc;

use etcd_client::{BalancedChannelBuilder, Channel, Error, Identity, TlsOptions};
use rustls::client::danger::ServerCertVerifier;
use rustls_pki_types::CertificateDer;
use tokio::sync::mpsc;
use tonic::transport::channel::Change;
use tonic::transport::{Endpoint, Uri};

use crate::adapters::https::tls;

/// How a server of etcd is known, and what this client shows it.
pub(super) struct Tls {
    /// What it shows, without authorities: the verifier has them.
    pub(super) options: TlsOptions,
    verifier: Arc<dyn ServerCertVerifier>,
}

impl Tls {
    /// Trusts what `authorities` holds, and shows `identity`.
    pub(super) fn new(authorities: Vec<CertificateDer<'static>>, identity: Identity) -> Self {
        Self { options: TlsOptions::new().identity(identity), verifier: tls::verifier(tls::Trust::Listed(authorities)) }
    }

    fn secured(&self, endpoint: Endpoint) -> Result<Endpoint, tonic::transport::Error> {
        endpoint.tls_config_with_verifier(self.options.clone(), Arc::clone(&self.verifier))
    }
}

/// Builds a channel with `Tls`, or a plain one without it. The TLS options of etcd-client take authorities, and no verifier.
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
                        // What this client shows was read before: no endpoint is refused for it.
                        Err(error) => {
                            log::warn!("{uri}: {error}");
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
