//! Described clusters, one for each kind of description, and the facts that an observation of them returns.

use std::path::PathBuf;
use std::time::Duration;

use tandem::adapters::pacemaker::seen::{Instance, Node as ClusterNode, Pacemaker};
use tandem::base::Fact;
use tandem::operate::setup::action::Action;
use tandem::operate::setup::cluster::{ClusterFacts, parse_cib, parse_corosync};
use tandem::operate::setup::description::{Bmc, Certificates, Clone, Description, Etcd, Node};
use tandem::operate::setup::step::{SetupStep, State};
use tandem::operate::setup::{cluster, openshift};

/// The name of the node on which the commands are typed.
pub(crate) const ON: &str = "node1";

/// A description for `tandem setup`, with the platform that it is for.
#[derive(std::clone::Clone)]
pub(crate) struct Variant {
    pub(crate) name: &'static str,
    pub(crate) description: Description,
    pub(crate) is_openshift: bool,
}

impl Variant {
    pub(crate) fn steps(&self, facts: &ClusterFacts) -> Vec<SetupStep> {
        let steps = if self.is_openshift { openshift::steps } else { cluster::steps };
        steps(&self.description, facts, ON)
    }

    pub(crate) fn device(&self, node: &str) -> String {
        if self.is_openshift { format!("{node}_redfish") } else { format!("fence-{node}") }
    }
}

pub(crate) fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn node(number: u8, options: &[(&str, &str)]) -> Node {
    Node {
        names: Vec::new(),
        name: format!("node{number}"),
        address: format!("10.99.0.{number}").parse().unwrap(),
        links: Vec::new(),
        bmc: Bmc {
            options: pairs(options),
            password_file: PathBuf::from(format!("/etc/tandem/bmc-node{number}.password")),
        },
    }
}

const BMC1: [(&str, &str); 4] = [
    ("ip", "10.98.0.101"),
    ("username", "admin"),
    ("systems_uri", "/redfish/v1/Systems/1"),
    ("system_uuid", "4c4c4544-0042-3010-8052-b4c04f4c5831"),
];
const BMC2: [(&str, &str); 4] = [
    ("ip", "10.98.0.102"),
    ("username", "admin"),
    ("systems_uri", "/redfish/v1/Systems/1"),
    ("system_uuid", "4c4c4544-0042-3010-8052-b4c04f4c5832"),
];

/// Returns the minimal description, with a promotable clone.
pub(crate) fn promotable() -> Variant {
    let description = Description {
        cluster: "tandem".to_owned(),
        nodes: [node(1, &BMC1), node(2, &BMC2)],
        preferred: "node1".to_owned(),
        fencing_delay: Duration::from_secs(10),
        primary: None,
        race: false,
        lone_boot: false,
        token: Duration::from_secs(3),
        clone: Clone::Promotable,
        etcd: Etcd {
            image: "registry.example.com/etcd:v3.5".to_owned(),
            data_dir: PathBuf::from("/var/lib/etcd"),
            settings: Vec::new(),
        },
        certificates: Certificates::Own,
    };
    Variant { name: "promotable", description, is_openshift: false }
}

/// Returns one description of each kind.
pub(crate) fn all() -> Vec<Variant> {
    let mut plain = Variant { name: "plain", ..promotable() };
    plain.description.clone = Clone::Plain;
    "node2".clone_into(&mut plain.description.preferred);

    let mut ipv6 = Variant { name: "ipv6", ..promotable() };
    for (node, number) in ipv6.description.nodes.iter_mut().zip(1..) {
        node.address = format!("fd00:99::{number}").parse().unwrap();
        node.links = vec![format!("fd00:97::{number}").parse().unwrap()];
        node.bmc.options[0].1 = format!("fd00:98::10{number}");
    }
    ipv6.description.token = Duration::from_secs(1);

    let mut certificates = Variant { name: "certificates", ..promotable() };
    let pem = |name: &str| PathBuf::from("/etc/pki/etcd").join(name);
    certificates.description.certificates =
        Certificates::Given { ca: pem("ca.pem"), cert: pem("node.pem"), key: pem("node.key") };
    certificates.description.primary = Some("node1".to_owned());
    certificates.description.lone_boot = true;
    certificates.description.etcd.data_dir = PathBuf::from("/srv/etcd");
    certificates.description.etcd.settings = pairs(&[("heartbeat-interval", "200"), ("election-timeout", "2000")]);

    let mut openshift = Variant { name: "openshift", is_openshift: true, ..plain.clone() };
    for (node, number) in openshift.description.nodes.iter_mut().zip(1..) {
        let ip = format!("10.98.0.10{number}");
        let options = [
            ("username", "admin"),
            ("ip", &ip),
            ("ipport", "443"),
            ("systems_uri", "/redfish/v1/Systems/1"),
            ("ssl_insecure", "0"),
        ];
        node.bmc.options = pairs(&options);
    }
    "node1".clone_into(&mut openshift.description.preferred);
    vec![promotable(), plain, ipv6, certificates, openshift]
}

/// Returns the facts about hosts on which nothing but the packages is installed.
pub(crate) fn blank() -> ClusterFacts {
    ClusterFacts {
        pcs: Fact::Known("0.11.5".to_owned()),
        hosts: Fact::Absent,
        corosync: Fact::Absent,
        cib: Fact::Absent,
        pacemaker: Fact::Absent,
        jobs: Fact::Known(Vec::new()),
        ..ClusterFacts::default()
    }
}

/// Returns the facts about a cluster that runs on both nodes, with these files and with healthy fence devices.
pub(crate) fn facts(corosync_conf: &str, cib: &str, variant: &Variant) -> ClusterFacts {
    let node = |name: &str| ClusterNode { name: name.to_owned(), online: true, ..ClusterNode::default() };
    let runs = |id: String| Instance { id, active: true, role: "Started".to_owned(), ..Instance::default() };
    let devices = ["node1", "node2"].map(|node| variant.device(node));
    let configured = devices.into_iter().filter(|id| cib.contains(&format!("<primitive id=\"{id}\"")));
    let pacemaker = Pacemaker {
        nodes: vec![node("node1"), node("node2")],
        resources: configured.map(runs).collect(),
        ..Pacemaker::default()
    };
    ClusterFacts {
        corosync: Fact::Known(parse_corosync(corosync_conf)),
        cib: Fact::Known(parse_cib(cib).unwrap()),
        pacemaker: Fact::Known(pacemaker),
        ..blank()
    }
}

/// Returns the commands of all steps that are to be done, in order.
pub(crate) fn commands(steps: &[SetupStep]) -> Vec<Vec<String>> {
    let actions = steps.iter().flat_map(|step| match &step.state {
        State::ToDo(actions) => actions.as_slice(),
        State::Done | State::Differs { .. } | State::Refused(_) => &[],
    });
    actions.map(words).collect()
}

pub(crate) fn words(action: &Action) -> Vec<String> {
    match action {
        Action::Command(words) => words.clone(),
        Action::Write(file) => panic!("{file:?}"),
    }
}

/// Returns a command as a line for a shell, with quotes where they are needed.
pub(crate) fn typed(words: &[String]) -> String {
    let quoted = |word: &String| {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=@%+,[]".contains(letter);
        if word.chars().all(is_plain) { word.clone() } else { format!("'{word}'") }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}
