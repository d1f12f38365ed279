//! The other node's end of the channel: it serves only the client that has the first node's half of the keys.

use std::collections::{HashSet, VecDeque};
use std::io::ErrorKind;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel, sync_channel};
use std::thread;
use std::time::Duration;

use rustls::{Connection, ServerConfig, ServerConnection};

use super::join_file::Join;
use super::link::Link;
use super::{Error, Patience, tls};
use crate::operate::setup::machine::{Answer, Here, Request};
use crate::os::clock::Deadline;

/// Interval between two checks for new connections.
const LOOK: Duration = Duration::from_millis(100);
/// Largest number of connections in their handshake. A further one closes the oldest.
const AT_ONCE: usize = 16;
/// Largest number of clients without the right keys that are reported. Each address is reported once for the same
/// failure.
const STRANGERS: usize = 32;

/// An event of 'tandem setup join' while it serves the node that drives the setup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Serving {
    /// A client without the right keys has connected; the text has its address and the failure.
    Stranger(String),
    /// The node that drives the setup has connected with the right keys.
    Connected,
    /// The node that drives the setup reports its progress.
    Progress(String),
}

/// Waits until `end` for the node that drives the setup to connect, and carries out its requests. Returns whether the setup ended well,
/// and its result in words. Calls the function `still` until the connection, and gives up if it returns an error.
pub fn serve(
    at: SocketAddr,
    join: &Join,
    here: &Here,
    patience: Patience,
    end: Deadline,
    still: impl FnMut() -> Result<(), String>,
    mut told: impl FnMut(Serving),
) -> Result<(bool, String), Error> {
    let mut link = accept(at, join, patience, end, still, &mut told)?;
    told(Serving::Connected);
    loop {
        let request: Request = link.receive()?;
        match request {
            Request::End { is_well, text } => {
                link.send(&Answer::Done)?;
                return Ok((is_well, text));
            }
            Request::Ping(text) => {
                told(Serving::Progress(text));
                link.send(&Answer::Done)?;
            }
            request => {
                let answer = work(&mut link, here, request, patience)?;
                link.send(&answer)?;
            }
        }
    }
}

/// Accepts the first connection with the right keys. The port is closed after that, so that etcd can use it.
fn accept(
    at: SocketAddr,
    join: &Join,
    patience: Patience,
    end: Deadline,
    mut still: impl FnMut() -> Result<(), String>,
    told: &mut impl FnMut(Serving),
) -> Result<Link, Error> {
    let credentials = join.credentials();
    let config = tls::server(&credentials.own, &credentials.other)?;
    let listener = listen(at, Deadline::after(patience.leftover))?;
    let cut = |error: std::io::Error| Error::Cut(error.to_string());
    listener.set_nonblocking(true).map_err(cut)?;
    // Each handshake has a thread of its own, because a silent client would keep the first node waiting.
    let (opens, opened) = channel::<(SocketAddr, Result<Link, Error>)>();
    let mut newest = VecDeque::new();
    let mut strangers = HashSet::new();
    while !end.has_passed() {
        still().map_err(Error::Late)?;
        while let Ok((from, result)) = opened.try_recv() {
            match result {
                Ok(link) => return Ok(link),
                Err(why) if strangers.len() < STRANGERS && strangers.insert(format!("{}: {why}", from.ip())) => {
                    told(Serving::Stranger(format!("{from}: {why}")));
                }
                Err(_) => {}
            }
        }
        let Ok((socket, from)) = listener.accept() else {
            end.sleep(LOOK);
            continue;
        };
        if newest.len() >= AT_ONCE
            && let Some(oldest) = newest.pop_front()
        {
            let _ = TcpStream::shutdown(&oldest, Shutdown::Both);
        }
        newest.push_back(socket.try_clone().map_err(cut)?);
        let (config, opens) = (config.clone(), opens.clone());
        thread::spawn(move || {
            // The receiver is gone if another connection was the first node's.
            let _ = opens.send((from, shaken(config, socket, patience)));
        });
    }
    Err(Error::Late(format!(
        "{} did not ask within the time: type 'tandem setup' there, and this with the file that it writes",
        join.from
    )))
}

fn shaken(config: Arc<ServerConfig>, socket: TcpStream, patience: Patience) -> Result<Link, Error> {
    socket.set_nonblocking(false).map_err(|error| Error::Cut(error.to_string()))?;
    let connection = ServerConnection::new(config).map_err(|error| Error::Stranger(error.to_string()))?;
    Link::open(Connection::Server(connection), socket, patience)
}

/// Listens on the address `at`. If the port is in use, tries again until `leftover`, because an interrupted command may still hold the
/// port.
fn listen(at: SocketAddr, leftover: Deadline) -> Result<TcpListener, Error> {
    loop {
        let error = match TcpListener::bind(at) {
            Ok(listener) => return Ok(listener),
            Err(error) => error,
        };
        let what = if error.kind() != ErrorKind::AddrInUse {
            format!("the address {at} cannot be listened on ({error}): 'ip address' shows those of this machine")
        } else if leftover.has_passed() {
            format!("something else has the port {}: 'ss -lntp' shows what; stop it", at.port())
        } else {
            leftover.sleep(LOOK);
            continue;
        };
        return Err(Error::Late(what));
    }
}

/// Carries out a request in a thread of its own. Meanwhile sends [`Answer::Working`], so that the other end keeps waiting.
fn work(link: &mut Link, here: &Here, request: Request, patience: Patience) -> Result<Answer, Error> {
    thread::scope(|scope| {
        let (done, answered) = sync_channel(1);
        scope.spawn(move || done.send(here.answer(request)));
        let mut broken = None;
        loop {
            match answered.recv_timeout(patience.beat) {
                Ok(answer) => return broken.map_or(Ok(answer), Err),
                Err(RecvTimeoutError::Timeout) => {
                    // The work that has begun is completed, even if the other end no longer waits for it.
                    if broken.is_none() {
                        broken = link.send(&Answer::Working).err();
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::Cut("a request could not be answered".to_owned()));
                }
            }
        }
    })
}
