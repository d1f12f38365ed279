//! The questions of [`client`] for callers without a tokio runtime: each one has a runtime of its own until it is answered.
//!
//! Inside a runtime they can be asked, too, and keep the thread that asks until then.

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

/// As [`client::observe`].
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

/// As [`status::ask`].
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

/// What the member at `endpoint` says; whether anybody is there at all is asked first, within the same time.
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

/// As [`client::move_leader`].
pub fn move_leader(
    endpoint: &Endpoint,
    credentials: &Credentials,
    to: MemberId,
    timeout: Duration,
) -> Result<(), Error> {
    wait(endpoint, Box::pin(client::move_leader(endpoint, credentials, to, timeout)))
}

/// As [`client::remove_member`].
pub fn remove_member(
    endpoint: &Endpoint,
    credentials: &Credentials,
    id: MemberId,
    timeout: Duration,
) -> Result<(), Error> {
    wait(endpoint, Box::pin(client::remove_member(endpoint, credentials, id, timeout)))
}

/// As [`client::add_learner`].
pub fn add_learner(
    endpoint: &Endpoint,
    credentials: &Credentials,
    peer_url: &str,
    timeout: Duration,
) -> Result<(), Error> {
    wait(endpoint, Box::pin(client::add_learner(endpoint, credentials, peer_url, timeout)))
}

/// As [`client::promote_member`].
pub fn promote_member(
    endpoint: &Endpoint,
    credentials: &Credentials,
    id: MemberId,
    timeout: Duration,
) -> Result<(), Error> {
    wait(endpoint, Box::pin(client::promote_member(endpoint, credentials, id, timeout)))
}

/// As [`client::confirmed_read`].
pub fn confirmed_read(endpoint: &Endpoint, credentials: &Credentials, timeout: Duration) -> Result<(), Error> {
    wait(endpoint, Box::pin(client::confirmed_read(endpoint, credentials, timeout)))
}

/// As [`client::accepted_write`].
pub fn accepted_write(endpoint: &Endpoint, credentials: &Credentials, timeout: Duration) -> Result<(), Error> {
    wait(endpoint, Box::pin(client::accepted_write(endpoint, credentials, timeout)))
}

/// As [`client::committed_entry`].
pub fn committed_entry(endpoint: &Endpoint, credentials: &Credentials, timeout: Duration) -> Result<(), Error> {
    wait(endpoint, Box::pin(client::committed_entry(endpoint, credentials, timeout)))
}

/// As [`leases::find`].
pub fn find_leases(
    endpoint: &Endpoint,
    credentials: &Credentials,
    own: &Own,
    timeout: Duration,
) -> Result<Vec<Lease>, Error> {
    answered(endpoint, Vec::new(), leases::find(endpoint, credentials, own, timeout))
}

/// As [`leases::revoke`].
pub fn revoke_lease(endpoint: &Endpoint, credentials: &Credentials, id: i64, timeout: Duration) -> Result<(), Error> {
    wait(endpoint, Box::pin(leases::revoke(endpoint, credentials, id, timeout)))
}

/// As [`maintenance::revision`].
pub fn revision(endpoint: &Endpoint, credentials: &Credentials, timeout: Duration) -> Result<i64, Error> {
    answered(endpoint, 0, maintenance::revision(endpoint, credentials, timeout))
}

/// As [`maintenance::own_revision`].
pub fn own_revision(endpoint: &Endpoint, credentials: &Credentials, timeout: Duration) -> Result<u64, Error> {
    answered(endpoint, 0, maintenance::own_revision(endpoint, credentials, timeout))
}

/// As [`key_pages::read`].
pub fn read_keys(
    endpoint: &Endpoint,
    credentials: &Credentials,
    wanted: Wanted,
    timeout: Duration,
    visit: &mut (dyn FnMut(Pair<'_>) + Send),
) -> Result<Option<u64>, Error> {
    answered(endpoint, None, key_pages::read(endpoint, credentials, wanted, timeout, visit))
}

/// As [`maintenance::hash`].
pub fn hash(endpoint: &Endpoint, credentials: &Credentials, revision: i64, timeout: Duration) -> Result<Hash, Error> {
    answered(
        endpoint,
        Hash { hash: 0, compact_revision: 0 },
        maintenance::hash(endpoint, credentials, revision, timeout),
    )
}

/// As [`maintenance::snapshot`].
pub fn snapshot(endpoint: &Endpoint, credentials: &Credentials, path: &Path, timeout: Duration) -> Result<u64, Error> {
    answered(endpoint, 0, maintenance::snapshot(endpoint, credentials, path, timeout))
}

/// As [`space::alarms`].
pub fn alarms(endpoint: &Endpoint, credentials: &Credentials, timeout: Duration) -> Result<Vec<Alarm>, Error> {
    answered(endpoint, Vec::new(), space::alarms(endpoint, credentials, timeout))
}

/// As [`space::disarm_no_space`].
pub fn disarm_no_space(
    endpoint: &Endpoint,
    credentials: &Credentials,
    member: MemberId,
    timeout: Duration,
) -> Result<(), Error> {
    wait(endpoint, Box::pin(space::disarm_no_space(endpoint, credentials, member, timeout)))
}

/// As [`space::compact`].
pub fn compact(endpoint: &Endpoint, credentials: &Credentials, revision: i64, timeout: Duration) -> Result<(), Error> {
    wait(endpoint, Box::pin(space::compact(endpoint, credentials, revision, timeout)))
}

/// As [`space::defragment`].
pub fn defragment(endpoint: &Endpoint, credentials: &Credentials, timeout: Duration) -> Result<(), Error> {
    wait(endpoint, Box::pin(space::defragment(endpoint, credentials, timeout)))
}

/// As [`member_lock::take`].
pub fn take_member_lock(
    endpoint: &Endpoint,
    credentials: &Credentials,
    holder: &str,
    seconds: i64,
    timeout: Duration,
) -> Result<Taken, Error> {
    answered(endpoint, Taken::By(String::new()), member_lock::take(endpoint, credentials, holder, seconds, timeout))
}

/// As [`member_lock::renew`].
pub fn renew_member_lock(
    endpoint: &Endpoint,
    credentials: &Credentials,
    lease: i64,
    timeout: Duration,
) -> Result<bool, Error> {
    answered(endpoint, false, member_lock::renew(endpoint, credentials, lease, timeout))
}

/// As [`member_lock::note_removal`].
pub fn note_removal(
    endpoint: &Endpoint,
    credentials: &Credentials,
    removed: &str,
    timeout: Duration,
) -> Result<(), Error> {
    wait(endpoint, Box::pin(member_lock::note_removal(endpoint, credentials, removed, timeout)))
}

/// As [`member_lock::last_removal`].
pub fn last_removal(
    endpoint: &Endpoint,
    credentials: &Credentials,
    timeout: Duration,
) -> Result<Option<Vec<u8>>, Error> {
    answered(endpoint, None, member_lock::last_removal(endpoint, credentials, timeout))
}

/// What `question` answers; `answer` is what is there until then.
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

/// Boxed, so that what follows is compiled once and not for each of them.
type Question<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>>;

fn wait(endpoint: &Endpoint, question: Question<'_>) -> Result<(), Error> {
    if Handle::try_current().is_err() {
        return run(endpoint, question);
    }
    // A thread that belongs to a runtime already can run no other one.
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| run(endpoint, question)).join();
        asked.unwrap_or_else(|fault| panic::resume_unwind(fault))
    })
}

fn run(endpoint: &Endpoint, question: Question<'_>) -> Result<(), Error> {
    let no_runtime = |error: std::io::Error| Error::Client { url: endpoint.url.clone(), why: error.to_string() };
    let runtime = Builder::new_current_thread().enable_all().build().map_err(no_runtime)?;
    let answer = runtime.block_on(question);
    // A thread that waits for a file server is left behind: the time for an answer is over.
    runtime.shutdown_background();
    answer
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// Nothing listens there any more.
    fn closed() -> Endpoint {
        let address = crate::os::test_port::listener().local_addr().unwrap().to_string();
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
        let asked = || {
            let read = confirmed_read(&closed(), &credentials, timeout).unwrap_err();
            assert!(matches!(&read, Error::Certificate { path, .. } if path == "/nonexistent/ca.crt"), "{read}");
            observe(&closed(), &credentials, timeout)
        };
        assert_eq!(asked().etcd, Fact::Absent);
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        assert_eq!(runtime.block_on(async { asked() }).etcd, Fact::Absent);
    }
}
