//! The sockets of the agent, one for each network, bound to this node's own addresses.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::task::{Context, Poll, ready};

use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use tokio::io::unix::AsyncFd;

use super::readable::readable;
use crate::fencing_agent::config::refusal::Refusal;

/// The longest datagram that is received, in bytes.
pub(super) const LONGEST: usize = 65_536;

/// Returns the interface of each of this machine's addresses, by address.
pub(crate) fn interfaces() -> BTreeMap<IpAddr, String> {
    let found = getifaddrs().into_iter().flatten().filter_map(|found| {
        let address = found.address?;
        let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
        let address = v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))?;
        Some((address, found.interface_name))
    });
    found.collect()
}

/// Returns the interface of each of `addresses`. Refuses an address that no interface of this machine has.
pub(crate) fn own_interfaces(addresses: &[SocketAddr]) -> Result<Vec<String>, Refusal> {
    let interfaces = interfaces();
    let own = addresses
        .iter()
        .map(|address| interfaces.get(&address.ip()).cloned().ok_or(Refusal::NotLocal { address: address.ip() }));
    own.collect()
}

/// Binds a UDP socket to each of `addresses`.
pub(crate) fn bind(addresses: &[SocketAddr]) -> Result<Vec<UdpSocket>, Refusal> {
    let bound = addresses.iter().map(|address| {
        let socket = UdpSocket::bind(address).and_then(|socket| {
            socket.set_nonblocking(true)?;
            Ok(socket)
        });
        socket.map_err(|source| match source.kind() {
            ErrorKind::AddrNotAvailable => Refusal::NotLocal { address: address.ip() },
            _ => Refusal::PortTaken { address: *address, source },
        })
    });
    bound.collect()
}

/// The UDP sockets, one for each network. They wake the main loop only when a datagram has arrived. Sockets of the tokio runtime would also
/// wake the loop for each datagram that this agent has sent.
#[derive(Debug)]
pub(crate) struct Networks {
    sockets: Vec<AsyncFd<UdpSocket>>,
    /// The network that is read first. It changes with each read, so that no network delays the others.
    turn: usize,
}

impl Networks {
    /// Registers the sockets, which must be nonblocking. Must be called inside a tokio runtime.
    pub(super) fn new(sockets: Vec<UdpSocket>) -> io::Result<Self> {
        let sockets = sockets.into_iter().map(readable).collect::<io::Result<_>>()?;
        Ok(Self { sockets, turn: 0 })
    }

    /// Sends a datagram without waiting. An error means that the datagram is lost.
    pub(super) fn send(&self, network: usize, to: SocketAddr, datagram: &[u8]) -> io::Result<()> {
        let socket = self.sockets.get(network).ok_or(Errno::ENETUNREACH)?;
        socket.get_ref().send_to(datagram, to).map(drop)
    }

    /// Waits for a datagram. Returns its network and its length. Ignores the kernel's errors about datagrams that this agent has sent.
    pub(super) async fn receive(&mut self, buffer: &mut [u8]) -> (usize, usize) {
        let Self { sockets, turn } = self;
        std::future::poll_fn(|context| {
            for step in 0..sockets.len() {
                let at = (*turn + step) % sockets.len();
                let Some(socket) = sockets.get(at) else { continue };
                if let Poll::Ready(length) = poll_receive(socket, context, buffer) {
                    *turn = at + 1;
                    return Poll::Ready((at, length));
                }
            }
            Poll::Pending
        })
        .await
    }
}

fn poll_receive(socket: &AsyncFd<UdpSocket>, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<usize> {
    // The runtime exists as long as the loop, so the socket stays registered.
    while let Ok(mut readable) = ready!(socket.poll_read_ready(context)) {
        // An error is the kernel's answer to an earlier datagram, such as "port unreachable", or there is nothing more to read.
        if let Ok(Ok((length, _))) = readable.try_io(|socket| socket.get_ref().recv_from(buffer)) {
            return Poll::Ready(length);
        }
    }
    Poll::Pending
}
