//! The address of a BMC, and the check that links and redirects stay on it.

use std::net::{IpAddr, Ipv6Addr};

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use rustls_pki_types::ServerName;

use crate::adapters::redfish::failure::{Failure, FailureKind};

/// The port of an HTTPS URL that names no port.
pub const HTTPS_PORT: u16 = 443;

/// The address of a BMC: its host and port. The options `ip` and `ipport` of the fence agent configure it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// A host name, or an IP literal without brackets and zone.
    host: String,
    /// The zone of a link-local IPv6 address: the name of a network interface. `None` for any other host.
    zone: Option<String>,
    port: u16,
}

/// The port and the path of a resource on a BMC. The host is always that of the BMC's [`Address`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    pub port: u16,
    /// The path and the query, encoded for a request line.
    pub path: String,
}

impl Address {
    /// Parses `host`, `host:port`, `1.2.3.4`, `::1`, `[::1]`, `[::1]:8443` and `fe80::1%eth0`.
    pub fn parse(text: &str, default_port: u16) -> Result<Self, String> {
        let text = text.trim();
        if text.contains("://") || text.contains('/') {
            return Err(format!("ip={text}: type the host name or address alone, without https:// and path"));
        }
        let (host, port) = split_port(text, default_port)?;
        let (host, zone) = match host.split_once('%') {
            Some((host, zone)) => (host, Some(zone.to_owned())),
            None => (host, None),
        };
        let is_v6 = host.parse::<Ipv6Addr>().is_ok();
        if zone.is_some() && !is_v6 {
            return Err(format!("ip={text}: only an IPv6 address can have a zone (%)"));
        }
        if host.contains(':') && !is_v6 {
            return Err(format!("ip={text}: this is neither host:port nor an IPv6 address"));
        }
        if ServerName::try_from(host).is_err() {
            return Err(format!("ip={text}: this is neither a host name nor an IP address"));
        }
        Ok(Self { host: host.to_owned(), zone, port })
    }

    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns whether the BMC's host is a name, and not an IP address.
    pub fn is_a_name(&self) -> bool {
        self.host.parse::<IpAddr>().is_err()
    }

    /// Returns the host in the form in which TLS compares it with the names in a certificate.
    pub fn server_name(&self) -> Option<ServerName<'static>> {
        ServerName::try_from(self.host.clone()).ok()
    }

    /// Returns the host for name resolution. A link-local IPv6 address includes its zone.
    pub fn for_resolver(&self) -> String {
        match &self.zone {
            Some(zone) => format!("{}%{zone}", self.host),
            None => self.host.clone(),
        }
    }

    /// Returns host, zone and port in one form. Two spellings of the same host and port give the same text.
    pub fn full(&self) -> String {
        let host = self.for_resolver();
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_ascii_lowercase() };
        format!("{host}:{}", self.port)
    }

    /// Returns the address as operators write it. The port is omitted if it is 443.
    pub fn short(&self) -> String {
        let full = self.full();
        if self.port == HTTPS_PORT { self.for_resolver().to_ascii_lowercase() } else { full }
    }

    /// Returns the beginning of a URL on this host: `https://host[:port]`.
    pub fn origin(&self, port: u16) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if port == HTTPS_PORT { format!("https://{host}") } else { format!("https://{host}:{port}") }
    }

    /// Returns the location of a configured URI. The URI is a path, with or without its leading slash, or a full URL on this host.
    pub fn place(&self, uri: &str) -> Result<Location, Failure> {
        let root = Location { port: self.port, path: "/".to_owned() };
        self.follow(&root, uri.trim())
    }

    /// Returns the location to which `link` leads. The link was found in the resource at `from`. Refuses a link to another host or without
    /// TLS.
    pub fn follow(&self, from: &Location, link: &str) -> Result<Location, Failure> {
        let link = link.split_once('#').map_or(link, |(before, _)| before);
        let lower = link.to_ascii_lowercase();
        if lower.starts_with("https://") {
            return self.on_this_host(link, &link["https://".len()..]);
        }
        if lower.starts_with("//") {
            return self.on_this_host(link, &link["//".len()..]);
        }
        if lower.split(['/', '?']).next().is_some_and(|head| head.contains(':')) {
            return Err(Failure::new(
                FailureKind::ForeignRedirect,
                format!("the BMC at {} sends us to '{link}', which is not https: refused", self.host),
            ));
        }
        let path = if link.starts_with('/') {
            link.to_owned()
        } else {
            let before = from.path.split('?').next().unwrap_or_default();
            let directory = before.rsplit_once('/').map_or("", |(directory, _)| directory);
            format!("{directory}/{link}")
        };
        Ok(Location { port: from.port, path: encode(&path) })
    }

    /// Returns the location with the path of `link` on this BMC. Ignores the host in `link`, because some services know themselves by
    /// another name.
    pub fn here(&self, from: &Location, link: &str) -> Option<Location> {
        let path = match link.split_once("://") {
            Some((_, rest)) => rest.find('/').map(|at| &rest[at..])?,
            None => link,
        };
        self.follow(from, path).ok()
    }

    fn on_this_host(&self, link: &str, rest: &str) -> Result<Location, Failure> {
        let refuse = |why: &str| {
            Failure::new(
                FailureKind::ForeignRedirect,
                format!("the BMC at {} sends us to '{link}', {why}: refused", self.host),
            )
        };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let there =
            Self::parse(authority, HTTPS_PORT).map_err(|_| refuse("which is not a host that we could reach"))?;
        let same = match (self.host.parse::<IpAddr>(), there.host.parse::<IpAddr>()) {
            (Ok(ours), Ok(theirs)) => ours == theirs,
            _ => self.host.trim_end_matches('.').eq_ignore_ascii_case(there.host.trim_end_matches('.')),
        };
        if !same {
            return Err(refuse("which is another host"));
        }
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Location { port: there.port, path: encode(&path) })
    }
}

fn split_port(text: &str, default_port: u16) -> Result<(&str, u16), String> {
    let port = |digits: &str| match digits.parse::<u16>() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(format!("ip={text}: '{digits}' is not a port number (1 to 65535)")),
    };
    if let Some(rest) = text.strip_prefix('[') {
        let (host, after) = rest.split_once(']').ok_or_else(|| format!("ip={text}: the closing ']' is missing"))?;
        return match after.strip_prefix(':') {
            Some(digits) => Ok((host, port(digits)?)),
            None if after.is_empty() => Ok((host, default_port)),
            None => Err(format!("ip={text}: only :port may follow the ']'")),
        };
    }
    match text.split_once(':') {
        // A text with more than one colon is an IPv6 address without brackets.
        Some((host, digits)) if !digits.contains(':') => Ok((host, port(digits)?)),
        _ => Ok((text, default_port)),
    }
}

/// The ASCII characters that are percent-encoded in a request line. All characters beyond ASCII are encoded, too.
const NOT_IN_A_LINE: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'\\').add(b'^').add(b'`').add(b'{').add(b'|').add(b'}');

/// Percent-encodes a path for a request line. Characters that are already encoded stay as they are.
fn encode(path: &str) -> String {
    utf8_percent_encode(path, NOT_IN_A_LINE).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (String, Option<String>, u16) {
        let address = Address::parse(text, 443).unwrap();
        (address.host, address.zone, address.port)
    }

    #[test]
    fn takes_every_usual_way_to_write_a_host() {
        assert_eq!(parsed("bmc1.example"), ("bmc1.example".into(), None, 443));
        assert_eq!(parsed("bmc1:8443"), ("bmc1".into(), None, 8443));
        assert_eq!(parsed("10.0.0.1"), ("10.0.0.1".into(), None, 443));
        assert_eq!(parsed("10.0.0.1:8000"), ("10.0.0.1".into(), None, 8000));
        assert_eq!(parsed("::1"), ("::1".into(), None, 443));
        assert_eq!(parsed("[fd00::1]"), ("fd00::1".into(), None, 443));
        assert_eq!(parsed("[fd00::1]:8443"), ("fd00::1".into(), None, 8443));
        assert_eq!(parsed("fe80::1%eth0"), ("fe80::1".into(), Some("eth0".into()), 443));
        assert_eq!(parsed("[fe80::1%eth0]:44"), ("fe80::1".into(), Some("eth0".into()), 44));
    }

    #[test]
    fn refuses_what_is_not_a_host_and_says_so() {
        for text in
            ["https://bmc1", "bmc1/redfish", "[::1", "[::1]x", "bmc1:0", "bmc1:70000", "bmc1:x", "a:b:c", "", "a b"]
        {
            let said = Address::parse(text, 443).unwrap_err();
            assert!(said.starts_with(&format!("ip={text}")), "{said}");
        }
    }

    fn bmc() -> Address {
        Address::parse("bmc1.example:8443", 443).unwrap()
    }

    #[test]
    fn configured_uris_need_no_leading_slash() {
        for uri in ["redfish/v1/Systems/1", "/redfish/v1/Systems/1", "https://bmc1.example:8443/redfish/v1/Systems/1"] {
            assert_eq!(bmc().place(uri).unwrap(), Location { port: 8443, path: "/redfish/v1/Systems/1".into() });
        }
        assert_eq!(bmc().place("/redfish/v1/Systems/1/").unwrap().path, "/redfish/v1/Systems/1/");
        assert_eq!(bmc().place("/Systems/a%20b c").unwrap().path, "/Systems/a%20b%20c");
        let every: String = (0..128).map(char::from).filter(|one| *one != '#').chain("é".chars()).collect();
        assert_eq!(
            bmc().place(&format!("/{every}/")).unwrap().path,
            "/%00%01%02%03%04%05%06%07%08%09%0A%0B%0C%0D%0E%0F%10%11%12%13%14%15%16%17%18%19%1A%1B%1C%1D%1E%1F%20!%22$%&'\
             ()*+,-./0123456789:;%3C=%3E?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[%5C]%5E_%60abcdefghijklmnopqrstuvwxyz%7B%7C%7D~%7F\
             %C3%A9/"
        );
    }

    #[test]
    fn links_stay_on_the_host() {
        let from = Location { port: 8443, path: "/redfish/v1/Systems".into() };
        let path = |link: &str| bmc().follow(&from, link).unwrap();
        assert_eq!(path("/x"), Location { port: 8443, path: "/x".into() });
        assert_eq!(path("/redfish/v1/#/Links"), Location { port: 8443, path: "/redfish/v1/".into() });
        assert_eq!(path("1"), Location { port: 8443, path: "/redfish/v1/1".into() });
        assert_eq!(path("https://BMC1.example/x"), Location { port: 443, path: "/x".into() });
        assert_eq!(path("https://bmc1.example:8080/x"), Location { port: 8080, path: "/x".into() });
        for link in ["http://bmc1.example/x", "https://evil.example/x", "//evil.example/x", "https://@/x", "file:/x"] {
            let refused = bmc().follow(&from, link).unwrap_err();
            assert_eq!(refused.kind, FailureKind::ForeignRedirect, "{link}");
        }
    }

    #[test]
    fn what_was_made_here_is_here_whatever_the_service_calls_itself() {
        let from = Location { port: 8443, path: "/redfish/v1/SessionService/Sessions".into() };
        for link in ["https://ilo-4711/redfish/v1/SessionService/Sessions/1", "/redfish/v1/SessionService/Sessions/1"] {
            let place = bmc().here(&from, link).unwrap();
            assert_eq!(place, Location { port: 8443, path: "/redfish/v1/SessionService/Sessions/1".into() });
        }
        for link in ["https://ilo-4711", "https://ilo-4711?x", "mailto:x"] {
            assert_eq!(bmc().here(&from, link), None, "{link}");
        }
        assert_eq!(bmc().here(&from, "x://y//evil.example/z"), None);
    }

    #[test]
    fn the_usual_port_is_left_out_where_people_read_it() {
        let short = |text: &str| Address::parse(text, 443).unwrap().short();
        assert_eq!(["BMC1", "bmc1:8443", "::1", "[::1]:8443"].map(short), ["bmc1", "bmc1:8443", "::1", "[::1]:8443"]);
    }

    #[test]
    fn ip_addresses_are_compared_as_addresses() {
        let bmc = Address::parse("fd00::1", 443).unwrap();
        let from = Location { port: 443, path: "/".into() };
        assert!(bmc.follow(&from, "https://[fd00:0:0::1]/x").is_ok());
        assert!(bmc.follow(&from, "https://[fd00::2]/x").is_err());
        assert_eq!(bmc.origin(443), "https://[fd00::1]");
    }
}
