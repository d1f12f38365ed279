//! Clients that write to etcd without pause and remember every acknowledgement, and the reading back.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use etcd_client::{Client, GetOptions, TlsOptions};
use nix::sched::{CloneFlags, setns};

use crate::check;
use crate::etcd;
use crate::history::{self, Ack};
use crate::net;
use crate::node::{NODES, Node};
use crate::sh::Result;
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
}

/// Writes are always under way, and yet the machine's cores are left to the clusters.
pub const STEADY: Load =
    Load { writers: 4, between: Duration::from_millis(5), watch_every: Duration::from_millis(100) };

/// One write after the other: between two of them the newest acknowledged entry is in both logs, and that it is
/// committed in neither. With several writers the next entry, which carries that word, is nearly always there already.
pub const ONE_BY_ONE: Load =
    Load { writers: 1, between: Duration::from_millis(10), watch_every: Duration::from_secs(1) };

/// Many at the same time, as the clients of a busy API server: entries are always on their way between the members.
pub const SIXTEEN: Load =
    Load { writers: 16, between: Duration::from_millis(20), watch_every: Duration::from_millis(100) };

/// How long a few hundred writes may take at the beginning: nothing is measured before they are there.
pub const FIRST_WRITES: Duration = Duration::from_secs(120);
/// After this a write counts as failed, and its key is written again through the other endpoint.
const WRITE_TIMEOUT: Duration = Duration::from_millis(700);
/// A refused connection answers at once: no need to ask a thousand times a second.
const AFTER_FAILURE: Duration = Duration::from_millis(50);
const PAGE: i64 = 2000;

/// Writers and watch under way.
pub struct Writers {
    lab: Lab,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<()>>>,
}

struct Shared {
    /// Where the keys of this run live in etcd.
    prefix: String,
    began: Instant,
    stop: AtomicBool,
    acks: Mutex<Vec<Ack>>,
    /// The record on disk, for whoever looks into a failed run.
    file: Mutex<File>,
}

impl Writers {
    /// Starts them in the client's place on the network.
    pub fn start(lab: &Lab, load: Load) -> Result<Self> {
        let label = state::since_epoch().as_millis();
        let path: PathBuf = lab.dir().join(format!("acks-{label}.tsv"));
        let shared = Arc::new(Shared {
            prefix: format!("lab/{label}/"),
            began: Instant::now(),
            stop: AtomicBool::new(false),
            acks: Mutex::new(Vec::new()),
            file: Mutex::new(File::create(path)?),
        });
        let network = File::open(net::client_handle(lab))?;
        let tls = etcd::tls(lab)?;
        let for_thread = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            setns(network, CloneFlags::CLONE_NEWNET)?;
            etcd::runtime()?.block_on(write_all(for_thread, tls, load));
            Ok(())
        });
        Ok(Self { lab: lab.clone(), shared, thread: Some(thread) })
    }

    /// Time since the writers began: the clock of their acknowledgements.
    pub fn now(&self) -> Duration {
        self.shared.began.elapsed()
    }

    /// How many writes were acknowledged.
    pub fn count(&self) -> usize {
        self.shared.lock().len()
    }

    /// The first write that began after `moment` and was acknowledged.
    pub fn first_after(&self, moment: Duration) -> Option<Ack> {
        self.shared.lock().iter().filter(|ack| ack.began > moment).min_by_key(|ack| ack.ended).cloned()
    }

    /// Everything that was acknowledged so far.
    pub fn acknowledged(&self) -> Vec<Ack> {
        self.shared.lock().clone()
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
        let acks = self.acknowledged();
        let first = acks.iter().map(|ack| ack.ended).min().unwrap_or_default();
        history::longest_gap(&acks, first, self.now())
    }

    /// Reads every key of this run from one node, linearizably. A busy machine may take more than one try.
    pub fn read_back(&self, node: Node) -> Result<BTreeSet<String>> {
        let what = format!("the keys can be read from {node}");
        check::eventually(&what, || self.try_read_back(node), Result::is_ok)?
    }

    fn try_read_back(&self, node: Node) -> Result<BTreeSet<String>> {
        let tls = etcd::tls(&self.lab)?;
        let prefix = self.shared.prefix.clone();
        etcd::as_client(&self.lab, move || etcd::runtime()?.block_on(read_keys(&tls, node, &prefix)))
    }
}

impl Drop for Writers {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Ack>> {
        self.acks.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    fn record(&self, ack: Ack) {
        if let Ok(mut file) = self.file.lock() {
            let _ = writeln!(
                file,
                "{:.6}\t{:.6}\t{}\t{}\t{}\t{}",
                ack.began.as_secs_f64(),
                ack.ended.as_secs_f64(),
                ack.node,
                ack.revision,
                ack.term,
                ack.key
            );
        }
        self.lock().push(ack);
    }
}

async fn write_all(shared: Arc<Shared>, tls: TlsOptions, load: Load) {
    let mut tasks = Vec::new();
    for number in 0..load.writers {
        let node = NODES[number % NODES.len()];
        tasks.push(tokio::spawn(write(Arc::clone(&shared), tls.clone(), number, node, load.between)));
    }
    for node in NODES {
        tasks.push(tokio::spawn(watch(Arc::clone(&shared), tls.clone(), node, load.watch_every)));
    }
    for task in tasks {
        let _ = task.await;
    }
}

/// One writer: a key after the other, each until it is acknowledged, through either endpoint.
async fn write(shared: Arc<Shared>, tls: TlsOptions, number: usize, first: Node, between: Duration) {
    let mut endpoint = Endpoint::new(first);
    let mut count = 0_u64;
    while !shared.stopped() {
        count += 1;
        let key = format!("{}w{number}-{count:08}", shared.prefix);
        while !shared.stopped() {
            if endpoint.put(&shared, &tls, &key).await {
                break;
            }
            endpoint = Endpoint::new(endpoint.node.other());
            tokio::time::sleep(AFTER_FAILURE).await;
        }
        tokio::time::sleep(between).await;
    }
}

/// The watch: writes through one node alone, so that a node which takes writes on its own is always caught at it.
async fn watch(shared: Arc<Shared>, tls: TlsOptions, node: Node, every: Duration) {
    let mut endpoint = Endpoint::new(node);
    let mut count = 0_u64;
    while !shared.stopped() {
        count += 1;
        let key = format!("{}watch-{node}-{count:08}", shared.prefix);
        if !endpoint.put(&shared, &tls, &key).await {
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
    async fn put(&mut self, shared: &Shared, tls: &TlsOptions, key: &str) -> bool {
        let began = shared.began.elapsed();
        let answer = tokio::time::timeout(WRITE_TIMEOUT, self.try_put(tls, key)).await;
        let Ok(Some((revision, term))) = answer else { return false };
        let ended = shared.began.elapsed();
        shared.record(Ack { key: key.to_owned(), began, ended, node: self.node, revision, term });
        true
    }

    async fn try_put(&mut self, tls: &TlsOptions, key: &str) -> Option<(i64, u64)> {
        if self.client.is_none() {
            self.client = etcd::connect(tls, self.node).await.ok();
        }
        let answer = self.client.as_mut()?.put(key, "", None).await.ok()?;
        let header = answer.header()?;
        Some((header.revision(), header.raft_term()))
    }
}

async fn read_keys(tls: &TlsOptions, node: Node, prefix: &str) -> Result<BTreeSet<String>> {
    let mut client = etcd::connect(tls, node).await?;
    let mut keys = BTreeSet::new();
    // The byte after '/', so that the range ends behind the last key of the prefix.
    let end = format!("{}0", prefix.trim_end_matches('/'));
    let mut from = prefix.to_owned();
    loop {
        let options = GetOptions::new().with_range(end.clone()).with_limit(PAGE).with_keys_only();
        let page = tokio::time::timeout(Duration::from_secs(10), client.get(from.clone(), Some(options)));
        let page = page.await.map_err(|_| format!("{node} does not let its keys be read"))??;
        for pair in page.kvs() {
            keys.insert(pair.key_str()?.to_owned());
        }
        match keys.last() {
            Some(last) if page.more() => from = format!("{last}\0"),
            _ => return Ok(keys),
        }
    }
}

/// What a run of writers came to.
#[derive(Clone, Debug)]
pub struct Verdict {
    pub acknowledged: usize,
    pub lost: Vec<Ack>,
    pub forks: Vec<history::Fork>,
    /// Whether the stores of both nodes differ.
    pub diverged: bool,
    /// The longest time without an acknowledgement.
    pub gap: Duration,
}

impl Verdict {
    /// An error that says what is wrong, if anything is: two histories before lost writes, as those follow from them.
    pub fn must_be_good(&self) -> Result<()> {
        if let Some(fork) = self.forks.first() {
            let tell = |ack: &Ack| format!("{} at revision {} from {}", ack.key, ack.revision, ack.node);
            let (first, second) = (tell(&fork.first), tell(&fork.second));
            return Err(format!("the acknowledged writes are not one history: {first}, {second}: {}", fork.why).into());
        }
        if let Some(ack) = self.lost.first() {
            let (count, revision, node) = (self.lost.len(), ack.revision, ack.node);
            return Err(
                format!("{count} acknowledged writes are lost, the first at revision {revision} from {node}").into()
            );
        }
        if self.diverged {
            return Err("the two members hold different data".into());
        }
        Ok(())
    }
}

impl Writers {
    /// Stops, reads everything back from both nodes, and judges. Both must be voters again.
    pub fn judge(&mut self) -> Result<Verdict> {
        self.judge_without(|_| false).map(|(verdict, _)| verdict)
    }

    /// As [`Self::judge`], without what an operator gave up by name; answers also how many writes those were.
    pub fn judge_without(&mut self, given_up: impl Fn(&Ack) -> bool) -> Result<(Verdict, usize)> {
        let mut acks = self.stop()?;
        let all = acks.len();
        acks.retain(|ack| !given_up(ack));
        let mut lost: Vec<Ack> = Vec::new();
        for node in NODES {
            let present = self.read_back(node)?;
            let missing = history::lost(&acks, &present).into_iter().filter(|ack| !lost.contains(ack));
            let missing: Vec<Ack> = missing.cloned().collect();
            lost.extend(missing);
        }
        let last = acks.iter().map(|ack| ack.ended).max().unwrap_or_default();
        let first = acks.iter().map(|ack| ack.ended).min().unwrap_or_default();
        let (gap, _) = history::longest_gap(&acks, first, last);
        let [one, two] = etcd::hashes(&self.lab)?;
        let verdict =
            Verdict { acknowledged: acks.len(), lost, forks: history::forks(&acks), diverged: one != two, gap };
        Ok((verdict, all - acks.len()))
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
        "{} acknowledged, {} lost, longest gap {:.2} s, {} signs of two histories",
        verdict.acknowledged,
        verdict.lost.len(),
        verdict.gap.as_secs_f64(),
        verdict.forks.len()
    );
    verdict.must_be_good()
}
