//! A BMC for tests: a TLS server on loopback that models systems with power states, and misbehaves on request.
//!
//! [`Server`] listens. [`World`] holds the BMC's state and the requests that it received. [`Fault`] makes a request
//! fail. [`agent`] runs the binary under test against it.

#![allow(dead_code, unused_imports, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "what fails here ends the test")]
#![allow(unreachable_pub, missing_debug_implementations, reason = "a part of each test program, not a library")]

pub mod accounts;
pub mod agent;
pub mod certificates;
pub mod http;
pub mod model;
pub mod sessions;
pub mod system;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned};

pub use certificates::{Authority, Kind as CertificateKind};
pub use http::{Reply, Request};
pub use model::{Fault, Misbehaviour, SessionSays, World};
pub use sessions::{Session, SessionsAre};
pub use system::System;

/// The way in which an emulated BMC handles a connection before any HTTP.
#[derive(Clone, Debug)]
pub enum Listening {
    Tls,
    /// The BMC supports TLS only up to 1.2, like BMCs of recent years.
    Tls12,
    /// The BMC speaks HTTP without TLS.
    PlainHttp,
    /// The BMC answers the client's TLS hello with these bytes, and closes.
    Bytes(Vec<u8>),
    /// The BMC accepts the connection, and sends nothing.
    Silence,
}

/// The network options of an emulated BMC.
pub struct Setup {
    pub listening: Listening,
    pub certificate: CertificateKind,
    pub address: &'static str,
}

impl Default for Setup {
    fn default() -> Self {
        Self { listening: Listening::Tls, certificate: CertificateKind::Good, address: "127.0.0.1" }
    }
}

/// An emulated BMC that runs. It stops when it is dropped.
pub struct Server {
    pub port: u16,
    pub address: &'static str,
    pub authority: Authority,
    /// The SHA-256 fingerprint of the BMC's certificate.
    pub fingerprint: String,
    world: Arc<Mutex<World>>,
    handshakes: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

impl Server {
    /// Starts a BMC without faults, with one system that is On.
    pub fn start() -> Self {
        Self::with(World::one_system(), Setup::default())
    }

    pub fn with_world(world: World) -> Self {
        Self::with(world, Setup::default())
    }

    pub fn with(world: World, setup: Setup) -> Self {
        let authority = Authority::new();
        let identity = authority.issue(setup.certificate);
        let versions: &[&rustls::SupportedProtocolVersion] = match setup.listening {
            Listening::Tls12 => &[&rustls::version::TLS12],
            _ => rustls::ALL_VERSIONS,
        };
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_protocol_versions(versions)
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![identity.certificate.clone()], identity.key.clone_key())
            .unwrap();
        let listener = TcpListener::bind((setup.address, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        // An earlier test that was killed may have left logins for this port.
        forget_logins(port);
        let server = Self {
            port,
            address: setup.address,
            fingerprint: identity.fingerprint.clone(),
            authority,
            world: Arc::new(Mutex::new(world)),
            handshakes: Arc::default(),
            stop: Arc::default(),
        };
        let (world, handshakes, stop) = (server.world.clone(), server.handshakes.clone(), server.stop.clone());
        let (listening, config) = (setup.listening, Arc::new(config));
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(socket) = socket else { continue };
                let (world, handshakes, stop) = (world.clone(), handshakes.clone(), stop.clone());
                let (listening, config) = (listening.clone(), config.clone());
                std::thread::spawn(move || serve(socket, &listening, config, &world, &handshakes, &stop));
            }
        });
        server
    }

    /// Returns the state of the emulated BMC, with the requests that it received.
    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// Returns the number of TLS connections that clients have opened.
    pub fn handshakes(&self) -> usize {
        self.handshakes.load(Ordering::Relaxed)
    }

    /// Returns the reset types that clients have posted, including those that the BMC refused.
    pub fn posted(&self) -> Vec<String> {
        self.world().resets.clone()
    }

    /// Returns `METHOD path` of every received request, in order.
    pub fn requests(&self) -> Vec<String> {
        self.world().log.iter().map(|request| format!("{} {}", request.method, request.path)).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes the listener.
        let _ = TcpStream::connect((self.address, self.port));
        forget_logins(self.port);
    }
}

/// Deletes the fence agent's record of its logins at a BMC on this port.
pub fn forget_logins(port: u16) {
    let of_this_port = |name: &str| name.starts_with("fence_redfish_rs-") && name.contains(&format!(":{port}-"));
    let Ok(entries) = std::fs::read_dir("/run") else { return };
    for entry in entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(of_this_port)) {
        let _ = std::fs::remove_file(entry.path());
    }
}

fn serve(
    mut socket: TcpStream,
    listening: &Listening,
    config: Arc<ServerConfig>,
    world: &Mutex<World>,
    handshakes: &AtomicUsize,
    stop: &AtomicBool,
) {
    let _ = socket.set_read_timeout(Some(Duration::from_secs(60)));
    let _ = socket.set_nodelay(true);
    match listening {
        Listening::Tls | Listening::Tls12 => {
            let raw = socket.try_clone().unwrap();
            let Ok(connection) = ServerConnection::new(config) else { return };
            let mut stream = StreamOwned::new(connection, socket);
            while stream.conn.is_handshaking() {
                if stream.conn.complete_io(&mut stream.sock).is_err() {
                    return;
                }
            }
            handshakes.fetch_add(1, Ordering::Relaxed);
            if converse(&mut stream, &raw, world, stop) == Parting::Polite {
                stream.conn.send_close_notify();
                let _ = stream.conn.complete_io(&mut stream.sock);
            }
        }
        Listening::PlainHttp => {
            // A TLS hello is no request, and such servers answer so.
            let mut hello = [0; 64];
            let _ = socket.read(&mut hello);
            let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
        Listening::Bytes(bytes) => {
            let mut hello = [0; 4096];
            let _ = socket.read(&mut hello);
            let _ = socket.write_all(bytes);
            let _ = socket.flush();
            wait_for(stop, Duration::from_millis(300));
        }
        Listening::Silence => wait_for(stop, Duration::from_secs(60)),
    }
}

/// Answers the requests on one connection until the client or the BMC ends it.
fn converse(stream: &mut (impl Read + Write), raw: &TcpStream, world: &Mutex<World>, stop: &AtomicBool) -> Parting {
    let mut answered = 0;
    let peer = raw.peer_addr().map(|peer| peer.ip().to_string()).unwrap_or_default();
    while let Some(read) = http::read_request(stream) {
        let request = Request { peer: peer.clone(), ..read };
        let keeps = world.lock().unwrap().answers_per_connection > answered;
        let reply = if keeps { world.lock().unwrap().answer(&request) } else { Reply::Reset };
        answered += 1;
        match reply {
            Reply::Whole { bytes, close } => {
                if stream.write_all(&bytes).and_then(|()| stream.flush()).is_err() || close {
                    return Parting::Polite;
                }
            }
            Reply::Later { after, bytes } => {
                wait_for(stop, after);
                if stream.write_all(&bytes).and_then(|()| stream.flush()).is_err() {
                    return Parting::Rude;
                }
            }
            Reply::Drip { bytes, every } => {
                for byte in bytes {
                    if stop.load(Ordering::Relaxed) || stream.write_all(&[byte]).and_then(|()| stream.flush()).is_err()
                    {
                        return Parting::Rude;
                    }
                    wait_for(stop, every);
                }
            }
            Reply::Endless { head, chunk } => {
                let _ = stream.write_all(&head);
                while !stop.load(Ordering::Relaxed) && stream.write_all(&chunk).is_ok() {}
                return Parting::Rude;
            }
            Reply::Reset => {
                // Closing with a linger time of zero sends a reset.
                let _ = socket2::SockRef::from(raw).set_linger(Some(Duration::ZERO));
                return Parting::Rude;
            }
            Reply::Close => return Parting::Rude,
            Reply::Silence => {
                wait_for(stop, Duration::from_secs(60));
                return Parting::Rude;
            }
        }
    }
    Parting::Polite
}

/// The way in which a connection ends: with TLS's `close_notify` (`Polite`) or without.
#[derive(PartialEq)]
enum Parting {
    Polite,
    Rude,
}

/// Runs `check` for all rows at the same time, because the checks mostly wait.
pub fn at_once<Row: Send>(rows: impl IntoIterator<Item = Row>, check: impl Fn(Row) + Sync) {
    std::thread::scope(|scope| {
        let running: Vec<_> = rows.into_iter().map(|row| scope.spawn(|| check(row))).collect();
        for one in running {
            one.join().unwrap();
        }
    });
}

fn wait_for(stop: &AtomicBool, time: Duration) {
    let deadline = tandem::os::clock::Deadline::after(time);
    while !stop.load(Ordering::Relaxed) && !deadline.has_passed() {
        deadline.sleep(Duration::from_millis(10));
    }
}
