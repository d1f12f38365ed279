//! What it costs to know how the cluster is: CPU time beside `pcs status xml`, which shows less, and changes of the CIB, of which
//! there are none.

use std::time::{Duration, Instant};

use roxmltree::Document;

use crate::asked::{self, REDUNDANT};
use crate::check::{self, must};
use crate::collector;
use crate::cpu;
use crate::etcd;
use crate::host;
use crate::node::{NODES, Node};
use crate::sh::Result;
use crate::state::Lab;
use crate::up::Wish;

const NODE: Node = Node::One;
/// So many of each call are measured; the median counts.
const CALLS: usize = 21;
/// A status costs at most this part of what pcs takes.
const PART: u32 = 10;
/// A collection costs at most that.
const COLLECTION: Duration = Duration::from_millis(100);
/// Each node collects that often: as in an hour with the timer's half minute between two.
const COLLECTIONS: u32 = 120;
/// An hour in that time.
const HOUR: Duration = Duration::from_secs(600);

/// Status and collection, one call after the other, so that what else the machine does strikes all alike.
pub fn cpu_time(lab: &Lab, _: Wish) -> Result<()> {
    etcd::wait_two_voters(lab, Duration::from_secs(60))?;
    crate::redundant::wait(lab)?;
    let calls = ["tandem status --json", "tandem collect", "pcs status xml"];
    for call in calls {
        // What pcs' xml costs counts only where there is any.
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
    println!(
        "   CPU time, medians of {CALLS}: status {status:.1?}, collection {collection:.1?}, pcs status xml {pcs:.1?}"
    );
    collector::forget(lab)?;
    must("a status costs a tenth of pcs' at most", status, |status| *status * PART <= pcs)?;
    must("a collection costs 100 ms at most", collection, |collection| *collection <= COLLECTION).map(drop)
}

/// As many collections as in an hour, in ten minutes, with a look of a person's in between; nobody does anything else.
pub fn idle_cib(lab: &Lab, _: Wish) -> Result<()> {
    etcd::wait_two_voters(lab, Duration::from_secs(60))?;
    crate::redundant::wait(lab)?;
    collector::collect(lab)?;
    check::eventually(
        "the cluster is at rest",
        || asked::ask(lab, NODE),
        |answer| answer.as_ref().is_ok_and(|answer| answer.is(REDUNDANT, None)),
    )??;
    // What was under way has been written.
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

/// The CIB: its version, and its lines but for those in which the version stands.
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

    /// The lines that the other one does not have.
    fn beside(&self, other: &Self) -> Vec<&str> {
        self.lines.iter().filter(|line| !other.lines.contains(line)).map(String::as_str).collect()
    }
}
