//! Observes whether etcd's container runs: by its process first, and by podman only if that is inconclusive.

use crate::adapters::etcd::{config, log_line};
use crate::adapters::podman::process;
use crate::adapters::podman::{self, State};
use crate::agent::resource::context::Context;
use crate::base::Fact;
use crate::decide::evidence::{Container, Etcd, Found};

/// Exit code of a Go program, such as etcd, that panicked.
const BREAKDOWN: i32 = 2;

pub(super) fn observe(context: &Context, own_etcd: &Fact<Etcd>, data_in_use: &Fact<bool>) -> Fact<Container> {
    let text = context.config_text().unwrap_or_default();
    let forces_new_cluster = config::forces_new_cluster(&text);
    let known = |running| Fact::Known(Container { running, forces_new_cluster, ..Container::default() });
    if process::remembered(&context.process_path).is_some() {
        return known(true);
    }
    // podman is busy for a while with the remains of a container that a stop has ended.
    if process::was_ended(&context.process_path) && own_etcd.is_absent() && *data_in_use == Fact::Known(false) {
        return known(false);
    }
    // An etcd of kubelet's may answer on our ports, with our data.
    let answers = own_etcd.known().is_some() && !process::a_pod_has_open(context.data_dir());
    let container = match podman::inspect(&context.programs, &context.params.name) {
        Ok(container) => container,
        // A process that answers or holds the data is an etcd, even if podman does not answer.
        Err(_) if answers || *data_in_use == Fact::Known(true) => return known(true),
        Err(error) => return Fact::Unknown(error.to_string()),
    };
    if let Some((container, pid)) = container.as_ref().and_then(|container| Some((container, container.alive()?))) {
        // It was started before this boot's record of it, as by the shell agent, or restarted behind Pacemaker.
        let found = Some(Found { id: container.id.clone(), pid });
        return Fact::Known(Container { running: true, found, forces_new_cluster, ..Container::default() });
    }
    // podman may have lost a process that still holds the data.
    let Fact::Known(holds) = *data_in_use else { return Fact::Unknown(data_in_use.why_unknown().to_owned()) };
    match container {
        _ if answers || holds => known(true),
        None => Fact::Absent,
        Some(container) => Fact::Known(ended(context, &container.state, forces_new_cluster)),
    }
}

/// Returns the facts of a container that does not run, from podman's state and etcd's last log lines.
fn ended(context: &Context, state: &State, forces_new_cluster: bool) -> Container {
    let log = podman::last_words(&context.programs, &context.params.name).unwrap_or_default();
    let broke_down = state.exit_code == BREAKDOWN && log_line::breaks_down_over_its_data(&log);
    Container {
        running: false,
        exit: Some(exit_words(&log, state)),
        broke_down_at: state.finished_at.clone().filter(|_| broke_down),
        removed: state.exit_code == 0 && log_line::tells_of_a_removal(&log),
        found: None,
        forces_new_cluster,
    }
}

fn exit_words(log: &str, state: &State) -> String {
    let words = log_line::most_telling(log);
    let words = words.or_else(|| (!state.error.is_empty()).then(|| state.error.clone()));
    format!("exit code {}: {}", state.exit_code, words.unwrap_or_else(|| "it said nothing".to_owned()))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a child to look at")]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::adapters::command::fake_program;

    fn of_test(dir: &std::path::Path) -> Context {
        let place = dir.display().to_string();
        let files = [("trusted_ca_file", "/c/ca.crt"), ("cert_file", "/c/etcd.crt"), ("key_file", "/c/etcd.key")];
        let config = dir.join("config").display().to_string();
        let more = [("image", "etcd:test"), ("data_dir", &place), ("config_location", &config)];
        Context::of_test(dir, &[&files[..], &more].concat())
    }

    /// Starts a process with a root directory of its own. The agent takes such a process for one in a container without control groups.
    /// This needs root.
    fn contained() -> std::process::Child {
        let child = std::process::Command::new("chroot").args(["/usr", "/bin/sleep", "100"]).spawn().unwrap();
        crate::os::clock::sleep(Duration::from_millis(300));
        child
    }

    /// Asserts that etcd's new process is found after another program has run `podman restart`.
    #[test]
    fn another_process_of_the_container_is_found_in_the_place_of_the_one_that_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let mut context = of_test(dir.path());
        let mut gone = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        process::remember(&context.process_path, i32::try_from(gone.id()).unwrap());
        let found =
            |context: &Context| observe(context, &Fact::Absent, &Fact::Known(false)).known().unwrap().found.clone();
        assert_eq!(found(&context), None, "/proc tells");
        gone.kill().unwrap();
        gone.wait().unwrap();
        let podman = |pid: i32| {
            let state = format!(r#""Running":true,"Status":"running","ExitCode":0,"Pid":{pid}"#);
            fake_program(dir.path(), "podman", &format!(r#"echo '{{"id":"c1","state":{{{state}}},"labels":{{}}}}'"#))
        };
        let mut inside = contained();
        let pid = i32::try_from(inside.id()).unwrap();
        context.programs = podman(pid);
        assert_eq!(found(&context), Some(Found { id: "c1".to_owned(), pid }));
        inside.kill().unwrap();
        inside.wait().unwrap();
        for pid in [pid, 0, 1, i32::try_from(std::process::id()).unwrap()] {
            context.programs = podman(pid);
            let seen = observe(&context, &Fact::Absent, &Fact::Known(false));
            assert!(seen.known().is_some_and(|container| !container.running), "{pid} is none of its own: {seen:?}");
        }
    }

    /// Asserts that an observation writes no file if only podman knows the process. `tandem explain` observes too, and must not change
    /// anything.
    #[test]
    fn a_container_that_only_podman_knows_is_found_and_not_written_down() {
        let dir = tempfile::tempdir().unwrap();
        let mut context = of_test(dir.path());
        let mut inside = contained();
        let me = inside.id();
        let state = format!(r#"{{"Running":true,"Status":"running","ExitCode":0,"Pid":{me}}}"#);
        context.programs = fake_program(dir.path(), "podman", &format!(r#"echo '{{"id":"c0ffee","state":{state}}}'"#));
        let names = || {
            let mut names: Vec<_> =
                std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let before = names();
        let found = observe(&context, &Fact::Absent, &Fact::Known(false));
        let found = found.known().unwrap();
        assert!(
            found.running && found.found.as_ref().is_some_and(|found| u32::try_from(found.pid) == Ok(me)),
            "{found:?}"
        );
        assert_eq!(names(), before);
        assert!(process::remembered(&context.process_path).is_none());
        let ended = r#"{"Running":false,"Status":"exited","ExitCode":2,"FinishedAt":"2026-11-22T10:00:00Z"}"#;
        let script = format!(
            r#"case $1 in logs) printf 'panic: freepages\n\ngoroutine 1 [running]:\n' ;; *) echo '{{"id":"c0ffee","state":{ended}}}' ;; esac"#
        );
        context.programs = fake_program(dir.path(), "podman", &script);
        let found = observe(&context, &Fact::Absent, &Fact::Known(false));
        let found = found.known().unwrap();
        assert_eq!(found.exit.as_deref(), Some("exit code 2: panic: freepages"));
        assert_eq!((found.running, found.broke_down_at.as_deref()), (false, Some("2026-11-22T10:00:00Z")));
        // With another exit code, etcd exited by its own decision.
        context.programs = fake_program(dir.path(), "podman", &script.replace(r#""ExitCode":2"#, r#""ExitCode":1"#));
        let found = observe(&context, &Fact::Absent, &Fact::Known(false));
        assert_eq!(found.known().unwrap().broke_down_at, None);
        assert_eq!(names(), before);
        inside.kill().unwrap();
        inside.wait().unwrap();
    }

    #[test]
    fn podman_is_not_asked_for_what_a_stop_ended_unless_an_etcd_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().display().to_string();
        let files = [("trusted_ca_file", "/c/ca.crt"), ("cert_file", "/c/etcd.crt"), ("key_file", "/c/etcd.key")];
        let parameters = [&files[..], &[("image", "etcd:test"), ("data_dir", &place)]].concat();
        let mut context = Context::of_test(dir.path(), &parameters);
        let asked = dir.path().join("asked");
        let script = format!("touch {}; echo 'Error: no such container etcd' >&2; exit 125", asked.display());
        context.programs = fake_program(dir.path(), "podman", &script);
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        process::remember(&context.process_path, i32::try_from(child.id()).unwrap());
        let reaper = std::thread::spawn(move || child.wait());
        assert!(process::end_remembered(&context.process_path, Duration::ZERO));
        reaper.join().unwrap().unwrap();

        let not_running = Container::default();
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
