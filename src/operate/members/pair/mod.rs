//! Changes of a pair's members. One command replaces, adds or removes a node, and is typed on the node that stays.
//!
//! [`plan`] chooses the steps and is pure. [`work`] carries them out. An interrupted command continues when it is typed again.

mod arrive;
mod beside;
mod change;
mod check;
mod end;
mod facts;
#[cfg(test)]
#[path = "tests/fake_node1.rs"]
mod fake_node1;
mod leave;
mod nodes;
mod openshift;
mod operators;
mod outside;
mod plan;
mod promote;
mod remembered;
mod verify;
mod work;
mod wrong;

use super::judge::{self, Planned, Wanted};
use super::outcome::Outcome;
use crate::adapters::openshift::replaced::Replaced;
use crate::agent::resource::{context, params};
use crate::decide::members::Newcomer;
use crate::operate::failure::Failure;
use crate::operate::health;
use crate::operate::members::changed::Changed;
use crate::operate::members::order::{Order, Terms};
use crate::operate::members::step::Names;
use crate::operate::talk::Talk;
use crate::os::clock;

use self::change::{Change, Kind, Place};
use self::facts::Look;
use self::work::Work;
use self::wrong::{Known, Typed};

pub(super) fn run(order: &Order, terms: &Terms, talk: &dyn Talk) -> Result<Outcome, Failure> {
    if let Order::Promote { node } = order {
        return promote::run(node, terms).map(Outcome::Changed);
    }
    match order {
        Order::AddOutside { new } => return outside::add(new, terms, talk),
        Order::Remove { node, .. } if outside::is_meant(node, terms) => return outside::remove(node, terms, talk),
        _ => {}
    }
    let existing = change::read()?;
    let look = Look::at_all(terms, existing.as_ref())?;
    let (typed, abort, allow_fewer) = typed(order);
    match meant(existing, change::last(), &look, &typed, abort)? {
        Meant::WasDone(last) => Ok(Outcome::Changed(changed(&last, &look, Vec::new(), 0))),
        Meant::Begins(change) => begin(&change, &look, allow_fewer, terms, talk),
        Meant::TakesBack(existing) => end::abort(&existing, &look, terms, talk).map(Outcome::Changed),
        Meant::GoesOn(existing) => go_on(existing, &look, &typed, terms, talk),
    }
}

/// The meaning of a typed order: it repeats a finished change, begins a change, or undoes or continues the change in progress.
#[derive(Debug, PartialEq, Eq)]
enum Meant {
    WasDone(Change),
    Begins(Change),
    TakesBack(Change),
    GoesOn(Change),
}

/// Interprets a typed order. `existing` is the change in progress, and `last` the last finished one.
fn meant(
    existing: Option<Change>,
    last: Option<Change>,
    look: &Look,
    typed: &Typed,
    abort: bool,
) -> Result<Meant, Failure> {
    let is_openshift = matches!(look.context.params.source, params::Source::Manifest { .. });
    beside::keeps(look, existing.as_ref().map(|existing| existing.kind).or(typed.kind), is_openshift)?;
    if is_openshift {
        operators::wrong(typed).map_err(Failure)?;
    }
    match existing {
        Some(existing) => Ok(if abort { Meant::TakesBack(existing) } else { Meant::GoesOn(existing) }),
        None if abort => Err(Failure("no change is under way: there is nothing to take back".to_owned())),
        None => {
            let known = known(look, typed);
            if let Some(last) = last.filter(|last| known.was_done(typed, last)) {
                return Ok(Meant::WasDone(last));
            }
            let mut change = known.change(typed).map_err(Failure)?;
            change.openshift = is_openshift.then(Replaced::default);
            beside::may_begin(look, &change)?;
            Ok(Meant::Begins(change))
        }
    }
}

fn typed(order: &Order) -> (Typed, bool, bool) {
    match order {
        Order::Add { new, fence, links } => {
            let (kind, new) = (Some(Kind::Add), Some(new.clone()));
            let (fence, links) = (fence.clone(), links.clone());
            (Typed { kind, new, fence, links, ..Typed::default() }, false, false)
        }
        Order::Remove { node, allow_fewer_voters } => {
            let (kind, old) = (Some(Kind::Remove), Some(node.clone()));
            (Typed { kind, old, ..Typed::default() }, false, *allow_fewer_voters)
        }
        Order::Replace { old, new, fence, links, old_is_off, abort } => {
            let (kind, old) = (old.is_some().then_some(Kind::Replace), old.clone());
            let (new, fence, links) = (new.clone(), fence.clone(), links.clone());
            (Typed { kind, old, new, fence, links, old_is_off: *old_is_off }, *abort, false)
        }
        Order::Promote { .. } | Order::AddOutside { .. } => Default::default(),
    }
}

fn known<'a>(look: &'a Look, typed: &Typed) -> Known<'a> {
    let params = &look.context.params;
    let delay = |node: &str| {
        look.devices(node).iter().find_map(|device| device.resource.parameters.get("pcmk_delay_base").cloned())
    };
    let here = look.context.me.name.as_str();
    let old = typed.old.as_deref().and_then(delay);
    Known {
        here,
        map: params.nodes.iter().map(|node| Place { name: node.name.clone(), address: node.ip }).collect(),
        nodes: health::names(&look.cluster),
        links: look.links(here),
        links_of_old: typed.old.as_deref().map(|old| look.links(old)).unwrap_or_default(),
        peer_port: params.peer_port,
        delay: Some(wrong::delay(old.as_deref(), delay(here).as_deref())),
        now: clock::wall_seconds(),
    }
}

/// Begins a new member change, after the rules have allowed it and the operator has confirmed it. A dry run returns the plan only.
fn begin(change: &Change, look: &Look, allow_fewer: bool, terms: &Terms, talk: &dyn Talk) -> Result<Outcome, Failure> {
    let planned = planned(change, look, allow_fewer)?;
    if terms.dry_run || !planned.allowed {
        return Ok(Outcome::Planned(planned));
    }
    announce(change, &planned, look, talk)?;
    consents(change, allow_fewer, talk)?;
    work(change, look, terms, talk)
}

/// Asks the operator to confirm a new member change. Fails without the confirmation.
fn consents(change: &Change, allow_fewer: bool, talk: &dyn Talk) -> Result<(), Failure> {
    match &change.old {
        Some(old) if change.old_is_off => has_seen(&old.name, talk),
        Some(Place { name, .. }) if allow_fewer => {
            talk.name_or_leave(&format!("Nothing replaces {name}. Type {name} if one voter is to be all"), name)
        }
        _ if talk.leave("Type 'yes' to continue")? => Ok(()),
        _ => Err(Failure("nothing was done: 'yes' was not typed".to_owned())),
    }
}

/// Asks the operator to confirm that the node `name` is off. Fails without the confirmation.
fn has_seen(name: &str, talk: &dyn Talk) -> Result<(), Failure> {
    talk.name(&format!("{name} must be off, or both could write. Type {name} if you have seen that it is"), name)
}

/// Prints the steps of a member change, and the time for which a single voter serves.
fn announce(change: &Change, planned: &Planned, look: &Look, talk: &dyn Talk) -> Result<(), Failure> {
    talk.tell(&format_args!("{}:", change.what()))?;
    for step in &planned.steps {
        talk.tell(&format_args!("  {}", step.what))?;
    }
    match (change.kind, planned.seconds_with_one_voter) {
        (Kind::Remove, _) => talk.tell(&"one voter carries everything from then on"),
        (_, _) if look.third_voter().is_some() => talk.tell(&format_args!(
            "{} and the third voter carry everything until the new one votes, and neither may fail: for as long as the new machine takes",
            change.here.name
        )),
        (_, Some(seconds)) => talk.tell(&format_args!(
            "one voter carries everything until the new one votes: for as long as the new machine takes, and about {seconds} s for \
             the copy of its data"
        )),
        _ => Ok(()),
    }?;
    if let Some(why) = look.members.as_ref().err() {
        talk.tell(&format_args!("etcd cannot be asked now: {}", why.0))?;
    }
    Ok(())
}

/// Continues the member change that an interrupted command began.
fn go_on(existing: Change, look: &Look, typed: &Typed, terms: &Terms, talk: &dyn Talk) -> Result<Outcome, Failure> {
    // The order is compared with the nodes before the change, because the change itself uses its new names.
    let asked = typed.kind.map(|_| known_before(&existing, look).change(typed)).transpose().map_err(Failure)?;
    wrong::under_way(&existing, asked.as_ref(), &look.context.me.name).map_err(Failure)?;
    if terms.dry_run {
        return planned(&existing, look, true).map(Outcome::Planned);
    }
    let (change, is_new) = with_word(existing, typed, talk)?;
    if is_new {
        change.save()?;
    }
    work(&change, look, terms, talk)
}

/// Adds the operator's confirmation that the old machine is off, if `--old-is-off` was typed now. Also returns whether the confirmation
/// is new.
fn with_word(mut existing: Change, typed: &Typed, talk: &dyn Talk) -> Result<(Change, bool), Failure> {
    let is_new = typed.old_is_off && !existing.old_is_off;
    if is_new && let Some(old) = &existing.old {
        has_seen(&old.name, talk)?;
    }
    existing.old_is_off |= typed.old_is_off;
    Ok((existing, is_new))
}

/// Carries out the steps of a member change. If another command has the lock, does nothing and returns the lock as the obstacle.
fn work(change: &Change, look: &Look, terms: &Terms, talk: &dyn Talk) -> Result<Outcome, Failure> {
    Ok(Outcome::Changed(match Work::begin(change, terms, talk)? {
        Ok(work) => work.run(terms, talk)?,
        Err(why) => changed(change, look, Vec::new(), 0).forbidden(&why),
    }))
}

/// Returns the nodes and links from before the change in progress, against which a repeated order is checked.
fn known_before<'a>(existing: &Change, look: &'a Look) -> Known<'a> {
    let mut known = known(look, &Typed::default());
    known.map = std::iter::once(&existing.here).chain(&existing.old).cloned().collect();
    known.nodes = known.map.iter().map(|place| place.name.clone()).collect();
    known.links_of_old.clone_from(&existing.links);
    known
}

/// Returns the plan of a member change: whether the rules allow it now, and its steps.
fn planned(change: &Change, look: &Look, allow_fewer: bool) -> Result<Planned, Failure> {
    let newcomer = |place: &Place| Newcomer {
        name: place.name.clone(),
        peer_url: context::endpoint(place.address, look.context.params.peer_port).url,
    };
    let new = change.new.as_ref().map(newcomer);
    let (_, node) = change.wish();
    let node = node.to_owned();
    let replace = Wanted::Replace { old: node.clone(), new: new.clone() };
    let mut seen = match &look.members {
        Ok(seen) => seen.clone(),
        Err(Failure(why)) => return Err(Failure(why.clone())),
    };
    let outlook = change.old.as_ref().map(|old| health::outlook(&look.cluster, &old.name));
    let votes = look.member(&node).is_some_and(|member| !member.is_learner);
    let mut planned = match (change.kind, new) {
        (Kind::Replace, _) => judge::plan(&replace, &seen, outlook.as_ref())?,
        (Kind::Add, Some(new)) => {
            // The new node counts as wanted, because `node_ip_map` will have it.
            seen.membership.wanted = seen.membership.wanted.max(2);
            judge::plan(&Wanted::Add(new), &seen, None)?
        }
        _ if votes => {
            let remove = judge::plan(&Wanted::Remove { node, allow_fewer }, &seen, None)?;
            // The node leaves like one that is stopped in good order.
            let stop = judge::plan(&replace, &seen, outlook.as_ref())?;
            if remove.allowed { Planned { wish: "remove", after: remove.after, ..stop } } else { remove }
        }
        _ => Planned { wish: "remove", ..judge::plan(&replace, &seen, outlook.as_ref())? },
    };
    planned = at_a_word(change, look.seen(change).old, planned);
    let names = Names { third_voter: look.third_voter().is_some(), ..change.names() };
    let step = |step: &plan::PairStep| judge::PlannedStep {
        what: step.words(&names),
        who: step.who(),
        done: change.has(*step),
    };
    planned.steps = plan::steps(change).iter().map(step).collect();
    Ok(planned)
}

/// Allows a planned change if the operator has confirmed that the old machine is off, and Pacemaker reports that machine as stopped or
/// unclean. The surviving node waits for this confirmation.
fn at_a_word(change: &Change, old: plan::Old, planned: Planned) -> Planned {
    let is_dead = matches!(old, plan::Old::Unclean | plan::Old::Stopped);
    if !change.old_is_off || !is_dead {
        return planned;
    }
    Planned { allowed: true, rule: None, because: None, instead: None, ..planned }
}

/// Returns the result of a member change, with the present number of voters.
fn changed(change: &Change, look: &Look, made: Vec<String>, seconds: u64) -> Changed {
    let (wish, node) = change.wish();
    let membership = look.members.as_ref().ok().map(|seen| &seen.membership);
    Changed::done(wish, node, membership, made, seconds)
}

#[cfg(test)]
mod tests {
    use super::fake_node1::{Node1, YES, parts, terms};
    use super::plan::Old;
    use super::plan::tests::{change, place};
    use super::*;
    use crate::operate::health::samples;
    use crate::operate::members::judge::tests::forbidden;
    use crate::operate::members::step::PairStep;
    use crate::operate::talk::fake_operator::Operator;

    fn replaced() -> Change {
        change(Kind::Replace, Some(place("node2", 2)), Some(place("node3", 3)))
    }

    /// Returns the parsed arguments of `tandem member replace node2`.
    fn again() -> Typed {
        Typed { kind: Some(Kind::Replace), old: Some("node2".to_owned()), ..Typed::default() }
    }

    #[test]
    fn what_is_typed_begins_goes_on_or_is_over_and_a_third_member_goes_first() {
        let node1 = Node1::new();
        let mut look = node1.look(samples::read("healthy"));
        let asks = |look: &Look, existing: Option<&Change>, last: Option<&Change>, typed: &Typed, abort| {
            meant(existing.cloned(), last.cloned(), look, typed, abort).map_err(|Failure(why)| why)
        };
        let begun = asks(&look, None, None, &again(), false);
        assert!(matches!(&begun, Ok(Meant::Begins(change)) if change.keeps_name()), "{begun:?}");
        let nothing = asks(&look, None, None, &again(), true).unwrap_err();
        assert_eq!(nothing, "no change is under way: there is nothing to take back");
        let one = replaced();
        assert_eq!(asks(&look, Some(&one), None, &again(), false), Ok(Meant::GoesOn(one.clone())));
        assert_eq!(asks(&look, Some(&one), None, &again(), true), Ok(Meant::TakesBack(one)));
        let mut over = change(Kind::Remove, Some(place("node2", 2)), None);
        over.log.push(change::Entry { at: 0, step: PairStep::Verify, what: String::new() });
        look.context.params.nodes.truncate(1);
        let removed = Typed { kind: Some(Kind::Remove), ..again() };
        assert_eq!(asks(&look, None, Some(&over), &removed, false), Ok(Meant::WasDone(over)));
        parts(&mut look.cluster)
            .1
            .properties
            .insert("etcd_guest".to_owned(), "node4=https://192.0.2.4:2380".to_owned());
        let third_voter = asks(&look, None, None, &removed, false).unwrap_err();
        assert!(third_voter.contains("is a third member beside the pair"), "{third_voter}");
    }

    #[test]
    fn on_openshift_nothing_is_meant_that_its_operators_do() {
        let node1 = Node1::new();
        let mut look = node1.look(samples::read("healthy"));
        look.context.params.source = params::Source::Manifest { path: "/pod.yaml".into(), image: None };
        let begun = meant(None, None, &look, &again(), false).unwrap();
        assert!(matches!(&begun, Meant::Begins(change) if change.openshift.is_some()), "{begun:?}");
        let fence = vec![("ip".to_owned(), "192.0.2.103".to_owned())];
        let Failure(why) = meant(None, None, &look, &Typed { fence, ..again() }, false).unwrap_err();
        assert!(why.ends_with("leave --new and --fence out"), "{why}");
    }

    /// Asserts that the operator must type the old node's name to confirm that its machine is off. A script that answers 'yes' to every
    /// question has not seen the machine.
    #[test]
    fn a_name_is_typed_where_something_may_be_lost() {
        let confirm = |node| Operator { confirm: Some(node), ..Operator::default() };
        let wrong = Operator { yes: true, ..confirm("node1") };
        let right = confirm("node2");
        let consents = |change: &Change, allow_fewer, talk: &Operator| consents(change, allow_fewer, talk).is_ok();
        let off = Change { old_is_off: true, ..replaced() };
        for (change, allow_fewer, talk, may) in [
            (&off, false, &right, true),
            (&off, false, &wrong, false),
            (&off, true, &wrong, false),
            (&replaced(), true, &right, true),
            (&replaced(), true, &confirm("node1"), false),
            (&replaced(), true, &wrong, true),
            (&replaced(), false, &YES, true),
        ] {
            assert_eq!(consents(change, allow_fewer, talk), may, "{} {allow_fewer}", change.old_is_off);
        }
        let typed = Typed { old_is_off: true, ..again() };
        let word = |existing: Change, typed: &Typed, talk: &Operator| with_word(existing, typed, talk).ok();
        assert_eq!(word(replaced(), &typed, &wrong), None);
        assert_eq!(word(replaced(), &typed, &right), Some((off.clone(), true)));
        assert_eq!(word(off.clone(), &typed, &wrong), Some((off.clone(), false)), "it was typed before");
        assert_eq!(word(off.clone(), &again(), &wrong), Some((off, false)), "it stands");
    }

    /// Asserts that a dry run and a forbidden change end before the operator is asked. The fake operator answers with a wrong name, so
    /// that a question fails.
    #[test]
    fn a_dry_run_and_what_a_rule_forbids_end_before_anybody_is_asked() {
        /// Returns whether the rules allow the plan in `outcome`.
        fn allowed(outcome: Result<Outcome, Failure>) -> Result<bool, String> {
            match outcome {
                Ok(Outcome::Planned(planned)) => Ok(planned.allowed),
                Ok(other) => panic!("nothing was to be done: {other:?}"),
                Err(Failure(why)) => Err(why),
            }
        }
        let node1 = Node1::new();
        let off = Change { old_is_off: true, ..replaced() };
        let talk = Operator { confirm: Some("node1"), ..Operator::default() };
        let (wet, dry) = (terms(), Terms { dry_run: true, ..terms() });
        let mut look = node1.look(samples::read("peer-off"));
        look.members.as_mut().unwrap().membership.members.truncate(1);
        let begins = |look: &Look, terms: &Terms| allowed(begin(&off, look, false, terms, &talk));
        let asked = "nothing was done: 'node2' was not typed";
        assert_eq!(begins(&look, &wet), Err(asked.to_owned()));
        assert_eq!(begins(&look, &dry), Ok(true));
        // In maintenance mode Pacemaker stops no resource.
        let mut look = node1.look(samples::read("cluster-maintenance"));
        assert_eq!(begins(&look, &wet), Ok(false));
        assert!(!planned(&replaced(), &look, false).unwrap().allowed);
        look.members = Err(Failure("nobody answers".to_owned()));
        assert!(planned(&replaced(), &look, false).is_err());
        let look = node1.look(samples::read("healthy"));
        let typed = Typed { old_is_off: true, ..again() };
        let goes_on = |typed: &Typed, terms: &Terms| allowed(go_on(replaced(), &look, typed, terms, &talk));
        let by_word = Typed { old_is_off: true, ..Typed::default() };
        assert_eq!(goes_on(&by_word, &dry), Ok(true));
        assert_eq!(goes_on(&by_word, &wet), Err(asked.to_owned()));
        assert!(
            goes_on(&typed, &dry).unwrap_err().starts_with("another change is under way: node2 is replaced by node3")
        );
    }

    #[test]
    fn a_healthy_voter_is_removed_with_leave_for_fewer_only() {
        let node1 = Node1::new();
        let removed = change(Kind::Remove, Some(place("node2", 2)), None);
        let mut look = node1.look(samples::read("healthy"));
        let allowed = |look: &Look, allow_fewer| planned(&removed, look, allow_fewer).unwrap().allowed;
        assert_eq!((allowed(&look, false), allowed(&look, true)), (false, true));
        look.members.as_mut().unwrap().membership.members[1].is_learner = true;
        assert!(allowed(&look, false), "who does not vote is in no majority");
        let look = node1.look(samples::read("cluster-maintenance"));
        assert!(!allowed(&look, true), "it goes as one goes that is stopped");
    }

    #[test]
    fn a_word_makes_no_machine_off_that_is_seen_to_run() {
        let mut replaced = change(Kind::Replace, Some(place("node2", 2)), Some(place("node3", 3)));
        let allowed = |change: &Change, old| at_a_word(change, old, forbidden()).allowed;
        for old in [Old::Unclean, Old::Stopped, Old::Gone, Old::Online { standby: true }] {
            assert!(!allowed(&replaced, old), "{old:?}");
        }
        replaced.old_is_off = true;
        assert!(allowed(&replaced, Old::Unclean) && allowed(&replaced, Old::Stopped));
        assert!(!allowed(&replaced, Old::Online { standby: false }) && !allowed(&replaced, Old::Gone));
    }
}
