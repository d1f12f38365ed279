//! Kubernetes' label selectors. Pure.

use serde_json::{Map, Value};

/// Returns whether a label selector matches the labels of `object`. An empty selector matches every object. A part of the selector that is
/// not understood counts as matching, because the health check may concern the object.
pub fn matches(selector: Option<&Value>, object: &Value) -> bool {
    let none = Map::new();
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object).unwrap_or(&none);
    let Some(selector) = selector else { return true };
    let wanted = selector.get("matchLabels").and_then(Value::as_object);
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    wanted.into_iter().flatten().all(|(key, value)| labels.get(key) == Some(value))
        && expressions.into_iter().flatten().all(|expression| holds(expression, labels))
}

fn holds(expression: &Value, labels: &Map<String, Value>) -> bool {
    let text = |name: &str| expression.get(name).and_then(Value::as_str);
    let (Some(key), Some(operator)) = (text("key"), text("operator")) else { return true };
    let label = labels.get(key);
    let values = expression.get("values").and_then(Value::as_array);
    let is_listed = || label.is_some_and(|label| values.is_some_and(|values| values.contains(label)));
    match operator {
        "In" => is_listed(),
        // An object without the label is none that has one of these values.
        "NotIn" => !is_listed(),
        "Exists" => label.is_some(),
        "DoesNotExist" => label.is_none(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns a control-plane Node of a two-node cluster, with the labels that OpenShift gives it.
    fn node() -> Value {
        json!({"metadata": {"labels": {
            "kubernetes.io/hostname": "node1",
            "node-role.kubernetes.io/control-plane": "",
            "node-role.kubernetes.io/master": "",
            "node-role.kubernetes.io/worker": "",
            "zone": "a",
        }}})
    }

    #[test]
    fn twenty_selectors_match_as_kubernetes_has_them() {
        let one =
            |key: &str, operator: &str, values: &[&str]| json!({"key": key, "operator": operator, "values": values});
        let expressions = |all: &[Value]| json!({ "matchExpressions": all });
        let (master, worker) = ("node-role.kubernetes.io/master", "node-role.kubernetes.io/worker");
        let cases = [
            (json!({}), true),
            (Value::Null, true),
            (json!({"matchLabels": {}}), true),
            (json!({"matchExpressions": []}), true),
            (json!({"matchLabels": {"zone": "a"}}), true),
            (json!({"matchLabels": {"zone": "b"}}), false),
            (json!({"matchLabels": {"zone": "a", "kubernetes.io/hostname": "node1"}}), true),
            (json!({"matchLabels": {"zone": "a", "kubernetes.io/hostname": "node2"}}), false),
            (json!({"matchLabels": {"rack": "a"}}), false),
            (json!({"matchLabels": {"node-role.kubernetes.io/master": ""}}), true),
            (expressions(&[one(master, "Exists", &[])]), true),
            (expressions(&[one("rack", "Exists", &[])]), false),
            (expressions(&[one("node-role.kubernetes.io/control-plane", "DoesNotExist", &[])]), false),
            (expressions(&[one("rack", "DoesNotExist", &[])]), true),
            (expressions(&[one("zone", "In", &["b", "a"])]), true),
            (expressions(&[one("zone", "In", &["b", "c"])]), false),
            (expressions(&[one("rack", "In", &["a"])]), false),
            (expressions(&[one("zone", "NotIn", &["b", "c"])]), true),
            (expressions(&[one("zone", "NotIn", &["a"])]), false),
            (expressions(&[one("rack", "NotIn", &["a"])]), true),
            (expressions(&[one(worker, "Exists", &[]), one(master, "DoesNotExist", &[])]), false),
            (json!({"matchLabels": {"zone": "a"}, "matchExpressions": [one(worker, "Exists", &[])]}), true),
            (json!({"matchLabels": {"zone": "a"}, "matchExpressions": [one("rack", "Exists", &[])]}), false),
            (expressions(&[one("zone", "OfALaterVersion", &["b"])]), true),
        ];
        assert!(cases.len() >= 20);
        for (selector, expected) in cases {
            assert_eq!(matches(Some(&selector), &node()), expected, "{selector}");
        }
        assert!(matches(None, &node()));
        assert!(!matches(Some(&json!({"matchLabels": {"zone": "a"}})), &json!({"metadata": {}})));
    }
}
