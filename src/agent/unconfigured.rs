//! A stop and a probe with wrong parameters, which use what is known of etcd without them: the record of its process,
//! the name of its container, and the data dir in the configuration with which it was started.

mod claim;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::adapters::command::Programs;
use crate::adapters::data_dir;
use crate::adapters::etcd::config;
use crate::adapters::ocf::env::Env;
use crate::adapters::podman::container_lock::ContainerLock;
use crate::adapters::podman::{self, process};
use crate::agent::resource::params;
use crate::base::Fact;
use crate::os::beneath::Dir;
use crate::os::clock;
use crate::os::proc;
use crate::records::{own_dir, state_file};

pub(super) use self::claim::give_up_the_claim;

/// Time that etcd has to end after SIGTERM, before the agent kills it.
const GRACE: Duration = Duration::from_secs(8);
/// Time that the agent waits for etcd's end after it has signalled etcd's processes and, if necessary, killed them.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time that another action of the agent, or the podman of a killed action, has to end before the agent ends it.
const PATIENCE_WITH_AN_EARLIER_ACTION: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Facts about this node's etcd that are known although the parameters are not valid.
struct Place<'a> {
    programs: &'a Programs,
    name: String,
    process: PathBuf,
    container_lock: ContainerLock,
    /// Data dir and ports with which etcd was started; `None` if this agent has started no etcd here.
    started: Option<config::Place>,
    /// Function that returns whether a process is in a container. The agent ends only such a process.
    is_in_a_container: fn(i32) -> bool,
}

impl<'a> Place<'a> {
    fn of(env: &Env, programs: &'a Programs) -> Self {
        let location = Dir::open(&params::config_location(env));
        let text =
            location.and_then(|location| own_dir::text(&location, config::FILE, config::LIMIT)).unwrap_or_default();
        Self {
            programs,
            name: params::container_name(env),
            process: state_file::process_path(&env.volatile_dir(), env.resource()),
            container_lock: ContainerLock::at(state_file::container_lock_path(&env.volatile_dir(), env.resource())),
            started: config::place(&text),
            is_in_a_container: process::is_in_a_container,
        }
    }

    /// Returns the data dir of the agent's etcd; `None` if it is unknown, or if an etcd of kubelet has it open.
    fn data_dir(&self) -> Option<&Path> {
        let data_dir = self.started.as_ref().map(|started| started.data_dir.as_path());
        data_dir.filter(|data_dir| !process::a_pod_has_open(data_dir))
    }

    fn is_gone(&self) -> Result<bool, String> {
        let is_open = self.data_dir().map_or(Ok(false), data_dir::is_open).map_err(|error| error.to_string())?;
        if is_open || process::remembered(&self.process).is_some() {
            return Ok(false);
        }
        let container = podman::inspect(self.programs, &self.name).map_err(|error| error.to_string())?;
        Ok(container.is_none_or(|container| container.alive().is_none()))
    }

    /// Waits for the end of an earlier action and takes its lock. The earlier action could otherwise start etcd after this action has
    /// checked that none runs.
    fn await_its_turn(&self) -> Result<(), String> {
        let mut anothers = self.container_lock.await_it(PATIENCE_WITH_AN_EARLIER_ACTION);
        if anothers == Fact::Known(true) {
            self.container_lock
                .end_others()
                .map_err(|error| format!("see 'ps -C podman': an earlier action does not end: {error}"))?;
            anothers = self.container_lock.take();
        }
        match anothers {
            Fact::Known(true) => Err("see 'ps -C podman': an earlier action still changes the container".to_owned()),
            Fact::Unknown(why) => Err(format!("see 'podman ps --all': cannot tell whether etcd runs: {why}")),
            Fact::Known(false) | Fact::Absent | Fact::NotAsked => Ok(()),
        }
    }

    /// Returns whether no process listens on etcd's client ports. If podman does not answer, this is the only sign that etcd has ended.
    /// Returns false if the ports are unknown.
    fn is_silent(&self) -> bool {
        let taken = proc::listening_ports();
        self.started.as_ref().is_some_and(|started| started.client_ports.iter().all(|port| !taken.contains(port)))
    }
}

/// Returns whether no etcd of the agent runs on this node. An error means that this is unknown.
pub(super) fn is_gone(env: &Env, programs: &Programs) -> Result<bool, String> {
    let place = Place::of(env, programs);
    match place.container_lock.await_it(PATIENCE_WITH_AN_EARLIER_ACTION) {
        Fact::Known(false) => place.is_gone(),
        _ => Ok(false),
    }
}

/// Stops etcd without valid parameters, as a normal stop does. Returns the reason as an error if etcd may be alive.
pub(super) fn stop(env: &Env, programs: &Programs) -> Result<(), String> {
    stop_at(&Place::of(env, programs))
}

fn stop_at(place: &Place<'_>) -> Result<(), String> {
    place.await_its_turn()?;
    if place.is_gone() == Ok(true) {
        return Ok(());
    }
    log::warn!("etcd is stopped despite a wrong parameter");
    end(place);
    let began = Instant::now();
    loop {
        match place.is_gone() {
            Ok(true) => return Ok(()),
            Ok(false) if began.elapsed() < PATIENCE => clock::sleep(LOOK_EVERY),
            Ok(false) => {
                return Err("see 'podman ps' and 'podman kill': etcd is still running after SIGKILL".to_owned());
            }
            Err(_) if place.is_silent() && place.data_dir().is_some_and(is_free) => return Ok(()),
            Err(why) => return Err(format!("see 'podman ps --all': cannot tell whether etcd runs: {why}")),
        }
    }
}

fn is_free(data_dir: &Path) -> bool {
    data_dir::is_open(data_dir).is_ok_and(|is_open| !is_open)
}

/// Ends etcd by each available means in turn, because any of them may fail.
fn end(place: &Place<'_>) {
    if !process::end_remembered(&place.process, GRACE) {
        podman::stop_surely(place.programs, &place.container_lock, &place.name, GRACE);
    }
    match place.data_dir().map(|data_dir| data_dir::end_holders(data_dir, GRACE, &place.is_in_a_container)) {
        Some(Ok(ended)) if ended > 0 => log::warn!("etcd's processes that podman did not end were ended: {ended}"),
        Some(Err(error)) => log::warn!("the processes that hold etcd's data cannot be ended: {error}"),
        _ => {}
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a child to look at")]
mod tests {
    use super::*;
    use crate::adapters::command::fake_program;

    /// Returns a node on which the agent has started an etcd. The script `podman` replaces podman there.
    fn node(dir: &Path, podman: &str) -> (Env, Programs) {
        let snap = dir.join("member/snap");
        std::fs::create_dir_all(&snap).unwrap();
        std::fs::create_dir_all(dir.join("member/wal")).unwrap();
        std::fs::write(snap.join("db"), "").unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let lines =
            format!("data-dir: {:?}\nlisten-client-urls: \"https://0.0.0.0:{port}\"\n", dir.display().to_string());
        std::fs::write(dir.join(config::FILE), lines).unwrap();
        let place = dir.display().to_string();
        let pairs = [("HA_RSCTMP", place.as_str()), ("OCF_RESKEY_config_location", &place), ("OCF_RESKEY_oom", "much")];
        let env = Env::from_pairs(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
        (env, fake_program(dir, "podman", podman))
    }

    fn inspected(status: &str) -> String {
        inspected_with(status, 0)
    }

    fn inspected_with(status: &str, pid: u32) -> String {
        format!(
            r#"{{"id":"1","state":{{"Running":false,"Status":"{status}","ExitCode":0,"Error":"","Pid":{pid}}},"labels":{{}}}}"#
        )
    }

    /// Starts a process with a root directory of its own. The agent takes such a process for one in a container without control groups.
    /// This needs root.
    fn contained() -> std::process::Child {
        let child = std::process::Command::new("chroot").args(["/usr", "/bin/sleep", "100"]).spawn().unwrap();
        clock::sleep(Duration::from_millis(300));
        child
    }

    #[test]
    fn a_paused_container_is_none_that_has_ended() {
        let dir = tempfile::tempdir().unwrap();
        let mut inside = contained();
        let (paused, exited) = (inspected_with("paused", inside.id()), inspected("exited"));
        let stopped = dir.path().join("stopped").display().to_string();
        let podman = format!(
            "case $1 in stop) touch {stopped};; *) if [ -e {stopped} ]; then echo '{exited}'; else echo '{paused}'; fi;; esac"
        );
        let (env, programs) = node(dir.path(), &podman);
        assert_eq!(is_gone(&env, &programs), Ok(false));
        assert_eq!(stop(&env, &programs), Ok(()));
        assert!(Path::new(&stopped).exists() && is_gone(&env, &programs) == Ok(true));
        // A process that podman cannot end is reported.
        let deaf = tempfile::tempdir().unwrap();
        let (env, programs) = node(deaf.path(), &format!("case $1 in stop|kill) exit 125;; *) echo '{paused}';; esac"));
        assert!(stop(&env, &programs).is_err_and(|why| why.contains("etcd is still running after SIGKILL")));
        inside.kill().unwrap();
        inside.wait().unwrap();
        assert_eq!(stop(&env, &programs), Ok(()), "podman's record outlives the process");
    }

    #[test]
    fn a_process_that_podman_has_lost_is_ended_before_the_stop_succeeds() {
        let dir = tempfile::tempdir().unwrap();
        let exited = inspected("exited");
        let (env, programs) = node(dir.path(), &format!("echo '{exited}'"));
        assert_eq!(is_gone(&env, &programs), Ok(true));
        let database = dir.path().join("member/snap/db");
        let mut holder = std::process::Command::new("flock").arg(&database).args(["sleep", "100"]).spawn().unwrap();
        let began = Instant::now();
        while is_gone(&env, &programs) == Ok(true) && began.elapsed() < PATIENCE {
            clock::sleep(LOOK_EVERY);
        }
        assert_eq!(is_gone(&env, &programs), Ok(false), "the data are in use");
        assert!(stop(&env, &programs).is_err(), "a process of the host is none of ours");
        assert!(holder.try_wait().unwrap().is_none(), "it lives");
        let reaper = std::thread::spawn(move || holder.wait());
        let inside = Place { is_in_a_container: |_| true, ..Place::of(&env, &programs) };
        assert_eq!(stop_at(&inside), Ok(()));
        drop(inside);
        reaper.join().unwrap().unwrap();
        assert_eq!(is_gone(&env, &programs), Ok(true));
    }

    #[test]
    fn where_podman_does_not_answer_nobody_must_listen() {
        let dir = tempfile::tempdir().unwrap();
        let (env, programs) = node(dir.path(), "echo 'Error: the database is locked' >&2; exit 125");
        assert_eq!(stop(&env, &programs), Ok(()), "nothing listens, and nobody holds the data");
        assert!(is_gone(&env, &programs).is_err(), "a probe that cannot tell says so");
        let port = config::place(&std::fs::read_to_string(dir.path().join(config::FILE)).unwrap()).unwrap();
        let _listener = std::net::TcpListener::bind(("127.0.0.1", port.client_ports[0])).unwrap();
        assert!(stop(&env, &programs).is_err_and(|why| why.contains("cannot tell whether etcd runs")));
    }

    /// Asserts that, without a configuration file, only podman's answer decides whether etcd counts as running. A missing configuration
    /// file shows that the agent has never started an etcd on this node.
    #[test]
    fn without_a_configuration_podman_has_the_word() {
        let dir = tempfile::tempdir().unwrap();
        let (env, programs) = node(dir.path(), "echo 'Error: no such container etcd' >&2; exit 125");
        std::fs::remove_file(dir.path().join(config::FILE)).unwrap();
        assert_eq!(stop(&env, &programs), Ok(()));
        let mute = tempfile::tempdir().unwrap();
        let (env, programs) = node(mute.path(), "echo 'Error: the database is locked' >&2; exit 125");
        std::fs::remove_file(mute.path().join(config::FILE)).unwrap();
        assert!(stop(&env, &programs).is_err());
    }
}
