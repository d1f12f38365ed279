//! The environment with which the new member's etcd must be started.

use std::collections::BTreeMap;

use super::super::look::MembersSeen;
use crate::decide::members::Newcomer;

/// Returns the environment variables with which the new member's etcd must be started. At its start etcd compares all of
/// `ETCD_INITIAL_CLUSTER` with the member list.
pub(in crate::operate::members) fn variables(new: &Newcomer, seen: &MembersSeen) -> BTreeMap<&'static str, String> {
    let others = seen.membership.members.iter().filter(|member| !member.peer_urls.contains(&new.peer_url));
    let mut cluster: Vec<String> =
        others.flat_map(|member| member.peer_urls.iter().map(|url| format!("{}={url}", member.name))).collect();
    cluster.push(format!("{}={}", new.name, new.peer_url));
    let mut variables = BTreeMap::from([
        ("ETCD_NAME", new.name.clone()),
        ("ETCD_INITIAL_CLUSTER", cluster.join(",")),
        ("ETCD_INITIAL_CLUSTER_STATE", "existing".to_owned()),
        ("ETCD_INITIAL_ADVERTISE_PEER_URLS", new.peer_url.clone()),
        ("ETCD_LISTEN_PEER_URLS", new.peer_url.clone()),
    ]);
    if let Some(url) = client_url(new, seen) {
        variables.insert("ETCD_ADVERTISE_CLIENT_URLS", url.clone());
        variables.insert("ETCD_LISTEN_CLIENT_URLS", url);
    }
    variables
}

/// Returns the client URL for the new member, with the scheme and port of the other members' URLs. Without a client
/// URL, etcd advertises its machine's own name, which clients may be unable to reach. Returns `None` if the URL is
/// unknown.
fn client_url(new: &Newcomer, seen: &MembersSeen) -> Option<String> {
    let host = new.peer_url.rsplit_once(':')?.0.split_once("://")?.1;
    let mut known = seen.details.values().flat_map(|detail| &detail.client_urls);
    let (scheme, port) = known.clone().find_map(|url| {
        let (scheme, address) = url.trim_end_matches('/').split_once("://")?;
        Some((scheme, address.rsplit_once(':')?.1))
    })?;
    let url = format!("{scheme}://{host}:{port}");
    // On one machine each member has a port of its own, which is unknown here.
    (!known.any(|other| *other == url)).then_some(url)
}

/// Formats the environment variables as the lines of an `EnvironmentFile=`.
pub(in crate::operate::members) fn lines(variables: &BTreeMap<&'static str, String>) -> String {
    variables.iter().map(|(name, value)| format!("\n  {name}={value}")).collect::<Vec<_>>().concat()
}
