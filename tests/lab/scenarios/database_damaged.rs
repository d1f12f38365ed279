//! Both nodes lose power, and one node's etcd database is damaged where only etcd reads it. Its log and its first pages
//! are whole, and etcd exits at each start. The other node holds everything that was acknowledged, and runs standalone.
//! The damaged data is kept next to the data that replaces it.

use std::fs;

use super::steps;
use crate::cluster::etcd;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::judge::check::must;
use crate::sh::Result;

/// The page size in bytes of etcd's database (bbolt) on this machine.
const PAGE: usize = 4096;
/// Texts that identify the pages of etcd's database that stay whole: the list of buckets, and the index that the
/// database has reached.
const KEPT: [&[u8]; 2] = [b"consistent_index", b"members_removed"];

pub fn run(lab: &Lab, wish: Wish) -> Result<()> {
    let damaged = etcd::wait_two_voters(lab, std::time::Duration::from_secs(60))?.leader;
    let members = steps::members(lab)?;
    let mut writers = super::writing(lab)?;
    for node in NODES {
        steps::cut(lab, node)?;
    }
    damage(lab, damaged)?;
    for node in NODES {
        steps::on(lab, node, wish.boot_delay)?;
    }
    super::ends_well(lab, &mut writers)?;
    let kept = host::must(lab, damaged, &["sh", "-c", "ls -d /var/lib/etcd/member-backup-*"])?;
    must("the damaged data is kept", kept, |kept| !kept.trim().is_empty())?;
    let whole = usize::from(damaged.other().number() - 1);
    let after = steps::members(lab)?;
    must("the whole node stays the member that it was", after[whole], |after| *after == members[whole]).map(drop)
}

/// Overwrites the pages of the etcd database of a node that is off, except those that [`KEPT`] identifies.
fn damage(lab: &Lab, node: Node) -> Result<()> {
    let path = lab.disk(node, "var-lib").join("etcd/member/snap/db");
    let mut bytes = fs::read(&path)?;
    let says = |page: &[u8]| KEPT.iter().any(|words| page.windows(words.len()).any(|window| window == *words));
    let mut overwritten = 0;
    for page in bytes.chunks_mut(PAGE).skip(2).filter(|page| !says(page)) {
        page.fill(0xa5);
        overwritten += 1;
    }
    fs::write(&path, &bytes)?;
    lab.event(&format!("{overwritten} pages of the database of {node} are overwritten"));
    Ok(())
}
