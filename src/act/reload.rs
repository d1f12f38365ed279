//! `reload-agent`: parameters that change without a restart. Most of them are read anew by every action anyway.

use crate::podman::process;
use crate::resource::context::Context;

use super::Error;

/// Applies what a running etcd has of the reloadable parameters.
pub fn reload(context: &Context) -> Result<(), Error> {
    let Some(process) = process::remembered(&context.process_path) else { return Ok(()) };
    let score = context.params.oom;
    process.set_oom_score(score).map_err(|source| Error::File { path: format!("oom_score_adj={score}"), source })
}
