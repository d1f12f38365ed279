//! The sequence of a vote proxy, from the first check of the members to the last. Each check has the reason next to it. The
//! checks keep writes from being lost even if the caller's proof is wrong.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread::Scope;
use std::time::Duration;

use super::beside::{self, BRIEFLY, Event, Flags, LOOKED};
use super::http::{Http, Sender};
use super::stream::{Kind, Message};
use super::wire::{Outgoing, kind};
use super::{GivenUp, Place, ProxyStep, Taken, Wish};
use crate::decide::evidence::Member;
use crate::os::clock::Deadline;

/// The interval at which the vote proxy repeats a message that etcd has not answered.
const REPEATED: Duration = Duration::from_millis(100);
/// The time for which `/members` is polled after etcd has closed a stream. etcd closes a member's streams just after it has removed the
/// member from its list.
const CLOSING: Duration = Duration::from_millis(300);
/// The greatest number of events that wait to be handled. A thread that reports a further event is blocked.
const ROOM: usize = 1024;
/// A term that has ended in every cluster that has had two elections. etcd answers a heartbeat of this term with its current term.
const STALE_TERM: u64 = 1;

/// The main sequence of a vote proxy. It connects to this node's etcd in place of the dead member.
struct Seat<'a> {
    http: &'a Http,
    sender: Sender,
    wish: &'a Wish,
    deadline: Deadline,
    flags: &'a Flags,
    events: Receiver<Event>,
    bring: SyncSender<Event>,
    step: ProxyStep,
    /// The callback that returns after each step whether the vote proxy continues.
    may_go_on: &'a mut dyn FnMut(ProxyStep) -> bool,
    taken: Taken,
    /// The number of heartbeats with [`STALE_TERM`] that etcd has not answered yet.
    questions: u64,
    /// The term of the latest vote that was cast; 0 before the first one.
    granted: u64,
    voted: bool,
    moved_to: Option<u64>,
    /// The index of the first entry that the new leader wrote in the term `granted`; `None` until it arrives.
    own_entry: Option<u64>,
    own_entry_is_committed: bool,
    /// The index up to which the leader's log was checked for member changes; `None` before the first check.
    inspected: Option<u64>,
}

pub(super) fn take(
    place: &Place,
    wish: &Wish,
    within: Duration,
    go_on: &mut dyn FnMut(ProxyStep) -> bool,
) -> Result<Taken, GivenUp> {
    let deadline = Deadline::after(within);
    let no_look = |why: String| GivenUp { step: ProxyStep::Look, why, voted: false, moved_to: None };
    let http = Http::new(place, deadline).map_err(|error| no_look(error.to_string()))?;
    let version = http.version(within).map_err(|error| no_look(error.to_string()))?;
    let sender = Sender { cluster_id: wish.cluster_id, from: wish.dead, to: wish.me, version };
    let flags = Flags::default();
    std::thread::scope(|scope| {
        let (bring, events) = mpsc::sync_channel(ROOM);
        let mut seat = Seat {
            http: &http,
            sender,
            wish,
            deadline,
            flags: &flags,
            events,
            bring,
            step: ProxyStep::Look,
            may_go_on: go_on,
            taken: Taken::default(),
            questions: 0,
            granted: 0,
            voted: false,
            moved_to: None,
            own_entry: None,
            own_entry_is_committed: false,
            inspected: None,
        };
        let outcome = seat.sit(scope);
        // The closed connections end the threads, and their events are no longer received.
        http.close();
        outcome.map_err(|why| GivenUp { step: seat.step, why, voted: seat.voted, moved_to: seat.moved_to })
    })
}

impl<'a> Seat<'a> {
    fn sit<'scope>(&mut self, scope: &'scope Scope<'scope, '_>) -> Result<Taken, String>
    where
        'a: 'scope,
    {
        self.look()?;
        self.go_on(ProxyStep::Attach)?;
        self.attach(scope)?;
        self.taken.attached = self.deadline.elapsed();
        self.go_on(ProxyStep::Term)?;
        self.ask_term()?;
        self.taken.term = self.deadline.elapsed();
        self.go_on(ProxyStep::Campaign)?;
        let request = self.have_it_campaign()?;
        self.go_on(ProxyStep::Vote)?;
        self.grant(request)?;
        self.taken.vote = self.deadline.elapsed();
        self.go_on(ProxyStep::Acknowledge)?;
        while !self.own_entry_is_committed {
            if let Some(message) = self.listen(REPEATED)? {
                self.answer(message)?;
            }
        }
        self.go_on(ProxyStep::Remove)?;
        self.remove(scope)?;
        self.taken.removed = self.deadline.elapsed();
        self.go_on(ProxyStep::Check)?;
        self.check()?;
        Ok(self.taken)
    }

    fn go_on(&mut self, step: ProxyStep) -> Result<(), String> {
        if !(self.may_go_on)(self.step) {
            return Err("ended here, as it was asked to".to_owned());
        }
        self.step = step;
        Ok(())
    }

    /// Returns an error unless the voters are exactly this node's etcd and the dead member, in the expected cluster. With two voters, each
    /// majority includes this node's etcd. So this etcd's log has all acknowledged entries, and no member is elected without its vote. With
    /// a third voter, neither is certain. Learners are allowed, because they neither vote nor acknowledge.
    fn look(&self) -> Result<(), String> {
        let (cluster_id, members) = self.http.members(self.deadline.budget()).map_err(|error| error.to_string())?;
        if cluster_id != self.wish.cluster_id {
            return Err(format!("this is cluster {cluster_id:x}, not {:x}", self.wish.cluster_id));
        }
        let Wish { me, dead, .. } = *self.wish;
        let voters = voters(&members);
        if me == dead || voters != sorted(vec![me, dead]) {
            return Err(format!("the voters are {}, not {me:x} and {dead:x}", listed(&voters)));
        }
        Ok(())
    }

    /// Opens the two streams that the dead member would read, each only once. If etcd closes one of them, the real member has opened that
    /// stream; opening it anew would take it from that member.
    fn attach<'scope>(&mut self, scope: &'scope Scope<'scope, '_>) -> Result<(), String>
    where
        'a: 'scope,
    {
        for kind in [Kind::Message, Kind::Append] {
            let (http, flags, sender, bring) = (self.http, self.flags, self.sender, self.bring.clone());
            beside::start(scope, move || beside::read(http, kind, &sender, flags, &bring))?;
        }
        let mut attached = 0;
        while attached < 2 {
            match self.next(REPEATED)? {
                Some(Event::Attached) => attached += 1,
                Some(Event::Said(message)) => self.heed(&message)?,
                Some(Event::Listed(_) | Event::Closed(..)) | None => {}
            }
        }
        Ok(())
    }

    /// Returns an error unless etcd's term is the term in the [`Wish`]. Any election in the meantime would have raised the term. From now
    /// on no other member can win, because the proxy receives all of etcd's vote requests. The caller read the term before it announced its
    /// recovery in the CIB, and after the announcement no other node can run standalone.
    fn ask_term(&mut self) -> Result<(), String> {
        let question = Outgoing::new(kind::HEARTBEAT, STALE_TERM);
        let answer = self.ask_until(&question, kind::APPEND_ANSWER)?;
        if answer.term != self.wish.term {
            self.moved_to = Some(answer.term);
            return Err(format!("the term has moved from {} to {}", self.wish.term, answer.term));
        }
        Ok(())
    }

    /// Orders etcd to campaign (`MsgTimeoutNow`) until it requests a vote. Repeats the order, because etcd ignores it while member changes
    /// wait to be applied. Once the campaign has begun, etcd is in a later term and ignores further orders.
    fn have_it_campaign(&mut self) -> Result<Message, String> {
        let next = self.wish.term.checked_add(1).ok_or("there is no later term")?;
        self.ask_until(&Outgoing::new(kind::TIMEOUT_NOW, next), kind::VOTE)
    }

    /// Posts `question` repeatedly until etcd sends a message of kind `wanted`. Returns that message.
    fn ask_until(&mut self, question: &Outgoing, wanted: u64) -> Result<Message, String> {
        loop {
            if question.kind == kind::HEARTBEAT {
                self.questions += 1;
            }
            self.insist(question)?;
            let turn = Deadline::after(REPEATED);
            while !turn.has_passed() {
                if let Some(message) = self.listen(turn.left())?
                    && message.kind == wanted
                {
                    return Ok(message);
                }
            }
        }
    }

    /// Casts the vote that etcd asks for, if every check still succeeds.
    fn grant(&mut self, mut request: Message) -> Result<(), String> {
        // etcd may have applied more since the first check. From 3.5 on it campaigns only once it has applied every member change
        // that it knows to be committed. So this check sees all of those.
        self.look()?;
        // Events that arrived meanwhile come first: a stream may have been closed, or the dead member may have sent a request.
        while let Some(event) = self.next(Duration::ZERO)? {
            let Event::Said(message) = event else { continue };
            self.heed(&message)?;
            if message.kind == kind::VOTE {
                request = message;
            }
        }
        if request.term <= self.wish.term || request.term < self.granted {
            return Err(format!("it campaigns in term {}, which is over", request.term));
        }
        // Entries of a later term prove that a member was elected after etcd was observed.
        if request.log_term > self.wish.term.max(self.granted) {
            return Err(format!("its log has term {}, later than {}", request.log_term, self.wish.term));
        }
        // A stream that etcd has closed shows that the member itself is back. It votes for itself.
        if !self.flags.both_up() {
            return Err("a stream was closed: the member itself may be there again".to_owned());
        }
        // This is set before the vote is sent. From here on this proxy cannot know what etcd has received.
        self.voted = true;
        self.granted = request.term;
        (self.own_entry, self.own_entry_is_committed) = (None, false);
        self.insist(&Outgoing::new(kind::VOTE_ANSWER, request.term))
    }

    /// Answers a message of the leader that this proxy has elected. Ignores messages of earlier terms, such as appends. Casts
    /// another vote if etcd campaigns in a later term.
    fn answer(&mut self, message: Message) -> Result<(), String> {
        if message.kind == kind::VOTE && message.term > self.granted {
            return self.grant(message);
        }
        if message.term != self.granted {
            return Ok(());
        }
        match message.kind {
            kind::APPEND => self.acknowledge(&message),
            kind::HEARTBEAT => {
                // The answer repeats the context, by which etcd confirms a read.
                let context = Some(message.context).filter(|context| !context.is_empty());
                let _ =
                    self.post(&Outgoing { context, ..Outgoing::new(kind::HEARTBEAT_ANSWER, self.granted) }, BRIEFLY);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn acknowledge(&mut self, message: &Message) -> Result<(), String> {
        let entries = message.entries;
        let last = message.index.checked_add(entries.count).ok_or("an index beyond all numbers")?;
        if entries.count > 0 && entries.last != last {
            let (index, count) = (message.index, entries.count);
            return Err(format!("{count} entries after index {index} end at index {}", entries.last));
        }
        if let Some((term, first)) = entries.newest
            && term == self.granted
        {
            self.own_entry = self.own_entry.or(Some(first));
        }
        if !self.is_inspected(message, last)? {
            return Ok(());
        }
        // A lost answer does no harm, because the leader resends all that was not acknowledged.
        let answer = Outgoing { index: last, ..Outgoing::new(kind::APPEND_ANSWER, self.granted) };
        if self.post(&answer, BRIEFLY).is_ok() && self.taken.acknowledged.is_zero() {
            self.taken.acknowledged = self.deadline.elapsed();
        }
        self.own_entry_is_committed |= self.own_entry.is_some_and(|own| message.commit >= own);
        Ok(())
    }

    /// Returns whether every entry before the new leader's own first entry was checked for member changes. Requests entries that the leader
    /// has not sent.
    ///
    /// An uncommitted entry may be a member change, and `/members` shows only applied changes. The first acknowledgement would commit the
    /// change. If the change removes this node's own member, later acknowledged writes are lost.
    fn is_inspected(&mut self, message: &Message, last: u64) -> Result<bool, String> {
        let applied = if self.wish.applied == 0 { message.commit } else { self.wish.applied };
        let known = *self.inspected.get_or_insert(applied.min(message.commit));
        let own = self.own_entry.unwrap_or(u64::MAX);
        if known.saturating_add(1) >= own {
            return Ok(true);
        }
        if message.index > known {
            let lacks = Outgoing {
                index: message.index,
                reject: true,
                reject_hint: known,
                ..Outgoing::new(kind::APPEND_ANSWER, self.granted)
            };
            let _ = self.post(&lacks, BRIEFLY);
            return Ok(false);
        }
        if let Some((first, newest)) = message.entries.changes
            && newest > known
            && first < own
        {
            return Err(format!(
                "entry {} of its log, which it has not applied, changes the members",
                first.max(known + 1)
            ));
        }
        self.inspected = Some(known.max(last));
        Ok(true)
    }

    /// Proposes the removal of the dead member. Answers the leader's messages until the leader's member list no longer has the dead member.
    fn remove<'scope>(&mut self, scope: &'scope Scope<'scope, '_>) -> Result<(), String>
    where
        'a: 'scope,
    {
        let (http, flags, sender, bring) = (self.http, self.flags, self.sender, self.bring.clone());
        // Both threads end with this function, because it drops the senders.
        let ((_proposing, held), (_watching, watched)) = (mpsc::channel(), mpsc::channel());
        beside::start(scope, move || beside::propose(http, flags, &sender, &held))?;
        beside::start(scope, move || beside::watch(http, &bring, &watched))?;
        let mut closed: Option<(Duration, String)> = None;
        loop {
            match self.next_or_closed(LOOKED)? {
                // After a stream was closed, nothing more is answered.
                Some(Event::Said(message)) if closed.is_none() => {
                    self.heed(&message)?;
                    self.answer(message)?;
                }
                Some(Event::Closed(kind, why)) if closed.is_none() => {
                    closed = Some((self.deadline.elapsed(), is_closed(kind, &why)));
                }
                // etcd refuses a removed member's requests, but that is no proof. Only the list is.
                Some(Event::Listed(members)) if !members.iter().any(|member| member.id == self.wish.dead) => {
                    return Ok(());
                }
                Some(_) | None => {}
            }
            if let Some((at, why)) = &closed
                && self.deadline.elapsed().saturating_sub(*at) > CLOSING
            {
                return Err(why.clone());
            }
        }
    }

    /// Returns an error unless this node's etcd is now the only voter of the expected cluster.
    fn check(&self) -> Result<(), String> {
        let (cluster_id, members) = self.http.members(self.deadline.budget()).map_err(|error| error.to_string())?;
        let voters = voters(&members);
        if cluster_id != self.wish.cluster_id || voters != [self.wish.me] {
            return Err(format!("the voters are now {} of cluster {cluster_id:x}", listed(&voters)));
        }
        Ok(())
    }

    /// Returns the next message that etcd sends within `patience`; `None` if there is none. Returns an error if the message shows
    /// that the dead member is back.
    fn listen(&mut self, patience: Duration) -> Result<Option<Message>, String> {
        let Some(Event::Said(message)) = self.next(patience)? else { return Ok(None) };
        self.heed(&message)?;
        Ok(Some(message))
    }

    /// Returns the next event within `patience`; `None` if there is none. A closed stream is an error.
    fn next(&mut self, patience: Duration) -> Result<Option<Event>, String> {
        match self.next_or_closed(patience)? {
            Some(Event::Closed(kind, why)) => Err(is_closed(kind, &why)),
            other => Ok(other),
        }
    }

    fn next_or_closed(&mut self, patience: Duration) -> Result<Option<Event>, String> {
        if self.deadline.has_passed() {
            return Err(format!("not done within {:.1} s", self.deadline.budget().as_secs_f64()));
        }
        match self.events.recv_timeout(self.deadline.at_most(patience)) {
            Ok(event) => Ok(Some(event)),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => Ok(None),
        }
    }

    /// Returns an error for a message that etcd would send only to a live member, or that is not from etcd to the dead member.
    fn heed(&mut self, message: &Message) -> Result<(), String> {
        let Wish { me, dead, .. } = *self.wish;
        if (message.from, message.to) != (me, dead) {
            return Err(format!("a message from {:x} to {:x}", message.from, message.to));
        }
        let is_for_the_living = match message.kind {
            // Each question has at most one answer, which has no index.
            kind::APPEND_ANSWER if message.index == 0 && !message.reject && self.questions > 0 => {
                self.questions -= 1;
                false
            }
            kind::APPEND_ANSWER | kind::VOTE_ANSWER | kind::PRE_VOTE_ANSWER | kind::HEARTBEAT_ANSWER => true,
            _ => false,
        };
        if is_for_the_living {
            return Err("it answers the member itself, which may be there again".to_owned());
        }
        Ok(())
    }

    /// Posts a message within the whole time limit. Returns an error if etcd does not accept it, because the proxy cannot continue without
    /// that message.
    fn insist(&self, message: &Outgoing) -> Result<(), String> {
        self.post(message, self.deadline.budget())
    }

    fn post(&self, message: &Outgoing, patience: Duration) -> Result<(), String> {
        beside::post(self.http, &self.sender, message, patience)
    }
}

fn is_closed(kind: Kind, why: &str) -> String {
    format!("the stream '{}' was closed ({why}): the member itself may be there again", kind.endpoint())
}

fn voters(members: &[Member]) -> Vec<u64> {
    sorted(members.iter().filter(|member| !member.is_learner).map(|member| member.id).collect())
}

fn sorted(mut ids: Vec<u64>) -> Vec<u64> {
    ids.sort_unstable();
    ids
}

fn listed(ids: &[u64]) -> String {
    ids.iter().map(|id| format!("{id:x}")).collect::<Vec<_>>().join(", ")
}
