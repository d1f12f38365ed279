//! The environment of a Pacemaker alert agent, as types. The variables have been the same since Pacemaker 1.1.

use super::env::Env;

/// One call of an alert agent. Unset fields are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alert {
    pub kind: Kind,
    /// The node that the alert is about.
    pub node: String,
    /// Pacemaker's description of the event.
    pub description: String,
    /// The time in milliseconds since 1970. It is the same for every recipient.
    pub time: u64,
    /// The time with all of Pacemaker's digits, which distinguishes alerts.
    pub stamp: String,
}

/// The kind of an alert, with the fields of only that kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A node that has joined or was lost.
    Node,
    Fencing {
        /// The action: `reboot`, `off`, `on`.
        action: String,
        done: bool,
    },
    Resource(Operation),
    Attribute {
        name: String,
        value: String,
    },
    /// No alert, or one of an unknown kind.
    #[default]
    Other,
}

/// An operation that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operation {
    pub resource: String,
    pub task: String,
    /// The operation's interval in milliseconds; 0 if it is not repeated.
    pub interval: u64,
    pub rc: i32,
    /// The expected code.
    pub target: i32,
    /// Pacemaker's own status: 0 is complete, 1 is cancelled, -1 is pending.
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

/// Returns the action of a fencing: its task. Where Pacemaker does not set that, returns the second word of the description.
fn action(description: &str, task: &str) -> String {
    let word = || description.strip_prefix("Operation ")?.split(' ').next();
    if task.is_empty() || task == "st_notify_fence" { word().unwrap_or_default().to_owned() } else { task.to_owned() }
}

impl Alert {
    /// Returns the node that is confirmed off. A fencing can also fail, or switch a node on. Pacemaker distinguishes these only
    /// in the description, with the same words since 1.1.
    pub fn fenced(&self) -> Option<&str> {
        let Kind::Fencing { done: true, .. } = self.kind else { return None };
        let node = self.node.as_str();
        let says = |action: &&str| self.description.starts_with(&format!("Operation {action} of {node} by "));
        (!node.is_empty() && ["off", "reboot"].iter().any(says)).then_some(node)
    }
}
