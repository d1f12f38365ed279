//! `reload-agent`: the parameters that a running etcd can adopt. The next action reads the others.

use super::image;
use crate::adapters::podman::process;
use crate::agent::resource::context::Context;

/// Applies changed parameters to a running etcd. If the kernel refuses a new OOM score, only logs the error, because a restarted etcd would
/// get the old score, too.
pub fn reload(context: &Context) {
    let Some(process) = process::remembered(&context.process_path) else { return };
    image::prepare(context);
    let score = context.params.oom;
    if let Err(error) = process.set_oom_score(score) {
        log::warn!("etcd's OOM score cannot be set to oom_score_adj={score}: {error}");
    }
}
