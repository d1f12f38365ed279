//! The records of a replaced container: the container itself, stopped and with its logs, and its configuration. They
//! help the operator to debug. A failure here does not prevent a start of etcd.

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, Header};

use crate::adapters::etcd::config;
use crate::adapters::podman;
use crate::agent::resource::context::Context;
use crate::agent::resource::deployment::SAVED_MANIFEST;
use crate::os::clock;
use crate::records::own_dir;

/// Name of the archive with the configuration of the last replaced container. It is next to etcd's present configuration.
pub(super) const CONFIGURATION: &str = "config-previous.tar.gz";

/// Renames the container that is being replaced to `<name>-previous`, and archives its configuration.
pub(super) fn keep_previous(context: &Context) {
    let name = &context.params.name;
    let previous = format!("{name}-previous");
    match podman::rename(&context.programs, &context.container_lock, name, &previous) {
        Ok(()) => log::info!("container '{name}' is replaced and kept as '{previous}'"),
        Err(error) => log::warn!("container '{name}' is replaced and cannot be kept as '{previous}': {error}"),
    }
    if let Err(why) = keep_configuration(context) {
        log::warn!("container '{name}' is replaced and its configuration cannot be kept: {why}");
    }
}

/// Archives etcd's configuration and the copy of the pod manifest. The registry's credentials are left out, because they do not belong in a
/// backup.
pub(super) fn keep_configuration(context: &Context) -> std::io::Result<()> {
    let location = &context.params.config_location;
    let texts = [(SAVED_MANIFEST, context.saved_manifest()), (config::FILE, context.config_text())];
    let texts: Vec<_> = texts.into_iter().filter_map(|(name, text)| Some((name, text.ok()?))).collect();
    if texts.is_empty() {
        return Ok(());
    }
    // The process writes to a file that it has created itself, because a name in this directory can lead anywhere.
    own_dir::replace_and_link(&context.open(location)?, CONFIGURATION, |file| {
        let mut archive = Builder::new(GzEncoder::new(file, Compression::default()));
        for (name, text) in texts {
            let mut header = Header::new_gnu();
            header.set_size(text.len() as u64);
            header.set_mode(0o600);
            header.set_mtime(clock::wall_seconds());
            let place = location.join(name);
            archive.append_data(&mut header, place.strip_prefix("/").unwrap_or(&place), text.as_bytes())?;
        }
        archive.into_inner()?.finish().map(drop)
    })
}
