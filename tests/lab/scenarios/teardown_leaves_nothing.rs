//! A lab is taken down after its parts have died in odd ways, and nothing of it is left on the machine. If none of its
//! processes runs, the next lab of its name removes it.

use std::fs;

use crate::cluster::teardown;
use crate::cluster::up::{self, Wish};
use crate::host;
use crate::host::blank::Blank;
use crate::host::node::{NODES, Node};
use crate::host::proc::Record;
use crate::host::state::{self, Lab};
use crate::judge::check::eventually;
use crate::sh::Result;

pub fn run(lab: &Lab, wish: Wish) -> Result<()> {
    // It has a name of its own, because another lab may be running; labs do not affect each other.
    let lab = Lab::named(&format!("{}-td", lab.name))?;
    let before = Machine::now();
    let broken = up_and_broken(&lab, wish);
    let refused = teardown::make_room(&lab);
    let left = teardown::down(&lab);
    broken?;
    if refused.is_ok() {
        return Err("a lab in which a host still ran made room for another one".into());
    }
    if !left.is_empty() {
        return Err(format!("left behind: {}", left.join(", ")).into());
    }
    // A crash of the machine leaves files and no process. The next lab of this name begins in spite of them.
    lab.set("etcd", wish.etcd.number())?;
    teardown::make_room(&lab)?;
    // Other programs' mounts come and go meanwhile.
    eventually("nothing is new on the machine", || Machine::now().beyond(&before), Vec::is_empty).map(drop)
}

/// Brings up a lab with a container on each host. Then leaves the lab as a crash would, with processes killed and a
/// record missing.
fn up_and_broken(lab: &Lab, wish: Wish) -> Result<()> {
    // This kind has every daemon that a host can have.
    let blank = (wish.hosts == host::Kind::Namespaces).then_some(Blank::Debian);
    up::up(lab, Wish { bare: true, blank, ..wish })?;
    let parts: &[&str] = match wish.hosts {
        host::Kind::Namespaces => {
            a_container_each(lab, wish)?;
            &["directory", "network namespace", "cgroup", "(etcd)", "(conmon)", "(corosync)", "(sshd)", "(pcsd)"]
        }
        host::Kind::Vm => &["directory", "network namespace", "(qemu-system-x86)"],
    };
    // The check must be able to find each kind of leftovers, because otherwise an empty answer means nothing.
    for kind in parts {
        let what = format!("the check for leftovers sees the {kind} of a lab that is up");
        eventually(&what, || teardown::leftovers(lab), |found| found.iter().any(|thing| thing.contains(kind)))?;
    }
    // The state after a crash: the BMCs and one host are dead, nothing was cleaned up after them, and the record of the
    // other host's pid 1 is missing.
    for record in [Record::load(&lab.bmc_record()), host::running(lab, Node::Two)].into_iter().flatten() {
        record.kill()?;
    }
    fs::remove_file(lab.init_record(Node::One))?;
    Ok(())
}

fn a_container_each(lab: &Lab, wish: Wish) -> Result<()> {
    let image = crate::programs::image::name(wish.etcd.number());
    for node in NODES {
        let etcd = ["podman", "run", "-d", "--name", "etcd", "--net", "host", &image, "etcd", "--data-dir", "/d"];
        host::must(lab, node, &etcd)?;
    }
    Ok(())
}

/// The network namespaces and mounts of this machine. A lab could leave remains there that do not carry its name.
struct Machine {
    namespaces: Vec<String>,
    mounts: Vec<String>,
}

impl Machine {
    fn now() -> Self {
        let names = fs::read_dir("/run/netns")
            .map(|entries| entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect());
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        Self { namespaces: names.unwrap_or_default(), mounts: mounts.lines().map(str::to_owned).collect() }
    }

    /// Returns the namespaces and mounts that are new since `before` and belong to no other lab.
    fn beyond(&self, before: &Self) -> Vec<String> {
        let mut new: Vec<String> =
            self.namespaces.iter().filter(|name| !before.namespaces.contains(name)).cloned().collect();
        // `ip netns` mounts `/run/netns` itself once, and the mount stays, whichever program used it first.
        let stays = |line: &&String| !before.mounts.contains(line) && !line.contains(" /run/netns ");
        new.extend(self.mounts.iter().filter(stays).cloned());
        let others = state::all_labs();
        let of_another =
            |thing: &str, lab: &str| thing.starts_with(&format!("{lab}-")) || thing.contains(&format!("/{lab}/"));
        new.retain(|thing| !others.iter().any(|lab| of_another(thing, lab)));
        new
    }
}
