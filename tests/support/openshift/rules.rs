//! Validation of an object as by the API server: OpenShift's schema, and the rules of the definition that a schema
//! cannot express.

use std::collections::BTreeSet;
use std::net::IpAddr;

use jsonschema::Validator;
use serde_json::Value;

const OF_CLUSTER: &[&str] = &["Healthy", "InService", "NodeCountAsExpected"];
const OF_NODE: &[&str] =
    &["Healthy", "Online", "InService", "Active", "Ready", "Clean", "Member", "FencingAvailable", "FencingHealthy"];
const OF_RESOURCE: &[&str] =
    &["Healthy", "InService", "Managed", "Enabled", "Operational", "Active", "Started", "Schedulable"];

fn validator() -> Validator {
    let schema = include_str!("../../data/fixtures/pacemakercluster/schema.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    jsonschema::options().should_validate_formats(true).build(&schema).unwrap()
}

/// Returns the faults for which the API server would refuse `object`. `before` is the object that it updates, or `None`
/// if it is new.
pub(crate) fn faults(object: &Value, before: Option<&Value>) -> Vec<String> {
    let mut faults: Vec<String> =
        validator().iter_errors(object).map(|error| format!("{}: {error}", error.instance_path())).collect();
    let status = &object["status"];
    if let Some(before) = before.and_then(|before| before["status"]["lastUpdated"].as_str())
        && status["lastUpdated"].as_str().is_some_and(|updated| updated < before)
    {
        faults.push("lastUpdated goes back".to_owned());
    }
    conditions("status", status, OF_CLUSTER, &mut faults);
    let nodes = list(&status["nodes"]);
    unique("nodes", nodes, "nodeName", &mut faults);
    for node in nodes {
        let name = node["nodeName"].as_str().unwrap_or_default();
        conditions(name, node, OF_NODE, &mut faults);
        for address in list(&node["addresses"]) {
            let text = address["address"].as_str().unwrap_or_default();
            if !is_canonical_and_global(text) {
                faults.push(format!("{name}: the address {text}"));
            }
        }
        let resources = list(&node["resources"]);
        for wanted in ["Kubelet", "Etcd"] {
            if !resources.iter().any(|resource| resource["name"] == wanted) {
                faults.push(format!("{name} has no resource {wanted}"));
            }
        }
        for (key, entries) in [("resources", resources), ("fencingAgents", list(&node["fencingAgents"]))] {
            unique(&format!("{name}: {key}"), entries, "name", &mut faults);
            for entry in entries {
                conditions(&format!("{name}: {key}"), entry, OF_RESOURCE, &mut faults);
            }
        }
    }
    faults
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn conditions(place: &str, holder: &Value, wanted: &[&str], faults: &mut Vec<String>) {
    let conditions = list(&holder["conditions"]);
    unique(&format!("{place}: conditions"), conditions, "type", faults);
    for kind in wanted {
        if !conditions.iter().any(|condition| condition["type"] == *kind) {
            faults.push(format!("{place} has no condition {kind}"));
        }
    }
}

fn unique(place: &str, entries: &[Value], key: &str, faults: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for entry in entries {
        if !seen.insert(entry[key].as_str()) {
            faults.push(format!("{place}: {} is there twice", entry[key]));
        }
    }
}

/// Returns whether Kubernetes' rule `isIP(self) && ip.isCanonical(self) && ip(self).isGlobalUnicast()` accepts a text, as
/// Go's `netip` evaluates it.
fn is_canonical_and_global(text: &str) -> bool {
    let Ok(address) = text.parse::<IpAddr>() else { return false };
    let is_mapped = matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some());
    if is_mapped || address.to_string() != text {
        return false;
    }
    let bytes: Vec<u8> = match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    match bytes.as_slice() {
        [0, 0, 0, 0] | [255, 255, 255, 255] | [127 | 224..=239, _, _, _] | [169, 254, _, _] => false,
        [_, _, _, _] => true,
        [0xff, ..] => false,
        [0xfe, second, ..] => second & 0xc0 != 0x80,
        all => all[..15].iter().any(|byte| *byte != 0) || all[15] > 1,
    }
}
