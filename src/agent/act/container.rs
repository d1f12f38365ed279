//! Starts etcd's container with a new configuration. It starts the existing container if a new one would be made the
//! same way. Otherwise it makes a new one, and keeps the old one.

use std::io::Write as _;

use ring::digest;

use super::Error;
use super::{archive, drop_in, image};
use crate::adapters::etcd::config;
use crate::adapters::openshift::manifest::are_alike;
use crate::adapters::pace::Question;
use crate::adapters::podman::{self, Inspected, process};
use crate::agent::resource::context::Context;
use crate::agent::resource::deployment::SAVED_MANIFEST;
use crate::decide::plan::RunMode;
use crate::os::clock::Deadline;
use crate::records::{data_mount, own_dir};

/// Name of the label with a fingerprint of the image and options from which a container was made.
const LABEL: &str = "tandem.made-from";

/// Writes etcd's configuration for the kind of start in `mode` (such as joining, or forcing a new cluster), and runs the container.
pub(super) fn run(context: &Context, mode: &RunMode) -> Result<(), Error> {
    let (params, programs) = (&context.params, &context.programs);
    make_directories(context)?;
    // Both query podman, and each query takes a tenth of a second.
    let (image, there) = std::thread::scope(|scope| {
        let there = scope.spawn(|| podman::inspect(programs, &params.name));
        (image::have(context), there.join())
    });
    let there = there.unwrap_or_else(|_| podman::inspect(programs, &params.name))?;
    let image = image.or_else(|why| image::of_the_last(context, there.as_ref(), why))?;
    let options = options(context, &image.name);
    let made_from = fingerprint(&image.id, &options);
    let serves = there.as_ref().is_some_and(|container| serves(context, container, &made_from));
    let was_started = there.as_ref().is_some_and(|container| !container.state.was_never_started());
    if was_started && !serves {
        archive::keep_previous(context);
    }
    save_manifest(context)?;
    write_config(context, &config::render(&context.settings(image.version), mode))?;
    process::forget(&context.process_path);
    let mut all = vec![format!("--label={LABEL}={made_from}")];
    if params.authfile.is_file() {
        all.push(format!("--authfile={}", params.authfile.display()));
    }
    all.extend(options);
    let launch = |within| launch(context, serves, &all, Deadline::after(within));
    let starts_again = programs.pace().within(Question::Launch, launch, Error::is_too_late)?;
    let how = if starts_again { "started again" } else { "made" };
    log::info!("container '{}' is {how}; etcd {} from {}", params.name, image.version, image.name);
    // Without the record, the next start only lacks one of its proofs.
    if let Err(error) = data_mount::keep(&context.data_mount_path, context.data_dir()) {
        log::warn!("the mount of etcd's data cannot be recorded in {}: {error}", context.data_mount_path.display());
    }
    if let Some(container) = podman::inspect(programs, &params.name)? {
        if container.state.running {
            process::remember(&context.process_path, container.state.pid);
        }
        drop_in::write(context, &container.id);
    }
    Ok(())
}

/// Starts the existing container if `serves` is true and its storage is not damaged; else makes a new one from `options`. Returns true if
/// it started the existing container.
fn launch(context: &Context, serves: bool, options: &[String], deadline: Deadline) -> Result<bool, Error> {
    let starts_again = serves && start_again(context, deadline)?;
    if !starts_again {
        podman::run(&context.programs, &context.container_lock, &context.params.name, options, deadline)?;
    }
    Ok(starts_again)
}

/// Starts the existing container. Returns false if its storage is damaged, so that the caller makes a new one. etcd's data is not in the
/// container's storage.
fn start_again(context: &Context, deadline: Deadline) -> Result<bool, Error> {
    let (name, programs) = (&context.params.name, &context.programs);
    match podman::start(programs, &context.container_lock, name, deadline) {
        Ok(()) => Ok(true),
        Err(error @ podman::Error::Failed { .. }) if podman::storage_is_damaged(programs, name) => {
            log::warn!("the storage of container '{name}' is damaged, and a new container is made: {error}");
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}

/// Removes `force-new-cluster` from etcd's configuration. Reads the file once and writes back the text that was checked, because the
/// container can replace the file at any moment.
pub(super) fn settle_config(context: &Context) -> Result<(), Error> {
    let text = context.config_text().map_err(|source| Error::file(&context.config_path(), source))?;
    if config::forces_new_cluster(&text) { write_config(context, &config::settled(&text)) } else { Ok(()) }
}

fn make_directories(context: &Context) -> Result<(), Error> {
    let params = &context.params;
    let own = [context.data_dir(), &params.config_location];
    own.into_iter()
        .chain(params.mount_points.iter().map(std::path::PathBuf::as_path))
        .try_for_each(|directory| context.make(directory).map(drop).map_err(|source| Error::file(directory, source)))?;
    let data_dir = context.data_dir();
    context
        .make(data_dir)
        .and_then(|data_dir| own_dir::make(&data_dir))
        .map(drop)
        .map_err(|source| Error::file(&data_dir.join(own_dir::NAME), source))
}

/// Returns whether the existing container can be started again. This is the case if a new container would have the same image and options
/// and, on OpenShift, a manifest that differs only in its version. A container without this agent's label was made by the shell agent, and
/// only its manifest is compared.
///
/// The result is false for a container that podman reports as alive without a live process. Such a container cannot be started, and is made
/// anew.
///
/// The result is also false for a container that was made and never started, because podman was killed in between. The runtime may know
/// such a container and refuse each start ("container with given ID already exists").
fn serves(context: &Context, container: &Inspected, made_from: &str) -> bool {
    if container.state.was_never_started() || container.is_stuck() {
        return false;
    }
    let label = container.labels.as_ref().and_then(|labels| labels.get(LABEL));
    let Some(manifest) = &context.deployment.manifest else { return label.is_some_and(|label| label == made_from) };
    let saved = context.saved_manifest().unwrap_or_default();
    label.is_none_or(|label| label == made_from) && are_alike(&saved, &manifest.text)
}

/// Saves a copy of the pod manifest. The next start compares its own manifest with the copy.
fn save_manifest(context: &Context) -> Result<(), Error> {
    let Some(manifest) = &context.deployment.manifest else { return Ok(()) };
    let is_saved = context.saved_manifest().is_ok_and(|saved| saved == manifest.text);
    write(context, SAVED_MANIFEST, &manifest.text)?;
    if is_saved {
        return Ok(());
    }
    if let crate::agent::resource::params::Source::Manifest { path, .. } = &context.params.source {
        // External tests search the log for this sentence.
        log::info!("a new working copy of {} was created", path.display());
    }
    Ok(())
}

fn write_config(context: &Context, text: &str) -> Result<(), Error> {
    write(context, config::FILE, text)
}

fn write(context: &Context, name: &str, text: &str) -> Result<(), Error> {
    let location = &context.params.config_location;
    let put = |location| own_dir::replace_and_link(&location, name, |file| file.write_all(text.as_bytes()));
    let written = context.make(location).and_then(put);
    written.map_err(|source| Error::file(&location.join(name), source))
}

fn fingerprint(image: &str, options: &[String]) -> String {
    let mut text = image.to_owned();
    for option in options {
        text.push('\0');
        text.push_str(option);
    }
    let hash = digest::digest(&digest::SHA256, text.as_bytes());
    let first: u64 = hash.as_ref().iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte));
    format!("{first:016x}")
}

/// Options of `podman run` for every container of etcd. They drop all capabilities but the one to read a key, or write a data dir, of
/// another user. The parameter `run_opts` adds what an operator's own image needs.
const ALWAYS: [&str; 6] = [
    "--replace",
    "--network=host",
    "--security-opt=label=disable",
    "--security-opt=no-new-privileges",
    "--cap-drop=all",
    "--cap-add=DAC_OVERRIDE",
];
/// First port that a process may listen on without an additional capability.
const PRIVILEGED_PORTS: u16 = 1024;

/// Returns the arguments after `podman run --detach` for a container of `image`.
fn options(context: &Context, image: &str) -> Vec<String> {
    let (params, deployment) = (&context.params, &context.deployment);
    let mut options: Vec<String> = ALWAYS.map(str::to_owned).to_vec();
    if [params.client_port, params.peer_port].into_iter().any(|port| port < PRIVILEGED_PORTS) {
        options.push("--cap-add=NET_BIND_SERVICE".to_owned());
    }
    options.push(format!("--name={}", params.name));
    if params.oom != 0 {
        options.push(format!("--oom-score-adj={}", params.oom));
    }
    options.extend(deployment.mounts.iter().map(|mount| {
        let access = if mount.read_only { ":ro" } else { "" };
        format!("--volume={}:{}{access}", mount.on_the_node.display(), mount.inside.display())
    }));
    options.extend(deployment.environment.iter().map(|(name, value)| format!("--env={name}={value}")));
    options.extend(params.run_opts.iter().cloned());
    if params.run_cmd.is_empty() {
        // The option makes an image with an entry point and one without work the same.
        options.push("--entrypoint=etcd".to_owned());
    }
    options.push(image.to_owned());
    options.extend(params.run_cmd.iter().cloned());
    options.push(format!("--config-file={}", context.config_path().display()));
    options.extend(params.run_cmd_opts.iter().cloned());
    options
}

#[cfg(test)]
#[path = "container/tests.rs"]
mod tests;
