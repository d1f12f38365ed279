//! OpenShift's part of a change of members, against a fake of its API. A node is lost, or removed as planned. The
//! command is killed after each of its steps and typed again. In another scenario the Machine of a voter is deleted.
//! The lab does the work of the etcd operator's jobs.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::super::openshift_node_replaced::give_up_the_old_node;
use super::super::setup::typed::Typed;
use super::super::steps;
use super::killed::killed_after;
use super::world::World;
use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::cluster::two_node_openshift;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::power;
use crate::host::state::Lab;
use crate::judge::check::{eventually, must};
use crate::load::writer::Writers;
use crate::programs::kubernetes::{self, FakeApi};
use crate::sh::Result;

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

/// A running OpenShift pair with a simulated API, and the node that is replaced or removed (`goes`).
struct Openshift<'a> {
    lab: &'a Lab,
    api: FakeApi,
    stays: Node,
    goes: Node,
    writers: Writers,
}

pub fn replaced_after_a_cut(lab: &Lab, _: Wish) -> Result<()> {
    with_operators(lab, |pair| {
        pair.lose_the_old_machine()?;
        steps::wait_alone(lab, pair.stays)?;
        pair.killed_as_it_leaves(&format!("tandem member replace {} --yes", pair.goes), &LEAVES)?;
        pair.comes()
    })
}

/// Replaces a node by `tandem member replace`. The old machine runs until the command has stopped etcd there.
pub fn replaced_planned(lab: &Lab, _: Wish) -> Result<()> {
    with_operators(lab, |pair| {
        pair.fenced_by_hand(&format!("tandem member replace {} --yes", pair.goes))?;
        let command = Typed::begin(lab, pair.stays, GOES_ON)?;
        World::wait_said(&command, "is not ready any more: its machine runs")?;
        pair.api.stop_kubelet(pair.goes.name());
        killed_after(command, &LEAVES[2..], 0)?;
        pair.killed_as_it_leaves(GOES_ON, &LEAVES[3..])?;
        pair.comes()
    })
}

/// Deletes the Machine of a node that votes. The deletion must wait until `tandem member remove` removes the member,
/// and `tandem member list` must show that.
pub fn removed(lab: &Lab, _: Wish) -> Result<()> {
    with_operators(lab, |pair| {
        let (api, goes) = (&pair.api, pair.goes.name());
        api.delete(kubernetes::Api::Machine, goes);
        let listed = || host::said(lab, pair.stays, &["tandem", "member", "list", "--json"]);
        eventually("the list says that the deletion waits", listed, |said| waits_for_its_deletion(said, goes))?;
        must("its Machine is there", api.machine(kubernetes::Api::Machine, goes), Option::is_some)?;
        let line = format!("tandem member remove {goes}");
        let refused = Typed::begin(lab, pair.stays, &format!("{line} --yes"))?.done()?;
        refused.must_be(3)?;
        must("the refusal names the way on", refused.said, |said| said.contains("--allow-fewer-voters"))?;
        pair.fenced_by_hand(&format!("{line} --allow-fewer-voters --yes"))?;
        let done = Typed::begin(lab, pair.stays, GOES_ON)?.done()?;
        println!("   {}", done.said.trim().replace('\n', "\n   "));
        done.must_be(0)?;
        let machine = || api.machine(kubernetes::Api::Machine, goes);
        eventually("its Machine is gone", machine, Option::is_none)?;
        steps::wait_alone(lab, pair.stays)?;
        // Acknowledged writes must be on a second voter, too. So the node comes back as the refusal of `member add`
        // advises.
        lab.set("boot-delay", "0")?;
        power::on(lab, pair.goes)?;
        pcs::run(lab, pair.stays, &["node", "unstandby", goes])?;
        super::super::ends_well(lab, &mut pair.writers)
    })
}

fn with_operators(lab: &Lab, scenario: impl FnOnce(&mut Openshift<'_>) -> Result<()>) -> Result<()> {
    two_node_openshift::up(lab)?;
    let api = kubernetes::start(lab)?;
    let works = Works::begin(lab, &api);
    let [stays, goes] = NODES;
    let writers = super::super::writing(lab);
    let done = writers.and_then(|writers| scenario(&mut Openshift { lab, api, stays, goes, writers }));
    works.end();
    done
}

impl Openshift<'_> {
    fn lose_the_old_machine(&self) -> Result<()> {
        self.lab.set("boot-delay", "3600")?;
        power::cut(self.lab, self.goes)?;
        self.api.stop_kubelet(self.goes.name());
        Ok(())
    }

    /// Runs the command `line`, which must take etcd off a node. Without pcsd the command stops there, and prints another command that
    /// fences the node. The lab then runs the printed command.
    fn fenced_by_hand(&self, line: &str) -> Result<()> {
        self.lab.set("boot-delay", "3600")?;
        let done = Typed::begin(self.lab, self.stays, line)?.done()?;
        done.must_be(1)?;
        let by_hand = format!("pcs stonith fence {}", self.goes);
        must("it names what to type", done.said, |said| said.contains(&by_hand))?;
        pcs::run(self.lab, self.stays, &["stonith", "fence", self.goes.name()]).map(drop)
    }

    /// Runs the command `line`, kills it after the first of `words`, and repeats that until the command waits for the
    /// new machine.
    fn killed_as_it_leaves(&self, line: &str, words: &[&str]) -> Result<()> {
        let mut line = line.to_owned();
        let mut done = 0;
        while done < words.len() {
            done = killed_after(Typed::begin(self.lab, self.stays, &line)?, words, done)?;
            GOES_ON.clone_into(&mut line);
        }
        must("nothing of the old machine is left", self.objects(), Vec::is_empty).map(drop)
    }

    /// Adds the new machine with blank disks as `oc apply` does, does the work of OpenShift's etcd operator, and lets
    /// the command complete.
    fn comes(&mut self) -> Result<()> {
        let (lab, goes, stays) = (self.lab, self.goes, self.stays);
        self.api.add_node(goes.name(), &goes.ip());
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
        super::super::ends_well(lab, &mut self.writers)?;
        let saved = host::must(lab, stays, &["sh", "-c", "stat -c %a /var/lib/tandem/member-change-saved/*.json"])?;
        let modes: Vec<&str> = saved.lines().collect();
        must("what was deleted is saved", modes, |modes| modes.len() >= 7 && modes.iter().all(|mode| *mode == "600"))?;
        must("the new machine has all that it is to have", self.objects(), |paths| paths.len() == 8).map(drop)
    }

    /// Returns the paths of the objects in the API that belong to the replaced node.
    fn objects(&self) -> Vec<String> {
        self.api.paths().into_iter().filter(|path| path.contains(self.goes.name())).collect()
    }
}

/// Returns whether `said`, the output of `tandem member list`, shows the node's member with a Machine that is being
/// deleted and waits.
fn waits_for_its_deletion(said: &str, node: &str) -> bool {
    let Ok(list) = serde_json::from_str::<Value>(said) else { return false };
    let members = list["members"].as_array().into_iter().flatten();
    members
        .filter(|member| member["node"] == node)
        .any(|member| member["deleting"] == true && member["protected"] == true)
}

/// A thread that simulates OpenShift's operators. The deletion hook of a node's Machine stays as long as etcd has a
/// member of that node.
struct Works {
    is_over: Arc<AtomicBool>,
    thread: thread::JoinHandle<()>,
}

impl Works {
    fn begin(lab: &Lab, api: &FakeApi) -> Self {
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
