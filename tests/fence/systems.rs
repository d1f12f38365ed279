//! The right system: several behind one BMC, a UUID that proves it, and the resources that real BMCs have.

#![allow(clippy::unwrap_used, reason = "what fails here ends the test")]

use std::path::{Path, PathBuf};

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
    // As Pacemaker sends it with pcmk_host_map=node1:Node0.
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
    // Also where there is only one: a name that was given must fit.
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
    // What the fencer adds is no choice of an operator.
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
    // The collection instead of a member: good enough where it has one.
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
    // The UUID may also do the choosing.
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
    // A service that answers 404 to everything is no proof of anything.
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
            call.run().fails(&[uri, "no Reset action"]).within(0.0, 12.0);
            assert_eq!((server.posted().len(), server.world().system().power.as_str()), (0, Some("On")));
        },
    );
    // The only one there is, and two of them, where what is missing counts as off.
    let mut other = board.clone();
    "other".clone_into(&mut other.id);
    for boards in [vec![board.clone()], vec![other, board]] {
        let server = Server::with_world(World::of(boards));
        Call::new(&server, "off").set("missing_as_off", "1").run().fails(&["Reset action"]).within(0.0, 12.0);
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
    // As a BMC that is starting, for up to two minutes.
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
            // A list that has nothing to show but names is no better.
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
    // Once it has started it is fenced, in the same run.
    let start =
        Fault::once("GET", "/redfish/v1/Systems", Misbehaviour::Body(empty(json!(0))[0].1.clone().into_bytes()));
    let server = Server::with_world(two_hosts().with(start.times(2)));
    Call::new(&server, "off").set("missing_as_off", "1").set("plug", "Node1").run().succeeds("Success: Powered OFF");
    assert_eq!((resets_of(&server, "Node0"), resets_of(&server, "Node1")), (0, 1));
}

#[test]
fn a_target_that_is_missing_or_elsewhere() {
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
    // In full, relative, and with a slash at the end: all of that is this system's action.
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

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/redfish")
}

/// The resources of a captured BMC, by URI.
fn capture(name: &str) -> Vec<(String, String)> {
    let root = fixtures().join(name);
    let mut found = Vec::new();
    let mut pending = vec![root.clone()];
    while let Some(directory) = pending.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else if path.file_name().is_some_and(|name| name == "index.json") {
                let uri = path.parent().unwrap().strip_prefix(&root).unwrap().to_str().unwrap();
                found.push((format!("/{uri}"), std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(found.len() >= 4, "{name} is not there");
    found
}

/// A captured BMC, its systems' code for `status`, what `list` says, where `off` posts (without a selector), the allowed types.
struct Captured {
    name: &'static str,
    status: i32,
    list: &'static str,
    target: Option<&'static str>,
    plug: Option<&'static str>,
}

const CAPTURED: &[Captured] = &[
    Captured {
        name: "dell-idrac9-r750",
        status: 0,
        list: "System.Embedded.1,System",
        target: Some("/redfish/v1/Systems/System.Embedded.1/Actions/ComputerSystem.Reset"),
        plug: None,
    },
    Captured {
        name: "dmtf-public-rackmount1",
        status: 0,
        list: "437XR1138R2,WebFrontEnd483",
        target: Some("/redfish/v1/Systems/437XR1138R2/Actions/ComputerSystem.Reset"),
        plug: None,
    },
    Captured {
        name: "gigabyte-h262-ami-megarac",
        status: 0,
        list: "Self,System",
        target: Some("/redfish/v1/Systems/Self/Actions/ComputerSystem.Reset"),
        plug: None,
    },
    Captured {
        name: "hpe-cray-ex235n-2nodes",
        status: 1,
        list: "Node0,Node0\nNode1,Node1",
        target: None,
        plug: Some("Node0"),
    },
    Captured {
        name: "hpe-ilo5-dl385gen10plusv2",
        status: 0,
        list: "1,Computer System",
        target: Some("/redfish/v1/Systems/1/Actions/ComputerSystem.Reset"),
        plug: None,
    },
    Captured {
        name: "lenovo-xcc-sr670v2",
        status: 0,
        list: "1,ComputerSystem",
        target: Some("/redfish/v1/Systems/1/Actions/ComputerSystem.Reset"),
        plug: None,
    },
    Captured {
        name: "nvidia-bluefield3-dpu",
        status: 0,
        list: "Bluefield,Bluefield",
        target: Some("/redfish/v1/Systems/Bluefield/Actions/ComputerSystem.Reset"),
        plug: None,
    },
    Captured {
        name: "nvidia-gb200-nvl-2systems",
        status: 0,
        list: "System_0,System_0",
        target: Some("/redfish/v1/Systems/System_0/Actions/ComputerSystem.Reset"),
        plug: None,
    },
    Captured {
        name: "openbmc-stock-off",
        status: 2,
        list: "system,system",
        target: Some("/redfish/v1/Systems/system/Actions/ComputerSystem.Reset"),
        plug: None,
    },
    Captured {
        name: "supermicro-x10-thin",
        status: 0,
        list: "1,System",
        target: Some("/redfish/v1/Systems/1/Actions/ComputerSystem.Reset"),
        plug: None,
    },
    Captured {
        name: "supermicro-x13-sys821ge",
        status: 0,
        list: "1,System",
        target: Some("/redfish/v1/Systems/1/Actions/ComputerSystem.Reset"),
        plug: None,
    },
];

/// The first reset that `off` posts to a captured BMC, whose power never changes.
fn first_reset(capture_name: &str, plug: Option<&str>) -> Option<(String, Value)> {
    let mut world = World::of(Vec::new());
    world.fixed = capture(capture_name);
    let server = Server::with_world(world.with(Fault::always("POST", "", Misbehaviour::Ignored)));
    let mut call = Call::new(&server, "off").set("action_timeout", "3");
    if let Some(plug) = plug {
        call = call.set("plug", plug);
    }
    call.run();
    let world = server.world();
    let post = world.log.iter().find(|request| request.method == "POST")?;
    Some((post.path.clone(), serde_json::from_slice(&post.body).unwrap()))
}

#[test]
fn captured_bmcs_are_understood() {
    std::thread::scope(|scope| {
        for captured in CAPTURED {
            scope.spawn(move || {
                let mut world = World::of(Vec::new());
                world.fixed = capture(captured.name);
                let server = Server::with_world(world);
                let output = Call::new(&server, "status").run();
                assert_eq!(output.code, captured.status, "{}: {output:?}", captured.name);
                Call::new(&server, "list").run().succeeds(captured.list);
                let monitor = Call::new(&server, "monitor").run();
                assert_eq!(monitor.code, i32::from(captured.status == 1), "{}: {monitor:?}", captured.name);
                let off = first_reset(captured.name, None);
                let expected = captured.target.map(|target| (target.to_owned(), json!({"ResetType": "ForceOff"})));
                assert_eq!(off, expected, "{}", captured.name);
                if let Some(plug) = captured.plug {
                    let (path, _) = first_reset(captured.name, Some(plug)).unwrap();
                    assert_eq!(path, format!("/redfish/v1/Systems/{plug}/Actions/ComputerSystem.Reset"));
                }
            });
        }
    });
}

#[test]
fn every_capture_is_in_the_table() {
    let mut there: Vec<String> = std::fs::read_dir(fixtures())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with('_'))
        .collect();
    there.sort();
    let known: Vec<&str> = CAPTURED.iter().map(|captured| captured.name).collect();
    assert_eq!(there, known);
}

#[test]
fn captured_complaints_are_understood() {
    for (file, status, words) in [
        ("idrac-401-bad-credentials.json", 401, "sessions are used up"),
        ("lenovo-xcc-access-denied.json", 403, "(Base"),
        ("sushy-error.json", 403, "IndicatorLED"),
        ("sushy-error-single-ext-info.json", 403, "GeneralError"),
        ("supermicro-x10-401.json", 401, "unable to log in"),
    ] {
        let body = std::fs::read_to_string(fixtures().join("_errors").join(file)).unwrap();
        let server =
            Server::with_world(World::one_system().with(Fault::always("GET", "", Misbehaviour::Status(status, body))));
        let output = Call::new(&server, "status").run();
        assert!(output.code == 1 && output.sentence().len() < 600, "{file}: {output:?}");
        assert!(output.stderr.contains(words), "{file}: {}", output.stderr);
    }
    // Already in that state, or not just now: the power state decides.
    for (file, status) in [
        ("idrac9-409-already-on.json", 409),
        ("ilo4-400-power-is-off.json", 400),
        ("idrac9-503-session-limit.json", 503),
    ] {
        let body = std::fs::read_to_string(fixtures().join("_errors").join(file)).unwrap();
        let server = Server::with_world(World::one_system().with(Fault::once(
            "POST",
            "Reset",
            Misbehaviour::Status(status, body),
        )));
        Call::new(&server, "off").run().succeeds("Success: Powered OFF");
    }
    // Not ready: it is asked again, whatever was asked.
    let body = std::fs::read_to_string(fixtures().join("_errors/idrac-400-not-ready.json")).unwrap();
    at_once([("GET", "/Systems"), ("GET", "/Systems/1"), ("POST", "Reset")], |(method, path)| {
        let not_ready = Fault::always(method, path, Misbehaviour::Status(400, body.clone())).times(4);
        let server = Server::with_world(World::one_system().with(not_ready));
        Call::new(&server, "off").run().succeeds("Success: Powered OFF").within(4.0, 14.0);
    });
    // A success that carries an "error" object.
    let body = std::fs::read_to_string(fixtures().join("_errors/ilo4-200-reset-accepted.json")).unwrap();
    let server =
        Server::with_world(World::one_system().with(Fault::always("POST", "Reset", Misbehaviour::Status(200, body))));
    server.world().systems[0].power = json!("On");
    Call::new(&server, "off").set("action_timeout", "3").run().fails(&["accepted the reset once"]);
}
