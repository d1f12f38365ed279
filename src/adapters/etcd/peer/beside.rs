//! The threads that run in parallel with the sequence. They read streams, propose the removal, and poll `/members`.

use std::io::{ErrorKind, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::thread::{Builder, Scope};
use std::time::Duration;

use prost::Message as _;

use super::http::{Http, Sender, TAKEN};
use super::stream::{Decoder, Kind, Message};
use super::wire::Outgoing;
use crate::decide::evidence::Member;
use crate::os::clock;

/// The interval at which the vote proxy proposes the removal of the dead member. It repeats the proposal, because Raft drops a member
/// change while an earlier one is not yet applied.
const PROPOSED: Duration = Duration::from_millis(50);
/// The interval at which `/members` is polled while the vote proxy proposes the removal of the dead member.
pub(super) const LOOKED: Duration = Duration::from_millis(20);
/// The time limit of a request that the vote proxy repeats if it fails.
pub(super) const BRIEFLY: Duration = Duration::from_millis(500);

/// An event that a thread of the vote proxy reports to its main sequence ([`super::seat`]).
pub(super) enum Event {
    Attached,
    Said(Message),
    Closed(Kind, String),
    Listed(Vec<Member>),
}

/// Flags that show which of the two peer streams are open. All threads of the vote proxy share them.
#[derive(Default)]
pub(super) struct Flags {
    message_is_up: AtomicBool,
    append_is_up: AtomicBool,
}

impl Flags {
    pub(super) fn of(&self, kind: Kind) -> &AtomicBool {
        match kind {
            Kind::Message => &self.message_is_up,
            Kind::Append => &self.append_is_up,
        }
    }

    pub(super) fn both_up(&self) -> bool {
        [Kind::Message, Kind::Append].iter().all(|kind| self.of(*kind).load(Ordering::SeqCst))
    }
}

/// Starts a thread that runs `work`.
pub(super) fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() + Send + 'scope,
) -> Result<(), String> {
    let started = Builder::new().spawn_scoped(scope, work);
    started.map(drop).map_err(|error| format!("no thread could be started: {error}"))
}

/// Opens a peer stream of `kind`, and sends each of its messages to `bring` until the stream ends.
pub(super) fn read(http: &Http, kind: Kind, sender: &Sender, flags: &Flags, bring: &SyncSender<Event>) {
    let why = match http.stream(kind.endpoint(), sender) {
        Ok(stream) => {
            flags.of(kind).store(true, Ordering::SeqCst);
            if bring.send(Event::Attached).is_err() {
                return;
            }
            pass_on(Decoder::new(kind, stream, sender.to, sender.from), bring)
        }
        Err(error) => error.to_string(),
    };
    // The flag is cleared first, because another thread may check it before it has received the event.
    flags.of(kind).store(false, Ordering::SeqCst);
    let _ = bring.send(Event::Closed(kind, why));
}

/// Sends each message of a peer stream to `bring`. Returns why the stream ended.
fn pass_on(mut decoder: Decoder<impl Read>, bring: &SyncSender<Event>) -> String {
    loop {
        match decoder.next() {
            Ok(message) => {
                if bring.send(Event::Said(message)).is_err() {
                    return "nobody listens".to_owned();
                }
            }
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return "at its other end".to_owned(),
            Err(error) => return error.to_string(),
        }
    }
}

/// Proposes the removal of the dead member repeatedly, as long as both peer streams are open and the sender of `held` exists.
pub(super) fn propose(http: &Http, flags: &Flags, sender: &Sender, held: &Receiver<()>) {
    while flags.both_up() {
        let _ = post(http, sender, &Outgoing::removal_of(sender.from, clock::boot_nanoseconds()), BRIEFLY);
        if is_over(held, PROPOSED) {
            return;
        }
    }
}

/// Sends etcd's member list to `bring` repeatedly, as long as the sender of `held` exists.
pub(super) fn watch(http: &Http, bring: &SyncSender<Event>, held: &Receiver<()>) {
    loop {
        if let Ok((_, members)) = http.members(BRIEFLY)
            && bring.send(Event::Listed(members)).is_err()
        {
            return;
        }
        if is_over(held, LOOKED) {
            return;
        }
    }
}

/// Waits for the time `wanted`. Returns `true` at once when the sender of `held` is dropped, and `false` after that time.
fn is_over(held: &Receiver<()>, wanted: Duration) -> bool {
    !matches!(held.recv_timeout(wanted), Err(RecvTimeoutError::Timeout))
}

pub(super) fn post(http: &Http, sender: &Sender, message: &Outgoing, patience: Duration) -> Result<(), String> {
    let message = Outgoing { from: sender.from, to: sender.to, ..message.clone() };
    match http.post(&message.encode_to_vec(), sender, patience) {
        Ok(TAKEN) => Ok(()),
        Ok(status) => Err(format!("it answers {status} to a message")),
        Err(error) => Err(error.to_string()),
    }
}
