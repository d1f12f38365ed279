//! Watches on the writers' keys, each through only one node, and the check that they reported every acknowledged write.
//! One uses `etcdctl`, which requires a leader; the other one does not.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use etcd_client::{TlsOptions, WatchOptions, WatchResponse};
use nix::sched::{CloneFlags, setns};
use serde_json::Value;

use crate::cluster::etcd;
use crate::host::net;
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::judge::check::{eventually, must};
use crate::judge::history::Ack;
use crate::load::writer::Writers;
use crate::programs::etcdctl::{Etcdctl, Running};
use crate::sh::Result;

/// The key of each write that an etcd watch reported, by its revision.
type Told = BTreeMap<i64, String>;

/// Returns the writes that were acknowledged from revision `first` on and that the etcd watch did not report.
fn untold(acknowledged: &[Ack], told: &Told, first: i64) -> Vec<Ack> {
    let later = acknowledged.iter().filter(|ack| ack.said.revision >= first);
    later.filter(|ack| told.get(&ack.said.revision) != Some(&ack.key)).cloned().collect()
}

/// Waits until an etcd watch has reported every write that is acknowledged now.
fn has_told_all(who: &str, writers: &Writers, first: i64, mut told: impl FnMut() -> Result<Told>) -> Result<()> {
    let acknowledged = writers.acknowledged();
    let what = format!("{who} has told every acknowledged write");
    let look = || told().map(|told| untold(&acknowledged, &told, first));
    eventually(&what, look, |missing| missing.as_ref().is_ok_and(Vec::is_empty))?.map(drop)
}

/// A watch by `etcdctl watch`, which requires a leader and may end without one. The next call of `look` then starts
/// it again after the last reported revision.
pub struct ByEtcdctl {
    etcdctl: Etcdctl,
    prefix: String,
    log: PathBuf,
    first: i64,
    /// The reports of `etcdctl watch` processes that have ended.
    told: Told,
    ends: Vec<String>,
    now: Running,
}

impl ByEtcdctl {
    pub fn begin(lab: &Lab, etcdctl: &Etcdctl, writers: &Writers) -> Result<Self> {
        let (prefix, log) = (writers.prefix().to_owned(), lab.dir().join("etcdctl-watch.log"));
        let first = etcdctl.revision()? + 1;
        let now = start(etcdctl, &prefix, first, &log)?;
        let mut watch = Self { etcdctl: etcdctl.clone(), prefix, log, first, told: Told::new(), ends: Vec::new(), now };
        eventually("'etcdctl watch' tells of writes", || watch.now.said().len(), |length| *length > 0)?;
        must("'etcdctl watch' goes on", watch.now.goes_on(), |goes_on| *goes_on)?;
        Ok(watch)
    }

    pub fn has_told_all(&mut self, writers: &Writers) -> Result<()> {
        has_told_all("'etcdctl watch'", writers, self.first, || self.look())?;
        println!(
            "   'etcdctl watch' has told every write; it was begun anew {} times: {:?}",
            self.ends.len(),
            self.ends
        );
        Ok(())
    }

    /// Returns all reported writes. Starts `etcdctl watch` again if it has ended.
    fn look(&mut self) -> Result<Told> {
        if !self.now.goes_on() {
            let said = self.now.said();
            self.add(events(&said)?)?;
            self.ends.push(said.lines().last().unwrap_or_default().chars().take(200).collect());
            let from = self.told.keys().next_back().map_or(self.first, |last| last + 1);
            self.now = start(&self.etcdctl, &self.prefix, from, &self.log)?;
        }
        let earlier = self.told.clone();
        self.add(events(&self.now.said())?)?;
        Ok(std::mem::replace(&mut self.told, earlier))
    }

    fn add(&mut self, more: Told) -> Result<()> {
        if let Some(revision) = more.keys().find(|revision| self.told.contains_key(revision)) {
            return Err(format!("'etcdctl watch' told revision {revision} twice").into());
        }
        self.told.extend(more);
        Ok(())
    }
}

fn start(etcdctl: &Etcdctl, prefix: &str, from: i64, log: &Path) -> Result<Running> {
    etcdctl.start(&["watch", "--prefix", prefix, &format!("--rev={from}"), "--write-out=json"], log)
}

/// Parses the events in the output of `etcdctl watch`. A line that is not complete yet is left out.
fn events(said: &str) -> Result<Told> {
    let mut told = Told::new();
    let answers = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    for answer in answers {
        for event in answer.get("Events").and_then(Value::as_array).into_iter().flatten() {
            let kv = event.get("kv").ok_or_else(|| format!("an event without a key: {event}"))?;
            let revision = kv.get("mod_revision").and_then(Value::as_i64).ok_or("an event without a revision")?;
            let key = STANDARD.decode(kv.get("key").and_then(Value::as_str).unwrap_or_default())?;
            told.insert(revision, String::from_utf8_lossy(&key).into_owned());
        }
    }
    Ok(told)
}

/// An etcd watch that does not require a leader. etcd may break its connection, but must not cancel it.
pub struct WithoutLeader {
    shared: Arc<Shared>,
    first: i64,
}

struct Shared {
    stop: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    told: Told,
    begun: usize,
    /// The reasons that etcd gave when it canceled the watch.
    cancelled: Vec<String>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WithoutLeader {
    pub fn begin(lab: &Lab, node: Node, etcdctl: &Etcdctl, writers: &Writers) -> Result<Self> {
        let first = etcdctl.revision()? + 1;
        let shared = Arc::new(Shared { stop: AtomicBool::new(false), state: Mutex::default() });
        let (for_thread, tls, prefix) = (Arc::clone(&shared), etcd::tls(lab)?, writers.prefix().to_owned());
        let network = File::open(net::client_handle(lab))?;
        std::thread::spawn(move || -> Result<()> {
            setns(network, CloneFlags::CLONE_NEWNET)?;
            etcd::runtime()?.block_on(follow(&for_thread, &tls, node, &prefix, first));
            Ok(())
        });
        let watch = Self { shared, first };
        eventually("a watch tells of writes", || watch.shared.state().told.len(), |told| *told > 0)?;
        Ok(watch)
    }

    pub fn has_told_all(&self, writers: &Writers) -> Result<()> {
        has_told_all("a watch that requires no leader", writers, self.first, || Ok(self.shared.state().told.clone()))?;
        let state = self.shared.state();
        println!("   a watch that requires no leader has told every write, in {} connections", state.begun);
        must("etcd cancelled no watch that requires no leader", &state.cancelled, |cancelled| cancelled.is_empty())
            .map(drop)
    }
}

impl Drop for WithoutLeader {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
    }
}

/// Runs the watch on `node` until `stop` is set. Connects again when the connection breaks.
async fn follow(shared: &Shared, tls: &TlsOptions, node: Node, prefix: &str, first: i64) {
    while !shared.stop.load(Ordering::SeqCst) {
        let from = shared.state().told.keys().next_back().map_or(first, |last| last + 1);
        let options = WatchOptions::new().with_prefix().with_start_revision(from);
        if let Ok(mut client) = etcd::connect(tls, node).await
            && let Ok(mut stream) = client.watch(prefix, Some(options)).await
        {
            shared.state().begun += 1;
            while let Ok(Some(answer)) = stream.message().await {
                if !take(shared, &answer) {
                    break;
                }
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Records the events of a response to the watch, and returns whether the watch continues.
fn take(shared: &Shared, answer: &WatchResponse) -> bool {
    let mut state = shared.state();
    if answer.canceled() {
        state.cancelled.push(answer.cancel_reason().to_owned());
    }
    for kv in answer.events().iter().filter_map(etcd_client::Event::kv) {
        state.told.insert(kv.mod_revision(), String::from_utf8_lossy(kv.key()).into_owned());
    }
    !answer.canceled() && !shared.stop.load(Ordering::SeqCst)
}
