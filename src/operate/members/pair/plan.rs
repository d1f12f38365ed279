//! The steps of a change of a pair, and the choice of the next one. Pure: an observation in, a step out.
//!
//! The state of each step is observed first, so that an interrupted change continues from its present state. A new machine with the old
//! one's name looks like the old one. The change therefore records that the old one is forgotten before the new one may come.

use super::change::{Change, Kind};
use crate::operate::members::step::OF_A_REPLACEMENT;
pub(super) use crate::operate::members::step::PairStep;

/// The old node's state in Pacemaker's cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Old {
    /// The cluster has no node of the old node's name.
    Gone,
    Online {
        standby: bool,
    },
    /// Pacemaker was stopped on the old node, or the old node was fenced.
    Stopped,
    /// The old node's state is unknown: it might still run.
    Unclean,
}

/// The facts from which the next step of a member change follows.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PairSeen {
    pub(super) old: Old,
    /// True if this node is the pair's only voter, and a majority has just confirmed a read.
    pub(super) serves_alone: bool,
    /// True if the old node's etcd votes, or Pacemaker reports it as active.
    pub(super) old_serves: bool,
    /// True if the new node has a fence device, and Pacemaker runs it.
    pub(super) device_runs: bool,
    pub(super) map_is_right: bool,
    /// True if the new node is in Corosync's configuration, even before it is online.
    pub(super) new_is_known: bool,
    pub(super) new_is_online: bool,
    /// True if the new node's etcd votes and is healthy.
    pub(super) new_votes: bool,
    /// `Some(true)` if OpenShift's Node of the old node's name is the new machine; `None` if that is unknown.
    pub(super) is_new_node: Option<bool>,
}

/// Returns the steps of a member change in their order, which depend on its kind.
pub(super) fn steps(change: &Change) -> &'static [PairStep] {
    use PairStep::{Add, Check, Delete, Device, Forget, Join, Leave, Map, Node, Out, Prepare, Save, Verify};
    match change.kind {
        // OpenShift's operators do the steps that are left out.
        Kind::Replace if change.openshift.is_some() => &[Check, Leave, Out, Save, Delete, Node, Join, Verify],
        Kind::Remove if change.openshift.is_some() => &[Check, Leave, Out, Verify],
        Kind::Replace => &OF_A_REPLACEMENT,
        Kind::Add => &[Check, Device, Map, Prepare, Add, Join, Verify],
        Kind::Remove => &[Check, Leave, Out, Forget, Map, Verify],
    }
}

/// Returns the first unfinished step of a member change; `None` if all are finished.
pub(super) fn next(change: &Change, seen: &PairSeen) -> Option<PairStep> {
    steps(change).iter().copied().find(|step| !is_done(*step, change, seen))
}

fn is_done(step: PairStep, change: &Change, seen: &PairSeen) -> bool {
    // On OpenShift the name means the new machine once its Node exists. While the API does not answer, no node is stopped.
    let is_new = change.has(PairStep::Node) || change.has(PairStep::Save) && seen.is_new_node != Some(false);
    let forgotten = change.has(PairStep::Forget) || is_new;
    match step {
        PairStep::Check | PairStep::Forget | PairStep::Save | PairStep::Delete | PairStep::Node | PairStep::Verify => {
            change.has(step)
        }
        PairStep::Leave => forgotten || (seen.serves_alone && !seen.old_serves),
        PairStep::Out => forgotten || matches!(seen.old, Old::Gone | Old::Stopped),
        PairStep::Device => seen.device_runs,
        PairStep::Map => seen.map_is_right,
        PairStep::Prepare => seen.new_is_known || change.has(step),
        PairStep::Add => seen.new_is_online,
        PairStep::Join => seen.new_votes,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::change::{Entry, Place};
    use super::*;
    use crate::adapters::openshift::replaced::Replaced;

    pub(in super::super) fn place(name: &str, last: u8) -> Place {
        Place { name: name.to_owned(), address: std::net::IpAddr::from([192, 0, 2, last]) }
    }

    pub(in super::super) fn change(kind: Kind, old: Option<Place>, new: Option<Place>) -> Change {
        let here = place("node1", 1);
        let (links, fence, log) = (Vec::new(), Vec::new(), Vec::new());
        Change { kind, here, old, new, links, fence, old_is_off: false, began: 0, log, openshift: None }
    }

    fn done(change: &mut Change, steps: &[PairStep]) {
        change.log.extend(steps.iter().map(|step| Entry { at: 0, step: *step, what: String::new() }));
    }

    /// Returns the facts about a pair before any change. There is no new node yet.
    pub(in super::super) fn pair() -> PairSeen {
        PairSeen {
            old: Old::Online { standby: false },
            serves_alone: false,
            old_serves: true,
            device_runs: false,
            map_is_right: false,
            new_is_known: false,
            new_is_online: false,
            new_votes: false,
            is_new_node: None,
        }
    }

    #[test]
    fn a_replacement_goes_step_by_step_and_each_is_looked_at() {
        use PairStep::{Add, Check, Device, Forget, Join, Leave, Map, Out, Prepare, Verify};
        let mut change = change(Kind::Replace, Some(place("node2", 2)), Some(place("node3", 3)));
        let mut seen = pair();
        assert_eq!(next(&change, &seen), Some(Check));
        done(&mut change, &[Check]);
        assert_eq!(next(&change, &seen), Some(Leave));
        seen.old = Old::Online { standby: true };
        assert_eq!(next(&change, &seen), Some(Leave), "a node in standby may serve still");
        (seen.serves_alone, seen.old_serves) = (true, false);
        assert_eq!(next(&change, &seen), Some(Out));
        seen.old = Old::Unclean;
        assert_eq!(next(&change, &seen), Some(Out), "who may run is not out");
        seen.old = Old::Stopped;
        assert_eq!(next(&change, &seen), Some(Forget));
        seen.old = Old::Gone;
        assert_eq!(next(&change, &seen), Some(Forget), "what it leaves behind is looked for once more");
        done(&mut change, &[Forget]);
        assert_eq!(next(&change, &seen), Some(Device));
        seen.device_runs = true;
        assert_eq!(next(&change, &seen), Some(Map));
        seen.map_is_right = true;
        assert_eq!(next(&change, &seen), Some(Prepare));
        done(&mut change, &[Prepare]);
        assert_eq!(next(&change, &seen), Some(Add));
        (seen.new_is_known, seen.new_is_online) = (true, true);
        assert_eq!(next(&change, &seen), Some(Join));
        (seen.new_votes, seen.serves_alone) = (true, false);
        assert_eq!(next(&change, &seen), Some(Verify));
        done(&mut change, &[Verify]);
        assert_eq!(next(&change, &seen), None);
    }

    /// Asserts that a new machine with the old node's name is not removed as the old node. The recorded step `Forget` shows that the old
    /// node is gone.
    #[test]
    fn a_new_machine_with_the_old_name_is_not_taken_for_the_old_one() {
        let mut change = change(Kind::Replace, Some(place("node2", 2)), Some(place("node2", 2)));
        done(&mut change, &[PairStep::Check]);
        let seen = PairSeen {
            old: Old::Online { standby: false },
            device_runs: true,
            map_is_right: true,
            new_is_known: true,
            new_is_online: true,
            ..pair()
        };
        assert_eq!(next(&change, &seen), Some(PairStep::Leave));
        done(&mut change, &[PairStep::Forget]);
        assert_eq!(next(&change, &seen), Some(PairStep::Join));
    }

    #[test]
    fn nothing_comes_before_it_can_be_fenced() {
        for kind in [Kind::Replace, Kind::Add] {
            let change = change(kind, None, None);
            let at = |wanted: PairStep| steps(&change).iter().position(|step| *step == wanted);
            assert!(
                at(PairStep::Device) < at(PairStep::Prepare) && at(PairStep::Device) < at(PairStep::Add),
                "{kind:?}"
            );
        }
        assert!(!steps(&change(Kind::Remove, None, None)).contains(&PairStep::Add));
    }

    fn on_openshift(kind: Kind) -> Change {
        let node2 = Some(place("node2", 2));
        Change { openshift: Some(Replaced::default()), ..change(kind, node2.clone(), node2) }
    }

    #[test]
    fn on_openshift_its_operators_do_what_is_between_delete_and_join() {
        use PairStep::{Check, Delete, Join, Leave, Node, Out, Save, Verify};
        let mut change = on_openshift(Kind::Replace);
        let mut seen = pair();
        for (step, then) in [(Check, Leave), (Leave, Out), (Out, Save)] {
            match step {
                Leave => (seen.serves_alone, seen.old_serves) = (true, false),
                Out => seen.old = Old::Stopped,
                step => done(&mut change, &[step]),
            }
            assert_eq!(next(&change, &seen), Some(then), "after {step:?}");
        }
        seen.is_new_node = Some(false);
        for (step, then) in [(Save, Delete), (Delete, Node), (Node, Join)] {
            done(&mut change, &[step]);
            assert_eq!(next(&change, &seen), Some(then), "after {step:?}");
        }
        seen.new_votes = true;
        assert_eq!(next(&change, &seen), Some(Verify));
        let removed = on_openshift(Kind::Remove);
        assert_eq!(steps(&removed), [Check, Leave, Out, Verify], "the operator keeps the map of both");
    }

    /// Asserts that on OpenShift only the old machine's etcd is stopped, wherever the command was interrupted. The new machine has the
    /// same node name.
    #[test]
    fn on_openshift_whoever_is_online_is_the_old_machine_until_the_api_says_otherwise() {
        use PairStep::{Check, Delete, Join, Leave, Node, Out, Save};
        let mut change = on_openshift(Kind::Replace);
        done(&mut change, &[Check]);
        let at = |change: &Change, is_new_node| next(change, &PairSeen { is_new_node, ..pair() });
        assert_eq!(at(&change, Some(true)), Some(Leave), "before anything is saved, nothing was deleted");
        done(&mut change, &[Save]);
        assert_eq!(at(&change, Some(false)), Some(Leave), "it came back");
        assert_eq!(at(&change, Some(true)), Some(Delete));
        assert_eq!(at(&change, None), Some(Delete), "which only asks as long as nobody answers");
        done(&mut change, &[Delete, Node]);
        assert_eq!(at(&change, Some(false)), Some(Join));
        let stopped = PairSeen { old: Old::Online { standby: true }, serves_alone: true, old_serves: false, ..pair() };
        let mut change = on_openshift(Kind::Replace);
        done(&mut change, &[Check, Save]);
        assert_eq!(next(&change, &PairSeen { is_new_node: Some(false), ..stopped }), Some(Out));
    }
}
