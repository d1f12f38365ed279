//! Collects a machine's facts from its kernel, its files, and the version options of programs.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use super::{Corosync, Data, Facts, corosync, disk, ports};
use crate::adapters::command::Programs;
use crate::adapters::corosync::conf;
use crate::operate::setup::description::{Description, Node};
use crate::os::clock;
use crate::os::dmi;

const CIB: &str = "/var/lib/pacemaker/cib/cib.xml";
/// Timeout of a program that prints its version or a unit's state. pcs needs half a minute on an emulated machine while services start.
pub(super) const ANSWERS_WITHIN: Duration = Duration::from_secs(90);
/// Each program's name, its command, and the option that prints its version.
const PROGRAMS: [(&str, &str, &str); 4] = [
    ("pacemaker", "pacemakerd", "--version"),
    ("corosync", "corosync", "-v"),
    ("pcs", "pcs", "--version"),
    ("podman", "podman", "--version"),
];

/// Collects the facts of this machine, which is to become `node`. A port that pcsd or the described cluster holds does not count as
/// taken.
pub fn look(programs: &Programs, description: &Description, node: &Node) -> Facts {
    let text = conf::text_at(Path::new(conf::PATH));
    let cluster_nodes = text.as_ref().map(|text| corosync::nodes(text)).unwrap_or_default();
    let conf = corosync::configuration(text);
    let is_in_it = conf == Corosync::Cluster(description.cluster.clone());
    let version = |(name, program, option): (&str, &str, &str)| {
        let said = programs.run(program, &[option], ANSWERS_WITHIN).ok().filter(|output| output.code == 0);
        (name.to_owned(), said.and_then(|output| number(&output.stdout)))
    };
    Facts {
        host: nix::unistd::gethostname().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
        is_root: nix::unistd::geteuid().is_root(),
        tandem: env!("CARGO_PKG_VERSION").to_owned(),
        versions: PROGRAMS.into_iter().map(version).collect(),
        addresses: addresses(),
        dmi_uuid: dmi::system_uuid(),
        cib: corosync::cib(Path::new(CIB)),
        data: data(&description.etcd.data_dir),
        disk: disk::look(&description.etcd.data_dir),
        taken: strangers(programs, node.address, is_in_it).into_iter().map(ports::Port::word).collect(),
        corosync: conf,
        cluster_nodes,
        // Read last, because every delay until the other node compares it falsifies the difference of the clocks.
        at_millis: clock::wall_millis(),
    }
}

/// Returns the needed ports that are in use by a program other than pcsd and the described cluster's Corosync. pcsd's state is read only
/// after the port was found in use, because pcsd may just have started.
fn strangers(programs: &Programs, address: IpAddr, is_in_the_cluster: bool) -> Vec<ports::Port> {
    let is_ours = |port: &ports::Port| match port {
        ports::Port::Pcsd => runs(programs, "pcsd.service"),
        ports::Port::Corosync => is_in_the_cluster,
        ports::Port::EtcdClients | ports::Port::EtcdPeers => false,
    };
    ports::taken(address, &ports::ALL).into_iter().filter(|port| !is_ours(port)).collect()
}

/// Returns whether systemd runs the unit. A starting unit counts, because it may listen before systemd reports it as active.
fn runs(programs: &Programs, unit: &str) -> bool {
    let said = programs.run("systemctl", &["is-active", unit], ANSWERS_WITHIN);
    said.is_ok_and(|output| output.code == 0 || output.stdout.trim() == "activating")
}

/// Returns the version in a program's output: the first word that begins with a digit and contains a dot. Returns
/// `None` if there is none.
fn number(text: &str) -> Option<String> {
    let words = text.split(|letter: char| letter.is_whitespace() || "'\"(),".contains(letter));
    let found =
        words.into_iter().find(|word| word.starts_with(|first: char| first.is_ascii_digit()) && word.contains('.'))?;
    Some(found.chars().take(40).collect())
}

fn addresses() -> Vec<IpAddr> {
    let interfaces = nix::ifaddrs::getifaddrs().into_iter().flatten();
    let addresses = interfaces.filter_map(|interface| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
    });
    addresses.collect()
}

/// Returns whether the data dir contains etcd's data. A directory that cannot be read is unknown, not blank.
fn data(dir: &Path) -> Data {
    match std::fs::read_dir(dir.join("member")) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                Data::Present
            } else {
                Data::Blank
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Data::Blank,
        Err(error) => Data::Unknown(error.kind().to_string()),
    }
}

/// Returns the index of the described node that this machine is, by its addresses or its host name; `None` if it is neither.
pub fn is_described(description: &Description) -> Option<usize> {
    let host = nix::unistd::gethostname().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    which(description, &host, &addresses())
}

/// Returns the index of the node that has one of `addresses`. If no node has one, returns the index of the node with the host name
/// `host`, so that a wrong address is reported as such. The addresses come first, because two machines never share one. Returns `None` if
/// there is neither.
fn which(description: &Description, host: &str, addresses: &[IpAddr]) -> Option<usize> {
    let by_address = description.nodes.iter().position(|node| addresses.contains(&node.address));
    by_address.or_else(|| description.nodes.iter().position(|node| is_called(host, &node.name)))
}

/// Returns whether a machine with the host name `host` may be the node `name`. Either of them may lack the domain.
pub(super) fn is_called(host: &str, name: &str) -> bool {
    let (host, name) = (host.to_ascii_lowercase(), name.to_ascii_lowercase());
    let short = |full: &str| full.split('.').next().unwrap_or_default().to_owned();
    host == name || (!host.contains('.') && short(&name) == host) || (!name.contains('.') && short(&host) == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::command::fake_program;
    use crate::operate::setup::file;

    #[test]
    fn a_unit_that_is_being_started_runs() {
        let dir = tempfile::tempdir().unwrap();
        for (state, code, is_running) in
            [("active", 0, true), ("activating", 3, true), ("inactive", 3, false), ("failed", 3, false)]
        {
            let programs = fake_program(dir.path(), "systemctl", &format!("echo {state}; exit {code}"));
            assert_eq!(runs(&programs, "pcsd.service"), is_running, "{state}");
        }
    }

    #[test]
    fn a_pcsd_that_begins_while_it_is_looked_is_no_stranger() {
        use std::net::TcpListener;
        let dir = tempfile::tempdir().unwrap();
        let address: IpAddr = "127.44.17.3".parse().unwrap();
        let asked = dir.path().join("asked");
        let said = |state: &str| {
            let script = format!("echo {state}; touch {}; test {state} = active", asked.display());
            strangers(&fake_program(dir.path(), "systemctl", &script), address, false)
        };
        assert_eq!(said("inactive"), []);
        assert!(!asked.exists(), "its state of before the look at the port is of no use");
        let _pcsd = TcpListener::bind((address, 2224)).unwrap();
        assert_eq!(said("active"), []);
        assert_eq!(said("inactive"), [ports::Port::Pcsd]);
    }

    #[test]
    fn versions_are_found_in_what_programs_say() {
        for (said, version) in [
            ("Pacemaker 2.1.5-1+b1\nWritten by Andrew Beekhof\n", Some("2.1.5-1+b1")),
            ("Corosync Cluster Engine, version '3.1.7'\nCopyright (c) 2006-2021 Red Hat, Inc.\n", Some("3.1.7")),
            ("0.11.5\n", Some("0.11.5")),
            ("podman version 4.3.1\n", Some("4.3.1")),
            ("usage: nothing\n", None),
        ] {
            assert_eq!(number(said).as_deref(), version, "{said}");
        }
    }

    #[test]
    fn a_machine_is_found_by_its_address_and_then_by_its_name() {
        let described = file::read(file::EXAMPLE).unwrap();
        let second = described.nodes[1].address;
        assert_eq!(which(&described, "node1", &[second]), Some(1));
        assert_eq!(which(&described, "node1.example.com", &[]), Some(0));
        assert_eq!(which(&described, "other", &[]), None);
        assert!(is_called("node1", "node1.example.com") && !is_called("node1.a.com", "node1.b.com"));
    }

    #[test]
    fn data_is_what_is_in_the_members_directory() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(data(dir.path()), Data::Blank);
        std::fs::create_dir(dir.path().join("member")).unwrap();
        assert_eq!(data(dir.path()), Data::Blank);
        std::fs::create_dir(dir.path().join("member/wal")).unwrap();
        assert_eq!(data(dir.path()), Data::Present);
        std::fs::write(dir.path().join("file"), "").unwrap();
        assert!(matches!(data(&dir.path().join("file")), Data::Unknown(_)));
    }
}
