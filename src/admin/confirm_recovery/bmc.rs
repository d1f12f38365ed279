//! The query of the lost node's BMC, before the operator is asked for anything.

use serde::Serialize;

use super::Fencing;
use crate::admin::prompt::Prompt;
use crate::agent::resource::context::Context;
use crate::decide::evidence::Evidence;
use crate::operate::cluster::Power;
use crate::operate::failure::Failure;
use crate::operate::fencing::power;

/// The power of the lost node as its BMC reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Bmc {
    On,
    Off,
    Unknown,
    /// The BMC was not asked, because Pacemaker sees the node or has a confirmation that it is off.
    NotAsked,
}

/// Queries the lost node's BMC and prints its answer. Fails if the BMC reports On, unless `named` is the lost node. Skips the query if
/// Pacemaker sees the node or has a confirmation that it is off.
pub(super) fn ask_the_bmc(
    prompt: &Prompt<'_>,
    context: &Context,
    evidence: &Evidence,
    named: Option<&str>,
) -> Result<Bmc, Failure> {
    let peer = evidence.peer_name();
    if let Some(other) = named.filter(|name| *name != peer) {
        return Err(Failure(format!("--node-is-on names {other}, and the node that is given up is {peer}")));
    }
    match Fencing::of(evidence) {
        Fencing::Confirmed | Fencing::Online => return Ok(Bmc::NotAsked),
        Fencing::Left | Fencing::Unknown => {}
    }
    let said = power::of_node(&context.programs, &context.resource, peer);
    let bmc = judged(&said, peer, named)?;
    prompt.tell(power_text(&said, peer))?;
    Ok(bmc)
}

/// Converts the answer of `peer`'s BMC. Fails for On, unless the operator `named` that node with `--node-is-on`.
fn judged(said: &Power, peer: &str, named: Option<&str>) -> Result<Bmc, Failure> {
    match said {
        Power::Off => Ok(Bmc::Off),
        Power::Unknown(_) => Ok(Bmc::Unknown),
        Power::On if named == Some(peer) => Ok(Bmc::On),
        Power::On => Err(Failure(format!(
            "{peer}'s BMC says that it is on: it is probably serving, and only the network between the two nodes is cut. Look at it first: \
             'tandem status' on {peer}'s console, or by another network. If it serves, mend the network, and nothing is lost. To give up what it has taken all \
             the same, and have it shot: 'tandem confirm-recovery --node-is-on {peer}'"
        ))),
    }
}

/// Returns the sentence about the BMC's answer that is printed before the operator is asked for a confirmation.
fn power_text(said: &Power, peer: &str) -> String {
    match said {
        Power::Off => format!("{peer}'s BMC says that it is off."),
        Power::Unknown(why) => format!("{peer} may be on: its BMC does not say that it is off ({why})."),
        Power::On => {
            format!("{peer}'s BMC says that it is on. {peer} is given up all the same, because --node-is-on names it.")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that `confirm-recovery` accepts a BMC's report of On only with the option `--node-is-on` and the lost node's name. Answers
    /// to questions cannot replace this option, so that no script confirms by accident that a running node is lost.
    #[test]
    fn a_node_that_is_on_is_given_up_by_its_name_alone() {
        let unnamed = judged(&Power::On, "node1", None).unwrap_err().0;
        assert!(unnamed.contains("'tandem confirm-recovery --node-is-on node1'"), "{unnamed}");
        let bmc = |said: Power, named| judged(&said, "node1", named).ok();
        assert_eq!(bmc(Power::On, Some("node1")), Some(Bmc::On));
        assert_eq!(bmc(Power::Off, None), Some(Bmc::Off));
        let silent = Power::Unknown("no route to host".to_owned());
        let words = power_text(&silent, "node1");
        assert!(words.contains("may be on") && words.contains("no route to host"), "{words}");
        assert_eq!(bmc(silent, None), Some(Bmc::Unknown));
    }
}
