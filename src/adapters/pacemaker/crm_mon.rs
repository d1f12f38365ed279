//! The output of one `crm_mon` call: nodes with their attributes, resources, operation history, failures, fencing and bans. Its
//! XML has all of these by default, in Pacemaker 2.1 and in 3.0.

use std::collections::BTreeMap;

use roxmltree::{Document, Node as Element};

use super::seen::{Ban, Failure, Fencing, History, Instance, Node, Operation, Pacemaker};
use super::times;
use crate::adapters::command::{Output, Programs};
use crate::adapters::pace::limits::Limits;
use crate::adapters::pacemaker::element::{child, children, given, is_true, text, words};
use crate::adapters::pacemaker::exit_code::DISCONNECTED;
use crate::base::Fact;

/// The options of `crm_mon`. They include inactive resources, every instance of a clone, and every fencing that the fencer remembers.
const ARGUMENTS: [&str; 4] = ["--output-as=xml", "--inactive", "--show-detail", "--fence-history=3"];
/// Pacemaker's word for an unlimited number, and its numeric value.
const INFINITY: (&str, u64) = ("INFINITY", 1_000_000);

/// The scores of a location constraint that bans a resource from a node.
const NEVER: [&str; 2] = ["-1000000", "-INFINITY"];

/// Runs `crm_mon`, and returns the state of the cluster.
pub fn ask(programs: &Programs, limits: &Limits) -> Fact<Pacemaker> {
    match programs.clone().in_utc().run("crm_mon", &ARGUMENTS, limits.crm_mon) {
        Ok(output) => read(&output),
        Err(error) => Fact::Unknown(error.to_string()),
    }
}

fn read(output: &Output) -> Fact<Pacemaker> {
    match output.code {
        0 => parse(&output.stdout)
            .map_or_else(|why| Fact::Unknown(format!("what crm_mon says is not understood: {why}")), Fact::Known),
        DISCONNECTED => Fact::Absent,
        code => {
            let why = complaint(&output.stdout).unwrap_or_else(|| output.complaint().to_owned());
            Fact::Unknown(format!("crm_mon failed ({code}): {why}"))
        }
    }
}

/// Returns the error message in an output of `crm_mon`; `None` if there is none.
fn complaint(xml: &str) -> Option<String> {
    let document = Document::parse(xml).ok()?;
    let find = |name| document.descendants().find(|element| element.has_tag_name(name));
    let text = find("error").and_then(|error| error.text().map(str::to_owned));
    text.or_else(|| find("status")?.attribute("message").map(str::to_owned))
}

/// Parses the output of `crm_mon --output-as=xml`.
pub(crate) fn parse(xml: &str) -> Result<Pacemaker, String> {
    let document = Document::parse(xml).map_err(|error| error.to_string())?;
    let root = document.root_element();
    if !matches!(root.tag_name().name(), "pacemaker-result" | "crm_mon") {
        return Err(format!("its root is '{}'", root.tag_name().name()));
    }
    let summary = child(root, "summary").ok_or("it has no summary")?;
    let dc = child(summary, "current_dc");
    let options = child(summary, "cluster_options");
    let option = |name| options.is_some_and(|options| is_true(options, name));
    let version = dc.and_then(|dc| dc.attribute("version")).unwrap_or_default();
    Ok(Pacemaker {
        version: version.split('-').next().unwrap_or_default().to_owned(),
        dc: dc.and_then(|dc| dc.attribute("name")).map(str::to_owned),
        has_quorum: dc.is_some_and(|dc| is_true(dc, "with_quorum")),
        maintenance: option("maintenance-mode"),
        stonith_enabled: option("stonith-enabled"),
        nodes: nodes(root),
        resources: resources(root),
        histories: histories(root),
        failures: children(root, "failures", "failure").map(failure).collect(),
        fencing: fencing(root),
        bans: children(root, "bans", "ban").filter(|ban| NEVER.contains(&&*text(*ban, "weight"))).map(ban).collect(),
    })
}

fn count(element: Element<'_, '_>, name: &str) -> u64 {
    match element.attribute(name) {
        Some(value) if value == INFINITY.0 => INFINITY.1,
        value => value.and_then(|value| value.parse().ok()).unwrap_or_default(),
    }
}

fn code<T: std::str::FromStr + Default>(element: Element<'_, '_>, name: &str) -> T {
    element.attribute(name).and_then(|value| value.parse().ok()).unwrap_or_default()
}

fn time(element: Element<'_, '_>, name: &str) -> Option<u64> {
    times::parse(element.attribute(name)?)
}

/// Reads an attribute with a number of milliseconds, such as `5000ms` or `5000`; `None` if the attribute is missing.
fn millis(element: Element<'_, '_>, name: &str) -> Option<u64> {
    element.attribute(name)?.trim_end_matches("ms").parse().ok()
}

fn nodes(root: Element<'_, '_>) -> Vec<Node> {
    let mut attributes: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for node in children(root, "node_attributes", "node") {
        let pairs = node.children().filter(|child| child.has_tag_name("attribute"));
        let pairs = pairs.map(|pair| (text(pair, "name"), text(pair, "value")));
        attributes.entry(text(node, "name")).or_default().extend(pairs);
    }
    let node = |element: Element<'_, '_>| {
        let name = text(element, "name");
        Node {
            id: text(element, "id"),
            online: is_true(element, "online"),
            standby: is_true(element, "standby"),
            maintenance: is_true(element, "maintenance"),
            pending: is_true(element, "pending"),
            unclean: is_true(element, "unclean"),
            shutdown: is_true(element, "shutdown"),
            expected_up: is_true(element, "expected_up"),
            is_dc: is_true(element, "is_dc"),
            kind: text(element, "type"),
            attributes: attributes.get(&name).cloned().unwrap_or_default(),
            name,
        }
    };
    children(root, "nodes", "node").map(node).collect()
}

/// Reads every resource, also inside groups, clones and bundles.
fn resources(root: Element<'_, '_>) -> Vec<Instance> {
    let all = child(root, "resources").into_iter().flat_map(|section| section.descendants());
    all.filter(|element| element.has_tag_name("resource")).map(instance).collect()
}

fn instance(element: Element<'_, '_>) -> Instance {
    let clone = element.ancestors().find(|ancestor| ancestor.has_tag_name("clone"));
    let nodes = element.children().filter(|child| child.has_tag_name("node"));
    let (role, under_way) = role_and_change(element.attribute("role").unwrap_or_default());
    Instance {
        id: without_number(element.attribute("id").unwrap_or_default()).to_owned(),
        clone: clone.and_then(|clone| given(clone, "id")),
        agent: text(element, "resource_agent"),
        nodes: nodes.map(|node| text(node, "name")).collect(),
        role: role.to_owned(),
        target_role: given(element, "target_role")
            .or_else(|| given(clone?, "target_role"))
            .map(|word| role_and_change(&word).0.to_owned()),
        active: is_true(element, "active"),
        managed: is_true(element, "managed"),
        // Pacemaker up to 2.1.5 has no such attribute for a resource. It then reports the resource as not managed.
        maintenance: is_true(element, "maintenance") || clone.is_some_and(|clone| is_true(clone, "maintenance")),
        blocked: is_true(element, "blocked"),
        failed: is_true(element, "failed"),
        orphaned: is_true(element, "orphaned"),
        pending: given(element, "pending").or_else(|| under_way.map(str::to_owned)),
    }
}

/// Splits `word`, which `crm_mon` shows for a resource, into the resource's role and the operation that is under way. `crm_mon` shows a
/// pending operation in place of the role. Up to 2.1, Pacemaker had other words for the roles of a promotable clone.
fn role_and_change(word: &str) -> (&str, Option<&str>) {
    match word {
        "Master" => ("Promoted", None),
        "Slave" => ("Unpromoted", None),
        "Starting" => ("Stopped", Some(word)),
        "Stopping" | "Migrating" => ("Started", Some(word)),
        "Promoting" => ("Unpromoted", Some(word)),
        "Demoting" => ("Promoted", Some(word)),
        word => (word, None),
    }
}

/// Returns a resource's id without the number of its instance: `etcd` for `etcd:0`.
fn without_number(id: &str) -> &str {
    match id.rsplit_once(':') {
        Some((name, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => id,
    }
}

fn histories(root: Element<'_, '_>) -> Vec<History> {
    let of_node = |node: Element<'_, '_>| -> Vec<History> {
        let name = text(node, "name");
        let resources = node.children().filter(|child| child.has_tag_name("resource_history"));
        resources.map(|resource| history(name.clone(), resource)).collect()
    };
    children(root, "node_history", "node").flat_map(of_node).collect()
}

fn history(node: String, element: Element<'_, '_>) -> History {
    let operations = element.children().filter(|child| child.has_tag_name("operation_history"));
    History {
        node,
        resource: without_number(element.attribute("id").unwrap_or_default()).to_owned(),
        fail_count: count(element, "fail-count"),
        migration_threshold: count(element, "migration-threshold"),
        last_failure: time(element, "last-failure"),
        operations: operations.map(operation).collect(),
    }
}

fn operation(element: Element<'_, '_>) -> Operation {
    let interval_millis = millis(element, "interval").unwrap_or_default();
    Operation {
        task: task(element.attribute("task").unwrap_or_default(), interval_millis),
        rc: code(element, "rc"),
        call: code(element, "call"),
        last_change: time(element, "last-rc-change"),
        exec_millis: millis(element, "exec-time"),
        interval_millis,
    }
}

/// Returns the name of an operation. A monitor without an interval is named `probe`: it checks whether a resource already runs.
fn task(task: &str, interval_millis: u64) -> String {
    if task == "monitor" && interval_millis == 0 { "probe" } else { task }.to_owned()
}

fn failure(element: Element<'_, '_>) -> Failure {
    let interval_millis = millis(element, "interval").unwrap_or_default();
    let name = element.attribute("task").unwrap_or_default();
    // The failure is named by its operation, or by its resource where the operation is unknown.
    let key = element.attribute("op_key").or_else(|| element.attribute("id")).unwrap_or_default();
    let resource = key.strip_suffix(&format!("_{name}_{interval_millis}")).unwrap_or(key);
    Failure {
        node: text(element, "node"),
        resource: without_number(resource).to_owned(),
        task: task(name, interval_millis),
        interval_millis,
        rc: code(element, "exitcode"),
        status: text(element, "exitstatus"),
        reason: words(element, "exitreason"),
        at: time(element, "last-rc-change"),
        call: code(element, "call"),
    }
}

/// Reads the history of fencings, newest first. A pending fencing has no end.
fn fencing(root: Element<'_, '_>) -> Vec<Fencing> {
    let event = |element: Element<'_, '_>| Fencing {
        target: text(element, "target"),
        action: text(element, "action"),
        status: text(element, "status"),
        // `extended-status` of a pending fencing is an internal number of the fencer.
        reason: Some(words(element, "exit-reason")).filter(|reason| !reason.is_empty()),
        delegate: given(element, "delegate"),
        origin: text(element, "origin"),
        // The number in `pacemaker-controld.1234` is of a process that may have ended.
        client: element.attribute("client").unwrap_or_default().split('.').next().unwrap_or_default().to_owned(),
        completed: time(element, "completed"),
    };
    let mut events: Vec<Fencing> = children(root, "fence_history", "fence_event").map(event).collect();
    events.sort_by_key(|event| std::cmp::Reverse(event.completed.unwrap_or(u64::MAX)));
    events
}

fn ban(element: Element<'_, '_>) -> Ban {
    Ban { id: text(element, "id"), resource: text(element, "resource"), node: text(element, "node") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses an output of `crm_mon` 2.1.5 that was captured in the lab in the state `state`. Its times are in UTC.
    fn captured(state: &str) -> Pacemaker {
        let path = format!("{}/tests/data/fixtures/crm_mon/{state}.xml", env!("CARGO_MANIFEST_DIR"));
        parse(&std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))).unwrap()
    }

    fn node(pacemaker: &Pacemaker, name: &str) -> Node {
        pacemaker.nodes.iter().find(|node| node.name == name).unwrap().clone()
    }

    /// Returns the role, the nodes and whether it is managed, for each instance of the resource `id`.
    fn instances(pacemaker: &Pacemaker, id: &str) -> Vec<(String, Vec<String>, bool)> {
        let all = pacemaker.resources.iter().filter(|instance| instance.id == id);
        all.map(|instance| (instance.role.clone(), instance.nodes.clone(), instance.managed)).collect()
    }

    fn on(role: &str, node: &str) -> (String, Vec<String>, bool) {
        (role.to_owned(), vec![node.to_owned()], true)
    }

    #[test]
    fn a_healthy_cluster_is_read_whole() {
        let seen = captured("healthy");
        assert_eq!((&*seen.version, seen.dc.as_deref(), seen.has_quorum), ("2.1.5", Some("node1"), true));
        assert!(seen.stonith_enabled && !seen.maintenance);
        let first = node(&seen, "node1");
        assert!(first.online && first.expected_up && first.is_dc && !first.unclean && !first.pending);
        assert_eq!((&*first.id, &*first.kind, &*first.attributes["node_ip"]), ("1", "member", "10.99.0.1"));
        assert_eq!(instances(&seen, "etcd"), [on("Started", "node2"), on("Started", "node1")]);
        assert_eq!(instances(&seen, "fence-node2"), [on("Started", "node2")]);
        assert_eq!(seen.resources[0].agent, "stonith:fence_redfish_rs");
        let history = seen.histories.iter().find(|one| one.resource == "etcd" && one.node == "node1").unwrap();
        assert_eq!((history.fail_count, history.migration_threshold, history.last_failure), (0, 60, None));
        let monitor = Operation {
            task: "monitor".to_owned(),
            rc: 0,
            call: 18,
            last_change: Some(1_795_444_435),
            exec_millis: Some(76),
            interval_millis: 5_000,
        };
        assert_eq!(history.operations.last(), Some(&monitor));
        assert!(seen.failures.is_empty() && seen.fencing.is_empty() && seen.bans.is_empty());
    }

    #[test]
    fn what_an_operator_has_taken_out_is_told() {
        let standby = captured("standby");
        assert!(node(&standby, "node2").standby && node(&standby, "node2").online);
        assert_eq!(instances(&standby, "etcd"), [on("Started", "node1"), ("Stopped".to_owned(), Vec::new(), true)]);
        assert!(captured("maintenance").maintenance);
        let of_a_node = captured("node-maintenance");
        assert!(
            node(&of_a_node, "node2").maintenance && !node(&of_a_node, "node1").maintenance && !of_a_node.maintenance
        );
        assert!(
            instances(&captured("unmanaged"), "etcd").iter().all(|(role, _, managed)| role == "Started" && !managed)
        );
        let disabled = captured("disabled");
        let targets: Vec<_> =
            disabled.resources.iter().filter(|one| one.id == "etcd").map(|one| &one.target_role).collect();
        assert_eq!(targets, [&Some("Stopped".to_owned()), &Some("Stopped".to_owned())]);
    }

    #[test]
    fn a_failed_start_is_told_with_its_reason_and_its_time() {
        let seen = captured("failed-start");
        let [failure] = &*seen.failures else { panic!("{:?}", seen.failures) };
        assert_eq!((&*failure.node, &*failure.resource, &*failure.task, failure.rc), ("node2", "etcd", "start", 1));
        assert!(failure.reason.starts_with("key_file=/etc/tandem/etcd.key cannot be read"), "{}", failure.reason);
        assert_eq!((&*failure.status, failure.interval_millis), ("error", 0));
        let history = seen.histories.iter().find(|one| one.resource == "etcd" && one.node == "node2").unwrap();
        // One time is in the format of ctime, the other in ISO 8601.
        assert_eq!((history.fail_count, history.last_failure), (1, failure.at));
        assert!(failure.at.is_some());
    }

    #[test]
    fn a_fencing_is_told_while_it_is_under_way_and_when_it_ended() {
        let lost = captured("peer-being-fenced");
        let peer = node(&lost, "node2");
        assert!(!peer.online && peer.unclean && peer.expected_up);
        let pacemaker_3 = captured("pacemaker-3.0.0");
        let [fencing] = &*pacemaker_3.fencing else { panic!("{:?}", pacemaker_3.fencing) };
        assert_eq!((&*fencing.target, &*fencing.action, &*fencing.status), ("node2", "reboot", "pending"));
        assert_eq!((&*fencing.origin, &*fencing.client, fencing.completed), ("node1", "pacemaker-controld", None));
        let fenced = captured("fenced");
        let [fencing] = &*fenced.fencing else { panic!("{:?}", fenced.fencing) };
        assert_eq!((&*fencing.status, fencing.delegate.as_deref()), ("success", Some("node1")));
        assert!(fencing.completed.is_some());
        let peer = node(&fenced, "node2");
        assert!(!peer.online && !peer.unclean && !peer.expected_up);
    }

    #[test]
    fn pacemaker_3_is_read_as_2_1_is() {
        let seen = captured("pacemaker-3.0.0");
        assert_eq!((&*seen.version, seen.nodes.len()), ("3.0.0", 2));
        assert_eq!(seen.resources.iter().filter(|one| one.id == "etcd").count(), 2);
        let [failure] = &*seen.failures else { panic!("{:?}", seen.failures) };
        assert_eq!((&*failure.resource, &*failure.node, &*failure.status), ("etcd", "node2", "Error occurred"));
        let history = seen.histories.iter().find(|one| one.resource == "etcd" && one.node == "node2").unwrap();
        assert_eq!((history.fail_count, history.last_failure), (2, failure.at));
    }

    /// Asserts that an agent's exit reason has no XML entities left. Pacemaker 2.1.5 escapes it twice, and other versions escape it once.
    #[test]
    fn no_entity_is_left_in_the_words_of_an_agent() {
        for apostrophe in ["&apos;", "&amp;apos;"] {
            let xml = format!(
                "<crm_mon><summary/><failures><failure op_key='etcd_start_0' exitreason='type {apostrophe}podman pull a{apostrophe}'/></failures>\
                 <fence_history><fence_event target='b' exit-reason='{apostrophe}on{apostrophe} &amp;lt; 3 s'/></fence_history></crm_mon>"
            );
            let seen = parse(&xml).unwrap();
            assert_eq!(seen.failures[0].reason, "type 'podman pull a'");
            assert_eq!(seen.fencing[0].reason.as_deref(), Some("'on' < 3 s"));
        }
    }

    #[test]
    fn older_and_rarer_words_are_read() {
        let xml = "<pacemaker-result><summary><current_dc present='false'/><cluster_options stonith-enabled='false'/></summary>\
             <resources><clone id='c' maintenance='true' target_role='Slave'><group id='g'>\
             <resource id='etcd:0' role='Master' active='true' managed='true'><node name='node1'/></resource>\
             <resource id='etcd:1' role='Slave' pending='Monitoring'/><resource id='etcd:2' role='Starting'/></group></clone>\
             </resources><node_history><node name='node1'><resource_history id='etcd:0' fail-count='INFINITY' \
             migration-threshold='1000000'><operation_history task='monitor' rc='7' exec-time='3ms'/></resource_history>\
             </node></node_history><failures><failure id='odd' node='node1' exitcode='5' task='stop'/></failures>\
             <fence_history><fence_event target='b' status='failed' completed='2026-11-23 14:02:51Z' exit-reason='no'/>\
             <fence_event target='a' status='failed' completed='2026-11-23 14:02:52.5Z' client='stonith_admin.7'/>\
             <fence_event target='c' status='pending'/></fence_history>\
             <bans><ban id='x' resource='etcd' node='node1' weight='-1000000'/><ban id='y' weight='-5'/></bans>\
             </pacemaker-result>";
        let seen = parse(xml).unwrap();
        assert_eq!((seen.dc, seen.has_quorum, seen.stonith_enabled), (None, false, false));
        let told: Vec<_> = seen.resources.iter().map(|one| (&*one.id, &*one.role, one.pending.as_deref())).collect();
        let expected = [
            ("etcd", "Promoted", None),
            ("etcd", "Unpromoted", Some("Monitoring")),
            ("etcd", "Stopped", Some("Starting")),
        ];
        assert_eq!(told, expected);
        let first = &seen.resources[0];
        assert!(first.maintenance && first.active);
        assert_eq!((first.clone.as_deref(), first.target_role.as_deref()), (Some("c"), Some("Unpromoted")));
        let history = &seen.histories[0];
        assert_eq!(
            (&*history.resource, history.fail_count, &*history.operations[0].task),
            ("etcd", 1_000_000, "probe")
        );
        assert_eq!((&*seen.failures[0].resource, seen.failures[0].rc), ("odd", 5));
        let targets: Vec<&str> = seen.fencing.iter().map(|event| &*event.target).collect();
        assert_eq!((targets, seen.fencing[2].reason.as_deref()), (vec!["c", "a", "b"], Some("no")));
        assert_eq!(seen.bans, [Ban { id: "x".to_owned(), resource: "etcd".to_owned(), node: "node1".to_owned() }]);
    }

    #[test]
    fn a_stopped_pacemaker_is_absent_and_what_fails_is_unknown_in_its_own_words() {
        let output = |code, stdout: &str| Output { code, stdout: stdout.to_owned(), stderr: String::new() };
        assert_eq!(read(&output(DISCONNECTED, "")), Fact::Absent);
        let failed = "<pacemaker-result><status code='1' message='Error'><errors><error>crm_mon: no</error></errors></status>\
             </pacemaker-result>";
        assert_eq!(read(&output(1, failed)), Fact::Unknown("crm_mon failed (1): crm_mon: no".to_owned()));
        assert_eq!(read(&output(1, "")), Fact::Unknown("crm_mon failed (1): it said nothing".to_owned()));
        assert!(matches!(read(&output(0, "<html/>")), Fact::Unknown(_)));
        assert!(matches!(read(&output(0, "<half")), Fact::Unknown(_)));
    }
}
