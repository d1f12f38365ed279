//! podman's command line, for the container of etcd.

mod cause;
pub mod container_lock;
mod listed;
pub mod process;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use crate::adapters::command::{self, Output, Programs};
use crate::adapters::pace::{Limit, Question};
use crate::base::{Fact, json};
use crate::os::clock::Deadline;
use container_lock::ContainerLock;

/// The number of lines that are read at the end of a container's log. Many lines of stacks may follow etcd's last message.
const LAST_LINES: &str = "200";
/// The exit code of `podman inspect` for a container that does not exist.
const NO_SUCH_CONTAINER: i32 = 125;
/// The exit code of podman for a failure of its own. After such a failure, podman's storage may have a container that podman does not list.
const PODMAN_FAILED: i32 = 125;
/// The exit code of podman 3.0 after a race against systemd in which it did not find a new scope (rhbz#1972209). The next attempt finds
/// it.
const SCOPE_NOT_FOUND: i32 = 127;
const SCOPE_WORDS: [&str; 2] = ["cgroup", "scope not found"];
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The failure of a podman command.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Command(#[from] command::Error),
    #[error("podman {verb} failed ({code}): {complaint}")]
    Failed { verb: &'static str, code: i32, complaint: String },
    #[error("podman's answer is not understood: {0}")]
    Parse(#[from] serde_json::Error),
}

/// A container as `podman container inspect` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Inspected {
    pub id: String,
    pub state: State,
    #[serde(default)]
    pub labels: Option<BTreeMap<String, String>>,
    /// The id of the container's image.
    #[serde(default)]
    pub image: String,
    /// The image name with which the container was created.
    #[serde(default)]
    pub image_name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct State {
    pub running: bool,
    pub status: String,
    pub exit_code: i32,
    #[serde(default)]
    pub error: String,
    /// The time at which the container last ended, in podman's form; `None` if podman does not show it.
    #[serde(default)]
    pub finished_at: Option<String>,
    /// The number of the container's first process; 0 while the container is not running.
    #[serde(default)]
    pub pid: i32,
    /// The control group that podman created for the container; empty if podman created none.
    #[serde(default)]
    pub cgroup_path: String,
}

impl Error {
    /// Returns whether podman did not answer in time.
    pub fn is_too_late(&self) -> bool {
        matches!(self, Self::Command(error) if error.is_too_late())
    }
}

impl Inspected {
    /// Returns the number of the container's process, if the process may be alive. The kernel's list of processes decides, because podman's
    /// record may be outdated. If that list does not show whether the process is alive, podman's record counts.
    pub fn alive(&self) -> Option<i32> {
        match process::of_container(&self.id, self.state.pid, !self.state.cgroup_path.is_empty()) {
            Fact::Known(pid) => Some(pid),
            Fact::Absent => None,
            Fact::Unknown(_) | Fact::NotAsked => Some(self.state.pid),
        }
    }

    /// Returns whether podman reports the container as alive although its process has ended. podman can neither start nor stop such a
    /// container.
    pub fn is_stuck(&self) -> bool {
        self.state.is_said_to_live() && self.alive().is_none()
    }
}

impl State {
    fn is_said_to_live(&self) -> bool {
        self.running || ["paused", "stopping"].contains(&self.status.as_str())
    }

    /// Returns whether podman has created the container and has never started it.
    pub fn was_never_started(&self) -> bool {
        matches!(self.status.as_str(), "configured" | "created" | "initialized")
    }
}

const INSPECTED: &str = concat!(
    r#"{"id":{{json .ID}},"state":{{json .State}},"labels":{{json .Config.Labels}},"#,
    r#""image":{{json .Image}},"image_name":{{json .ImageName}}}"#
);

/// Returns the container `name`; `None` if podman has no such container.
pub fn inspect(programs: &Programs, name: &str) -> Result<Option<Inspected>, Error> {
    let output = programs.run("podman", &["container", "inspect", "--format", INSPECTED, name], Question::Podman)?;
    if output.code == NO_SUCH_CONTAINER && output.stderr.to_lowercase().contains("no such container") {
        return Ok(None);
    }
    match succeeded("container inspect", output) {
        Ok(stdout) => Ok(Some(json::from_text(stdout.trim())?)),
        // podman cannot inspect a container with damaged storage, but lists it.
        Err(error) => listed::find(programs, name).ok().flatten().map(Some).ok_or(error),
    }
}

/// Returns the id of `image`; `None` if this node's storage does not have the image.
pub fn image_id(programs: &Programs, image: &str, limit: impl Into<Limit>) -> Result<Option<String>, Error> {
    let output = programs.run("podman", &["image", "inspect", "--format", "{{.ID}}", image], limit)?;
    let complaint = output.stderr.to_lowercase();
    if output.code != 0 && (complaint.contains("not known") || complaint.contains("no such image")) {
        return Ok(None);
    }
    Ok(Some(succeeded("image inspect", output)?.trim().to_owned()))
}

/// Pulls `image` from its registry, with the credentials in `authfile` if that file exists.
pub fn pull(programs: &Programs, image: &str, authfile: &Path, timeout: Duration) -> Result<(), Error> {
    let mut args = vec!["pull".to_owned(), "--quiet".to_owned()];
    if authfile.is_file() {
        args.push(format!("--authfile={}", authfile.display()));
    }
    args.push(image.to_owned());
    let output = programs.run("podman", &args, timeout)?;
    succeeded("pull", output).map(drop)
}

/// Runs `program --version` in a new container of `image`, and returns the output.
pub fn version_of(programs: &Programs, image: &str, program: &str) -> Result<String, Error> {
    let entrypoint = format!("--entrypoint={program}");
    let args = ["run", "--rm", "--network=none", &entrypoint, image, "--version"];
    succeeded("run", programs.run("podman", &args, Question::ImageVersion)?)
}

/// Starts the container `name`, which must exist.
pub fn start(programs: &Programs, container_lock: &ContainerLock, name: &str, deadline: Deadline) -> Result<(), Error> {
    launch(programs, container_lock, "start", &["start".to_owned(), name.to_owned()], deadline)
}

/// Stops the container `name`, by SIGKILL after `grace`, and starts it again. The caller needs no container lock, because an attribute in
/// the CIB announces the restart to agents that run meanwhile.
pub fn restart(programs: &Programs, name: &str, grace: Duration) -> Result<(), Error> {
    let seconds = grace.as_secs().to_string();
    let limit = Limit::Beyond(grace, Question::PodmanChange);
    succeeded("restart", programs.run("podman", &["restart", "--time", &seconds, name], limit)?).map(drop)
}

/// Returns whether the storage of the container `name` cannot be mounted. Such a container can never be started again.
pub fn storage_is_damaged(programs: &Programs, name: &str) -> bool {
    let is_damaged = programs.run("podman", &["mount", name], Question::Podman).is_ok_and(|output| output.code != 0);
    if !is_damaged {
        // Mounts are counted, and one that is left does no harm.
        let _ = programs.run("podman", &["unmount", name], Question::Podman);
    }
    is_damaged
}

/// Renames the container `name` to `to`. First removes a container that already has the new name.
pub fn rename(programs: &Programs, container_lock: &ContainerLock, name: &str, to: &str) -> Result<(), Error> {
    succeeded(
        "rm",
        change(programs, container_lock, &["rm", "--force", "--ignore", "--volumes", to], Question::PodmanChange)?,
    )?;
    succeeded("rename", change(programs, container_lock, &["rename", name, to], Question::PodmanChange)?).map(drop)
}

/// Runs the command `words` in the running container `name`.
pub fn exec(programs: &Programs, name: &str, words: &[String]) -> Result<(), Error> {
    let mut args = vec!["exec".to_owned(), name.to_owned()];
    args.extend_from_slice(words);
    succeeded("exec", programs.run("podman", &args, Question::Check)?).map(drop)
}

/// Creates and starts the container `name` in the background. `args` are the arguments after `podman run --detach`.
pub fn run(
    programs: &Programs,
    container_lock: &ContainerLock,
    name: &str,
    args: &[String],
    deadline: Deadline,
) -> Result<(), Error> {
    let mut all = vec!["run".to_owned(), "--detach".to_owned()];
    all.extend_from_slice(args);
    match launch(programs, container_lock, "run", &all, deadline) {
        Err(Error::Failed { code: PODMAN_FAILED, complaint, .. }) => {
            log::warn!(
                "podman run failed, and the storage of container '{name}' is removed before one more attempt: {complaint}"
            );
            let _ = change(programs, container_lock, &["rm", "--storage", name], Question::PodmanChange)?;
            launch(programs, container_lock, "run", &all, deadline)
        }
        done => done,
    }
}

fn launch(
    programs: &Programs,
    container_lock: &ContainerLock,
    verb: &'static str,
    args: &[String],
    deadline: Deadline,
) -> Result<(), Error> {
    loop {
        let output = change(programs, container_lock, args, deadline.left())?;
        let lost_the_race =
            output.code == SCOPE_NOT_FOUND && SCOPE_WORDS.iter().all(|words| output.stderr.contains(words));
        if !lost_the_race || deadline.left() <= RETRY_AFTER {
            return succeeded(verb, output).map(drop);
        }
        deadline.sleep(RETRY_AFTER);
    }
}

/// Runs a podman command that changes something. podman holds the container lock until it has ended, even if this process ends first.
fn change<A: AsRef<std::ffi::OsStr>>(
    programs: &Programs,
    container_lock: &ContainerLock,
    args: &[A],
    limit: impl Into<Limit>,
) -> Result<Output, command::Error> {
    let held =
        container_lock.share().map_err(|source| command::Error::Spawn { program: "podman".to_owned(), source })?;
    programs.run_holding("podman", args, held, limit)
}

/// Stops the container `name`: SIGTERM, and SIGKILL after `grace`. A missing container counts as stopped.
pub fn stop(programs: &Programs, container_lock: &ContainerLock, name: &str, grace: Duration) -> Result<(), Error> {
    let seconds = grace.as_secs().to_string();
    let around_the_grace = Limit::Beyond(grace, Question::PodmanChange);
    let stopped = change(programs, container_lock, &["stop", "--ignore", "--time", &seconds, name], around_the_grace);
    match stopped {
        Ok(output) if output.code == 0 => Ok(()),
        // podman may hang although the container does not, so it gets one more attempt, without grace.
        Ok(_) | Err(command::Error::TimedOut { .. }) => kill(programs, container_lock, name),
        Err(error) => Err(error.into()),
    }
}

/// Stops the container `name` as [`stop`] does. If that fails, ends its processes without podman. Returns no error, because the caller
/// checks whether etcd has ended.
pub fn stop_surely(programs: &Programs, container_lock: &ContainerLock, name: &str, grace: Duration) {
    let Err(error) = stop(programs, container_lock, name, grace) else { return };
    log::warn!("container '{name}' cannot be stopped by podman, and its processes are ended without podman: {error}");
    // A podman that does not answer would use up the time of all later steps.
    if !error.is_too_late()
        && let Err(error) = stop_without_podman(programs, container_lock, name, grace)
    {
        log::warn!("container '{name}' cannot be removed: {error}");
    }
}

/// Ends the processes of the container `name` without podman, because podman can neither stop nor kill the container. Then removes the
/// container from podman's records. The next start creates it anew.
fn stop_without_podman(
    programs: &Programs,
    container_lock: &ContainerLock,
    name: &str,
    grace: Duration,
) -> Result<(), Error> {
    match inspect(programs, name) {
        Ok(None) => return Ok(()),
        Ok(Some(container)) => process::end_container(&container.id, grace),
        Err(error) => log::debug!("container '{name}' cannot be inspected: {error}"),
    }
    succeeded("rm", change(programs, container_lock, &["rm", "--force", name], Question::PodmanChange)?).map(drop)
}

fn kill(programs: &Programs, container_lock: &ContainerLock, name: &str) -> Result<(), Error> {
    let output = change(programs, container_lock, &["kill", "--signal", "KILL", name], Question::PodmanChange)?;
    succeeded("kill", output).map(drop)
}

/// Returns the last lines of the log of the container `name`; `None` if podman does not show the log.
pub fn last_words(programs: &Programs, name: &str) -> Option<String> {
    let output = programs.run("podman", &["logs", "--tail", LAST_LINES, name], Question::Podman).ok()?;
    Some(format!("{}\n{}", output.stdout, output.stderr))
}

fn succeeded(verb: &'static str, output: Output) -> Result<String, Error> {
    if output.code == 0 {
        return Ok(output.stdout);
    }
    let complaint = cause::root_cause(output.complaint());
    if !output.complaint().ends_with(&complaint) {
        log::debug!("podman {verb} reported: {}", output.complaint());
    }
    Err(Error::Failed { verb, code: output.code, complaint })
}

#[cfg(test)]
#[path = "alive/tests.rs"]
mod alive_tests;
#[cfg(test)]
mod tests;
