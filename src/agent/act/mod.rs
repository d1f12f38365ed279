//! Performs effects: a single match, in order, and without decisions.

mod archive;
mod container;
pub(crate) mod drop_in;
mod image;
mod note;
mod reload;
mod snapshot;
mod stop;
mod vote_proxy;

pub use reload::reload;

use std::path::Path;
use std::time::Duration;

use crate::adapters::command::Programs;
use crate::adapters::data_dir;
use crate::adapters::etcd::blocking;
use crate::adapters::etcd::client::{self, Credentials, Endpoint};
use crate::adapters::pace::Question;
use crate::adapters::pacemaker::{self, attributes, erased};
use crate::adapters::podman;
use crate::agent::resource::context::Context;
use crate::base::Fact;
use crate::decide::evidence::{DataDir, FailedStarts, PublishedState};
use crate::decide::plan::{Effect, Via};
use crate::records::failed_starts;
use crate::records::state_file;

/// Error of a failed effect of a plan (see `crate::decide::Effect`).
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Pacemaker(#[from] pacemaker::Error),
    #[error(transparent)]
    Podman(#[from] podman::Error),
    #[error(transparent)]
    Etcd(#[from] client::Error),
    #[error(transparent)]
    DataDir(#[from] data_dir::Error),
    #[error("{path}: {source}")]
    File { path: String, source: std::io::Error },
    #[error("{0}")]
    Unusable(String),
}

impl Error {
    /// Returns whether the error is that podman exceeded its time limit.
    fn is_too_late(&self) -> bool {
        matches!(self, Self::Podman(error) if error.is_too_late())
    }

    fn file(path: &Path, source: std::io::Error) -> Self {
        Self::File { path: path.display().to_string(), source }
    }
}

/// Publishes a node attribute that operators and other programs read. `effect` has the attribute and its value.
fn show(programs: &Programs, node: &str, effect: &Effect) -> Result<(), pacemaker::Error> {
    match effect {
        Effect::SetAlarm(alarm) => attributes::show_alarm(programs, node, alarm.as_deref()),
        Effect::PublishImage(image) => attributes::publish_image(programs, node, image.as_ref()),
        Effect::ShowLeader(leads) => attributes::show_leader(programs, node, *leads),
        Effect::ShowFenceWait(waits) => attributes::show_fence_wait(programs, node, *waits),
        _ => Ok(()),
    }
}

/// Performs one effect of a plan.
pub fn perform(context: &Context, effect: &Effect) -> Result<(), Error> {
    if matches!(effect, Effect::RunContainer(_) | Effect::AdvanceCommit | Effect::MoveDataAside) {
        own_turn(context)?;
    }
    let (programs, node) = (&context.programs, context.me.name.as_str());
    match effect {
        Effect::PublishRecord(record) => publish(context, record),
        Effect::RestoreRecord => Ok(erased::restore_record(programs)?),
        Effect::PublishIdentity(identity) => Ok(attributes::publish_identity(programs, node, *identity)?),
        Effect::PublishLineage(lineage) => Ok(attributes::publish_lineage(programs, node, lineage)?),
        Effect::PublishPeerLineage(lineage) => {
            let peer = context.peer.as_ref().ok_or_else(|| Error::Unusable("this cluster has one node".to_owned()))?;
            Ok(attributes::publish_lineage(programs, &peer.name, lineage)?)
        }
        Effect::SetStandalone(name) => {
            Ok(attributes::set_property(programs, attributes::STANDALONE_NODE, name.as_deref())?)
        }
        Effect::SetLearner(name) => Ok(attributes::set_property(programs, attributes::LEARNER_NODE, name.as_deref())?),
        Effect::TellOthers(notice) => Ok(attributes::tell(programs, node, notice)?),
        Effect::SetPromotionScore(score) => {
            Ok(attributes::set_promotion_score(programs, &context.resource, node, *score)?)
        }
        Effect::SetFailures { operation, count } => {
            Ok(attributes::set_failures(programs, &context.resource, node, operation, *count)?)
        }
        Effect::WriteNote(note) => note::write(context, note),
        Effect::Remember(memory) => written(&context.memory_path, memory),
        Effect::NoteFailedStart(failed) => note_failed_start(context, failed),
        Effect::ForgetFailedStarts => {
            let dir = context.data_dir();
            failed_starts::forget(dir).map_err(|source| Error::file(&failed_starts::path(dir), source))
        }
        Effect::ConsumeConfirmation => consume(&context.confirmation_path),
        Effect::StopContainer { grace_s } => stop::stop(context, Duration::from_secs(*grace_s)),
        Effect::EndLaunch => context
            .container_lock
            .end_others()
            .map_err(|error| Error::Unusable(format!("see 'ps -C podman': an earlier action does not end: {error}"))),
        Effect::AdvanceCommit => advance_commit(context),
        Effect::MoveDataAside => move_data_aside(context),
        Effect::MoveHistoryAside => note::move_history_aside(context),
        Effect::DropBackups(names) => Ok(data_dir::drop_backups(context.data_dir(), names)?),
        Effect::PruneBackups => Ok(data_dir::prune_backups(context.data_dir(), context.params.max_backups)?),
        Effect::SetAlarm(_) | Effect::PublishImage(_) | Effect::ShowLeader(_) | Effect::ShowFenceWait(_) => {
            Ok(show(programs, node, effect)?)
        }
        Effect::SetRedundancy(is_redundant) => Ok(attributes::say_redundancy(programs, *is_redundant)?),
        Effect::SetReached(reached) => Ok(attributes::say_reached(programs, reached)?),
        Effect::ForgetPrimary => Ok(attributes::set_property(programs, attributes::PRIMARY, None)?),
        Effect::RunContainer(mode) => container::run(context, mode),
        Effect::VoteProxy(vote) => vote_proxy::vote_proxy(context, vote),
        Effect::SettleConfig => container::settle_config(context),
        Effect::MoveLeader { to } => {
            members(context, Via::Own, |at, with, timeout| blocking::move_leader(at, with, *to, timeout))
        }
        Effect::RemoveMember { id, via } => {
            members(context, *via, |at, with, timeout| blocking::remove_member(at, with, *id, timeout))
        }
        Effect::AddLearner { peer_url, via } => {
            members(context, *via, |at, with, timeout| blocking::add_learner(at, with, peer_url, timeout))
        }
        Effect::PromoteMember { id, via } => {
            members(context, *via, |at, with, timeout| blocking::promote_member(at, with, *id, timeout))
        }
        Effect::AnnounceLoneBoot(_) | Effect::HoldPeerOff(_) | Effect::CancelWaitForAll => {
            Err(Error::Unusable("only 'tandem lone-boot' does this".to_owned()))
        }
    }
}

/// Publishes this node's record about its data. If no etcd has the data open, adds the database's last revision. Omits the revision from a
/// record that claims the right to run standalone, because a recovery waits for this record.
fn publish(context: &Context, record: &PublishedState) -> Result<(), Error> {
    let mut record = record.clone();
    let is_at_rest = || data_dir::is_open(context.data_dir()).is_ok_and(|is_open| !is_open);
    if matches!(record.disk, DataDir::Present(_)) && !record.claims && is_at_rest() {
        record.revision = data_dir::revision(context.data_dir());
    }
    Ok(attributes::publish_record(&context.programs, &context.me.name, &record)?)
}

/// Changes etcd's member list, within the time-out for such a change on this machine.
fn members(
    context: &Context,
    via: Via,
    change: impl FnOnce(&Endpoint, &Credentials, Duration) -> Result<(), client::Error>,
) -> Result<(), Error> {
    let endpoint = endpoint(context, via)?;
    let ask = |timeout| change(endpoint, context.credentials(), timeout);
    Ok(context.programs.pace().within(Question::Members, ask, client::Error::is_too_late)?)
}

/// Takes the lock on the container. Fails while another action of the agent, or the podman of a killed action, holds the lock.
fn own_turn(context: &Context) -> Result<(), Error> {
    match context.container_lock.take() {
        Fact::Known(true) => Err(Error::Unusable("an earlier action still starts or ends the container".to_owned())),
        Fact::Unknown(why) => Err(Error::Unusable(format!("{why}: make place for this file"))),
        Fact::Known(false) | Fact::Absent | Fact::NotAsked => Ok(()),
    }
}

fn endpoint(context: &Context, via: Via) -> Result<&Endpoint, Error> {
    match via {
        Via::Own => Ok(&context.own_endpoint),
        Via::Peer => {
            context.peer_endpoint.as_ref().ok_or_else(|| Error::Unusable("this cluster has one node".to_owned()))
        }
    }
}

fn written<T>(path: &Path, value: &T) -> Result<(), Error>
where
    T: serde::Serialize + serde::de::DeserializeOwned + PartialEq,
{
    state_file::write(path, value).map_err(|source| Error::file(path, source))
}

/// Records a failed start of etcd. A failure that cannot be recorded is not counted, so etcd may be started once more before its data
/// counts as damaged.
fn note_failed_start(context: &Context, failed: &FailedStarts) -> Result<(), Error> {
    let dir = context.data_dir();
    log::warn!("etcd exited during startup, {} times in a row: {}", failed.count, failed.last_words);
    failed_starts::write(dir, &context.deployment.image, failed)
        .map_err(|source| Error::file(&failed_starts::path(dir), source))
}

fn consume(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => Err(Error::file(path, source)),
        _ => Ok(()),
    }
}

fn advance_commit(context: &Context) -> Result<(), Error> {
    #[cfg(feature = "lab-faults")]
    if crate::os::lab_faults::is_on(crate::os::lab_faults::SKIP_ADVANCE_COMMIT) {
        return Ok(());
    }
    let advanced = data_dir::advance_commit(context.data_dir())?;
    log::info!("commit index advanced from {} to {}", advanced.from, advanced.to);
    #[cfg(feature = "lab-faults")]
    crate::os::lab_faults::wait_after_writing(crate::os::lab_faults::SKIP_WAL_SYNC);
    Ok(())
}

fn move_data_aside(context: &Context) -> Result<(), Error> {
    if let Some(backup) = data_dir::move_aside(context.data_dir())? {
        log::info!("the data dir is kept as {}", backup.display());
        snapshot::keep(context, &backup);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
