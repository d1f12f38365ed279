//! Checks of names, addresses and paths, by the rules of Corosync, Pacemaker and the file system.

use std::net::IpAddr;
use std::path::{Component, PathBuf};

use rustls_pki_types::DnsName;

use super::reader::{Placed, Reader, shown};

/// Checks that `name` is a cluster name that pcs accepts without a warning. Adds a fault and returns `None` otherwise.
pub(super) fn cluster_name(reader: &mut Reader<'_>, (name, at): Placed) -> Option<String> {
    const LONGEST: usize = 32;
    let is_one = (1..=LONGEST).contains(&name.len())
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-')
        && !name.starts_with('-');
    if !is_one {
        let text = format!(
            "cluster = \"{}\" is no name for a cluster: write 1 to 32 letters, digits, '_' and '-'",
            shown(&name)
        );
        reader.fault(at, text);
    }
    is_one.then_some(name)
}

/// Checks that `name` is a host name that Pacemaker accepts as a node name. Adds a fault and returns `None` otherwise.
pub(super) fn node_name(reader: &mut Reader<'_>, (name, at): Placed) -> Option<String> {
    const LONGEST: usize = 63;
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= LONGEST
            && label.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let is_one = name.len() <= LONGEST && name.split('.').all(label) && name.parse::<IpAddr>().is_err();
    let is_common = name.eq_ignore_ascii_case("localhost");
    if !is_one || is_common {
        let text = format!("name = \"{}\" is no name of a machine: write what 'uname -n' prints there", shown(&name));
        reader.fault(at, text);
        return None;
    }
    Some(name)
}

/// Checks that `text` is an IP address at which other machines can reach a node. Adds a fault and returns `None`
/// otherwise.
pub(super) fn address(reader: &mut Reader<'_>, key: &str, (text, at): Placed) -> Option<IpAddr> {
    let Ok(address) = text.parse::<IpAddr>() else {
        let text = format!(
            "{key} \"{}\" is no IP address: write one such as \"192.0.2.1\", without port and mask",
            shown(&text)
        );
        reader.fault(at, text);
        return None;
    };
    let is_link_local = match address {
        IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_unicast_link_local() || address.to_ipv4_mapped().is_some(),
    };
    if address.is_loopback() || address.is_unspecified() || address.is_multicast() || is_link_local {
        reader.fault(
            at,
            format!("{key} \"{address}\" reaches no other machine: write the one that 'ip address' shows there"),
        );
        return None;
    }
    Some(address)
}

/// Parses an IP address or a DNS name, in the form in which certificates contain it. Adds a fault and returns `None`
/// otherwise.
pub(super) fn name(reader: &mut Reader<'_>, (text, at): Placed) -> Option<String> {
    let address = text.parse().ok().map(|address: IpAddr| address.to_string());
    let name = text.to_ascii_lowercase();
    let is_name = !name.ends_with('.') && DnsName::try_from(name.as_str()).is_ok();
    let found = address.or_else(|| is_name.then_some(name));
    if found.is_none() {
        let shown = shown(&text);
        reader.fault(
            at,
            format!("the name {shown} is no address and no DNS name: write one such as \"etcd.example.com\""),
        );
    }
    found
}

/// Checks that `text` is an absolute path without `.`, `..`, blanks and separators. Adds a fault and returns `None`
/// otherwise.
pub(super) fn path(reader: &mut Reader<'_>, key: &str, (text, at): Placed) -> Option<PathBuf> {
    let path = PathBuf::from(&text);
    let is_plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    // The agent and podman take paths as arguments, and podman separates them by ':'.
    let is_word = !text.contains(|letter: char| letter.is_whitespace() || ":;,\"'\\".contains(letter));
    if path.is_absolute() && is_plain && is_word && path.components().count() > 1 {
        return Some(path);
    }
    reader.fault(
        at,
        format!(
            "{key} = \"{}\" is no absolute path without blanks: write one such as \"/etc/tandem/NAME\"",
            shown(&text)
        ),
    );
    None
}
