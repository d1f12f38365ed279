//! The list for local programs, and the clients that subscribe to its changes. No client delays another one, or the agent.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::sync::mpsc::{Receiver, Sender, channel};
use tonic::Status;
use tonic::codegen::tokio_stream::Stream;

use super::messages::{AllNodes, Event, Node};

/// The largest number of events that a client may have left unread. A client with more is disconnected.
const BEHIND: usize = 1_024;

/// The member list for local clients, and the clients that subscribe to its events. Clones share the same data.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hub {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    nodes: Vec<Node>,
    subscribers: Vec<(Sender<Event>, Arc<AtomicBool>)>,
    has_ended: bool,
}

impl Hub {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the member list and sends its changes to the subscribers, as one step. A client that queries the list after an event
    /// therefore sees the change.
    pub(crate) fn publish(&self, nodes: Vec<Node>, events: &[Event]) {
        let mut inner = self.inner();
        inner.nodes = nodes;
        for event in events {
            inner.subscribers.retain(|(sender, has_lagged)| {
                let is_sent = sender.try_send(event.clone()).is_ok();
                // The flag is set before the stream ends.
                has_lagged.store(!is_sent, Ordering::SeqCst);
                is_sent
            });
        }
        inner.subscribers.retain(|(sender, _)| !sender.is_closed());
    }

    /// Ends the streams of all subscribers, and any stream that is opened later.
    pub(crate) fn end(&self) {
        let mut inner = self.inner();
        inner.has_ended = true;
        inner.subscribers.clear();
    }

    pub(super) fn all(&self) -> AllNodes {
        AllNodes { nodes: self.inner().nodes.clone() }
    }

    /// Returns a stream of all events that occur from now on.
    pub(super) fn subscribe(&self) -> Subscription {
        let (sender, receiver) = channel(BEHIND);
        let has_lagged = Arc::new(AtomicBool::new(false));
        let mut inner = self.inner();
        if !inner.has_ended {
            inner.subscribers.push((sender, Arc::clone(&has_lagged)));
        }
        Subscription { receiver, has_lagged, has_ended: false }
    }
}

/// The stream of events for one client. Its last item is a status with the reason for the end.
#[derive(Debug)]
pub(super) struct Subscription {
    receiver: Receiver<Event>,
    has_lagged: Arc<AtomicBool>,
    has_ended: bool,
}

impl Stream for Subscription {
    type Item = Result<Event, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        self.receiver.poll_recv(context).map(|event| {
            Some(event.ok_or_else(|| {
                self.has_ended = true;
                self.why()
            }))
        })
    }
}

impl Subscription {
    fn why(&self) -> Status {
        if self.has_lagged.load(Ordering::SeqCst) {
            Status::resource_exhausted(format!(
                "this client was {BEHIND} events behind: open the stream again, then GetAll"
            ))
        } else {
            Status::unavailable("the agent ends: open the stream again")
        }
    }
}
