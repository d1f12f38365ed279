//! The end of a change, finished or aborted.

use super::change::{Change, node_ip_map};
use super::facts::Look;
use super::plan::{Old, PairSeen, PairStep};
use super::{change, changed, operators};
use crate::adapters::command::Programs;
use crate::adapters::pacemaker::member_change;
use crate::operate::failure::Failure;
use crate::operate::members::changed::Changed;
use crate::operate::members::order::Terms;
use crate::operate::setup::action::Action;
use crate::operate::setup::apply;
use crate::operate::talk::Talk;

/// Ends the member change and releases its lock, so that another change can begin.
pub(super) fn close(programs: &Programs) -> Result<(), Failure> {
    // The file goes last, because a lock without it would belong to no command.
    member_change::give_back(programs)?;
    change::close()
}

/// Undoes a member change as far as possible, and lists what stays changed.
pub(super) fn abort(existing: &Change, look: &Look, terms: &Terms, talk: &dyn Talk) -> Result<Changed, Failure> {
    let seen = look.seen(existing);
    may_be_taken_back(existing, &seen, look.third_voter().is_some(), terms, talk)?;
    let devices = existing.new.as_ref().map(|new| look.devices(&new.name)).unwrap_or_default();
    let devices: Vec<&str> = devices.iter().map(|device| device.resource.id.as_str()).collect();
    let programs = Programs::default();
    let mut made = Vec::new();
    let (typed, told) = way_back(existing, &seen, &look.context.resource, &devices);
    for words in typed {
        let command = Action::Command(words);
        apply::apply(&programs, &command).map_err(Failure)?;
        made.push(command.to_string());
    }
    made.extend(told);
    if existing.openshift.is_none()
        && let Some(old) = existing.old.as_ref().filter(|_| is_forgotten(existing, &seen))
    {
        made.push(format!(
            "{0} is forgotten, which cannot be taken back: 'tandem member add {0}={1} --fence ip=ADDRESS --fence username=USER \
             --fence password_file=FILE' brings a second node",
            old.name, old.address
        ));
    }
    close(&programs)?;
    Ok(changed(existing, look, made, 0))
}

fn may_be_taken_back(
    existing: &Change,
    seen: &PairSeen,
    third_voter: bool,
    terms: &Terms,
    talk: &dyn Talk,
) -> Result<(), Failure> {
    if let Some(why) = too_late(existing, seen, third_voter) {
        return Err(Failure(why));
    }
    if terms.dry_run || !talk.leave(&format!("{}. Type 'yes' to take it back", existing.what()))? {
        return Err(Failure("nothing was done: 'yes' was not typed".to_owned()));
    }
    Ok(())
}

/// Returns the reason why a member change cannot be undone; `None` if it can. It cannot if the new member votes already, or if a third
/// voter keeps a forgotten node from coming back.
fn too_late(existing: &Change, seen: &PairSeen, third_voter: bool) -> Option<String> {
    if third_voter && is_forgotten(existing, seen) {
        let (what, old) = (existing.what(), existing.names().old);
        return Some(format!(
            "{what}, and {old} is forgotten, which a third member keeps from being taken back; 'tandem member replace' ends it"
        ));
    }
    let votes = seen.new_votes && (existing.has(PairStep::Prepare) || existing.has(PairStep::Node));
    votes.then(|| {
        format!(
            "{}, and the new node votes: nothing can be taken back; 'tandem member replace' ends it",
            existing.what()
        )
    })
}

/// Returns whether Pacemaker's cluster no longer has the old node. `existing` must be a change that removes a node.
fn is_forgotten(existing: &Change, seen: &PairSeen) -> bool {
    existing.has(PairStep::Forget) || seen.old == Old::Gone
}

/// Returns the commands that undo a member change, and a message about what is not undone.
fn way_back(
    existing: &Change,
    seen: &PairSeen,
    resource: &str,
    devices: &[&str],
) -> (Vec<Vec<String>>, Option<String>) {
    let on_openshift = existing.openshift.as_ref().map(|replaced| operators::taken_back(existing, seen, replaced));
    on_openshift.unwrap_or_else(|| (back(existing, seen, resource, devices), None))
}

/// Returns the commands that undo a member change outside of OpenShift, from its present state. `devices` are the ids of the new node's
/// fence devices.
fn back(existing: &Change, seen: &PairSeen, resource: &str, devices: &[&str]) -> Vec<Vec<String>> {
    let mut all: Vec<Vec<&str>> = Vec::new();
    if let Some(new) = existing.new.as_ref().filter(|_| !existing.keeps_name()) {
        if seen.new_is_known {
            all.push(vec!["pcs", "cluster", "node", "remove", &new.name, "--skip-offline", "--force"]);
        }
        all.extend(devices.iter().map(|id| vec!["pcs", "stonith", "delete", id]));
    }
    let map = node_ip_map(&[&existing.here]);
    match &existing.old {
        Some(old) if !is_forgotten(existing, seen) => {
            if seen.old == Old::Stopped {
                all.push(vec!["pcs", "cluster", "start", &old.name]);
            }
            all.push(vec!["pcs", "node", "unstandby", &old.name]);
        }
        _ => all.push(vec!["pcs", "resource", "update", resource, &map]),
    }
    all.into_iter().map(|words| words.into_iter().map(str::to_owned).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::change::{Entry, Kind};
    use super::super::fake_node1::{YES, terms};
    use super::super::plan::tests::{change, pair, place};
    use super::*;
    use crate::adapters::openshift::replaced::Replaced;

    fn noted(mut change: Change, steps: &[PairStep]) -> Change {
        change.log.extend(steps.iter().map(|step| Entry { at: 0, step: *step, what: String::new() }));
        change
    }

    fn lines(existing: &Change, seen: &PairSeen, devices: &[&str]) -> Vec<String> {
        back(existing, seen, "etcd", devices).iter().map(|words| words.join(" ")).collect()
    }

    #[test]
    fn a_new_node_that_votes_stays() {
        let replaced =
            noted(change(Kind::Replace, Some(place("node2", 2)), Some(place("node3", 3))), &[PairStep::Prepare]);
        let votes = PairSeen { new_votes: true, ..pair() };
        assert!(too_late(&replaced, &votes, false).unwrap().contains("nothing can be taken back"));
        assert_eq!(too_late(&replaced, &pair(), false), None);
        // The old machine still votes, under the name that both machines have.
        let same = change(Kind::Replace, Some(place("node2", 2)), Some(place("node2", 2)));
        assert_eq!(too_late(&same, &votes, false), None);
        assert!(too_late(&noted(same, &[PairStep::Node]), &votes, false).is_some(), "OpenShift's new machine");
    }

    /// Asserts that a third voter makes an abort impossible once the old node is forgotten. 'tandem member add' would bring the node
    /// back, but is refused while there is a third voter.
    #[test]
    fn with_a_third_voter_a_node_that_is_forgotten_is_not_brought_back() {
        let replaced = change(Kind::Replace, Some(place("node2", 2)), Some(place("node3", 3)));
        let stopped = PairSeen { old: Old::Stopped, ..pair() };
        assert_eq!(too_late(&replaced, &stopped, true), None);
        let gone = PairSeen { old: Old::Gone, ..pair() };
        assert!(too_late(&replaced, &gone, true).unwrap().contains("node2 is forgotten"));
        let forgotten = noted(replaced, &[PairStep::Forget]);
        assert!(too_late(&forgotten, &stopped, true).is_some());
        assert_eq!(too_late(&forgotten, &stopped, false), None);
    }

    #[test]
    fn nothing_is_taken_back_in_a_dry_run_or_too_late() {
        let replaced =
            noted(change(Kind::Replace, Some(place("node2", 2)), Some(place("node3", 3))), &[PairStep::Prepare]);
        let votes = PairSeen { new_votes: true, ..pair() };
        let may = |seen: &PairSeen, dry_run| {
            let terms = Terms { dry_run, ..terms() };
            may_be_taken_back(&replaced, seen, false, &terms, &YES).map_err(|Failure(why)| why)
        };
        assert_eq!(may(&pair(), false), Ok(()));
        assert_eq!(may(&pair(), true), Err("nothing was done: 'yes' was not typed".to_owned()));
        assert!(may(&votes, false).unwrap_err().contains("nothing can be taken back"));
    }

    #[test]
    fn on_openshift_the_map_is_its_operators() {
        let node2 = Some(place("node2", 2));
        let mut same = noted(change(Kind::Replace, node2.clone(), node2), &[PairStep::Save]);
        let gone = PairSeen { old: Old::Gone, ..pair() };
        assert_eq!(way_back(&same, &gone, "etcd", &[]).0.len(), 1);
        same.openshift = Some(Replaced::default());
        assert_eq!(way_back(&same, &gone, "etcd", &[]), (Vec::new(), None));
    }

    #[test]
    fn the_old_node_comes_back_until_it_is_forgotten() {
        let replaced = change(Kind::Replace, Some(place("node2", 2)), Some(place("node3", 3)));
        assert_eq!(lines(&replaced, &pair(), &[]), ["pcs node unstandby node2"]);
        let stopped = PairSeen { old: Old::Stopped, ..pair() };
        assert_eq!(lines(&replaced, &stopped, &[]), ["pcs cluster start node2", "pcs node unstandby node2"]);
        let map = "pcs resource update etcd node_ip_map=node1:192.0.2.1";
        let gone = PairSeen { old: Old::Gone, ..pair() };
        assert_eq!(lines(&replaced, &gone, &[]), [map], "pcs has removed it, and the command was killed");
        let forgotten = noted(replaced, &[PairStep::Forget]);
        let there = PairSeen { new_is_known: true, ..gone.clone() };
        let removed = "pcs cluster node remove node3 --skip-offline --force";
        assert_eq!(lines(&forgotten, &there, &["fence-node3"]), [removed, "pcs stonith delete fence-node3", map]);
        let same = noted(change(Kind::Replace, Some(place("node2", 2)), Some(place("node2", 2))), &[PairStep::Forget]);
        assert_eq!(lines(&same, &there, &["fence-node2"]), [map], "its device is the old one's");
        assert_eq!(lines(&same, &pair(), &[]), [map], "who is online under that name is the new machine");
        assert_eq!(lines(&change(Kind::Add, None, Some(place("node2", 2))), &gone, &["fence-node2"])[1], map);
    }
}
