//! An answer of any status: the good answer, or the meaning of the refusal.

use std::io::Read as _;
use std::time::Duration;

use flate2::read::GzDecoder;
use serde_json::Value;
use time::OffsetDateTime;
use ureq::http::{HeaderMap, StatusCode};

use super::complaint;
use super::failure::FailureKind;
use super::limits::BODY_LIMIT;
use super::resource::type_of;
use crate::os::secret::Secret;

/// The longest wait that a BMC can ask for by `Retry-After`.
const PATIENCE: Duration = Duration::from_secs(5);

/// A BMC's complete answer to a request, with a status below 300.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub location: Option<String>,
    pub token: Option<Secret>,
    pub etag: Option<String>,
    pub body: Vec<u8>,
}

/// A BMC's complete answer to a request, with any status.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) location: Option<String>,
    pub(super) token: Option<Secret>,
    etag: Option<String>,
    /// The BMC's clock when it answered, in seconds since 1970; `None` if the answer has no `Date`.
    pub(super) date: Option<i64>,
    retry_after: Option<Duration>,
    pub(super) body: Vec<u8>,
}

impl Reply {
    pub(super) fn new(status: u16, headers: &HeaderMap, body: Vec<u8>) -> Self {
        Self {
            status,
            location: text_of(headers, "Location"),
            token: headers.get("X-Auth-Token").map(|token| Secret::new(token.as_bytes())),
            etag: text_of(headers, "ETag"),
            date: text_of(headers, "Date")
                .and_then(|date| httpdate::parse_http_date(&date).ok())
                .map(|date| OffsetDateTime::from(date).unix_timestamp()),
            retry_after: text_of(headers, "Retry-After")
                .and_then(|seconds| seconds.trim().parse().ok())
                .map(|seconds| Duration::from_secs(seconds).min(PATIENCE)),
            body: unpacked(headers, body),
        }
    }

    /// Returns the answer if its status is below 300. Otherwise returns the kind of the refusal, the status with its name, and the BMC's
    /// text.
    pub(super) fn judge(self) -> Result<Answer, (FailureKind, String, String)> {
        let Self { status, location, token, etag, retry_after, body, .. } = self;
        if status < 300 {
            return Ok(Answer { status, location, token, etag, body });
        }
        let complaint = complaint::read(&body);
        let kind = complaint.kind(status, retry_after);
        let reason = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
        Err((kind, format!("{status} {}", reason.unwrap_or("unknown status")), complaint.sentence()))
    }
}

fn text_of(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

/// Decompresses a body, because some BMCs compress without being asked. Returns a body that cannot be decompressed as it is. Cuts off the
/// part beyond [`BODY_LIMIT`].
fn unpacked(headers: &HeaderMap, body: Vec<u8>) -> Vec<u8> {
    if !text_of(headers, "Content-Encoding").is_some_and(|coding| coding.trim().eq_ignore_ascii_case("gzip")) {
        return body;
    }
    let mut plain = Vec::new();
    match GzDecoder::new(&body[..]).take(BODY_LIMIT).read_to_end(&mut plain) {
        Ok(_) => plain,
        Err(_) => body,
    }
}

/// Parses JSON, even if its texts have bytes that JSON forbids: invalid UTF-8 in an unset asset tag, control characters, or NUL bytes. No
/// field that the agent needs has such bytes.
fn parse(text: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice(text).or_else(|strict| {
        let blank = |character: char| if character.is_control() { ' ' } else { character };
        let forgiven: String = String::from_utf8_lossy(text).chars().map(blank).collect();
        serde_json::from_str(&forgiven).map_err(|_| strict)
    })
}

/// Returns the JSON object in a body. The error describes any other contents.
pub(super) fn document(body: &[u8]) -> Result<Value, String> {
    let text = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    match parse(text) {
        Ok(document) if document.is_object() => Ok(document),
        Ok(other) => Err(format!("the answer is {} instead of a resource", type_of(&other))),
        Err(_) if text.is_empty() => Err("the answer is empty".to_owned()),
        Err(_) if text.trim_ascii_start().starts_with(b"<") => Err("the answer is HTML, not JSON".to_owned()),
        Err(error) if error.is_eof() => Err("the answer is cut off in the middle of its JSON".to_owned()),
        Err(_) => Err("the answer is not valid JSON".to_owned()),
    }
}
