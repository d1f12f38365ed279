//! The first node's end of the channel: it connects once the other node serves, and sends requests.

use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustls::{ClientConnection, Connection};
use rustls_pki_types::ServerName;

use super::join_file::Keys;
use super::link::Link;
use super::{Error, Patience, tls};
use crate::operate::setup::machine::{Answer, Machine, Request};
use crate::os::clock::{self, Deadline};

/// Interval between two attempts to connect to a node that does not listen yet.
const AGAIN: Duration = Duration::from_millis(500);
const CONNECT: Duration = Duration::from_secs(2);
/// Interval at which the pinging thread checks whether the call has ended.
const LOOK: Duration = Duration::from_millis(100);

/// One end's credentials for the setup connection: the certificate and key that it presents, and the only certificate
/// that it accepts.
#[derive(Clone, Debug)]
pub struct Credentials {
    pub(super) own: Keys,
    /// The other end's certificate, in PEM, which is the only one that is accepted.
    pub(super) other: String,
}

/// Connects to the node `name` at `address`. If no server listens, tries again until `end`. Calls the function `still` between two
/// attempts, and gives up if it returns an error.
pub fn connect(
    name: &str,
    address: SocketAddr,
    credentials: &Credentials,
    patience: Patience,
    end: Deadline,
    mut still: impl FnMut() -> Result<(), String>,
) -> Result<Call, Error> {
    let config = tls::client(&credentials.own, &credentials.other)?;
    let server = ServerName::try_from(tls::NAME).map_err(|error| Error::Cut(error.to_string()))?;
    let leftover = Deadline::after(patience.leftover);
    loop {
        if let Ok(socket) = TcpStream::connect_timeout(&address, end.at_most(CONNECT).max(AGAIN)) {
            let connection = ClientConnection::new(config.clone(), server.clone());
            let connection = connection.map_err(|error| Error::Stranger(error.to_string()))?;
            match Link::open(Connection::Client(connection), socket, patience).and_then(greeted) {
                Ok(link) => return Ok(Call::new(name, link, patience)),
                Err(Error::Stranger(why)) if leftover.has_passed() => {
                    return Err(Error::Stranger(format!(
                        "{address} is not {name} with this join file ({why}): end what waits there, and type 'tandem setup join' with the new one"
                    )));
                }
                // The server may have been about to end.
                Err(_) => {}
            }
        }
        still().map_err(Error::Late)?;
        if end.has_passed() {
            return Err(Error::Late(format!("{name} was not there within the time")));
        }
        end.sleep(AGAIN);
    }
}

/// Sends one request and waits for its answer. In TLS 1.3 only this shows that the other end accepts our certificate.
fn greeted(mut link: Link) -> Result<Link, Error> {
    link.send(&Request::Ping(String::new()))?;
    link.receive::<Answer>()?;
    Ok(link)
}

/// The connection of the node that drives the setup to the node with 'tandem setup join'.
#[derive(Debug)]
pub struct Call {
    name: String,
    link: Arc<Mutex<Option<Link>>>,
    progress: Arc<Mutex<String>>,
    is_over: Arc<AtomicBool>,
    pinger: Option<JoinHandle<()>>,
}

impl Call {
    fn new(name: &str, link: Link, patience: Patience) -> Self {
        let link = Arc::new(Mutex::new(Some(link)));
        let progress = Arc::new(Mutex::new(String::new()));
        let is_over = Arc::new(AtomicBool::new(false));
        let (line, words, over) = (link.clone(), progress.clone(), is_over.clone());
        let pinger = thread::spawn(move || {
            loop {
                let beat = Deadline::after(patience.beat);
                while !beat.has_passed() {
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                    clock::sleep(LOOK);
                }
                let text = words.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let _ = ask(&line, &Request::Ping(text));
            }
        });
        Self { name: name.to_owned(), link, progress, is_over, pinger: Some(pinger) }
    }

    /// Sends the setup's progress to the operator at the other node.
    pub fn say(&self, text: &str) {
        text.clone_into(&mut self.progress.lock().unwrap_or_else(PoisonError::into_inner));
        let _ = ask(&self.link, &Request::Ping(text.to_owned()));
    }

    /// Sends the setup's result to the other node, and ends the connection.
    pub fn end(self, is_well: bool, text: &str) {
        let _ = ask(&self.link, &Request::End { is_well, text: text.to_owned() });
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(pinger) = self.pinger.take() {
            let _ = pinger.join();
        }
    }
}

/// Sends a request and returns its answer. After one failure the connection is dropped, because a later answer could
/// belong to an earlier request.
fn ask(link: &Mutex<Option<Link>>, request: &Request) -> Result<Answer, Error> {
    let mut held = link.lock().unwrap_or_else(PoisonError::into_inner);
    let gone = || Error::Cut("the other end has gone".to_owned());
    let answer = held.as_mut().ok_or_else(gone).and_then(|link| {
        link.send(request)?;
        loop {
            match link.receive::<Answer>()? {
                Answer::Working => {}
                answer => return Ok(answer),
            }
        }
    });
    if answer.is_err() {
        *held = None;
    }
    answer
}

impl Machine for Call {
    fn name(&self) -> &str {
        &self.name
    }

    fn ask(&self, request: Request) -> Result<Answer, String> {
        ask(&self.link, &request).map_err(|error| {
            format!("{}: {error}: type 'tandem setup' here again, and 'tandem setup join' there", self.name)
        })
    }
}
