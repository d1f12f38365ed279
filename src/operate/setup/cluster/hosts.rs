//! The hosts to which pcs on this node has access, from pcs' own file. Tokens are compared and not kept.

use std::collections::BTreeMap;
use std::net::IpAddr;

use base64::Engine as _;
use serde_json::Value;
use zeroize::Zeroizing;

use crate::base::json;

/// Path of root's file with the hosts that pcs knows, and its tokens for them.
pub(super) const FILE: &str = "/var/lib/pcsd/known-hosts";
const PORT: u64 = 2224;

/// Returns the hosts to which pcs has a token, with their addresses. A host counts only with an IP address and pcsd's
/// usual port.
///
/// While the file with the `accepted` token exists, other tokens do not count, because pcs stores any token without
/// trying it.
pub(super) fn parse(json: &str, accepted: Option<&[u8]>) -> Result<BTreeMap<String, IpAddr>, String> {
    // The parser's error is dropped, because it could quote a token.
    let document: Value = json::from_text(json).map_err(|_| "it is no JSON".to_owned())?;
    let hosts = document.get("known_hosts").and_then(Value::as_object).ok_or("it has no known_hosts")?;
    // pcs stores a token in base64.
    let accepted = accepted.map(|token| Zeroizing::new(base64::engine::general_purpose::STANDARD.encode(token)));
    let accepted = accepted.as_deref().map(String::as_str);
    Ok(hosts.iter().filter_map(|(name, host)| Some((name.clone(), address(host, accepted)?))).collect())
}

fn address(host: &Value, accepted: Option<&str>) -> Option<IpAddr> {
    let token = host.get("token")?.as_str().filter(|token| !token.is_empty())?;
    let is_accepted = accepted.is_none_or(|accepted| accepted == token);
    let first = host.pointer("/dest_list/0")?;
    let is_usual = first.get("port").and_then(Value::as_u64) == Some(PORT);
    first.get("addr")?.as_str()?.parse().ok().filter(|_| is_usual && is_accepted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_counts_with_a_token_and_an_address() {
        let hosts = |accepted| {
            parse(KNOWN, accepted)
                .unwrap()
                .into_iter()
                .map(|(name, address)| format!("{name} {address}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(hosts(None), ["node1 10.99.0.1", "node2 fd00::2"]);
        assert_eq!(hosts(Some(b"accepted")), ["node1 10.99.0.1"]);
        assert!(hosts(Some(b"another")).is_empty());
        assert_eq!(parse("{\"known_hosts\": s3cret", None), Err("it is no JSON".to_owned()));
        assert!(parse("{}", None).is_err());
    }

    const KNOWN: &str = r#"{"format_version": 1, "data_version": 3, "known_hosts": {
                "node1": {"dest_list": [{"addr": "10.99.0.1", "port": 2224}], "token": "YWNjZXB0ZWQ="},
                "node2": {"dest_list": [{"addr": "fd00::2", "port": 2224}], "token": "s3cret"},
                "named": {"dest_list": [{"addr": "node3", "port": 2224}], "token": "s3cret"},
                "elsewhere": {"dest_list": [{"addr": "10.99.0.4", "port": 4224}], "token": "s3cret"},
                "without": {"dest_list": [{"addr": "10.99.0.5", "port": 2224}]}}}"#;
}
