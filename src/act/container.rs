//! Starts etcd's container from a configuration that says how.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use super::Error;
use crate::agent::context::Context;
use crate::data_dir;
use crate::decide::plan::RunMode;
use crate::etcd::config;
use crate::notes;
use crate::podman;

/// How long podman may take to start a container whose image is there.
const RUN_TIMEOUT: Duration = Duration::from_secs(60);

/// Writes the configuration for `mode` and runs the container.
pub(super) fn run(context: &Context, mode: &RunMode) -> Result<(), Error> {
    let params = &context.params;
    have_image(context)?;
    let text = config::render(&context.settings(), mode);
    write_config(context, &text)?;
    podman::run(&arguments(context), context.deadline.at_most(RUN_TIMEOUT))?;
    log::info!("container '{}' runs from {}", params.name, params.image);
    Ok(())
}

/// Ends etcd, by podman or without it: a podman that hangs, or that has lost a process which lives, must not keep the
/// stop from its end.
pub(super) fn stop(context: &Context, grace: Duration) -> Result<(), Error> {
    let stopped = podman::stop(&context.params.name, grace);
    if let Err(error) = &stopped {
        log::warn!("{error}; ending etcd's process without podman");
    }
    let ended = data_dir::end_holders(&context.params.data_dir, context.deadline.at_most(grace))?;
    if ended > 0 {
        log::warn!("{ended} etcd process that podman did not end was ended");
    }
    Ok(())
}

/// Takes the force out of the configuration.
pub(super) fn settle_config(context: &Context) -> Result<(), Error> {
    let path = context.config_path();
    let text = std::fs::read_to_string(&path).map_err(|source| file_error(&path, source))?;
    write_config(context, &config::settled(&text))
}

fn write_config(context: &Context, text: &str) -> Result<(), Error> {
    let path = context.config_path();
    notes::replace(&path, text.as_bytes(), 0o600).map_err(|source| file_error(&path, source))
}

fn file_error(path: &Path, source: std::io::Error) -> Error {
    Error::File { path: path.display().to_string(), source }
}

fn have_image(context: &Context) -> Result<(), Error> {
    let image = &context.params.image;
    if podman::has_image(image)? {
        return Ok(());
    }
    if !context.params.allow_pull {
        return Err(Error::Unusable(format!("image {image} is not on this node: type 'podman pull {image}'")));
    }
    log::info!("pulling {image}");
    podman::pull(image, context.deadline.left()).map_err(|error| {
        // podman's own words are long, and Pacemaker cuts an exit reason after 127 characters.
        log::error!("{error}");
        Error::Unusable(format!("image {image} is not here and cannot be pulled: type 'podman pull {image}'"))
    })
}

fn arguments(context: &Context) -> Vec<String> {
    let params = &context.params;
    let mut args: Vec<String> =
        ["--replace", "--network=host", "--security-opt=label=disable"].map(str::to_owned).to_vec();
    args.push(format!("--name={}", params.name));
    if params.oom != 0 {
        args.push(format!("--oom-score-adj={}", params.oom));
    }
    args.push(format!("--volume={0}:{0}", params.data_dir.display()));
    args.extend(certificate_dirs(context).into_iter().map(|dir| format!("--volume={dir}:{dir}:ro")));
    args.extend(params.run_opts.iter().cloned());
    args.push(params.image.clone());
    args.push("etcd".to_owned());
    args.push(format!("--config-file={}", context.config_path().display()));
    args
}

/// The directories that hold etcd's certificates, at the same place inside: etcd reads renewed files by itself.
fn certificate_dirs(context: &Context) -> BTreeSet<String> {
    let params = &context.params;
    [&params.trusted_ca_file, &params.cert_file, &params.key_file, &params.peer_cert_file, &params.peer_key_file]
        .into_iter()
        .filter_map(|file| file.parent())
        .map(|dir| dir.display().to_string())
        .collect()
}
