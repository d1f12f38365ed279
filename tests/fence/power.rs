//! The truth about power: the evidence for off, on and fenced, against a BMC that behaves and one that does not.

#![allow(clippy::unwrap_used, reason = "what fails here ends the test")]

use std::time::Duration;

use crate::bmc::agent::Call;
use crate::bmc::model::{TASK, error_body};
use crate::bmc::system::Knows;
use crate::bmc::{Fault, Misbehaviour, Server, System, World, at_once};
use serde_json::json;

pub(crate) const MS: fn(u64) -> Duration = Duration::from_millis;

pub(crate) fn world(change: impl FnOnce(&mut System)) -> World {
    let mut system = System::new("1");
    change(&mut system);
    World::of(vec![system])
}

pub(crate) fn resets(fault: Misbehaviour) -> Fault {
    Fault::always("POST", "ComputerSystem.Reset", fault)
}

pub(crate) fn readings(server: &Server) -> usize {
    server.requests().iter().filter(|request| *request == "GET /redfish/v1/Systems/1").count()
}

#[test]
fn off_is_posted_once_and_proven_by_two_readings() {
    let server = Server::start();
    Call::new(&server, "off").run().succeeds("Success: Powered OFF").within(1.0, 4.0);
    assert_eq!(server.posted(), ["ForceOff"]);
    let requests = server.requests();
    let posted = requests.iter().position(|request| request.starts_with("POST")).unwrap();
    assert!(requests[posted..].iter().filter(|request| request.starts_with("GET")).count() >= 2, "{requests:?}");
    assert_eq!(server.handshakes(), 1, "one connection serves the whole action");
}

#[test]
fn a_host_that_is_off_gets_one_reset_all_the_same() {
    let off = |system: &mut System| system.power = json!("Off");
    // The reset is accepted: the power may end as late as when a button is held.
    let server = Server::with_world(world(off));
    Call::new(&server, "off").run().succeeds("Success: Already OFF").within(5.0, 7.0);
    assert_eq!((server.posted(), readings(&server)), (vec!["ForceOff".to_owned()], 3));
    // The reset is refused because the system is off, as by most BMCs, or for another reason.
    let captured = |file: &str| {
        let path = format!("{}/tests/data/fixtures/redfish/_errors/{file}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).unwrap()
    };
    at_once(
        [
            (400, captured("ilo4-400-power-is-off.json"), 1),
            (409, captured("idrac9-409-already-on.json"), 1),
            (409, String::new(), 3),
            (403, error_body("Base.1.8.InsufficientPrivilege", "no"), 1),
            (405, String::new(), 1),
            (400, String::new(), 3),
        ],
        |(status, body, posts)| {
            for action in ["off", "reboot"] {
                let server = Server::with_world(world(off));
                server.world().system().refuses_when_off = Some((status, body.clone()));
                // The chassis does not contradict the system if it is off, or if it is on and contains other systems as
                // well.
                let power = if action == "off" { "Off" } else { "On" };
                put_into_chassis(&server, power, &["1", "2"]);
                let output = Call::new(&server, action).set("action_timeout", "12").run();
                assert_eq!(output.code, 0, "{status} {body}: {output:?}");
                if action == "off" {
                    output.succeeds("Success: Already OFF").within(1.0, 4.0 + 2.0 * f64::from(posts - 1));
                    assert_eq!(server.posted(), vec!["ForceOff"; usize::try_from(posts).unwrap()]);
                }
            }
        },
    );
}

pub(crate) fn put_into_chassis(server: &Server, power: &str, systems: &[&str]) {
    let systems: Vec<_> = systems.iter().map(|id| json!({"@odata.id": format!("/redfish/v1/Systems/{id}")})).collect();
    let chassis = json!({"Id": "1", "PowerState": power, "Links": {"ComputerSystems": systems}});
    let mut world = server.world();
    world.system().in_chassis = true;
    world.fixed = vec![("/redfish/v1/Chassis/1".into(), chassis.to_string())];
}

#[test]
fn a_bmc_that_says_off_for_what_it_does_not_know_does_not_fence_by_it() {
    let unknowing = |knows| {
        world(|system| {
            system.knows = knows;
            system.when_off = vec![(MS(4000), "Off")];
        })
    };
    let rows = [("off", "onoff", Knows::AfterReset), ("off", "onoff", Knows::Never), ("reboot", "cycle", Knows::Never)];
    at_once(rows, |(action, method, knows)| {
        let mut world = unknowing(knows);
        // The host stays off, so that the Off can be observed.
        world.system().when_on = Vec::new();
        let server = Server::with_world(world);
        let output = Call::new(&server, action).set("method", method).set("action_timeout", "12").run();
        assert_eq!(output.code, 0, "{output:?}");
        output.within(4.5, 18.0);
        assert_eq!(server.world().system().power, "Off", "{action} {method} {knows:?}");
        assert_eq!(server.posted()[0], "ForceOff");
    });
    // A BMC that is starting postpones the reset, which counts only once it is accepted.
    let busy = Fault::always("POST", "Reset", Misbehaviour::Status(503, String::new()));
    let server = Server::with_world(unknowing(Knows::Never).with(busy.clone().times(2)));
    Call::new(&server, "off").run().succeeds("Success: Already OFF").within(5.5, 12.0);
    let server = Server::with_world(unknowing(Knows::Never).with(busy));
    Call::new(&server, "off").set("action_timeout", "6").run().fails(&["Timed out waiting to power OFF", "503"]);
    // Without permission to reset the system, its Off does not count against its own chassis.
    let refusal = Misbehaviour::Status(403, error_body("Base.1.8.InsufficientPrivilege", "no"));
    let server = Server::with_world(unknowing(Knows::Never).with(resets(refusal)));
    put_into_chassis(&server, "On", &["1"]);
    let output = Call::new(&server, "off").run();
    output.fails(&["Operator role", "chassis /redfish/v1/Chassis/1 says On"]).within(1.0, 4.0);
    // This also holds if the chassis answers only the second query.
    let late = Fault::once("GET", "/Chassis/1", Misbehaviour::Status(503, String::new()));
    server.world().faults.push(late);
    Call::new(&server, "off").run().fails(&["chassis /redfish/v1/Chassis/1 says On"]);
}

#[test]
fn no_refusal_is_a_proof_beside_a_chassis_that_is_on() {
    let captured = |file: &str| {
        let path = format!("{}/tests/data/fixtures/redfish/_errors/{file}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).unwrap()
    };
    at_once(
        [
            (409, String::new()),
            (409, captured("idrac9-409-already-on.json")),
            (400, captured("ilo4-400-power-is-off.json")),
            (400, String::new()),
            (501, String::new()),
        ],
        |(status, body)| {
            for (action, method) in [("off", "onoff"), ("reboot", "onoff"), ("reboot", "cycle")] {
                let refused = resets(Misbehaviour::Status(status, body.clone()));
                let server = Server::with_world(world(|system| system.power = json!("Off")).with(refused));
                put_into_chassis(&server, "On", &["1"]);
                let output = Call::new(&server, action).set("method", method).set("action_timeout", "15").run();
                output.fails(&["the system says Off, but its chassis /redfish/v1/Chassis/1 says On"]);
                assert!(!server.posted().iter().any(|posted| posted == "On"), "{status}: {:?}", server.posted());
            }
        },
    );
    // A chassis that does not answer does not contradict a known refusal.
    let refused = resets(Misbehaviour::Status(409, captured("idrac9-409-already-on.json")));
    let silent = Fault::always("GET", "/Chassis/1", Misbehaviour::Status(503, String::new()));
    let server = Server::with_world(world(|system| system.power = json!("Off")).with(refused).with(silent));
    put_into_chassis(&server, "On", &["1"]);
    Call::new(&server, "off").run().succeeds("Success: Already OFF").within(2.0, 6.0);
}

#[test]
fn one_reading_of_off_is_not_believed() {
    // A BMC that is starting itself reports Off for half a second, while the host runs.
    let glitch = Fault::once("GET", "/Systems/1", Misbehaviour::Body(br#"{"PowerState":"Off"}"#.to_vec()));
    let server = Server::with_world(World::one_system().with(glitch));
    Call::new(&server, "off").run().succeeds("Success: Powered OFF");
    assert_eq!(server.posted(), ["ForceOff"]);
}

#[test]
fn a_system_that_comes_back_is_powered_off_again_and_the_failure_says_so() {
    let server = Server::with_world(world(|system| system.when_off = vec![(MS(0), "Off"), (MS(600), "On")]));
    let output = Call::new(&server, "off").set("action_timeout", "16").run();
    output.fails(&["Timed out waiting to power OFF", "came back by itself"]).within(10.0, 22.0);
    assert!(server.posted().len() >= 2, "{:?}", server.posted());
}

#[test]
fn a_slow_system_is_waited_for() {
    let server = Server::with_world(world(|system| {
        system.when_off = vec![(MS(300), "PoweringOff"), (MS(3500), "Off")];
    }));
    Call::new(&server, "off").run().succeeds("Success: Powered OFF").within(4.0, 8.0);
    assert_eq!(server.posted(), ["ForceOff"]);
}

#[test]
fn a_shutdown_that_somebody_else_began_is_not_waited_for() {
    let server = Server::with_world(world(|system| system.power = json!("PoweringOff")));
    Call::new(&server, "off").run().succeeds("Success: Powered OFF").within(0.5, 4.0);
    assert_eq!(server.posted(), ["ForceOff"]);
}

#[test]
fn powering_off_for_ever_is_a_failure() {
    let server = Server::with_world(world(|system| system.when_off = vec![(MS(0), "PoweringOff")]));
    let output = Call::new(&server, "off").set("action_timeout", "5").run();
    output.fails(&["Timed out waiting to power OFF", "PoweringOff"]).within(3.0, 6.0);
}

#[test]
fn a_reset_that_is_accepted_and_ignored_is_a_failure() {
    let server = Server::with_world(World::one_system().with(resets(Misbehaviour::Ignored)));
    let output = Call::new(&server, "off").set("power_timeout", "3").run();
    output.fails(&["Timed out waiting to power OFF", "accepted the reset once", "On"]).within(3.0, 5.0);
}

#[test]
fn a_reset_that_is_ignored_at_first_is_sent_again() {
    let fault = Fault::once("POST", "Reset", Misbehaviour::Ignored);
    let server = Server::with_world(World::one_system().with(fault));
    Call::new(&server, "off").run().succeeds("Success: Powered OFF").within(12.0, 20.0);
    assert_eq!(server.posted(), ["ForceOff", "ForceOff"]);
}

#[test]
fn a_slow_system_is_waited_for_although_the_second_reset_is_refused() {
    at_once([501, 403, 404, 400], |status| {
        let refused = Fault::always("POST", "Reset", Misbehaviour::Status(status, String::new())).after(1);
        let server = Server::with_world(world(|system| system.when_off = vec![(MS(15_000), "Off")]).with(refused));
        let output = Call::new(&server, "off").run();
        output.succeeds("Success: Powered OFF").within(15.0, 24.0);
        let posts = server.requests().iter().filter(|request| request.starts_with("POST")).count();
        assert_eq!(
            posts,
            if status == 400 { 4 } else { 2 },
            "{status}: a refusal without a reason is tried three times"
        );
    });
    let refused = Fault::always("POST", "Reset", Misbehaviour::Status(501, String::new())).after(1);
    let server = Server::with_world(world(|system| system.when_off = Vec::new()).with(refused));
    let output = Call::new(&server, "off").set("action_timeout", "16").run();
    output.fails(&["Timed out waiting to power OFF", "accepted the reset once", "501"]).within(14.0, 20.0);
}

#[test]
fn no_power_state_is_guessed_to_be_off() {
    at_once([json!("off"), json!("OFF"), json!(""), json!("Unknown"), json!(null), json!(0)], |state| {
        let server = Server::with_world(world(|system| {
            system.power = state.clone();
            system.when_off = Vec::new();
        }));
        let output = Call::new(&server, "off").set("action_timeout", "4").run();
        output.fails(&["Timed out waiting to power OFF"]);
        assert_eq!(server.posted().first().map(String::as_str), Some("ForceOff"), "{state}: it is fenced all the same");
    });
}

#[test]
fn a_busy_bmc_is_asked_again() {
    let busy = |status| Fault::always("POST", "Reset", Misbehaviour::Status(status, String::new())).times(2);
    at_once([500, 503, 429], |status| {
        let server = Server::with_world(World::one_system().with(busy(status)));
        Call::new(&server, "off").run().succeeds("Success: Powered OFF").within(2.0, 7.0);
    });
}

/// Returns the URI and the body of the BMC's task, which ended as `state`.
fn task(state: &str) -> (String, String) {
    let message = json!([{"MessageId": "Base.1.8.InternalError", "Message": "The power controller is asleep."}]);
    (TASK.into(), json!({"@odata.id": TASK, "TaskState": state, "Messages": message}).to_string())
}

fn accepted_as_task() -> Misbehaviour {
    Misbehaviour::StatusWith(202, vec![("Location", TASK.to_owned())], String::new())
}

#[test]
fn a_reset_that_becomes_a_task_is_followed() {
    let slowly = || world(|system| system.when_off = vec![(MS(1500), "Off")]);
    // The task works, and takes its time; the same holds if the task cannot be found.
    for fixed in [vec![task("Running")], Vec::new()] {
        let server = Server::with_world(World { fixed, ..slowly() }.with(resets(Misbehaviour::AsTask)));
        Call::new(&server, "off").run().succeeds("Success: Powered OFF").within(2.5, 6.0);
        assert_eq!(server.posted(), ["ForceOff"]);
    }
    // The task fails once: the agent repeats the reset soon, and does not wait for the limit of a working one.
    let failing = || World { fixed: vec![task("Exception")], ..World::one_system() };
    let server = Server::with_world(failing().with(Fault::once("POST", "Reset", accepted_as_task())));
    Call::new(&server, "off").run().succeeds("Success: Powered OFF").within(2.0, 8.0);
    // The task fails repeatedly.
    let server = Server::with_world(failing().with(resets(accepted_as_task())));
    Call::new(&server, "off").run().fails(&["controller is asleep"]).within(0.0, 12.0);
    // The task's monitor ends with the answer that the reset would have had.
    let refused = Fault::always("GET", TASK, Misbehaviour::Status(403, String::new()));
    let server = Server::with_world(World::one_system().with(resets(accepted_as_task())).with(refused));
    Call::new(&server, "off").run().fails(&["403 Forbidden"]).within(0.0, 4.0);
}

#[test]
fn an_answer_that_is_put_off_is_asked_for_again() {
    let later = Fault::once("GET", "/Systems/1", Misbehaviour::Status(202, "{}".to_owned()));
    let server = Server::with_world(World::one_system().with(later));
    Call::new(&server, "status").run().succeeds("Status: ON");
}

#[test]
fn a_service_that_wants_to_know_for_which_state_is_told() {
    at_once([412, 428], |status| {
        let server = Server::with_world(World { wants_etag: Some(status), ..World::one_system() });
        Call::new(&server, "reboot").run().succeeds("Success: Rebooted");
        assert_eq!(server.posted(), ["ForceOff", "ForceOff", "On", "On"], "each is sent without and with the state");
    });
    let world = World { wants_etag: Some(412), weak_etags: true, ..World::one_system() };
    let server = Server::with_world(world);
    Call::new(&server, "off").run().succeeds("Success: Powered OFF").within(1.0, 3.0);
    assert_eq!(server.posted(), ["ForceOff"; 3], "without a state, with the one that was seen, and with any");
    // The header's name may be malformed and the body's correct, or neither may be correct.
    at_once(
        [(["\"\"7\"\"", "\"7\"", "\"7\""], 3), (["W/\"7\"", "W/\"7\"", "7"], 5), (["8", "7", "\"7\""], 6)],
        |(etags, posts)| {
            let world = World { wants_etag: Some(412), etags: Some(etags), ..World::one_system() };
            let server = Server::with_world(world);
            Call::new(&server, "off").run().succeeds("Success: Powered OFF").within(1.0, 3.0);
            assert_eq!(server.posted(), vec!["ForceOff"; posts], "{etags:?}");
        },
    );
    // A BMC that rejects the header never receives it.
    let server = Server::start();
    Call::new(&server, "off").run().succeeds("Success: Powered OFF");
    assert!(server.world().log.iter().all(|request| request.header("If-Match").is_none()));
}

#[test]
fn retry_after_is_honoured() {
    let headers = vec![("Retry-After", "3".to_owned())];
    let fault = Fault::once("POST", "Reset", Misbehaviour::StatusWith(503, headers, String::new()));
    let server = Server::with_world(World::one_system().with(fault));
    Call::new(&server, "off").run().succeeds("Success: Powered OFF").within(4.0, 7.0);
}

#[test]
fn not_in_this_state_is_checked_against_the_state() {
    // The system is already off when the reset arrives: the BMC reports a conflict, and the power state is the truth.
    let ilo = error_body("iLO.2.14.InvalidOperationForSystemState", "The operation was not successful.");
    for (status, body) in [(400, ilo.as_str()), (409, ilo.as_str())] {
        let server = Server::with_world(World::one_system().with(Fault::once(
            "POST",
            "Reset",
            Misbehaviour::Status(status, body.to_owned()),
        )));
        server.world().system().power = json!("PoweringOff");
        let waiting = std::thread::scope(|scope| {
            let call = scope.spawn(|| Call::new(&server, "off").run());
            tandem::os::clock::sleep(MS(500));
            server.world().system().power = json!("Off");
            call.join().unwrap()
        });
        waiting.succeeds("Success: Already OFF");
    }
    // The reset comes too soon after the last power action. The system is on, so the agent repeats the reset.
    let server =
        Server::with_world(World::one_system().with(Fault::once("POST", "Reset", Misbehaviour::Status(400, ilo))));
    Call::new(&server, "off").run().succeeds("Success: Powered OFF").within(3.0, 6.0);
}

#[test]
fn a_refusal_is_final_at_once_with_the_reason() {
    at_once(
        [
            (403, "Base.1.8.InsufficientPrivilege", "Operator role"),
            (403, "SMC.1.0.OemLicenseNotPassed", "licence"),
            (403, "Base.1.8.PasswordChangeRequired", "change the password"),
            (404, "Base.1.8.ResourceMissingAtURI", "404"),
            (405, "Base.1.8.OperationNotAllowed", "405"),
        ],
        |(status, id, words)| {
            let body = error_body(id, "The service says no");
            let server = Server::with_world(World::one_system().with(resets(Misbehaviour::Status(status, body))));
            Call::new(&server, "off").run().fails(&["The service says no", words]).within(0.0, 2.0);
        },
    );
}

#[test]
fn an_unknown_reset_type_is_named_and_nothing_gentler_is_tried() {
    let server = Server::with_world(world(|system| system.refuses = vec!["ForceOff"]));
    Call::new(&server, "off").run().fails(&["ForceOff", "GracefulShutdown"]).within(0.0, 2.0);
    assert_eq!(server.posted(), ["ForceOff"]);
}

#[test]
fn force_off_is_sent_even_where_it_is_not_listed() {
    let server = Server::with_world(world(|system| system.allowed = Some(vec!["On", "GracefulShutdown"])));
    Call::new(&server, "off").run().succeeds("Success: Powered OFF");
    assert_eq!(server.posted(), ["ForceOff"]);
}

#[test]
fn a_reset_whose_answer_is_lost_is_looked_for_in_the_power_state() {
    let server = Server::with_world(World::one_system().with(resets(Misbehaviour::DoneThenReset)));
    Call::new(&server, "off").run().succeeds("Success: Powered OFF").within(1.0, 4.0);
    assert_eq!(server.posted(), ["ForceOff"]);
    // The request is lost before it is executed, so the agent repeats it.
    for fault in [Misbehaviour::Reset, Misbehaviour::Close] {
        let server = Server::with_world(World::one_system().with(Fault::once("POST", "Reset", fault)));
        Call::new(&server, "off").run().succeeds("Success: Powered OFF").within(1.0, 6.0);
        assert_eq!(server.posted(), ["ForceOff"]);
    }
}

#[test]
fn one_bad_answer_while_polling_is_tolerated() {
    at_once(
        [
            Misbehaviour::Reset,
            Misbehaviour::Close,
            Misbehaviour::Status(503, String::new()),
            Misbehaviour::Status(404, String::new()),
            Misbehaviour::Status(401, String::new()),
            Misbehaviour::Body(b"<html>starting</html>".to_vec()),
            Misbehaviour::Body(b"{\"PowerState\":\"O".to_vec()),
        ],
        |fault| {
            let bad = Fault::once("GET", "/Systems/1", fault).after(1);
            let server = Server::with_world(world(|system| system.when_off = vec![(MS(700), "Off")]).with(bad));
            Call::new(&server, "off").run().succeeds("Success: Powered OFF").within(1.5, 6.0);
        },
    );
}

#[test]
fn a_bmc_that_dies_after_the_reset_is_no_success() {
    let dead = Fault::always("GET", "/Systems/1", Misbehaviour::Reset).after(1);
    let server = Server::with_world(World::one_system().with(dead));
    let output = Call::new(&server, "off").set("action_timeout", "6").run();
    output.fails(&["Timed out waiting to power OFF", "accepted the reset once"]).within(4.0, 7.0);
    assert_eq!(output.stdout, "");
}

#[test]
fn two_agents_at_once_both_succeed() {
    let server = Server::with_world(world(|system| system.when_off = vec![(MS(800), "Off")]));
    std::thread::scope(|scope| {
        let both: Vec<_> = (0..2).map(|_| scope.spawn(|| Call::new(&server, "off").run())).collect();
        for one in both {
            assert_eq!(one.join().unwrap().code, 0);
        }
    });
}
