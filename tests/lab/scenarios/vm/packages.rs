//! The Debian packages under a serving cluster: they are installed anew and upgraded, and refuse to be removed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::judge::check;
use crate::programs;
use crate::scenarios::steps;
use crate::sh::{self, Result};

const NEWER: &str = "99.0.0-1";
const COLLECTOR: &str = "tandem-collect.service";
const APT: [&str; 4] = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "--quiet"];

pub fn under_a_cluster(lab: &Lab, _: Wish) -> Result<()> {
    let mut writers = crate::scenarios::writing(lab)?;
    crate::cluster::redundant::wait(lab)?;
    let etcds = check::must("etcd runs on both nodes", NODES.map(|node| etcd::pid(lab, node)), |etcds| {
        etcds.iter().all(Option::is_some)
    })?;
    let newer = newer(lab)?;
    for node in NODES {
        refuses_to_go(lab, node)?;
        let there: Vec<String> = (0..newer.len()).map(|at| format!("/var/tmp/newer-{at}.deb")).collect();
        for (file, place) in newer.iter().zip(&there) {
            host::feed(lab, node, &["sh", "-c", &format!("cat > {place}")], file)?;
        }
        let places: Vec<&str> = there.iter().map(String::as_str).collect();
        host::must(lab, node, &[&APT[..], &["install", "--yes"], &places].concat())?;
        let version = host::must(lab, node, &["dpkg-query", "--show", "--showformat=${Version}", "tandem"])?;
        check::must("the newer package is installed", version, |version| version.trim() == NEWER)?;
        monitored(lab, node)?;
    }
    check::must("etcd was not started anew", NODES.map(|node| etcd::pid(lab, node)), |now| *now == etcds)?;
    crate::scenarios::ends_well(lab, &mut writers)?;
    collects(lab)?;
    logs_go_to_the_journal(lab)
}

/// Checks that systemd's hardening denies the collector nothing that it needs. Enabled as its guide describes, it
/// writes its status, publishes it, and delivers an event to the journal.
fn collects(lab: &Lab) -> Result<()> {
    const DENIED: [&str; 3] = ["ermission denied", "not permitted", "Read-only file system"];
    pcs::run(lab, NODES[0], &["alert", "create", "id=tandem", "path=/usr/libexec/tandem/alert"])?;
    pcs::run(lab, NODES[0], &["alert", "recipient", "add", "tandem", "value=journal"])?;
    for node in NODES {
        host::must(lab, node, &["systemctl", "enable", "--now", "tandem-collect.timer"])?;
    }
    for node in NODES {
        let written = || host::said(lab, node, &["stat", "--format=%a %U", "/var/lib/tandem/status.json"]);
        check::eventually("the collector writes its status", written, |said| said.trim() == "600 root")?;
        let result = || host::said(lab, node, &["systemctl", "show", "--value", "--property=Result", COLLECTOR]);
        check::eventually("it ends well", result, |said| said.trim() == "success")?;
        let told = host::must(lab, node, &["journalctl", "--unit", COLLECTOR, "--boot", "--no-pager"])?;
        check::must("it is denied nothing", told, |told| !DENIED.iter().any(|words| told.contains(words)))?;
    }
    // A status covers both nodes' collectors, so both must run.
    for node in NODES {
        let status = || host::said(lab, node, &["tandem", "status", "--json"]);
        check::eventually("what it publishes is seen", status, |said| {
            said.contains("\"problems\"") && !said.contains("\"collector-missing\"")
        })?;
    }
    host::must(lab, NODES[0], &["systemctl", "start", COLLECTOR])?;
    host::must(lab, NODES[0], &["tandem", "events", "test"])?;
    let journal = || host::said(lab, NODES[0], &["journalctl", "--identifier=tandem-events", "--boot", "--no-pager"]);
    check::eventually("an event is in the journal", journal, |said| said.contains("TandemTest")).map(drop)
}

/// Checks that the package refuses to be removed. Pacemaker could not stop etcd without the agent, and would fence
/// the node.
fn refuses_to_go(lab: &Lab, node: Node) -> Result<()> {
    let done = host::output(lab, node, &[&APT[..], &["remove", "--yes", "tandem"]].concat())?;
    check::must("the package refuses to be removed", done, |done| {
        !done.ok && done.text().contains("pcs cluster stop")
    })?;
    Ok(())
}

/// Checks that the agent of the upgraded package still monitors etcd.
fn monitored(lab: &Lab, node: Node) -> Result<()> {
    let status = || host::said(lab, node, &["crm_resource", "--resource", "etcd", "--force-check"]);
    check::eventually("a monitor of the newer agent ends well", status, |said| {
        said.contains("returned 0") || said.contains("returned 8") || said.contains("returned: 'ok'")
    })
    .map(drop)
}

/// Checks that etcd's log is in the journal, where operators expect it. On a machine with systemd podman's log driver
/// is the journal.
fn logs_go_to_the_journal(lab: &Lab) -> Result<()> {
    for node in NODES {
        let words = ["sh", "-c", "journalctl --unit pacemaker --boot --no-pager | grep -c 'etcd\\[.*\"level\"'"];
        let count = host::said(lab, node, &words);
        check::must("etcd's log is in 'journalctl -u pacemaker'", count, |count| {
            count.trim().parse::<u32>().is_ok_and(|count| count > 10)
        })?;
    }
    steps::nobody_is_wanted_dead(lab)
}

/// Returns the paths of the lab's Debian packages with a higher version number.
fn newer(lab: &Lab) -> Result<Vec<PathBuf>> {
    let packages = programs::packages().ok_or("TANDEM_DEB names no packages")?;
    packages.iter().enumerate().map(|(at, package)| newer_one(lab, at, package)).collect()
}

fn newer_one(lab: &Lab, at: usize, package: &Path) -> Result<PathBuf> {
    let (tree, newer) = (lab.dir().join("newer"), lab.dir().join(format!("newer-{at}.deb")));
    sh::must(Command::new("dpkg-deb").arg("--raw-extract").arg(package).arg(&tree))?;
    let control = tree.join("DEBIAN/control");
    let lines = fs::read_to_string(&control)?;
    let version = lines.lines().find_map(|line| line.strip_prefix("Version: ")).unwrap_or_default();
    // Their dependencies on each other change, too; those on an older version stay.
    let newest = lines.replace(&format!("Version: {version}\n"), &format!("Version: {NEWER}\n"));
    sh::write(&control, newest.replace(&format!("(= {version})"), &format!("(= {NEWER})")))?;
    sh::must(Command::new("dpkg-deb").args(["--build", "--root-owner-group"]).arg(&tree).arg(&newer))?;
    fs::remove_dir_all(tree)?;
    Ok(newer)
}
