//! The environment of a Pacemaker alert agent, as types. The variables have been the same since Pacemaker 1.1.

use super::env::Env;

/// The event with which Pacemaker calls an alert agent. Fields that Pacemaker does not set are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alert {
    pub kind: Kind,
    /// The name of the node that the alert is about.
    pub node: String,
    /// Pacemaker's description of the event.
    pub description: String,
    /// The time of the event in milliseconds since 1970, which is the same for every recipient of the alert.
    pub time: u64,
    /// The time of the event in seconds with six decimals, by which two alerts can be distinguished.
    pub stamp: String,
}

/// The kind of an alert, with the fields that only alerts of this kind have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A node has joined or was lost.
    Node,
    Fencing {
        /// The fencing action: `reboot`, `off` or `on`.
        action: String,
        done: bool,
    },
    Resource(Operation),
    Attribute {
        name: String,
        value: String,
    },
    /// Pacemaker has passed no alert, or one of a kind that this program does not know.
    #[default]
    Other,
}

/// A resource operation that has ended, such as a start or a monitor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operation {
    pub resource: String,
    pub task: String,
    /// The interval of the operation in milliseconds; 0 if it is not repeated.
    pub interval: u64,
    pub rc: i32,
    /// The exit code that Pacemaker expected.
    pub target: i32,
    /// The status that Pacemaker gives the operation: 0 is complete, 1 is cancelled, -1 is pending.
    pub status: i32,
}

/// Reads an alert from the environment variables that Pacemaker has set.
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

/// Returns the action of a fencing, such as `reboot`: the alert's task, or the second word of its description if Pacemaker did
/// not set the task.
fn action(description: &str, task: &str) -> String {
    let word = || description.strip_prefix("Operation ")?.split(' ').next();
    if task.is_empty() || task == "st_notify_fence" { word().unwrap_or_default().to_owned() } else { task.to_owned() }
}

impl Alert {
    /// Returns the node that Pacemaker has fenced and that is confirmed off; `None` for any other alert. Only the alert's description shows
    /// whether a fencing failed or switched a node on. Its words are the same since Pacemaker 1.1.
    pub fn fenced(&self) -> Option<&str> {
        let Kind::Fencing { done: true, .. } = self.kind else { return None };
        let node = self.node.as_str();
        let says = |action: &&str| self.description.starts_with(&format!("Operation {action} of {node} by "));
        (!node.is_empty() && ["off", "reboot"].iter().any(says)).then_some(node)
    }
}
