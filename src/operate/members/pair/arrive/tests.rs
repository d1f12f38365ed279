//! Tests of the steps that add a node, with programs in the place of pcs and Pacemaker's tools.

use super::super::change::{Change, Kind};
use super::super::fake_node1::{Node1, parts};
use super::super::plan::tests::{change, pair, place};
use super::*;
use crate::adapters::kubernetes::kubeconfig::for_server;
use crate::adapters::openshift::machines::Api;
use crate::adapters::openshift::machines::fake_api::FakeApi;
use crate::adapters::openshift::replaced::Replaced;
use crate::decide::members::Health;
use crate::operate::health::samples;
use crate::records::bmc_note::BmcNote;

fn replaced() -> Change {
    change(Kind::Replace, Some(place("node2", 2)), Some(place("node3", 3)))
}

fn waits(took: &Took, what: &str) -> bool {
    matches!(took, Took::Waits(why) if why.starts_with(what))
}

#[test]
fn a_device_that_does_not_work_is_told_and_one_that_stays_is_not_made_again() {
    let node1 = Node1::new();
    let same = change(Kind::Replace, Some(place("node2", 2)), Some(place("node2", 2)));
    let work = node1.work(same, "");
    let Failure(why) = work.device(&node1.look(samples::read("fence-device-failed"))).unwrap_err();
    assert!(why.starts_with("the fence device of node2 does not work: unable to log in"), "{why}");
    let took = work.device(&node1.look(samples::read("healthy"))).unwrap();
    assert!(waits(&took, "waits until the fence device of node2 has answered"), "{took:?}");
    // Another resource has the name of the new device.
    let cib = "<cib><configuration><resources><primitive id=\"fence-node3\" class=\"ocf\" provider=\"heartbeat\" type=\"Dummy\"/>\
               </resources></configuration></cib>";
    let fence = vec![("ip".to_owned(), "192.0.2.103".to_owned())];
    let work = node1.work(Change { fence, ..replaced() }, cib);
    let Failure(why) = work.device(&node1.look(samples::read("healthy"))).unwrap_err();
    assert!(why.contains("fence-node3"), "{why}");
    assert!(node1.typed().is_empty());
}

/// Asserts that `system_uuid` is set only if the new machine's firmware and its BMC report the same UUID. A UUID that only the BMC
/// reports does not identify the machine.
#[test]
fn a_device_is_tied_to_the_machine_whose_firmware_and_bmc_report_one_uuid() {
    const OWN: &str = "4c4c4544-0033-3510-8054-b4c04f303158";
    let node1 = Node1::new();
    let work = node1.work(replaced(), "");
    let looked = |uuid: &str| {
        let note = BmcNote { uuid: Some(uuid.to_owned()), ..BmcNote::default() };
        Looked { note, ..Looked::default() }
    };
    work.tie_to("fence-node3", "node3", looked(&OWN.to_uppercase()), Some(OWN)).unwrap();
    assert_eq!(node1.typed(), [format!("pcs stonith update fence-node3 system_uuid={OWN}")]);
    work.tie_to("fence-node3", "node3", looked(OWN), None).unwrap();
    work.tie_to("fence-node3", "node3", Looked::default(), Some(OWN)).unwrap();
    let other = "4c4c4544-0039-3510-8054-b4c04f303158";
    let Failure(why) = work.tie_to("fence-node3", "node3", looked(other), Some(OWN)).unwrap_err();
    assert!(why.contains("is that of another machine"), "{why}");
    assert!(node1.typed().is_empty(), "nothing is pinned that was not compared");
}

/// Asserts that an interrupted addition of a node is completed without repeating its finished parts. Also asserts that the token is
/// deleted, because it gives full access to both pcsds.
#[test]
fn a_node_is_added_once_and_the_token_is_gone_then() {
    let node1 = Node1::new();
    let look = node1.look(samples::read("healthy"));
    let mut work = node1.work(replaced(), "");
    let token = node1.file("token", "secret");
    let auth = format!("pcs host auth node1 addr=192.0.2.1 node3 addr=192.0.2.3 --token {}", token.display());
    let starts = ["pcs cluster enable node3", "pcs cluster start node3"];
    assert_eq!(work.add(&look, &pair()).unwrap(), Took::Acted("node3 is in the cluster".to_owned()));
    let forgets = "crm_node --force --remove node9";
    let enters = [forgets, &auth, "pcs cluster node add node3 addr=192.0.2.3", &auth, starts[0], starts[1]];
    assert_eq!(node1.typed(), enters);
    assert!(!token.exists());
    let known = PairSeen { new_is_known: true, ..pair() };
    assert!(waits(&work.add(&look, &known).unwrap(), "waits until node3 is online"));
    assert!(node1.typed().is_empty());
    node1.work(replaced(), "").add(&look, &known).unwrap();
    assert_eq!(node1.typed(), starts, "a call that was cut off did the rest");
}

#[test]
fn what_the_old_machine_was_told_is_taken_off_the_new_one_on_openshift_alone() {
    let node1 = Node1::new();
    let look = node1.look(samples::read("healthy"));
    let node2 = Some(place("node2", 2));
    let same = change(Kind::Replace, node2.clone(), node2);
    let on_openshift = Change { openshift: Some(Replaced::default()), ..same.clone() };
    let standby = PairSeen { old: Old::Online { standby: true }, ..pair() };
    for (change, seen, typed) in [
        (&same, &standby, &[][..]),
        (&on_openshift, &pair(), &[]),
        (&on_openshift, &standby, &["pcs node unstandby node2"]),
    ] {
        node1.work(change.clone(), "").join(&look, seen).unwrap();
        assert_eq!(node1.typed(), typed);
    }
}

/// Asserts that the new member's Machine gets its deletion hook before the member votes, if other Machines have hooks. Also asserts that
/// the hook is not set again after another client has removed it.
#[test]
fn a_machine_gets_its_hook_once_where_others_have_one() {
    let node1 = Node1::new();
    let fake_api = FakeApi::start(false);
    fake_api.add(Api::Cluster, "node3", "192.0.2.3");
    let learner = |machine, uses_hooks| {
        let mut look = node1.look(samples::read("healthy"));
        look.context.params.kubeconfig = for_server(&node1.dir, &fake_api.server);
        let membership = &mut look.members.as_mut().unwrap().membership;
        membership.uses_hooks = uses_hooks;
        membership.members[1] = Member {
            id: 3,
            node: Some("node3".to_owned()),
            is_learner: true,
            health: Health::Yes,
            machine,
            ..Member::default()
        };
        look
    };
    let bare = MachineState::Stays { is_protected: false };
    for look in [learner(bare.clone(), false), learner(MachineState::BeingDeleted, true)] {
        assert!(waits(&node1.work(replaced(), "").join(&look, &pair()).unwrap(), "node3 is a learner"));
        assert_eq!(fake_api.patches(), 0);
    }
    let look = learner(bare, true);
    let mut work = node1.work(replaced(), "");
    let done = Took::Acted("the deletion of node3's Machine waits for it".to_owned());
    assert_eq!((work.join(&look, &pair()).unwrap(), fake_api.patches()), (done, 1));
    fake_api.change(Api::Cluster, "node3", |machine| machine["metadata"]["annotations"] = serde_json::json!({}));
    assert!(waits(&work.join(&look, &pair()).unwrap(), "node3 is a learner"));
    assert_eq!(fake_api.patches(), 1);
}

/// Asserts that the new machine gets the password of this node's BMC itself, because the new machine has no password file for this BMC.
/// Also asserts that it gets the plug.
#[test]
fn the_new_machine_is_told_the_password_itself_and_which_plug_is_meant() {
    let node1 = Node1::new();
    let file = node1.file("password", "hunter2\nold\n");
    let cib = format!(
        "<resources><primitive id=\"fence-node1\"><instance_attributes id=\"a\"><nvpair id=\"b\" name=\"ip\" value=\"192.0.2.101\"/>\
         <nvpair id=\"c\" name=\"password_file\" value=\"{}\"/></instance_attributes></primitive></resources>",
        file.display()
    );
    let mut look = node1.look(samples::read("healthy"));
    let devices = &mut parts(&mut look.cluster).1.fence_devices;
    devices[0].plugs.insert("node1".to_owned(), "slot-1".to_owned());
    let Secret(told) = node1.work(replaced(), &cib).device_of_here(&look).unwrap().unwrap();
    assert_eq!(told.as_str(), "ip=192.0.2.101\npassword=hunter2\nplug=slot-1\n");
}

#[test]
fn the_two_nodes_are_described_with_their_own_files() {
    let node1 = Node1::new();
    let mut look = node1.look(samples::read("healthy"));
    let mut change = replaced();
    change.fence = vec![("password_file".to_owned(), "/etc/new".to_owned())];
    let work = node1.work(change, "");
    let own = |file: &str| Path::new(pki::DIR).join(file);
    let given = PathBuf::from("/nonexistent/file");
    for (ca, cert, is_own) in
        [(own("ca.crt"), own("etcd.crt"), true), (own("ca.crt"), given.clone(), false), (given, own("etcd.crt"), false)]
    {
        (look.context.deployment.trusted_ca_file, look.context.deployment.server.cert) = (ca, cert);
        let described = work.description(&look).unwrap();
        assert_eq!(described.certificates == Certificates::Own, is_own);
        let files = described.nodes.map(|node| node.bmc.password_file);
        assert_eq!(files, ["/etc/tandem/bmc-password", "/etc/new"].map(PathBuf::from));
    }
}

#[test]
fn the_new_node_takes_the_place_of_a_configured_primary() {
    let node1 = Node1::new();
    let mut look = node1.look(samples::read("healthy"));
    let map = "pcs resource update etcd node_ip_map=node1:192.0.2.1;node3:192.0.2.3";
    for (primary, words) in [(None, ""), (Some("node1"), ""), (Some("node2"), " configured_primary=node3")] {
        look.context.params.leading.primary = primary.map(str::to_owned);
        node1.work(replaced(), "").map(&look).unwrap();
        assert_eq!(node1.typed(), [format!("{map}{words}")], "{primary:?}");
    }
    let node2 = Some(place("node2", 2));
    let same = change(Kind::Replace, node2.clone(), node2.clone());
    assert_eq!(same.configured_primary(Some("node2")), None, "it keeps its name");
    let removed = change(Kind::Remove, node2, None);
    assert_eq!(removed.configured_primary(Some("node2")).as_deref(), Some("configured_primary="));
}
