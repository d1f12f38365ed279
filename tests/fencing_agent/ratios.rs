//! `fencing-agent` compared with Debian's `serf` (memberlist, LAN profile). Both run on the same hosts of one bridge at
//! the same time, and each cut and each lost datagram affects both. `make bench-fencing` prints the figures, and checks
//! them against their limits.

mod serf;

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;

use self::serf::Serfs;
use crate::cluster::{Cluster, eventually};
use crate::namespaces::{self, program};
use crate::python::Client;

/// The number of times that a host is cut off in each measurement. It is odd, so that there is a median.
const CUTS: usize = 9;
const LOSS: u32 = 10;
/// The time for which both programs are idle while their CPU time is measured.
const IDLE: Duration = Duration::from_secs(60);
/// The time after a cut in which the round trips and the health of both programs recover.
const SETTLE: Duration = Duration::from_secs(3);

/// An event that a client of either program received. `at` is in seconds since 1970.
#[derive(Clone, Debug)]
struct Heard {
    at: f64,
    is_left: bool,
    name: String,
    /// The time at which the agent decided about the event, in seconds since 1970. `None` for an event of serf.
    decided: Option<f64>,
}

fn now() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64()
}

fn heard_by_client(line: &Value) -> Option<Heard> {
    let (name, decided) = (line["node"]["name"].as_str()?.to_owned(), line["time"].as_f64());
    Some(Heard { at: line["arrived"].as_f64()?, is_left: line["type"] == "LEFT", name, decided })
}

/// Our agents and serf, which run on the same emulated hosts.
struct Both {
    cluster: Cluster,
    serfs: Serfs,
    clients: Vec<Client>,
}

/// Gives this process, and all that it starts, real-time priority. The measurement then contains only the programs' own time,
/// because a busy machine delays neither the programs nor their clients.
fn run_ahead() {
    let id = std::process::id().to_string();
    let done = program("chrt").args(["--all-tasks", "--rr", "--pid", "1", &id]).status().unwrap();
    assert!(done.success(), "chrt");
}

impl Both {
    fn start(count: usize) -> Self {
        run_ahead();
        let mut cluster = Cluster::new(count, 1, "", "");
        cluster.start_all();
        let serfs = Serfs::start(&cluster);
        let all: Vec<usize> = (0..count).collect();
        cluster.must_reach(&all, u64::try_from(count).unwrap());
        let clients: Vec<Client> = all.iter().map(|at| Client::start(&cluster, *at, &[])).collect();
        clients.iter().for_each(Client::must_be_there);
        let mut both = Self { cluster, serfs, clients };
        both.serfs.must_see(count);
        sleep(SETTLE);
        both
    }

    fn count(&self) -> usize {
        self.cluster.nodes.len()
    }

    /// Waits until a program has reported the loss of host `lost` on all other hosts. Returns the time from `since` to the last
    /// report, in seconds.
    fn all_have_heard(&self, lost: usize, since: f64, heard: impl Fn(&Self, usize) -> Vec<Heard>) -> f64 {
        let name = self.cluster.nodes[lost].name.clone();
        let mut last = since;
        for at in (0..self.count()).filter(|at| *at != lost) {
            let found = || heard(self, at).into_iter().find(|one| one.is_left && one.name == name && one.at > since);
            eventually(&format!("{name} is not lost on host {at}"), || found().is_some());
            last = last.max(found().unwrap().at);
        }
        last - since
    }

    fn of_clients(&self, at: usize) -> Vec<Heard> {
        self.clients[at].lines().iter().filter_map(heard_by_client).collect()
    }

    fn of_serf(&self, at: usize) -> Vec<Heard> {
        self.serfs.heard(at)
    }

    /// Cuts the host `lost` off. Returns the time that our agents and serf took until all others knew, in seconds.
    fn cut(&mut self, lost: usize) -> (f64, f64) {
        let since = now();
        self.cluster.cut(0, &[lost]);
        let own = self.all_have_heard(lost, since, Self::of_clients);
        let other = self.all_have_heard(lost, since, Self::of_serf);
        self.cluster.heal(0, &[lost]);
        let all: Vec<usize> = (0..self.count()).collect();
        self.cluster.must_reach(&all, u64::try_from(self.count()).unwrap());
        self.serfs.join();
        self.serfs.must_see(self.count());
        // The pause varies, so that it has no fixed relation to the probes of either program.
        sleep(SETTLE + Duration::from_millis(u64::try_from(lost).unwrap() * 137));
        (own, other)
    }

    /// Returns the CPU time that our agents and serf use during [`IDLE`], in seconds.
    fn idle(&self) -> (f64, f64) {
        let used = || (seconds(self.cluster.nodes.iter().map(super::cluster::Node::id)), seconds(self.serfs.ids()));
        let before = used();
        sleep(IDLE);
        let after = used();
        (after.0 - before.0, after.1 - before.1)
    }

    /// Drops some datagrams on the way into each host. Returns how many times our agents and serf wrongly reported a host as lost
    /// within `time`.
    fn lose(&self, time: Duration) -> (usize, usize) {
        let probability = format!("{:.2}", f64::from(LOSS) / 100.0);
        for node in &self.cluster.nodes {
            let rule = ["-A", "INPUT", "-i", "e0", "-m", "statistic", "--mode", "random", "--probability"];
            let done = node.inside("iptables").args(rule).args([&probability, "-j", "DROP"]).status().unwrap();
            assert!(done.success(), "iptables");
        }
        let (since, began) = (now(), Instant::now());
        sleep(time.saturating_sub(began.elapsed()));
        let lost = |heard: Vec<Heard>| heard.iter().filter(|one| one.is_left && one.at > since).count();
        let all = 0..self.count();
        (all.clone().map(|at| lost(self.of_clients(at))).sum(), all.map(|at| lost(self.of_serf(at))).sum())
    }

    /// Returns the time from the agent's decision to a client's receipt in seconds, as the 99th percentile. Also returns the
    /// number of events.
    fn to_client(&self) -> (f64, usize) {
        let all = (0..self.count()).flat_map(|at| self.of_clients(at));
        let mut took: Vec<f64> = all.filter_map(|one| Some(one.at - one.decided?)).collect();
        took.sort_by(f64::total_cmp);
        (took[(took.len() * 99).div_ceil(100) - 1], took.len())
    }
}

/// Returns the CPU time that the processes with these ids have used, in seconds.
fn seconds(ids: impl Iterator<Item = u32>) -> f64 {
    const TICKS: f64 = 100.0;
    let ticks = |id: u32| {
        let text = fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
        // The fields after the name, which may contain spaces.
        let fields: Vec<f64> = text
            .rsplit(')')
            .next()
            .unwrap()
            .split_whitespace()
            .map(|field| field.parse().unwrap_or_default())
            .collect();
        fields[11] + fields[12]
    };
    ids.map(ticks).sum::<f64>() / TICKS
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

fn spread(of: &[f64]) -> String {
    let (least, most) = (of.iter().copied().fold(f64::MAX, f64::min), of.iter().copied().fold(0.0, f64::max));
    format!("{:.1} s ({least:.1}-{most:.1})", median(of.to_vec()))
}

/// Cuts off one of `count` hosts after the other, prints the rows of the table of results, and asserts the promised ratios.
fn measure(count: usize) {
    let mut both = Both::start(count);
    let cuts: Vec<(f64, f64)> = (0..CUTS).map(|cut| both.cut(cut % count)).collect();
    let (own, other): (Vec<f64>, Vec<f64>) = cuts.into_iter().unzip();
    let (to_client, events) = both.to_client();
    println!("N = {count}: cut to LEFT everywhere, median of {CUTS}: {}, serf {}", spread(&own), spread(&other));
    println!("N = {count}: decision to client, p99 of {events}: {:.1} ms", to_client * 1_000.0);
    let idle = (count == 10).then(|| both.idle());
    if let Some((own, other)) = idle {
        println!("N = {count}: CPU of all hosts in {} s: {own:.2} s, serf {other:.2} s", IDLE.as_secs());
    }
    let ratio = median(own.clone()) / median(other);
    assert!(ratio <= 0.6, "cut to LEFT is {ratio:.2} of serf's");
    assert!(idle.is_none_or(|(own, other)| own <= other * 1.5), "CPU: {idle:?}");
    assert!(to_client <= median(own) / 100.0, "decision to client takes more than 1 % of the way");
}

fn minutes() -> u64 {
    std::env::var("TANDEM_BENCH_MINUTES").map_or(60, |text| text.parse().unwrap())
}

#[test]
#[ignore = "minutes: make bench-fencing"]
fn cut_to_left_of_three() {
    namespaces::run(module_path!(), "cut_to_left_of_three", 600, || measure(3));
}

#[test]
#[ignore = "minutes: make bench-fencing"]
fn cut_to_left_of_five() {
    namespaces::run(module_path!(), "cut_to_left_of_five", 600, || measure(5));
}

#[test]
#[ignore = "minutes: make bench-fencing"]
fn cut_to_left_of_ten() {
    namespaces::run(module_path!(), "cut_to_left_of_ten", 600, || measure(10));
}

#[test]
#[ignore = "an hour: make bench-fencing"]
fn no_more_are_lost_to_loss_alone_than_by_serf() {
    let seconds = u32::try_from(minutes() * 60 + 120).unwrap();
    namespaces::run(module_path!(), "no_more_are_lost_to_loss_alone_than_by_serf", seconds, || {
        let both = Both::start(5);
        let (own, other) = both.lose(Duration::from_secs(minutes() * 60));
        println!("N = 5: false LEFT in {} min with {LOSS} % of the datagrams lost: {own}, serf {other}", minutes());
        assert!(own <= other, "{own} false ones, serf {other}");
    });
}
