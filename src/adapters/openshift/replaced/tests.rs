//! Tests against a fake API that the old machine's objects are deleted, and no others: interrupted anywhere, and with the
//! operator and other clients at work.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::adapters::kubernetes::kubeconfig::for_server;
use crate::adapters::openshift::machines::Api as Kind;
use crate::adapters::openshift::machines::fake_api::FakeApi;

const NODE: &str = "/api/v1/nodes/node2";
const HOST2: &str = "/apis/metal3.io/v1alpha1/namespaces/openshift-machine-api/baremetalhosts/node2-host";

/// A fake API with the nodes node1 and node2, and a directory for saved objects. The kubelet of node2 has stopped.
struct World {
    fake_api: FakeApi,
    dir: tempfile::TempDir,
}

impl World {
    fn of_two() -> Self {
        let fake_api = FakeApi::start(true);
        fake_api.add_node("node1", "192.0.2.1");
        fake_api.add_node("node2", "192.0.2.2");
        fake_api.operator(&["node1", "node2"]);
        fake_api.stop_kubelet("node2");
        Self { fake_api, dir: tempfile::tempdir().unwrap() }
    }

    /// Creates a new client for node2, like one in another process.
    fn api(&self) -> Api {
        Api::of(&for_server(&self.dir, &self.fake_api.server), "node2", "192.0.2.2".to_owned(), PATIENCE).unwrap()
    }

    fn saved(&self) -> Replaced {
        self.api().save(self.dir.path()).unwrap()
    }

    fn turn(&self, replaced: &mut Replaced) -> Turn {
        self.api().turn(replaced, self.dir.path()).unwrap()
    }

    /// Returns the API paths of all objects with a path that contains `node`.
    fn of(&self, node: &str) -> Vec<String> {
        self.fake_api.paths().into_iter().filter(|path| path.contains(node)).collect()
    }

    fn uid(&self, path: &str) -> Option<String> {
        Some(self.fake_api.get(path)?["metadata"]["uid"].as_str().unwrap().to_owned())
    }

    /// Performs all steps of deleting the objects of node2. After each step the fake API acts as the controllers and the etcd
    /// operator, with `members` as etcd's members. `after` is called with the outcome of each step.
    fn to_the_end(&self, replaced: &mut Replaced, members: &[&str], mut after: impl FnMut(&Turn, &mut Replaced)) {
        for _ in 0..40 {
            let turn = self.turn(replaced);
            after(&turn, replaced);
            if turn == Turn::Over {
                return;
            }
            self.fake_api.operator(members);
            self.fake_api.controller();
        }
        panic!("it does not end: {:?}", self.of("node2"));
    }
}

#[test]
fn all_of_the_old_node_is_saved_and_goes_and_nothing_of_the_other_one() {
    let world = World::of_two();
    let survivors = world.of("node1");
    let mut replaced = world.saved();
    assert_eq!(replaced.node, world.uid(NODE));
    assert_eq!(replaced.saved.len(), 7, "{replaced:?}");
    for saved in &replaced.saved {
        assert_eq!(fs::metadata(&saved.file).unwrap().permissions().mode() & 0o777, 0o600);
        let text = fs::read_to_string(&saved.file).unwrap();
        assert_eq!(text, world.fake_api.get(&saved.path).unwrap().to_string());
    }
    assert_eq!(world.of("node2").len(), 8, "nothing is deleted by that");
    world.to_the_end(&mut replaced, &["node1"], |_, _| {});
    assert_eq!(world.of("node2"), Vec::<String>::new());
    assert_eq!(world.of("node1"), survivors);
    assert!(world.fake_api.deletions().iter().all(|path| path.contains("node2")));
    let order = |path: &str| world.fake_api.deletions().iter().position(|one| one.contains(path)).unwrap();
    assert!(order("etcd-peer") < order("/baremetalhosts/") && order("/baremetalhosts/") < order("/machines/"));
}

/// Asserts that an interrupted deletion has the same result when another process continues it. The test interrupts it after each step, and
/// before the step's state is written.
#[test]
fn cut_off_after_each_turn_it_ends_the_same() {
    for forgets in [false, true] {
        for cut in 0..30 {
            let world = World::of_two();
            let mut written = world.saved();
            let mut replaced = written.clone();
            for turns in 0.. {
                let turn = world.turn(&mut replaced);
                if turn == Turn::Over {
                    break;
                }
                if forgets && turns == cut {
                    replaced = written.clone();
                }
                written = replaced.clone();
                // Another process continues with the written state.
                replaced = serde_json::from_str(&serde_json::to_string(&written).unwrap()).unwrap();
                if turns != cut {
                    world.fake_api.operator(&["node1"]);
                    world.fake_api.controller();
                }
                assert!(turns < 40, "cut after {cut}: {:?}", world.of("node2"));
            }
            assert_eq!(world.of("node2"), Vec::<String>::new(), "cut after {cut}");
            assert_eq!(world.of("node1").len(), 8);
            for path in world.fake_api.deletions() {
                let is_saved = |saved: &Saved| saved.path == path && saved.file.exists();
                assert!(written.saved.iter().any(is_saved), "{path} was not saved");
            }
        }
    }
}

#[test]
fn a_machine_whose_node_has_a_member_stays_until_the_member_is_out() {
    let world = World::of_two();
    let mut replaced = world.saved();
    let mut last = Turn::Over;
    for _ in 0..12 {
        last = world.turn(&mut replaced);
        world.fake_api.operator(&["node1", "node2"]);
        world.fake_api.controller();
    }
    let expected = "waits until machines/node2-machine is gone, whose hook EtcdQuorumOperator is still there";
    assert_eq!(last, Turn::Waits(expected.to_owned()));
    let deletions = world.fake_api.deletions().len();
    assert_eq!(deletions, 5, "three Secrets, the host and the Machine, each once");
    world.to_the_end(&mut replaced, &["node1"], |_, _| {});
    assert!(world.of("node2").is_empty());
}

/// Asserts that the deletion ends although another client removes the hook, or recreates an object repeatedly.
#[test]
fn a_deletion_ends_although_a_second_writer_interferes() {
    let world = World::of_two();
    let mut replaced = world.saved();
    for turns in 0..20 {
        if world.turn(&mut replaced) == Turn::Over {
            break;
        }
        world.fake_api.operator(&["node1", "node2"]);
        if turns > 6 && world.fake_api.machine(Kind::Machine, "node2").is_some() {
            world.fake_api.change(Kind::Machine, "node2", |machine| machine["spec"]["lifecycleHooks"] = Value::Null);
        }
        world.fake_api.controller();
    }
    assert!(world.of("node2").is_empty(), "{:?}", world.of("node2"));
    // A client that recreates an object repeatedly is left to it.
    let world = World::of_two();
    let mut replaced = world.saved();
    world.to_the_end(&mut replaced, &["node1"], |_, _| {
        if world.fake_api.get(NODE).is_none() {
            let path = &FakeApi::made_for("node2")[0];
            if world.fake_api.get(path).is_none() {
                world.fake_api.make(path, json!({}));
            }
        }
    });
    let path = &FakeApi::made_for("node2")[0];
    let deleted = world.fake_api.deletions().iter().filter(|one| *one == path).count();
    assert_eq!((deleted, world.of("node2").len()), (ROUNDS, 1));
}

/// Asserts that no object of the new machine is deleted, whenever it joins. Its objects have the same names as those of the old machine.
#[test]
fn nothing_of_the_new_machine_is_deleted_whenever_it_comes() {
    for comes_after in 0..16 {
        let world = World::of_two();
        let mut replaced = world.saved();
        let mut uids = None;
        let mut turns = 0;
        world.to_the_end(&mut replaced, &["node1"], |_, _| {
            turns += 1;
            let is_gone = [NODE, HOST2].iter().all(|path| world.fake_api.get(path).is_none());
            if uids.is_none() && turns > comes_after && is_gone {
                world.fake_api.add_node("node2", "192.0.2.2");
                world.fake_api.operator(&["node1"]);
                uids = Some([NODE, HOST2].map(|path| world.uid(path)));
            }
        });
        if let Some(uids) = uids {
            assert_eq!([NODE, HOST2].map(|path| world.uid(path)), uids);
            assert!(world.fake_api.machine(Kind::Machine, "node2").is_some());
            assert_eq!(world.api().node_is(&replaced), Ok(NodeIs::New { ready: true }));
        }
    }
    // The new machine may join before the old Machine is read again. Nothing of it is deleted.
    let world = World::of_two();
    let mut replaced = world.saved();
    for path in world.of("node2") {
        world.fake_api.remove(&path);
    }
    world.fake_api.add_node("node2", "192.0.2.2");
    world.fake_api.operator(&["node1"]);
    assert_eq!(world.turn(&mut replaced), Turn::Over);
    assert_eq!((world.of("node2").len(), world.fake_api.deletions().len()), (8, 0));
}

/// Asserts that only the saved object is deleted, because another object may have taken its name after the read.
#[test]
fn a_deletion_is_of_the_very_object_that_was_saved() {
    let world = World::of_two();
    let replaced = world.saved();
    let saved = replaced.saved.iter().find(|saved| saved.path == HOST2).unwrap();
    let version = || world.fake_api.get(HOST2).unwrap()["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let conflict = || Trouble::Passes("the API answers 409".to_owned());
    // An object of another version is read again.
    world.fake_api.writes_before(1);
    assert_eq!(world.api().delete(saved, &version()), Err(conflict()));
    world.fake_api.writes_before(1);
    assert_eq!(world.api().turn(&mut replaced.clone(), world.dir.path()), Err(conflict()));
    assert!(world.fake_api.deletions().is_empty());
    assert!(matches!(world.turn(&mut replaced.clone()), Turn::Did(_)));
    world.fake_api.put(HOST2, |host| host["metadata"]["uid"] = json!("another"));
    assert_eq!(world.api().delete(saved, &version()), Err(conflict()));
    assert_eq!(world.uid(HOST2).as_deref(), Some("another"));
    world.fake_api.remove(HOST2);
    assert_eq!(world.api().delete(saved, "7"), Ok(()), "what is gone is gone");
}

#[test]
fn what_is_not_clear_is_not_deleted() {
    let lasts = |world: &World| match world.api().find() {
        Err(Trouble::Lasts(why)) => why,
        other => panic!("{other:?}"),
    };
    let world = World::of_two();
    assert_eq!(world.api().find(), Ok(()));
    world.fake_api.change(Kind::Machine, "node1", |machine| machine["status"]["nodeRef"]["name"] = json!("node2"));
    assert!(lasts(&world).contains("node2 has 2 objects Machine, node1-machine and node2-machine"));
    let world = World::of_two();
    world.fake_api.put(HOST2, |host| host["spec"]["consumerRef"]["name"] = json!("node1-machine"));
    world.fake_api.change(Kind::Machine, "node2", |machine| {
        machine["metadata"]["annotations"] = json!({"metal3.io/BareMetalHost": "openshift-machine-api/node2-host"});
    });
    assert!(lasts(&world).contains("the BareMetalHost of node2 is that of another Machine, node1-machine"));
    let world = World::of_two();
    world.fake_api.put(HOST2, |host| host["status"] = json!({"hardware": {"hostname": "node1"}}));
    assert_eq!(world.api().find(), Ok(()), "a Machine's word counts");
    world
        .fake_api
        .put(&HOST2.replace("node2", "node1"), |host| host["status"] = json!({"hardware": {"hostname": "node2"}}));
    assert!(lasts(&world).contains("has 2 objects BareMetalHost"));
    assert!(world.fake_api.deletions().is_empty());
}

/// Asserts that the Machine is found by its Node or, while it names none, by its address. A Machine that names another Node never
/// matches.
#[test]
fn a_machine_is_found_by_its_node_or_without_one_by_its_address() {
    let world = World::of_two();
    world.fake_api.change(Kind::Machine, "node2", |machine| machine["status"]["nodeRef"] = Value::Null);
    assert_eq!(world.saved().saved.len(), 7);
    world.fake_api.change(Kind::Machine, "node2", |machine| machine["status"]["nodeRef"] = json!({"name": "node3"}));
    let paths: Vec<String> = world
        .api()
        .host_and_machine()
        .map(|(host, machine)| host.into_iter().chain(machine).collect())
        .unwrap_or_default();
    assert_eq!(paths, Vec::<String>::new());
}

/// Asserts that a BareMetalHost without a Machine belongs to no node, and that a node without a Machine has no host.
#[test]
fn a_host_that_no_machine_has_is_nobodys() {
    let world = World::of_two();
    let paths = || world.api().host_and_machine().unwrap();
    world.fake_api.make(&format!("{HOSTS}/spare"), json!({"spec": {}}));
    assert_eq!(paths().0.as_deref(), Some(HOST2));
    let machine = paths().1.unwrap();
    world.fake_api.remove(&machine);
    world.fake_api.remove(HOST2);
    assert_eq!(paths(), (None, None));
}

#[test]
fn a_node_is_ready_where_its_kubelet_says_so_and_the_old_one_is_waited_for() {
    let world = World::of_two();
    let replaced = Replaced { node: world.uid(NODE), ..Replaced::default() };
    for (condition, ready) in [
        (json!({"type": "Ready", "status": "True"}), true),
        (json!({"type": "Ready", "status": "Unknown"}), false),
        (json!({"type": "DiskPressure", "status": "True"}), false),
    ] {
        world.fake_api.put(NODE, |node| node["status"]["conditions"] = json!([condition]));
        assert_eq!(world.api().node_is(&replaced), Ok(NodeIs::TheOld { ready }));
        assert_eq!(world.api().node_is(&Replaced::default()), Ok(NodeIs::New { ready }));
    }
    for path in world.of("node2").iter().filter(|path| *path != NODE) {
        world.fake_api.remove(path);
    }
    let waits = "waits until the Node node2 is gone, with its Machine or by 'oc delete node node2'";
    assert_eq!(world.turn(&mut replaced.clone()), Turn::Waits(waits.to_owned()));
}

#[test]
fn jobs_with_shortened_names_are_known_by_their_node() {
    let world = World::of_two();
    let long = format!("{JOBS}/tnf-auth-job-node2-0a1b2c3d");
    world.fake_api.make(&long, json!({"spec": {"template": {"spec": {"nodeName": "node2"}}}}));
    world
        .fake_api
        .make(&format!("{JOBS}/tnf-auth-job-node22"), json!({"spec": {"template": {"spec": {"nodeName": "node22"}}}}));
    world
        .fake_api
        .make(&format!("{JOBS}/tnf-fencing-job"), json!({"spec": {"template": {"spec": {"nodeName": "node2"}}}}));
    let mut jobs = world.api().jobs().unwrap();
    jobs.retain(|job| !FakeApi::made_for("node2").contains(job));
    assert_eq!(jobs, [long]);
}

#[test]
fn an_api_that_starts_is_waited_for_and_one_that_forbids_is_not() {
    let world = World::of_two();
    let mut replaced = world.saved();
    for (status, passes) in [
        ("503 Service Unavailable", true),
        ("500 Internal Server Error", true),
        ("429 Too Many Requests", true),
        ("403 Forbidden", false),
        ("401 Unauthorized", false),
        ("302 Found", false),
    ] {
        world.fake_api.fail(1, status);
        let why = format!("the API answers {}", &status[..3]);
        let expected = if passes { Trouble::Passes(why) } else { Trouble::Lasts(why) };
        assert_eq!(world.api().turn(&mut replaced, world.dir.path()), Err(expected));
    }
    let nobody = for_server(&world.dir, "http://127.0.0.1:9");
    let api = Api::of(&nobody, "node2", String::new(), Duration::from_secs(1)).unwrap();
    assert!(matches!(api.find(), Err(Trouble::Passes(_))));
    assert!(Api::of(&nobody, "../node2", String::new(), PATIENCE).is_err());
    world.fake_api.fail(1, "200 OK");
    assert_eq!(world.api().find(), Err(not_understood()), "no word of an answer is repeated");
    world.fake_api.make(JOBS, json!({"kind": "Status"}));
    assert_eq!(world.api().jobs(), Err(not_understood()), "that is no list, and not an empty one");
    assert!(world.fake_api.deletions().is_empty());
}

/// Asserts that no text from the API leads to a file outside of the directory.
#[test]
fn a_file_is_below_its_directory_whatever_a_uid_is() {
    let world = World::of_two();
    world.fake_api.put(HOST2, |host| host["metadata"]["uid"] = json!("../../x"));
    let why = world.api().save(world.dir.path()).unwrap_err();
    assert_eq!(why, Trouble::Lasts("'../../x' is no name that Kubernetes has".to_owned()));
    let world = World::of_two();
    let job = format!("{JOBS}/tnf-auth-job-a?b");
    world.fake_api.make(&job, json!({"spec": {"template": {"spec": {"nodeName": "node2"}}}}));
    let why = world.api().save(world.dir.path()).unwrap_err();
    assert_eq!(why, Trouble::Lasts("'tnf-auth-job-a?b' is no name that Kubernetes has".to_owned()));
    for name in ["", ".", "..", ".node2", "a/b", "a%2fb", "a b"] {
        assert!(is_plain(name).is_err(), "{name:?}");
    }
    assert_eq!((is_plain("node2.example"), is_plain("0a1b-2c")), (Ok(()), Ok(())));
}

/// Asserts that an object counts as saved only if its file could be written, because only saved objects are deleted.
#[test]
fn what_cannot_be_written_is_not_counted_as_saved() {
    let world = World::of_two();
    let file = world.dir.path().join("file");
    fs::write(&file, "").unwrap();
    let why = world.api().save(&file).unwrap_err();
    assert!(matches!(&why, Trouble::Lasts(why) if why.contains("cannot be written")), "{why:?}");
    let mut replaced = Replaced::default();
    assert!(world.api().keep(&mut replaced, HOST2.to_owned(), &file).is_err());
    assert_eq!(replaced, Replaced::default());
}
