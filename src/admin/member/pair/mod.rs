//! Changes of a pair's members: a node is replaced, added or removed by one command, typed on the node that stays.
//!
//! [`plan`] has the steps, and is pure; [`work`] takes them. Whoever is killed anywhere is called again and goes on.

mod arrive;
mod change;
mod check;
mod end;
mod facts;
mod leave;
mod outside;
mod plan;
mod promote;
mod remembered;
mod step;
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
    if matches!(look.context.params.source, params::Source::Manifest { .. }) {
        return Err(Failure(
            "OpenShift's etcd operator replaces nodes of this pair: see 'oc get jobs -n openshift-etcd'".to_owned(),
        ));
    }
    let (typed, abort, allow_fewer) = typed(order);
    let Some(existing) = existing else {
        if abort {
            return Err(Failure("no change is under way: there is nothing to take back".to_owned()));
        }
        let change = known(&look, &typed).change(&typed).map_err(Failure)?;
        return begin(&change, &look, shared, allow_fewer);
    };
    if abort {
        return show(&end::abort(&existing, &look, shared)?, shared.form);
    }
    go_on(existing, &look, &typed, shared)
}

fn typed(order: &Order) -> (Typed, bool, bool) {
    match order {
        Order::Add { new, fence } => {
            let (kind, new) = (Some(Kind::Add), Some(new.clone()));
            (Typed { kind, new, fence: fence.clone(), ..Typed::default() }, false, false)
        }
        Order::Remove { node, allow_fewer_voters } => {
            let (kind, old) = (Some(Kind::Remove), Some(node.clone()));
            (Typed { kind, old, ..Typed::default() }, false, *allow_fewer_voters)
        }
        Order::Replace { old, new, fence, old_is_off, abort } => {
            let (kind, old) = (old.is_some().then_some(Kind::Replace), old.clone());
            let (new, fence) = (new.clone(), fence.clone());
            (Typed { kind, old, new, fence, old_is_off: *old_is_off }, *abort, false)
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
    if typed.kind.is_some() {
        // The names of the one that is under way are in use by it.
        let asked = known_before(&existing, look).change(typed).map_err(Failure);
        wrong::under_way(&existing, Some(&asked?)).map_err(Failure)?;
    }
    if existing.here.name != look.context.me.name {
        let (what, here) = (existing.what(), &existing.here.name);
        return Err(Failure(format!("{what}, by {here}: type it there")));
    }
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
    let is_dead = matches!(look.seen(change).old, plan::Old::Unclean | plan::Old::Stopped);
    if change.old_is_off && is_dead && !planned.allowed {
        // That word is for a pair whose survivor waits for it.
        planned = Planned { allowed: true, rule: None, because: None, instead: None, ..planned };
    }
    planned.steps = plan::steps(change.kind)
        .iter()
        .map(|step| judge::Step { what: step_words(*step, change), who: step.who(), done: change.has(*step) })
        .collect();
    Ok(planned)
}

/// A step, for whoever reads.
fn step_words(step: plan::Step, change: &Change) -> String {
    use plan::Step::{Add, Check, Device, Forget, Join, Leave, Map, Out, Prepare, Verify};
    let name = |place: &Option<Place>| place.as_ref().map(|place| place.name.clone()).unwrap_or_default();
    let (old, new, here) = (name(&change.old), name(&change.new), &change.here.name);
    match step {
        Check => format!("check that {here} is healthy, and take a snapshot"),
        Leave => format!("leave: pcs node standby {old}, or {here} serves alone already"),
        Out => format!("out: pcs cluster stop {old}, or it is off"),
        Forget => format!("forget: pcs cluster node remove {old}, its fence device, its constraints"),
        Device => format!("fence device of {new}, and its monitor"),
        Map => "map: node_ip_map of the resource".to_owned(),
        Prepare => format!("prepare: tandem setup join on {new}"),
        Add => format!("add: pcs cluster node add {new}"),
        Join => format!("join: {new} gets a copy, and votes once it has caught up"),
        Verify if change.new.is_none() => format!("verify: {here} is the only voter, and takes writes"),
        Verify => "verify: two voters with equal data, and both agents ready".to_owned(),
    }
}

/// How a change stands, as it is answered.
fn changed(change: &Change, look: &Look, made: Vec<String>, seconds: u64) -> Changed {
    let (wish, node) = change.wish();
    let membership = look.members.as_ref().ok().map(|seen| &seen.membership);
    Changed::done(wish, node, membership, made, seconds)
}
