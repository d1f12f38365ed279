//! Tests of the hooks with a fake of the API: a second writer, conflicts, an operator, and a missing majority.

use std::path::PathBuf;

use serde_json::json;

use super::due::Due;
use super::turn::{Kept, turn};
use crate::adapters::kubernetes::kubeconfig::for_server;
use crate::adapters::openshift::machine::PATIENCE;
use crate::adapters::openshift::machines::fake_api::FakeApi;
use crate::adapters::openshift::machines::{Api, Machines};
use crate::operate::members::look::MembersSeen;
use crate::operate::members::samples::{pair, three_and_a_learner};

struct World {
    fake_api: FakeApi,
    seen: MembersSeen,
    dir: tempfile::TempDir,
}

impl World {
    /// Creates three voters and a learner, each with a Machine without a deletion hook.
    fn new(api: Api, has_operator: bool) -> Self {
        let (fake_api, dir) = (FakeApi::start(has_operator), tempfile::tempdir().unwrap());
        for id in 1..=4 {
            fake_api.add(api, &format!("node{id}"), &format!("192.0.2.{id}"));
        }
        Self { fake_api, seen: three_and_a_learner(), dir }
    }

    fn state(&self) -> PathBuf {
        self.dir.path().join("machine-hooks.json")
    }

    fn machines(&self) -> Machines {
        Machines::read(&for_server(&self.dir, &self.fake_api.server), PATIENCE).unwrap()
    }

    fn turn(&self) -> Kept {
        turn(&mut self.machines(), &self.seen, &self.state(), true).unwrap()
    }

    fn is_protected(&self, node: &str) -> bool {
        self.machines().of(&[node]).unwrap().unwrap().is_protected()
    }

    /// Removes every deletion hook from the Machine of `node`, as another client might.
    fn take_off(&self, api: Api, node: &str) {
        self.fake_api.change(api, node, |machine| {
            machine["metadata"]["annotations"] = json!({});
            machine["spec"] = json!({});
        });
    }

    fn remove_member(&mut self, node: &str) {
        self.seen.membership.members.retain(|member| member.name != node);
    }
}

#[test]
fn each_voter_has_a_hook_and_a_machine_goes_once_its_node_has_no_member() {
    for api in [Api::Machine, Api::Cluster] {
        let mut world = World::new(api, false);
        assert_eq!(world.turn().put_on, ["node1", "node2", "node3"]);
        assert_eq!((world.turn(), world.fake_api.patches()), (Kept::default(), 3), "nothing is left to do");
        assert!(!world.is_protected("node4"), "a learner's is its promotion's");
        world.fake_api.delete(api, "node2");
        assert!(world.turn().taken_off.is_empty() && world.is_protected("node2"), "its member is there");
        world.remove_member("node2");
        world.seen.membership.is_confirmed = false;
        let kept = world.turn();
        assert_eq!(kept.problems, ["no majority confirmed the member list: no hook is written"]);
        assert!(kept.taken_off.is_empty() && world.is_protected("node2"));
        world.seen.membership.is_confirmed = true;
        assert_eq!(world.turn().taken_off, ["node2"]);
        world.fake_api.controller();
        assert!(world.fake_api.machine(api, "node2").is_none() && world.fake_api.machine(api, "node1").is_some());
        assert_eq!((world.turn(), world.fake_api.patches()), (Kept::default(), 4));
    }
}

#[test]
fn a_machine_that_is_not_being_deleted_keeps_its_hook_and_one_that_is_gets_none() {
    let mut world = World::new(Api::Cluster, false);
    world.turn();
    world.remove_member("node2");
    assert!(world.turn().taken_off.is_empty() && world.is_protected("node2"));
    world.take_off(Api::Cluster, "node3");
    world.fake_api.delete(Api::Cluster, "node3");
    for _ in 0..3 {
        assert!(world.turn().put_on.is_empty() && !world.is_protected("node3"));
    }
}

#[test]
fn a_hook_that_another_writer_takes_off_three_times_is_given_up() {
    let world = World::new(Api::Machine, false);
    world.turn();
    for _ in 0..2 {
        world.take_off(Api::Machine, "node2");
        let kept = world.turn();
        assert_eq!((kept.put_on.as_slice(), kept.given_up.len()), (["node2".to_owned()].as_slice(), 0));
    }
    world.take_off(Api::Machine, "node2");
    let kept = world.turn();
    assert_eq!((kept.given_up.as_slice(), kept.put_on.len()), (["node2".to_owned()].as_slice(), 0));
    for _ in 0..3 {
        assert_eq!((world.turn(), world.is_protected("node2")), (Kept::default(), false), "it is told once");
    }
    assert_eq!(world.fake_api.patches(), 5);
    // After an operator has set the hook again, the count starts over. It also does for another Machine.
    world.machines().write(&["node2"], None, true).unwrap();
    world.turn();
    world.take_off(Api::Machine, "node2");
    assert_eq!(world.turn().put_on, ["node2"]);
    world.fake_api.change(Api::Machine, "node2", |machine| machine["metadata"]["uid"] = json!("another"));
    world.take_off(Api::Machine, "node2");
    assert_eq!(world.turn().put_on, ["node2"]);
}

#[test]
fn where_nothing_can_be_written_down_no_hook_is_put_on() {
    let world = World::new(Api::Machine, false);
    std::fs::create_dir(world.state()).unwrap();
    assert!(turn(&mut world.machines(), &world.seen, &world.state(), true).is_err());
    std::fs::remove_dir(world.state()).unwrap();
    std::fs::write(world.state(), "{").unwrap();
    let why = turn(&mut world.machines(), &world.seen, &world.state(), true).unwrap_err().0;
    assert!(why.contains("is damaged"), "{why}");
    assert_eq!(world.fake_api.patches(), 0);
}

#[test]
fn a_write_that_fails_counts_against_no_other_writer() {
    let world = World::new(Api::Machine, false);
    for _ in 0..5 {
        let mut machines = world.machines();
        world.fake_api.fail(3, "403 Forbidden");
        let kept = turn(&mut machines, &world.seen, &world.state(), true).unwrap();
        assert_eq!((kept.problems.len(), kept.given_up.len()), (3, 0), "{kept:?}");
        assert_eq!(kept.problems[0], "the hook of node1's Machine is not written: the API answers 403");
    }
    assert_eq!(world.turn().put_on.len(), 3);
}

/// Asserts that a deletion hook is removed only from the version of the Machine that was read before the members were observed. A later
/// version needs a new observation.
#[test]
fn a_hook_is_taken_off_the_version_that_was_read_and_no_later_one() {
    let mut world = World::new(Api::Machine, false);
    world.turn();
    world.fake_api.delete(Api::Machine, "node2");
    world.remove_member("node2");
    world.fake_api.writes_before(1);
    let patches = world.fake_api.patches();
    assert!(world.turn().taken_off.is_empty() && world.is_protected("node2"));
    assert_eq!(world.fake_api.patches(), patches + 1, "it is not tried again in this turn");
    assert_eq!(world.turn().taken_off, ["node2"]);
    // Setting a hook meets a conflict, and reads the Machine again.
    world.take_off(Api::Machine, "node1");
    world.fake_api.writes_before(1);
    assert_eq!(world.turn().put_on, ["node1"]);
}

#[test]
fn a_machine_keeps_its_hook_while_a_member_without_a_machine_may_run_on_it() {
    let mut world = World::new(Api::Cluster, false);
    world.turn();
    world.fake_api.delete(Api::Cluster, "node2");
    // The Machine has neither this member's name nor its address.
    let member = &mut world.seen.membership.members[1];
    "etcd-b".clone_into(&mut member.name);
    member.peer_urls = vec!["https://etcd-b.example.com:2380".to_owned()];
    assert!(world.turn().taken_off.is_empty() && world.is_protected("node2"));
    world.remove_member("etcd-b");
    // A Machine that names neither a node nor an address proves nothing.
    world.fake_api.change(Api::Cluster, "node2", |machine| machine["status"] = json!({"phase": "Running"}));
    assert!(world.turn().taken_off.is_empty());
    world.fake_api.change(Api::Cluster, "node2", |machine| machine["status"]["nodeRef"] = json!({"name": "node2"}));
    assert_eq!(world.turn().taken_off, ["node2"]);
}

#[test]
fn nothing_is_written_beside_an_operator_or_where_it_is_not_wanted() {
    for (has_operator, writes) in [(true, true), (false, false)] {
        let mut world = World::new(Api::Machine, has_operator);
        world.fake_api.operator(&["node1", "node2"]);
        world.fake_api.delete(Api::Machine, "node2");
        world.remove_member("node2");
        let kept = turn(&mut world.machines(), &world.seen, &world.state(), writes).unwrap();
        assert_eq!(kept, Kept { operator: has_operator, ..Kept::default() });
        assert_eq!((world.fake_api.patches(), world.state().exists()), (0, false));
    }
}

#[test]
fn a_replacement_is_due_where_a_voters_machine_goes_and_another_runs_without_a_member() {
    let mut world = World::new(Api::Cluster, false);
    world.remove_member("node4");
    world.fake_api.add_worker(Api::Cluster, "node9", "192.0.2.9");
    assert_eq!(world.turn().due, [], "no Machine is being deleted");
    world.fake_api.delete(Api::Cluster, "node3");
    let command = "tandem member replace node3 --new node4=192.0.2.4".to_owned();
    let due = Due { old: "node3".to_owned(), new: "node4".to_owned(), command };
    assert_eq!(world.turn().due, [due]);
    for not_there in [json!({"phase": "Provisioning"}), json!({"phase": "Running"})] {
        world.fake_api.change(Api::Cluster, "node4", |machine| machine["status"] = not_there);
        assert_eq!(world.turn().due, []);
    }
    world.fake_api.remove("/apis/cluster.x-k8s.io/v1beta1/namespaces/openshift-machine-api/machines/node4-machine");
    assert_eq!(world.turn().due, [], "a worker replaces no member");
}

/// Asserts that next to an etcd operator a replacement is proposed only in a pair. The operator replaces the members of other clusters by
/// itself.
#[test]
fn next_to_an_operator_only_a_pairs_replacement_is_due() {
    let mut world = World::new(Api::Machine, true);
    world.remove_member("node4");
    world.fake_api.delete(Api::Machine, "node2");
    assert_eq!(world.turn().due, []);
    world.seen = pair();
    let commands = |kept: Kept| kept.due.into_iter().map(|due| due.command).collect::<Vec<_>>();
    assert_eq!(commands(world.turn()), ["tandem member replace node2"]);
}

/// Asserts that the command for a pair names the BMC of a node that has another name, because the command is refused without it.
#[test]
fn a_pairs_replacement_names_the_new_machines_bmc() {
    let mut world = World::new(Api::Cluster, false);
    world.seen = pair();
    world.fake_api.remove("/apis/cluster.x-k8s.io/v1beta1/namespaces/openshift-machine-api/machines/node3-machine");
    world.fake_api.delete(Api::Cluster, "node2");
    let fence = "--fence ip=ADDRESS --fence username=USER --fence password_file=FILE";
    let command = format!("tandem member replace node2 --new node4=192.0.2.4 {fence}");
    assert_eq!(world.turn().due, [Due { old: "node2".to_owned(), new: "node4".to_owned(), command }]);
}
