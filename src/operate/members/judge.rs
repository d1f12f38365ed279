//! The rules' answer to a wish, and the steps that fulfil it. Pure: an observation in, a plan out.

use serde::Serialize;

use super::look::MembersSeen;
use super::step::{Names, OF_A_REPLACEMENT};
use crate::decide::evidence::MemberId;
use crate::decide::may_stop::{Answer, Outlook, may_stop, may_stop_among};
use crate::decide::members::{
    Forbidden, Leaves, Member, Membership, Newcomer, Next, Wish, Words, leaves, next, quorum,
};
use crate::operate::failure::Failure;

/// The change that an operator asks to plan: a change of the members, or the stop of one member.
#[derive(Clone, Debug)]
pub enum Wanted {
    Stop(String),
    Remove {
        node: String,
        allow_fewer: bool,
    },
    Promote(String),
    Replace {
        old: String,
        new: Option<Newcomer>,
    },
    Add(Newcomer),
    /// The removal of a member that an earlier command has already removed. The field is the name that the operator typed.
    Removed(String),
}

/// The plan for a change of the members: whether the rules allow it now, and its steps.
#[derive(Debug, Serialize)]
pub struct Planned {
    pub wish: &'static str,
    pub node: String,
    pub allowed: bool,
    /// True if all facts are known from which `allowed` follows. While it is false, `allowed` is false too.
    #[serde(skip)]
    pub is_known: bool,
    pub rule: Option<&'static str>,
    pub because: Option<String>,
    pub instead: Option<String>,
    pub voters: usize,
    pub healthy_voters: usize,
    pub quorum: usize,
    pub after: After,
    pub seconds_with_one_voter: Option<u64>,
    pub steps: Vec<PlannedStep>,
}

/// Voters, quorum and failures tolerated after the planned change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct After {
    voters: usize,
    quorum: usize,
    tolerates: usize,
}

#[derive(Clone, Debug, Serialize)]
pub struct PlannedStep {
    pub what: String,
    /// The program or person that carries out the step: `tandem`, `agent`, or `operator`.
    pub who: &'static str,
    pub done: bool,
}

/// The reason why a change cannot take its lock in etcd.
pub(super) const NO_SPACE: &str = "etcd raises the alarm NOSPACE, and takes no write, not even the lock of a change";
/// The commands that free space in etcd. A change of the members cannot take its lock before, because of [`NO_SPACE`].
pub(super) const FREE_SPACE: &str =
    "'etcdctl compact REVISION', 'etcdctl defrag --cluster' and 'etcdctl alarm disarm', then the same again";
/// Bytes of etcd's database that are copied to a new member in a second, over a network of one gigabit.
const BYTES_PER_SECOND: u64 = 100_000_000;

impl After {
    fn of(voters: usize, healthy: usize) -> Self {
        let quorum = quorum(voters);
        Self { voters, quorum, tolerates: healthy.saturating_sub(quorum) }
    }

    pub fn voters(self) -> usize {
        self.voters
    }

    pub fn tolerates(self) -> usize {
        self.tolerates
    }
}

/// Judges the change `wanted` by the member rules, and returns its plan. `outlook` has the facts about a stop of the named node, if that
/// node is in a pair.
pub fn plan(wanted: &Wanted, seen: &MembersSeen, outlook: Option<&Outlook>) -> Result<Planned, Failure> {
    let turn = Turn { membership: &seen.membership, outlook };
    let (voters, healthy) = (seen.membership.voters().count(), seen.membership.healthy());
    if let Wanted::Stop(node)
    | Wanted::Remove { node, .. }
    | Wanted::Promote(node)
    | Wanted::Replace { old: node, .. } = wanted
    {
        must_be_one(&seen.membership, node)?;
    }
    let forbidden = turn.forbidden(wanted)?;
    let (wish, node) = match wanted {
        Wanted::Stop(node) => ("stop", node),
        Wanted::Remove { node, .. } | Wanted::Removed(node) => ("remove", node),
        Wanted::Promote(node) => ("promote", node),
        Wanted::Replace { old, .. } => ("replace", old),
        Wanted::Add(new) => ("add", &new.name),
    };
    // The command itself would be refused, because the lock of a change is a write.
    let takes_the_lock = !seen.membership.is_pair && !matches!(wanted, Wanted::Stop(_) | Wanted::Removed(_));
    let no_lock = forbidden.is_empty() && takes_the_lock && seen.no_space;
    Ok(Planned {
        wish,
        node: node.clone(),
        allowed: forbidden.is_empty() && !no_lock,
        is_known: !matches!(forbidden.first(), Some(Forbidden::StopUnknown(_))),
        rule: forbidden.first().map(Forbidden::rule).or(no_lock.then_some("M9")),
        because: sentence(&forbidden).or(no_lock.then(|| NO_SPACE.to_owned())),
        instead: forbidden.first().map(Forbidden::instead).or(no_lock.then(|| FREE_SPACE.to_owned())),
        voters,
        healthy_voters: healthy,
        quorum: quorum(voters),
        after: turn.after(wanted),
        seconds_with_one_voter: turn.copies_alone(wanted).then(|| seconds(seen)).flatten(),
        steps: turn.steps(wanted),
    })
}

fn sentence(forbidden: &[Forbidden]) -> Option<String> {
    let all: Vec<String> = forbidden.iter().map(ToString::to_string).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// Estimates how many seconds the copy of the largest known database to a new member takes. Returns `None` if no size is known.
fn seconds(seen: &MembersSeen) -> Option<u64> {
    let bytes = seen.details.values().filter_map(|detail| detail.db_bytes).max()?;
    Some(bytes.div_ceil(BYTES_PER_SECOND).max(1))
}

struct Turn<'a> {
    membership: &'a Membership,
    outlook: Option<&'a Outlook>,
}

impl Turn<'_> {
    /// Returns the member rules that forbid the change `wanted` now. The list is empty if it is allowed.
    fn forbidden(&self, wanted: &Wanted) -> Result<Vec<Forbidden>, Failure> {
        let wish = match wanted {
            Wanted::Stop(node) => return self.stop(node),
            Wanted::Removed(_) => return Ok(Vec::new()),
            Wanted::Replace { old, .. } if self.membership.is_pair => return self.replace_in_pair(old),
            Wanted::Remove { node, .. } => Wish::Remove(called(self.membership, node)?.id),
            Wanted::Promote(node) => match called(self.membership, node)? {
                member if member.is_learner => Wish::Promote(member.id),
                voter => return Ok(vec![Forbidden::VotesAlready { member: voter.shown() }]),
            },
            Wanted::Add(new) => Wish::Add(new.clone()),
            Wanted::Replace { old, new } => {
                let new = new.clone().unwrap_or_else(nobody_yet);
                Wish::Replace { old: Some(called(self.membership, old)?.id), new }
            }
        };
        let word = match (wanted, &wish) {
            (Wanted::Remove { allow_fewer: true, .. }, Wish::Remove(id)) => Some(*id),
            _ => None,
        };
        Ok(match next(self.membership, &wish, &Words { fewer_voters: word }) {
            Next::Done | Next::Step(..) => Vec::new(),
            Next::Forbidden(why) => vec![why],
        })
    }

    fn stop(&self, node: &str) -> Result<Vec<Forbidden>, Failure> {
        let answer = match self.outlook {
            Some(outlook) if self.is_the_pairs_own() => may_stop(outlook),
            _ => may_stop_among(self.membership, called(self.membership, node)?.id),
        };
        Ok(match answer {
            Answer::Yes => Vec::new(),
            Answer::No(hindrances) => hindrances.into_iter().map(Forbidden::MayNotStop).collect(),
            Answer::Unknown(doubts) => doubts.into_iter().map(Forbidden::StopUnknown).collect(),
        })
    }

    /// Returns whether all voters are nodes of the pair, so that there is no third voter.
    fn is_the_pairs_own(&self) -> bool {
        let mut voters = self.membership.voters();
        self.membership.voters().count() <= 2 && voters.all(|voter| voter.node.is_some())
    }

    /// Judges a replacement in a pair, where the old node leaves before the new one joins. If the old node votes, it must be allowed to
    /// stop. If it does not vote, the remaining voters must have a leader and quorum.
    fn replace_in_pair(&self, old: &str) -> Result<Vec<Forbidden>, Failure> {
        if let Some(voter) = find(self.membership, old).filter(|member| !member.is_learner) {
            return match self.membership.removal_beside_third_voter(voter) {
                Some(removed) => Ok(removed.err().into_iter().collect()),
                None => self.stop(old),
            };
        }
        let (voters, healthy) = (self.membership.voters().count(), self.membership.healthy());
        let is_pair = true;
        Ok(match self.membership.leader {
            None => vec![Forbidden::NoLeader { is_pair }],
            Some(_) if healthy < quorum(voters) => vec![Forbidden::NoQuorum { voters, healthy, is_pair }],
            Some(_) => Vec::new(),
        })
    }

    fn after(&self, wanted: &Wanted) -> After {
        let (voters, healthy) = (self.membership.voters().count(), self.membership.healthy());
        let without = |node: &str| {
            let voter = find(self.membership, node).filter(|member| !member.is_learner);
            let is_healthy = voter.is_some_and(Member::is_healthy);
            (usize::from(voter.is_some()), usize::from(is_healthy))
        };
        match wanted {
            // A node that Pacemaker stops leaves the membership first.
            Wanted::Stop(node) if self.outlook.is_some() && self.is_the_pairs_own() => {
                let (gone, was_healthy) = without(node);
                After::of(voters - gone.min(voters.saturating_sub(1)), healthy - was_healthy)
            }
            Wanted::Stop(node) => After::of(voters, healthy - without(node).1),
            Wanted::Remove { node, .. } => After::of(voters - without(node).0, healthy - without(node).1),
            Wanted::Removed(_) => After::of(voters, healthy),
            Wanted::Promote(node) if without(node).0 == 1 => After::of(voters, healthy),
            Wanted::Promote(_) | Wanted::Add(_) => After::of(voters + 1, healthy + 1),
            Wanted::Replace { old, .. } => {
                let (gone, was_healthy) = without(old);
                After::of(voters - gone + 1, healthy - was_healthy + 1)
            }
        }
    }

    /// Returns whether a single voter serves while the new member copies the data.
    fn copies_alone(&self, wanted: &Wanted) -> bool {
        let voters = self.membership.voters().count();
        match wanted {
            Wanted::Replace { .. } => self.membership.is_pair && !self.membership.has_third_voter(),
            Wanted::Add(_) => voters == 1,
            Wanted::Stop(_) | Wanted::Remove { .. } | Wanted::Removed(_) | Wanted::Promote(_) => false,
        }
    }

    fn steps(&self, wanted: &Wanted) -> Vec<PlannedStep> {
        match wanted {
            Wanted::Stop(node) if self.outlook.is_some() => vec![step(format!("pcs node standby {node}"), "operator")],
            Wanted::Stop(node) => vec![step(format!("stop etcd on {node}, or its machine"), "operator")],
            Wanted::Promote(node) => {
                let done = find(self.membership, node).is_some_and(|member| !member.is_learner);
                vec![PlannedStep { done, ..step(format!("promote {node}"), "tandem") }]
            }
            Wanted::Remove { node, .. } => self.removal(node),
            Wanted::Removed(node) => {
                self.removal(node).into_iter().map(|step| PlannedStep { done: true, ..step }).collect()
            }
            Wanted::Add(new) => arrival(&new.name, self.membership.at(&new.peer_url)),
            Wanted::Replace { old, new } if self.membership.is_pair => {
                let nodes = || self.membership.members.iter().filter_map(|member| member.node.as_deref());
                let here = nodes().find(|node| node != old).unwrap_or("the other node");
                let third_voter = self.membership.has_third_voter();
                in_pair(&Names { here, old, new: new.as_ref().map_or(old, |new| &new.name), third_voter })
            }
            Wanted::Replace { old, new } => {
                let name = new.as_ref().map_or("the new member", |new| &new.name);
                let (id, unnamed) = (find(self.membership, old).map_or(0, |member| member.id), nobody_yet());
                let new = new.as_ref().unwrap_or(&unnamed);
                let mut steps = arrival(name, self.membership.at(&new.peer_url));
                let place = match leaves(self.membership, id, new) {
                    Leaves::First => 0,
                    Leaves::BeforeTheVote => steps.len() - 1,
                    Leaves::Last => steps.len(),
                };
                steps.splice(place..place, self.removal(old));
                steps
            }
        }
    }

    fn removal(&self, node: &str) -> Vec<PlannedStep> {
        let leads = |id: MemberId| self.membership.leader == Some(id);
        let mut steps = Vec::new();
        if find(self.membership, node).is_some_and(|member| leads(member.id)) {
            steps.push(step(format!("hand leadership over from {node}"), "tandem"));
        }
        steps.push(step(format!("remove {node} from the member list"), "tandem"));
        steps
    }
}

/// Returns a placeholder for a new member with an unknown name and address.
fn nobody_yet() -> Newcomer {
    Newcomer { name: "NEW".to_owned(), peer_url: String::new() }
}

fn step(what: String, who: &'static str) -> PlannedStep {
    PlannedStep { what, who, done: false }
}

pub(super) fn find<'a>(membership: &'a Membership, name: &str) -> Option<&'a Member> {
    membership.members.iter().find(|member| is_called(member, name))
}

/// Fails if `name` fits several members, because etcd allows two members with one name.
pub(super) fn must_be_one(membership: &Membership, name: &str) -> Result<(), Failure> {
    let fitting: Vec<&Member> = membership.members.iter().filter(|member| is_called(member, name)).collect();
    if fitting.len() < 2 {
        return Ok(());
    }
    let one = |member: &&Member| format!("{:x} at {}", member.id, member.peer_urls.join(" and "));
    let all: Vec<String> = fitting.iter().map(one).collect();
    Err(Failure(format!("several members are called '{name}': type the id of one: {}", all.join(", "))))
}

pub(super) fn called<'a>(membership: &'a Membership, name: &str) -> Result<&'a Member, Failure> {
    must_be_one(membership, name)?;
    find(membership, name).ok_or_else(|| {
        let known: Vec<String> = membership.members.iter().map(Member::shown).collect();
        Failure(format!("no member is called '{name}'; there are: {}", known.join(", ")))
    })
}

/// Returns the number of voters that the cluster is to have after a replacement, if the operator typed no number. While the old member
/// and its replacement both vote, the result is one less than the present number of voters.
pub(super) fn wanted(membership: &Membership, old: Option<&Member>, new: &Newcomer) -> usize {
    let votes = |member: Option<&Member>| member.is_some_and(|member| !member.is_learner);
    let newcomer = membership.at(&new.peer_url).filter(|newcomer| old.is_some_and(|old| old.id != newcomer.id));
    membership.voters().count() - usize::from(votes(old) && votes(newcomer))
}

fn in_pair(names: &Names<'_>) -> Vec<PlannedStep> {
    OF_A_REPLACEMENT.into_iter().map(|it| step(it.words(names), it.who())).collect()
}

/// Returns whether `name` is the member's Pacemaker node, etcd name, id or peer URL.
pub(super) fn is_called(member: &Member, name: &str) -> bool {
    let is_named = member.node.as_deref() == Some(name) || member.has_started() && member.name == name;
    is_named || format!("{:x}", member.id) == name || member.peer_urls.iter().any(|url| url == name)
}

fn arrival(name: &str, arrived: Option<&Member>) -> Vec<PlannedStep> {
    let done = |what: String, who, done| PlannedStep { what, who, done };
    vec![
        done(format!("list {name} as a learner"), "tandem", arrived.is_some()),
        done(format!("start etcd on {name}"), "operator", arrived.is_some_and(Member::has_started)),
        done(format!("promote {name} once it has caught up"), "tandem", arrived.is_some_and(|it| !it.is_learner)),
    ]
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    #[test]
    fn a_name_that_fits_two_is_refused_and_an_id_is_not() {
        let member = |id: u64| Member {
            id,
            name: "etcd".to_owned(),
            peer_urls: vec![format!("https://192.0.2.{id}:2380")],
            ..Member::default()
        };
        let membership = Membership { members: vec![member(10), member(11)], wanted: 2, ..Membership::default() };
        let (cluster_id, lock, details) = (1, None, std::collections::BTreeMap::new());
        let seen = MembersSeen {
            cluster_id,
            lock,
            membership,
            details,
            no_space: false,
            machines_unknown: None,
            wanted_unknown: None,
        };
        let wishes: [fn(String) -> Wanted; 4] = [
            Wanted::Stop,
            Wanted::Promote,
            |node| Wanted::Remove { node, allow_fewer: true },
            |old| Wanted::Replace { old, new: None },
        ];
        for wish in wishes {
            let why = plan(&wish("etcd".to_owned()), &seen, None).unwrap_err().0;
            assert!(why.contains("a at https://192.0.2.10:2380, b at https://192.0.2.11:2380"), "{why}");
            assert!(plan(&wish("a".to_owned()), &seen, None).is_ok());
        }
        assert!(called(&seen.membership, "etcd").is_err() && called(&seen.membership, "b").is_ok());
    }

    /// Returns the plan of a replacement that a rule forbids.
    pub(in super::super) fn forbidden() -> Planned {
        let membership = Membership::default();
        let turn = Turn { membership: &membership, outlook: None };
        let wanted = Wanted::Removed("node2".to_owned());
        Planned {
            wish: "replace",
            node: "node2".to_owned(),
            allowed: false,
            is_known: true,
            rule: Some("M11"),
            because: Some(String::new()),
            instead: Some(String::new()),
            voters: 2,
            healthy_voters: 1,
            quorum: 2,
            after: turn.after(&wanted),
            seconds_with_one_voter: None,
            steps: Vec::new(),
        }
    }
}
