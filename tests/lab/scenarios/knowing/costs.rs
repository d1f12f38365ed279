//! The cost of observing the cluster: CPU time, compared with `pcs status xml`, which shows less, and changes of the
//! CIB, which must be zero.

use std::time::{Duration, Instant};

use roxmltree::Document;

use crate::cluster::asked::{self, REDUNDANT};
use crate::cluster::collector;
use crate::cluster::etcd;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::cpu;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::judge::check::{self, must};
use crate::judge::figures;
use crate::sh::Result;

const NODE: Node = Node::One;
/// The number of measured calls of each command. The median of their CPU times counts.
const CALLS: usize = 21;
/// The least ratio of the CPU time of `pcs status xml` to that of `tandem status`.
const PART: u32 = 10;
/// The limit for the CPU time of one `tandem collect`.
const COLLECTION: Duration = Duration::from_millis(100);
/// The number of collections on each node. In an hour the timer starts as many, because its interval is half a
/// minute.
const COLLECTIONS: u32 = 120;
/// The time into which the scenario compresses the collections of an hour.
const HOUR: Duration = Duration::from_secs(600);

/// Checks the CPU time of `tandem status` and `tandem collect`. It measures them and pcs alternately, so that other
/// load on the machine affects all alike.
pub fn cpu_time(lab: &Lab, _: Wish) -> Result<()> {
    etcd::wait_two_voters(lab, Duration::from_secs(60))?;
    crate::cluster::redundant::wait(lab)?;
    let calls = ["tandem status --json", "tandem collect", "pcs status xml"];
    for call in calls {
        // pcs' time counts only if it prints XML.
        let said = host::said(lab, NODE, &["sh", "-c", call]);
        must(&format!("'{call}' works"), said, |said| !said.to_lowercase().contains("error"))?;
    }
    let mut taken = calls.map(|_| Vec::new());
    for _ in 0..CALLS {
        for (call, taken) in calls.iter().zip(&mut taken) {
            taken.push(cpu::of(lab, NODE, call)?);
        }
    }
    let [status, collection, pcs] = taken.map(|mut taken| {
        taken.sort();
        taken[taken.len() / 2]
    });
    figures::print(format!(
        "CPU time, medians of {CALLS}: status {status:.1?}, collection {collection:.1?}, pcs status xml {pcs:.1?}"
    ));
    collector::forget(lab)?;
    must("a status costs a tenth of pcs' at most", status, |status| *status * PART <= pcs)?;
    must("a collection costs 100 ms at most", collection, |collection| *collection <= COLLECTION).map(drop)
}

/// Runs the collections of an hour in ten minutes, with `tandem status` in between. Checks that nothing writes to the
/// CIB of the idle cluster meanwhile.
pub fn idle_cib(lab: &Lab, _: Wish) -> Result<()> {
    etcd::wait_two_voters(lab, Duration::from_secs(60))?;
    crate::cluster::redundant::wait(lab)?;
    collector::collect(lab)?;
    check::eventually(
        "the cluster is at rest",
        || asked::ask(lab, NODE),
        |answer| answer.as_ref().is_ok_and(|answer| answer.is(REDUNDANT, None)),
    )??;
    // Pending writes are complete after this.
    std::thread::sleep(Duration::from_secs(20));
    let before = Cib::of(lab)?;
    let (began, mut last, mut writes) = (Instant::now(), Cib::of(lab)?, Vec::new());
    for count in 1..=COLLECTIONS {
        collector::collect(lab)?;
        if count % 10 == 0 {
            NODES.into_iter().try_for_each(|node| asked::says(lab, node, REDUNDANT, None))?;
        }
        std::thread::sleep((HOUR / COLLECTIONS * count).saturating_sub(began.elapsed()));
        let now = Cib::of(lab)?;
        if now.version != last.version {
            writes.push(format!("{} to {}: {}", last.version, now.version, now.beside(&last).join(" ")));
            last = now;
        }
    }
    collector::forget(lab)?;
    let version = Cib::of(lab)?.version;
    println!(
        "   {COLLECTIONS} collections on each node in {:.0} s: the CIB was {} and is {version}",
        began.elapsed().as_secs_f64(),
        before.version
    );
    must("an idle hour writes no CIB", writes, Vec::is_empty).map(drop)
}

/// The contents of the CIB: its version, and its other lines.
struct Cib {
    version: String,
    lines: Vec<String>,
}

impl Cib {
    fn of(lab: &Lab) -> Result<Self> {
        let xml = host::must(lab, NODE, &["cibadmin", "--query"])?;
        let document = Document::parse(&xml)?;
        let part = |name: &str| document.root_element().attribute(name).unwrap_or_default().to_owned();
        let version = ["admin_epoch", "epoch", "num_updates"].map(part).join(".");
        let lines = xml.lines().filter(|line| !line.starts_with("<cib ")).map(|line| line.trim().to_owned()).collect();
        Ok(Self { version, lines })
    }

    /// Returns the lines that this CIB has and `other` lacks.
    fn beside(&self, other: &Self) -> Vec<&str> {
        self.lines.iter().filter(|line| !other.lines.contains(line)).map(String::as_str).collect()
    }
}
