//! What of the parameters this machine must hold true: the files can be read, podman is there.

use std::fs::File;
use std::path::Path;

use super::context::Context;
use super::params::Invalid;
use crate::command;
use crate::ocf::exit::Code;

/// Everything that can be checked without touching the cluster.
pub(super) fn validate(context: &Context) -> Result<(), Invalid> {
    for program in ["podman", "cibadmin", "crm_attribute", "attrd_updater"] {
        if command::find(program).is_none() {
            return Err(Invalid::here(format!(
                "{program} is not installed: install the packages podman and pacemaker"
            )));
        }
    }
    certificates(context)
}

/// The certificates can be read. A file can be put right at any moment, so this is worth another try.
pub(super) fn certificates(context: &Context) -> Result<(), Invalid> {
    context.deployment.files.iter().try_for_each(|(name, path)| readable_pem(name, path))
}

fn readable_pem(name: &str, path: &Path) -> Result<(), Invalid> {
    let wrong = |why: String| Invalid {
        code: Code::Generic,
        sentence: format!("{name}={} {why}: put a PEM file there, readable by root", path.display()),
    };
    let unreadable = |error: std::io::Error| wrong(format!("cannot be read ({})", error.kind()));
    let text = File::open(path).and_then(std::io::read_to_string).map_err(unreadable)?;
    if text.contains("-----BEGIN ") { Ok(()) } else { Err(wrong("is not a PEM file".to_owned())) }
}
