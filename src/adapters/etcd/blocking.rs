//! The questions of [`client`] for callers without a tokio runtime. Each question runs in a runtime of its own until it is
//! answered.
//!
//! These functions also work inside a runtime, and block the calling thread until the answer.

use std::future::Future;
use std::panic;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};

use super::client::{self, Answer, Credentials, Endpoint, Error};
use super::key_pages::{self, Pair, Wanted};
use super::leases::{self, Lease, Own};
use super::maintenance::{self, Hash};
use super::member_lock::{self, Taken};
use super::members::{self, Heard};
use super::space::{self, Alarm};
use super::status::{self, Patience, Status};
use crate::base::Fact;
use crate::decide::evidence::MemberId;
use crate::os::clock::Deadline;

/// Runs [`client::observe`], and blocks the thread until it has ended.
pub fn observe(endpoint: &Endpoint, credentials: &Credentials, timeout: Duration) -> Answer {
    let mut answer = Fact::NotAsked.into();
    let question = async {
        answer = client::observe(endpoint, credentials, timeout).await;
        Ok(())
    };
    match wait(endpoint, Box::pin(question)) {
        Ok(()) => answer,
        Err(error) => Fact::Unknown(error.to_string()).into(),
    }
}

/// Runs [`status::ask`], and blocks the thread until it has ended.
pub fn status(endpoint: &Endpoint, credentials: &Credentials, patience: Patience) -> Fact<Status> {
    let mut answer = Fact::NotAsked;
    let question = async {
        answer = Box::pin(status::ask(endpoint, credentials, patience)).await;
        Ok(())
    };
    match wait(endpoint, Box::pin(question)) {
        Ok(()) => answer,
        Err(error) => Fact::Unknown(error.to_string()),
    }
}

/// Asks the member at `endpoint` for its state, after a plain TCP connection has shown that a server listens. Both together take
/// at most `patience`.
pub fn member(endpoint: &Endpoint, credentials: &Credentials, patience: Duration) -> Heard {
    let deadline = Deadline::after(patience);
    if let Err(heard) = members::listens(endpoint, patience) {
        return heard;
    }
    let mut heard = Heard::Unknown(String::new());
    let question = async {
        heard = members::heard(members::ask(endpoint, credentials, deadline.left()).await);
        Ok(())
    };
    match wait(endpoint, Box::pin(question)) {
        Ok(()) => heard,
        Err(error) => Heard::Unknown(error.to_string()),
    }
}

/// Runs [`client::move_leader`], and blocks the thread until it has ended.
pub fn move_leader(
    endpoint: &Endpoint,
    credentials: &Credentials,
    to: MemberId,
    timeout: Duration,
) -> Result<(), Error> {
    wait(endpoint, Box::pin(client::move_leader(endpoint, credentials, to, timeout)))
}

/// Runs [`client::remove_member`], and blocks the thread until it has ended.
pub fn remove_member(
    endpoint: &Endpoint,
    credentials: &Credentials,
    id: MemberId,
    timeout: Duration,
) -> Result<(), Error> {
    wait(endpoint, Box::pin(client::remove_member(endpoint, credentials, id, timeout)))
}

/// Runs [`client::add_learner`], and blocks the thread until it has ended.
pub fn add_learner(
    endpoint: &Endpoint,
    credentials: &Credentials,
    peer_url: &str,
    timeout: Duration,
) -> Result<(), Error> {
    wait(endpoint, Box::pin(client::add_learner(endpoint, credentials, peer_url, timeout)))
}

/// Runs [`client::promote_member`], and blocks the thread until it has ended.
pub fn promote_member(
    endpoint: &Endpoint,
    credentials: &Credentials,
    id: MemberId,
    timeout: Duration,
) -> Result<(), Error> {
    wait(endpoint, Box::pin(client::promote_member(endpoint, credentials, id, timeout)))
}

/// Runs [`client::confirmed_read`], and blocks the thread until it has ended.
pub fn confirmed_read(endpoint: &Endpoint, credentials: &Credentials, timeout: Duration) -> Result<(), Error> {
    wait(endpoint, Box::pin(client::confirmed_read(endpoint, credentials, timeout)))
}

/// Runs [`client::accepted_write`], and blocks the thread until it has ended.
pub fn accepted_write(endpoint: &Endpoint, credentials: &Credentials, timeout: Duration) -> Result<(), Error> {
    wait(endpoint, Box::pin(client::accepted_write(endpoint, credentials, timeout)))
}

/// Runs [`client::committed_entry`], and blocks the thread until it has ended.
pub fn committed_entry(endpoint: &Endpoint, credentials: &Credentials, timeout: Duration) -> Result<(), Error> {
    wait(endpoint, Box::pin(client::committed_entry(endpoint, credentials, timeout)))
}

/// Runs [`leases::find`], and blocks the thread until it has ended.
pub fn find_leases(
    endpoint: &Endpoint,
    credentials: &Credentials,
    own: &Own,
    timeout: Duration,
) -> Result<Vec<Lease>, Error> {
    answered(endpoint, Vec::new(), leases::find(endpoint, credentials, own, timeout))
}

/// Runs [`leases::revoke`], and blocks the thread until it has ended.
pub fn revoke_lease(endpoint: &Endpoint, credentials: &Credentials, id: i64, timeout: Duration) -> Result<(), Error> {
    wait(endpoint, Box::pin(leases::revoke(endpoint, credentials, id, timeout)))
}

/// Runs [`maintenance::revision`], and blocks the thread until it has ended.
pub fn revision(endpoint: &Endpoint, credentials: &Credentials, timeout: Duration) -> Result<i64, Error> {
    answered(endpoint, 0, maintenance::revision(endpoint, credentials, timeout))
}

/// Runs [`maintenance::own_revision`], and blocks the thread until it has ended.
pub fn own_revision(endpoint: &Endpoint, credentials: &Credentials, timeout: Duration) -> Result<u64, Error> {
    answered(endpoint, 0, maintenance::own_revision(endpoint, credentials, timeout))
}

/// Runs [`key_pages::read`], and blocks the thread until it has ended.
pub fn read_keys(
    endpoint: &Endpoint,
    credentials: &Credentials,
    wanted: Wanted,
    timeout: Duration,
    visit: &mut (dyn FnMut(Pair<'_>) + Send),
) -> Result<Option<u64>, Error> {
    answered(endpoint, None, key_pages::read(endpoint, credentials, wanted, timeout, visit))
}

/// Runs [`maintenance::hash`], and blocks the thread until it has ended.
pub fn hash(endpoint: &Endpoint, credentials: &Credentials, revision: i64, timeout: Duration) -> Result<Hash, Error> {
    answered(
        endpoint,
        Hash { hash: 0, compact_revision: 0 },
        maintenance::hash(endpoint, credentials, revision, timeout),
    )
}

/// Runs [`maintenance::snapshot`], and blocks the thread until it has ended.
pub fn snapshot(endpoint: &Endpoint, credentials: &Credentials, path: &Path, timeout: Duration) -> Result<u64, Error> {
    answered(endpoint, 0, maintenance::snapshot(endpoint, credentials, path, timeout))
}

/// Runs [`space::alarms`], and blocks the thread until it has ended.
pub fn alarms(endpoint: &Endpoint, credentials: &Credentials, timeout: Duration) -> Result<Vec<Alarm>, Error> {
    answered(endpoint, Vec::new(), space::alarms(endpoint, credentials, timeout))
}

/// Runs [`space::disarm_no_space`], and blocks the thread until it has ended.
pub fn disarm_no_space(
    endpoint: &Endpoint,
    credentials: &Credentials,
    member: MemberId,
    timeout: Duration,
) -> Result<(), Error> {
    wait(endpoint, Box::pin(space::disarm_no_space(endpoint, credentials, member, timeout)))
}

/// Runs [`space::compact`], and blocks the thread until it has ended.
pub fn compact(endpoint: &Endpoint, credentials: &Credentials, revision: i64, timeout: Duration) -> Result<(), Error> {
    wait(endpoint, Box::pin(space::compact(endpoint, credentials, revision, timeout)))
}

/// Runs [`space::defragment`], and blocks the thread until it has ended.
pub fn defragment(endpoint: &Endpoint, credentials: &Credentials, timeout: Duration) -> Result<(), Error> {
    wait(endpoint, Box::pin(space::defragment(endpoint, credentials, timeout)))
}

/// Runs [`member_lock::take`], and blocks the thread until it has ended.
pub fn take_member_lock(
    endpoint: &Endpoint,
    credentials: &Credentials,
    holder: &str,
    seconds: i64,
    timeout: Duration,
) -> Result<Taken, Error> {
    answered(endpoint, Taken::By(String::new()), member_lock::take(endpoint, credentials, holder, seconds, timeout))
}

/// Runs [`member_lock::renew`], and blocks the thread until it has ended.
pub fn renew_member_lock(
    endpoint: &Endpoint,
    credentials: &Credentials,
    lease: i64,
    timeout: Duration,
) -> Result<bool, Error> {
    answered(endpoint, false, member_lock::renew(endpoint, credentials, lease, timeout))
}

/// Runs [`member_lock::note_removal`], and blocks the thread until it has ended.
pub fn note_removal(
    endpoint: &Endpoint,
    credentials: &Credentials,
    removed: &str,
    timeout: Duration,
) -> Result<(), Error> {
    wait(endpoint, Box::pin(member_lock::note_removal(endpoint, credentials, removed, timeout)))
}

/// Runs [`member_lock::last_removal`], and blocks the thread until it has ended.
pub fn last_removal(
    endpoint: &Endpoint,
    credentials: &Credentials,
    timeout: Duration,
) -> Result<Option<Vec<u8>>, Error> {
    answered(endpoint, None, member_lock::last_removal(endpoint, credentials, timeout))
}

/// Runs the request `question` to its end, and returns its result. `answer` is any value of the result's type, and is replaced by the
/// result.
fn answered<T: Send>(
    endpoint: &Endpoint,
    mut answer: T,
    question: impl Future<Output = Result<T, Error>> + Send,
) -> Result<T, Error> {
    let asked = async {
        answer = question.await?;
        Ok(())
    };
    wait(endpoint, Box::pin(asked))?;
    Ok(answer)
}

/// A request to etcd as a boxed future. Boxed, so that [`wait`] is compiled only once and not for each type of future.
type Question<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>>;

fn wait(endpoint: &Endpoint, question: Question<'_>) -> Result<(), Error> {
    if Handle::try_current().is_err() {
        return run(endpoint, question);
    }
    // A thread that already belongs to a runtime cannot run another one.
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| run(endpoint, question)).join();
        asked.unwrap_or_else(|fault| panic::resume_unwind(fault))
    })
}

fn run(endpoint: &Endpoint, question: Question<'_>) -> Result<(), Error> {
    let no_runtime = |error: std::io::Error| Error::Client { url: endpoint.url.clone(), why: error.to_string() };
    let runtime = Builder::new_current_thread().enable_all().build().map_err(no_runtime)?;
    let answer = runtime.block_on(question);
    // A thread that still waits for a file server is abandoned, because the time for an answer is over.
    runtime.shutdown_background();
    answer
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::os::test_port;

    /// Returns an endpoint on which no server listens.
    fn closed() -> Endpoint {
        let address = test_port::listener().local_addr().unwrap().to_string();
        Endpoint { url: format!("https://{address}"), address }
    }

    #[test]
    fn a_question_can_be_asked_inside_a_runtime_too() {
        let credentials = Credentials {
            trusted_ca_file: PathBuf::from("/nonexistent/ca.crt"),
            cert_file: PathBuf::from("/nonexistent/etcd.crt"),
            key_file: PathBuf::from("/nonexistent/etcd.key"),
        };
        let timeout = Duration::from_secs(5);
        let closed = closed();
        let asked = || {
            let read = confirmed_read(&closed, &credentials, timeout).unwrap_err();
            assert!(matches!(&read, Error::Certificate { path, .. } if path == "/nonexistent/ca.crt"), "{read}");
            observe(&closed, &credentials, timeout).etcd
        };
        test_port::settles(&Fact::Absent, asked);
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        assert_eq!(runtime.block_on(async { asked() }), Fact::Absent);
    }
}
