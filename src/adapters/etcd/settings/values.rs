//! Values of settings, from text to the form of the configuration file. The checks are as strict as etcd's, because etcd exits at
//! a bad value.

use std::net::SocketAddr;

use serde_json::{Map, Value, json};

use super::super::duration;
use super::Error;
use super::table::{CIPHER_SUITES, LOG_STREAMS, UINT32, ValueKind};
use crate::adapters::options::yes_no;
use crate::base::json;

pub(super) fn typed(name: &str, value: &str, kind: ValueKind) -> Result<Value, Error> {
    let checked = match kind {
        ValueKind::Bool => yes_no::of_etcd(value).map(|is_on| json!(is_on)),
        ValueKind::Integer(least, most) => {
            value.parse::<u64>().ok().filter(|number| (least..=most).contains(number)).map(|number| json!(number))
        }
        ValueKind::Duration(least) => {
            duration::nanoseconds(value).filter(|number| *number >= least).map(|number| json!(number))
        }
        ValueKind::LogOutputs => Some(items(value)).filter(|items| are_log_outputs(items)).map(|items| json!(items)),
        ValueKind::CipherSuites => {
            Some(items(value)).filter(|items| are_cipher_suites(items)).map(|items| json!(items))
        }
        ValueKind::Text => Some(json!(value)),
        ValueKind::OneOf(choices) => choices.contains(&value).then(|| json!(value)),
        ValueKind::AuthToken => is_auth_token(value).then(|| json!(value)),
        ValueKind::Retention => is_retention(value).then(|| json!(value)),
        ValueKind::Json => is_json_object(value).then(|| json!(value)),
        ValueKind::Origins => are_origins(value).then(|| json!(value)),
        ValueKind::Listen => listeners(value).is_some().then(|| json!(value)),
    };
    checked.ok_or_else(|| Error::Value { name: name.to_owned(), value: value.to_owned(), wanted: wanted(kind) })
}

/// Returns a text for operators that describes the allowed values of `kind`.
pub(super) fn wanted(kind: ValueKind) -> String {
    let words = match kind {
        ValueKind::Bool => "true or false",
        ValueKind::Integer(least, most) => return format!("a whole number from {least} to {most}"),
        ValueKind::Duration(_) => "a duration such as 200ms",
        ValueKind::LogOutputs => "stdout, stderr or a path",
        ValueKind::CipherSuites => "a list such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        ValueKind::Text => "a text",
        ValueKind::OneOf([choice]) => choice,
        ValueKind::OneOf([first @ .., last]) => return format!("{} or {last}", first.join(", ")),
        ValueKind::OneOf([]) => "known",
        ValueKind::AuthToken => "simple or jwt,sign-method=...",
        ValueKind::Retention => "a duration such as 1h, or a number",
        ValueKind::Json => "a JSON object",
        ValueKind::Origins => "a list such as https://192.0.2.9:443, or *",
        ValueKind::Listen => "on each node: write http://0.0.0.0:PORT or 127.0.0.1:PORT",
    };
    words.to_owned()
}

pub(super) fn items(value: &str) -> Vec<&str> {
    value.split(',').map(str::trim).filter(|item| !item.is_empty()).collect()
}

/// Returns whether `outputs` is a valid value of `log-outputs`. `default` is valid only by itself.
pub(super) fn are_log_outputs(outputs: &[&str]) -> bool {
    let is_output = |output: &&str| LOG_STREAMS.contains(output) || output.starts_with('/');
    outputs == ["default"] || (!outputs.is_empty() && outputs.iter().all(is_output))
}

pub(super) fn are_cipher_suites(names: &[&str]) -> bool {
    !names.is_empty() && names.iter().all(|name| CIPHER_SUITES.contains(name))
}

pub(super) fn is_auth_token(value: &str) -> bool {
    value == "simple" || value.strip_prefix("jwt,").is_some_and(|options| options.contains("sign-method="))
}

pub(super) fn is_retention(value: &str) -> bool {
    value.parse::<u64>().is_ok_and(|number| number <= UINT32) || duration::nanoseconds(value).is_some()
}

pub(super) fn is_json_object(value: &str) -> bool {
    json::from_text::<Map<String, Value>>(value).is_ok()
}

/// Returns whether `value` is `*`, or a list of URLs that have only a scheme, a host and a port.
pub(super) fn are_origins(value: &str) -> bool {
    let is_origin = |url: &&str| {
        let address = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).unwrap_or_default();
        let (host, port) = address.rsplit_once(':').unwrap_or_default();
        !host.is_empty() && !address.contains(['/', '@', ' ']) && port.parse::<u16>().is_ok()
    };
    value == "*" || (!items(value).is_empty() && items(value).iter().all(is_origin))
}

/// Returns the ports of the URLs in `value` if every node can listen on them; else `None`. Each address must be a loopback address, or
/// stand for all addresses. Both nodes have the same configuration, and etcd exits at an address that only the other node has.
pub(super) fn listeners(value: &str) -> Option<Vec<u16>> {
    let port = |url: &&str| {
        let address = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
        let address: SocketAddr = address.replacen("localhost:", "127.0.0.1:", 1).parse().ok()?;
        let is_everywhere = address.ip().is_unspecified() || address.ip().is_loopback();
        (is_everywhere && address.port() != 0).then_some(address.port())
    };
    let urls = items(value);
    urls.iter().map(port).collect::<Option<Vec<u16>>>().filter(|ports| !ports.is_empty())
}
