//! What the agent says of itself: the actions with their times, and the meta-data.

use super::params::PARAMETERS;
use crate::ocf::manpage;
use crate::ocf::metadata::{self, Action, Agent};

/// The actions, with the times that Pacemaker uses where nobody sets others. A stop that overruns is answered with
/// fencing, so it ends well inside its time; monitors are frequent because they are cheap and a crash is found by them.
pub const ACTIONS: &[Action] = &[
    Action { name: "start", timeout_s: 600, interval_s: None, role: None },
    Action { name: "stop", timeout_s: 90, interval_s: None, role: None },
    Action { name: "monitor", timeout_s: 25, interval_s: Some(5), role: None },
    Action { name: "monitor", timeout_s: 25, interval_s: Some(4), role: Some("Promoted") },
    Action { name: "promote", timeout_s: 30, interval_s: None, role: None },
    Action { name: "demote", timeout_s: 30, interval_s: None, role: None },
    Action { name: "notify", timeout_s: 60, interval_s: None, role: None },
    Action { name: "validate-all", timeout_s: 30, interval_s: None, role: None },
    Action { name: "meta-data", timeout_s: 5, interval_s: None, role: None },
];

/// Who provides the agent: `ocf:tandem:podman-etcd`.
const PROVIDER: &str = "tandem";

const AGENT: Agent = Agent {
    name: "podman-etcd",
    short: "Two-member etcd in podman",
    long: "Keeps a two-member etcd available on two machines, each member in a podman container, and loses no write that etcd acknowledged, whichever machine dies. Run it as a clone with notify=true, plain or promotable (then Promoted is a voter, Unpromoted a learner), with fencing.",
    parameters: PARAMETERS,
    actions: ACTIONS,
};

/// The XML that `meta-data` prints.
pub fn xml() -> String {
    metadata::xml(&AGENT)
}

/// The man page, in section 7 as those of other resource agents.
pub fn man_page() -> String {
    manpage::page(&AGENT, PROVIDER)
}

/// The time that the meta-data advertises for an action.
pub fn advertised_timeout_s(action: &str) -> u32 {
    ACTIONS.iter().find(|entry| entry.name == action).map_or(20, |entry| entry.timeout_s)
}
