//! Corosync's and Pacemaker's configuration, as an operator would create it, and queries of the cluster's state.

pub mod agent_call;
pub mod alert;
pub mod asked;
pub mod collector;
pub mod etcd;
pub mod lone_boot;
pub mod openshift;
pub mod pacemaker;
pub mod pcs;
pub mod redundant;
pub mod sidecar;
pub mod teardown;
pub mod third_voter;
pub mod two_node_openshift;
pub mod typed;
pub mod up;

use std::time::Duration;

use crate::host;
use crate::host::node::{BMC_PASSWORD, BMC_USER, NODES, Node};
use crate::host::state::Lab;
use crate::programs::image;
use crate::sh::{self, Result};

/// The kind of Pacemaker clone that runs etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloneKind {
    /// A clone without roles, as Two Node OpenShift creates it.
    Plain,
    /// A clone with roles: a node with a voter is *Promoted*, a node with a learner *Unpromoted*.
    Promotable,
}

impl CloneKind {
    pub fn parse(text: &str) -> Result<Self> {
        match text {
            "plain" => Ok(Self::Plain),
            "promotable" => Ok(Self::Promotable),
            other => Err(format!("'{other}' is no kind of clone; type --clone plain or --clone promotable").into()),
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Promotable => "promotable",
        }
    }
}

/// The name of the lab's setting that changes Corosync's token time-out, in milliseconds.
pub const TOKEN: &str = "token";

/// Returns Corosync's token time-out, in milliseconds. It is longer for emulated machines, which may wait seconds for
/// a core.
fn token_ms(lab: &Lab) -> u32 {
    if let Some(token) = lab.setting(TOKEN).and_then(|token| token.parse().ok()) {
        return token;
    }
    match host::Kind::of(lab) {
        host::Kind::Namespaces => 3000,
        host::Kind::Vm => 10_000,
    }
}

/// Returns a `corosync.conf`. `two_node` implies `wait_for_all`: after both nodes were off, neither starts resources
/// before it has seen the other.
pub fn corosync_conf(lab: &Lab) -> String {
    let mut nodes = String::new();
    for node in NODES {
        nodes.push_str(&format!(
            "    node {{\n        ring0_addr: {}\n        name: {node}\n        nodeid: {}\n    }}\n",
            node.ip(),
            node.number()
        ));
    }
    format!(
        "totem {{
    version: 2
    cluster_name: {}
    transport: knet
    crypto_cipher: aes256
    crypto_hash: sha256
    token: {}
}}
nodelist {{
{nodes}}}
quorum {{
    provider: corosync_votequorum
    two_node: 1
}}
logging {{
    to_logfile: yes
    logfile: /var/log/corosync/corosync.log
    to_syslog: yes
    timestamp: hires
}}
",
        lab.name,
        token_ms(lab)
    )
}

/// The CIB that a host's Pacemaker finds on its first boot. It contains properties only. Because there is a CIB on disk, the first
/// election waits for the short `dc-deadtime` in it, and not for the default of 20 s. The high `load-threshold` lets Pacemaker run several
/// actions at a time even if the machine, which both hosts share, is busy.
pub const FIRST_CIB: &str = r#"<cib crm_feature_set="3.16.1" validate-with="pacemaker-3.9" admin_epoch="0" epoch="1" num_updates="0">
  <configuration>
    <crm_config>
      <cluster_property_set id="cib-bootstrap-options">
        <nvpair id="cib-bootstrap-options-dc-deadtime" name="dc-deadtime" value="5s"/>
        <nvpair id="cib-bootstrap-options-load-threshold" name="load-threshold" value="1000%"/>
        <nvpair id="cib-bootstrap-options-start-failure-is-fatal" name="start-failure-is-fatal" value="false"/>
        <nvpair id="cib-bootstrap-options-stonith-enabled" name="stonith-enabled" value="true"/>
      </cluster_property_set>
    </crm_config>
    <nodes/>
    <resources/>
    <constraints/>
  </configuration>
  <status/>
</cib>
"#;

/// The delay before each of [`NODES`] is fenced. Pacemaker's designated controller begins to fence a second before
/// the other node, which has to elect itself first. So the delays must differ by more than a second.
pub const FENCING_DELAYS: [&str; 2] = ["3s", "0s"];

/// Creates one fence device per node. Their short delays differ, so that two nodes that lose each other do not fence
/// each other at once.
pub fn create_fencing(lab: &Lab, node: Node) -> Result<()> {
    NODES.into_iter().try_for_each(|target| create_fence_device(lab, node, target))
}

fn create_fence_device(lab: &Lab, node: Node, target: Node) -> Result<()> {
    let options = [
        format!("ip={}", target.bmc_ip()),
        format!("username={BMC_USER}"),
        // pcs offers no other way to pass the password; operators do the same.
        format!("password={BMC_PASSWORD}"),
        format!("systems_uri=/redfish/v1/Systems/{}", target.system_id()),
        format!("pcmk_host_list={target}"),
        format!("pcmk_delay_base={}", FENCING_DELAYS[usize::from(target.number() - 1)]),
    ];
    let name = fence_device(target);
    let mut words = vec!["stonith", "create", &name, "fence_redfish_rs"];
    words.extend(options.iter().map(String::as_str));
    pcs::create(lab, node, &words)
}

/// Sets whether the fence agents race without delays to decide a split. With `races` false, each device gets its
/// delay again.
pub fn set_race(lab: &Lab, races: bool) -> Result<()> {
    for (target, delay) in NODES.into_iter().zip(FENCING_DELAYS) {
        let options = if races {
            let own = format!("race_with={}", target.other().bmc_ip());
            ["pcmk_delay_base=0s".to_owned(), own, format!("race_preferred={}", Node::One)]
        } else {
            [format!("pcmk_delay_base={delay}"), "race_with=".to_owned(), "race_preferred=".to_owned()]
        };
        let name = fence_device(target);
        let mut words = vec!["stonith", "update", &name];
        words.extend(options.iter().map(String::as_str));
        pcs::run(lab, target, &words)?;
    }
    Ok(())
}

/// Returns the name of the fence device that fences `target`.
pub fn fence_device(target: Node) -> String {
    format!("fence-{target}")
}

/// Creates the etcd resource as a clone on both nodes.
pub fn create_etcd(lab: &Lab, node: Node, kind: CloneKind) -> Result<()> {
    create_etcd_with(lab, node, kind, &[], false)
}

/// Creates the etcd resource with the values `instead` for some of its parameters. An empty value omits the
/// parameter. With `force`, pcs also accepts values that it would refuse.
pub fn create_etcd_with(lab: &Lab, node: Node, kind: CloneKind, instead: &[(&str, &str)], force: bool) -> Result<()> {
    let image = image::name(&lab.setting("etcd").unwrap_or_default());
    let map = NODES.map(|node| format!("{node}:{}", node.ip())).join(";");
    // Omitted if the lab has no `recovery` setting, so that the agent's default applies.
    let recovery = lab.setting("recovery").unwrap_or_default();
    let usual = [
        ("recovery", recovery.as_str()),
        ("node_ip_map", map.as_str()),
        ("image", image.as_str()),
        ("trusted_ca_file", "/etc/tandem/ca.crt"),
        ("cert_file", "/etc/tandem/etcd.crt"),
        ("key_file", "/etc/tandem/etcd.key"),
        ("oom", "0"),
        ("etcd_settings", ""),
        ("configured_primary", ""),
        ("failback_delay", ""),
    ];
    let options: Vec<String> = usual
        .iter()
        .map(|(key, value)| (key, instead.iter().find(|(other, _)| other == key).map_or(*value, |(_, wrong)| *wrong)))
        .filter(|(_, value)| !value.is_empty())
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let mut words = vec![ETCD, "ocf:tandem:podman-etcd"];
    words.extend(options.iter().map(String::as_str));
    words.extend(["meta", "migration-threshold=60"]);
    // pcs prints a warning for each value that `--force` makes it accept.
    let typed = if force { pcs::run } else { pcs::create };
    if force {
        words.push("--force");
    }
    let clone: &[&str] = match kind {
        CloneKind::Plain => &["clone", "interleave=true", "notify=true"],
        CloneKind::Promotable => &["promotable", "promoted-max=2", "interleave=true", "notify=true"],
    };
    pcs::create_clone(lab, node, typed, &words, clone)
}

/// Pacemaker's names for the roles that a running instance of a resource can have.
const STARTED: [&str; 5] = ["Started", "Promoted", "Unpromoted", "Master", "Slave"];

/// The name of the etcd resource, and of its container.
pub const ETCD: &str = "etcd";
/// The name that pcs gives the clone of the etcd resource.
pub const ETCD_CLONE: &str = "etcd-clone";

/// Returns the value of a Pacemaker node attribute. `None` if the node does not have it. `lifetime` is `reboot` or
/// `forever`.
pub fn attribute(lab: &Lab, node: Node, lifetime: &str, name: &str) -> Option<String> {
    let words = ["crm_attribute", "--query", "--quiet", "--lifetime", lifetime, "--node", node.name(), "--name", name];
    host::must(lab, node, &words).ok().map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// Sets a Pacemaker attribute of `node` by a command on `by`. `lifetime` is `reboot` or `forever`.
pub fn set_attribute(lab: &Lab, by: Node, node: Node, lifetime: &str, name: &str, value: &str) -> Result<()> {
    let words = ["crm_attribute", "--lifetime", lifetime, "--node", node.name(), "--name", name, "--update", value];
    host::must(lab, by, &words).map(drop)
}

/// Returns the output of `crm_mon` on a running node, with failed actions and node attributes.
pub fn crm_mon(lab: &Lab, node: Node) -> Result<String> {
    host::must(lab, node, &["crm_mon", "-1", "-A", "-f", "-r", "-n"])
}

/// Returns the nodes that Pacemaker on `node` reports as online.
pub fn online(lab: &Lab, node: Node) -> Vec<Node> {
    let Ok(xml) = host::must(lab, node, &["crm_mon", "-1", "--output-as=xml"]) else { return Vec::new() };
    let Ok(document) = roxmltree::Document::parse(&xml) else { return Vec::new() };
    let nodes = document.descendants().filter(|element| element.has_tag_name("node"));
    nodes
        .filter(|element| element.attribute("online") == Some("true") && element.attribute("pending") != Some("true"))
        .filter_map(|element| element.attribute("name")?.parse().ok())
        .collect()
}

/// Returns Pacemaker's designated controller, as `node` reports it.
pub fn coordinator(lab: &Lab, node: Node) -> Result<Node> {
    let said = host::must(lab, node, &["crmadmin", "--dc_lookup"])?;
    let name = said.split_whitespace().find_map(|word| word.parse().ok());
    name.ok_or_else(|| format!("nobody coordinates: {said}").into())
}

/// Returns the names of the nodes that are being fenced, as `node` reports them.
pub fn being_fenced(lab: &Lab, node: Node) -> Result<Vec<String>> {
    let xml = host::must(lab, node, &["crm_mon", "-1", "--output-as=xml"])?;
    let document = roxmltree::Document::parse(&xml)?;
    let events = document.descendants().filter(|element| element.has_tag_name("fence_event"));
    let pending = events.filter(|event| event.attribute("status") == Some("pending"));
    Ok(pending.filter_map(|event| event.attribute("target").map(str::to_owned)).collect())
}

/// Returns whether Pacemaker's last action for etcd on `node` was a stop, with no other action pending there.
pub fn last_is_a_stop(lab: &Lab, node: Node) -> Result<bool> {
    let history = format!("//node_state[@uname='{node}']//lrm_resource[starts-with(@id,'{ETCD}')]");
    let xml = host::must(lab, node, &["cibadmin", "--query", "--xpath", &history])?;
    let document = roxmltree::Document::parse(&xml)?;
    let operations = || document.descendants().filter(|element| element.has_tag_name("lrm_rsc_op"));
    let number = |element: &roxmltree::Node<'_, '_>| element.attribute("call-id").and_then(|id| id.parse::<i64>().ok());
    let under_way = operations().any(|operation| operation.attribute("op-status") == Some("-1"));
    let Some(last) = operations().max_by_key(number) else { return Ok(false) };
    let is_stop = last.attribute("operation") == Some("stop") && last.attribute("rc-code") == Some("0");
    Ok(is_stop && !under_way)
}

/// Returns the nodes on which Pacemaker has started etcd, as `node` reports them. An etcd that was started counts
/// even if it does not serve.
pub fn has_etcd_started(lab: &Lab, node: Node) -> Vec<Node> {
    let Ok(xml) = host::must(lab, node, &["crm_mon", "-1", "--output-as=xml"]) else { return Vec::new() };
    let Ok(document) = roxmltree::Document::parse(&xml) else { return Vec::new() };
    let of_etcd = |element: &roxmltree::Node<'_, '_>| {
        element.has_tag_name("resource")
            && element.attribute("resource_agent").is_some_and(|agent| agent.ends_with(":podman-etcd"))
            && STARTED.iter().any(|role| element.attribute("role") == Some(role))
            && element.attribute("failed") != Some("true")
    };
    let instances = document.descendants().filter(of_etcd);
    let nodes = instances.flat_map(|instance| instance.children().filter(|child| child.has_tag_name("node")));
    nodes.filter_map(|node| node.attribute("name")?.parse().ok()).collect()
}

/// Returns the failed actions that Pacemaker shows on `node`, and the instances of etcd that do not run. A healthy
/// cluster has none.
pub fn complaints(lab: &Lab, node: Node) -> Result<Vec<String>> {
    let xml = host::must(lab, node, &["crm_mon", "-1", "-r", "-f", "--output-as=xml"])?;
    let document = roxmltree::Document::parse(&xml)?;
    let mut found = Vec::new();
    let mut running = 0;
    for element in document.descendants() {
        let is = |name: &str| element.attribute(name) == Some("true");
        if element.has_tag_name("resource") {
            let id = element.attribute("id").unwrap_or("?");
            if is("blocked") || is("failed") || is("failure_ignored") {
                found.push(format!("resource {id} is failed or blocked"));
            }
            let started = STARTED.iter().any(|role| element.attribute("role") == Some(role));
            if element.attribute("resource_agent").is_some_and(|agent| agent.ends_with(":podman-etcd"))
                && started
                && is("active")
            {
                running += 1;
            }
            if element.attribute("resource_agent").is_some_and(|agent| agent.starts_with("stonith:")) && !is("active") {
                found.push(format!("fence device {id} is not running"));
            }
        }
    }
    if running != NODES.len() {
        found.push(format!("{running} of {} etcd instances are running", NODES.len()));
    }
    Ok(found)
}

/// Waits until [`complaints`] is empty, and returns the complaints that remain after two minutes. The wait is long
/// because, after an outage of its BMC, a fence device takes 15 s for each try.
pub fn wait_clean(lab: &Lab) -> Result<Vec<String>> {
    let node = host::any_running(lab)?;
    let mut last = Vec::new();
    let clean = sh::wait_for("a clean cluster", Duration::from_secs(120), Duration::from_millis(500), || {
        last = complaints(lab, node).unwrap_or_else(|error| vec![error.to_string()]);
        last.is_empty().then_some(())
    });
    crate::interrupt::check()?;
    Ok(if clean.is_ok() { Vec::new() } else { last })
}

/// A failed action in Pacemaker's history.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The name of the failed action, such as `etcd_start_0`.
    pub action: String,
    node: String,
    pub code: String,
    pub reason: String,
}

impl Failure {
    pub fn is_on(&self, node: Node) -> bool {
        self.node == node.name()
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} on {}: exit code {}: {}", self.action, self.node, self.code, self.reason)
    }
}

/// Returns the failed actions in the history of Pacemaker on `node`.
pub fn failures(lab: &Lab, node: Node) -> Vec<Failure> {
    let Ok(xml) = host::must(lab, node, &["crm_mon", "-1", "-f", "--output-as=xml"]) else { return Vec::new() };
    let Ok(document) = roxmltree::Document::parse(&xml) else { return Vec::new() };
    let failures = document.descendants().filter(|element| element.has_tag_name("failure"));
    failures
        .map(|element| {
            let get = |name: &str| element.attribute(name).unwrap_or("").to_owned();
            Failure {
                action: if get("op_key").is_empty() { get("task") } else { get("op_key") },
                node: get("node"),
                code: get("exitcode"),
                reason: unescape(&get("exitreason")),
            }
        })
        .collect()
}

/// Decodes XML entities in an exit reason, because Pacemaker 2.1.5 escapes exit reasons twice.
fn unescape(text: &str) -> String {
    [("&apos;", "'"), ("&quot;", "\""), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")]
        .iter()
        .fold(text.to_owned(), |text, (entity, character)| text.replace(entity, character))
}
