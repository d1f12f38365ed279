//! The truth about power, continued: on, reboot, cycle and status, and the waits for each.

#![allow(clippy::unwrap_used, reason = "what fails here ends the test")]

use crate::bmc::agent::Call;
use crate::bmc::model::error_body;
use crate::bmc::{Fault, Misbehaviour, Server, System, World, at_once};
use crate::power::{MS, resets, world};
use serde_json::json;
use tandem::fence::act::Ending;
use tandem::fence::examine;

#[test]
fn on_waits_until_the_system_says_on() {
    let server = Server::with_world(world(|system| {
        system.power = json!("Off");
        system.when_on = vec![(MS(0), "PoweringOn"), (MS(1500), "On")];
    }));
    Call::new(&server, "on").run().succeeds("Success: Powered ON").within(1.5, 4.0);
    assert_eq!(server.posted(), ["On"]);
    Call::new(&server, "on").run().succeeds("Success: Already ON");
    assert_eq!(server.posted(), ["On"], "nothing is posted to a system that is on");
}

/// Asserts that `tandem power on` only switches a node on. It ignores the action in the options that the device has in the
/// CIB.
#[test]
fn an_operator_switches_a_node_on_and_never_off() {
    let server = Server::with_world(world(|system| system.power = json!("Off")));
    let options = Call::new(&server, "off").without("action").input();
    let switched = examine::switch_on(&options, "node2", None).unwrap();
    assert_ne!(switched, Ending::already_on());
    assert_eq!(examine::switch_on(&options, "node2", None).unwrap(), Ending::already_on());
    assert_eq!(server.posted(), ["On"]);
    let off = Call::new(&server, "off").input();
    assert_eq!(examine::switch_on(&off, "node2", None).unwrap(), Ending::already_on());
    assert_eq!(server.posted(), ["On"], "a device's own action counts for nothing");
}

#[test]
fn on_waits_for_a_shutdown_to_end() {
    let server = Server::with_world(world(|system| system.power = json!("PoweringOff")));
    let output = std::thread::scope(|scope| {
        let call = scope.spawn(|| Call::new(&server, "on").run());
        tandem::os::clock::sleep(MS(1500));
        assert_eq!(server.posted().len(), 0, "not while it is going down");
        server.world().system().power = json!("Off");
        call.join().unwrap()
    });
    output.succeeds("Success: Powered ON");
}

#[test]
fn on_is_tried_as_often_as_retry_on_says() {
    at_once([("0", 1), ("2", 3)], |(retry_on, tries)| {
        let server =
            Server::with_world(world(|system| system.power = json!("Off")).with(resets(Misbehaviour::Ignored)));
        let output = Call::new(&server, "on").set("retry_on", retry_on).set("power_timeout", "2").run();
        output
            .fails(&["Timed out waiting to power ON"])
            .within(f64::from(tries) * 2.0 - 0.5, f64::from(tries) * 2.0 + 2.0);
        assert_eq!(server.posted().len(), usize::try_from(tries).unwrap());
    });
}

#[test]
fn the_best_allowed_type_is_taken_for_on() {
    let inline = world(|system| {
        system.power = json!("Off");
        system.allowed = Some(vec!["ForceOn", "ForceOff"]);
    });
    let by_action_info = world(|system| {
        system.power = json!("Off");
        system.allowed = None;
        system.action_info = Some(vec!["ForceOn", "ForceOff"]);
    });
    let by_refusal = world(|system| {
        system.power = json!("Off");
        system.refuses = vec!["On"];
    });
    for (world, expected) in [(inline, &["ForceOn"][..]), (by_action_info, &["ForceOn"]), (by_refusal, &["On"])] {
        let server = Server::with_world(world);
        let output = Call::new(&server, "on").run();
        if expected == ["On"] {
            output.fails(&["ActionParameterValueNotInList"]);
        } else {
            output.succeeds("Success: Powered ON");
        }
        assert_eq!(server.posted(), expected);
    }
}

#[test]
fn an_action_info_that_cannot_be_read_never_stands_in_the_way() {
    at_once(
        [Misbehaviour::Status(404, String::new()), Misbehaviour::Body(b"<html>".to_vec()), Misbehaviour::Reset],
        |fault| {
            let world = world(|system| {
                system.power = json!("Off");
                system.allowed = None;
                system.action_info = Some(vec!["On"]);
            });
            let server = Server::with_world(world.with(Fault::always("GET", "ResetActionInfo", fault)));
            Call::new(&server, "on").run().succeeds("Success: Powered ON");
        },
    );
}

#[test]
fn reboot_is_off_proven_and_then_on() {
    let server = Server::start();
    Call::new(&server, "reboot").run().succeeds("Success: Rebooted").within(1.0, 5.0);
    assert_eq!(server.posted(), ["ForceOff", "On"]);
    let requests = server.requests();
    let resets: Vec<usize> = (0..requests.len()).filter(|at| requests[*at].starts_with("POST")).collect();
    assert!(resets[1] - resets[0] > 2, "at least two readings between off and on: {requests:?}");
}

#[test]
fn reboot_of_a_host_that_is_off_proves_it_and_powers_it_on() {
    let server = Server::with_world(world(|system| system.power = json!("Off")));
    Call::new(&server, "reboot").run().succeeds("Success: Rebooted");
    assert_eq!(server.posted(), ["ForceOff", "On"]);
}

#[test]
fn no_on_is_sent_before_off_is_proven() {
    at_once(
        [Misbehaviour::Ignored, Misbehaviour::Status(503, String::new()), Misbehaviour::Status(403, String::new())],
        |fault| {
            let server = Server::with_world(World::one_system().with(resets(fault)));
            let output = Call::new(&server, "reboot").set("action_timeout", "5").run();
            assert_eq!(output.code, 1, "{output:?}");
            assert!(!server.posted().iter().any(|reset| reset == "On"), "{:?}", server.posted());
        },
    );
    // Off is reached, but every second query reports otherwise.
    let server = Server::with_world(world(|system| system.when_off = vec![(MS(0), "Off"), (MS(500), "On")]));
    assert_eq!(Call::new(&server, "reboot").set("action_timeout", "5").run().code, 1);
    assert!(!server.posted().iter().any(|reset| reset == "On"), "{:?}", server.posted());
}

#[test]
fn reboot_counts_as_fenced_once_off_is_proven_even_if_on_fails() {
    at_once(
        [
            Misbehaviour::Status(500, String::new()),
            Misbehaviour::Status(403, error_body("Base.1.8.InsufficientPrivilege", "no")),
            Misbehaviour::Reset,
            Misbehaviour::Ignored,
        ],
        |fault| {
            let after_off = Fault::always("POST", "Reset", fault).after(1);
            let server = Server::with_world(World::one_system().with(after_off));
            let output = Call::new(&server, "reboot").under_fencer().run();
            assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
            assert!(
                output.stdout.starts_with("Success: Rebooted (OFF is proven; powering ON failed"),
                "{}",
                output.stdout
            );
            output.within(1.0, 28.0);
        },
    );
}

#[test]
fn reboot_counts_as_fenced_when_the_bmc_dies_with_its_host() {
    let dead = Fault::always("GET", "/Systems/1", Misbehaviour::Reset).after(3);
    let server = Server::with_world(World::one_system().with(dead));
    let output = Call::new(&server, "reboot").under_fencer().run();
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
}

#[test]
fn status_tells_on_off_and_what_lies_between() {
    for (state, code, text) in [
        (json!("On"), 0, "Status: ON\n"),
        (json!("Off"), 2, "Status: OFF\n"),
        (json!("PoweringOff"), 0, "Status: ON (PoweringOff)\n"),
        (json!("PoweringOn"), 0, "Status: ON (PoweringOn)\n"),
        (json!("Paused"), 0, "Status: ON (Paused)\n"),
    ] {
        let server = Server::with_world(world(|system| system.power = state.clone()));
        let output = Call::new(&server, "status").run();
        assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (code, text, ""), "{state}");
        Call::new(&server, "monitor").run().succeeds("");
    }
    for state in [json!(null), json!(""), json!("Unknown"), json!("off"), json!(1)] {
        let server = Server::with_world(world(|system| system.power = state.clone()));
        for action in ["status", "monitor"] {
            Call::new(&server, action).run().fails(&["does not say whether it is on"]).within(0.0, 2.0);
        }
    }
}

#[test]
fn monitor_needs_a_reset_action() {
    let server = Server::with_world(world(|system| system.can_reset = false));
    Call::new(&server, "monitor").run().fails(&["no Reset action"]);
    Call::new(&server, "status").run().succeeds("Status: ON");
    Call::new(&server, "off").run().fails(&["no Reset action"]);
}

#[test]
fn diag_sends_an_interrupt_and_reports_a_refusal() {
    let server = Server::start();
    Call::new(&server, "diag").run().succeeds("Success: Diagnostic interrupt sent");
    assert_eq!(server.posted(), ["Nmi"]);
    let server = Server::with_world(world(|system| system.refuses = vec!["Nmi"]));
    Call::new(&server, "diag").run().fails(&["POST"]);
}

#[test]
fn a_cycle_needs_evidence() {
    let cycle = |server: &Server| Call::new(server, "reboot").set("method", "cycle");
    // The system is observed off in between.
    let server = Server::start();
    cycle(&server).run().succeeds("Success: Rebooted");
    assert_eq!(server.posted(), ["PowerCycle"]);
    // The reset is accepted, and nothing happens.
    let server = Server::with_world(World::one_system().with(resets(Misbehaviour::Ignored)));
    cycle(&server)
        .set("power_timeout", "3")
        .run()
        .fails(&["Timed out waiting for evidence of the reset"])
        .within(2.0, 5.0);
    assert_eq!(server.posted().len(), 1, "a cycle is never sent twice");
    // The answer is lost. The reset may have worked, so the agent does not repeat it.
    let server = Server::with_world(World::one_system().with(resets(Misbehaviour::DoneThenReset)));
    cycle(&server).run().succeeds("Success: Rebooted");
    assert_eq!(server.posted().len(), 1);
    // A host that is off is powered on.
    let server = Server::with_world(world(|system| system.power = json!("Off")));
    cycle(&server).run().succeeds("Success: Rebooted");
    assert_eq!(server.posted(), ["ForceOff", "On"]);
    // This system has no PowerCycle.
    let server = Server::with_world(world(|system| system.allowed = Some(vec!["On", "ForceOff", "ForceRestart"])));
    cycle(&server).run().succeeds("Success: Rebooted");
    assert_eq!(server.posted(), ["ForceRestart"]);
}

#[test]
fn delay_comes_before_off_and_reboot_only() {
    let server = Server::start();
    Call::new(&server, "status").set("delay", "3").run().within(0.0, 1.5);
    Call::new(&server, "on").set("delay", "3").run().within(0.0, 1.5);
    let started = server.requests().len();
    std::thread::scope(|scope| {
        let call = scope.spawn(|| Call::new(&server, "off").set("delay", "2").run());
        tandem::os::clock::sleep(MS(1500));
        assert_eq!(server.requests().len(), started, "nothing is asked during the delay");
        call.join().unwrap().succeeds("Success: Powered OFF").within(3.0, 5.0);
    });
}

#[test]
fn power_wait_is_waited_after_each_reset() {
    let server = Server::start();
    Call::new(&server, "off").set("power_wait", "2").run().succeeds("Success: Powered OFF").within(3.0, 5.0);
}

#[test]
fn power_timeout_is_seconds_and_not_a_number_of_polls() {
    let slow = Fault::always("GET", "/Systems/1", Misbehaviour::Late(MS(900))).after(1);
    let server = Server::with_world(World::one_system().with(slow).with(resets(Misbehaviour::Ignored)));
    Call::new(&server, "off").set("power_timeout", "4").run().fails(&["Timed out waiting"]).within(3.5, 6.5);
}

#[test]
fn several_plugs_are_all_off_before_any_is_on() {
    let server = Server::with_world(World::of(vec![System::new("a"), System::new("b")]));
    Call::new(&server, "reboot").set("plug", "a,b").run().succeeds("Success: Rebooted");
    assert_eq!(server.posted(), ["ForceOff", "ForceOff", "On", "On"]);
    Call::new(&server, "off").set("plug", "a").run().succeeds("Success: Powered OFF");
    Call::new(&server, "status").set("plug", "a,b").run().succeeds("Status: ON");
    let output = Call::new(&server, "status").set("plug", "a").run();
    assert_eq!(output.code, 2);
}
