//! A third member outside of the pair: an etcd on a machine without an agent, for operators that extend the pair to three members.
//!
//! The cluster property `etcd_guest` is set before the member is added, so that no agent removes it as a stranger, and deleted after it.
//! The property has the member's id before the member may vote. An agent with a stopped etcd needs it to distinguish a third voter from
//! its peer.

use std::fs::File;
use std::time::Duration;

use super::change;
use crate::adapters::command::Programs;
use crate::adapters::pacemaker::attributes::{self, THIRD_VOTER};
use crate::adapters::pacemaker::member_change;
use crate::decide::evidence::{MemberId, ThirdVoter};
use crate::decide::members::{Forbidden, Member, MemberStep, Newcomer, Next, Wish, Words, next};
use crate::operate::cluster;
use crate::operate::cluster::Cluster;
use crate::operate::failure::Failure;
use crate::operate::health;
use crate::operate::members::any_etcd::{Progress, new_etcd, said, settles, shape};
use crate::operate::members::ask::ask;
use crate::operate::members::changed::Changed;
use crate::operate::members::judge::{self, Wanted};
use crate::operate::members::look::{self, MembersSeen};
use crate::operate::members::order::Terms;
use crate::operate::members::outcome::Outcome;
use crate::operate::members::source::{Source, endpoint};
use crate::operate::talk::Talk;
use crate::os::clock::{self, Deadline};
use crate::os::ofd_lock;

const PAUSE: Duration = Duration::from_secs(1);
/// Timeout of a request that changes the member list.
const STEP: Duration = Duration::from_secs(5);
/// Time after a change of the member list during which members may be reported as unhealthy, and etcd may refuse steps that the rules
/// allow.
const SETTLES: Duration = Duration::from_secs(30);

/// The observed state of the pair and its third voter.
struct Look {
    cluster: Cluster,
    source: Source,
    seen: MembersSeen,
    third_voter: Option<ThirdVoter>,
}

impl Look {
    fn at_all(terms: &Terms) -> Result<Self, Failure> {
        let source = terms.target.source()?;
        let cluster = cluster::ask(terms.target.resource())?;
        let mut seen = look::look(&source)?;
        seen.beside(&cluster);
        Ok(Self { third_voter: health::third_voter(&cluster), cluster, source, seen })
    }

    /// Returns the member outside of the pair that `node` names, with its id. The id is `None` if that third voter was announced but is
    /// not in the member list.
    fn called(&self, node: &str) -> Option<(ThirdVoter, Option<MemberId>)> {
        let listed = self.seen.membership.members.iter().find(|it| it.node.is_none() && judge::is_called(it, node));
        let named =
            || self.third_voter.clone().filter(|third_voter| third_voter.name == node || third_voter.peer_url == node);
        match listed {
            Some(member) => {
                let peer_url = member.peer_urls.first().cloned().unwrap_or_default();
                let known = self.third_voter.clone().filter(|third_voter| third_voter.lists(member));
                let third_voter = known.unwrap_or(ThirdVoter { name: member.shown(), peer_url, id: None });
                Some((third_voter, Some(member.id)))
            }
            None => named().map(|third_voter| {
                let id = self.seen.membership.members.iter().find(|it| it.node.is_none() && third_voter.lists(it));
                (third_voter.clone(), id.map(|member| member.id))
            }),
        }
    }
}

/// Returns whether `node` names a listed or announced member outside of the pair, which [`remove`] therefore handles.
pub(super) fn is_meant(node: &str, terms: &Terms) -> bool {
    Look::at_all(terms).is_ok_and(|look| look.called(node).is_some())
}

pub(super) fn add(new: &Newcomer, terms: &Terms, talk: &dyn Talk) -> Result<Outcome, Failure> {
    let mut look = Look::at_all(terms)?;
    is_free(new, &look)?;
    if terms.dry_run {
        look.seen.expect_third_voter();
        return judge::plan(&Wanted::Add(new.clone()), &look.seen, None).map(Outcome::Planned);
    }
    let words = adds(&new.name, &new.peer_url);
    let work = Work::begin(terms, talk, Wish::Add(new.clone()), &new.name, &words, &words, look)?;
    work.run().map(Outcome::Changed)
}

pub(super) fn remove(node: &str, terms: &Terms, talk: &dyn Talk) -> Result<Outcome, Failure> {
    let mut look = Look::at_all(terms)?;
    let Some((third_voter, id)) = look.called(node) else {
        return Err(Failure(format!("no member outside of the pair is called '{node}': see 'tandem member list'")));
    };
    look.seen.membership.wanted = 2;
    if terms.dry_run {
        let wanted = Wanted::Remove { node: node.to_owned(), allow_fewer: false };
        return judge::plan(&wanted, &look.seen, None).map(Outcome::Planned);
    }
    let words = format!("{} is removed, a third member", third_voter.name);
    // A removal also undoes an unfinished addition of the same member.
    let before = adds(&third_voter.name, &third_voter.peer_url);
    let wish = Wish::Remove(id.unwrap_or_default());
    Work::begin(terms, talk, wish, &third_voter.name, &words, &before, look)?.run().map(Outcome::Changed)
}

/// Returns the text of the member-change lock for the addition of a third member. It contains no time, so that a repeated command has the
/// same text.
fn adds(name: &str, url: &str) -> String {
    format!("{name} is added as a third member, at {url}")
}

/// Fails if a node of the pair, or another third member, has the name or the peer URL of `new`.
fn is_free(new: &Newcomer, look: &Look) -> Result<(), Failure> {
    endpoint(&new.peer_url)?;
    let nodes = look.source.pair.iter().flat_map(|pair| &pair.nodes);
    if let Some((node, _)) = nodes.into_iter().find(|(node, url)| *node == new.name || *url == new.peer_url) {
        return Err(Failure(format!("{node} is a node of the pair: type the name and the URL of a third machine")));
    }
    let is_other = |third_voter: &&ThirdVoter| (&third_voter.name, &third_voter.peer_url) != (&new.name, &new.peer_url);
    if let Some(third_voter) = look.third_voter.as_ref().filter(is_other) {
        return Err(Failure(format!(
            "{0} is the third member already: 'tandem member remove {0}' first",
            third_voter.name
        )));
    }
    Ok(())
}

struct Work<'a> {
    wish: Wish,
    node: String,
    own: String,
    terms: &'a Terms,
    talk: &'a dyn Talk,
    programs: Programs,
    look: Look,
    made: Vec<String>,
    end: Deadline,
    settling: Deadline,
    progress: Progress,
    /// Open file with a lock that keeps a second 'tandem member' on this node from running.
    _lock: File,
}

impl<'a> Work<'a> {
    /// Takes the member-change lock with the text `own`. A lock that already has this text was left by an interrupted
    /// command, and is used. A lock with the text `before` gets the new text.
    fn begin(
        terms: &'a Terms,
        talk: &'a dyn Talk,
        wish: Wish,
        node: &str,
        own: &str,
        before: &str,
        look: Look,
    ) -> Result<Self, Failure> {
        let file = change::open_lock()?;
        if !ofd_lock::try_take(&file)? {
            return Err(Failure("another 'tandem member' is at work here: wait for its end".to_owned()));
        }
        talk.log_to_syslog();
        let programs = Programs::default();
        match health::change_under_way(&look.cluster) {
            Some(there) if there == own => {}
            Some(there) if there == before => {
                member_change::give_back(&programs)?;
                member_change::take(&programs, own)?;
            }
            _ => drop(member_change::take(&programs, own)?),
        }
        Ok(Self {
            wish,
            node: node.to_owned(),
            own: own.to_owned(),
            terms,
            talk,
            programs,
            look,
            made: Vec::new(),
            end: Deadline::after(terms.timeout),
            settling: Deadline::after(Duration::ZERO),
            progress: Progress::default(),
            _lock: file,
        })
    }

    fn run(mut self) -> Result<Changed, Failure> {
        let why = self.all()?;
        // The lock of another command is kept.
        if health::change_under_way(&self.look.cluster).as_ref() == Some(&self.own) {
            member_change::give_back(&self.programs)?;
        }
        let made = std::mem::take(&mut self.made);
        let (membership, seconds) = (&self.look.seen.membership, self.end.elapsed().as_secs());
        let wish = if let Wish::Add(_) = self.wish { "add" } else { "remove" };
        let mut changed = Changed::done(wish, &self.node, Some(membership), made, seconds);
        if let Wish::Add(new) = &self.wish
            && membership.at(&new.peer_url).is_some_and(|member| member.is_learner)
        {
            changed.new_etcd = Some(new_etcd::variables(new, &self.look.seen));
        }
        if let Some(why) = why {
            changed = changed.forbidden(&why);
        }
        Ok(changed)
    }

    /// Observes and carries out steps until the order is fulfilled. Returns `None` if the order is fulfilled, and the rule that stops the
    /// change if it is not.
    fn all(&mut self) -> Result<Option<Forbidden>, Failure> {
        loop {
            self.look()?;
            let why = match next(&self.look.seen.membership, &self.wish, &Words::default()) {
                Next::Done if self.is_settled()? => return Ok(None),
                Next::Done if self.end.has_passed() => {
                    return Err(Failure(
                        "the agents have not published yet how many vote: 'tandem status', and type the same again"
                            .to_owned(),
                    ));
                }
                Next::Done => None,
                Next::Step(step, _) => {
                    self.take(&step)?;
                    None
                }
                Next::Forbidden(why) => Some(why),
            };
            if let Some(why) = why {
                let waits = why.passes() || !self.settling.has_passed() && settles(&why);
                if !waits || self.end.has_passed() {
                    return Ok(Some(why));
                }
                if let Some(line) = self.progress.line(&why, &self.look.seen.membership) {
                    self.talk.tell(&line)?;
                }
            }
            clock::sleep(PAUSE);
        }
    }

    fn look(&mut self) -> Result<(), Failure> {
        let mut look = loop {
            match Look::at_all(self.terms) {
                Ok(look) => break look,
                Err(why) if self.end.has_passed() => return Err(why),
                Err(_) => clock::sleep(PAUSE),
            }
        };
        for member in &mut look.seen.membership.members {
            member.lag_before = self.look.seen.membership.member(member.id).and_then(|before| before.lag);
        }
        if shape(&look.seen.membership) != shape(&self.look.seen.membership) {
            self.settling = Deadline::after(SETTLES);
        }
        let change = &mut look.seen.membership.change;
        *change = change.take().filter(|change| *change != self.own);
        match self.wish {
            Wish::Add(_) => look.seen.expect_third_voter(),
            // The member may be removed although it is healthy, because it is no longer wanted.
            _ => look.seen.membership.wanted = 2,
        }
        self.look = look;
        Ok(())
    }

    fn take(&mut self, step: &MemberStep) -> Result<(), Failure> {
        let what = said(step, &self.look.seen.membership);
        match step {
            MemberStep::AddLearner(new) => self.name_third_voter(new, None)?,
            MemberStep::Promote(id) => {
                if let Wish::Add(new) = self.wish.clone() {
                    self.name_third_voter(&new, Some(*id))?;
                }
            }
            MemberStep::MoveLeader { .. } | MemberStep::Remove(_) => {}
        }
        match ask(step, &self.look.seen, &self.look.source, STEP) {
            Ok(()) => {
                self.settling = Deadline::after(SETTLES);
                log::info!("{what}");
                self.talk.tell(&what)?;
                self.made.push(what);
                if let MemberStep::AddLearner(new) = step {
                    let lines = new_etcd::lines(&new_etcd::variables(new, &self.look.seen));
                    self.talk.tell(&format_args!("start etcd for {} with an empty data dir and:{lines}", new.name))?;
                }
                Ok(())
            }
            Err(error) if self.settling.has_passed() && self.end.has_passed() => {
                Err(Failure(format!("etcd does not do it ({what}): {error}")))
            }
            // etcd also checks the age of its peers' connections, which are young after a start.
            Err(_) => Ok(()),
        }
    }

    /// Writes the third member's name, peer URL and id to the cluster property before the member list changes. The agents would remove a
    /// member that is not named there.
    fn name_third_voter(&mut self, new: &Newcomer, id: Option<MemberId>) -> Result<(), Failure> {
        let third_voter = ThirdVoter { name: new.name.clone(), peer_url: new.peer_url.clone(), id };
        if self.look.third_voter.as_ref() != Some(&third_voter) {
            attributes::set_property(&self.programs, THIRD_VOTER, Some(&third_voter.to_string()))?;
        }
        Ok(())
    }

    /// Updates the cluster property to the final member list. Returns whether all agents have published the number of voters.
    fn is_settled(&mut self) -> Result<bool, Failure> {
        let Wish::Add(new) = self.wish.clone() else {
            if self.look.third_voter.is_some() {
                attributes::set_property(&self.programs, THIRD_VOTER, None)?;
            }
            return Ok(true);
        };
        let id = self.look.seen.membership.at(&new.peer_url).map(|member| member.id);
        self.name_third_voter(&new, id)?;
        let nodes = self.look.source.pair.iter().flat_map(|pair| &pair.nodes);
        let voters = self.look.seen.membership.voters().count();
        Ok(nodes.into_iter().all(|(node, _)| health::voters_published(&self.look.cluster, node) == Some(voters)))
    }
}

impl ThirdVoter {
    fn lists(&self, member: &Member) -> bool {
        self.id == Some(member.id) || member.peer_urls.contains(&self.peer_url)
    }
}
