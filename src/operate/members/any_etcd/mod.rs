//! Changes of the members of an etcd that is no pair. A loop observes the members, asks the rules for the next step, and carries it out.

pub(super) mod held;
mod hooks;
pub(super) mod new_etcd;
mod progress;
mod removed;
#[cfg(test)]
mod tests;
mod wanted;
mod work;

pub(super) use self::progress::Progress;
pub(super) use self::work::{said, settles, shape};
use std::time::Duration;

use self::removed::Removed;
use self::wanted::{Meant, Wrong};
use self::work::{End, Work};
use super::judge::{self, Wanted};
use super::look::{self, MembersSeen};
use super::outcome::Outcome;
use super::planned;
use crate::adapters::etcd::client::Endpoint;
use crate::decide::members::{Forbidden, Membership, Next, Wish, Words, next};
use crate::operate::failure::Failure;
use crate::operate::members::changed::Changed;
use crate::operate::members::order::{Order, Terms};
use crate::operate::members::source::Source;
use crate::operate::talk::Talk;
use crate::os::clock::{self, Deadline};

pub(super) fn run(order: &Order, source: &Source, terms: &Terms, talk: &dyn Talk) -> Result<Outcome, Failure> {
    let deadline = Deadline::after(terms.timeout);
    let first = look::look_twice(source)?;
    let is_gone = |name: &&str| judge::find(&first.membership, name).is_none();
    let removed = order.old().filter(is_gone).and_then(|_| Removed::last(&endpoints(&first), &source.credentials));
    let meant = match wanted::meant(order, &first.membership, removed.as_ref()) {
        Ok(meant) => meant,
        Err(Wrong::Members(why)) => return Err(why),
        Err(Wrong::Usage(why)) => return Ok(Outcome::Misused(why)),
    };
    if terms.dry_run {
        return planned::planned(&planned(&meant, &first.membership), &terms.target).map(Outcome::Planned);
    }
    change(&meant, first, source, talk, deadline).map(Outcome::Changed)
}

fn planned(meant: &Meant, membership: &Membership) -> Wanted {
    match (&meant.wish, &meant.new) {
        (Wish::Remove(id), _) if membership.member(*id).is_none() => Wanted::Removed(meant.node.clone()),
        (Wish::Promote(_), _) => Wanted::Promote(meant.node.clone()),
        (Wish::Add(new) | Wish::Replace { old: None, new }, _) => Wanted::Add(new.clone()),
        (Wish::Replace { .. }, new) => Wanted::Replace { old: meant.node.clone(), new: new.clone() },
        (Wish::Remove(_), _) => Wanted::Remove { node: meant.node.clone(), allow_fewer: meant.allow_fewer },
    }
}

/// Changes the members as the operator asked (`meant`), step by step. Waits until `deadline` for obstacles that pass by themselves.
fn change(
    meant: &Meant,
    mut first: MembersSeen,
    source: &Source,
    talk: &dyn Talk,
    deadline: Deadline,
) -> Result<Changed, Failure> {
    let wanted = source.wanted.unwrap_or_else(|| wanted::wanted(&first.membership, meant));
    first.membership.wanted = wanted;
    let words = words(meant, &first.membership, talk)?;
    loop {
        match next(&first.membership, &meant.wish, &words) {
            Next::Done => return Ok(changed(meant, &first, Vec::new(), deadline)),
            Next::Forbidden(why) if !why.passes() || keeps_from_the_lock(&why) && deadline.has_passed() => {
                return Ok(changed(meant, &first, Vec::new(), deadline).forbidden(&why));
            }
            Next::Forbidden(why) if keeps_from_the_lock(&why) => {
                clock::sleep(PAUSE);
                first = look::look(source)?;
                first.membership.wanted = wanted;
            }
            Next::Forbidden(_) | Next::Step(..) => break,
        }
    }
    if first.no_space {
        return Err(Failure(format!("{}: {}", judge::NO_SPACE, judge::FREE_SPACE)));
    }
    // The system's log gets every step, and every confirmation by an operator.
    talk.log_to_syslog();
    let host = nix::unistd::gethostname().map_or_else(|_| "a host".to_owned(), |name| name.to_string_lossy().into());
    let process = std::process::id();
    let holder = format!("'tandem member {} {}' on {host}, process {process}", meant.word, meant.node);
    let endpoints = endpoints(&first);
    let lock = match held::take(&endpoints, &source.credentials, &holder)? {
        Ok(lock) => lock,
        Err(change) => {
            let why = Forbidden::ChangeUnderWay { change };
            return Ok(changed(meant, &first, Vec::new(), deadline).forbidden(&why));
        }
    };
    // The typed endpoints may be those of the member that leaves.
    let mut known = source.endpoints.clone();
    known.extend(endpoints.into_iter().filter(|one| !source.endpoints.iter().any(|typed| typed.url == one.url)));
    let source = Source {
        endpoints: known,
        credentials: source.credentials.clone(),
        pair: None,
        wanted: Some(wanted),
        promote_max_lag: source.promote_max_lag,
        kubeconfig: source.kubeconfig.clone(),
        own_lock: Some(lock.key.clone()),
    };
    let mut work = Work::new(&source, meant, words, &lock, talk, deadline, first);
    let end = work.go()?;
    let changed = changed(meant, &work.seen, std::mem::take(&mut work.made), deadline);
    Ok(match end {
        End::Done => changed,
        End::Forbidden(why) => changed.forbidden(&why),
    })
}

/// Returns whether the command must wait for the obstacle `why` to pass before it takes the member-change lock. It must wait for each
/// obstacle that keeps etcd from having a majority, because the lock is a key in etcd.
fn keeps_from_the_lock(why: &Forbidden) -> bool {
    matches!(why, Forbidden::NoLeader { .. } | Forbidden::Unconfirmed)
}

/// Returns the permission to have fewer voters, if the operator asked for a removal that needs it. The operator has to confirm the
/// removal.
fn words(meant: &Meant, membership: &Membership, talk: &dyn Talk) -> Result<Words, Failure> {
    let none = Words::default();
    let Wish::Remove(id) = &meant.wish else { return Ok(none) };
    let is_kept = || matches!(next(membership, &meant.wish, &none), Next::Forbidden(Forbidden::NoReplacement { .. }));
    if !meant.allow_fewer || !is_kept() {
        return Ok(none);
    }
    let node = &meant.node;
    let voters = membership.voters().count();
    talk.tell(&format_args!("{node} is healthy, and nothing replaces it: {} of {voters} voters are left", voters - 1))?;
    talk.name_or_leave(&format!("type '{node}' if it may go"), node)?;
    Ok(Words { fewer_voters: Some(*id) })
}

fn changed(meant: &Meant, seen: &MembersSeen, made: Vec<String>, deadline: Deadline) -> Changed {
    let is_new = |new: &&crate::decide::members::Newcomer| {
        seen.membership.at(&new.peer_url).is_some_and(|member| member.is_learner)
    };
    Changed {
        new_etcd: meant.new.as_ref().filter(is_new).map(|new| new_etcd::variables(new, seen)),
        ..Changed::done(meant.word, &meant.node, Some(&seen.membership), made, deadline.elapsed().as_secs())
    }
}

/// Returns the client endpoints of the healthy voters, the leader's first.
fn endpoints(seen: &MembersSeen) -> Vec<Endpoint> {
    let mut voters: Vec<_> = seen.membership.voters().filter(|voter| voter.is_healthy()).collect();
    voters.sort_by_key(|voter| seen.membership.leader != Some(voter.id));
    voters.iter().filter_map(|voter| seen.details.get(&voter.id)?.endpoint.clone()).collect()
}

/// Time between two observations.
const PAUSE: Duration = Duration::from_secs(1);
