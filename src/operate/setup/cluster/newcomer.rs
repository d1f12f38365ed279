//! The fence device of a node that joins an existing cluster.

use super::Wanted;
use super::fencing::{self, Device};
use super::value::Kind;
use crate::adapters::pacemaker::layout::Cib;
use crate::operate::setup::action::Action;
use crate::operate::setup::step::{SetupStep, State};

/// Returns the steps that create the fence device of a joining node, with the `options` of `fence_redfish_rs`. They run
/// on the node `on`.
pub fn device_steps(cib: &Cib, node: &str, options: &[(String, String)], on: &str) -> Vec<SetupStep> {
    let mut steps = device(node, options).steps(cib, on);
    for step in &mut steps {
        if let State::ToDo(actions) | State::Differs { actions, .. } = &mut step.state {
            actions.iter_mut().for_each(of_nobody_yet);
        }
    }
    steps
}

/// Adds `--force` to a `pcs constraint` command. Otherwise pcs rejects a node that the cluster does not have yet.
fn of_nobody_yet(action: &mut Action) {
    if let Action::Command(words) = action
        && words.get(1).is_some_and(|word| word == "constraint")
    {
        words.push("--force".to_owned());
    }
}

fn device(node: &str, options: &[(String, String)]) -> Device {
    let mut options: Vec<Wanted> = options.iter().map(|(name, value)| fencing::option(name, value)).collect();
    if !options.iter().any(|option| option.name == "pcmk_host_list") {
        options.push(Wanted::new("pcmk_host_list", node, Kind::Text));
    }
    Device {
        id: format!("fence-{node}"),
        node: node.to_owned(),
        agent: fencing::AGENT,
        options,
        avoids: true,
        password_may_be_in_cib: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operate::setup::cluster::parse_cib;

    #[test]
    fn a_device_is_made_for_a_node_that_is_not_there_yet_and_kept_from_it() {
        let cib = parse_cib("<cib><configuration/></cib>").unwrap();
        let options = [("ip", "192.0.2.103"), ("password_file", "/etc/p")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        let steps = device_steps(&cib, "node3", &options, "node1");
        let State::ToDo(actions) = &steps[0].state else { panic!("{steps:?}") };
        let typed: Vec<String> = actions.iter().map(ToString::to_string).collect();
        assert_eq!(
            typed,
            [
                "pcs stonith create fence-node3 fence_redfish_rs ip=192.0.2.103 password_file=/etc/p pcmk_host_list=node3",
                "pcs constraint location fence-node3 avoids node3 --force"
            ]
        );
    }
}
