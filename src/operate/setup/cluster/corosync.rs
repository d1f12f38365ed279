//! The syntax of `corosync.conf`: sections in braces that contain `name: value`.

use std::net::IpAddr;

/// The settings of `corosync.conf` that setup compares with the description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Corosync {
    pub name: String,
    pub transport: String,
    pub cipher: String,
    pub hash: String,
    /// The token timeout in milliseconds; `None` if `corosync.conf` does not set it.
    pub token: Option<u64>,
    pub nodes: Vec<Member>,
}

/// A node in `corosync.conf`, with its address on each link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    pub name: String,
    /// Pairs of link number and address.
    pub addresses: Vec<(u32, String)>,
}

/// Cluster name and address in the `corosync.conf` of Debian's package, which belongs to no real cluster.
const EXAMPLE: (&str, &str) = ("debian", "127.0.0.1");

/// Parses `corosync.conf`. Unknown lines are skipped, because only Corosync can judge them.
pub fn parse(text: &str) -> Corosync {
    let mut conf = Corosync::default();
    let mut sections: Vec<&str> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_suffix('{') {
            sections.push(name.trim());
            if sections == ["nodelist", "node"] {
                conf.nodes.push(Member::default());
            }
        } else if line == "}" {
            sections.pop();
        } else if let Some((name, value)) = line.split_once(':') {
            conf.take(&sections, name.trim(), value.trim());
        }
    }
    conf
}

impl Corosync {
    fn take(&mut self, sections: &[&str], name: &str, value: &str) {
        let text = || value.to_owned();
        match (sections, name) {
            (["totem"], "cluster_name") => self.name = text(),
            (["totem"], "transport") => self.transport = text(),
            (["totem"], "crypto_cipher") => self.cipher = text(),
            (["totem"], "crypto_hash") => self.hash = text(),
            (["totem"], "token") => self.token = value.parse().ok(),
            (["nodelist", "node"], name) => {
                let Some(node) = self.nodes.last_mut() else { return };
                if name == "name" {
                    node.name = text();
                } else if let Some(number) = name.strip_prefix("ring").and_then(|rest| rest.strip_suffix("_addr"))
                    && let Ok(number) = number.parse()
                {
                    node.addresses.push((number, text()));
                }
            }
            _ => {}
        }
    }

    /// Returns whether `corosync.conf` is the unchanged example of Debian's package.
    pub fn is_example(&self) -> bool {
        let [only] = self.nodes.as_slice() else { return false };
        self.name == EXAMPLE.0 && only.addresses == [(0, EXAMPLE.1.to_owned())]
    }

    pub(crate) fn node(&self, name: &str) -> Option<&Member> {
        self.nodes.iter().find(|node| node.name == name)
    }
}

impl Member {
    pub(super) fn address(&self, link: u32) -> Option<&str> {
        self.addresses.iter().find(|(number, _)| *number == link).map(|(_, address)| address.as_str())
    }

    /// Returns whether the node has the address `address` on the link number `link`, in any spelling.
    pub(super) fn has(&self, link: u32, address: IpAddr) -> bool {
        self.address(link).is_some_and(|there| there.parse() == Ok(address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pcs_writes_is_read() {
        let conf = parse(
            "totem {\n    version: 2\n    cluster_name: prod\n    transport: knet\n    token: 3000\n    crypto_cipher: aes256\n    \
             crypto_hash: sha256\n}\n\nnodelist {\n    node {\n        ring0_addr: 10.99.0.1\n        ring1_addr: fd00::1\n        \
             name: node1\n        nodeid: 1\n    }\n\n    node {\n        ring0_addr: 10.99.0.2\n        name: node2\n    }\n}\n\
             quorum {\n    provider: corosync_votequorum\n    two_node: 1\n}\nlogging {\n  name: x\n}\n",
        );
        assert_eq!((&*conf.name, &*conf.transport, conf.token), ("prod", "knet", Some(3000)));
        assert_eq!((&*conf.cipher, &*conf.hash), ("aes256", "sha256"));
        let names: Vec<_> = conf.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["node1", "node2"]);
        let node1 = conf.node("node1").unwrap();
        assert!(node1.has(0, "10.99.0.1".parse().unwrap()) && node1.has(1, "fd00:0::1".parse().unwrap()));
        assert!(!node1.has(2, "10.99.0.1".parse().unwrap()) && !conf.is_example());
    }

    #[test]
    fn the_example_of_the_package_is_known() {
        let example = "# Please read the corosync.conf.5 manual page\ntotem {\n\tversion: 2\n\t# cluster_name: x\n\tcluster_name: debian\n\
             \tcrypto_cipher: none\n}\nnodelist {\n\t# Change/uncomment/add node sections\n\n\tnode {\n\t\tname: node1\n\t\tnodeid: 1\n\
             \t\tring0_addr: 127.0.0.1\n\t}\n}\n";
        assert!(parse(example).is_example());
        assert!(!parse(&example.replace("127.0.0.1", "10.0.0.1")).is_example());
        assert!(!parse(&example.replace("cluster_name: debian", "cluster_name: mine")).is_example());
        assert!(!parse("").is_example());
    }
}
