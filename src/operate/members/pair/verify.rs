//! The end of a change: the check of the voters, of the fencing, and that both nodes have the same data.

use std::time::Duration;

use super::beside;
use super::facts::Look;
use super::work::{Took, Work};
use crate::adapters::etcd::blocking;
use crate::adapters::etcd::maintenance::Hash;
use crate::agent::resource::context::Context;
use crate::decide::may_stop::{Answer, may_stop};
use crate::operate::failure::Failure;
use crate::operate::health;

/// Timeout of the request for the hash of a large database.
const HASH: Duration = Duration::from_secs(60);
/// Largest number of attempts to get comparable hashes. Several are needed if the new node lags for a moment.
const TRIES: usize = 5;
const AGAIN: Duration = Duration::from_millis(500);

impl Work {
    pub(super) fn verify(&self, look: &Look) -> Result<Took, Failure> {
        let Some(new) = &self.change.new else {
            let seen = look.seen(&self.change);
            let here = &self.change.here.name;
            return Ok(if seen.serves_alone {
                Took::Over(format!("{here} is the only voter, and takes writes"))
            } else {
                Took::Waits(format!("waits until {here} serves alone"))
            });
        };
        let nodes = [&self.change.here.name, &new.name];
        if look.third_voter().is_some() {
            if let Some(why) = beside::lacks(look, nodes) {
                return Ok(Took::Waits(format!("waits until either node could be lost ({why})")));
            }
            return self.verify_fencing_and_data(look, nodes);
        }
        for node in nodes {
            match may_stop(&health::outlook(&look.cluster, node)) {
                Answer::Yes => {}
                Answer::No(_) | Answer::Unknown(_) => {
                    let wrong = Self::problems(look);
                    let wrong = if wrong.is_empty() { String::new() } else { format!(" ({wrong})") };
                    return Ok(Took::Waits(format!("waits until either node could continue alone{wrong}")));
                }
            }
        }
        self.verify_fencing_and_data(look, nodes)
    }

    fn verify_fencing_and_data(&self, look: &Look, nodes: [&String; 2]) -> Result<Took, Failure> {
        if !look.is_fenced_from(nodes[0], nodes[1]) {
            let why = look.device_failure(nodes[0]).map(|why| format!(": {why}")).unwrap_or_default();
            return Ok(Took::Waits(format!("waits until {} runs the fence device of {}{why}", nodes[1], nodes[0])));
        }
        self.progress.say("compares the data of both");
        hashes(&look.context).and_then(|found| compared(nodes, found))
    }
}

/// Fails if the hashes of both nodes' data differ.
fn compared(nodes: [&String; 2], (revision, [here, there]): (i64, [Hash; 2])) -> Result<Took, Failure> {
    if here == there {
        return Ok(Took::Over(format!(
            "{} and {} vote, and have the same at revision {revision} (HashKV {:08x})",
            nodes[0], nodes[1], here.hash
        )));
    }
    Err(Failure(format!(
        "the data of {} and {} differ at revision {revision}: 'pcs node standby {}', and see docs/operate/recovery.md",
        nodes[0], nodes[1], nodes[1]
    )))
}

/// Returns the hashes of both nodes' data at one revision, with that revision. The data of both nodes must also have
/// been compacted at one revision.
fn hashes(context: &Context) -> Result<(i64, [Hash; 2]), Failure> {
    let Some(peer) = &context.peer_endpoint else { return Err(Failure("there is no second node".to_owned())) };
    let credentials = context.credentials();
    let mut last = String::new();
    for _ in 0..TRIES {
        let revision = blocking::revision(&context.own_endpoint, credentials, HASH)?;
        let ask = |endpoint| blocking::hash(endpoint, credentials, revision, HASH);
        match both(ask(&context.own_endpoint), ask(peer)) {
            Ok(hashes) => return Ok((revision, hashes)),
            Err(why) => last = why,
        }
        crate::os::clock::sleep(AGAIN);
    }
    Err(Failure(format!("the data of both could not be compared: {last}: 'tandem member replace' tries again")))
}

/// Returns both hashes, or the reason why they are not comparable.
fn both<E: std::fmt::Display>(here: Result<Hash, E>, there: Result<Hash, E>) -> Result<[Hash; 2], String> {
    match (here, there) {
        (Ok(here), Ok(there)) if can_be_compared(here, there) => Ok([here, there]),
        (Ok(_), Ok(_)) => Err("they are compacted at different revisions".to_owned()),
        (Err(error), _) | (_, Err(error)) => Err(error.to_string()),
    }
}

/// Returns whether two hashes are comparable. Equal data that was compacted at different revisions has different hashes.
fn can_be_compared(here: Hash, there: Hash) -> bool {
    here.compact_revision == there.compact_revision
}

#[cfg(test)]
mod tests {
    use super::super::change::Kind;
    use super::super::fake_node1::{Node1, parts};
    use super::super::plan::tests::{change, place};
    use super::*;
    use crate::operate::cluster::Cluster;
    use crate::operate::health::samples;

    fn verified(new: Option<u8>, cluster: Cluster) -> Result<Took, String> {
        let node1 = Node1::new();
        let kind = if new.is_some() { Kind::Replace } else { Kind::Remove };
        let change = change(kind, Some(place("node2", 2)), new.map(|new| place("node2", new)));
        node1.work(change, "").verify(&node1.look(cluster)).map_err(|Failure(why)| why)
    }

    fn waits(verified: &Result<Took, String>, what: &str) -> bool {
        matches!(verified, Ok(Took::Waits(why)) if why.starts_with(what))
    }

    /// Asserts that the step `Verify` waits while one of the two nodes may not be stopped, and while the new node does not run the other
    /// node's fence device. A healthy pair passes these checks, and the step then fails in this test, because no etcd answers. Without a
    /// new node, the step waits until the remaining node runs standalone.
    #[test]
    fn nothing_is_over_before_either_node_could_go_on_alone_and_be_fenced() {
        let well = verified(Some(2), samples::read("healthy"));
        assert!(well.is_err(), "{well:?}");
        let either = "waits until either node could continue alone";
        for (sample, node) in [("cluster-maintenance", ""), ("pacemaker-hangs", ""), ("peer-standby", "node1")] {
            let cluster = samples::read(sample);
            let may = ["node1", "node2"].map(|node| may_stop(&health::outlook(&cluster, node)) == Answer::Yes);
            assert_eq!(may, [false, node == "node1"], "{sample}");
            assert!(waits(&verified(Some(2), cluster), either), "{sample}");
        }
        // With node1 in standby instead, node2 is the one that may not be stopped.
        let mut cluster = samples::read("healthy");
        parts(&mut cluster).0.nodes.iter_mut().filter(|node| node.name == "node1").for_each(|node| node.standby = true);
        assert_eq!(may_stop(&health::outlook(&cluster, "node1")), Answer::Yes);
        assert!(waits(&verified(Some(2), cluster), either));
        let mut cluster = samples::read("healthy");
        let device = |node: &&mut crate::adapters::pacemaker::seen::Instance| node.id == "fence-node1";
        parts(&mut cluster).0.resources.iter_mut().filter(device).for_each(|one| one.nodes = vec!["node1".to_owned()]);
        assert!(waits(&verified(Some(2), cluster), "waits until node2 runs the fence device of node1"));
        assert!(waits(&verified(None, samples::read("healthy")), "waits until node1 serves alone"));
    }

    #[test]
    fn a_change_does_not_end_while_the_nodes_data_differ() {
        let hash = |hash| Hash { hash, compact_revision: 5 };
        let (one, two) = ("node1".to_owned(), "node2".to_owned());
        let compared = |there| compared([&one, &two], (9, [hash(1), hash(there)]));
        assert!(matches!(compared(1), Ok(Took::Over(what)) if what.contains("the same at revision 9")));
        assert!(compared(2).unwrap_err().0.starts_with("the data of node1 and node2 differ at revision 9"));
        let compacted = Hash { hash: 1, compact_revision: 6 };
        assert_eq!(both::<String>(Ok(hash(1)), Ok(hash(2))), Ok([hash(1), hash(2)]));
        assert!(both::<String>(Ok(hash(1)), Ok(compacted)).unwrap_err().contains("compacted"));
        assert_eq!(both(Ok(hash(1)), Err("no")), Err("no".to_owned()));
    }

    #[test]
    fn data_are_compared_where_their_histories_begin_at_one_revision() {
        let hash = |hash, compact_revision| Hash { hash, compact_revision };
        assert!(can_be_compared(hash(1, 5), hash(2, 5)) && !can_be_compared(hash(1, 5), hash(1, 6)));
    }
}
