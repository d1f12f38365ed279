//! The addresses of a node that OpenShift accepts: global ones, each in its canonical form.

use std::net::{IpAddr, Ipv4Addr};

use crate::adapters::pacemaker::attributes::NODE_IP;
use crate::adapters::pacemaker::seen::Configuration;
use crate::operate::cluster::{Cluster, Member};

/// Returns the addresses of a node. The first one is the address that etcd uses.
pub(super) fn of(cluster: &Cluster, node: &str) -> Vec<IpAddr> {
    let configuration = cluster.configuration.known();
    let mapped = configuration.and_then(|configuration| mapped(configuration, node));
    let permanent =
        configuration.and_then(|configuration| configuration.permanent.get(node)?.get(NODE_IP)?.parse().ok());
    let seen = cluster.pacemaker.known().and_then(|seen| seen.nodes.iter().find(|seen| seen.name == node));
    let shown = seen.and_then(|seen| seen.attributes.get(NODE_IP)?.parse().ok());
    let members = cluster.etcd.values().filter_map(|etcd| etcd.known()).flat_map(|etcd| &etcd.members);
    let urls = members.filter(|member| member.name == node).flat_map(of_member);
    let mut found: Vec<IpAddr> = Vec::new();
    for address in [mapped, permanent, shown].into_iter().flatten().chain(urls) {
        let address = canonical(address);
        if is_global(address) && !found.contains(&address) {
            found.push(address);
        }
    }
    found
}

/// Returns the node's address in `node_ip_map`. The agent's own parser (`resource::params`) is not used, because it rejects the whole map
/// for a mistake in another node's entry.
fn mapped(configuration: &Configuration, node: &str) -> Option<IpAddr> {
    let map = configuration.etcd.as_ref()?.parameters.get("node_ip_map")?;
    map.split(';').find_map(|entry| {
        let (name, address) = entry.trim().split_once(':')?;
        (name.trim() == node).then(|| address.trim().trim_matches(['[', ']']).parse().ok())?
    })
}

fn of_member(member: &Member) -> impl Iterator<Item = IpAddr> {
    member.peer_urls.iter().filter_map(|url| host(url)?.parse().ok())
}

/// Returns the host of a URL: `2001:db8::1` for `https://[2001:db8::1]:2380`.
fn host(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split('/').next()?;
    match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next(),
        None => authority.split(':').next(),
    }
}

/// Converts an IPv4 address that is mapped into IPv6 back to IPv4.
fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// Returns whether an address is global by the definition of Go's `IsGlobalUnicast`, which includes private addresses.
fn is_global(address: IpAddr) -> bool {
    let is_local = match address {
        IpAddr::V4(address) => address.is_link_local() || address == Ipv4Addr::BROADCAST,
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !is_local && !address.is_unspecified() && !address.is_loopback() && !address.is_multicast()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_a_url_is_found() {
        for (url, expected) in [
            ("https://192.0.2.1:2380", Some("192.0.2.1")),
            ("https://[2001:db8::1]:2380", Some("2001:db8::1")),
            ("https://192.0.2.1/x", Some("192.0.2.1")),
            ("192.0.2.1", None),
        ] {
            assert_eq!(host(url), expected, "{url}");
        }
    }

    #[test]
    fn only_global_addresses_are_taken() {
        for (address, expected) in [
            ("192.0.2.1", true),
            ("10.0.0.1", true),
            ("2001:db8::1", true),
            ("fd00::1", true),
            ("0.0.0.0", false),
            ("127.0.0.1", false),
            ("169.254.1.1", false),
            ("255.255.255.255", false),
            ("224.0.0.1", false),
            ("::", false),
            ("::1", false),
            ("fe80::1", false),
            ("ff02::1", false),
        ] {
            assert_eq!(is_global(address.parse().unwrap()), expected, "{address}");
        }
        assert_eq!(canonical("::ffff:192.0.2.1".parse().unwrap()).to_string(), "192.0.2.1");
    }
}
