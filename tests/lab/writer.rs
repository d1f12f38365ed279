//! Clients that write to etcd without pause and remember every acknowledgement. [`crate::verdict`] judges them.

use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use etcd_client::{Client, TlsOptions};
use nix::sched::{CloneFlags, setns};

use crate::chain::{self, ChainStep, Deed, Link};
use crate::etcd;
use crate::history::{self, Ack, Header};
use crate::net;
use crate::node::{NODES, Node};
use crate::sh::{self, Result};
use crate::stalls::{Span, Stalls};
use crate::state::{self, Lab};

/// How hard a run writes.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Writers at the same time; each turns to the other endpoint when a write fails.
    writers: usize,
    /// The pause between a writer's writes.
    between: Duration,
    /// How often the watch writes to each node.
    watch_every: Duration,
    /// How often the chain is read, and goes on, through each node.
    chain_every: Duration,
}

impl Load {
    /// For hosts that are slower: without it, all that an emulated core can do goes into the writes, and into a TLS handshake after
    /// each that fails.
    fn stretched(self) -> Self {
        Self {
            between: sh::patience(self.between),
            watch_every: sh::patience(self.watch_every),
            chain_every: sh::patience(self.chain_every),
            ..self
        }
    }
}

/// Writes are nearly always under way, a hundred a second, and yet the machine's cores are left to the clusters: with a pause of 5 ms
/// etcd and the writers took half a core of a slow machine for each lab.
pub const STEADY: Load = Load {
    writers: 4,
    between: Duration::from_millis(20),
    watch_every: Duration::from_millis(100),
    chain_every: Duration::from_millis(200),
};

/// One write after the other: between two of them the newest acknowledged entry is in both logs, and that it is
/// committed in neither. With several writers the next entry, which carries that word, is nearly always there already.
pub const ONE_BY_ONE: Load = Load {
    writers: 1,
    between: Duration::from_millis(10),
    watch_every: Duration::from_secs(1),
    chain_every: Duration::from_secs(1),
};

/// Many at the same time, as the clients of a busy API server: entries are always on their way between the members.
pub const SIXTEEN: Load = Load {
    writers: 16,
    between: Duration::from_millis(20),
    watch_every: Duration::from_millis(100),
    chain_every: Duration::from_millis(200),
};

/// How long a few hundred writes may take at the beginning: nothing is measured before they are there.
pub const FIRST_WRITES: Duration = Duration::from_secs(120);
/// What shows that a node takes writes again, and goes on with it.
const SOME_WRITES: usize = 5;
/// After this a write counts as failed, and another one is tried through the other endpoint.
const WRITE_TIMEOUT: Duration = Duration::from_millis(700);
/// A refused connection answers at once: no need to ask a thousand times a second.
const AFTER_FAILURE: Duration = Duration::from_millis(50);

/// How much one of the values has that only fill the database, and how many are on their way at once.
const FILLING: usize = 1 << 20;
const FILLERS: u32 = 4;

/// Fills the database with so many megabytes, which etcd's log then holds as well.
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

/// Writers, watch and chain under way.
pub struct Writers {
    pub(crate) lab: Lab,
    shared: Arc<Shared>,
    pub(crate) stalls: Stalls,
    thread: Option<JoinHandle<Result<()>>>,
}

struct Shared {
    /// Where the keys of this run live in etcd.
    prefix: String,
    began: Instant,
    stop: AtomicBool,
    acks: Mutex<Vec<Ack>>,
    chain: Mutex<Vec<ChainStep>>,
    /// The records on disk, for whoever looks into a failed run.
    acks_file: Mutex<File>,
    chain_file: Mutex<File>,
}

impl Writers {
    /// Starts them in the client's place on the network.
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
        // What a failed connection is made anew with may be another certificate by then.
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

    /// Time since the writers began: the clock of their acknowledgements.
    pub fn now(&self) -> Duration {
        self.shared.began.elapsed()
    }

    /// How many writes were acknowledged.
    pub fn count(&self) -> usize {
        lock(&self.shared.acks).len()
    }

    /// The first write that began after `moment` and was acknowledged.
    pub fn first_after(&self, moment: Duration) -> Option<Ack> {
        lock(&self.shared.acks).iter().filter(|ack| ack.began > moment).min_by_key(|ack| ack.ended).cloned()
    }

    /// Waits until each node has acknowledged some writes that begin from now on: they belong to the proof of a good end.
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

    /// Everything that was acknowledged so far.
    pub fn acknowledged(&self) -> Vec<Ack> {
        lock(&self.shared.acks).clone()
    }

    /// Everything that became of the chain so far.
    pub fn chain(&self) -> Vec<ChainStep> {
        lock(&self.shared.chain).clone()
    }

    /// What the keys of this run begin with.
    pub fn prefix(&self) -> &str {
        &self.shared.prefix
    }

    /// Ends the writing and answers all acknowledgements.
    pub fn stop(&mut self) -> Result<Vec<Ack>> {
        self.shared.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.join().map_err(|_| "the writers panicked")??;
        }
        Ok(self.acknowledged())
    }

    /// The longest time without an acknowledgement, from the first one until now, and when it began.
    pub fn longest_gap(&self) -> (Duration, Duration) {
        self.longest_beside(&[])
    }

    /// As [`Self::longest_gap`], less what the machine itself stood still: what etcd and its agents kept clients waiting.
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

/// One writer: a write after the other, each until one try is acknowledged, through either endpoint. Each try has a key
/// of its own: what comes of one that nobody answered says nothing about the one that was acknowledged.
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

/// The watch: writes through one node alone, so that a node which takes writes on its own is always caught at it.
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

/// The chain goes on through one node alone. Both nodes' clients put the same number, and each takes turns with the
/// other one: who comes too late is told what is there, and tries again at once.
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

/// Reads the chain through one node alone.
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

/// A node and the connection to it, made anew after each failure: a connection to a host without power would
/// otherwise be waited for long after the host is back.
struct Endpoint {
    node: Node,
    client: Option<Client>,
}

impl Endpoint {
    fn new(node: Node) -> Self {
        Self { node, client: None }
    }

    /// Whether the write was acknowledged in time; if so it is recorded.
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

    /// The chain's number, read in time and recorded.
    async fn look(&mut self, shared: &Shared, lab: &Lab, key: &str) -> Option<Link> {
        let began = shared.began.elapsed();
        let read = async { chain::read(self.client(lab).await?, key).await };
        let deed = tokio::time::timeout(sh::patience(WRITE_TIMEOUT), read).await.ok()??;
        self.record(shared, began, deed).1
    }

    /// Puts the number after `known`. Answers whether it is there, and what is; what nobody answered is recorded as
    /// that.
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

/// `cargo lab write`.
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
