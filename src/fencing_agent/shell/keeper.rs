//! The thread that writes to the disk, so that a disk that hangs delays nothing else.

use std::io;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::Duration;

use super::place::Kept;
use crate::fencing_agent::config::Members;

/// The largest number of writes that wait for the disk. Further ones are dropped.
const MOST: usize = 64;
/// Longest time to wait for the last write when the agent ends.
const PATIENCE: Duration = Duration::from_secs(2);

enum Order {
    Unfed(Option<String>),
    Members(Members),
}

#[derive(Debug)]
pub(crate) struct Keeper {
    orders: SyncSender<Order>,
    /// A channel that is disconnected once the last write is done.
    done: Receiver<()>,
}

impl Keeper {
    pub(crate) fn start(kept: Kept) -> io::Result<Self> {
        let (orders, waiting) = mpsc::sync_channel(MOST);
        let (is_running, done) = mpsc::channel::<()>();
        std::thread::Builder::new().name("keeper".to_owned()).spawn(move || {
            while let Ok(order) = waiting.recv() {
                let written = match order {
                    Order::Unfed(reason) => kept.remember_unfed(reason.as_deref()),
                    Order::Members(members) => kept.keep_members(&members),
                };
                if let Err(error) = written {
                    log::warn!("the agent's state cannot be written: {error}");
                }
            }
            drop(is_running);
        })?;
        Ok(Self { orders, done })
    }

    /// Writes to disk why this node's watchdog is not fed. `None` removes the file.
    pub(crate) fn remember(&self, reason: Option<String>) {
        let _ = self.orders.try_send(Order::Unfed(reason));
    }

    pub(crate) fn keep(&self, members: Members) {
        let _ = self.orders.try_send(Order::Members(members));
    }

    /// Waits for the remaining writes, for at most [`PATIENCE`].
    pub(crate) fn end(self) {
        drop(self.orders);
        let _ = self.done.recv_timeout(PATIENCE);
    }
}
