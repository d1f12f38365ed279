//! The fence race: two agents on two BMCs. The agent of a node that is off ends with it.

#![allow(clippy::unwrap_used, reason = "what fails here ends the test")]

use std::process::Child;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use serde_json::json;

use crate::bmc::agent::{Call, Output, finish};
use crate::bmc::model::{Access, SESSIONS};
use crate::bmc::{Fault, Misbehaviour, Server, SessionsAre, World, at_once};

/// The `Context` of a session by which another node's agent marks a BMC. The mark is valid for two seconds.
pub(super) const FOREIGN: &str = "tandem-fence-race 2 0123456789abcdef 1";
const NAMES: [&str; 2] = ["node1", "node2"];

pub(super) fn shown() -> Server {
    Server::with_world(World::with_sessions(SessionsAre::Shown))
}

/// Returns the call with which node `of` fences the other node. Node1 is the preferred node of the race.
pub(super) fn call(bmcs: &[Server; 2], of: usize, action: &str) -> Call {
    let (own, target) = (&bmcs[of], &bmcs[1 - of]);
    let ca_file = own.authority.file();
    let own = format!("{}:{},ca_file={}", own.address, own.port, ca_file.display());
    Call::new(target, action)
        .set("nodename", NAMES[1 - of])
        .set("race_with", &own)
        .set("race_preferred", "node1")
        .set("race_delay", "3")
        .set("verbose", "1")
}

fn sessions(server: &Server) -> usize {
    server.world().sessions.len()
}

fn end(child: &Child, signal: Signal) {
    let _ = kill(Pid::from_raw(child.id().try_into().unwrap()), signal);
}

fn is_off(server: &Server) -> bool {
    server.world().system().power == "Off"
}

/// Starts the agent of each node after its delay in `apart`, and kills an agent when its own node is off. Returns which nodes are off in
/// the end.
fn race(bmcs: &[Server; 2], calls: &[Call; 2], apart: [Duration; 2]) -> [bool; 2] {
    let began = Instant::now();
    let mut agents: [Option<Child>; 2] = [None, None];
    let mut ended = [false; 2];
    while ended != [true; 2] {
        assert!(began.elapsed() < Duration::from_secs(70), "no end: {ended:?}");
        for node in 0..2 {
            if agents[node].is_none() && !ended[node] && began.elapsed() >= apart[node] && !is_off(&bmcs[node]) {
                agents[node] = Some(calls[node].start());
            }
            if is_off(&bmcs[node]) {
                agents[node].iter().for_each(|child| end(child, Signal::SIGKILL));
                ended[node] = true;
            }
            let has_ended = agents[node].as_mut().is_some_and(|child| child.try_wait().unwrap().is_some());
            ended[node] |= has_ended;
        }
        tandem::os::clock::sleep(Duration::from_millis(1));
    }
    for child in agents.into_iter().flatten() {
        println!("{}", finish(child).stderr);
    }
    [is_off(&bmcs[0]), is_off(&bmcs[1])]
}

fn fenced(output: &Output) -> &Output {
    assert_eq!((output.code, output.stdout.trim()), (0, "Success: Powered OFF"), "{output:?}");
    output
}

fn waits(output: &Output) -> usize {
    output.stderr.matches("with the marks up").count()
}

#[test]
fn a_dead_node_costs_no_wait_and_leaves_nothing() {
    let bmcs = [shown(), shown()];
    let output = call(&bmcs, 1, "off").run();
    fenced(&output);
    assert!(output.stderr.contains("both lists decided the race: true") && waits(&output) == 0, "{output:?}");
    assert_eq!((sessions(&bmcs[0]), sessions(&bmcs[1])), (0, 0));
    let opened = |server: &Server| server.world().sessions_opened;
    assert_eq!((opened(&bmcs[0]), opened(&bmcs[1])), (1, 1));
    // No other action races.
    for action in ["status", "monitor", "on"] {
        call(&bmcs, 1, action).run();
        assert_eq!(opened(&bmcs[1]), 1, "{action}");
    }
}

/// Returns the requests about sessions, which a fence race adds to those of a fence action.
fn of_marks(server: &Server) -> Vec<String> {
    server.requests().into_iter().filter(|request| request.contains(SESSIONS)).collect()
}

#[test]
fn a_reboot_with_a_race_asks_the_target_three_times_more() {
    let uri = "/redfish/v1/Systems/1";
    let bmcs = [shown(), shown()];
    let with = call(&bmcs, 0, "reboot").set("systems_uri", uri);
    assert_eq!(with.run().code, 0);
    let number = |request: &str| if request.starts_with("DELETE") { "DELETE" } else { request }.to_owned();
    let of_marks = |server: &Server| of_marks(server).iter().map(|request| number(request)).collect::<Vec<_>>();
    let (post, get) = (format!("POST {SESSIONS}"), format!("GET {SESSIONS}"));
    assert_eq!(of_marks(&bmcs[1]), [&*post, &get, "DELETE"]);
    assert_eq!(of_marks(&bmcs[0]), [&*post, &get, &get, "DELETE"]);
    assert_eq!(bmcs[0].requests().len(), 5, "the connection is opened by a request of its own");
    assert_eq!((bmcs[0].handshakes(), bmcs[1].handshakes()), (1, 1));
    let without = [shown(), shown()];
    let plain = Call::new(&without[1], "reboot").set("systems_uri", uri).set("nodename", NAMES[1]);
    assert_eq!(plain.run().code, 0);
    assert_eq!(bmcs[1].requests().len(), without[1].requests().len() + 3);
    // The reset follows directly after the list. The mark is deleted in the pause after the command to power on.
    let order = bmcs[1].requests();
    let resets: Vec<usize> = (0..order.len()).filter(|at| order[*at].ends_with("ComputerSystem.Reset")).collect();
    let at = |what: &str| order.iter().position(|request| request.starts_with(what)).unwrap();
    assert_eq!(resets, [at(&get) + 1, at("DELETE") - 1], "{order:?}");
}

#[test]
fn a_reboot_with_a_race_takes_hardly_longer() {
    let took = |call: &dyn Fn(&[Server; 2]) -> Call| {
        let bmcs = [shown(), shown()];
        let output = call(&bmcs).set("systems_uri", "/redfish/v1/Systems/1").run();
        assert_eq!(output.code, 0, "{output:?}");
        output.took
    };
    let mut quickest = [Duration::MAX; 2];
    // A single run on a busy machine is no measurement.
    for _ in 0..12 {
        quickest[0] = quickest[0].min(took(&|bmcs| Call::new(&bmcs[1], "reboot").set("nodename", NAMES[1])));
        quickest[1] = quickest[1].min(took(&|bmcs| call(bmcs, 0, "reboot")));
        if quickest[1] < quickest[0] + Duration::from_millis(60) {
            return println!("{quickest:?}: without, and with a race");
        }
    }
    panic!("{quickest:?}: without, and with a race");
}

#[test]
fn what_a_living_node_marks_before_it_is_off_is_gone_in_the_end() {
    let bmcs = [shown(), shown()];
    let slow = Misbehaviour::Late(Duration::from_millis(500));
    bmcs[1].world().faults.push(Fault::once("POST", "Reset", slow));
    let child = call(&bmcs, 0, "reboot").start();
    let patience = tandem::os::clock::Deadline::after(Duration::from_secs(10));
    while bmcs[1].posted().is_empty() && !patience.has_passed() {
        patience.sleep(Duration::from_millis(5));
    }
    for server in &bmcs {
        server.world().add_session("admin", Some(FOREIGN));
    }
    let output = finish(child);
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!((sessions(&bmcs[0]), sessions(&bmcs[1])), (0, 0));
}

#[test]
fn no_answer_waits_for_an_own_bmc_that_is_slow_afterwards() {
    let bmcs = [shown(), shown()];
    bmcs[0].world().faults.push(Fault::always("DELETE", "Sessions", Misbehaviour::Silence));
    let output = call(&bmcs, 0, "off").run();
    fenced(&output).within(1.0, 8.0);
    assert_eq!((sessions(&bmcs[0]), sessions(&bmcs[1])), (1, 0));
}

#[test]
fn of_two_that_fence_each_other_one_is_left() {
    let gaps = [[0, 0], [0, 15], [15, 0], [0, 40], [40, 0], [0, 90], [90, 0]];
    for gap in gaps {
        for late in [0, 300] {
            let world = || {
                let mut world = World::with_sessions(SessionsAre::Shown);
                if late > 0 {
                    world = world.with(Fault::always("POST", "Reset", Misbehaviour::Late(Duration::from_millis(late))));
                }
                world.system().when_off = vec![(Duration::from_millis(late), "Off")];
                Server::with_world(world)
            };
            let bmcs = [world(), world()];
            let calls = [call(&bmcs, 0, "off"), call(&bmcs, 1, "off")];
            let off = race(&bmcs, &calls, gap.map(Duration::from_millis));
            assert!(off[0] != off[1], "{gap:?} {late}: {off:?}");
        }
    }
}

#[test]
fn of_two_that_prove_less_one_is_left() {
    let hidden = |which: usize| {
        [0, 1].map(|node| {
            let shown = if node == which || which == 2 { SessionsAre::Hidden } else { SessionsAre::Shown };
            Server::with_world(World::with_sessions(shown))
        })
    };
    let kinds = |kind| [0, 1].map(|_| Server::with_world(World::with_sessions(kind)));
    let pairs =
        [hidden(0), hidden(1), hidden(2), kinds(SessionsAre::WithoutContext), kinds(SessionsAre::WithoutSuchProperty)];
    at_once(pairs.into_iter().enumerate(), |(at, bmcs)| {
        let off = race(&bmcs, &[call(&bmcs, 0, "off"), call(&bmcs, 1, "off")], [Duration::ZERO; 2]);
        assert!(off[0] != off[1], "{at}: {off:?}");
    });
}

#[test]
fn a_node_that_does_not_reach_its_own_bmc_waits_with_its_mark_up() {
    for (node, least) in [(0, 1.9), (1, 3.9)] {
        let mut bmcs = [shown(), shown()];
        let silent = Fault::always("POST", "Sessions", Misbehaviour::Silence);
        bmcs[node] = Server::with_world(World::with_sessions(SessionsAre::Shown).with(silent));
        let output = call(&bmcs, node, "off").run();
        fenced(&output).within(least, 30.0);
        assert_eq!(waits(&output), 1, "{output:?}");
        assert_eq!(sessions(&bmcs[1 - node]), 0);
    }
}

#[test]
fn of_two_whose_bmcs_open_sessions_late_one_is_left_and_no_session() {
    for late in [1_500, 3_000] {
        let slow = Fault::always("POST", "Sessions", Misbehaviour::Late(Duration::from_millis(late)));
        let bmcs = [0, 1].map(|_| Server::with_world(World::with_sessions(SessionsAre::Shown).with(slow.clone())));
        let off = race(&bmcs, &[call(&bmcs, 0, "off"), call(&bmcs, 1, "off")], [Duration::ZERO; 2]);
        assert!(off[0] != off[1], "{late}: {off:?}");
        assert_eq!((sessions(&bmcs[0]), sessions(&bmcs[1])), (0, 0), "{late}");
    }
}

#[test]
fn of_two_of_which_one_does_not_reach_its_own_bmc_one_is_left() {
    for blind in [[true, false], [false, true], [true, true]] {
        let bmcs = [shown(), shown()];
        let calls = [0, 1].map(|node| {
            let call = call(&bmcs, node, "off");
            if blind[node] { call.set("race_with", "127.0.0.1:1") } else { call }
        });
        let off = race(&bmcs, &calls, [Duration::ZERO; 2]);
        assert!(off[0] != off[1], "{blind:?}: {off:?}");
    }
}

#[test]
fn the_mark_of_a_killed_agent_is_passed_over_once_it_is_old() {
    at_once([0, 1], |node| {
        let bmcs = [shown(), shown()];
        bmcs[node].world().add_session("admin", Some(FOREIGN));
        let output = call(&bmcs, node, "off").run();
        fenced(&output).within(2.0, 30.0);
        assert!(output.stderr.contains("192.0.2.77"), "{output:?}");
        assert_eq!(sessions(&bmcs[node]), 0, "the dead node's mark goes");
    });
}

#[test]
fn an_own_bmc_that_is_another_machines_proves_nothing() {
    for (uri, power, words) in [
        ("/redfish/v1/Systems/1", "On", None),
        ("/redfish/v1/Systems/1", "Off", Some("/redfish/v1/Systems/1 is Off, and this node runs")),
        ("/redfish/v1/Systems/2", "On", Some("/redfish/v1/Systems/2 is not there: race_with names")),
    ] {
        let bmcs = [shown(), shown()];
        bmcs[0].world().system().power = power.into();
        let own =
            format!("127.0.0.1:{},systems_uri={uri},ca_file={}", bmcs[0].port, bmcs[0].authority.file().display());
        let output = call(&bmcs, 0, "off").set("race_with", &own).run();
        fenced(&output);
        assert_eq!(waits(&output), usize::from(words.is_some()), "{output:?}");
        assert!(words.is_none_or(|words| output.stderr.contains(words)), "{output:?}");
        assert_eq!((sessions(&bmcs[0]), sessions(&bmcs[1])), (0, 0));
    }
}

#[test]
fn sessions_of_others_are_no_marks() {
    let bmcs = [shown(), shown()];
    for server in &bmcs {
        server.world().add_session("admin", None);
        server.world().add_session("operator", Some("a browser"));
    }
    for expands in [true, false] {
        for server in &bmcs {
            server.world().expands = expands;
        }
        bmcs[0].world().system().power = json!("On");
        assert_eq!(waits(fenced(&call(&bmcs, 1, "off").run())), 0);
        assert_eq!((sessions(&bmcs[0]), sessions(&bmcs[1])), (2, 2));
    }
    // If a BMC drops the sessions' `Context`, sessions of another user are no marks.
    let bmcs = [0, 1].map(|_| Server::with_world(World::with_sessions(SessionsAre::WithoutContext)));
    bmcs[1].world().add_session("operator", None);
    assert_eq!(waits(fenced(&call(&bmcs, 1, "off").run())), 0);
}

/// Asserts that the agent does not take the session of its own login for a mark of the other node. On a BMC that drops the `Context`,
/// both look alike, and the agent would wait for its own session until its time is over.
#[test]
fn the_session_of_the_agents_own_login_is_no_mark() {
    for kind in [SessionsAre::WithoutContext, SessionsAre::WithoutSuchProperty] {
        let bmcs = [0, 1].map(|_| {
            Server::with_world(World { access: Access::Session, expands: true, ..World::with_sessions(kind) })
        });
        for node in [0, 1] {
            assert_eq!(waits(fenced(&call(&bmcs, node, "off").set("auth", "session").run())), 0, "{kind:?}");
            assert_eq!((sessions(&bmcs[0]), sessions(&bmcs[1])), (0, 0), "{kind:?}");
            bmcs[1 - node].world().system().power = json!("On");
        }
    }
}

#[test]
fn a_list_is_waited_for_as_long_as_each_answer_comes() {
    let bmcs = [shown(), shown()];
    bmcs[1].world().expands = false;
    for _ in 0..3 {
        bmcs[1].world().add_session("operator", Some("a browser"));
    }
    let late = Misbehaviour::Late(Duration::from_secs(2));
    bmcs[1].world().faults.push(Fault::always("GET", "Sessions/", late));
    let output = call(&bmcs, 0, "off").run();
    fenced(&output).within(6.0, 20.0);
    assert_eq!(waits(&output), 0, "{output:?}");
}

#[test]
fn many_sessions_are_one_request_where_the_list_expands() {
    let bmcs = [shown(), shown()];
    for _ in 0..20 {
        bmcs[1].world().add_session("operator", Some("a browser"));
    }
    let late = Misbehaviour::Late(Duration::from_secs(2));
    bmcs[1].world().faults.push(Fault::always("GET", "Sessions", late));
    fenced(&call(&bmcs, 0, "off").run()).within(4.0, 12.0);
    let asked = |part: &str| {
        let log = &bmcs[1].world().log;
        log.iter().filter(|request| request.method == "GET" && request.path.contains(part)).count()
    };
    assert_eq!((asked("Sessions/"), asked("$expand")), (0, 1));
    // The mark is found among other sessions.
    bmcs[1].world().faults.clear();
    bmcs[1].world().add_session("admin", Some(FOREIGN));
    bmcs[1].world().system().power = json!("On");
    assert!(waits(fenced(&call(&bmcs, 0, "off").run())) > 0);
    assert_eq!(asked("Sessions/"), 0);
}

#[test]
fn nothing_is_reset_while_a_mark_stands() {
    let bmcs = [shown(), shown()];
    bmcs[0].world().add_session("admin", Some("tandem-fence-race 600 0123456789abcdef 1"));
    let output = call(&bmcs, 0, "off").set("action_timeout", "33").set("verbose", "0").run();
    output.fails(&["delete the session", &format!("{SESSIONS}/1 from 192.0.2.77")]).within(25.0, 40.0);
    assert!(bmcs[1].posted().is_empty());
    assert_eq!((sessions(&bmcs[0]), sessions(&bmcs[1])), (1, 0));
}

#[test]
fn a_signal_takes_the_marks_down_unless_a_reset_is_under_way() {
    for (path, left) in [("Systems/1", 0), ("Reset", 1)] {
        let slow = Misbehaviour::Late(Duration::from_secs(20));
        let bmcs = [shown(), shown()];
        if left == 0 {
            bmcs[0].world().add_session("admin", Some(FOREIGN));
        } else {
            bmcs[1].world().faults.push(Fault::always("POST", path, slow));
        }
        let child = call(&bmcs, 0, "off").start();
        let patience = tandem::os::clock::Deadline::after(Duration::from_secs(10));
        let is_up = || sessions(&bmcs[1]) == 1 && (left == 0 || !bmcs[1].posted().is_empty());
        while !is_up() && !patience.has_passed() {
            patience.sleep(Duration::from_millis(5));
        }
        end(&child, Signal::SIGTERM);
        let output = finish(child);
        assert_eq!(output.code, 128 + Signal::SIGTERM as i32, "{output:?}");
        output.within(0.0, 10.0);
        assert_eq!(sessions(&bmcs[1]), left, "{path}");
    }
}

#[test]
fn a_signal_takes_a_mark_down_whose_answer_is_late() {
    let slow = Fault::always("POST", "Sessions", Misbehaviour::Late(Duration::from_secs(3)));
    let bmcs = [0, 1].map(|_| Server::with_world(World::with_sessions(SessionsAre::Shown).with(slow.clone())));
    let child = call(&bmcs, 0, "off").start();
    let patience = tandem::os::clock::Deadline::after(Duration::from_secs(10));
    while [0, 1].map(|at| sessions(&bmcs[at])) != [1, 1] && !patience.has_passed() {
        patience.sleep(Duration::from_millis(5));
    }
    end(&child, Signal::SIGTERM);
    let output = finish(child);
    assert_eq!(output.code, 128 + Signal::SIGTERM as i32, "{output:?}");
    output.within(1.0, 10.0);
    assert_eq!((sessions(&bmcs[0]), sessions(&bmcs[1]), bmcs[1].posted().len()), (0, 0, 0));
}

#[test]
fn a_refused_reset_takes_the_marks_down_and_one_without_an_end_leaves_them() {
    let refusing = Fault::always("POST", "Reset", Misbehaviour::Status(403, String::new()));
    let ignoring = Fault::always("POST", "Reset", Misbehaviour::Ignored);
    at_once([(refusing, 0), (ignoring, 1)], |(fault, left)| {
        let bmcs = [shown(), shown()];
        bmcs[1].world().faults.push(fault);
        let output = call(&bmcs, 0, "off").set("action_timeout", "33").run();
        assert_eq!(output.code, 1, "{output:?}");
        assert_eq!((sessions(&bmcs[0]), sessions(&bmcs[1])), (left, left));
    });
}

#[test]
fn a_mark_is_no_idle_session_while_a_reset_is_under_way() {
    let idle = Some(Duration::from_secs(13));
    let bmcs = [0, 1].map(|_| {
        let mut world = World { sessions_idle: idle, ..World::with_sessions(SessionsAre::Shown) };
        world.system().when_off = vec![(Duration::from_secs(16), "Off")];
        Server::with_world(world.with(Fault::always("POST", "Reset", Misbehaviour::Ignored).after(1)))
    });
    let child = call(&bmcs, 0, "off").set("power_timeout", "40").start();
    let patience = tandem::os::clock::Deadline::after(Duration::from_secs(40));
    while !is_off(&bmcs[1]) && !patience.has_passed() {
        patience.sleep(Duration::from_millis(50));
        // Sessions also expire while the BMC is not queried.
        if !bmcs[1].posted().is_empty() {
            let asks =
                crate::bmc::Request { method: "GET".to_owned(), path: SESSIONS.to_owned(), ..Default::default() };
            for server in &bmcs {
                server.world().answer(&asks);
            }
            assert_eq!((sessions(&bmcs[0]), sessions(&bmcs[1])), (1, 1), "{:?}", patience.elapsed());
        }
    }
    fenced(&finish(child));
    assert_eq!((sessions(&bmcs[0]), sessions(&bmcs[1])), (0, 0));
}
