//! `tandem fencing test --both`: fences the other node from here, which then fences this one.

use super::last::Shown;
use super::{Arguments, one};
use crate::adapters::command::Programs;
use crate::admin::exit::Exit;
use crate::admin::prompt::Prompt;
use crate::admin::report::{Report as _, show};
use crate::admin::voters;
use crate::operate::cluster::Cluster;
use crate::operate::failure::Failure;
use crate::operate::fencing::halves::Halves;
use crate::operate::fencing::there::{There, UNIT};
use crate::operate::fencing::with_node;

pub(super) fn run(arguments: &Arguments, cluster: &Cluster) -> Result<Exit, Failure> {
    let here = cluster.here.as_str();
    let other = other(cluster)?;
    let node = arguments.node.as_deref().unwrap_or(other);
    let Some(host) = &arguments.ssh else { return Err(without_ssh(here, other)) };
    let programs = Programs::default();
    let there = There { programs: &programs, host, name: other, resource: arguments.resource.id() };
    // Before any fencing, because a broken login would leave the test at one half.
    let before = there.halves()?;
    let first = one(arguments, cluster, node)?;
    let prompt = Prompt::new(&arguments.answers, arguments.form);
    let redundant = || {
        prompt.tell(first.text()).map_err(|Failure(why)| vec![why])?;
        voters::wait(arguments.timeout)
    };
    let fence = || {
        there.fence(here, arguments.timeout)?;
        prompt.tell(format_args!(
            "{other} fences {here} now, by its unit {UNIT}; once {here} is back, type: tandem fencing test --last --ssh {host}"
        ))?;
        there.outcome(here, &before)
    };
    let Some(second) = second(first.exit(), redundant, fence) else { return show(&first, arguments.form) };
    let own = Halves::here(cluster)?;
    let shown = match second {
        Ok(theirs) => Shown::of(own.with(&theirs), None),
        Err(Failure(why)) => Shown::of(own.with(&before), Some(why)),
    };
    show(&shown, arguments.form)
}

/// Performs the second half of the test, in which the other node fences this one. Before that, waits until the cluster is redundant
/// again. Returns `None` if the `first` half did not pass.
fn second(
    first: Exit,
    redundant: impl FnOnce() -> Result<(), Vec<String>>,
    fence: impl FnOnce() -> Result<Halves, Failure>,
) -> Option<Result<Halves, Failure>> {
    (first == Exit::Done).then(|| redundant().map_err(|why| not_redundant(&why)).and_then(|()| fence()))
}

/// Returns the name of the other node. Fails unless the cluster has two nodes.
fn other(cluster: &Cluster) -> Result<&str, Failure> {
    let configuration = with_node(cluster, &cluster.here)?;
    match &configuration.nodes.iter().filter(|node| **node != cluster.here).collect::<Vec<_>>()[..] {
        [other] => Ok(other),
        others => Err(Failure(format!(
            "--both tests a cluster of two nodes, and there are {} others: type 'tandem fencing test NODE' for each",
            others.len()
        ))),
    }
}

fn without_ssh(here: &str, other: &str) -> Failure {
    Failure(format!(
        "no node fences itself, so {other} has to fence {here}: add --ssh with {other}, or type 'tandem fencing test {other}' here and, once \
         {other} votes again, 'tandem fencing test {here}' on {other}"
    ))
}

fn not_redundant(why: &[String]) -> Failure {
    Failure(format!(
        "the second half was not begun, because 'tandem status' does not report redundant: {}",
        why.join("; ")
    ))
}

/// Prints what will happen after the first half of the test.
pub(super) fn announce(prompt: &Prompt<'_>, here: &str, other: &str) -> Result<(), Failure> {
    prompt.tell(format_args!(
        "Once 'tandem status' reports redundant again, {other} does the same with {here}: this login ends then."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Fact;
    use crate::operate::health::fencing::tests::healthy;

    #[test]
    fn without_ssh_both_commands_are_named() {
        let Failure(why) = without_ssh("node1", "node2");
        assert!(
            why.contains("'tandem fencing test node2' here") && why.contains("'tandem fencing test node1' on node2"),
            "{why}"
        );
    }

    /// Asserts that this node is fenced only after the first half of the test passed and while the other node votes. Otherwise this node
    /// may be the last one that serves.
    #[test]
    fn this_node_is_fenced_after_a_half_that_passed_and_beside_a_second_voter_alone() {
        let never = || -> Result<Halves, Failure> { panic!("this node was fenced") };
        assert!(second(Exit::Worst, || panic!("it was waited for"), never).is_none());
        let why = second(Exit::Done, || Err(vec!["node2's etcd is a learner".to_owned()]), never).unwrap().unwrap_err();
        assert!(why.0.ends_with("does not report redundant: node2's etcd is a learner"), "{}", why.0);
        let halves = Halves { here: "node2".to_owned(), halves: Vec::new() };
        assert_eq!(second(Exit::Done, || Ok(()), || Ok(halves.clone())).unwrap().map_err(|why| why.0), Ok(halves));
    }

    #[test]
    fn only_a_cluster_of_two_has_two_halves() {
        let mut cluster = healthy();
        assert_eq!(other(&cluster).map_err(|failure| failure.0), Ok("node2"));
        let Fact::Known(configuration) = &mut cluster.configuration else { panic!() };
        configuration.nodes.push("node3".to_owned());
        assert!(other(&cluster).unwrap_err().0.contains("there are 2 others"));
    }
}
