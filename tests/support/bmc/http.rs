//! A minimal HTTP, for a server that must be able to violate it.

use std::io::{Read, Write};
use std::time::Duration;

/// An HTTP request that the emulated BMC has received.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The IP address of the client that sent the request.
    pub peer: String,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// The way in which the emulated BMC answers a request, or does not.
#[derive(Clone, Debug)]
pub enum Reply {
    Whole { bytes: Vec<u8>, close: bool },
    Later { after: Duration, bytes: Vec<u8> },
    Drip { bytes: Vec<u8>, every: Duration },
    Endless { head: Vec<u8>, chunk: Vec<u8> },
    Reset,
    Close,
    Silence,
}

impl Reply {
    pub fn json(status: u16, headers: &[(&str, &str)], body: &str) -> Self {
        Self::Whole { bytes: message(status, headers, body.as_bytes()), close: false }
    }
}

/// Returns the bytes of a complete HTTP answer, with the length of its body.
pub fn message(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("HTTP/1.1 {status} Whatever\r\nOData-Version: 4.0\r\n").into_bytes();
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
        bytes.extend_from_slice(b"Content-Type: application/json\r\n");
    }
    for (name, value) in headers {
        bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    if status != 204 {
        bytes.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    bytes
}

/// Reads one request. Returns `None` when the client has closed the connection.
pub fn read_request(stream: &mut (impl Read + Write)) -> Option<Request> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 || head.len() > 64 * 1024 {
            return None;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let mut request =
        Request { method: first.next()?.to_owned(), path: first.next()?.to_owned(), ..Request::default() };
    for line in lines {
        if let Some((name, value)) = line.split_once(':') {
            request.headers.push((name.to_owned(), value.trim().to_owned()));
        }
    }
    let length = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    request.body = vec![0; length];
    stream.read_exact(&mut request.body).ok()?;
    Some(request)
}
