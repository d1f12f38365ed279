//! Ends etcd: podman first, and the process itself where podman hangs or has lost sight of it.

use std::time::Duration;

use super::Error;
use crate::agent::context::Context;
use crate::data_dir;
use crate::podman;
use crate::podman::process;

/// Stops the container: SIGTERM, and SIGKILL after `grace`; with `force_kill`, at once.
pub(super) fn stop(context: &Context, grace: Duration) -> Result<(), Error> {
    let grace = if context.params.force_kill { Duration::ZERO } else { grace };
    let stopped = podman::stop(&context.params.name, grace);
    if let Err(error) = &stopped {
        log::warn!("{error}; ending etcd's process without podman");
    }
    // kubelet's own etcd is not ours to end.
    if process::a_pod_has_open(context.data_dir()) {
        return Ok(());
    }
    let ended = data_dir::end_holders(context.data_dir(), context.deadline.at_most(grace))?;
    if ended > 0 {
        log::warn!("{ended} etcd process that podman did not end was ended");
    }
    Ok(())
}
