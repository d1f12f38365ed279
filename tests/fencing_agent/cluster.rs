//! Agents in namespaces of their own.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::Pid;

use crate::namespaces::program;

/// The time within which an expected event must happen, on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until `is_so` returns true, and returns the elapsed time. Fails with the message `what` after [`PATIENCE`].
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) -> Duration {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        sleep(Duration::from_millis(20));
    }
    began.elapsed()
}

fn ip(words: &str) {
    let output = program("ip").args(words.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {words}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Emulated hosts inside the namespaces of a test. Each network of theirs is a bridge.
pub(crate) struct Cluster {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) nodes: Vec<Node>,
    networks: usize,
    /// The lines at the beginning and at the end of each agent's configuration.
    settings: (String, String),
}

/// An emulated host with its `fencing-agent`.
pub(crate) struct Node {
    pub(crate) name: String,
    dir: PathBuf,
    device: File,
    child: Option<Child>,
    events: Option<Child>,
}

impl Cluster {
    pub(crate) fn new(count: usize, networks: usize, head: &str, tail: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mounted = program("mount").args(["-t", "tmpfs", "tmpfs", "/run"]).status().unwrap();
        assert!(mounted.success());
        ip("link set lo up");
        for network in 0..networks {
            for side in ["a", "b"] {
                ip(&format!("link add br{network}{side} type bridge"));
                ip(&format!("link set br{network}{side} up"));
            }
        }
        let settings = (head.to_owned(), tail.to_owned());
        let nodes = (1..=count).map(|at| Node::new(dir.path(), at, networks)).collect();
        let cluster = Self { dir, nodes, networks, settings };
        fs::write(cluster.dir.path().join("key"), "0123456789abcdef0123456789abcdef").unwrap();
        fs::set_permissions(cluster.dir.path().join("key"), fs::Permissions::from_mode(0o600)).unwrap();
        (0..count).for_each(|at| cluster.configure(at, "key"));
        cluster
    }

    /// Writes the configuration of the agent on host `at`. `key` is the name of the key file.
    pub(crate) fn configure(&self, at: usize, key: &str) {
        let (node, root) = (&self.nodes[at], self.dir.path().display());
        let dir = node.dir.display();
        let members: Vec<String> = (1..=self.nodes.len())
            .map(|at| {
                let all: Vec<String> = (0..self.networks).map(|network| format!("'10.{network}.0.{at}'")).collect();
                format!("n{at} = [{}]", all.join(", "))
            })
            .collect();
        let (head, tail) = &self.settings;
        // With `[kubernetes]` the list is in the API, and with `members_file` in a file that the test writes.
        let is_elsewhere = tail.contains("[kubernetes]") || head.contains("members_file");
        let listed = if is_elsewhere { String::new() } else { format!("[members]\n{}", members.join("\n")) };
        let text = format!(
            "node = '{}'\ngroup = 'test'\nkey_file = '{root}/{key}'\ndisable_file = '{dir}/disable'\n{head}\n{listed}\n\
             [watchdog]\ndevice = '{dir}/watchdog'\ntimeout = '6s'\ninterval = '500ms'\n[grpc]\nsocket = '{dir}/s'\n{tail}\n",
            node.name
        );
        fs::write(node.dir.join("config"), text).unwrap();
    }

    pub(crate) fn start_all(&mut self) {
        self.nodes.iter_mut().for_each(Node::start);
    }

    /// Gives the test itself an address on a network, and returns that address.
    pub(crate) fn join(&self, network: usize) -> String {
        assert!(network < self.networks);
        let address = format!("10.{network}.0.254");
        ip(&format!("addr add {address}/24 dev br{network}a"));
        address
    }

    pub(crate) fn cut(&self, network: usize, nodes: &[usize]) {
        assert!(network < self.networks);
        plug(network, nodes, "b");
    }

    pub(crate) fn heal(&self, network: usize, nodes: &[usize]) {
        assert!(network < self.networks);
        plug(network, nodes, "a");
    }

    /// Waits until the agent of each of these hosts reaches `count` members.
    pub(crate) fn must_reach(&mut self, nodes: &[usize], count: u64) {
        for at in nodes {
            let node = &self.nodes[*at];
            eventually(&format!("{} does not reach {count}: {}", node.name, node.log()), || {
                node.status()["reachable"].as_u64() == Some(count)
            });
        }
    }
}

/// Cuts `minority` hosts off from the rest of `count` hosts. Asserts that the cut-off hosts are not fed, and that the other hosts are fed
/// exactly if `majority_is_fed` is true.
pub(crate) fn must_feed_by_quorum(count: usize, minority: usize, majority_is_fed: bool) {
    let mut cluster = Cluster::new(count, 1, "", "");
    cluster.nodes.iter().for_each(Node::leave_running);
    cluster.start_all();
    for node in &mut cluster.nodes {
        node.must_be_fed();
    }
    let all: Vec<usize> = (0..count).collect();
    cluster.must_reach(&all, u64::try_from(count).unwrap());
    let (off, rest) = all.split_at(minority);
    cluster.cut(0, off);
    // The window of ten members is 4 s.
    sleep(Duration::from_secs(6));
    cluster.nodes.iter_mut().for_each(|node| drop(node.bytes()));
    sleep(Duration::from_secs(3));
    for at in off {
        assert_eq!(cluster.nodes[*at].bytes(), b"", "{}", cluster.nodes[*at].log());
    }
    for at in rest {
        assert_eq!(!cluster.nodes[*at].bytes().is_empty(), majority_is_fed, "{}", cluster.nodes[*at].log());
    }
    cluster.heal(0, off);
    for node in &mut cluster.nodes {
        node.must_be_fed();
    }
}

/// Connects these hosts to the bridge `side` of a network. The two sides of a network are not connected.
fn plug(network: usize, nodes: &[usize], side: &str) {
    for at in nodes {
        ip(&format!("link set v{network}n{} master br{network}{side}", at + 1));
    }
}

impl Node {
    fn new(root: &Path, at: usize, networks: usize) -> Self {
        let name = format!("n{at}");
        let dir = root.join(&name);
        fs::create_dir_all(dir.join("state")).unwrap();
        // The directory is in memory, as on a host, because the agent writes its state there each second.
        let in_memory = Path::new("/run").join(format!("agent-{name}"));
        fs::create_dir_all(&in_memory).unwrap();
        std::os::unix::fs::symlink(in_memory, dir.join("run")).unwrap();
        ip(&format!("netns add {name}"));
        ip(&format!("-n {name} link set lo up"));
        for network in 0..networks {
            ip(&format!("link add v{network}{name} type veth peer name e{network} netns {name}"));
            ip(&format!("link set v{network}{name} master br{network}a"));
            ip(&format!("link set v{network}{name} up"));
            ip(&format!("-n {name} addr add 10.{network}.0.{at}/24 dev e{network}"));
            ip(&format!("-n {name} link set e{network} up"));
        }
        let fifo = dir.join("watchdog");
        nix::unistd::mkfifo(&fifo, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
        let device = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(fifo).unwrap();
        Self { name, dir, device, child: None, events: None }
    }

    /// Returns a command that runs a program in the network of this host.
    pub(crate) fn inside(&self, path: impl AsRef<Path>) -> Command {
        let mut command = program("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.name)).arg(path.as_ref());
        command
    }

    pub(crate) fn command(&self) -> Command {
        // Measurements need the optimised program.
        let tested = std::env::var_os("TANDEM_BIN").map_or_else(|| env!("CARGO_BIN_EXE_tandem").into(), PathBuf::from);
        let mut command = self.inside(tested);
        command.arg("fencing-agent");
        command.arg("--config").arg(self.dir.join("config")).arg("--run-dir").arg(self.dir.join("run"));
        command.arg("--state-dir").arg(self.dir.join("state")).env_remove("JOURNAL_STREAM").stdin(Stdio::null());
        command
    }

    pub(crate) fn asked(&self, words: &[&str]) -> Output {
        self.command().args(words).output().unwrap()
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Leaves a record that an earlier agent left the watchdog armed. The next agent then feeds it at its first contact with a quorum, and
    /// not only after 10 s.
    pub(crate) fn leave_running(&self) {
        fs::write(self.dir.join("run/armed"), "magic close\n").unwrap();
        fs::set_permissions(self.dir.join("run/armed"), fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// Starts the host's agent, and waits until it is ready.
    pub(crate) fn start(&mut self) {
        let ready = UnixDatagram::bind(self.path("notify")).unwrap();
        ready.set_read_timeout(Some(PATIENCE)).unwrap();
        let log = OpenOptions::new().create(true).append(true).open(self.path("log")).unwrap();
        let mut run = self.command();
        run.arg("run").env("NOTIFY_SOCKET", self.path("notify")).stderr(log);
        self.child = Some(run.spawn().unwrap());
        let mut said = [0; 64];
        let read = ready.recv(&mut said).unwrap_or_else(|error| panic!("not ready: {error}: {}", self.log()));
        assert_eq!(&said[..read], b"READY=1");
        fs::remove_file(self.path("notify")).unwrap();
    }

    /// Starts a client of the agent that writes its events to a file.
    pub(crate) fn listen(&mut self) {
        let mut events = self.command();
        events.args(["events", "--json"]).stdout(File::create(self.path("events")).unwrap());
        self.events = Some(events.stderr(Stdio::null()).spawn().unwrap());
        sleep(Duration::from_millis(500));
    }

    /// Returns whether the client has received an event of type `kind` about the host `name`.
    pub(crate) fn has_heard(&self, kind: &str, name: &str) -> bool {
        let text = fs::read_to_string(self.path("events")).unwrap_or_default();
        text.lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
            .any(|event| event["type"] == kind && event["node"]["name"] == name)
    }

    pub(crate) fn status(&self) -> serde_json::Value {
        serde_json::from_slice(&self.asked(&["status", "--json"]).stdout).unwrap_or_default()
    }

    /// Returns the bytes that were written to the host's watchdog since the last call of this function.
    pub(crate) fn bytes(&mut self) -> Vec<u8> {
        let (mut bytes, mut chunk) = (Vec::new(), [0; 256]);
        while let Ok(count) = self.device.read(&mut chunk) {
            if count == 0 {
                break;
            }
            bytes.extend_from_slice(&chunk[..count]);
        }
        bytes
    }

    /// Waits until the host's watchdog is fed, and returns how long that took.
    pub(crate) fn must_be_fed(&mut self) -> Duration {
        self.bytes();
        let mut found = Vec::new();
        let name = self.name.clone();
        let log = self.log();
        let took = eventually(&format!("{name} is not fed: {log}"), || {
            found.extend(self.bytes());
            !found.is_empty()
        });
        assert!(found.iter().all(|byte| *byte == 0), "{found:?}");
        took
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.id()).unwrap()), signal).unwrap();
    }

    /// Kills the host's agent, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Waits until the host's agent ends, and returns its exit code; `None` if a signal killed it.
    pub(crate) fn code(&mut self) -> Option<i32> {
        let mut child = self.child.take().unwrap();
        let mut ended = None;
        eventually("it does not end", || {
            ended = child.try_wait().unwrap();
            ended.is_some()
        });
        ended.unwrap().code()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
        if let Some(mut events) = self.events.take() {
            let _ = events.kill();
            let _ = events.wait();
        }
    }
}
