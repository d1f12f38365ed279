//! What Pacemaker tells an alert agent in its environment, typed: the variables are the same since its release 1.1.

use super::env::Env;

/// One call of an alert agent. What is not set is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alert {
    pub kind: Kind,
    /// The node that it is about.
    pub node: String,
    /// What happened, in Pacemaker's words.
    pub description: String,
    /// Milliseconds since 1970. The same for every recipient.
    pub time: u64,
    /// The same with all digits that Pacemaker gives: it tells one alert from another one.
    pub stamp: String,
}

/// What kind of alert it is, and what only that kind has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A node came, or was lost.
    Node,
    Fencing {
        /// What was done: `reboot`, `off`, `on`.
        action: String,
        done: bool,
    },
    Resource(Operation),
    Attribute {
        name: String,
        value: String,
    },
    /// Not an alert, or one of a kind that nobody knows yet.
    #[default]
    Other,
}

/// An operation that ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operation {
    pub resource: String,
    pub task: String,
    /// How often it is repeated, in milliseconds; 0 for one that is not.
    pub interval: u64,
    pub rc: i32,
    /// The code that was expected.
    pub target: i32,
    /// Pacemaker's own: 0 is done, 1 was cancelled, -1 is under way.
    pub status: i32,
}

/// Reads the environment of a call.
pub fn read(env: &Env) -> Alert {
    let text = |name: &str| env.get(&format!("CRM_alert_{name}")).unwrap_or_default().to_owned();
    let number = |name: &str, otherwise: i32| text(name).parse().unwrap_or(otherwise);
    let (node, description) = (text("node"), text("desc"));
    let kind = match text("kind").as_str() {
        "node" => Kind::Node,
        "fencing" => Kind::Fencing { action: action(&description, &text("task")), done: number("rc", -1) == 0 },
        "resource" => Kind::Resource(Operation {
            resource: text("rsc"),
            task: text("task"),
            interval: text("interval").parse().unwrap_or_default(),
            rc: number("rc", -1),
            target: number("target_rc", 0),
            status: number("status", 0),
        }),
        "attribute" => Kind::Attribute { name: text("attribute_name"), value: text("attribute_value") },
        _ => Kind::Other,
    };
    let seconds: u64 = text("timestamp_epoch").parse().unwrap_or_default();
    let micros: u64 = text("timestamp_usec").parse().unwrap_or_default();
    let time = seconds.saturating_mul(1000).saturating_add(micros / 1000);
    Alert { kind, node, description, time, stamp: format!("{seconds}.{micros:06}") }
}

/// What a fencing did: its task, or, where Pacemaker does not say that, the second word of the description.
fn action(description: &str, task: &str) -> String {
    let word = || description.strip_prefix("Operation ")?.split(' ').next();
    if task.is_empty() || task == "st_notify_fence" { word().unwrap_or_default().to_owned() } else { task.to_owned() }
}

impl Alert {
    /// The node that is confirmed off. Fencing can also fail, and can switch a node on: Pacemaker says which of them it was in
    /// the description alone, in the same words since its release 1.1.
    pub fn fenced(&self) -> Option<&str> {
        let Kind::Fencing { done: true, .. } = self.kind else { return None };
        let node = self.node.as_str();
        let says = |action: &&str| self.description.starts_with(&format!("Operation {action} of {node} by "));
        (!node.is_empty() && ["off", "reboot"].iter().any(says)).then_some(node)
    }
}
