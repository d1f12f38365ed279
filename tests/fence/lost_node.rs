//! A lost node that is to be replaced: the only proof that it is off is its fencer, which runs this agent.

#![allow(clippy::unwrap_used, reason = "what fails here ends the test")]

use std::fs;
use std::time::Duration;

use serde_json::json;
use tandem::adapters::command::Programs;
use tandem::adapters::pacemaker::by_hand;
use tandem::fence::examine;

use crate::bmc::agent::{Call, program};
use crate::bmc::{Misbehaviour, Server, System, World, at_once};
use crate::executable::script;
use crate::power::{put_into_chassis, resets, world};

const LIMIT: Duration = Duration::from_secs(30);

/// Fences node2 as `tandem member replace node2` does, with a fake `stonith_admin` that calls the fence agent for one device. Returns
/// the reason if the fencing fails.
fn fence(server: &Server) -> Result<(), String> {
    let dir = tempfile::tempdir().unwrap();
    let (tool, options) = (dir.path().join("stonith_admin"), dir.path().join("options"));
    fs::write(&options, Call::new(server, "off").set("action_timeout", "12").input()).unwrap();
    let asked = "test \"$*\" = '--fence node2 --timeout 30' || exit 64";
    script(&tool, &format!("{asked}\nexec {} < {}", program().display(), options.display()));
    let programs = Programs::default().with_fakes(dir.path().to_owned());
    by_hand::fence(&programs, "node2", LIMIT).map_err(|error| error.to_string())
}

fn off(change: impl FnOnce(&mut System)) -> World {
    world(|system| {
        system.power = json!("Off");
        change(system);
    })
}

#[test]
fn a_bmc_that_says_off_and_contradicts_itself_proves_no_machine_off() {
    let conflict = || resets(Misbehaviour::Status(409, String::new()));
    let forbidden = || resets(Misbehaviour::Status(403, String::new()));
    let rows: [(World, &str); 4] = [
        (off(|_| {}).with(conflict()), "its chassis /redfish/v1/Chassis/1 says On"),
        (off(|_| {}).with(forbidden()), "its chassis /redfish/v1/Chassis/1 says On"),
        (off(|system| system.can_reset = false), "no Reset action"),
        (off(|_| {}).with(resets(Misbehaviour::Status(503, String::new()))), "Timed out waiting to power OFF"),
    ];
    at_once(rows, |(world, why)| {
        let server = Server::with_world(world);
        put_into_chassis(&server, "On", &["1"]);
        let may_run = fence(&server).unwrap_err();
        assert!(may_run.starts_with("'stonith_admin --fence node2 --timeout 30' failed: "), "{may_run}");
        assert!(may_run.contains(why), "{may_run}");
    });
    let server = Server::with_world(off(|_| {}));
    put_into_chassis(&server, "On", &["1"]);
    assert_eq!(fence(&server), Ok(()), "a reset that is accepted is a proof");
}

/// Asserts that the agent's `status` reports OFF. If `is_contradicted` is true, the agent must also log that the chassis reports
/// On.
fn is_off(server: &Server, is_contradicted: bool) {
    let output = Call::new(server, "status").set("verbose", "1").run();
    assert_eq!((output.code, output.stdout.trim_end()), (2, "Status: OFF"), "{output:?}");
    let warning =
        "the system says Off, but its chassis /redfish/v1/Chassis/1 says On: no proof that the machine is off";
    assert_eq!(output.stderr.contains(warning), is_contradicted, "{output:?}");
}

#[test]
fn a_status_and_a_monitor_say_what_contradicts_an_off() {
    let server = Server::with_world(off(|_| {}));
    is_off(&server, false);
    put_into_chassis(&server, "Off", &["1"]);
    is_off(&server, false);
    put_into_chassis(&server, "On", &["1"]);
    is_off(&server, true);
    let answer = examine::device(&Call::new(&server, "monitor").without("action").input(), Some("node2"), None);
    assert_eq!((answer.note.failure.as_deref(), answer.note.power.as_deref()), (None, Some("Off")));
    assert_eq!(answer.note.chassis_on.as_deref(), Some("/redfish/v1/Chassis/1"));
    server.world().system().power = json!("On");
    let answer = examine::device(&Call::new(&server, "monitor").without("action").input(), Some("node2"), None);
    assert_eq!((answer.note.power.as_deref(), answer.note.chassis_on), (Some("On"), None));
    let board = Server::with_world(off(|system| system.can_reset = false));
    Call::new(&board, "status").run().fails(&["no Reset action"]);
}
