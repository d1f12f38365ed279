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

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a child to look at")]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::command::stand_in;

    #[test]
    fn podman_is_not_asked_for_what_a_stop_ended_unless_an_etcd_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().display().to_string();
        let files = [("trusted_ca_file", "/c/ca.crt"), ("cert_file", "/c/etcd.crt"), ("key_file", "/c/etcd.key")];
        let parameters = [&files[..], &[("image", "etcd:test"), ("data_dir", &place)]].concat();
        let context = Context::of_test(dir.path(), &parameters);
        let asked = dir.path().join("asked");
        let script = format!("touch {}; echo 'Error: no such container etcd' >&2; exit 125", asked.display());
        stand_in::put(dir.path(), "podman", &script);
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        process::remember(&context.process_path, i32::try_from(child.id()).unwrap());
        let reaper = std::thread::spawn(move || child.wait());
        assert!(process::end_remembered(&context.process_path, Duration::ZERO));
        reaper.join().unwrap().unwrap();

        let not_running = Container { running: false, exit: None, forces_new_cluster: false };
        let nobody = Fact::Known(false);
        assert_eq!(observe(&context, &Fact::Absent, &nobody), Fact::Known(not_running));
        assert!(!asked.exists(), "podman is busy with it");
        let held = observe(&context, &Fact::Absent, &Fact::Known(true));
        assert!(held.known().is_some_and(|container| container.running), "somebody holds the data: {held:?}");
        assert!(asked.exists());
        std::fs::remove_file(&asked).unwrap();
        assert_eq!(observe(&context, &Fact::Unknown("silent".to_owned()), &nobody), Fact::Absent);
        assert!(asked.exists(), "something listens, and podman is asked what");
    }
}
