//! What the agent says of itself: the actions with their times, and the meta-data.

use super::params::PARAMETERS;
use crate::ocf::manpage;
use crate::ocf::metadata::{self, Action, Agent};

/// The actions, with the times that Pacemaker uses where nobody sets others. A stop that overruns is answered with
/// fencing, so it ends well inside its time; monitors are frequent because they are cheap and a crash is found by them.
pub const ACTIONS: &[Action] = &[
    Action::once("start", 600),
    Action::once("stop", 90),
    Action::monitor(25, 5, None),
    Action::monitor(25, 4, Some("Promoted")),
    Action::once("promote", 30),
    Action::once("demote", 30),
    Action::once("notify", 60),
    Action::once("reload-agent", 20),
    Action::once("validate-all", 30),
    Action::once("meta-data", 5),
];

/// Who provides the agent: `ocf:tandem:podman-etcd`.
const PROVIDER: &str = "tandem";

const AGENT: Agent = Agent {
    name: "podman-etcd",
    short: "Two-member etcd in podman",
    long: "Keeps a two-member etcd available on two machines, each member in a podman container, and loses no write that etcd acknowledged, whichever machine dies. Run it as a clone with notify=true, plain or promotable (then Promoted is a voter, Unpromoted a learner), with fencing. A monitor asks etcd itself; with OCF_CHECK_LEVEL=10 etcd must also answer a read that a majority confirms, with 20 take a write (a lease, which is given back).",
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
