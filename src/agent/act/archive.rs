//! What is kept of a container that another one replaces: the container itself, stopped and with its logs, and what it
//! was configured with. For whoever looks for a fault; a failure keeps nobody from starting etcd.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use crate::adapters::podman;
use crate::agent::resource::context::Context;
use crate::agent::resource::deployment::saved_manifest;

/// The configuration of the container that was replaced last, beside the present one.
const CONFIGURATION: &str = "config-previous.tar.gz";
const TAR_TAKES: Duration = Duration::from_secs(10);

/// Keeps the container as `<name>-previous`.
pub(super) fn keep_previous(context: &Context) {
    let name = &context.params.name;
    let previous = format!("{name}-previous");
    match podman::rename(&context.programs, &context.container_lock, name, &previous) {
        Ok(()) => log::info!("container '{name}' is replaced and kept as '{previous}'"),
        Err(error) => log::warn!("container '{name}' is replaced and cannot be kept as '{previous}': {error}"),
    }
    if let Err(why) = keep_configuration(context) {
        log::warn!("its configuration is not kept: {why}");
    }
}

/// The registry's credentials are not part of it: they have no place in a backup.
fn keep_configuration(context: &Context) -> Result<(), String> {
    let files: Vec<PathBuf> =
        [saved_manifest(&context.params), context.config_path()].into_iter().filter(|file| file.is_file()).collect();
    if files.is_empty() {
        return Ok(());
    }
    let archive = context.params.config_location.join(CONFIGURATION);
    let unfinished = archive.with_extension("new");
    let mut args = vec!["--create".to_owned(), "--gzip".to_owned(), format!("--file={}", unfinished.display())];
    args.push("--directory=/".to_owned());
    args.extend(files.iter().map(|file| file.display().to_string().trim_start_matches('/').to_owned()));
    let output = context.programs.run("tar", &args, TAR_TAKES).map_err(|error| error.to_string())?;
    if output.code != 0 {
        return Err(format!("tar failed ({}): {}", output.code, output.complaint()));
    }
    std::fs::set_permissions(&unfinished, std::fs::Permissions::from_mode(0o600)).map_err(|error| error.to_string())?;
    std::fs::rename(&unfinished, &archive).map_err(|error| error.to_string())
}
