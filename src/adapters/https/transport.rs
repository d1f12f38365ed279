//! ureq's connection to the BMC: name resolution with zones, and TLS with this program's own trust.
//!
//! ureq's own TLS connector supports neither a fingerprint nor another host name, so this one replaces it.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use rustls::{ClientConfig, ClientConnection, StreamOwned};
use rustls_pki_types::ServerName;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::time::{Duration, Instant};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport, TransportAdapter,
};

use super::head::HeadFilter;

/// A resolver that resolves one host, whatever host a URL names. It takes only the port from the URL.
#[derive(Debug)]
pub struct OneHost {
    pub host: String,
}

impl Resolver for OneHost {
    fn resolve(&self, uri: &Uri, _: &Config, timeout: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let port = uri.port_u16().unwrap_or(443);
        let found = match self.host.parse::<IpAddr>() {
            Ok(address) => vec![SocketAddr::new(address, port)],
            Err(_) => look_up(&self.host, port, timeout)?,
        };
        let mut addresses = self.empty();
        for address in found.into_iter().take(MAX_ADDRESSES) {
            addresses.push(address);
        }
        if addresses.is_empty() { Err(ureq::Error::HostNotFound) } else { Ok(addresses) }
    }
}

/// The greatest number of addresses of a host. ureq's list has no room for more.
const MAX_ADDRESSES: usize = 16;

/// Resolves a name in a thread. The thread is abandoned after `timeout`, because the system's resolver supports no time-out.
fn look_up(host: &str, port: u16, timeout: NextTimeout) -> Result<Vec<SocketAddr>, ureq::Error> {
    let (answer, answers) = mpsc::sync_channel(1);
    let host = host.to_owned();
    std::thread::spawn(move || {
        let found = (host.as_str(), port).to_socket_addrs().map(Iterator::collect);
        let _ = answer.send(found);
    });
    match answers.recv_timeout(*timeout.after) {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(_)) | Err(mpsc::RecvTimeoutError::Disconnected) => Err(ureq::Error::HostNotFound),
        Err(mpsc::RecvTimeoutError::Timeout) => Err(ureq::Error::Timeout(timeout.reason)),
    }
}

/// Statistics about the connections that a client has made to one BMC.
#[derive(Debug, Default)]
pub struct Connections {
    /// The number of connections that were made so far. A request that does not raise it has used an open connection.
    pub made: AtomicUsize,
    /// The milliseconds that the last connection needed for TCP.
    pub waited_ms: AtomicU64,
}

/// A connector that wraps each TCP connection of ureq in TLS, and counts the connections.
pub struct TlsConnector {
    pub config: Arc<ClientConfig>,
    pub name: ServerName<'static>,
    pub connections: Arc<Connections>,
}

impl fmt::Debug for TlsConnector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TlsConnector").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<In: Transport> Connector<In> for TlsConnector {
    type Out = TlsTransport;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<TlsTransport>, ureq::Error> {
        let Some(socket) = chained else { return Ok(None) };
        self.connections.made.fetch_add(1, Ordering::Relaxed);
        self.connections.waited_ms.store(waited_ms(details), Ordering::Relaxed);
        let mut connection = ClientConnection::new(self.config.clone(), self.name.clone())?;
        let mut socket = TransportAdapter::new(socket.boxed(), details.current_time.clone());
        socket.set_timeout(what_is_left(details));
        connection.complete_io(&mut socket)?;
        let buffers = LazyBuffers::new(details.config.input_buffer_size(), details.config.output_buffer_size());
        let stream = StreamOwned::new(connection, socket);
        Ok(Some(TlsTransport { buffers, head: HeadFilter::default(), stream }))
    }
}

/// Returns the time that is left for the TLS handshake: the limit of a connection minus the time that TCP took.
fn what_is_left(details: &ConnectionDetails<'_>) -> NextTimeout {
    let mut timeout = details.timeout;
    if let Duration::Exact(limit) = timeout.after {
        timeout.after = Duration::Exact(limit.saturating_sub(waited(details)));
    }
    timeout
}

fn waited_ms(details: &ConnectionDetails<'_>) -> u64 {
    u64::try_from(waited(details).as_millis()).unwrap_or(u64::MAX)
}

fn waited(details: &ConnectionDetails<'_>) -> std::time::Duration {
    match ((details.current_time)(), details.now) {
        (Instant::Exact(now), Instant::Exact(began)) => now.duration_since(began),
        _ => std::time::Duration::ZERO,
    }
}

/// A TLS connection in the form that ureq uses. Answers pass through a `HeadFilter`.
pub struct TlsTransport {
    buffers: LazyBuffers,
    head: HeadFilter,
    stream: StreamOwned<ClientConnection, TransportAdapter>,
}

impl fmt::Debug for TlsTransport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TlsTransport").finish_non_exhaustive()
    }
}

/// The greatest number of bytes of an answer's head that are read at once.
const HEAD_PIECE: usize = 8 * 1024;

/// Reads from a TLS stream once. A missing close notification counts as the end, because many BMCs send none. The body's length and its
/// JSON show later whether the body is complete.
fn read(stream: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    match stream.read(into) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
        other => other,
    }
}

impl Transport for TlsTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.stream.sock.set_timeout(timeout);
        let output = self.buffers.output();
        let output = output.get(..amount).unwrap_or(output);
        self.stream.write_all(output)?;
        self.head.expect();
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.stream.sock.set_timeout(timeout);
        let input = self.buffers.input_append_buf();
        if self.head.is_through() {
            let amount = read(&mut self.stream, input)?;
            self.buffers.input_appended(amount);
            return Ok(amount > 0);
        }
        let mut piece = [0; HEAD_PIECE];
        let room = input.len().saturating_sub(self.head.waiting()).min(HEAD_PIECE);
        let piece = piece.get_mut(..room).unwrap_or_default();
        let amount = read(&mut self.stream, piece)?;
        let passed = match piece.get(..amount) {
            Some(read) if amount > 0 => self.head.pass(read),
            _ => self.head.rest(),
        };
        let place = input.get_mut(..passed.len()).ok_or(ureq::Error::LargeResponseHeader(passed.len(), room))?;
        place.copy_from_slice(&passed);
        self.buffers.input_appended(passed.len());
        // A removed line is progress, too.
        Ok(amount > 0 || !passed.is_empty())
    }

    fn is_open(&mut self) -> bool {
        self.stream.sock.get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}
