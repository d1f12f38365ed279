//! The agent's description of itself: the meta-data and the man page.

use crate::adapters::ocf::manpage;
use crate::adapters::ocf::metadata::{self, Agent};
use crate::agent::resource::actions::ACTIONS;
use crate::agent::resource::params::PARAMETERS;

/// The provider in the agent's name `ocf:tandem:podman-etcd`.
const PROVIDER: &str = "tandem";

const AGENT: Agent = Agent {
    name: "podman-etcd",
    short: "Two-member etcd in podman",
    long: "Runs a two-member etcd on two machines, each member in a podman container. When either machine dies, etcd takes writes again on the other one, and no write that etcd acknowledged is lost. Run the resource as a clone with notify=true, in a cluster with fencing. The clone may be promotable: then Promoted is a voter and Unpromoted a learner. A monitor asks etcd itself. With OCF_CHECK_LEVEL=10 etcd must also answer a read that a majority confirms, and with 20 take a write (a lease, which the agent revokes).",
    parameters: PARAMETERS,
    actions: ACTIONS,
};

/// Returns the resource agent's XML, which the action `meta-data` prints.
pub fn xml() -> String {
    metadata::xml(&AGENT)
}

/// Returns the resource agent's man page, in section 7 like those of other agents.
pub fn man_page() -> String {
    manpage::page(&AGENT, PROVIDER)
}
