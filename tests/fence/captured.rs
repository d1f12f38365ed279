//! Recorded answers of real BMCs, and the agent's reaction to them.

#![allow(clippy::unwrap_used, reason = "what fails here ends the test")]

use std::path::{Path, PathBuf};

use crate::bmc::agent::Call;
use crate::bmc::{Fault, Misbehaviour, Server, World, at_once};
use serde_json::{Value, json};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/fixtures/redfish")
}

/// Returns the resources of a captured BMC as pairs of URI and JSON body.
pub(crate) fn capture(name: &str) -> Vec<(String, String)> {
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

/// A captured BMC with what the fence agent makes of it: the exit code of `status`, the output of `list`, and the URI
/// to which `off` posts. `off` posts nothing if the agent needs a selector (`plug`).
pub(crate) struct Captured {
    pub(crate) name: &'static str,
    status: i32,
    list: &'static str,
    target: Option<&'static str>,
    pub(crate) plug: Option<&'static str>,
}

pub(crate) const CAPTURED: &[Captured] = &[
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

/// Returns the URI and the body of the first reset that `off` posts to a captured BMC. Returns `None` if it posts none. The
/// BMC never changes its power.
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
    // The system is already in that state, or cannot change now: the power state decides.
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
    // The BMC is not ready, so the agent repeats any request.
    let body = std::fs::read_to_string(fixtures().join("_errors/idrac-400-not-ready.json")).unwrap();
    at_once([("GET", "/Systems"), ("GET", "/Systems/1"), ("POST", "Reset")], |(method, path)| {
        let not_ready = Fault::always(method, path, Misbehaviour::Status(400, body.clone())).times(4);
        let server = Server::with_world(World::one_system().with(not_ready));
        Call::new(&server, "off").run().succeeds("Success: Powered OFF").within(4.0, 14.0);
    });
    // This is a success that contains an "error" object.
    let body = std::fs::read_to_string(fixtures().join("_errors/ilo4-200-reset-accepted.json")).unwrap();
    let server =
        Server::with_world(World::one_system().with(Fault::always("POST", "Reset", Misbehaviour::Status(200, body))));
    server.world().systems[0].power = json!("On");
    Call::new(&server, "off").set("action_timeout", "3").run().fails(&["accepted the reset once"]);
}
