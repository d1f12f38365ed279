//! The translation of ureq's and rustls' errors to a kind and a sentence. This module is pure.

use super::failure::{Failure, FailureKind};
use super::limits::{BODY_LIMIT, HEADER_LIMIT, WORDS};
use crate::adapters::https::tls::{self, Handshake};
use crate::os::secret::Scrubber;

/// Explains in one sentence why a request got no answer. `made` is the number of connections that the client had made before this
/// request.
pub fn transport(
    what: &str,
    error: &ureq::Error,
    made: usize,
    handshake: Handshake<'_>,
    scrubber: &Scrubber,
) -> Failure {
    let fail = |kind, text: String| Failure::new(kind, format!("{what}: {text}"));
    let over_tls = |inner: &rustls::Error| {
        let (hopeless, text) = tls::explain(inner, handshake);
        fail(if hopeless { FailureKind::Untrusted } else { FailureKind::Interrupted }, text)
    };
    match error {
        // The time of a whole request may be over before that of its connection is.
        _ if is_about_connecting(error) || made == 0 && timed_out(error) => {
            fail(FailureKind::Unreachable, "timed out without a connection".to_owned())
        }
        ureq::Error::Rustls(inner) => over_tls(inner),
        ureq::Error::Io(io) => match io.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(inner) => over_tls(inner),
            None => by_io(what, io),
        },
        ureq::Error::HostNotFound => {
            fail(FailureKind::Unreachable, "the name of the BMC cannot be resolved".to_owned())
        }
        ureq::Error::Timeout(_) => fail(FailureKind::Silent, "timed out without a complete answer".to_owned()),
        ureq::Error::ConnectionFailed => fail(FailureKind::Unreachable, "no connection".to_owned()),
        ureq::Error::BodyExceedsLimit(_) => {
            fail(FailureKind::Refused, format!("the answer is larger than {} KiB", BODY_LIMIT / 1024))
        }
        ureq::Error::LargeResponseHeader(..) => {
            fail(FailureKind::Refused, format!("the header of the answer is larger than {} KiB", HEADER_LIMIT / 1024))
        }
        ureq::Error::Protocol(_) | ureq::Error::Http(_) => fail(
            FailureKind::Garbled,
            format!("the answer is not HTTP ({})", scrubber.clean(&error.to_string(), WORDS)),
        ),
        other => fail(FailureKind::Interrupted, scrubber.clean(&other.to_string(), WORDS)),
    }
}

fn is_about_connecting(error: &ureq::Error) -> bool {
    matches!(error, ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve))
}

fn timed_out(error: &ureq::Error) -> bool {
    use std::io::ErrorKind;
    match error {
        ureq::Error::Timeout(_) => true,
        ureq::Error::Io(io) => matches!(io.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock),
        _ => false,
    }
}

fn by_io(what: &str, error: &std::io::Error) -> Failure {
    use std::io::ErrorKind;
    let (kind, text) = match error.kind() {
        ErrorKind::ConnectionRefused => (FailureKind::Unreachable, "connection refused".to_owned()),
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
            (FailureKind::Unreachable, "no route to it".to_owned())
        }
        ErrorKind::NetworkDown | ErrorKind::AddrNotAvailable | ErrorKind::PermissionDenied => {
            (FailureKind::Unreachable, format!("no connection: {error}"))
        }
        ErrorKind::TimedOut | ErrorKind::WouldBlock => {
            (FailureKind::Silent, "timed out without a complete answer".to_owned())
        }
        ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted => {
            (FailureKind::Interrupted, "the BMC closed the connection before it had answered".to_owned())
        }
        ErrorKind::ConnectionReset => (FailureKind::Interrupted, "the BMC reset the connection".to_owned()),
        _ => (FailureKind::Interrupted, format!("the connection failed: {error}")),
    };
    Failure::new(kind, format!("{what}: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silent_is_only_who_was_there() {
        let shown = tls::Shown::default();
        let handshake = Handshake { trust: &tls::Trust::System, shown: &shown, wants_certificate: false };
        let kind = |error: &ureq::Error, made| transport("x", error, made, handshake, &Scrubber::default()).kind;
        let io = |kind: std::io::ErrorKind| ureq::Error::Io(kind.into());
        for late in [ureq::Error::Timeout(ureq::Timeout::Global), io(std::io::ErrorKind::TimedOut)] {
            assert_eq!((kind(&late, 0), kind(&late, 1)), (FailureKind::Unreachable, FailureKind::Silent), "{late}");
        }
        assert_eq!(kind(&io(std::io::ErrorKind::ConnectionReset), 0), FailureKind::Interrupted);
    }
}
