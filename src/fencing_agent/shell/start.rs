//! The start before the loop. Every possible refusal comes before the device is opened.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signalfd::SignalFd;
use tokio::sync::mpsc::unbounded_channel;

use super::feeder::{Feeder, is_socket, wanted};
use super::grpc::hub::Hub;
use super::grpc::service;
use super::keeper::Keeper;
use super::kubernetes::Kubernetes;
use super::lists::Lists;
use super::network::{self, Networks};
use super::place::{Armed, Kept, make};
use super::report::Report;
use super::run::alarm::Alarm;
use super::run::{Shell, Work};
use super::seal::Sealer;
use super::state::Writer;
use crate::adapters::chronicle::Chronicle;
use crate::adapters::command::Programs;
use crate::adapters::watchdog;
use crate::adapters::watchdog::refusal::Refusal as OfTheDevice;
use crate::fencing_agent::config::refusal::Refusal;
use crate::fencing_agent::config::{Config, Environment, key};
use crate::fencing_agent::core::{self, Agent, OnQuorumLoss, Settings};
use crate::os::{clock, daemon, proc};

/// The paths of the configuration and of the agent's directories.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) config: PathBuf,
    pub(crate) run_dir: PathBuf,
    pub(crate) state_dir: PathBuf,
}

/// The values that the process passes to the agent.
#[derive(Debug)]
pub(crate) struct Given {
    pub(crate) places: Places,
    pub(crate) environment: Environment,
    pub(crate) service: Option<OsString>,
    pub(crate) signals: SignalFd,
}

/// An agent that is ready to run, with the socket for local clients.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) shell: Shell,
    pub(crate) hub: Hub,
    pub(crate) listener: std::os::unix::net::UnixListener,
}

/// Prepares everything that the agent needs, and starts its threads. Does not start the main loop. Must be called inside a tokio runtime.
pub(crate) fn start(given: Given) -> Result<Started, Refusal> {
    let Given { places, environment, service, signals } = given;
    for path in [&places.run_dir, &places.state_dir] {
        make(path).map_err(|source| Refusal::Place { path: path.clone(), source })?;
    }
    let kept = Kept::in_dir(&places.state_dir);
    let (config, stale) = read(&places.config, environment, &kept)?;
    let secret = key::read(&config.key_file)?;
    let own = config.own_addresses();
    let interfaces = network::own_interfaces(&own)?;
    let left_running = check_watchdog(&config, &places.run_dir)?;
    // The socket comes first, because two agents with different addresses would feed one device.
    let listener = service::listen(&config.socket, config.socket_group.as_deref())?;
    let sockets = network::bind(&own)?;
    let place = |source| Refusal::Place { path: places.state_dir.clone(), source };
    let number = kept.take_number().map_err(place)?;
    let mut sealer = Sealer::new(&secret, &config.group, &config.node, number).ok_or(Refusal::Random)?;
    sealer.list(config.members.keys().map(String::as_str));
    let thread = |source| Refusal::Thread { source };
    let programs = Programs::default();
    let chronicle = Chronicle::start(programs.clone()).map_err(thread)?;
    if let Some(why) = stale {
        chronicle.warn(format!("the list of members is the last one that was read: {why}"));
    }
    if let Some(reason) = kept.take_unfed() {
        chronicle.warn(format!("last boot ended unfed: {reason}"));
    }
    let (reports, reported) = unbounded_channel();
    let terminate = reports.clone();
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || while daemon::wait_for_end(&signals).is_ok() && terminate.send(Report::Terminate).is_ok() {})
        .map_err(thread)?;
    let armed = Armed::in_dir(&places.run_dir);
    let kubernetes = config.kubernetes.as_ref().map(|asked| Kubernetes::start(asked, &reports));
    let kubernetes = kubernetes.transpose().map_err(thread)?;
    let feeder = Feeder::start(config.watchdog.clone(), armed, programs, reports).map_err(thread)?;
    let keeper = Keeper::start(kept).map_err(thread)?;
    keeper.keep(config.members.clone());
    let now = Duration::from_nanos(clock::boot_nanoseconds());
    let agent = Agent::new(now, settings(&config, number, left_running));
    let hub = Hub::default();
    let shell = Shell {
        lists: Lists::new(&config),
        writer: Writer::new(),
        kubernetes,
        config,
        run_dir: places.run_dir,
        agent,
        sealer,
        networks: Networks::new(sockets).map_err(thread)?,
        alarm: Alarm::new().map_err(thread)?,
        interfaces,
        feeder,
        reports: reported,
        hub: hub.clone(),
        keeper,
        chronicle,
        service,
        work: Work::default(),
    };
    Ok(Started { shell, hub, listener })
}

/// Reads the configuration. If there is no list of members to read, uses the list that was last written to disk, and also returns the
/// reason. An API server that refuses this account or this node is a refusal, whatever is on disk.
fn read(file: &Path, environment: Environment, kept: &Kept) -> Result<(Config, Option<Refusal>), Refusal> {
    let why = std::cell::Cell::new(None);
    let config = Config::read_with(file, environment, |refusal| match kept.members() {
        Some(members) if refusal.is_without_list() => {
            why.set(Some(refusal));
            Ok(members)
        }
        _ => Err(refusal),
    })?;
    Ok((config, why.take()))
}

/// Checks that the watchdog can be used, without opening it. Returns whether an earlier agent has left it running.
pub(crate) fn check_watchdog(config: &Config, run_dir: &Path) -> Result<bool, Refusal> {
    if config.on_quorum_loss != OnQuorumLoss::Watchdog {
        return Ok(false);
    }
    let device = &config.watchdog.device;
    if is_socket(device) {
        let marker = device.with_extension("active");
        // The marker also exists while a multiplexer has clients.
        if !proc::listens_at(device) {
            let is_marked = marker.exists();
            return Err(if is_marked { Refusal::Marked { marker } } else { Refusal::NoMux { socket: device.clone() } });
        }
        return Ok(false);
    }
    let examined = watchdog::examine(wanted(&config.watchdog))?;
    // The kernel has no data about a FIFO.
    Ok(examined.is_running().unwrap_or_else(|| Armed::in_dir(run_dir).read().is_some()))
}

/// Checks the watchdog as [`check_watchdog`] does. It is no fault if a running agent has the device open.
pub(crate) fn check_watchdog_of_another(config: &Config, run_dir: &Path) -> Result<(), Refusal> {
    match check_watchdog(config, run_dir) {
        Err(Refusal::Device(OfTheDevice::Held { holder, .. })) if holder.name == "fencing-agent" => Ok(()),
        checked => checked.map(drop),
    }
}

fn settings(config: &Config, number: u64, left_running: bool) -> Settings {
    Settings {
        node: config.node.as_str().into(),
        number,
        members: config.members.keys().map(|name| name.as_str().into()).collect(),
        networks: config.own_addresses().len(),
        network_rule: config.networks,
        on_quorum_loss: config.on_quorum_loss,
        quorum: config.quorum,
        tie_breaker: config.tie_breaker,
        watchdog: core::Watchdog {
            device: config.watchdog.device.display().to_string(),
            timeout: config.watchdog.timeout,
            left_running,
        },
        timing: config.timing,
        lifeguard: config.lifeguard,
        adaptive_threshold: config.adaptive_threshold,
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::adapters::kubernetes::kubeconfig;
    use crate::adapters::kubernetes::nodes::stand_in::StandIn;
    use crate::fencing_agent::config::{EXAMPLE, Members};

    /// Writes the example configuration to `file`, with `top` before it and `list` in place of its table of members.
    fn write(file: &Path, top: &str, list: &str) {
        let (head, tail) = EXAMPLE.split_once("[members]\n").unwrap();
        let tail = tail.split_once("\n\n").unwrap().1;
        std::fs::write(file, format!("{top}{head}{list}\n{tail}")).unwrap();
    }

    /// Writes a list of three members to disk, as an earlier start does, and returns it.
    fn keep(kept: &Kept) -> Members {
        let addresses = ["192.0.2.1", "192.0.2.2", "192.0.2.3"].map(|text| vec![text.parse().unwrap()]);
        let members: Members = ["node1", "node2", "node3"].map(str::to_owned).into_iter().zip(addresses).collect();
        kept.keep_members(&members).unwrap();
        members
    }

    /// Asserts that a start uses the list of members that was last written to disk if it cannot read the present list. Without a list the
    /// agent would not know the quorum.
    #[test]
    fn a_list_that_cannot_be_read_is_the_last_one_that_was() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config");
        let list = dir.path().join("none");
        write(&file, &format!("members_file = '{}'\n", list.display()), "");
        let kept = Kept::in_dir(dir.path());
        let refused = read(&file, Environment::default(), &kept).unwrap_err().to_string();
        assert!(refused.contains("the list of members cannot be read"), "{refused}");
        let members = keep(&kept);
        let (config, why) = read(&file, Environment::default(), &kept).unwrap();
        assert_eq!(config.members, members);
        assert!(why.is_some());
        for broken in ["node1 = ", "node1 = 'host1'", "'node 1' = '192.0.2.1'"] {
            std::fs::write(&list, broken).unwrap();
            let (config, why) = read(&file, Environment::default(), &kept).unwrap();
            assert!(config.members == members && why.is_some(), "{broken}");
        }
    }

    /// Asserts that the last list is used while the API server does not serve, and not if it refuses this account or this node.
    #[test]
    fn the_last_list_is_no_way_around_a_refusal_of_the_api_server() {
        let (dir, api) = (tempfile::tempdir().unwrap(), StandIn::start(TcpListener::bind("127.0.0.1:0").unwrap()));
        let file = dir.path().join("config");
        let kubeconfig = kubeconfig::for_server(&dir, &api.server);
        write(&file, "", &format!("[kubernetes]\nkubeconfig = '{}'\n", kubeconfig.display()));
        let kept = Kept::in_dir(dir.path());
        let members = keep(&kept);
        let refused = || read(&file, Environment::default(), &kept).unwrap_err().to_string();
        for (status, typed) in [(401, "a token or certificate"), (403, "get, list and watch"), (404, "answers 404")] {
            api.refuse(Some(status));
            assert!(refused().contains(typed), "{}", refused());
        }
        for status in [429, 503] {
            api.refuse(Some(status));
            let (config, why) = read(&file, Environment::default(), &kept).unwrap();
            assert!(config.members == members && why.is_some(), "{status}");
        }
        api.refuse(None);
        assert!(refused().contains("there is no Node node1"), "{}", refused());
        api.put("node1", "uid", "192.0.2.1", "others");
        assert!(refused().contains("'kubectl label node node1 "), "{}", refused());
        kubeconfig::for_server(&dir, "http://127.0.0.1:1");
        let (config, why) = read(&file, Environment::default(), &kept).unwrap();
        assert!(config.members == members && why.is_some());
    }
}
