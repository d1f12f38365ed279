//! One connection: the handshake, and lines of JSON in both directions.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use rustls::Connection;
use serde::Serialize;
use serde::de::DeserializeOwned;
use zeroize::Zeroizing;

use super::{Error, Patience};
use crate::os::clock::Deadline;

/// Largest size of a request or an answer, in bytes.
const LINE: usize = 8 * 1024 * 1024;
const PIECE: usize = 16 * 1024;
/// Interval at which a wait for data checks its deadline.
const BEAT: Duration = Duration::from_millis(500);

/// A TLS connection between the two nodes, after its handshake.
pub(super) struct Link {
    connection: Connection,
    socket: TcpStream,
    /// Received bytes that are not yet parsed. They may contain secrets.
    read: Zeroizing<Vec<u8>>,
    patience: Patience,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Link")
    }
}

fn is_a_pause(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

impl Link {
    /// Performs the TLS handshake. Fails after its time limit, even if the other end sends its bytes slowly.
    pub(super) fn open(mut connection: Connection, socket: TcpStream, patience: Patience) -> Result<Self, Error> {
        let end = Deadline::after(patience.handshake);
        let cut = |error: io::Error| Error::Cut(error.to_string());
        socket.set_nodelay(true).map_err(cut)?;
        socket.set_read_timeout(Some(BEAT)).map_err(cut)?;
        socket.set_write_timeout(Some(patience.silence)).map_err(cut)?;
        let mut socket = socket;
        while connection.is_handshaking() || connection.wants_write() {
            if end.has_passed() {
                return Err(Error::Cut("no handshake within its time".to_owned()));
            }
            if connection.wants_write() {
                connection.write_tls(&mut socket).map_err(cut)?;
                continue;
            }
            match connection.read_tls(&mut socket) {
                Ok(0) => return Err(Error::Cut("it was closed in the handshake".to_owned())),
                Ok(_) => {}
                Err(error) if is_a_pause(&error) => continue,
                Err(error) => return Err(cut(error)),
            }
            if let Err(error) = connection.process_new_packets() {
                // The other end receives the reason.
                let _ = connection.write_tls(&mut socket);
                return Err(Error::Stranger(error.to_string()));
            }
        }
        Ok(Self { connection, socket, read: Zeroizing::default(), patience })
    }

    pub(super) fn send(&mut self, message: &impl Serialize) -> Result<(), Error> {
        let cut = |error: io::Error| Error::Cut(error.to_string());
        let mut line = Zeroizing::new(Vec::with_capacity(PIECE));
        serde_json::to_writer(&mut *line, message).map_err(|error| Error::Cut(error.to_string()))?;
        line.push(b'\n');
        let mut rest = line.as_slice();
        while !rest.is_empty() || self.connection.wants_write() {
            let taken = self.connection.writer().write(rest).map_err(cut)?;
            rest = &rest[taken..];
            while self.connection.wants_write() {
                self.connection.write_tls(&mut self.socket).map_err(cut)?;
            }
        }
        Ok(())
    }

    /// Receives the next line and parses it. Fails if the other end is silent for too long, or if the line is too long.
    pub(super) fn receive<T: DeserializeOwned>(&mut self) -> Result<T, Error> {
        let end = Deadline::after(self.patience.silence);
        loop {
            if let Some(at) = self.read.iter().position(|byte| *byte == b'\n') {
                let rest = Zeroizing::new(self.read.split_off(at + 1));
                let line = std::mem::replace(&mut self.read, rest);
                // The parser's error is dropped, because it could quote a secret.
                return serde_json::from_slice(&line)
                    .map_err(|_| Error::Cut("a line could not be understood".to_owned()));
            }
            if self.read.len() > LINE {
                return Err(Error::Cut("a line was too long".to_owned()));
            }
            self.more(end)?;
        }
    }

    fn more(&mut self, end: Deadline) -> Result<(), Error> {
        let mut piece = Zeroizing::new([0_u8; PIECE]);
        match self.connection.reader().read(&mut *piece) {
            Ok(0) => return Err(Error::Cut("the other end has gone".to_owned())),
            Ok(length) => {
                self.read.extend_from_slice(&piece[..length]);
                return Ok(());
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(Error::Cut(error.to_string())),
        }
        match self.connection.read_tls(&mut self.socket) {
            Ok(_) => match self.connection.process_new_packets() {
                Ok(_) => Ok(()),
                Err(rustls::Error::AlertReceived(alert)) => Err(Error::Stranger(format!("it refused us: {alert:?}"))),
                Err(error) => Err(Error::Cut(error.to_string())),
            },
            Err(error) if is_a_pause(&error) && !end.has_passed() => Ok(()),
            Err(error) if is_a_pause(&error) => {
                let seconds = self.patience.silence.as_secs();
                Err(Error::Cut(format!("no sign of the other end for {seconds} s")))
            }
            Err(error) => Err(Error::Cut(error.to_string())),
        }
    }
}
