//! The replacement of a dead node next to a third voter: the only change of the pair that a third voter allows.
//!
//! The node that stays and the third voter are two of three, and remove the dead member first (rules M5 and M6). Any other change of the
//! pair would take a living voter from the majority.

use std::time::Duration;

use super::change::{Change, Kind, Place};
use super::facts::Look;
use super::plan::{Old, PairSeen};
use super::work::{Took, Work};
use crate::adapters::pacemaker::attributes::{self, THIRD_VOTER};
use crate::decide::evidence::ThirdVoter;
use crate::decide::may_stop::{Answer, may_stop_among};
use crate::decide::members::{Forbidden, Member, MemberStep};
use crate::operate::failure::Failure;
use crate::operate::members::any_etcd::said;
use crate::operate::members::ask::ask;
use crate::operate::members::source::Source;

/// Timeout of a request that removes a member.
const STEP: Duration = Duration::from_secs(5);

/// Fails if the pair has a third voter and `kind` is an addition or a removal. On OpenShift, fails for every kind if the pair has a third
/// voter.
pub(super) fn keeps(look: &Look, kind: Option<Kind>, is_openshift: bool) -> Result<(), Failure> {
    let may = kind.is_none_or(|kind| kind == Kind::Replace) && !is_openshift;
    match look.third_voter() {
        Some(third_voter) if !may => Err(waits(&third_voter)),
        _ => Ok(()),
    }
}

fn waits(third_voter: &ThirdVoter) -> Failure {
    Failure(format!(
        "{0} is a third member beside the pair: 'tandem member remove {0}' first, and then the same again",
        third_voter.name
    ))
}

/// Fails if a replacement may not begin, because the pair's third voter does not vote yet or the old node is online.
pub(super) fn may_begin(look: &Look, change: &Change) -> Result<(), Failure> {
    let Some(third_voter) = look.third_voter() else { return Ok(()) };
    let seen = look.members.as_ref().map_err(|Failure(why)| Failure(why.clone()))?;
    if !seen.membership.has_third_voter() {
        return Err(waits(&third_voter));
    }
    let is_its = |place: &Place| {
        let host = third_voter.peer_url.rsplit_once(':').map_or(third_voter.peer_url.as_str(), |(host, _)| host);
        let host = host.trim_start_matches("https://").trim_start_matches("http://");
        place.name == third_voter.name || host.trim_matches(['[', ']']) == place.address.to_string()
    };
    if let Some(new) = change.new.as_ref().filter(|new| is_its(new)) {
        return Err(Failure(format!(
            "{} has the name or the address of the third member {}: give the new machine its own",
            new.name, third_voter.name
        )));
    }
    match (look.seen(change).old, &change.old) {
        (Old::Online { .. }, Some(old)) => Err(runs(&old.name, &third_voter)),
        _ => Ok(()),
    }
}

fn runs(old: &str, third_voter: &ThirdVoter) -> Failure {
    Failure(format!(
        "{old} is online, and beside a third member only a node that is off is replaced: 'tandem member remove {0}' first",
        third_voter.name
    ))
}

impl Work {
    /// Removes the dead node's member, by the majority of the node that stays and the third voter.
    pub(super) fn leave_beside(
        &mut self,
        look: &Look,
        seen: &PairSeen,
        third_voter: &ThirdVoter,
    ) -> Result<Took, Failure> {
        let old = self.change.old.as_ref().map(|old| old.name.clone()).unwrap_or_default();
        match seen.old {
            Old::Online { .. } => return Err(runs(&old, third_voter)),
            Old::Unclean => return self.unclean(),
            Old::Stopped | Old::Gone => {}
        }
        let both = format!("waits until {} and {} confirm a read", self.change.here.name, third_voter.name);
        let Ok(members) = &look.members else { return Ok(Took::Waits(both)) };
        let Some(voter) = look.member(&old).filter(|member| !member.is_learner) else { return Ok(Took::Waits(both)) };
        match members.membership.removal_beside_third_voter(voter) {
            None => Ok(Took::Waits(format!("waits until {old} is seen to be down, and {} votes", third_voter.name))),
            Some(Err(why)) => forbidden(&why),
            Some(Ok(_)) => {
                self.name_third_voter(look, third_voter)?;
                let (step, source) = (MemberStep::Remove(voter.id), Source::of_pair(&look.context));
                let what = said(&step, &members.membership);
                // etcd may carry out a request late that it did not answer. The member list shows it then.
                if let Err(error) = ask(&step, members, &source, STEP) {
                    return Ok(Took::Waits(format!("waits until etcd has removed {old}: {error}")));
                }
                log::info!("{what}");
                Ok(Took::Acted(what))
            }
        }
    }

    /// Writes the third voter's member id to the cluster property before the third voter is one of only two voters. An agent with a
    /// stopped etcd distinguishes the third voter from its peer only by that id.
    fn name_third_voter(&self, look: &Look, third_voter: &ThirdVoter) -> Result<(), Failure> {
        let members = look.members.as_ref().map(|seen| seen.membership.members.as_slice()).unwrap_or_default();
        let is_it = |member: &&Member| member.is_third() && !member.is_learner;
        let id = members.iter().find(is_it).map(|member| member.id);
        if third_voter.id != id {
            let named = ThirdVoter { id, ..third_voter.clone() };
            attributes::set_property(&self.programs, THIRD_VOTER, Some(&named.to_string()))?;
        }
        Ok(())
    }
}

/// Returns [`Took::Waits`] if the obstacle `why` passes by itself, and an error otherwise.
fn forbidden(why: &Forbidden) -> Result<Took, Failure> {
    if why.passes() {
        return Ok(Took::Waits(format!("{}: {why}", why.rule())));
    }
    Err(Failure(format!("{}: {why}: {}; 'tandem member replace' continues", why.rule(), why.instead())))
}

/// Returns the reason why one of `nodes`, the pair's two nodes, may not be stopped yet; `None` if either of them may. The third voter
/// counts towards the majority.
pub(super) fn lacks(look: &Look, nodes: [&String; 2]) -> Option<String> {
    let Ok(seen) = &look.members else { return Some("no member list could be read".to_owned()) };
    nodes.into_iter().find_map(|node| {
        let Some(member) = look.member(node) else { return Some(format!("{node} is no member")) };
        match may_stop_among(&seen.membership, member.id) {
            Answer::Yes => None,
            Answer::No(hindrances) => Some(all(&hindrances)),
            Answer::Unknown(doubts) => Some(all(&doubts)),
        }
    })
}

fn all<T: ToString>(what: &[T]) -> String {
    what.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::fake_node1::{Node1, parts};
    use super::super::plan::tests::{change, pair, place};
    use super::*;
    use crate::decide::members::Health;
    use crate::operate::cluster::Cluster;
    use crate::operate::health::samples;
    use crate::operate::members::pair::planned;

    pub(in super::super) const GUEST: u64 = 7;

    fn replaced() -> Change {
        change(Kind::Replace, Some(place("node2", 2)), Some(place("node3", 3)))
    }

    /// Returns a cluster in which node2 is off, while node1 and the third voter node7 are alive.
    pub(in super::super) fn off() -> Cluster {
        let mut cluster = samples::read("peer-off");
        let guest = format!("node7=https://192.0.2.7:2380 {GUEST:x}");
        parts(&mut cluster).1.properties.insert(THIRD_VOTER.to_owned(), guest);
        cluster
    }

    fn look(node1: &Node1, cluster: Cluster) -> Look {
        let mut look = node1.look(cluster);
        let seen = look.members.as_mut().unwrap();
        let mut guest = seen.membership.members[0].clone();
        (guest.id, guest.name, guest.node) = (GUEST, "node7".to_owned(), None);
        guest.peer_urls = vec!["https://192.0.2.7:2380".to_owned()];
        guest.is_strange = true;
        seen.membership.members.push(guest);
        seen.membership.members[1].health = Health::No("nothing listens".to_owned());
        let cluster = &look.cluster;
        seen.beside(cluster);
        look
    }

    fn why<T: std::fmt::Debug>(refused: Result<T, Failure>) -> String {
        refused.unwrap_err().0
    }

    #[test]
    fn beside_a_third_voter_a_node_that_is_off_is_replaced_and_nothing_else_changes() {
        let node1 = Node1::new();
        let mut look = look(&node1, off());
        let first =
            "node7 is a third member beside the pair: 'tandem member remove node7' first, and then the same again";
        let replace = Some(Kind::Replace);
        assert!(keeps(&look, replace, false).is_ok() && may_begin(&look, &replaced()).is_ok());
        for kind in [Kind::Add, Kind::Remove] {
            assert_eq!(why(keeps(&look, Some(kind), false)), first, "{kind:?}");
        }
        assert_eq!(why(keeps(&look, replace, true)), first);
        for new in [place("node7", 3), place("node3", 7)] {
            let taken = Change { new: Some(new), ..replaced() };
            assert!(why(may_begin(&look, &taken)).contains("the name or the address of the third member node7"));
        }
        let planned = planned(&replaced(), &look, false).unwrap();
        assert!(planned.allowed && planned.seconds_with_one_voter.is_none(), "{planned:?}");
        assert!(planned.steps[1].what.contains("removed from the member list by node1"), "{planned:?}");
        parts(&mut look.cluster).0.nodes.iter_mut().for_each(|node| node.online = true);
        assert!(why(may_begin(&look, &replaced())).starts_with("node2 is online, and beside a third member only"));
        let learns = |member: &mut Member| member.is_learner = member.id == GUEST;
        look.members.as_mut().unwrap().membership.members.iter_mut().for_each(learns);
        assert_eq!(why(may_begin(&look, &replaced())), first, "its vote is none yet");
        assert!(keeps(&node1.look(samples::read("healthy")), Some(Kind::Remove), true).is_ok());
    }

    #[test]
    fn the_dead_member_is_removed_once_it_is_fenced_and_both_others_live() {
        let node1 = Node1::new();
        let mut look = look(&node1, off());
        let mut work = node1.work(replaced(), "");
        let third_voter = look.third_voter().unwrap();
        let mut leave = |look: &Look, old| work.leave_beside(look, &PairSeen { old, ..pair() }, &third_voter);
        assert!(!look.seen(&replaced()).serves_alone);
        // No etcd answers here, so the step shows that it asked for the removal.
        let asked =
            |took: &Took| matches!(took, Took::Waits(what) if what.starts_with("waits until etcd has removed node2: "));
        assert!(asked(&leave(&look, Old::Stopped).unwrap()), "a late answer ends no command");
        assert_eq!(leave(&look, Old::Unclean).unwrap(), Took::Waits("waits until node2 is fenced".to_owned()));
        assert!(why(leave(&look, Old::Online { standby: true })).starts_with("node2 is online"));
        let health = |look: &mut Look, at: usize, health: Health| {
            look.members.as_mut().unwrap().membership.members[at].health = health;
        };
        health(&mut look, 2, Health::No("nothing listens".to_owned()));
        assert!(why(leave(&look, Old::Stopped)).starts_with("M5: 1 of 3 voters are healthy"));
        health(&mut look, 2, Health::Yes);
        health(&mut look, 1, Health::Yes);
        let waits =
            |took: &Took| matches!(took, Took::Waits(what) if what.starts_with("waits until node2 is seen to be down"));
        assert!(waits(&leave(&look, Old::Stopped).unwrap()));
        // The same command runs again after the removal. The two others are a majority of two.
        look.members.as_mut().unwrap().membership.members.remove(1);
        let seen = look.seen(&replaced());
        assert!(seen.serves_alone && !seen.old_serves);
        assert!(node1.typed().is_empty(), "nothing was written: the property has the id");
    }

    #[test]
    fn the_property_has_the_id_before_the_third_voter_is_one_of_two() {
        let node1 = Node1::new();
        let mut cluster = off();
        parts(&mut cluster).1.properties.insert(THIRD_VOTER.to_owned(), "node7=https://192.0.2.7:2380".to_owned());
        let look = look(&node1, cluster);
        let mut work = node1.work(replaced(), "");
        let third_voter = look.third_voter().unwrap();
        let _ = work.leave_beside(&look, &PairSeen { old: Old::Stopped, ..pair() }, &third_voter);
        let typed = node1.typed().join("\n");
        assert!(typed.contains("etcd_guest") && typed.contains("node7=https://192.0.2.7:2380 7"), "{typed}");
    }

    #[test]
    fn it_is_over_once_either_node_may_be_lost() {
        let node1 = Node1::new();
        let mut look = look(&node1, off());
        let nodes = ["node1".to_owned(), "node2".to_owned()];
        let lacks = |look: &Look| lacks(look, [&nodes[0], &nodes[1]]);
        assert!(lacks(&look).is_some_and(|why| why.contains("node2 is not healthy")), "{:?}", lacks(&look));
        look.members.as_mut().unwrap().membership.members[1].health = Health::Yes;
        assert_eq!(lacks(&look), None);
    }
}
