//! The lock of a change, held for as long as the change takes. A thread renews it, and it expires with the command.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::adapters::etcd::blocking;
use crate::adapters::etcd::client::{Credentials, Endpoint};
use crate::adapters::etcd::member_lock::Taken;
use crate::operate::failure::Failure;
use crate::os::clock::{self, Deadline};

/// Lifetime of the member-change lock's lease, in seconds. The lock of a killed command expires after this time.
pub(in crate::operate::members) const LEASE_S: i64 = 10;
/// Longest time after a renewal of the lock's lease at which a step may begin. Even after this time, the lease lasts longer than
/// [`STEP`].
const COUNTS: Duration = Duration::from_secs(5);
/// Timeout of one request that changes the member list.
pub(super) const STEP: Duration = Duration::from_secs(4);
const PAUSE: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(2);

/// The member-change lock: a key in etcd with a lease that a thread renews. Dropping this value releases the lock.
#[derive(Debug)]
pub(in crate::operate::members) struct Held {
    pub(in crate::operate::members) key: String,
    lease: i64,
    kept: Arc<Kept>,
    credentials: Credentials,
}

/// The state that the command shares with the thread that renews the lock's lease.
#[derive(Debug)]
struct Kept {
    endpoints: Mutex<Vec<Endpoint>>,
    until: Mutex<Deadline>,
    has_ended: AtomicBool,
}

/// Takes the member-change lock through the first of `endpoints` that answers. Returns `Ok(Err(holder))` if another command has it.
pub(in crate::operate::members) fn take(
    endpoints: &[Endpoint],
    credentials: &Credentials,
    holder: &str,
) -> Result<Result<Held, String>, Failure> {
    let mut why = Failure("no voter is there to take the lock of a change".to_owned());
    for endpoint in endpoints {
        let until = Deadline::after(COUNTS);
        match blocking::take_member_lock(endpoint, credentials, holder, LEASE_S, STEP) {
            Ok(Taken::By(other)) => return Ok(Err(other)),
            Ok(Taken::Yes { key, lease }) => {
                let endpoints = Mutex::new(endpoints.to_vec());
                let kept = Kept { endpoints, until: Mutex::new(until), has_ended: AtomicBool::new(false) };
                let held = Held { key, lease, kept: Arc::new(kept), credentials: credentials.clone() };
                held.keep();
                return Ok(Ok(held));
            }
            Err(error) => why = error.into(),
        }
    }
    Err(why)
}

impl Held {
    /// Returns whether the lock's lease was renewed recently enough for the lock to outlive one more step.
    pub(super) fn counts(&self) -> bool {
        !self.kept.until.lock().unwrap_or_else(PoisonError::into_inner).has_passed()
    }

    /// Sets the endpoints through which the thread renews the lock's lease from now on.
    pub(super) fn ask(&self, endpoints: Vec<Endpoint>) {
        if !endpoints.is_empty() {
            *self.kept.endpoints.lock().unwrap_or_else(PoisonError::into_inner) = endpoints;
        }
    }

    fn keep(&self) {
        let (kept, lease, credentials) = (Arc::clone(&self.kept), self.lease, self.credentials.clone());
        thread::spawn(move || {
            while !kept.has_ended.load(Ordering::Acquire) {
                clock::sleep(PAUSE);
                if kept.renew(lease, &credentials) == Some(false) {
                    return;
                }
            }
        });
    }
}

impl Kept {
    /// Renews the lock's lease. Returns `Some(false)` if the lease has expired, and `None` if no endpoint answered.
    fn renew(&self, lease: i64, credentials: &Credentials) -> Option<bool> {
        let endpoints = self.endpoints.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for endpoint in endpoints {
            let until = Deadline::after(COUNTS);
            match blocking::renew_member_lock(&endpoint, credentials, lease, PATIENCE) {
                Ok(true) => {
                    *self.until.lock().unwrap_or_else(PoisonError::into_inner) = until;
                    return Some(true);
                }
                Ok(false) => {
                    *self.until.lock().unwrap_or_else(PoisonError::into_inner) = Deadline::after(Duration::ZERO);
                    return Some(false);
                }
                Err(_) => {}
            }
        }
        None
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.kept.has_ended.store(true, Ordering::Release);
        let endpoints = self.kept.endpoints.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // If no endpoint answers, the lease expires by itself.
        let _ = endpoints
            .iter()
            .find(|endpoint| blocking::revoke_lease(endpoint, &self.credentials, self.lease, PATIENCE).is_ok());
    }
}
