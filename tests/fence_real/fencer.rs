//! The agent under Pacemaker's real fencer, stand-alone, in mount, network, PID and IPC namespaces of its own.
//!
//! It needs root and the packages pacemaker and pacemaker-cli-utils. Each test starts this program again in its own
//! namespaces. All processes end with the namespaces' first one.

#![allow(clippy::unwrap_used, reason = "what fails here ends the test")]

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::bmc::agent::finish;
use crate::bmc::{Fault, Misbehaviour, Server, System, World};
use crate::namespaces::{self, program};
use tandem::os::clock::Deadline;

/// Runs `inner` inside fresh namespaces, after a check that Pacemaker is installed.
fn in_namespaces(name: &str, inner: fn()) {
    for needed in ["/usr/sbin/stonith_admin", "/usr/lib/pacemaker/pacemaker-fenced"] {
        assert!(Path::new(needed).is_file(), "{needed} is missing: install pacemaker and pacemaker-cli-utils");
    }
    namespaces::run(module_path!(), name, 240, inner);
}

/// Pacemaker's fencer, which runs inside the namespaces without a cluster.
struct Fencer {
    log: String,
    daemon: Child,
}

impl Drop for Fencer {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

impl Fencer {
    fn start() -> Self {
        shell(
            "set -e
             ip link set lo up
             mount -t tmpfs tmpfs /dev/shm
             mount -t tmpfs tmpfs /run
             mount -t tmpfs tmpfs /var/lib/pacemaker
             mkdir -p /run/crm /run/fence/upper /run/fence/work /var/lib/pacemaker/cores /var/lib/pacemaker/cib \
                 /var/lib/pacemaker/pengine /var/lib/pacemaker/blackbox
             chown -R hacluster:haclient /run/crm /var/lib/pacemaker
             mount -t overlay overlay -o lowerdir=/usr/sbin,upperdir=/run/fence/upper,workdir=/run/fence/work /usr/sbin",
        );
        std::fs::copy(env!("CARGO_BIN_EXE_tandem"), "/run/fence/tandem").unwrap();
        let _ = std::fs::remove_file("/usr/sbin/fence_redfish_rs");
        std::os::unix::fs::symlink("/run/fence/tandem", "/usr/sbin/fence_redfish_rs").unwrap();
        let log = "/run/fence/log".to_owned();
        let daemon = program("/usr/lib/pacemaker/pacemaker-fenced")
            .args(["-s", "-V", "-l", &log])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let patience = Deadline::after(Duration::from_secs(20));
        while admin(&["--list-registered"]).0 != 0 {
            assert!(!patience.has_passed(), "the fencer does not answer");
            patience.sleep(Duration::from_millis(200));
        }
        Self { log, daemon }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Registers a fence device for the emulated BMC `server`, with `more` options.
    fn register(&self, name: &str, server: &Server, more: &[&str]) {
        let (code, text) = admin(&device(&["--register", name, "--agent", "fence_redfish_rs"], server, more));
        assert_eq!(code, 0, "{text}\n{}", self.log());
    }
}

fn shell(script: &str) {
    let output = program("/bin/sh").args(["-c", script]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn device(what: &[&str], server: &Server, more: &[&str]) -> Vec<String> {
    let ca_file = server.authority.file();
    let mut arguments: Vec<String> = what.iter().map(ToString::to_string).collect();
    let options = [
        "ip=127.0.0.1".to_owned(),
        format!("ipport={}", server.port),
        "username=admin".to_owned(),
        "password=s3cret-pass".to_owned(),
        format!("ssl_ca_file={}", ca_file.display()),
    ];
    for option in options.into_iter().chain(more.iter().map(ToString::to_string)) {
        arguments.extend(["-o".to_owned(), option]);
    }
    arguments
}

/// Runs `stonith_admin` to its end. Returns its exit code and its output.
fn admin(arguments: &[impl AsRef<std::ffi::OsStr>]) -> (i32, String) {
    let child = program("/usr/sbin/stonith_admin")
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = finish(child);
    (output.code, format!("{}{}", output.stdout, output.stderr))
}

/// Fences a node with `stonith_admin`. Returns the exit code, the output, and the time that it took.
fn fence(how: &str, node: &str, timeout: &str) -> (i32, String, Duration) {
    let began = Instant::now();
    let (code, text) = admin(&[how, node, "--timeout", timeout, "--tolerance", "0"]);
    (code, text, began.elapsed())
}

fn power(server: &Server, at: usize) -> String {
    let mut world = server.world();
    let system = &mut world.systems[at];
    system.settle();
    system.power.as_str().unwrap_or_default().to_owned()
}

#[test]
fn the_tools_know_the_agent() {
    in_namespaces("the_tools_know_the_agent", inner_tools);
}

fn inner_tools() {
    let fencer = Fencer::start();
    let (code, text) = admin(&["--list-installed"]);
    assert!(code == 0 && text.contains("fence_redfish_rs"), "{text}");
    let (code, text) = admin(&["--metadata", "--agent", "fence_redfish_rs"]);
    assert!(code == 0 && text.contains("<resource-agent name=\"fence_redfish_rs\""), "{text}");
    let server = Server::start();
    let validate = |more: &[&str]| admin(&device(&["--validate", "--agent", "fence_redfish_rs"], &server, more));
    let (code, text) = validate(&[]);
    assert_eq!(code, 0, "{text}");
    let (code, text) = validate(&["delay=soon"]);
    assert!(code != 0 && text.contains("delay='soon'"), "{text}");
    assert_eq!(server.handshakes(), 0, "validation asks nobody");
    fencer.register("device", &server, &["pcmk_host_list=node1"]);
    let (code, text) = admin(&["--query", "device"]);
    assert_eq!(code, 0, "{text}");
    let (_, text) = admin(&["--list", "node1"]);
    assert!(text.contains("device"), "{text}");
}

#[test]
fn pcs_creates_devices_as_it_does_for_the_original() {
    in_namespaces("pcs_creates_devices_as_it_does_for_the_original", inner_pcs);
}

fn inner_pcs() {
    let _fencer = Fencer::start();
    shell("cibadmin --empty > /run/fence/cib.xml");
    let create = |name: &str, options: &[&str]| {
        let fixed = ["-f", "/run/fence/cib.xml", "stonith", "create", name, "fence_redfish_rs", "pcmk_host_list=node1"];
        let output = program("/usr/sbin/pcs").args(fixed).args(options).stdin(Stdio::null()).output().unwrap();
        (
            output.status.success(),
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)),
        )
    };
    let current = [
        "ip=bmc",
        "ipport=443",
        "username=u",
        "password=p",
        "systems_uri=/redfish/v1/Systems/1",
        "pcmk_delay_base=10s",
        "ssl_insecure=0",
    ];
    let (created, text) = create("current", &current);
    assert!(created && text.is_empty(), "{text}");
    let (created, text) = create("old", &["ipaddr=bmc", "login=u", "passwd=p"]);
    assert!(created && text.contains("use 'ip' instead"), "{text}");
    let (created, text) = create("unknown", &["ip=bmc", "username=u", "password=p", "bogus=1"]);
    assert!(!created && text.contains("invalid stonith option 'bogus'"), "{text}");
    let (created, text) = create("nameless", &["ip=bmc", "password=p"]);
    assert!(!created && text.contains("'username'"), "{text}");
    let (created, text) = create("checked", &["ip=bmc", "username=u", "password=p", "delay=x", "--agent-validation"]);
    assert!(!created && text.contains("delay='x' is not a whole number"), "{text}");
}

#[test]
fn a_node_is_fenced_and_unfenced() {
    in_namespaces("a_node_is_fenced_and_unfenced", inner_fencing);
}

fn inner_fencing() {
    let fencer = Fencer::start();
    let server = Server::start();
    fencer.register("device", &server, &["pcmk_host_list=node1"]);
    for (how, power_after, posted) in
        [("--fence", "Off", &["ForceOff"][..]), ("--unfence", "On", &["On"]), ("--reboot", "On", &["ForceOff", "On"])]
    {
        server.world().resets.clear();
        let (code, text, took) = fence(how, "node1", "60");
        assert_eq!((code, power(&server, 0).as_str()), (0, power_after), "{how}: {text}\n{}", fencer.log());
        assert_eq!(server.posted(), posted, "{how}");
        assert!(took < Duration::from_secs(10), "{took:?}");
    }
    assert!(!fencer.log().contains("s3cret-pass"));
}

#[test]
fn failures_are_reported_in_time_and_in_words() {
    in_namespaces("failures_are_reported_in_time_and_in_words", inner_failures);
}

fn inner_failures() {
    let fencer = Fencer::start();
    // On fails after a proven Off: the fencing succeeds, within the fencer's time-out.
    let server = Server::with_world(
        World::one_system().with(Fault::always("POST", "Reset", Misbehaviour::Status(500, String::new())).after(1)),
    );
    fencer.register("on-fails", &server, &["pcmk_host_list=node1"]);
    let (code, text, took) = fence("--reboot", "node1", "60");
    assert!(code == 0 && took < Duration::from_secs(40), "{took:?} {text}\n{}", fencer.log());
    assert_eq!(power(&server, 0), "Off");
    // A refusal is reported at once, with its reason.
    let refusing = Server::with_world(World::one_system().with(Fault::always(
        "POST",
        "Reset",
        Misbehaviour::Status(403, String::new()),
    )));
    fencer.register("refuses", &refusing, &["pcmk_host_list=node2"]);
    let (code, text, took) = fence("--fence", "node2", "60");
    assert!(code != 0 && took < Duration::from_secs(15), "{took:?} {text}");
    assert!(fencer.log().contains("403 Forbidden"), "{}", fencer.log());
    // A BMC does not answer: the agent ends by its own time-out, before the fencer's.
    let silent = Server::with_world(World::one_system().with(Fault::always("GET", "", Misbehaviour::Silence)));
    fencer.register("silent", &silent, &["pcmk_host_list=node3", "action_timeout=4"]);
    let (code, text, took) = fence("--fence", "node3", "60");
    assert!(code != 0 && took < Duration::from_secs(20), "{took:?} {text}");
    assert!(fencer.log().contains("timed out without a complete answer"), "{}", fencer.log());
}

#[test]
fn one_device_serves_several_systems() {
    in_namespaces("one_device_serves_several_systems", inner_systems);
}

fn inner_systems() {
    let fencer = Fencer::start();
    let server = Server::with_world(World::of(vec![System::new("Node0"), System::new("Node1")]));
    // The names of the systems come from the map. `plug=dynamic` informs the monitor of that.
    fencer.register("device", &server, &["plug=dynamic", "pcmk_host_map=node1:Node0;node2:Node1"]);
    let (code, text) = admin(&["--query", "device"]);
    assert_eq!(code, 0, "{text}\n{}", fencer.log());
    let (code, text, _) = fence("--fence", "node2", "60");
    assert_eq!(code, 0, "{text}\n{}", fencer.log());
    assert_eq!((power(&server, 0).as_str(), power(&server, 1).as_str()), ("On", "Off"));
    // The operator sets a plug, and the fencer adds the node's name as port.
    fencer.register("fixed", &server, &["plug=Node0", "pcmk_host_list=node1b"]);
    let (code, text, _) = fence("--fence", "node1b", "60");
    assert_eq!(code, 0, "{text}\n{}", fencer.log());
    assert_eq!(power(&server, 0), "Off");
    // Without host list or map the fencer asks for the systems, and takes their names for nodes.
    let named = Server::with_world(World::of(vec![System::new("nodeA"), System::new("nodeB")]));
    fencer.register("named", &named, &["plug=dynamic"]);
    let (code, text, _) = fence("--fence", "nodeB", "60");
    assert_eq!(code, 0, "{text}\n{}", fencer.log());
    assert_eq!((power(&named, 0).as_str(), power(&named, 1).as_str()), ("On", "Off"));
    let (code, _, _) = fence("--fence", "nodeC", "20");
    assert_ne!(code, 0, "nobody can fence a node that no device knows");
}

#[test]
fn the_next_device_is_tried_and_a_delay_is_kept() {
    in_namespaces("the_next_device_is_tried_and_a_delay_is_kept", inner_devices);
}

/// Asserts that the fencer tries devices by priority, and waits for a device's delay. Topology levels are not tested, because a
/// stand-alone fencer ignores them.
fn inner_devices() {
    let fencer = Fencer::start();
    let refusal = Fault::always("POST", "Reset", Misbehaviour::Status(403, String::new()));
    let (broken, spare) = (Server::with_world(World::one_system().with(refusal)), Server::start());
    fencer.register("broken", &broken, &["pcmk_host_list=node1", "priority=10"]);
    fencer.register("spare", &spare, &["pcmk_host_list=node1", "priority=1"]);
    let (code, text, _) = fence("--fence", "node1", "60");
    assert_eq!((code, power(&spare, 0).as_str()), (0, "Off"), "{text}\n{}", fencer.log());
    assert_eq!(power(&broken, 0), "On");
    // The fencer's own delay precedes the agent's start.
    let delayed = Server::start();
    fencer.register("delayed", &delayed, &["pcmk_host_list=node3", "pcmk_delay_base=3s"]);
    let (code, text, took) = fence("--fence", "node3", "60");
    assert!(code == 0 && took > Duration::from_secs(3), "{took:?} {text}");
}

#[test]
fn after_an_outage_the_delay_counts_again_before_anything_is_done() {
    in_namespaces("after_an_outage_the_delay_counts_again_before_anything_is_done", inner_outage);
}

/// Asserts that an `off` fails, and changes no power, if an unreachable BMC becomes reachable during the action. That
/// holds for each of the fencer's two tries.
fn inner_outage() {
    let fencer = Fencer::start();
    // If connections are refused, the agent retries. If packets are dropped, the very first retry is answered, a second
    // late.
    for (node, verdict) in [("node1", "REJECT"), ("node2", "DROP")] {
        let server = Server::start();
        fencer.register(node, &server, &[&format!("pcmk_host_list={node}")]);
        let (code, text) = fence_after_a_knock_in_vain(&server, node, verdict);
        assert!(code != 0 && fencer.log().contains("out of reach and is back just now"), "{text}\n{}", fencer.log());
        assert_eq!((power(&server, 0).as_str(), server.posted()), ("On", vec![]), "{verdict}: {}", fencer.log());
        // The next request comes after a transition of the cluster and a delay. It continues, even if the BMC drops the
        // first packets of every run.
        Deadline::after(Duration::from_secs(5)).sleep(Duration::from_secs(2));
        let (code, text) = if verdict == "REJECT" {
            fence_after_a_knock_in_vain(&server, node, verdict)
        } else {
            let (code, text, _) = fence("--fence", node, "60");
            (code, text)
        };
        assert_eq!((code, power(&server, 0).as_str()), (0, "Off"), "{text}\n{}", fencer.log());
    }
    inner_outage_seen_by_the_monitor(&fencer);
}

/// Fences a node with a BMC that is unreachable until the agent's first connection attempt. `verdict` is the firewall's: REJECT
/// or DROP.
fn fence_after_a_knock_in_vain(server: &Server, node: &str, verdict: &str) -> (i32, String) {
    let rule = format!("INPUT --protocol tcp --dport {} --syn --jump {verdict}", server.port);
    shell(&format!("iptables --append {rule}"));
    let knocked = "iptables --list INPUT --verbose --exact --numeric | awk 'NR == 3 && $1 > 0' | grep --quiet .";
    let outage = format!("until {knocked}; do sleep 0.05; done; iptables --delete {rule}");
    let outage = std::thread::spawn(move || shell(&outage));
    let (code, text, _) = fence("--fence", node, "60");
    outage.join().unwrap();
    (code, text)
}

/// Asserts that an `off` fails without a reset after a monitor has met an outage of the BMC, and that a later `off`
/// succeeds. The fencer runs one action of a device at a time, so that a try may wait for the monitor until long after
/// its own delay.
fn inner_outage_seen_by_the_monitor(fencer: &Fencer) {
    let server = Server::start();
    fencer.register("monitored", &server, &["pcmk_host_list=node3", "action_timeout=4", "pcmk_off_retries=1"]);
    let rule = format!("INPUT --protocol tcp --dport {} --syn --jump DROP", server.port);
    shell(&format!("iptables --append {rule}"));
    let (code, text) = admin(&["--query", "monitored"]);
    shell(&format!("iptables --delete {rule}"));
    assert!(code != 0 && fencer.log().contains("timed out without a connection"), "{text}\n{}", fencer.log());
    let (code, text, _) = fence("--fence", "node3", "60");
    assert_eq!((code != 0, server.posted()), (true, vec![]), "{text}\n{}", fencer.log());
    Deadline::after(Duration::from_secs(5)).sleep(Duration::from_secs(2));
    let (code, text, _) = fence("--fence", "node3", "60");
    assert_eq!((code, power(&server, 0).as_str()), (0, "Off"), "{text}\n{}", fencer.log());
}
