//! The connections of clients: accepted, read without waiting, and closed.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};

use nix::sys::socket::{getsockopt, sockopt};

use super::core::{Event, Id, Peer};
use crate::os::proc;

/// The greatest number of reads from one client before the main loop reads the other clients.
const READS: usize = 16;
const CHUNK: usize = 4_096;
/// The greatest number of connections that are accepted before the main loop reads the clients.
const ACCEPTS: usize = 128;

#[derive(Debug)]
pub(super) struct Clients {
    listener: UnixListener,
    next: Id,
    streams: BTreeMap<Id, UnixStream>,
}

impl Clients {
    pub(super) fn new(listener: UnixListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self { listener, next: 0, streams: BTreeMap::new() })
    }

    pub(super) fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Returns the clients' connections, in the order of their ids.
    pub(super) fn streams(&self) -> impl Iterator<Item = (Id, BorrowedFd<'_>)> {
        self.streams.iter().map(|(id, stream)| (*id, stream.as_fd()))
    }

    /// Accepts the pending connections of clients. Stops at the first one that cannot be accepted, and returns its error.
    pub(super) fn accept(&mut self) -> (Vec<Event>, io::Result<()>) {
        let mut events = Vec::new();
        for _ in 0..ACCEPTS {
            match self.listener.accept().and_then(|(stream, _)| stream.set_nonblocking(true).map(|()| stream)) {
                Ok(stream) => {
                    events.push(Event::Connected { id: self.next, peer: peer_of(&stream) });
                    self.streams.insert(self.next, stream);
                    self.next += 1;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if [ErrorKind::Interrupted, ErrorKind::ConnectionAborted].contains(&error.kind()) => {}
                Err(error) => return (events, Err(error)),
            }
        }
        (events, Ok(()))
    }

    /// Reads what a client has sent. Returns one event for the last byte, and one for the end of the connection if it has ended.
    pub(super) fn read(&mut self, id: Id) -> Vec<Event> {
        let Some(stream) = self.streams.get_mut(&id) else { return Vec::new() };
        let mut chunk = [0; CHUNK];
        let (mut last, mut is_closed) = (None, false);
        for _ in 0..READS {
            match stream.read(&mut chunk) {
                Ok(0) => is_closed = true,
                Ok(count) => {
                    last = chunk.get(..count).and_then(<[u8]>::last).copied();
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => is_closed = error.kind() != ErrorKind::WouldBlock,
            }
            break;
        }
        let bytes = last.map(|last| Event::Bytes { id, last });
        bytes.into_iter().chain(is_closed.then_some(Event::Closed { id })).collect()
    }

    /// Closes the connection of the client `id`.
    pub(super) fn drop(&mut self, id: Id) {
        self.streams.remove(&id);
    }
}

/// Returns the program at the other end of a connection. The kernel recorded its process id and user when the program connected.
fn peer_of(stream: &UnixStream) -> Peer {
    let found = getsockopt(stream, sockopt::PeerCredentials).ok();
    let name = found.and_then(|found| proc::name(found.pid())).unwrap_or_else(|| "unknown".to_owned());
    Peer { name, pid: found.map_or(0, |found| found.pid()), uid: found.map_or(u32::MAX, |found| found.uid()) }
}
