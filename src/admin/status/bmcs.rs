//! The BMCs of nodes that Pacemaker does not see, asked for a status that people read.

use std::collections::BTreeMap;
use std::time::Duration;

use super::document::Status;
use crate::adapters::command::Programs;
use crate::operate::cluster::{Power, ask};
use crate::operate::failure::Failure;
use crate::operate::fencing::power;
use crate::operate::health::view;
use crate::os::clock::Deadline;

/// Time limit of a whole status. The query of a BMC within it has the time limit `PATIENCE`.
const WHOLE: Duration = Duration::from_millis(4_800);
const PATIENCE: Duration = Duration::from_secs(3);
/// Time for which a BMC's answer is reused while the status is repeated, because a BMC allows few sessions.
const COUNTS: Duration = Duration::from_secs(10);

/// The last answers of BMCs, with the time until which they are used.
#[derive(Debug, Default)]
pub(super) struct Bmcs {
    last: Option<(Deadline, BTreeMap<String, Power>)>,
}

impl Bmcs {
    /// Returns the whole status, with the power of each node that Pacemaker does not see.
    pub(super) fn status(&mut self, resource: Option<&str>) -> Result<Status, Failure> {
        let end = Deadline::after(WHOLE);
        let mut cluster = ask(resource)?;
        let nodes = view::out_of_sight(&cluster);
        let patience = end.at_most(PATIENCE);
        cluster.power = self.of(nodes, |nodes| power::of_nodes(&Programs::default(), &cluster, nodes, patience));
        Ok(Status::of(&cluster))
    }

    /// Returns the power of `nodes`. Uses the last answers while they are new enough, and `ask` otherwise.
    fn of(
        &mut self,
        nodes: Vec<String>,
        ask: impl FnOnce(Vec<String>) -> BTreeMap<String, Power>,
    ) -> BTreeMap<String, Power> {
        if nodes.is_empty() {
            return BTreeMap::new();
        }
        if let Some((until, answers)) = &self.last
            && !until.has_passed()
            && nodes.iter().all(|node| answers.contains_key(node))
        {
            return answers
                .iter()
                .filter(|(node, _)| nodes.contains(node))
                .map(|(node, power)| (node.clone(), power.clone()))
                .collect();
        }
        let answers = ask(nodes);
        self.last = Some((Deadline::after(COUNTS), answers.clone()));
        answers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_for_a_while_and_a_node_that_is_there_needs_none() {
        let mut bmcs = Bmcs::default();
        let on = |nodes: Vec<String>| nodes.into_iter().map(|node| (node, Power::On)).collect::<BTreeMap<_, _>>();
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert!(bmcs.of(Vec::new(), |_| panic!("no BMC is asked")).is_empty());
        assert_eq!(bmcs.of(names(&["node2"]), on), on(names(&["node2"])));
        assert_eq!(bmcs.of(names(&["node2"]), |_| panic!("it was asked just now")), on(names(&["node2"])));
        let both = bmcs.of(names(&["node1", "node2"]), on);
        assert_eq!(both.len(), 2, "one of them was not asked yet");
    }
}
