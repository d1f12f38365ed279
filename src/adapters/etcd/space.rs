//! The space of an etcd's database: the requests that free it, and the alarms about it.

use std::time::Duration;

use etcd_client::{AlarmAction, AlarmOptions, AlarmType, CompactionOptions};

use super::client::{self, Credentials, Endpoint, Error};
use crate::decide::evidence::MemberId;

/// etcd's error text for a revision that it has already compacted.
pub(super) const COMPACTED: &str = "required revision has been compacted";

/// An alarm of etcd, and the member that raised it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alarm {
    pub member: MemberId,
    pub kind: Kind,
}

/// The kind of an etcd alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    NoSpace,
    /// The alarm `CORRUPT`, or one that a later etcd may have.
    Other,
}

/// Reads the alarms of all members, including those that were raised by members that were removed later.
pub(super) async fn alarms(
    endpoint: &Endpoint,
    credentials: &Credentials,
    patience: Duration,
) -> Result<Vec<Alarm>, Error> {
    client::ask(endpoint, credentials, patience, async |mut client| {
        let answer = client.alarm(AlarmAction::Get, AlarmType::None, None).await?;
        let alarm = |alarm: &etcd_client::AlarmMember| Alarm {
            member: alarm.member_id(),
            kind: if alarm.alarm() == AlarmType::Nospace { Kind::NoSpace } else { Kind::Other },
        };
        Ok(answer.alarms().iter().map(alarm).collect())
    })
    .await
}

/// Disarms the alarm NOSPACE of `member`, and no other alarm.
pub(super) async fn disarm_no_space(
    endpoint: &Endpoint,
    credentials: &Credentials,
    member: MemberId,
    patience: Duration,
) -> Result<(), Error> {
    client::ask(endpoint, credentials, patience, async move |mut client| {
        let mut options = AlarmOptions::new();
        options.with_member(member);
        client.alarm(AlarmAction::Deactivate, AlarmType::Nospace, Some(options)).await.map(drop)
    })
    .await
}

/// Compacts the history before `revision`. Waits until the etcd at `endpoint` has deleted that history from its database.
pub(super) async fn compact(
    endpoint: &Endpoint,
    credentials: &Credentials,
    revision: i64,
    patience: Duration,
) -> Result<(), Error> {
    client::ask(endpoint, credentials, patience, async move |mut client| {
        match client.compact(revision, Some(CompactionOptions::new().with_physical())).await {
            Err(error) if client::sentence(&error).contains(COMPACTED) => Ok(()),
            done => done.map(drop),
        }
    })
    .await
}

/// Defragments the database of the etcd at `endpoint`. That etcd serves no reads meanwhile.
pub(super) async fn defragment(
    endpoint: &Endpoint,
    credentials: &Credentials,
    patience: Duration,
) -> Result<(), Error> {
    client::ask(endpoint, credentials, patience, async |mut client| client.defragment().await.map(drop)).await
}
