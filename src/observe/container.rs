//! Whether etcd's container runs: a look at its process first, podman only where that says nothing.

use crate::agent::context::Context;
use crate::decide::fact::Fact;
use crate::decide::snapshot::{Container, Etcd};
use crate::etcd::{config, log_line};
use crate::podman::process;
use crate::podman::{self, State};

pub(super) fn observe(context: &Context, own_etcd: &Fact<Etcd>, data_in_use: &Fact<bool>) -> Fact<Container> {
    let text = std::fs::read_to_string(context.config_path()).unwrap_or_default();
    let forces_new_cluster = config::forces_new_cluster(&text);
    let known = |running, exit| Fact::Known(Container { running, exit, forces_new_cluster });
    if process::remembered(&context.process_path).is_some() {
        return known(true, None);
    }
    // podman is busy for a while with what is left of a container that a stop has ended.
    if process::was_ended(&context.process_path) && own_etcd.is_absent() && *data_in_use == Fact::Known(false) {
        return known(false, None);
    }
    // An etcd that kubelet runs may answer on our ports, with our data.
    let answers = own_etcd.known().is_some() && !process::a_pod_has_open(context.data_dir());
    let container = match podman::inspect(&context.params.name) {
        Ok(container) => container,
        // Whoever answers or holds the data is an etcd, also where podman does not answer.
        Err(_) if answers || *data_in_use == Fact::Known(true) => return known(true, None),
        Err(error) => return Fact::Unknown(error.to_string()),
    };
    if let Some(container) = container.as_ref().filter(|container| container.state.running) {
        // Started before this boot's record of it, as by the shell agent.
        process::remember(&context.process_path, container.state.pid);
        return known(true, None);
    }
    // podman may have lost a process that still holds the data.
    let Fact::Known(holds) = *data_in_use else { return Fact::Unknown(data_in_use.why_unknown().to_owned()) };
    match container {
        _ if answers || holds => known(true, None),
        None => Fact::Absent,
        Some(container) => known(false, Some(exit_words(context, &container.state))),
    }
}

fn exit_words(context: &Context, state: &State) -> String {
    let words = podman::last_words(&context.params.name).as_deref().and_then(log_line::most_telling);
    let words = words.or_else(|| (!state.error.is_empty()).then(|| state.error.clone()));
    format!("exit code {}: {}", state.exit_code, words.unwrap_or_else(|| "it said nothing".to_owned()))
}
