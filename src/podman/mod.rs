//! The container, through podman's command line.

use std::time::Duration;

use serde::Deserialize;

use crate::command::{self, Output};

const INSPECT_TIMEOUT: Duration = Duration::from_secs(8);
/// How long podman itself may take around a stop's grace.
const OVERHEAD: Duration = Duration::from_secs(8);
/// podman's exit code where it was asked about a container that does not exist.
const NO_SUCH_CONTAINER: i32 = 125;

/// podman did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Command(#[from] command::Error),
    #[error("podman {verb} failed ({code}): {complaint}")]
    Failed { verb: &'static str, code: i32, complaint: String },
    #[error("podman's answer is not understood: {0}")]
    Parse(#[from] serde_json::Error),
}

/// A container's state, as `podman container inspect` tells it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct State {
    pub running: bool,
    pub status: String,
    pub exit_code: i32,
    #[serde(default)]
    pub error: String,
}

/// The state of container `name`; `None` where there is none of that name.
pub fn inspect(name: &str) -> Result<Option<State>, Error> {
    let output =
        command::run("podman", &["container", "inspect", "--format", "{{json .State}}", name], INSPECT_TIMEOUT)?;
    if output.code == NO_SUCH_CONTAINER && output.stderr.to_lowercase().contains("no such container") {
        return Ok(None);
    }
    let stdout = succeeded("container inspect", output)?;
    Ok(Some(serde_json::from_str(stdout.trim())?))
}

/// Whether `image` is in this node's storage.
pub fn has_image(image: &str) -> Result<bool, Error> {
    let output = command::run("podman", &["image", "exists", image], INSPECT_TIMEOUT)?;
    match output.code {
        0 => Ok(true),
        1 => Ok(false),
        _ => succeeded("image exists", output).map(|_| true),
    }
}

/// Pulls `image`.
pub fn pull(image: &str, timeout: Duration) -> Result<(), Error> {
    let output = command::run("podman", &["pull", "--quiet", image], timeout)?;
    succeeded("pull", output).map(drop)
}

/// Runs a container, in the background, from `args` (what follows `podman run --detach`).
pub fn run(args: &[String], timeout: Duration) -> Result<(), Error> {
    let mut all = vec!["run".to_owned(), "--detach".to_owned()];
    all.extend_from_slice(args);
    let output = command::run("podman", &all, timeout)?;
    succeeded("run", output).map(drop)
}

/// Stops container `name`: SIGTERM, and SIGKILL after `grace`. No such container is a stopped one.
pub fn stop(name: &str, grace: Duration) -> Result<(), Error> {
    let seconds = grace.as_secs().to_string();
    let stopped = command::run("podman", &["stop", "--ignore", "--time", &seconds, name], grace + OVERHEAD);
    match stopped {
        Ok(output) if output.code == 0 => Ok(()),
        // podman may be stuck where the container is not: one more try, without grace.
        Ok(_) | Err(command::Error::TimedOut { .. }) => kill(name),
        Err(error) => Err(error.into()),
    }
}

fn kill(name: &str) -> Result<(), Error> {
    let output = command::run("podman", &["kill", "--signal", "KILL", name], OVERHEAD)?;
    succeeded("kill", output).map(drop)
}

/// The last lines that container `name` wrote.
pub fn last_words(name: &str) -> Option<String> {
    let output = command::run("podman", &["logs", "--tail", "40", name], INSPECT_TIMEOUT).ok()?;
    Some(format!("{}\n{}", output.stdout, output.stderr))
}

fn succeeded(verb: &'static str, output: Output) -> Result<String, Error> {
    if output.code == 0 {
        return Ok(output.stdout);
    }
    Err(Error::Failed { verb, code: output.code, complaint: output.complaint().to_owned() })
}
