//! The cluster that a machine may already be in, from Corosync's configuration and the CIB on its disk.

use std::io::{self, ErrorKind};
use std::path::Path;

use super::{Cib, Corosync};
use crate::operate::setup::cluster::parse_corosync;
use crate::os::regular_file;

/// Largest size of the CIB that is read, in bytes.
const CIB: u64 = 64 * 1024 * 1024;

/// Returns whether `text`, Corosync's configuration, is missing, a package's example, a real cluster or unreadable.
pub(super) fn configuration(text: io::Result<String>) -> Corosync {
    match text {
        Ok(text) => parse(&text),
        Err(error) if error.kind() == ErrorKind::NotFound => Corosync::None,
        Err(error) => Corosync::Unreadable(error.to_string()),
    }
}

fn parse(text: &str) -> Corosync {
    let lines =
        || text.lines().map(str::trim).filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(':'));
    let values = |name: &'static str| lines().filter(move |(key, _)| key.trim() == name).map(|(_, value)| value.trim());
    let addresses: Vec<&str> = values("ring0_addr").collect();
    let name = values("cluster_name").next_back().unwrap_or_default().to_owned();
    // A package's example has one node at the loopback address, or only networks.
    let is_nowhere = values("bindnetaddr").all(|network| network.starts_with("127."))
        && matches!(addresses.as_slice(), [] | ["127.0.0.1"]);
    let is_example = is_nowhere && matches!(name.as_str(), "" | "debian");
    if is_example { Corosync::Example } else { Corosync::Cluster(name) }
}

/// Parses the names of the nodes in Corosync's configuration.
pub(super) fn nodes(text: &str) -> Vec<String> {
    parse_corosync(text).nodes.into_iter().map(|node| node.name).collect()
}

/// Reads the cluster's name and the number of resources in the CIB at `path`.
pub(super) fn cib(path: &Path) -> Cib {
    match regular_file::text_of_at_most(path, CIB) {
        Ok(text) => parse_cib(&text),
        Err(error) if error.kind() == ErrorKind::NotFound => Cib::None,
        Err(error) => Cib::Unreadable(error.to_string()),
    }
}

fn parse_cib(text: &str) -> Cib {
    let document = match roxmltree::Document::parse(text) {
        Ok(document) => document,
        Err(error) => return Cib::Unreadable(error.to_string()),
    };
    let named = |name: &'static str| document.descendants().filter(move |node| node.has_tag_name(name));
    let cluster = named("crm_config")
        .flat_map(|properties| properties.descendants())
        .find(|pair| pair.has_tag_name("nvpair") && pair.attribute("name") == Some("cluster-name"))
        .and_then(|pair| pair.attribute("value"))
        .map(str::to_owned);
    let resources = named("resources").flat_map(|list| list.children()).filter(roxmltree::Node::is_element).count();
    Cib::Known { cluster, resources }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_is_told_from_a_cluster() {
        let example = "totem {\n version: 2\n cluster_name: debian\n}\nnodelist {\n node {\n name: node1\n ring0_addr: 127.0.0.1\n }\n}";
        assert_eq!(parse(example), Corosync::Example);
        let two = "totem {\n cluster_name: debian\n}\nnodelist {\n node {\n ring0_addr: 10.0.0.1\n }\n node {\n ring0_addr: 10.0.0.2\n }\n}";
        assert_eq!(parse(two), Corosync::Cluster("debian".to_owned()), "somebody kept the name");
        assert_eq!(parse("totem {\n  cluster_name: prod\n}"), Corosync::Cluster("prod".to_owned()));
        let multicast = "totem {\n interface {\n ringnumber: 0\n bindnetaddr: 10.0.0.0\n mcastport: 5405\n }\n}";
        assert_eq!(parse(multicast), Corosync::Cluster(String::new()), "somebody has made it, without a name");
        assert_eq!(parse(&multicast.replace("10.0.0.0", "127.0.0.1")), Corosync::Example);
        assert_eq!(parse("# ring0_addr: 10.0.0.1\n"), Corosync::Example);
        let missing = crate::adapters::corosync::conf::text_at(Path::new("/nonexistent/corosync.conf"));
        assert_eq!(configuration(missing), Corosync::None);
        assert_eq!(nodes(&two.replace("ring0_addr: 10.0.0.1", "name: node1")), ["node1", ""]);
    }

    #[test]
    fn a_cib_says_whose_it_is_and_whether_anything_is_in_it() {
        let text = r#"<cib><configuration><crm_config><cluster_property_set id="a">
            <nvpair id="b" name="cluster-name" value="prod"/></cluster_property_set></crm_config>
            <nodes/><resources><primitive id="p"/><clone id="c"><primitive id="q"/></clone></resources></configuration></cib>"#;
        assert_eq!(parse_cib(text), Cib::Known { cluster: Some("prod".to_owned()), resources: 2 });
        assert!(matches!(parse_cib("<cib"), Cib::Unreadable(_)));
        assert_eq!(cib(Path::new("/nonexistent/cib.xml")), Cib::None);
    }
}
