//! OpenShift's part of a replacement, against a stand-in for its API: the node is lost, the command is killed after each of its steps and
//! typed again, and this scenario does what the etcd operator's jobs do.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::super::openshift_node_replaced::give_up_the_old_node;
use super::super::setup::typed::Typed;
use super::super::steps;
use super::killed::killed_after;
use crate::check::must;
use crate::etcd;
use crate::host;
use crate::kubernetes::{self, StandIn};
use crate::node::{NODES, Node};
use crate::power;
use crate::sh::Result;
use crate::state::Lab;
use crate::two_node_openshift;
use crate::up::Wish;

const GOES_ON: &str = "tandem member replace --yes";
const LEAVES: [&str; 12] = [
    "tandem: check: a snapshot",
    "tandem: save: node2 is in standby",
    "tandem: save: 7 objects of node2 are saved",
    "tandem: delete: secrets/etcd-peer-node2 is deleted",
    "tandem: delete: secrets/etcd-serving-node2 is deleted",
    "tandem: delete: secrets/etcd-serving-metrics-node2 is deleted",
    "tandem: delete: baremetalhosts/node2-host is deleted",
    "tandem: delete: machines/node2-machine is deleted",
    "tandem: delete: jobs/tnf-after-setup-job-node2 is deleted",
    "tandem: delete: jobs/tnf-auth-job-node2 is deleted",
    "tandem: delete: nothing of the old machine is left",
    "waits for the new Node node2: 'oc apply'",
];
const COMES: [&str; 3] = ["tandem: node: the new node2 has a Node", "tandem: join: ", "tandem: verify: "];

pub fn replaced_after_a_cut(lab: &Lab, _: Wish) -> Result<()> {
    two_node_openshift::up(lab)?;
    let api = kubernetes::start(lab)?;
    let works = Works::begin(lab, &api);
    let done = replaced(lab, &api);
    works.end();
    done
}

fn replaced(lab: &Lab, api: &StandIn) -> Result<()> {
    let [stays, goes] = NODES;
    let mut writers = super::super::writing(lab)?;
    lab.set("boot-delay", "3600")?;
    power::cut(lab, goes)?;
    api.stop_kubelet(goes.name());
    steps::wait_alone(lab, stays)?;
    let mut line = format!("tandem member replace {goes} --yes");
    let mut done = 0;
    while done < LEAVES.len() {
        done = killed_after(Typed::begin(lab, stays, &line)?, &LEAVES, done)?;
        GOES_ON.clone_into(&mut line);
    }
    let of_node2 = || api.paths().into_iter().filter(|path| path.contains(goes.name())).collect::<Vec<_>>();
    must("nothing of the old machine is left", of_node2(), Vec::is_empty)?;
    // 'oc apply', and a machine with blank disks.
    api.add_node(goes.name(), &goes.ip());
    for dir in ["etcd", "tandem"] {
        let _ = fs::remove_dir_all(lab.disk(goes, "var-lib").join(dir));
        fs::create_dir_all(lab.disk(goes, "var-lib").join(dir))?;
    }
    give_up_the_old_node(lab, stays)?;
    lab.set("boot-delay", "0")?;
    power::on(lab, goes)?;
    let mut done = 0;
    while done + 1 < COMES.len() {
        done = killed_after(Typed::begin(lab, stays, GOES_ON)?, &COMES, done)?;
    }
    let last = Typed::begin(lab, stays, GOES_ON)?.done()?;
    println!("   {}", last.said.trim().replace('\n', "\n   "));
    last.must_be(0)?;
    super::super::ends_well(lab, &mut writers)?;
    let saved = host::must(lab, stays, &["sh", "-c", "stat -c %a /var/lib/tandem/member-change-saved/*.json"])?;
    let modes: Vec<&str> = saved.lines().collect();
    must("what was deleted is saved", modes, |modes| modes.len() >= 7 && modes.iter().all(|mode| *mode == "600"))?;
    must("the new machine has all that it is to have", of_node2(), |paths| paths.len() == 8).map(drop)
}

/// The operators at work: the hook stays as long as etcd has a member of that node.
struct Works {
    is_over: Arc<AtomicBool>,
    thread: thread::JoinHandle<()>,
}

impl Works {
    fn begin(lab: &Lab, api: &StandIn) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let (lab, api, ends) = (lab.clone(), api.clone(), Arc::clone(&is_over));
        let thread = thread::spawn(move || {
            while !ends.load(Ordering::Acquire) {
                if let Ok(view) = etcd::view(&lab, NODES[0]) {
                    let count = (view.voters.len() + view.others).min(NODES.len());
                    let members = NODES.map(Node::name);
                    api.operator(&members[..count]);
                    api.controller();
                }
                thread::sleep(Duration::from_millis(300));
            }
        });
        Self { is_over, thread }
    }

    fn end(self) {
        self.is_over.store(true, Ordering::Release);
        let _ = self.thread.join();
    }
}
