//! The two nodes of a description: their names, addresses and BMCs, which must differ.

use std::net::IpAddr;

use toml::Spanned;
use toml::de::DeValue;

use super::reader::{At, Placed, Reader, Section, kind_of};
use super::{bmc, checks};
use crate::operate::setup::description::Node;

/// Largest number of links that Corosync's knet supports.
const LINKS: usize = 8;

/// Parses the two nodes of the description. `names` are the further addresses and DNS names that both nodes get. Adds a
/// fault and returns `None` unless there are exactly two valid nodes.
pub(super) fn both(reader: &mut Reader<'_>, top: &Section<'_, '_>, names: &[String]) -> Option<[Node; 2]> {
    const TABLES: &str = "write two tables [[node]], one for each machine";
    let Some(value) = top.get("node") else {
        reader.fault(0..0, format!("the nodes are missing: {TABLES}"));
        return None;
    };
    let DeValue::Array(list) = value.get_ref() else {
        reader.fault(value.span(), format!("node is {}: {TABLES}", kind_of(value.get_ref())));
        return None;
    };
    let mut nodes = Vec::new();
    for (at, one) in list.iter().enumerate() {
        let DeValue::Table(table) = one.get_ref() else {
            reader.fault(one.span(), format!("a node is {}: {TABLES}", kind_of(one.get_ref())));
            return None;
        };
        let section = Section::new(&format!("node {}", at + 1), one.span(), table);
        nodes.push((node(reader, &section, names), section));
    }
    if nodes.len() != 2 {
        let at = nodes.get(2).map_or(value.span(), |(_, section)| section.at());
        reader.fault(at, format!("there are {} nodes: {TABLES}", nodes.len()));
        return None;
    }
    let [(first, _), (second, section)] = <[_; 2]>::try_from(nodes).ok()?;
    let nodes = [first?, second?];
    differ(reader, &nodes, &section).then_some(nodes)
}

/// Parses the setting `names`: the further addresses and DNS names at which clients reach etcd on either node. Adds a
/// fault and returns `None` if the value is invalid.
pub(super) fn names(reader: &mut Reader<'_>, top: &Section<'_, '_>) -> Option<Vec<String>> {
    const LIST: &str = "write a list of addresses and DNS names, names = [\"...\"]";
    let Some(value) = top.get("names") else { return Some(Vec::new()) };
    let list = |kind: &str| format!("names is {kind}: {LIST}");
    let texts = texts(reader, value, list, |kind| format!("a name is {kind}: {LIST}"))?;
    texts.into_iter().map(|text| checks::name(reader, text)).collect()
}

/// Parses a list of strings with their places. `list` and `text` return the fault for a value that is no list or no
/// string.
fn texts(
    reader: &mut Reader<'_>,
    value: &Spanned<DeValue<'_>>,
    list: impl Fn(&str) -> String,
    text: impl Fn(&str) -> String,
) -> Option<Vec<Placed>> {
    let DeValue::Array(all) = value.get_ref() else {
        reader.fault(value.span(), list(kind_of(value.get_ref())));
        return None;
    };
    let mut found = Vec::new();
    for one in all {
        let Some(read) = one.get_ref().as_str() else {
            reader.fault(one.span(), text(kind_of(one.get_ref())));
            return None;
        };
        found.push((read.trim().to_owned(), one.span()));
    }
    Some(found)
}

fn node(reader: &mut Reader<'_>, section: &Section<'_, '_>, names: &[String]) -> Option<Node> {
    reader.known(section, &["name", "address", "links", "bmc"]);
    let name = reader.text(section, "name").and_then(|name| checks::node_name(reader, name));
    let address = reader.text(section, "address").and_then(|text| checks::address(reader, "address", text));
    let links = links(reader, section);
    let bmc = reader.table(section, "bmc").and_then(|section| bmc::read(reader, &section));
    Some(Node { name: name?, address: address?, links: links?, names: names.to_vec(), bmc: bmc? })
}

fn links(reader: &mut Reader<'_>, section: &Section<'_, '_>) -> Option<Vec<IpAddr>> {
    let Some(value) = section.get("links") else { return Some(Vec::new()) };
    if let Some(all) = value.get_ref().as_array().filter(|all| all.len() >= LINKS) {
        reader.fault(
            value.span(),
            format!("links has {} addresses, and Corosync takes 7 beside address: leave some out", all.len()),
        );
        return None;
    }
    let list = |kind: &str| format!("links is {kind}: write a list of addresses, links = [\"...\"]");
    let text = |kind: &str| format!("a link is {kind}: write an address, such as \"192.0.2.1\"");
    let texts = texts(reader, value, list, text)?;
    texts.into_iter().map(|text| checks::address(reader, "link", text)).collect()
}

/// Returns whether the two nodes have different names, addresses and BMCs, and equally many links of the same families.
/// Faults are reported at the second node.
fn differ(reader: &mut Reader<'_>, [first, second]: &[Node; 2], section: &Section<'_, '_>) -> bool {
    let before = reader.is_faulty();
    let place = |key: &str| -> At { section.get(key).map_or(section.at(), toml::Spanned::span) };
    if first.name.eq_ignore_ascii_case(&second.name) {
        reader.fault(place("name"), format!("both nodes are called {}: write another name", second.name));
    }
    let ways =
        |node: &Node| -> Vec<IpAddr> { std::iter::once(node.address).chain(node.links.iter().copied()).collect() };
    let (one, other) = (ways(first), ways(second));
    if one.len() != other.len() {
        let text = format!(
            "{} has {} links and {} has {}: write the same number",
            first.name,
            one.len() - 1,
            second.name,
            other.len() - 1
        );
        reader.fault(place("links"), text);
    }
    for (at, (mine, yours)) in one.iter().zip(&other).enumerate() {
        if mine.is_ipv4() != yours.is_ipv4() {
            let key = if at == 0 { "address" } else { "links" };
            reader.fault(
                place(key),
                format!("{mine} and {yours} are of two families: write both as IPv4 or both as IPv6"),
            );
        }
    }
    let all: Vec<IpAddr> = one.iter().chain(&other).copied().collect();
    for (at, address) in all.iter().enumerate() {
        if all[..at].contains(address) {
            let key = if *address == second.address { "address" } else { "links" };
            reader.fault(place(key), format!("{address} is there twice: write another address for one of them"));
        }
    }
    if bmc::is_same(&first.bmc, &second.bmc) {
        let text = format!("{} and {} have one and the same BMC: write each one's own", first.name, second.name);
        reader.fault(place("bmc"), text);
    }
    before || !reader.is_faulty()
}
