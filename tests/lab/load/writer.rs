//! Clients that write to etcd without pause, and record every acknowledgement. [`crate::judge::verdict`] judges them.

use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use etcd_client::{Client, TlsOptions};
use nix::sched::{CloneFlags, setns};

use crate::cluster::etcd;
use crate::host::net;
use crate::host::node::{NODES, Node};
use crate::host::state::{self, Lab};
use crate::judge::history::{self, Ack, Header};
use crate::load::chain::{self, ChainStep, Deed, Link};
use crate::load::stalls::{Span, Stalls};
use crate::sh::{self, Result};

/// The kind and number of clients that write to etcd in a run.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// The number of clients that write in parallel. Each switches to the other endpoint when a write fails.
    writers: usize,
    /// The pause of a client between two writes.
    between: Duration,
    /// The interval between the writes of a client that uses only one node.
    watch_every: Duration,
    /// The interval at which a client on each node raises the shared counter (see [`chain`]), and another one reads it.
    chain_every: Duration,
}

impl Load {
    /// Returns this load with longer pauses on slower hosts. Without them, an emulated core would only handle writes and TLS handshakes.
    fn stretched(self) -> Self {
        Self {
            between: sh::patience(self.between),
            watch_every: sh::patience(self.watch_every),
            chain_every: sh::patience(self.chain_every),
            ..self
        }
    }
}

/// A load of a hundred writes a second, so that a write is nearly always in flight. The machine's cores stay free for the clusters. With
/// a pause of 5 ms, etcd and the writers took half a core of a slow machine for each lab.
pub const STEADY: Load = Load {
    writers: 4,
    between: Duration::from_millis(20),
    watch_every: Duration::from_millis(100),
    chain_every: Duration::from_millis(200),
};

/// A load of one write after the other. Between two writes, both nodes' logs have the newest acknowledged entry, but neither records that
/// it is committed. With several writers, the next entry nearly always follows at once, and records that as well.
pub const ONE_BY_ONE: Load = Load {
    writers: 1,
    between: Duration::from_millis(10),
    watch_every: Duration::from_secs(1),
    chain_every: Duration::from_secs(1),
};

/// A load of many parallel writers, like the clients of a busy API server. Entries are always in flight.
pub const SIXTEEN: Load = Load {
    writers: 16,
    between: Duration::from_millis(20),
    watch_every: Duration::from_millis(100),
    chain_every: Duration::from_millis(200),
};

/// The time-out for the first few hundred writes, before which no scenario measures anything.
pub const FIRST_WRITES: Duration = Duration::from_secs(120);
/// The number of acknowledged writes after which a node counts as taking writes.
const SOME_WRITES: usize = 5;
/// The time after which a write without a response counts as failed. The client then tries another key through the other endpoint.
const WRITE_TIMEOUT: Duration = Duration::from_millis(700);
/// The pause after a failed write. A refused connection fails at once, and would be tried again all the time.
const AFTER_FAILURE: Duration = Duration::from_millis(50);

/// The size in bytes of a value that only fills the database.
const FILLING: usize = 1 << 20;
/// The number of parallel clients that fill the database.
const FILLERS: u32 = 4;

/// Fills the database, and so etcd's log as well, with values of `megabytes` in total.
pub fn fill(lab: &Lab, megabytes: u32) -> Result<()> {
    let network = File::open(net::client_handle(lab))?;
    let tls = etcd::tls(lab)?;
    let filled = std::thread::spawn(move || {
        setns(network, CloneFlags::CLONE_NEWNET)?;
        etcd::runtime()?.block_on(fill_all(tls, megabytes))
    });
    filled.join().unwrap_or_else(|_| Err("the fillers failed".into()))
}

async fn fill_all(tls: TlsOptions, megabytes: u32) -> Result<()> {
    let mut tasks = Vec::new();
    for first in 0..FILLERS {
        let tls = tls.clone();
        tasks.push(tokio::spawn(async move {
            let mut client = etcd::connect(&tls, NODES[0]).await.map_err(|error| error.to_string())?;
            for number in (first..megabytes).step_by(FILLERS as usize) {
                let put = client.put(format!("filling/{number}"), vec![b'x'; FILLING], None).await;
                put.map_err(|error| error.to_string())?;
            }
            Ok::<_, String>(())
        }));
    }
    for task in tasks {
        task.await.map_err(|error| error.to_string())??;
    }
    Ok(())
}

/// The running clients of a [`Load`]: writers, single-node writers, and those of the shared counter (see [`chain`]).
pub struct Writers {
    pub(crate) lab: Lab,
    shared: Arc<Shared>,
    pub(crate) stalls: Stalls,
    thread: Option<JoinHandle<Result<()>>>,
}

struct Shared {
    /// The prefix of this run's keys in etcd.
    prefix: String,
    began: Instant,
    stop: AtomicBool,
    acks: Mutex<Vec<Ack>>,
    chain: Mutex<Vec<ChainStep>>,
    /// The file to which all acknowledged writes are appended, for debugging a failed run.
    acks_file: Mutex<File>,
    chain_file: Mutex<File>,
}

impl Writers {
    /// Starts the clients in the network namespace of the lab's client.
    pub fn start(lab: &Lab, load: Load) -> Result<Self> {
        let label = state::since_epoch().as_millis();
        let file = |what: &str| File::create(lab.dir().join(format!("{what}-{label}.tsv")));
        let shared = Arc::new(Shared {
            prefix: format!("lab/{label}/"),
            began: Instant::now(),
            stop: AtomicBool::new(false),
            acks: Mutex::new(Vec::new()),
            chain: Mutex::new(Vec::new()),
            acks_file: Mutex::new(file("acks")?),
            chain_file: Mutex::new(file("chain")?),
        });
        let network = File::open(net::client_handle(lab))?;
        // The credentials are read again for each connection, because a scenario may replace the certificates.
        let with = lab.clone();
        etcd::tls(lab)?;
        let stalls = Stalls::watch(lab.dir().join(format!("stalls-{label}")), shared.began)?;
        let for_thread = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            setns(network, CloneFlags::CLONE_NEWNET)?;
            etcd::runtime()?.block_on(write_all(for_thread, with, load))
        });
        Ok(Self { lab: lab.clone(), shared, stalls, thread: Some(thread) })
    }

    /// Returns the time since the writers began, from which all times of their responses count.
    pub fn now(&self) -> Duration {
        self.shared.began.elapsed()
    }

    /// Returns the number of writes acknowledged so far.
    pub fn count(&self) -> usize {
        lock(&self.shared.acks).len()
    }

    /// Returns the first write that began after `moment` and was acknowledged; `None` if there is none yet.
    pub fn first_after(&self, moment: Duration) -> Option<Ack> {
        lock(&self.shared.acks).iter().filter(|ack| ack.began > moment).min_by_key(|ack| ack.ended).cloned()
    }

    /// Waits until each node has acknowledged some writes that began after this call.
    pub fn wait_on_each(&self) -> Result<()> {
        let moment = self.now();
        let has_some = |acks: &[Ack], node| {
            acks.iter().filter(|ack| ack.began > moment && ack.node == node).take(SOME_WRITES).count() == SOME_WRITES
        };
        sh::wait_for("new writes through each node", FIRST_WRITES, Duration::from_millis(200), || {
            let acks = lock(&self.shared.acks);
            NODES.into_iter().all(|node| has_some(&acks, node)).then_some(())
        })
    }

    /// Returns all acknowledged writes so far.
    pub fn acknowledged(&self) -> Vec<Ack> {
        lock(&self.shared.acks).clone()
    }

    /// Returns all requests to the shared counter so far, with their responses.
    pub fn chain(&self) -> Vec<ChainStep> {
        lock(&self.shared.chain).clone()
    }

    /// Returns the prefix of this run's keys.
    pub fn prefix(&self) -> &str {
        &self.shared.prefix
    }

    /// Stops the writers, and returns all acknowledged writes.
    pub fn stop(&mut self) -> Result<Vec<Ack>> {
        self.shared.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.join().map_err(|_| "the writers panicked")??;
        }
        Ok(self.acknowledged())
    }

    /// Returns the longest time without an acknowledged write, and when it began. It counts from the first acknowledged write until now.
    pub fn longest_gap(&self) -> (Duration, Duration) {
        self.longest_beside(&[])
    }

    /// Returns the longest time for which etcd and its agents made clients wait for an acknowledged write, and when it began. This is
    /// [`Self::longest_gap`] without the time in which the machine that runs the lab stalled.
    pub fn longest_wait(&self) -> (Duration, Duration) {
        self.longest_beside(&self.stalls.seen())
    }

    fn longest_beside(&self, stalls: &[Span]) -> (Duration, Duration) {
        let acks = self.acknowledged();
        let first = acks.iter().map(|ack| ack.ended).min().unwrap_or_default();
        history::longest_beside(&acks, first, self.now(), stalls)
    }
}

impl Drop for Writers {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
    }
}

fn lock<T>(records: &Mutex<Vec<T>>) -> std::sync::MutexGuard<'_, Vec<T>> {
    records.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn say(file: &Mutex<File>, line: &str) {
    if let Ok(mut file) = file.lock() {
        let _ = writeln!(file, "{line}");
    }
}

impl Shared {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    fn record(&self, ack: Ack) {
        let Ack { key, began, ended, node, said: Header { revision, term, cluster, member } } = &ack;
        let (began, ended) = (began.as_secs_f64(), ended.as_secs_f64());
        let line = format!("{began:.6}\t{ended:.6}\t{node}\t{revision}\t{term}\t{cluster:x}\t{member:x}\t{key}");
        say(&self.acks_file, &line);
        lock(&self.acks).push(ack);
    }

    fn record_step(&self, step: ChainStep) {
        let (began, ended) = (step.began.as_secs_f64(), step.ended.as_secs_f64());
        say(&self.chain_file, &format!("{began:.6}\t{ended:.6}\t{}\t{:?}", step.node, step.deed));
        lock(&self.chain).push(step);
    }
}

async fn write_all(shared: Arc<Shared>, lab: Lab, load: Load) -> Result<()> {
    let mut tasks = Vec::new();
    let load = load.stretched();
    for number in 0..load.writers {
        let node = NODES[number % NODES.len()];
        tasks.push(tokio::spawn(write(Arc::clone(&shared), lab.clone(), number, node, load.between)));
    }
    for node in NODES {
        tasks.push(tokio::spawn(watch(Arc::clone(&shared), lab.clone(), node, load.watch_every)));
        tasks.push(tokio::spawn(go_on(Arc::clone(&shared), lab.clone(), node, load.chain_every)));
        tasks.push(tokio::spawn(look(Arc::clone(&shared), lab.clone(), node, load.chain_every)));
    }
    for task in tasks {
        task.await.map_err(|error| format!("a client of the lab's ended by itself: {error}"))?;
    }
    Ok(())
}

/// Runs a client that writes one key after the other. It tries each write through either endpoint until a try is
/// acknowledged. Each try has a key of its own. With one key for all tries of a write, an earlier try that etcd applied
/// without a response could hide that etcd lost the acknowledged try.
async fn write(shared: Arc<Shared>, lab: Lab, number: usize, first: Node, between: Duration) {
    let mut endpoint = Endpoint::new(first);
    let mut count = 0_u64;
    while !shared.stopped() {
        count += 1;
        let mut tries = 0_u64;
        while !shared.stopped() {
            tries += 1;
            let key = format!("{}w{number}-{count:08}-{tries}", shared.prefix);
            if endpoint.put(&shared, &lab, &key).await {
                break;
            }
            endpoint = Endpoint::new(endpoint.node.other());
            tokio::time::sleep(sh::patience(AFTER_FAILURE)).await;
        }
        tokio::time::sleep(between).await;
    }
}

/// Runs a client that writes through one node only, so that the run detects a node that takes writes on its own.
async fn watch(shared: Arc<Shared>, lab: Lab, node: Node, every: Duration) {
    let mut endpoint = Endpoint::new(node);
    let mut count = 0_u64;
    while !shared.stopped() {
        count += 1;
        let key = format!("{}watch-{node}-{count:08}", shared.prefix);
        if !endpoint.put(&shared, &lab, &key).await {
            endpoint = Endpoint::new(node);
        }
        tokio::time::sleep(every).await;
    }
}

/// Runs a client that raises the shared counter (see [`chain`]) through one node only, and competes with the other
/// node's client. The slower client receives the present value, and tries again at once.
async fn go_on(shared: Arc<Shared>, lab: Lab, node: Node, every: Duration) {
    let key = format!("{}{}", shared.prefix, chain::KEY);
    let mut endpoint = Endpoint::new(node);
    let mut known = None;
    let mut tries = 0_u64;
    while !shared.stopped() {
        tries += 1;
        known = match known {
            None => endpoint.look(&shared, &lab, &key).await,
            Some(link) => {
                let (swapped, link) = endpoint.swap(&shared, &lab, &key, &link, &format!("{node}-{tries}")).await;
                if !swapped && link.is_some() {
                    known = link;
                    continue;
                }
                link
            }
        };
        if known.is_none() {
            endpoint = Endpoint::new(node);
        }
        tokio::time::sleep(every).await;
    }
}

/// Runs a client that reads the shared counter (see [`chain`]) through one node only.
async fn look(shared: Arc<Shared>, lab: Lab, node: Node, every: Duration) {
    let key = format!("{}{}", shared.prefix, chain::KEY);
    let mut endpoint = Endpoint::new(node);
    while !shared.stopped() {
        if endpoint.look(&shared, &lab, &key).await.is_none() {
            endpoint = Endpoint::new(node);
        }
        tokio::time::sleep(every).await;
    }
}

/// A node with a connection to its etcd that is made anew after each failure. An old connection to a host without power would hang long
/// after the host's return.
struct Endpoint {
    node: Node,
    client: Option<Client>,
}

impl Endpoint {
    fn new(node: Node) -> Self {
        Self { node, client: None }
    }

    /// Writes a key. Records the write and returns true if it was acknowledged in time.
    async fn put(&mut self, shared: &Shared, lab: &Lab, key: &str) -> bool {
        let began = shared.began.elapsed();
        let answer = tokio::time::timeout(sh::patience(WRITE_TIMEOUT), self.try_put(lab, key)).await;
        let Ok(Some(said)) = answer else { return false };
        let ended = shared.began.elapsed();
        shared.record(Ack { key: key.to_owned(), began, ended, node: self.node, said });
        true
    }

    async fn try_put(&mut self, lab: &Lab, key: &str) -> Option<Header> {
        let answer = self.client(lab).await?.put(key, "", None).await.ok()?;
        etcd::header(answer.header())
    }

    /// Reads the shared counter, and records the response. `None` if no response arrives in time.
    async fn look(&mut self, shared: &Shared, lab: &Lab, key: &str) -> Option<Link> {
        let began = shared.began.elapsed();
        let read = async { chain::read(self.client(lab).await?, key).await };
        let deed = tokio::time::timeout(sh::patience(WRITE_TIMEOUT), read).await.ok()??;
        self.record(shared, began, deed).1
    }

    /// Raises the shared counter from `known`. Returns whether that was acknowledged, and the present value. A try without a response is
    /// recorded, too.
    async fn swap(
        &mut self,
        shared: &Shared,
        lab: &Lab,
        key: &str,
        known: &Link,
        author: &str,
    ) -> (bool, Option<Link>) {
        let began = shared.began.elapsed();
        let swap = async { chain::swap(self.client(lab).await?, key, known, author).await };
        let deed = tokio::time::timeout(sh::patience(WRITE_TIMEOUT), swap).await.ok().flatten();
        let tried = || Deed::Tried { number: known.number + 1, author: author.to_owned() };
        self.record(shared, began, deed.unwrap_or_else(tried))
    }

    fn record(&self, shared: &Shared, began: Duration, deed: Deed) -> (bool, Option<Link>) {
        let known = match &deed {
            Deed::Swapped { link, .. } => (true, Some(link.clone())),
            Deed::Read { link, .. } => (false, Some(link.clone())),
            Deed::Tried { .. } => (false, None),
        };
        shared.record_step(ChainStep { began, ended: shared.began.elapsed(), node: self.node, deed });
        known
    }

    async fn client(&mut self, lab: &Lab) -> Option<&mut Client> {
        if self.client.is_none() {
            self.client = etcd::connect(&etcd::tls(lab).ok()?, self.node).await.ok();
        }
        self.client.as_mut()
    }
}

/// Runs the command `cargo lab write`.
pub fn by_hand(lab: &Lab, seconds: &str) -> Result<()> {
    let seconds: u64 = seconds.parse().map_err(|_| format!("'{seconds}' is no number of seconds"))?;
    let mut writers = Writers::start(lab, STEADY)?;
    for second in 1..=seconds {
        std::thread::sleep(Duration::from_secs(1));
        println!("{second:>4} s: {} writes acknowledged", writers.count());
    }
    let verdict = writers.judge()?;
    println!(
        "{} acknowledged, {} lost, longest gap {:.2} s, {} signs of two histories, {} faults of the chain",
        verdict.acknowledged,
        verdict.lost.len(),
        verdict.gap.as_secs_f64(),
        verdict.forks.len(),
        verdict.chain.len()
    );
    verdict.must_be_good()
}
