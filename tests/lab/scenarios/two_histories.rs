//! Both nodes ran standalone, one by an operator's confirmation and one as a survivor, and neither knew of the other's
//! fork: two histories with the same number of forks. Together they refuse until the operator chooses, and neither data
//! dir is changed. The command in the exit reason resolves it: the chosen history serves, and the other node's data is
//! kept. With `two_histories=primary` the primary's history serves without a question.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;

use super::left_behind::{LEFT, PEER, confirm, leave_behind};
use super::steps;
use super::table::{Scenario, scenario};
use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::cluster::redundant;
use crate::cluster::up::Wish;
use crate::cluster::{self, Failure};
use crate::host;
use crate::host::bmc;
use crate::host::node::NODES;
use crate::host::power;
use crate::host::state::Lab;
use crate::judge::check::{eventually, must, within};
use crate::judge::history::{self, Ack};
use crate::load::writer::Writers;
use crate::programs::etcdctl::Etcdctl;
use crate::sh::{Output, Result};

const PRIMARY: &str = "etcd_primary";
/// The end of the exit reason with which both nodes refuse to start etcd.
const WORDS: &str = "'crm_attribute -n etcd_primary -v NODE' chooses the data to keep: both nodes ran standalone";

/// The directory of the data that lost the choice between two histories, as a shell pattern.
const HISTORY: &str = "/var/lib/etcd/member-history-*";
/// The limit for the writes that were in flight at the power cut. Each writer has one, which it may have tried again under another key.
const IN_FLIGHT: usize = 16;

/// The pause before the choice in the case in which the operator chooses at once.
const AT_ONCE: Duration = Duration::from_secs(2);
/// The pause before the choice in the case in which the operator chooses late. Meanwhile each node has tried to start
/// several times, also right after the other one's failed start.
const LONG: Duration = Duration::from_secs(120);

pub(super) const SCENARIOS: &[Scenario] = &[
    scenario(
        "two_histories",
        "both nodes ran standalone: they refuse, and an operator's choice leads on",
        chosen_at_once,
    ),
    scenario(
        "two_histories_chosen_late",
        "the same, and the operator takes two minutes to choose: until then nobody decides, and nothing is touched",
        chosen_late,
    )
    .nightly(),
    scenario(
        "two_histories_kept",
        "the same with two_histories=primary: the primary's history serves without a question; the other one, compacted, is kept and listed",
        kept_by_a_parameter,
    ).nightly(),
];

fn chosen_at_once(lab: &Lab, wish: Wish) -> Result<()> {
    run(lab, wish, AT_ONCE)
}

fn chosen_late(lab: &Lab, wish: Wish) -> Result<()> {
    run(lab, wish, LONG)
}

/// Checks the parameter `two_histories=primary`. The history of the configured primary must continue without an
/// operator's choice.
fn kept_by_a_parameter(lab: &Lab, wish: Wish) -> Result<()> {
    let primary = format!("configured_primary={PEER}");
    pcs::run_and_wait(lab, LEFT, &["resource", "update", cluster::ETCD, &primary, "two_histories=primary"])?;
    let parted = Parted::make(lab, Losing::Compacted)?;
    let explain = || host::said(lab, LEFT, &["tandem", "explain"]);
    for node in NODES {
        power::on(lab, node)?;
    }
    let views = etcd::wait_two_voters(lab, Duration::from_secs(180))?;
    println!("   two voters without a person's word, and {} leads", views.leader);
    let shown = format!("{PEER}'s continues: two_histories=primary on both nodes");
    eventually("'tandem explain' names the history that continues", explain, |said| said.contains(&shown))?;
    must("no operator has chosen", choice(lab)?.stdout, |said| said.trim().is_empty())?;
    let events = host::must(lab, LEFT, &["tandem", "events", "--json"])?;
    must("the event has the path", events, |said| {
        said.contains("EtcdHistoryGivenUp") && said.contains("member-history-")
    })?;
    parted.ends(lab)?;
    let unset = ["resource", "update", cluster::ETCD, "configured_primary=", "two_histories="];
    pcs::run_and_wait(lab, LEFT, &unset)?;
    lab.set("boot-delay", &wish.boot_delay.to_string())?;
    super::clean(lab)
}

fn run(lab: &Lab, wish: Wish, until_chosen: Duration) -> Result<()> {
    let parted = Parted::make(lab, Losing::Whole)?;
    let histories = data(lab)?;
    for node in NODES {
        power::on(lab, node)?;
    }
    refuse(lab)?;
    nobody_decides(lab, until_chosen)?;
    must("both histories are as they were", data(lab)?, |now| *now == histories)?;
    choose(lab)?;
    etcd::wait_two_voters(lab, Duration::from_secs(180))?;
    parted.ends(lab)?;
    choice_is_taken_back(lab)?;
    lab.set("boot-delay", &wish.boot_delay.to_string())?;
    super::clean(lab)
}

/// Two nodes that are off and hold different histories, with the writes that each one acknowledged.
struct Parted {
    writers: Writers,
    acknowledged: Vec<Ack>,
    losing: Writers,
    given_up: Vec<Ack>,
    is_losing: Losing,
}

/// Whether the history that is given up has all its changes since the fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Losing {
    Whole,
    Compacted,
}

impl Parted {
    fn make(lab: &Lab, is_losing: Losing) -> Result<Self> {
        let mut writers = super::writing(lab)?;
        leave_behind(lab, &writers)?;
        let acknowledged = writers.stop()?;
        steps::wait_pacemaker(lab, LEFT)?;
        confirm(lab, "node2\nyes\nnode2\n", true)?;
        steps::wait_alone(lab, LEFT)?;
        // The history that is given up later takes writes, too, and loses power among them.
        let mut losing = super::writing(lab)?;
        if is_losing == Losing::Compacted {
            compact(lab)?;
        }
        power::cut(lab, LEFT)?;
        let given_up = losing.stop()?;
        bmc::set_mode(lab, PEER, "ok")?;
        Ok(Self { writers, acknowledged, losing, given_up, is_losing })
    }

    /// Checks that `PEER`, the chosen node, serves with all writes of its history. The other history must be kept on disk and listed, and
    /// `tandem data-dir forget` must delete it.
    fn ends(&self, lab: &Lab) -> Result<()> {
        let lost = history::lost(&self.acknowledged, &self.writers.read_back(PEER)?.store).len();
        println!(
            "   {} writes acknowledged until the chosen node was cut, {lost} of them lost",
            self.acknowledged.len()
        );
        if lost > 0 {
            return Err(format!("{lost} writes of the chosen history are lost").into());
        }
        is_kept(lab)?;
        self.is_listed(lab)?;
        is_forgotten(lab)
    }

    /// Checks the keys that `tandem data-dir diff` lists. They must be the writes that the losing node acknowledged, and
    /// those in flight when it lost power. A compacted history still has them, and counts as incomplete.
    fn is_listed(&self, lab: &Lab) -> Result<()> {
        let prefix = format!("{}w", self.losing.prefix());
        let words = format!("tandem data-dir diff {HISTORY} live --json --limit 0 --prefix {prefix}; test $? = 3");
        let list: Value = serde_json::from_str(&host::must(lab, LEFT, &["sh", "-c", &words])?)?;
        let keys = list["keys"].as_array().ok_or("the list has no keys")?;
        let listed: BTreeSet<&str> = keys.iter().filter_map(|key| key["key"].as_str()).collect();
        let acknowledged: BTreeSet<&str> =
            self.given_up.iter().map(|ack| ack.key.as_str()).filter(|key| key.starts_with(&prefix)).collect();
        let missing: Vec<_> = acknowledged.difference(&listed).collect();
        if !missing.is_empty() {
            return Err(format!("{} acknowledged writes are not in the list: {missing:?}", missing.len()).into());
        }
        let in_flight = listed.len() - acknowledged.len();
        println!("   {} writes of the other history are listed, {in_flight} of them were in flight", listed.len());
        must("few were in flight", in_flight, |count| *count <= IN_FLIGHT)?;
        let is_created =
            |key: &Value| key["change"] == "created" && key["b"] == "unchanged" && key["uncertain"] == false;
        must("each was created and is missed", keys.iter().all(is_created), |all| *all)?;
        let is_whole = self.is_losing == Losing::Whole;
        must("only whole histories are complete", list["complete"].as_bool(), |complete| *complete == Some(is_whole))?;
        let noted = host::must(lab, LEFT, &["sh", "-c", &format!("cat {HISTORY}/tandem-history.json")])?;
        must("the fork was noted", noted, |noted| noted.contains("alone_revision") && noted.contains(PEER.name()))
            .map(drop)
    }
}

/// Compacts the history of [`LEFT`] up to a revision after the fork, as Kubernetes does every five minutes.
fn compact(lab: &Lab) -> Result<()> {
    let etcdctl = Etcdctl::at(lab, LEFT)?;
    let revision = etcdctl.revision()?.to_string();
    lab.event(&format!("the history of {LEFT} is compacted to revision {revision}"));
    etcdctl.must(&["compact", &revision, "--physical"]).map(drop)
}

/// Checks that neither node starts etcd, and that both have the same exit reason.
fn refuse(lab: &Lab) -> Result<()> {
    let both_say = |failures: &Vec<Failure>| {
        let says = |node| failures.iter().any(|failure| failure.is_on(node) && failure.reason.ends_with(WORDS));
        NODES.into_iter().all(says)
    };
    let failures = || cluster::failures(lab, NODES[0]);
    within(Duration::from_secs(150), "both nodes refuse to start etcd", failures, both_say).map(drop)
}

/// Checks for the duration `time` that no etcd runs on either node, because no operator has chosen.
fn nobody_decides(lab: &Lab, time: Duration) -> Result<()> {
    let until = Instant::now() + time;
    while Instant::now() < until {
        NODES.into_iter().try_for_each(|node| steps::stays_inert(lab, node, 1))?;
    }
    Ok(())
}

/// Returns the files of etcd on each node, each with its size and the time of its last change.
fn data(lab: &Lab) -> Result<[BTreeMap<PathBuf, (u64, SystemTime)>; 2]> {
    let [one, two] = NODES.map(|node| {
        let mut files = BTreeMap::new();
        collect(&lab.disk(node, "var-lib").join("etcd"), &mut files).map(|()| files)
    });
    Ok([one?, two?])
}

fn collect(directory: &Path, files: &mut BTreeMap<PathBuf, (u64, SystemTime)>) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let (path, kind) = entry.map(|entry| (entry.path(), entry.file_type()))?;
        if kind?.is_dir() {
            collect(&path, files)?;
        } else if path.components().any(|part| part.as_os_str() == "member") {
            let about = fs::metadata(&path)?;
            files.insert(path, (about.len(), about.modified()?));
        }
    }
    Ok(())
}

/// Runs the command in the exit reason, with the name of the node that holds the data to keep.
fn choose(lab: &Lab) -> Result<()> {
    let typed = WORDS.split('\'').nth(1).unwrap_or_default().replace("NODE", PEER.name());
    lab.event(&format!("the operator types: {typed}"));
    host::must(lab, LEFT, &["sh", "-c", &typed]).map(drop)
}

/// Checks that the data of the history that was not chosen is kept next to the data dir. Only an operator deletes the
/// directory with this name.
fn is_kept(lab: &Lab) -> Result<()> {
    let kept = host::must(lab, LEFT, &["sh", "-c", "ls -d /var/lib/etcd/member-history-*"])?;
    if kept.trim().is_empty() {
        return Err("the data of the history that was not chosen is not kept".into());
    }
    Ok(())
}

/// Deletes the history that was not chosen, as an operator does after reading the list. The command for that is `tandem data-dir forget`.
fn is_forgotten(lab: &Lab) -> Result<()> {
    // `forget` waits for the node's record to show that it votes, which is later than etcd's own list.
    redundant::wait(lab)?;
    let words =
        format!("name=$(basename {HISTORY}) && tandem data-dir forget $name --confirm $name && ! ls -d {HISTORY}");
    host::must(lab, LEFT, &["sh", "-c", &words]).map(drop)
}

/// Checks that the attribute with the operator's choice is deleted after its use.
fn choice_is_taken_back(lab: &Lab) -> Result<()> {
    let is_gone = |said: &Result<Output>| said.as_ref().is_ok_and(|said| said.stdout.trim().is_empty());
    eventually("the choice is taken back", || choice(lab), is_gone).map(drop)
}

fn choice(lab: &Lab) -> Result<Output> {
    host::output(lab, LEFT, &["crm_attribute", "--name", PRIMARY, "--query", "--quiet"])
}
