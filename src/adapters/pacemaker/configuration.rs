//! The CIB for operators: the configuration, and each node's transient attributes.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use roxmltree::Node as Element;

use super::cib_document::CibDocument;
use super::primitive::{self, Primitives};
use super::{fence_device, seen::Configuration};
use crate::adapters::command::{Output, Programs};
use crate::adapters::pace::limits::Limits;
use crate::adapters::pacemaker::element::{child, children, pairs_of, text};
use crate::adapters::pacemaker::exit_code::DISCONNECTED;
use crate::base::{Fact, printable};
use crate::os::regular_file;

/// The file in which Pacemaker stores the CIB. It has no section `status`.
pub(crate) const ON_DISK: &str = "/var/lib/pacemaker/cib/cib.xml";
/// The greatest size of a stored CIB that is read, in bytes. It is many times that of a cluster of two nodes.
const LIMIT: u64 = 64 * 1024 * 1024;
const OUR_AGENT: &str = "podman-etcd";
/// The id of the set of cluster properties that overrides other sets.
const OWN_SET: &str = "cib-bootstrap-options";

/// The configuration in the CIB, and the nodes' ids in Corosync.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Read {
    pub(crate) configuration: Configuration,
    /// The name of each node by its id in Corosync.
    pub(crate) ids: BTreeMap<u32, String>,
}

/// Reads the configuration from the CIB's manager. If Pacemaker is stopped on this node, reads its CIB file on disk. `resource` selects the
/// agent's resource if there are several.
pub(crate) fn ask(programs: &Programs, resource: Option<&str>, limits: &Limits) -> Fact<Read> {
    match programs.run("cibadmin", &["--query"], limits.cib) {
        Ok(Output { code: DISCONNECTED, .. }) => on_disk(Path::new(ON_DISK), resource),
        Ok(output) if output.code == 0 => match parse(&output.stdout, resource) {
            Ok(read) => Fact::Known(read),
            Err(why) => Fact::Unknown(format!("the CIB is not understood: {why}")),
        },
        Ok(output) => Fact::Unknown(format!("cibadmin failed ({}): {}", output.code, output.complaint())),
        Err(error) => Fact::Unknown(error.to_string()),
    }
}

/// Reads the configuration from the stored CIB at `path`; `Absent` if there is no such file.
pub(crate) fn on_disk(path: &Path, resource: Option<&str>) -> Fact<Read> {
    match regular_file::text_of_at_most(path, LIMIT) {
        Ok(xml) => match parse(&xml, resource) {
            Ok(read) => Fact::Known(read),
            Err(why) => Fact::Unknown(format!("{} is not understood: {why}", path.display())),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Fact::Absent,
        Err(error) => Fact::Unknown(format!("cannot read {}: {error}", path.display())),
    }
}

/// Parses a CIB. `wanted` selects the agent's resource if there are several.
pub(crate) fn parse(xml: &str, wanted: Option<&str>) -> Result<Read, String> {
    let document = CibDocument::parse(xml)?;
    let (cib, section) = (document.root(), document.configuration()?);
    let primitives = Primitives::of(section);
    let ours = primitives.all().filter(|element| element.agent_type() == OUR_AGENT);
    let ours: Vec<_> = ours.map(|element| element.resource()).collect();
    let etcd = match wanted {
        Some(wanted) => ours.iter().find(|resource| resource.id == wanted),
        None => ours.first().filter(|_| ours.len() == 1),
    };
    let kubelet = primitives.all().map(|element| element.resource()).find(|found| found.agent == "systemd:kubelet");
    let members: Vec<_> = children(section, "nodes", "node").filter(|node| is_member(*node)).collect();
    let mut nodes: Vec<String> = members.iter().map(|node| text(*node, "uname")).collect();
    nodes.sort();
    let number = |name| cib.attribute(name).unwrap_or("0");
    let configuration = Configuration {
        nodes,
        properties: properties(section),
        permanent: members.iter().map(|node| (text(*node, "uname"), primitive::pairs(*node, ATTRIBUTES))).collect(),
        transient: transient(cib),
        etcd: etcd.cloned(),
        etcd_resources: ours.into_iter().map(|resource| resource.id).collect(),
        kubelet,
        fence_devices: fence_device::all(&primitives, section),
        alerts: children(section, "alerts", "alert").map(|alert| (text(alert, "id"), text(alert, "path"))).collect(),
        version: format!("{}:{}:{}", number("admin_epoch"), number("epoch"), number("num_updates")),
    };
    let id = |node: &Element<'_, '_>| Some((node.attribute("id")?.parse().ok()?, text(*node, "uname")));
    Ok(Read { configuration, ids: members.iter().filter_map(id).collect() })
}

const ATTRIBUTES: &str = "instance_attributes";

/// Returns whether a node is a full member of the cluster. Nodes of other types run Pacemaker Remote, and no etcd.
fn is_member(node: Element<'_, '_>) -> bool {
    matches!(node.attribute("type"), None | Some("member" | "normal"))
}

/// Reads the cluster properties. If several sets have the same property, [`OWN_SET`] overrides the others.
pub(crate) fn properties(section: Element<'_, '_>) -> BTreeMap<String, String> {
    let mut sets: Vec<_> = children(section, "crm_config", "cluster_property_set").collect();
    sets.sort_by_key(|set| set.attribute("id") != Some(OWN_SET));
    let mut properties = BTreeMap::new();
    for (name, value) in sets.into_iter().flat_map(pairs_of) {
        properties.entry(name.to_owned()).or_insert_with(|| printable::one_line(value).into_owned());
    }
    properties
}

fn transient(cib: Element<'_, '_>) -> BTreeMap<String, BTreeMap<String, String>> {
    let of_node = |state: Element<'_, '_>| {
        let attributes = child(state, "transient_attributes").map(|set| primitive::pairs(set, ATTRIBUTES));
        (text(state, "uname"), attributes.unwrap_or_default())
    };
    children(cib, "status", "node_state").map(of_node).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The CIB of a real two-node cluster with Pacemaker 2.1.5.
    const TWO_VOTERS: &str = include_str!("../../../tests/data/fixtures/cib/two-voters.xml");

    fn read(xml: &str) -> Configuration {
        parse(xml, None).unwrap().configuration
    }

    fn with_resources(resources: &str, constraints: &str) -> String {
        format!(
            "<cib admin_epoch='1' epoch='2' num_updates='3'><configuration><crm_config>\
             <cluster_property_set id='mine'><nvpair name='stonith-enabled' value='false'/><nvpair name='x' value='1'/>\
             </cluster_property_set><cluster_property_set id='cib-bootstrap-options'>\
             <nvpair name='stonith-enabled' value='true'/></cluster_property_set></crm_config>\
             <nodes><node id='2' uname='node2'/><node id='1' uname='node1' type='member'/><node id='r' uname='r' type='remote'/>\
             </nodes><resources>{resources}</resources><constraints>{constraints}</constraints>\
             <alerts><alert id='tandem' path='/usr/libexec/tandem/alert'/></alerts></configuration></cib>"
        )
    }

    #[test]
    fn a_real_cib_is_read_with_its_resource_its_devices_and_its_attributes() {
        let Read { configuration, ids } = parse(TWO_VOTERS, None).unwrap();
        assert_eq!(configuration.nodes, ["node1", "node2"]);
        assert_eq!(ids.get(&1).map(String::as_str), Some("node1"));
        let etcd = configuration.etcd.unwrap();
        assert_eq!((&*etcd.id, etcd.promotable), ("etcd", false));
        assert!(etcd.parameters["node_ip_map"].contains("node2:") && etcd.clone.is_some());
        assert!(configuration.permanent["node1"].contains_key("member_id"));
        assert!(configuration.transient["node2"].contains_key("etcd_record"));
    }

    #[test]
    fn no_secret_is_read() {
        let device = "<primitive id='f' class='stonith' type='fence_redfish_rs'><instance_attributes>\
             <nvpair name='password' value='hunter2'/><nvpair name='passwd' value='hunter2'/>\
             <nvpair name='password_file' value='/etc/bmc'/></instance_attributes></primitive>";
        let configuration = read(&with_resources(device, ""));
        assert!(!format!("{configuration:?}").contains("hunter2"));
        assert_eq!(configuration.fence_devices[0].resource.parameters["password_file"], "/etc/bmc");
        assert!(TWO_VOTERS.contains("password") && !format!("{:?}", read(TWO_VOTERS)).contains("\"password\""));
    }

    #[test]
    fn what_is_configured_in_odd_ways_is_read_all_the_same() {
        let resources = "<template id='t' class='ocf' provider='tandem' type='podman-etcd'><instance_attributes>\
             <nvpair name='a' value='of the template'/><nvpair name='b' value='2'/></instance_attributes></template>\
             <master id='m'><primitive id='etcd' template='t'><instance_attributes><nvpair name='a' value='1'/>\
             </instance_attributes><meta_attributes><nvpair name='target-role' value='Started'/></meta_attributes>\
             <operations><op name='monitor' interval='PT10S' timeout='1min'/><op name='start' interval='0'/></operations>\
             </primitive><meta_attributes><nvpair name='target-role' value='Stopped'/><nvpair name='notify' value='true'/>\
             </meta_attributes></master>\
             <clone id='k-clone'><group id='g'><primitive id='k' class='systemd' type='kubelet'/></group></clone>\
             <primitive id='f' class='stonith' type='fence_redfish_rs'><instance_attributes>\
             <nvpair name='pcmk_host_map' value='node1:1;node2:2'/></instance_attributes></primitive>";
        let constraints = "<rsc_location id='a' rsc='f' node='node1' score='-INFINITY'/>\
             <rsc_location id='b' rsc='f' node='node3' score='-100'/><rsc_location id='c' rsc='f'>\
             <rule id='r' score='-INFINITY'><expression id='e' attribute='#uname' operation='eq' value='node2'/></rule>\
             </rsc_location><rsc_location id='d' rsc='etcd' node='node2' score='-INFINITY'/>";
        let configuration = read(&with_resources(resources, constraints));
        let etcd = configuration.etcd.as_ref().unwrap();
        assert_eq!((&*etcd.agent, etcd.clone.as_deref(), etcd.promotable), ("ocf:tandem:podman-etcd", Some("m"), true));
        assert_eq!((&*etcd.parameters["a"], &*etcd.parameters["b"]), ("1", "2"));
        assert_eq!((&*etcd.meta["target-role"], &*etcd.meta["notify"]), ("Started", "true"));
        assert_eq!(etcd.operations, [("monitor".to_owned(), 10_000, 60_000), ("start".to_owned(), 0, 20_000)]);
        let kubelet = configuration.kubelet.as_ref().unwrap();
        assert_eq!((&*kubelet.id, kubelet.clone.as_deref()), ("k", Some("k-clone")));
        let device = &configuration.fence_devices[0];
        assert_eq!((&*device.targets, &*device.plugs["node2"]), (&["node1".to_owned(), "node2".to_owned()][..], "2"));
        assert_eq!(device.banned_from, ["node1", "node2"]);
        assert_eq!((&*configuration.properties["stonith-enabled"], &*configuration.properties["x"]), ("true", "1"));
        assert_eq!((&*configuration.alerts["tandem"], &*configuration.version), ("/usr/libexec/tandem/alert", "1:2:3"));
        assert_eq!(configuration.nodes, ["node1", "node2"]);
    }

    #[test]
    fn one_resource_of_several_is_meant_only_where_it_is_named() {
        let two = "<primitive id='a' class='ocf' provider='tandem' type='podman-etcd'/>\
             <primitive id='b' class='ocf' provider='heartbeat' type='podman-etcd'/>";
        let xml = with_resources(two, "");
        let chosen = |wanted| parse(&xml, wanted).unwrap().configuration;
        assert_eq!((chosen(None).etcd, chosen(None).etcd_resources), (None, vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(chosen(Some("b")).etcd.unwrap().agent, "ocf:heartbeat:podman-etcd");
        assert_eq!(chosen(Some("c")).etcd, None);
    }

    #[test]
    fn what_is_no_cib_is_no_empty_cluster_and_no_file_is_absent() {
        assert!(parse("<html/>", None).is_err() && parse("<cib", None).is_err() && parse("<cib/>", None).is_err());
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("cib.xml");
        assert_eq!(on_disk(&file, None), Fact::Absent);
        std::fs::write(&file, TWO_VOTERS).unwrap();
        assert!(on_disk(&file, None).known().is_some());
        std::fs::write(&file, "half").unwrap();
        assert!(matches!(on_disk(&file, None), Fact::Unknown(_)));
    }

    #[test]
    fn where_pacemaker_is_stopped_the_file_is_read_and_where_it_fails_nothing_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let asked = |script: &str| {
            ask(&crate::adapters::command::fake_program(dir.path(), "cibadmin", script), None, &Limits::default())
        };
        let failed = asked("echo 'cibadmin: no' >&2; exit 5");
        assert_eq!(failed, Fact::Unknown("cibadmin failed (5): cibadmin: no".to_owned()));
        assert!(matches!(asked("echo half"), Fact::Unknown(_)));
        // The result is the same as for this machine's own file.
        assert_eq!(asked("exit 102"), on_disk(Path::new(ON_DISK), None));
    }
}
