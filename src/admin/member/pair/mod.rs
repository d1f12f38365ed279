//! Changes of a pair's members: a node is replaced, added or removed by one command, typed on the node that stays.
//!
//! [`plan`] has the steps, and is pure; [`work`] takes them. Whoever is killed anywhere is called again and goes on.

mod arrive;
mod change;
mod check;
mod end;
mod facts;
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

use super::changed::Changed;
use super::judge::{self, Planned, Wanted};
use super::words::{Order, Shared};
use crate::admin::exit::{Exit, Failure};
use crate::admin::prompt::Prompt;
use crate::admin::report::show;
use crate::clock;
use crate::decide::members::Newcomer;
use crate::health;
use crate::openshift::replaced::Replaced;
use crate::resource::{context, params};

use self::change::{Change, Kind, Place};
use self::facts::Look;
use self::work::Work;
use self::wrong::{Known, Typed};

pub(super) fn run(order: &Order, shared: &Shared) -> Result<Exit, Failure> {
    if let Order::Promote { node } = order {
        return show(&promote::run(node, shared)?, shared.form);
    }
    match order {
        Order::AddOutside { new } => return outside::add(new, shared),
        Order::Remove { node, .. } if outside::is_meant(node, shared) => return outside::remove(node, shared),
        _ => {}
    }
    let existing = change::read()?;
    let look = Look::at_all(shared, existing.as_ref())?;
    outside::keeps(&look.cluster)?;
    let (typed, abort, allow_fewer) = typed(order);
    let is_openshift = matches!(look.context.params.source, params::Source::Manifest { .. });
    if is_openshift {
        operators::wrong(&typed).map_err(Failure)?;
    }
    let Some(existing) = existing else {
        if abort {
            return Err(Failure("no change is under way: there is nothing to take back".to_owned()));
        }
        let known = known(&look, &typed);
        if let Some(last) = change::last().filter(|last| known.was_done(&typed, last)) {
            return show(&changed(&last, &look, Vec::new(), 0), shared.form);
        }
        let mut change = known.change(&typed).map_err(Failure)?;
        change.openshift = is_openshift.then(Replaced::default);
        return begin(&change, &look, shared, allow_fewer);
    };
    if abort {
        return show(&end::abort(&existing, &look, shared)?, shared.form);
    }
    go_on(existing, &look, &typed, shared)
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

/// A change that nobody has begun.
fn begin(change: &Change, look: &Look, shared: &Shared, allow_fewer: bool) -> Result<Exit, Failure> {
    let planned = planned(change, look, allow_fewer)?;
    if shared.dry_run || !planned.allowed {
        return show(&planned, shared.form);
    }
    let prompt = Prompt::new(&shared.answers, shared.form);
    announce(change, &planned, look, &prompt)?;
    if change.old_is_off
        && let Some(old) = &change.old
    {
        let name = &old.name;
        prompt
            .name(&format!("{name} must be off, or both could write. Type {name} if you have seen that it is"), name)?;
    } else if allow_fewer && let Some(old) = &change.old {
        let name = &old.name;
        prompt.name_or_leave(&format!("Nothing replaces {name}. Type {name} if one voter is to be all"), name)?;
    } else if !prompt.leave("Type 'yes' to go on")? {
        return Err(Failure("nothing was done: 'yes' was not typed".to_owned()));
    }
    work(change, look, shared)
}

/// What is about to happen, and how long one voter carries everything.
fn announce(change: &Change, planned: &Planned, look: &Look, prompt: &Prompt<'_>) -> Result<(), Failure> {
    prompt.tell(format_args!("{}:", change.what()))?;
    for step in &planned.steps {
        prompt.tell(format_args!("  {}", step.what))?;
    }
    match (change.kind, planned.seconds_with_one_voter) {
        (Kind::Remove, _) => prompt.tell("one voter carries everything from then on"),
        (_, Some(seconds)) => prompt.tell(format_args!(
            "one voter carries everything until the new one votes: for as long as the new machine takes, and about {seconds} s for \
             the copy of its data"
        )),
        _ => Ok(()),
    }?;
    if let Some(why) = look.members.as_ref().err() {
        prompt.tell(format_args!("etcd cannot be asked now: {}", why.0))?;
    }
    Ok(())
}

/// One that was begun, by a command that was cut off.
fn go_on(existing: Change, look: &Look, typed: &Typed, shared: &Shared) -> Result<Exit, Failure> {
    // The names of the one that is under way are in use by it.
    let asked = typed.kind.map(|_| known_before(&existing, look).change(typed)).transpose().map_err(Failure)?;
    wrong::under_way(&existing, asked.as_ref(), &look.context.me.name).map_err(Failure)?;
    if shared.dry_run {
        return show(&planned(&existing, look, true)?, shared.form);
    }
    let mut existing = existing;
    if typed.old_is_off && !existing.old_is_off {
        if let Some(old) = &existing.old {
            let question =
                format!("{0} must be off, or both could write. Type {0} if you have seen that it is", old.name);
            Prompt::new(&shared.answers, shared.form).name(&question, &old.name)?;
        }
        existing.old_is_off = true;
        existing.save()?;
    }
    work(&existing, look, shared)
}

/// Takes the steps, unless somebody else has the lock.
fn work(change: &Change, look: &Look, shared: &Shared) -> Result<Exit, Failure> {
    match Work::begin(change, shared)? {
        Ok(work) => work.run(shared),
        Err(why) => show(&changed(change, look, Vec::new(), 0).forbidden(&why), shared.form),
    }
}

/// As it was before the change that is under way.
fn known_before<'a>(existing: &Change, look: &'a Look) -> Known<'a> {
    let mut known = known(look, &Typed::default());
    known.map = std::iter::once(&existing.here).chain(&existing.old).cloned().collect();
    known.nodes = known.map.iter().map(|place| place.name.clone()).collect();
    known.links_of_old.clone_from(&existing.links);
    known
}

/// What the rules say of it, and its steps.
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
            // There is a place for it as soon as the map has it.
            seen.membership.wanted = seen.membership.wanted.max(2);
            judge::plan(&Wanted::Add(new), &seen, None)?
        }
        _ if votes => {
            let remove = judge::plan(&Wanted::Remove { node, allow_fewer }, &seen, None)?;
            // It goes as one goes that is stopped in good order.
            let stop = judge::plan(&replace, &seen, outlook.as_ref())?;
            if remove.allowed { Planned { wish: "remove", after: remove.after, ..stop } } else { remove }
        }
        _ => Planned { wish: "remove", ..judge::plan(&replace, &seen, outlook.as_ref())? },
    };
    planned = at_a_word(change, look.seen(change).old, planned);
    let step =
        |step: &plan::Step| judge::Step { what: step.words(&change.names()), who: step.who(), done: change.has(*step) };
    planned.steps = plan::steps(change).iter().map(step).collect();
    Ok(planned)
}

/// That the old machine is off is a word for a pair whose survivor waits for it, and for no machine that is seen to run.
fn at_a_word(change: &Change, old: plan::Old, planned: Planned) -> Planned {
    let is_dead = matches!(old, plan::Old::Unclean | plan::Old::Stopped);
    if !change.old_is_off || !is_dead {
        return planned;
    }
    Planned { allowed: true, rule: None, because: None, instead: None, ..planned }
}

/// How a change stands, as it is answered.
fn changed(change: &Change, look: &Look, made: Vec<String>, seconds: u64) -> Changed {
    let (wish, node) = change.wish();
    let membership = look.members.as_ref().ok().map(|seen| &seen.membership);
    Changed::done(wish, node, membership, made, seconds)
}

#[cfg(test)]
mod tests {
    use super::plan::Old;
    use super::plan::tests::{change, place};
    use super::*;
    use crate::admin::member::judge::tests::forbidden;

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
