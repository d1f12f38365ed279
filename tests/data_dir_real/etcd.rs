//! Real etcd processes on loopback, and a synchronous client.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use etcd_client::{Client, ConnectOptions, Error, GetOptions, Member, MemberAddOptions, StatusResponse};
use tandem::os::clock;

use crate::copy::copy_dir;

/// The time within which any operation of etcd must succeed.
const PATIENCE: Duration = Duration::from_secs(30);

/// A release of etcd that the tests run.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) number: &'static str,
    binary: PathBuf,
}

/// Returns every release of etcd that is to be tested. Fails if one is not installed, because a test that does not run
/// proves nothing.
pub(crate) fn versions() -> Vec<Version> {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/etcd-3.5/etcd");
    let binary = |variable, default: &Path| std::env::var_os(variable).map_or(default.to_owned(), PathBuf::from);
    let mut all = vec![
        Version { number: "3.4", binary: binary("TANDEM_ETCD_3_4", Path::new("/usr/bin/etcd")) },
        Version { number: "3.5", binary: binary("TANDEM_ETCD_3_5", &built) },
    ];
    // No Debian release has these yet, so the environment names their binaries.
    let newer = [("3.6", "TANDEM_ETCD_3_6"), ("3.7", "TANDEM_ETCD_3_7")];
    let named = newer.into_iter().filter_map(|(number, variable)| Some((number, std::env::var_os(variable)?)));
    all.extend(named.map(|(number, binary)| Version { number, binary: PathBuf::from(binary) }));
    for version in &all {
        let help = "install Debian 12's etcd-server for 3.4, run tests/data_dir_real/setup for 3.5";
        let answer = command(&version.binary).arg("--version").output();
        let answer = answer.unwrap_or_else(|error| panic!("{}: {error}; {help}", version.binary.display()));
        let text = String::from_utf8_lossy(&answer.stdout).into_owned();
        let wanted = format!("etcd Version: {}.", version.number);
        assert!(text.starts_with(&wanted), "{} is not {}: {help}", version.binary.display(), version.number);
    }
    all
}

#[expect(clippy::disallowed_methods, reason = "etcd here is a daemon that is killed, not a command that answers")]
fn command(binary: &Path) -> Command {
    Command::new(binary)
}

/// A member of a test's etcd cluster: its name, its data dir and its URLs.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    version: Version,
    pub(crate) name: String,
    pub(crate) dir: PathBuf,
    pub(crate) client_url: String,
    pub(crate) peer_url: String,
}

/// Returns a free port that no other program gets by chance until etcd listens there. It is below the range from which
/// the kernel chooses.
fn port() -> u16 {
    const FIRST: u16 = 20_000;
    const LAST: u16 = 32_000;
    static NEXT: AtomicU16 = AtomicU16::new(FIRST);
    let mut tried = std::iter::repeat_with(|| NEXT.fetch_add(1, Ordering::Relaxed)).take_while(|port| *port < LAST);
    tried.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap()
}

impl Place {
    /// Returns a new member with its data dir below `root`, and with ports that are free now.
    pub(crate) fn new(version: &Version, root: &Path, name: &str) -> Self {
        let url = || format!("http://127.0.0.1:{}", port());
        let (name, dir) = (name.to_owned(), root.join(name));
        Self { version: version.clone(), name, dir, client_url: url(), peer_url: url() }
    }

    /// Returns the same member with a copy of its data and with other ports.
    pub(crate) fn copy(&self, name: &str) -> Self {
        let mut copy = Self::new(&self.version, self.dir.parent().unwrap(), name);
        copy_dir(&self.dir.join("member"), &copy.dir.join("member"));
        copy.name.clone_from(&self.name);
        copy
    }

    /// Starts the member for the first time. `cluster` is the initial cluster, and `state` is `new` or `existing`.
    pub(crate) fn start(&self, cluster: &[&Place], state: &str, more: &[&str]) -> Etcd {
        let initial: Vec<_> = cluster.iter().map(|place| format!("{}={}", place.name, place.peer_url)).collect();
        self.run(&[&["--initial-cluster", &initial.join(","), "--initial-cluster-state", state], more].concat())
    }

    /// Starts the member's etcd on the data that exists, with `more` arguments.
    pub(crate) fn run(&self, more: &[&str]) -> Etcd {
        let log = self.dir.with_extension("log");
        let output = File::options().append(true).create(true).open(&log).unwrap();
        let child = command(&self.version.binary)
            .args(["--name", &self.name, "--data-dir"])
            .arg(&self.dir)
            .args(["--listen-client-urls", &self.client_url, "--advertise-client-urls", &self.client_url])
            .args(["--listen-peer-urls", &self.peer_url, "--initial-advertise-peer-urls", &self.peer_url])
            .args(["--logger", "zap"])
            .args(more)
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .unwrap();
        Etcd { child, place: self.clone(), log }
    }

    /// Returns the settings for a configuration file in which this member is the only one of its cluster.
    pub(crate) fn configuration(&self) -> [(&'static str, String); 7] {
        [
            ("name", self.name.clone()),
            ("data-dir", self.dir.display().to_string()),
            ("listen-client-urls", self.client_url.clone()),
            ("advertise-client-urls", self.client_url.clone()),
            ("listen-peer-urls", self.peer_url.clone()),
            ("initial-advertise-peer-urls", self.peer_url.clone()),
            ("initial-cluster", format!("{}={}", self.name, self.peer_url)),
        ]
    }

    pub(crate) fn client_address(&self) -> &str {
        self.client_url.trim_start_matches("http://")
    }

    /// Deletes the member's data dir, and starts etcd with only these arguments.
    pub(crate) fn run_with(&self, arguments: &[&str]) -> Etcd {
        let _ = fs::remove_dir_all(&self.dir);
        let log = self.dir.with_extension("log");
        let output = File::create(&log).unwrap();
        let child = command(&self.version.binary)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .unwrap();
        Etcd { child, place: self.clone(), log }
    }

    /// Starts etcd on the member's data as the only member of a forced new cluster.
    pub(crate) fn force_new_cluster(&self) -> Etcd {
        self.run(&["--force-new-cluster"])
    }
}

/// An etcd that runs. It is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Etcd {
    child: Child,
    pub(crate) place: Place,
    log: PathBuf,
}

impl Etcd {
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }

    pub(crate) fn pid(&self) -> nix::unistd::Pid {
        nix::unistd::Pid::from_raw(i32::try_from(self.child.id()).unwrap())
    }

    pub(crate) fn signal(&self, signal: nix::sys::signal::Signal) {
        nix::sys::signal::kill(self.pid(), signal).unwrap();
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits until the etcd exits by itself.
    pub(crate) fn wait_for_exit(&mut self) {
        until("etcd to end by itself", || self.child.try_wait().unwrap().map(drop));
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    pub(crate) fn client(&self) -> Asker {
        Asker::new(&self.place.client_url, ConnectOptions::new().with_timeout(Duration::from_secs(3)))
    }

    /// Waits until the etcd has a leader and answers. Returns a client of it.
    pub(crate) fn wait(&mut self) -> Asker {
        let mut client = self.client();
        let began = Instant::now();
        while client.status().is_none_or(|status| status.leader() == 0) {
            let ended = self.child.try_wait().unwrap();
            let late = began.elapsed() > PATIENCE;
            assert!(ended.is_none() && !late, "{} does not serve ({ended:?}):\n{}", self.place.name, tail(&self.log()));
            clock::sleep(Duration::from_millis(50));
        }
        client
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.kill();
    }
}

fn tail(text: &str) -> &str {
    text.char_indices().rev().nth(3000).map_or(text, |(at, _)| &text[at..])
}

/// A client of etcd that blocks until it has the answer.
pub(crate) struct Asker {
    pub(crate) runtime: tokio::runtime::Runtime,
    pub(crate) client: Client,
}

impl Asker {
    pub(crate) fn new(url: &str, options: ConnectOptions) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = runtime.block_on(Client::connect([url], Some(options))).unwrap();
        Self { runtime, client }
    }

    pub(crate) fn status(&mut self) -> Option<StatusResponse> {
        self.runtime.block_on(self.client.status()).ok()
    }

    pub(crate) fn members(&mut self) -> Vec<Member> {
        self.runtime.block_on(self.client.member_list()).unwrap().members().to_vec()
    }

    pub(crate) fn put(&mut self, key: &str, value: Vec<u8>) -> Result<(), Error> {
        self.runtime.block_on(self.client.put(key, value, None)).map(drop)
    }

    /// Repeats a request that etcd may refuse for a while, such as a change of members right after an election.
    fn insist<T>(&mut self, what: &str, mut ask: impl FnMut(&mut Self) -> Result<T, Error>) -> T {
        let began = Instant::now();
        loop {
            match ask(self) {
                Ok(answer) => return answer,
                Err(error) => assert!(began.elapsed() < PATIENCE, "{what}: {error}"),
            }
            clock::sleep(Duration::from_millis(200));
        }
    }

    /// Adds a member to the cluster, as a learner or as a voter. Returns its id.
    pub(crate) fn add(&mut self, place: &Place, is_learner: bool) -> u64 {
        let options = MemberAddOptions::new();
        let options = if is_learner { options.with_is_learner() } else { options };
        self.insist("member add", |asker| {
            let added = asker.client.member_add([&place.peer_url], Some(options.clone()));
            asker.runtime.block_on(added).map(|answer| answer.member().unwrap().id())
        })
    }

    pub(crate) fn promote(&mut self, id: u64) {
        self.insist("member promote", |asker| asker.runtime.block_on(asker.client.member_promote(id)).map(drop));
    }

    pub(crate) fn remove(&mut self, id: u64) {
        self.insist("member remove", |asker| asker.runtime.block_on(asker.client.member_remove(id)).map(drop));
    }

    /// Returns whether etcd refuses to add `place`.
    pub(crate) fn is_add_refused(&mut self, place: &Place) -> bool {
        self.runtime.block_on(self.client.member_add([&place.peer_url], None)).is_err()
    }

    /// Returns the keys below `prefix`.
    pub(crate) fn keys(&mut self, prefix: &str) -> Vec<String> {
        let options = GetOptions::new().with_prefix().with_keys_only();
        let answer =
            self.insist("get", |asker| asker.runtime.block_on(asker.client.get(prefix, Some(options.clone()))));
        answer.kvs().iter().map(|pair| pair.key_str().unwrap().to_owned()).collect()
    }
}

/// Calls `ask` again and again until it returns a value. Fails after three minutes.
pub(crate) fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(began.elapsed() < 6 * PATIENCE, "waited in vain for {what}");
        clock::sleep(Duration::from_millis(100));
    }
}
