//! `reload-agent`: what a running etcd itself can take of the parameters that changed. The next action reads the rest.

use super::image;
use crate::adapters::podman::process;
use crate::agent::resource::context::Context;

/// Applies it. A score that the kernel does not let this process set is no reason to restart etcd, which would run with the
/// same score then.
pub fn reload(context: &Context) {
    let Some(process) = process::remembered(&context.process_path) else { return };
    image::prepare(context);
    let score = context.params.oom;
    if let Err(error) = process.set_oom_score(score) {
        log::warn!("etcd's OOM score stays as it is: oom_score_adj={score}: {error}");
    }
}
