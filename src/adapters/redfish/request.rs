//! One request to a BMC: the method, the location, the credentials and the body.

use base64::Engine as _;
use serde_json::Value;
use ureq::http::request::Builder;
use ureq::http::{self, HeaderValue};
use zeroize::Zeroizing;

use crate::adapters::https::address::Location;
use crate::os::secret::Secret;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
    Patch,
    Delete,
}

impl Method {
    pub fn word(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// Returns whether a request with this method may have changed something although its answer was lost. The client does not send such a
    /// request twice.
    pub(super) fn changes(self) -> bool {
        matches!(self, Self::Post | Self::Patch)
    }
}

#[derive(Clone, Debug, Default)]
pub enum Credentials {
    #[default]
    None,
    /// The value of the `Authorization` header.
    Basic(Secret),
    /// The value of the `X-Auth-Token` header.
    Token(Secret),
}

impl Credentials {
    /// Returns the credentials for basic authentication. The password is sent as it is, even if it is not UTF-8.
    pub fn basic(user: &str, password: &Secret) -> Self {
        let both = Zeroizing::new([user.as_bytes(), b":", password.reveal()].concat());
        let encoded = Zeroizing::new(base64::engine::general_purpose::STANDARD.encode(&both));
        Self::Basic(Secret::new(["Basic ", &encoded].concat()))
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub method: Method,
    pub place: &'a Location,
    pub body: Option<&'a Value>,
    pub credentials: &'a Credentials,
    /// The value of the header `If-Match`: the request has an effect only on this state of the resource. `None` omits the header.
    pub if_match: Option<&'a str>,
    /// True if the request needs a new connection. The BMC may have closed an open one, and the agent could then not know whether the
    /// request has arrived.
    pub fresh: bool,
}

impl<'a> Request<'a> {
    pub fn get(place: &'a Location, credentials: &'a Credentials) -> Self {
        Self { method: Method::Get, place, body: None, credentials, if_match: None, fresh: false }
    }

    pub fn post(place: &'a Location, body: &'a Value, credentials: &'a Credentials) -> Self {
        Self { method: Method::Post, place, body: Some(body), credentials, if_match: None, fresh: false }
    }

    pub fn patch(place: &'a Location, body: &'a Value, credentials: &'a Credentials) -> Self {
        Self { method: Method::Patch, place, body: Some(body), credentials, if_match: None, fresh: false }
    }

    pub fn delete(place: &'a Location, credentials: &'a Credentials) -> Self {
        Self { method: Method::Delete, place, body: None, credentials, if_match: None, fresh: false }
    }

    /// Returns the head of the HTTP request: method, URL and headers. `identity` declines compression, and `keep` keeps the connection
    /// open for the next request.
    pub(super) fn head(&self, url: String, identity: bool, keep: bool) -> Result<Builder, http::Error> {
        let mut head = http::Request::builder().uri(url).method(self.method.word()).header("OData-Version", "4.0");
        if identity {
            head = head.header("Accept-Encoding", "identity");
        }
        if !keep {
            head = head.header("Connection", "close");
        }
        if let Some(etag) = self.if_match {
            head = head.header("If-Match", etag);
        }
        if self.body.is_some() {
            head = head.header("Content-Type", "application/json");
        }
        Ok(match self.credentials {
            Credentials::None => head,
            Credentials::Basic(value) => head.header("Authorization", sensitive(value)?),
            Credentials::Token(value) => head.header("X-Auth-Token", sensitive(value)?),
        })
    }
}

fn sensitive(value: &Secret) -> Result<HeaderValue, http::Error> {
    let mut header = HeaderValue::from_bytes(value.reveal())?;
    header.set_sensitive(true);
    Ok(header)
}
