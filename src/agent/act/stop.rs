//! Ends etcd: its process directly if that is known, because podman needs several tenths of a second for the same
//! signals. Otherwise podman ends it, and in the end any process that holds the data is ended.

use std::time::Duration;

use super::Error;
use crate::adapters::data_dir;
use crate::adapters::podman;
use crate::adapters::podman::process;
use crate::agent::resource::context::Context;

/// Stops etcd's container by SIGTERM, and by SIGKILL after `grace`. With the parameter `force_kill` it sends SIGKILL at once.
pub(super) fn stop(context: &Context, grace: Duration) -> Result<(), Error> {
    let grace = if context.params.force_kill { Duration::ZERO } else { grace };
    if !process::end_remembered(&context.process_path, grace) {
        podman::stop_surely(&context.programs, &context.container_lock, &context.params.name, grace);
    }
    // kubelet's own etcd is not the agent's to end.
    if process::a_pod_has_open(context.data_dir()) {
        return Ok(());
    }
    let ended =
        data_dir::end_holders(context.data_dir(), context.deadline.at_most(grace), &process::is_in_a_container)?;
    if ended > 0 {
        log::warn!("etcd's processes that podman did not end were ended: {ended}");
    }
    Ok(())
}
