//! Fence devices in the configuration, and the nodes that they fence, in every spelling of `pcmk_host_list` and `pcmk_host_map`.

use std::collections::BTreeMap;

use roxmltree::Node as Element;

use super::primitive::Primitives;
use super::seen::FenceDevice;
use crate::adapters::pacemaker::element::{child, children};

const NEVER: &str = "-INFINITY";
/// The value of `plug` with which `pcmk_host_map` defines each node's plug.
const BY_THE_MAP: &str = "dynamic";

/// Returns every fence device in the CIB's configuration.
pub(crate) fn all(primitives: &Primitives<'_, '_>, configuration: Element<'_, '_>) -> Vec<FenceDevice> {
    let devices = primitives.all().filter(|primitive| primitive.class() == "stonith");
    devices
        .map(|primitive| {
            let resource = primitive.resource();
            let parameter = |name: &str| resource.parameters.get(name).map(String::as_str).unwrap_or_default();
            let map = host_map(parameter("pcmk_host_map"));
            let mut targets = host_list(parameter("pcmk_host_list"));
            targets.extend(map.keys().cloned());
            targets.sort();
            targets.dedup();
            let plug = ["plug", "port"].into_iter().map(parameter).find(|plug| !plug.is_empty() && *plug != BY_THE_MAP);
            let plugs = match plug {
                // A configured plug overrides the map.
                Some(plug) => targets.iter().map(|node| (node.clone(), plug.to_owned())).collect(),
                None => map,
            };
            let banned_from = banned_from(configuration, &resource.id);
            FenceDevice { resource, targets, plugs, banned_from }
        })
        .collect()
}

/// Splits the value of `pcmk_host_list` at blanks, commas, semicolons and line breaks. A line break may also be written as a backslash
/// and `n`.
fn host_list(text: &str) -> Vec<String> {
    let text = text.replace("\\n", " ");
    let names = text.split(|letter: char| letter.is_whitespace() || matches!(letter, ',' | ';'));
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Reads the value of `pcmk_host_map`, such as `node1:plug1;node2:plug2`. Blanks may replace semicolons, and `=` may replace colons.
/// Several plugs of a node are separated by commas. A backslash escapes the next character.
fn host_map(text: &str) -> BTreeMap<String, String> {
    split_plain(text, |letter| letter == ';' || letter.is_whitespace(), usize::MAX)
        .into_iter()
        .filter_map(|entry| {
            let mut pair = split_plain(&entry, |letter| matches!(letter, ':' | '='), 2).into_iter();
            let (node, plug) = (unescaped(&pair.next()?), unescaped(&pair.next()?));
            (!node.is_empty() && !plug.is_empty()).then_some((node, plug))
        })
        .collect()
}

/// Splits `text` into at most `most` pieces, at characters that `splits` accepts and that have no backslash in front.
fn split_plain(text: &str, splits: impl Fn(char) -> bool, most: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut is_escaped = false;
    for letter in text.chars() {
        if splits(letter) && !is_escaped && pieces.len() < most {
            pieces.push(String::new());
            continue;
        }
        is_escaped = letter == '\\' && !is_escaped;
        if let Some(piece) = pieces.last_mut() {
            piece.push(letter);
        }
    }
    pieces
}

fn unescaped(text: &str) -> String {
    let mut letters = text.chars();
    let mut plain = String::new();
    while let Some(letter) = letters.next() {
        plain.extend(if letter == '\\' { letters.next() } else { Some(letter) });
    }
    plain
}

/// Returns the nodes from which a location constraint bans the resource `id`. The constraint names a node, or has a rule about the node's
/// name.
fn banned_from(configuration: Element<'_, '_>, id: &str) -> Vec<String> {
    let constraints = children(configuration, "constraints", "rsc_location");
    let mut nodes: Vec<String> =
        constraints.filter(|one| one.attribute("rsc") == Some(id)).filter_map(banned).collect();
    nodes.sort();
    nodes.dedup();
    nodes
}

fn banned(constraint: Element<'_, '_>) -> Option<String> {
    if constraint.attribute("score") == Some(NEVER) {
        return constraint.attribute("node").map(str::to_owned);
    }
    let rule = child(constraint, "rule").filter(|rule| rule.attribute("score") == Some(NEVER))?;
    let mut expressions = rule.children().filter(Element::is_element);
    let (only, None) = (expressions.next()?, expressions.next()) else { return None };
    let is_about_the_name = only.attribute("attribute") == Some("#uname") && only.attribute("operation") == Some("eq");
    only.attribute("value").filter(|_| is_about_the_name).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_list_is_read_in_every_spelling() {
        for text in ["node1 node2", "node1,node2", "node1, node2", "node1;node2", "node1\tnode2\n", "node1\\nnode2"] {
            assert_eq!(host_list(text), ["node1", "node2"], "{text}");
        }
        assert!(host_list(" ; ,").is_empty());
    }

    #[test]
    fn a_host_map_is_read_in_every_spelling() {
        let pairs = |text: &str| -> Vec<(String, String)> { host_map(text).into_iter().collect() };
        let expected = [("node1".to_owned(), "a".to_owned()), ("node2".to_owned(), "b".to_owned())];
        for text in ["node1:a;node2:b", "node1:a node2:b", "node1=a;node2=b;", " node1:a\tnode2:b ", "node1:a; node2=b"]
        {
            assert_eq!(pairs(text), expected, "{text}");
        }
        let one = |plug: &str| vec![("node1".to_owned(), plug.to_owned())];
        assert_eq!(pairs("node1:1,2"), one("1,2"));
        assert_eq!(pairs("node1:/redfish/v1/Systems/1"), one("/redfish/v1/Systems/1"));
        assert_eq!(pairs("node1:blade\\ 7"), one("blade 7"));
        assert_eq!(pairs("node1:a:b"), one("a:b"));
        assert!(pairs("node1; node2: ;:x").is_empty());
    }
}
