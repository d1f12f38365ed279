//! The verdict on a run of writers: everything that was answered, compared with the final stores of both nodes.

use std::collections::BTreeMap;
use std::time::Duration;

use etcd_client::{GetOptions, TlsOptions};

use crate::cluster::etcd;
use crate::host::node::{NODES, Node};
use crate::judge::check;
use crate::judge::history::{self, Ack, Fork, Store};
use crate::load::chain::{self, ChainStep, Deed, Link};
use crate::load::writer::Writers;
use crate::sh::Result;

const PAGE: i64 = 2000;

/// The beginning and the end of a time in which only one node took writes, counted from the beginning of the run. An
/// operator gave these writes up.
pub type Window = (Duration, Duration);

/// All responses of etcd to the clients of one run.
#[derive(Clone, Debug, Default)]
pub struct Records {
    pub writes: Vec<Ack>,
    pub chain: Vec<ChainStep>,
}

/// The final contents of one node's etcd: its store, and the last value of the shared counter (see [`chain`]).
#[derive(Clone, Debug)]
pub struct End {
    pub store: Store,
    pub link: Link,
}

/// The faults that the judge finds in the records of one run.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    pub lost: Vec<Ack>,
    pub forks: Vec<Fork>,
    pub chain: Vec<String>,
}

impl Records {
    /// Returns the records except those in the window. An operator gave these up.
    fn kept(&self, (from, to): Window) -> Self {
        self.filtered(|began| !(began > from && began < to))
    }

    /// Returns the records until the end of the window. They include those that an operator gave up, because these
    /// form one history with the earlier ones.
    fn until(&self, (_, to): Window) -> Self {
        self.filtered(|began| began < to)
    }

    fn filtered(&self, keep: impl Fn(Duration) -> bool) -> Self {
        let writes = self.writes.iter().filter(|ack| keep(ack.began)).cloned().collect();
        // Either history may contain a number that was tried without an answer.
        let is_kept = |step: &&ChainStep| keep(step.began) || matches!(step.deed, Deed::Tried { .. });
        Self { writes, chain: self.chain.iter().filter(is_kept).cloned().collect() }
    }

    /// Returns the pairs of responses that contradict each other.
    fn forks(&self) -> Vec<Fork> {
        let mut writes = self.writes.clone();
        writes.extend(chain::writes(&self.chain));
        history::forks(&writes, &chain::reads(&self.chain))
    }
}

/// Judges the records of a run. The writes in the window `given_up` may be missing in the end, but must form one
/// history with the writes before them. The writes after the window must also form one history with the writes before
/// it.
pub fn findings(records: &Records, given_up: Option<Window>, ends: &[End]) -> Findings {
    let mut found = Findings::default();
    let mut kept = records.clone();
    if let Some(window) = given_up {
        let ended = records.until(window);
        found.forks = ended.forks();
        found.chain = chain::faults(&ended.chain, None);
        kept = records.kept(window);
    }
    add(&mut found.forks, kept.forks());
    for end in ends {
        add(&mut found.forks, history::beside(&kept.writes, &end.store));
        add(&mut found.lost, history::lost(&kept.writes, &end.store).into_iter().cloned());
        add(&mut found.chain, chain::faults(&kept.chain, Some(&end.link)));
    }
    found
}

fn add<T: PartialEq>(all: &mut Vec<T>, more: impl IntoIterator<Item = T>) {
    for one in more {
        if !all.contains(&one) {
            all.push(one);
        }
    }
}

/// The result of a run of writers, with all faults.
#[derive(Clone, Debug)]
pub struct Verdict {
    pub acknowledged: usize,
    pub lost: Vec<Ack>,
    pub forks: Vec<Fork>,
    /// The faults of the shared counter, which a client on each node raises by one (see [`chain`]).
    pub chain: Vec<String>,
    /// True if the stores of the two nodes differ.
    pub diverged: bool,
    /// The longest time without an acknowledged write.
    pub gap: Duration,
    /// The number of acknowledged writes that an operator gave up by name.
    pub given_up: usize,
}

impl Verdict {
    /// Returns an error that describes the first fault. Reports two histories rather than lost writes, because two
    /// histories cause lost writes.
    pub fn must_be_good(&self) -> Result<()> {
        if let Some(fork) = self.forks.first() {
            let (first, second) = (tell(&fork.first), tell(&fork.second));
            return Err(format!("the answers are not one history: {first}, {second}: {}", fork.why).into());
        }
        if let Some(ack) = self.lost.first() {
            let count = self.lost.len();
            return Err(format!("{count} acknowledged writes are lost, the first: {}", tell(ack)).into());
        }
        if let Some(fault) = self.chain.first() {
            return Err(fault.clone().into());
        }
        if self.diverged {
            return Err("the two members hold different data".into());
        }
        Ok(())
    }
}

fn tell(ack: &Ack) -> String {
    let said = ack.said;
    format!(
        "{} at revision {} from {} (member {:x}, term {}) after {:.2} s",
        ack.key,
        said.revision,
        ack.node,
        said.member,
        said.term,
        ack.ended.as_secs_f64()
    )
}

impl Writers {
    /// Stops the writers, reads everything back from both nodes, and judges the run. Both members must be voters
    /// again.
    pub fn judge(&mut self) -> Result<Verdict> {
        self.judge_without(None)
    }

    /// Judges the run as [`Self::judge`] does, without the writes in the window that an operator gave up.
    pub fn judge_without(&mut self, given_up: Option<Window>) -> Result<Verdict> {
        let mut verdict = self.judge_by(&NODES, given_up)?;
        let [one, two] = etcd::hashes(&self.lab)?;
        verdict.diverged = one != two;
        Ok(verdict)
    }

    /// Stops the writers, reads everything back from the nodes `serving`, and judges the run.
    pub fn judge_by(&mut self, serving: &[Node], given_up: Option<Window>) -> Result<Verdict> {
        let records = Records { writes: self.stop()?, chain: self.chain() };
        let ends = serving.iter().map(|node| self.read_back(*node)).collect::<Result<Vec<End>>>()?;
        let found = findings(&records, given_up, &ends);
        let all = records.writes.len();
        let kept = given_up.map_or(records.clone(), |window| records.kept(window)).writes;
        let last = kept.iter().map(|ack| ack.ended).max().unwrap_or_default();
        let first = kept.iter().map(|ack| ack.ended).min().unwrap_or_default();
        let (gap, _) = history::longest_gap(&kept, first, last);
        Ok(Verdict {
            acknowledged: kept.len(),
            lost: found.lost,
            forks: found.forks,
            chain: found.chain,
            diverged: false,
            gap,
            given_up: all - kept.len(),
        })
    }

    /// Reads every key of this run from one node by linearizable reads. A busy machine may need more than one try.
    pub fn read_back(&self, node: Node) -> Result<End> {
        let what = format!("the keys can be read from {node}");
        check::eventually(&what, || self.try_read_back(node), Result::is_ok)?
    }

    fn try_read_back(&self, node: Node) -> Result<End> {
        let tls = etcd::tls(&self.lab)?;
        let prefix = self.prefix().to_owned();
        etcd::as_client(&self.lab, move || etcd::runtime()?.block_on(read_end(&tls, node, &prefix)))
    }
}

async fn read_end(tls: &TlsOptions, node: Node, prefix: &str) -> Result<End> {
    let mut client = etcd::connect(tls, node).await?;
    let chain = format!("{prefix}{}", chain::KEY);
    let read = tokio::time::timeout(Duration::from_secs(10), chain::read(&mut client, &chain)).await;
    let Ok(Some(Deed::Read { link, said })) = read else {
        return Err(format!("{node} does not let the chain be read").into());
    };
    let mut keys = BTreeMap::new();
    // The byte after `/`, so that the range ends after the last key of the prefix.
    let end = format!("{}0", prefix.trim_end_matches('/'));
    let mut from = prefix.to_owned();
    loop {
        let options = GetOptions::new().with_range(end.clone()).with_limit(PAGE).with_keys_only();
        let page = tokio::time::timeout(Duration::from_secs(10), client.get(from.clone(), Some(options)));
        let page = page.await.map_err(|_| format!("{node} does not let its keys be read"))??;
        for pair in page.kvs() {
            keys.insert(pair.key_str()?.to_owned(), pair.mod_revision());
        }
        match keys.last_key_value() {
            Some((last, _)) if page.more() => from = format!("{last}\0"),
            _ => return Ok(End { store: Store { keys, cluster: said.cluster }, link }),
        }
    }
}
