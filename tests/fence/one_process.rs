//! Both agents as functions of one process: several actions at the same time, each with an end of its own, and no
//! change of the process.

#![allow(clippy::unwrap_used, reason = "what fails here ends the test")]

use std::net::TcpListener;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use nix::sys::signal::SigSet;
use tandem::adapters::command::Programs;
use tandem::adapters::ocf::env::Env;
use tandem::adapters::ocf::exit::{Answered, Code};
use tandem::adapters::redfish::session::SessionHandle;
use tandem::agent;
use tandem::decide::Request;
use tandem::fence::act::Ending;
use tandem::fence::config::{Action, Config, Environment};
use tandem::fence::{self, Error, input};
use tandem::os::clock::Deadline;

use crate::bmc::agent::Call;
use crate::bmc::model::Access;
use crate::bmc::{Fault, Misbehaviour, Server, World};
use crate::executable::script;

fn config(server: &Server, action: &str, action_timeout: u32) -> Config {
    let call = Call::new(server, action).set("action_timeout", &action_timeout.to_string());
    let action = Action::parse(Some(action)).unwrap();
    Config::read(action, &input::from_lines(&call.input()), Environment::default()).unwrap()
}

/// Returns a BMC that supports sessions, and no basic authentication.
fn of_sessions() -> World {
    World { access: Access::Session, ..World::one_system() }
}

/// Returns the number of sessions that were opened on the BMC, and the number of those that are still open.
fn sessions(server: &Server) -> (usize, usize) {
    let world = server.world();
    (world.sessions_opened, world.sessions.len())
}

/// Performs a fence action in this process. Also returns the handle of its session, with which a caller that ends the action
/// early can log out.
fn fenced(server: &Server, action: &str) -> Result<(Ending, Option<SessionHandle>), Error> {
    let (send, receive) = mpsc::channel();
    let ending = fence::run(&config(server, action, 20), None, move |session| send.send(session).unwrap())?;
    Ok((ending, receive.try_recv().ok()))
}

/// Installs a fake `podman` in `directory`. It takes `seconds` for each answer, and answers that there is no container.
fn podman_takes(directory: &Path, seconds: u32) {
    script(&directory.join("podman"), &format!("sleep {seconds}; echo 'Error: no such container etcd' >&2; exit 125"));
}

/// The tools of Pacemaker that the resource agent may call. The fakes of the test record each call.
const TOOLS: [&str; 4] = ["cibadmin", "attrd_updater", "crm_attribute", "crm_node"];
/// An address that no node has. A connection to it fails at once, because no packet leaves the machine.
const NOBODY: &str = "255.255.255.255";

fn called(directory: &Path) -> String {
    std::fs::read_to_string(directory.join("called")).unwrap_or_default()
}

/// Returns the agent's answer to Pacemaker's probe on a node on which etcd was never started.
fn probed(directory: &Path, timeout_ms: u32, more: Option<(&str, &str)>) -> Answered {
    for tool in TOOLS {
        let cib = if tool == "cibadmin" { "<cib><configuration><nodes/></configuration><status/></cib>" } else { "" };
        script(&directory.join(tool), &format!("echo {tool} >> {}/called; echo '{cib}'", directory.display()));
    }
    let place = directory.display().to_string();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let parameters = [
        ("node_ip_map", format!("node1:{NOBODY}")),
        ("CRM_meta_on_node", "node1".to_owned()),
        ("CRM_meta_timeout", timeout_ms.to_string()),
        ("image", "etcd:test".to_owned()),
        ("client_port", port.to_string()),
        ("trusted_ca_file", format!("{place}/ca.crt")),
        ("cert_file", format!("{place}/etcd.crt")),
        ("key_file", format!("{place}/etcd.key")),
        ("data_dir", format!("{place}/data")),
        ("config_location", format!("{place}/config")),
    ];
    let parameters = parameters.into_iter().chain(more.map(|(name, value)| (name, value.to_owned())));
    let pairs = parameters.map(|(name, value)| (format!("OCF_RESKEY_{name}"), value));
    let env = Env::from_pairs(pairs.chain([("HA_RSCTMP".to_owned(), format!("{place}/run"))]));
    agent::answer(&env, &Programs::default().with_fakes(directory.to_owned()), &directory.join("kept"), Request::Probe)
}

#[test]
fn fence_actions_and_an_agents_round_share_a_process() {
    let (one, other) = (Server::with_world(of_sessions()), Server::with_world(of_sessions()));
    let mask = SigSet::thread_get_mask().unwrap();
    for (action, done) in [("off", "Success: Powered OFF"), ("on", "Success: Powered ON")] {
        let node = tempfile::tempdir().unwrap();
        podman_takes(node.path(), 0);
        let (powered, rebooted, probed) = std::thread::scope(|scope| {
            let powered = scope.spawn(|| fenced(&one, action));
            let rebooted = scope.spawn(|| (fenced(&other, "reboot"), SigSet::thread_get_mask().unwrap()));
            // This thread belongs to a tokio runtime, as a daemon's does.
            let probed = scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(async { probed(node.path(), 20_000, None) })
            });
            (powered.join().unwrap(), rebooted.join().unwrap(), probed.join().unwrap())
        });
        let (rebooted, mask_of_its_thread) = rebooted;
        for (ended, text) in [(powered, done), (rebooted, "Success: Rebooted")] {
            let (ending, session) = ended.unwrap();
            assert_eq!((ending.code, ending.text.as_str()), (0, text));
            assert!(session.is_some(), "{text}");
        }
        assert_eq!(probed, Answered::from(Code::NotRunning));
        assert_eq!(called(node.path()), "cibadmin\nattrd_updater\n", "it was looked, decided and performed");
        assert_eq!(mask_of_its_thread, mask, "no signal was blocked");
    }
    assert_eq!((sessions(&one), sessions(&other)), ((2, 0), (2, 0)));
}

/// Asserts that the end of one action stops only the programs that this action started.
#[test]
fn each_action_has_its_own_end() {
    let server = Server::with_world(of_sessions().with(Fault::always("POST", "Reset", Misbehaviour::Ignored)));
    let (short, long) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    podman_takes(short.path(), 30);
    podman_takes(long.path(), 4);
    let began = Deadline::after(Duration::from_secs(60));
    let (off, cut, whole) = std::thread::scope(|scope| {
        let off = scope.spawn(|| fence::run(&config(&server, "off", 6), None, |_| {}));
        // With a wrong parameter, an unknown state of etcd is a failure at once.
        let cut = scope.spawn(|| (probed(short.path(), 2_000, Some(("oom", "much"))), began.elapsed()));
        let whole = scope.spawn(|| probed(long.path(), 20_000, None));
        (off.join().unwrap(), cut.join().unwrap(), whole.join().unwrap())
    });
    let (cut, took) = cut;
    assert!(cut.code == Code::Configured && took < Duration::from_secs(6), "{cut:?} after {took:?}");
    assert_eq!(whole, Answered::from(Code::NotRunning));
    assert!(matches!(off, Err(Error::Bmc(_))), "{off:?}");
    assert!(began.elapsed() >= Duration::from_secs(4), "{:?}", began.elapsed());
}

#[test]
fn whoever_ends_an_action_early_can_delete_its_session() {
    let server = Server::with_world(of_sessions().with(Fault::always("POST", "Reset", Misbehaviour::Ignored)));
    let (send, receive) = mpsc::channel();
    std::thread::scope(|scope| {
        let off =
            scope.spawn(|| fence::run(&config(&server, "off", 6), None, move |session| send.send(session).unwrap()));
        let session = receive.recv_timeout(Duration::from_secs(5)).unwrap();
        let patience = Deadline::after(Duration::from_secs(5));
        while server.posted().is_empty() && !patience.has_passed() {
            patience.sleep(Duration::from_millis(10));
        }
        assert_eq!(sessions(&server), (1, 1));
        session.delete();
        assert_eq!(sessions(&server).1, 0);
        assert!(off.join().unwrap().is_err());
    });
    assert_eq!(sessions(&server).1, 0, "one that was opened after that is deleted, too");
}
