//! The right system: several behind one BMC, a UUID that proves it, and the resources of real BMCs.

#![allow(clippy::unwrap_used, reason = "what fails here ends the test")]

use crate::bmc::agent::Call;
use crate::bmc::{Fault, Misbehaviour, Server, System, World, at_once};
use serde_json::{Value, json};

fn two_hosts() -> World {
    let mut systems = vec![System::new("Node0"), System::new("Node1")];
    for (system, uuid) in systems.iter_mut().zip([UUID0, UUID1]) {
        system.uuid = json!(uuid);
        "shared".clone_into(&mut system.serial);
    }
    World::of(systems)
}

const UUID0: &str = "0a0a0a0a-1111-4222-8333-444444444444";
const UUID1: &str = "1b1b1b1b-1111-4222-8333-444444444444";

fn resets_of(server: &Server, id: &str) -> usize {
    let target = format!("POST /redfish/v1/Systems/{id}/Actions/ComputerSystem.Reset");
    server.requests().iter().filter(|request| **request == target).count()
}

#[test]
fn an_ambiguous_choice_is_refused_with_a_list_by_every_action() {
    for action in ["status", "monitor", "off", "on", "reboot", "diag"] {
        for node in [None, Some("node1")] {
            let server = Server::with_world(two_hosts());
            let mut call = Call::new(&server, action);
            if let Some(node) = node {
                call = call.set("nodename", node).set("port", node);
            }
            call.run().fails(&["2 systems", "Node0", "Node1", "plug"]).within(0.0, 1.5);
            assert!(server.posted().is_empty());
        }
    }
}

#[test]
fn every_identification_reaches_that_system_and_no_other() {
    for plug in ["Node1", "System Node1", UUID1, "/redfish/v1/Systems/Node1", "/redfish/v1/Systems/Node1/"] {
        for option in ["plug", "port"] {
            let server = Server::with_world(two_hosts());
            Call::new(&server, "off").set(option, plug).run().succeeds("Success: Powered OFF");
            assert_eq!((resets_of(&server, "Node0"), resets_of(&server, "Node1")), (0, 1), "{plug}");
        }
    }
    // Pacemaker sends this with `pcmk_host_map=node1:Node0`.
    let server = Server::with_world(two_hosts());
    Call::new(&server, "reboot").set("nodename", "node1").set("port", "Node0").run().succeeds("Success: Rebooted");
    assert_eq!((resets_of(&server, "Node0"), resets_of(&server, "Node1")), (2, 0));
}

#[test]
fn a_name_that_fits_no_system_or_several_is_refused() {
    for (plug, words) in
        [("Node7", "no system here is called"), ("shared", "fits several systems"), ("node1", "no system here")]
    {
        let server = Server::with_world(two_hosts());
        Call::new(&server, "off").set("plug", plug).run().fails(&[words, "Node0", "Node1"]).within(0.0, 1.5);
        assert!(server.posted().is_empty());
    }
    // This also holds for a single system: a name that was given must match.
    let server = Server::start();
    Call::new(&server, "off").set("plug", "other").run().fails(&["no system here is called 'other'"]);
    assert!(server.posted().is_empty());
}

#[test]
fn the_nodes_name_is_ignored_where_there_is_one_system() {
    let server = Server::start();
    Call::new(&server, "off").set("nodename", "node1").set("port", "node1").run().succeeds("Success: Powered OFF");
}

#[test]
fn the_only_system_that_can_be_reset_is_the_one() {
    let mut board = System::new("HGX_Baseboard_0");
    board.can_reset = false;
    let server = Server::with_world(World::of(vec![System::new("System_0"), board]));
    Call::new(&server, "monitor").run().succeeds("");
    Call::new(&server, "off").run().succeeds("Success: Powered OFF");
    assert_eq!(resets_of(&server, "System_0"), 1);
}

#[test]
fn a_member_that_cannot_be_read_makes_the_choice_uncertain() {
    let unreadable = Fault::always("GET", "/Systems/Node1", Misbehaviour::Status(404, String::new()));
    let server = Server::with_world(two_hosts().with(unreadable));
    Call::new(&server, "off").run().fails(&["could not be read", "plug"]);
    assert!(server.posted().is_empty());
    Call::new(&server, "off").set("plug", "Node0").run().succeeds("Success: Powered OFF");
}

#[test]
fn a_member_that_cannot_be_read_just_now_is_waited_for() {
    let busy = |times| Fault::always("GET", "/Systems/Node1", Misbehaviour::Status(503, String::new())).times(times);
    let server = Server::with_world(two_hosts().with(busy(2)));
    Call::new(&server, "off").set("plug", "System Node1").run().succeeds("Success: Powered OFF").within(2.0, 6.0);
    assert_eq!((resets_of(&server, "Node0"), resets_of(&server, "Node1")), (0, 1));
    let server = Server::with_world(two_hosts().with(busy(usize::MAX)));
    let output = Call::new(&server, "off").set("action_timeout", "4").run();
    output.fails(&["could not be read"]).within(2.0, 6.0);
    assert!(server.posted().is_empty());
}

#[test]
fn a_system_that_is_listed_twice_is_one() {
    let mut world = World::one_system();
    let twice = json!({"Members": [{"@odata.id": "/redfish/v1/Systems/1"}, {"@odata.id": "/redfish/v1/Systems/1/"}],
        "Members@odata.nextLink": "/redfish/v1/Systems?page=2"});
    let again = json!({"Members": [{"@odata.id": "/redfish/v1/Systems/1"}]});
    world.fixed = vec![
        ("/redfish/v1/Systems".into(), twice.to_string()),
        ("/redfish/v1/Systems?page=2".into(), again.to_string()),
    ];
    Call::new(&Server::with_world(world), "status").run().succeeds("Status: ON");
}

#[test]
fn a_plug_and_a_systems_uri_must_mean_the_same() {
    for action in ["status", "monitor", "off"] {
        let server = Server::with_world(two_hosts());
        let call = Call::new(&server, action).set("systems_uri", "/redfish/v1/Systems/Node0");
        call.clone().set("plug", "Node1").run().fails(&["plug=Node1 does not fit", "/redfish/v1/Systems/Node0"]);
        call.clone().set("plug", "Node0,Node1").run().fails(&["plug=Node1"]);
        let output = call.set("plug", "System Node0").run();
        assert_eq!(output.stderr, "");
        assert_eq!(resets_of(&server, "Node1"), 0);
    }
    // The options that the fencer adds are no choice of the operator.
    let server = Server::with_world(two_hosts());
    let call = Call::new(&server, "off").set("systems_uri", "/redfish/v1/Systems/Node0");
    call.set("nodename", "n1").set("port", "n1").run().succeeds("Success: Powered OFF");
}

#[test]
fn all_pages_of_a_collection_are_read() {
    for key in ["Members@odata.nextLink", "@odata.nextLink"] {
        let mut world = two_hosts();
        world.fixed = vec![
            (
                "/redfish/v1/Systems".into(),
                json!({"Members": [{"@odata.id": "/redfish/v1/Systems/Node0"}], "Members@odata.count": 2,
                key: "/redfish/v1/Systems?$skip=1"})
                .to_string(),
            ),
            (
                "/redfish/v1/Systems?$skip=1".into(),
                json!({"Members": [{"@odata.id": "/redfish/v1/Systems/Node1"}], "Members@odata.count": 2}).to_string(),
            ),
        ];
        let server = Server::with_world(world);
        Call::new(&server, "off").run().fails(&["Node0", "Node1"]);
        Call::new(&server, "off").set("plug", "Node1").run().succeeds("Success: Powered OFF");
    }
}

#[test]
fn a_collection_that_lists_fewer_than_it_counts_decides_nothing_by_what_is_missing() {
    let mut world = two_hosts();
    let short = json!({"Members": [{"@odata.id": "/redfish/v1/Systems/Node0"}], "Members@odata.count": 2});
    world.fixed = vec![("/redfish/v1/Systems".into(), short.to_string())];
    let server = Server::with_world(world);
    let call = |action| Call::new(&server, action).set("action_timeout", "5");
    call("off").run().fails(&["counts 2 systems but lists 1", "systems_uri", "Node0"]);
    let missing = call("off").set("plug", "Node1").set("missing_as_off", "1");
    missing.run().fails(&["counts 2 systems but lists 1"]);
    let missing = call("off").set("systems_uri", "/redfish/v1/Systems/Node7").set("missing_as_off", "1");
    missing.run().fails(&["counts 2 systems but lists 1"]);
    assert_eq!(server.posted().len(), 0);
    call("off").set("plug", "Node0").run().succeeds("Success: Powered OFF");
}

#[test]
fn a_systems_uri_needs_no_discovery() {
    for uri in ["/redfish/v1/Systems/1", "redfish/v1/Systems/1", "/redfish/v1/Systems/1/"] {
        let server = Server::start();
        Call::new(&server, "status").set("systems_uri", uri).run().succeeds("Status: ON");
        assert_eq!(server.requests().len(), 1, "{:?}", server.requests());
        Call::new(&server, "off").set("systems-uri", uri).run().succeeds("Success: Powered OFF");
    }
    let server = Server::start();
    Call::new(&server, "status").set("systems_uri", "/redfish/v1/Systems/9").run().fails(&["404", "check systems_uri"]);
    Call::new(&server, "status")
        .set("systems_uri", "https://evil.example/redfish/v1/Systems/1")
        .run()
        .fails(&["another host"]);
    // `systems_uri` may name the collection if the collection has only one member.
    Call::new(&server, "status").set("systems_uri", "/redfish/v1/Systems").run().succeeds("Status: ON");
    let server = Server::with_world(two_hosts());
    Call::new(&server, "off").set("systems_uri", "/redfish/v1/Systems").run().fails(&["Node0", "Node1"]);
}

#[test]
fn another_machine_is_never_touched() {
    for action in ["status", "monitor", "off", "on", "reboot", "diag"] {
        let server = Server::with_world(two_hosts());
        let call = Call::new(&server, action).set("system_uuid", UUID0);
        let output = call.clone().set("systems_uri", "/redfish/v1/Systems/Node1").run();
        output.fails(&["another machine's", UUID0, UUID1]).within(0.0, 1.5);
        call.clone().set("plug", "Node1").run().fails(&["another machine's"]);
        assert!(server.posted().is_empty(), "{action}");
    }
    // The UUID alone may select the system.
    let server = Server::with_world(two_hosts());
    Call::new(&server, "off").set("system_uuid", &UUID1.to_uppercase()).run().succeeds("Success: Powered OFF");
    assert_eq!((resets_of(&server, "Node0"), resets_of(&server, "Node1")), (0, 1));
}

#[test]
fn a_system_without_a_uuid_proves_nothing() {
    for uuid in [json!(null), json!(""), json!("00000000-0000-0000-0000-000000000000"), json!(5)] {
        let mut system = System::new("1");
        system.uuid = uuid;
        let server = Server::with_world(World::of(vec![system]));
        let call = Call::new(&server, "off").set("system_uuid", UUID0);
        call.run().fails(&["system_uuid"]);
        assert!(server.posted().is_empty());
    }
}

#[test]
fn an_address_that_changes_hands_in_the_middle_is_noticed() {
    let other = json!({"PowerState": "Off", "UUID": UUID1, "Actions": {}}).to_string();
    let swapped = Fault::always("GET", "/Systems/Node0", Misbehaviour::Body(other.into_bytes())).after(1);
    let server = Server::with_world(World::of(vec![two_hosts().systems.remove(0)]).with(swapped));
    Call::new(&server, "off").set("system_uuid", UUID0).run().fails(&["another machine's"]);
}

#[test]
fn list_shows_what_can_be_fenced() {
    let server = Server::with_world(two_hosts());
    Call::new(&server, "list").run().succeeds("Node0,System Node0\nNode1,System Node1");
    server.world().systems[1].power = json!("Off");
    server.world().systems[0].power = json!("PoweringOn");
    Call::new(&server, "list-status").run().succeeds("Node0,System Node0,UNKNOWN\nNode1,System Node1,OFF");
    Call::new(&server, "list").set("separator", ";").run().succeeds("Node0;System Node0\nNode1;System Node1");
    let mut none = System::new("1");
    none.can_reset = false;
    let server = Server::with_world(World::of(vec![none]));
    Call::new(&server, "list").run().fails(&["no system that can be reset"]);
}

#[test]
fn a_dynamic_plug_is_monitored_as_a_whole() {
    let server = Server::with_world(two_hosts());
    Call::new(&server, "monitor").set("plug", "dynamic").run().succeeds("");
    Call::new(&server, "off").set("plug", "dynamic").run().fails(&["2 systems"]);
    server.world().systems[1].power = json!("Unknown");
    Call::new(&server, "monitor").set("plug", "dynamic").run().fails(&["Node1", "does not say"]);
}

#[test]
fn a_missing_system_is_off_only_if_that_is_asked_for_and_certain() {
    let server = Server::with_world(two_hosts());
    let gone = Call::new(&server, "off").set("plug", "Node7");
    gone.run().fails(&["no system here"]);
    gone.set("missing_as_off", "1").run().succeeds("Success: Already OFF");
    let status = Call::new(&server, "status").set("missing_as_off", "1");
    let output = status.clone().set("plug", "Node7").run();
    assert_eq!((output.code, output.stdout.as_str()), (2, "Status: OFF\n"));
    let output = status.clone().set("systems_uri", "/redfish/v1/Systems/Node7").run();
    assert_eq!((output.code, output.stdout.as_str()), (2, "Status: OFF\n"));
    status.clone().run().fails(&["Node0", "Node1"]);
    assert!(server.posted().is_empty());
    // A service that answers 404 to every request proves nothing.
    let server = Server::with_world(World::one_system().with(Fault::always(
        "GET",
        "",
        Misbehaviour::Status(404, String::new()),
    )));
    let call = Call::new(&server, "off").set("missing_as_off", "1").set("systems_uri", "/redfish/v1/Systems/1");
    call.run().fails(&["404"]);
    let unreadable = Fault::always("GET", "/Systems/Node1", Misbehaviour::Status(404, String::new()));
    let server = Server::with_world(two_hosts().with(unreadable));
    Call::new(&server, "off").set("missing_as_off", "1").set("plug", "Node7").run().fails(&["could not be read"]);
}

#[test]
fn what_cannot_be_reset_is_not_fenced_by_being_off() {
    let mut board = System::new("HGX_Baseboard_0");
    board.can_reset = false;
    board.power = json!("Off");
    let chassis = json!({"@odata.type": "#Chassis.v1_23_0.Chassis", "Id": "1", "Name": "Chassis", "PowerState": "Off",
        "Actions": {"#Chassis.Reset": {"target": "/redfish/v1/Chassis/1/Actions/Chassis.Reset"}}});
    at_once(
        [
            ("/redfish/v1/Systems/HGX_Baseboard_0", "off", "onoff"),
            ("/redfish/v1/Systems/HGX_Baseboard_0", "reboot", "onoff"),
            ("/redfish/v1/Systems/HGX_Baseboard_0", "reboot", "cycle"),
            ("/redfish/v1/Chassis/1", "off", "onoff"),
            ("/redfish/v1/Chassis/1", "reboot", "onoff"),
            ("/redfish/v1/Chassis/1", "reboot", "cycle"),
        ],
        |(uri, action, method)| {
            let mut world = World::of(vec![System::new("System_0"), board.clone()]);
            world.fixed = vec![("/redfish/v1/Chassis/1".into(), chassis.to_string())];
            let server = Server::with_world(world);
            let call = Call::new(&server, action).set("systems_uri", uri).set("method", method);
            call.run().fails(&[uri, "no Reset action"]).within(0.0, 20.0);
            assert_eq!((server.posted().len(), server.world().system().power.as_str()), (0, Some("On")));
        },
    );
    // The only system, or two of them, while a missing system counts as off.
    let mut other = board.clone();
    "other".clone_into(&mut other.id);
    for boards in [vec![board.clone()], vec![other, board]] {
        let server = Server::with_world(World::of(boards));
        Call::new(&server, "off").set("missing_as_off", "1").run().fails(&["Reset action"]).within(0.0, 20.0);
    }
}

#[test]
fn a_system_that_leaves_its_reset_action_out_while_it_is_off_is_fenced() {
    let bare = json!({"PowerState": "Off", "UUID": UUID0}).to_string();
    let bare = Fault::always("GET", "/Systems/1", Misbehaviour::Body(bare.into_bytes())).after(1);
    let server = Server::with_world(World::one_system().with(bare));
    Call::new(&server, "off").run().succeeds("Success: Powered OFF").within(1.0, 4.0);
    assert_eq!(resets_of(&server, "1"), 1);
}

#[test]
fn an_empty_list_of_systems_proves_nothing() {
    // A BMC that is starting shows an empty list, for up to two minutes.
    let empty = |count: Value| {
        let list = json!({"Members": [], "Members@odata.count": count});
        vec![("/redfish/v1/Systems".to_owned(), list.to_string())]
    };
    let unreadable = |id| Fault::always("GET", id, Misbehaviour::Status(503, String::new()));
    at_once(
        [
            (empty(json!(0)), None, "plug", "Node1"),
            (empty(json!(null)), None, "plug", "Node1"),
            (empty(json!(0)), None, "systems_uri", "/redfish/v1/Systems/Node7"),
            // A list that contains nothing but names is no proof, either.
            (Vec::new(), Some("/Systems/Node"), "systems_uri", "/redfish/v1/Systems/Other"),
        ],
        |(fixed, fault, name, value)| {
            let mut world = World { fixed, ..two_hosts() };
            world.faults.extend(fault.map(unreadable));
            world.faults.insert(0, Fault::always("GET", "/Systems/Node7", Misbehaviour::Status(404, String::new())));
            let server = Server::with_world(world);
            let call = Call::new(&server, "off").set("missing_as_off", "1").set(name, value);
            let output = call.set("action_timeout", "5").run();
            assert_eq!((output.code, server.posted().len()), (1, 0), "{name}={value}: {output:?}");
        },
    );
    // Once the BMC has started, the system is fenced in the same run.
    let start =
        Fault::once("GET", "/redfish/v1/Systems", Misbehaviour::Body(empty(json!(0))[0].1.clone().into_bytes()));
    let server = Server::with_world(two_hosts().with(start.times(2)));
    Call::new(&server, "off").set("missing_as_off", "1").set("plug", "Node1").run().succeeds("Success: Powered OFF");
    assert_eq!((resets_of(&server, "Node0"), resets_of(&server, "Node1")), (0, 1));
}

#[test]
fn a_missing_reset_target_is_the_usual_one_and_another_hosts_is_refused() {
    let mut system = System::new("1");
    system.names_target = false;
    let server = Server::with_world(World::of(vec![system]));
    Call::new(&server, "off").run().succeeds("Success: Powered OFF");
    assert_eq!(resets_of(&server, "1"), 1);
    let evil =
        json!({"PowerState": "On", "Actions": {"#ComputerSystem.Reset": {"target": "https://evil.example/reset"}}});
    let server = Server::with_world(World::one_system().with(Fault::always(
        "GET",
        "/Systems/1",
        Misbehaviour::Body(evil.to_string().into_bytes()),
    )));
    Call::new(&server, "off").run().fails(&["another host"]).within(0.0, 2.0);
    // An absolute URI, a relative one, and one with a trailing slash all are this system's action.
    for target in ["https://127.0.0.1:{port}{target}", "1/Actions/ComputerSystem.Reset", "{target}/"] {
        let server = Server::start();
        let usual = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset";
        let target = target.replace("{port}", &server.port.to_string()).replace("{target}", usual);
        let system = json!({"PowerState": "On", "Actions": {"#ComputerSystem.Reset": {"target": target}}});
        let first = Fault::once("GET", "/Systems/1", Misbehaviour::Body(system.to_string().into_bytes()));
        server.world().faults.push(first);
        Call::new(&server, "off").run().succeeds("Success: Powered OFF");
        let posts: Vec<String> = server.requests().into_iter().filter(|one| one.starts_with("POST")).collect();
        assert_eq!(posts, [format!("POST {usual}{}", if target.ends_with('/') { "/" } else { "" })]);
    }
}

#[test]
fn a_root_elsewhere_is_found_by_redfish_uri() {
    let mut world = World::one_system();
    world.fixed =
        vec![("/api/redfish/v1".into(), json!({"Systems": {"@odata.id": "/redfish/v1/Systems"}}).to_string())];
    let server = Server::with_world(world);
    for uri in ["/api/redfish/v1", "api/redfish/v1", "/api/redfish/v1/"] {
        Call::new(&server, "status").set("redfish_uri", uri).run().succeeds("Status: ON");
    }
    Call::new(&server, "status").set("redfish_uri", "/nowhere").run().fails(&["404", "redfish_uri"]);
}
