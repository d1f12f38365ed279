//! Logins at the BMC: basic authentication, sessions that are always closed, and passwords that never leak.

#![allow(clippy::unwrap_used, reason = "what fails here ends the test")]

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use crate::bmc::agent::{Call, finish};
use crate::bmc::model::{Access, error_body};
use crate::bmc::{Fault, Misbehaviour, Server, SessionSays, World, at_once};
use crate::executable::script;

const PASSWORD: &str = "s3cret-pass";

fn accessible_by(access: Access) -> World {
    World { access, ..World::one_system() }
}

/// Returns the number of times that the BMC received a password, right or wrong.
fn attempts(server: &Server) -> usize {
    let world = server.world();
    let basic = world.log.iter().filter(|request| request.header("Authorization").is_some());
    let logins = world.log.iter().filter(|request| request.path.ends_with("/Sessions") && request.method == "POST");
    basic.filter(|request| request.path != "/redfish/v1").count() + logins.count()
}

/// Returns the number of sessions that were opened on the BMC, and the number of those that are still open.
fn sessions(server: &Server) -> (usize, usize) {
    let world = server.world();
    (world.sessions_opened, world.sessions.len())
}

#[test]
fn basic_authentication_needs_no_session() {
    let server = Server::with_world(accessible_by(Access::Both));
    Call::new(&server, "reboot").run().succeeds("Success: Rebooted");
    assert_eq!(server.world().sessions_opened, 0);
}

#[test]
fn a_session_is_opened_where_basic_is_refused_and_deleted_on_every_path() {
    let faults: Vec<(&str, Option<Fault>, i32)> = vec![
        ("status", None, 0),
        ("off", None, 0),
        ("reboot", None, 0),
        ("monitor", None, 0),
        ("list", None, 0),
        ("off", Some(Fault::always("POST", "Reset", Misbehaviour::Status(403, String::new()))), 1),
        ("off", Some(Fault::always("POST", "Reset", Misbehaviour::Ignored)), 1),
        ("status", Some(Fault::always("GET", "/Systems/1", Misbehaviour::Silence)), 1),
        ("status", Some(Fault::always("GET", "/Systems/1", Misbehaviour::Body(b"{}".to_vec()))), 1),
    ];
    at_once(faults, |(action, fault, code)| {
        let mut world = accessible_by(Access::Session);
        world.faults.extend(fault);
        let server = Server::with_world(world);
        let output = Call::new(&server, action).set("action_timeout", "6").run();
        assert_eq!(output.code, code, "{output:?}");
        assert_eq!(sessions(&server), (1, 0), "{action}: {output:?}");
    });
}

#[test]
fn a_session_is_deleted_when_a_signal_ends_us() {
    for signal in [nix::sys::signal::Signal::SIGTERM, nix::sys::signal::Signal::SIGINT] {
        let world = accessible_by(Access::Session).with(Fault::always("POST", "Reset", Misbehaviour::Ignored));
        let server = Server::with_world(world);
        let child = Call::new(&server, "off").start();
        let patience = tandem::os::clock::Deadline::after(Duration::from_secs(5));
        while server.posted().is_empty() && !patience.has_passed() {
            patience.sleep(Duration::from_millis(10));
        }
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.id().try_into().unwrap()), signal).unwrap();
        let output = finish(child);
        assert_eq!(output.code, 128 + signal as i32);
        output.within(0.0, 2.0);
        assert_eq!(sessions(&server), (1, 0));
    }
}

#[test]
fn a_session_can_be_asked_for_and_then_no_password_goes_anywhere_else() {
    let server = Server::with_world(accessible_by(Access::Both));
    Call::new(&server, "off").set("auth", "session").run().succeeds("Success: Powered OFF");
    let world = server.world();
    assert!(world.log.iter().all(|request| request.header("Authorization").is_none()));
    drop(world);
    assert_eq!(sessions(&server), (1, 0));
    let server = Server::with_world(accessible_by(Access::Basic));
    Call::new(&server, "off").set("auth", "session").run().fails(&["offers no sessions"]);
    let server = Server::with_world(accessible_by(Access::Session));
    Call::new(&server, "off").set("auth", "basic").run().fails(&["unable to log in"]);
    assert_eq!(server.world().sessions_opened, 0);
}

#[test]
fn a_session_is_deleted_whatever_the_service_calls_itself() {
    let world = World { own_name: "https://ilo-4711.example", ..accessible_by(Access::Session) };
    let server = Server::with_world(world);
    Call::new(&server, "off").run().succeeds("Success: Powered OFF");
    assert_eq!(sessions(&server), (1, 0));
}

#[test]
fn a_session_is_deleted_wherever_it_says_where_it_is() {
    at_once([SessionSays::Path, SessionSays::Id, SessionSays::EmptyHeader], |session_says| {
        let server = Server::with_world(World { session_says, ..accessible_by(Access::Session) });
        Call::new(&server, "off").run().succeeds("Success: Powered OFF");
        assert_eq!(sessions(&server), (1, 0), "{session_says:?}");
    });
}

/// Asserts that the agent logs a warning about a session without a URI, which it cannot delete. The BMC ends such a session when
/// it has been idle for long enough.
#[test]
fn a_session_that_says_nothing_is_told_of() {
    let server = Server::with_world(World { session_says: SessionSays::Nothing, ..accessible_by(Access::Session) });
    let output = Call::new(&server, "off").set("verbose", "1").run();
    assert_eq!((output.code, sessions(&server)), (0, (1, 1)), "{output:?}");
    assert!(output.stderr.contains("the BMC does not name the session's path"), "{output:?}");
}

#[test]
fn a_service_root_that_answers_nobody_is_no_obstacle() {
    at_once([Access::Basic, Access::Session, Access::Both], |access| {
        let server = Server::with_world(World { root_is_open: false, ..accessible_by(access) });
        Call::new(&server, "off").run().succeeds("Success: Powered OFF");
        let open = server.world().sessions.len();
        assert_eq!(open, 0, "{access:?}");
    });
}

#[test]
fn a_bmc_without_free_sessions_still_takes_basic_authentication() {
    // An iDRAC that is starting sends a single 401, while leaked sessions fill its table.
    let full = error_body("IDRAC.2.2.RAC0218", "The maximum number of user sessions is reached.");
    let world = accessible_by(Access::Both)
        .with(Fault::once("GET", "/Systems/1", Misbehaviour::Status(401, String::new())))
        .with(Fault::always("POST", "/Sessions", Misbehaviour::Status(503, full)));
    let server = Server::with_world(world);
    Call::new(&server, "off").run().succeeds("Success: Powered OFF").within(2.0, 5.0);
}

#[test]
fn a_locked_account_is_said_at_once() {
    let locked = error_body("Base.1.8.AccessDenied", "The account is locked out.");
    let server = Server::with_world(World::one_system().with(Fault::always(
        "GET",
        "/Systems",
        Misbehaviour::Status(403, locked),
    )));
    Call::new(&server, "off").run().fails(&["403 Forbidden", "The account is locked out"]).within(0.0, 1.5);
}

#[test]
fn a_wrong_password_is_tried_twice_and_not_again() {
    at_once([Access::Basic, Access::Session, Access::Both], |access| {
        for action in ["status", "off", "monitor"] {
            let server = Server::with_world(accessible_by(access));
            let output = Call::new(&server, action).set("password", "wrong").run();
            output.fails(&["unable to log in"]).within(0.5, 3.5);
            assert!(attempts(&server) <= 2, "{access:?}: {:?}", server.requests());
            assert!(server.posted().is_empty());
        }
    });
}

#[test]
fn a_single_401_is_forgiven() {
    let once = Fault::once("GET", "/Systems/1", Misbehaviour::Status(401, String::new()));
    let server = Server::with_world(World::one_system().with(once));
    Call::new(&server, "status").run().succeeds("Status: ON").within(1.0, 3.0);
    let once = Fault::once("POST", "Reset", Misbehaviour::Status(401, String::new()));
    let server = Server::with_world(World::one_system().with(once));
    Call::new(&server, "off").run().succeeds("Success: Powered OFF");
    assert_eq!(server.posted(), ["ForceOff"]);
}

#[test]
fn a_bmc_that_refuses_again_and_again_is_left_alone_before_it_locks_the_account() {
    // Every second query is refused. A single refusal would be ignored.
    let mut world = World::one_system();
    world.systems[0].when_off = Vec::new();
    for nth in 1..20 {
        let refused = Misbehaviour::Status(401, String::new());
        world.faults.push(Fault::once("GET", "/Systems/1", refused).after(nth));
    }
    let server = Server::with_world(world);
    Call::new(&server, "off").run().fails(&["unable to log in"]).within(2.0, 12.0);
    let left = server.world().faults.iter().filter(|fault| fault.count > 0).count();
    assert_eq!(19 - left, 3, "so many refusals were seen");
}

#[test]
fn a_session_that_expires_is_renewed_once() {
    let once = Fault::once("GET", "/Systems/1", Misbehaviour::Status(401, String::new())).after(1);
    let server = Server::with_world(accessible_by(Access::Session).with(once));
    Call::new(&server, "off").run().succeeds("Success: Powered OFF");
    assert_eq!(sessions(&server), (2, 0));
}

#[test]
fn a_refused_login_says_why() {
    let full = error_body("IDRAC.2.2.RAC0218", "The maximum number of user sessions is reached.");
    let refused = Fault::always("POST", "/Sessions", Misbehaviour::Status(503, full));
    let server = Server::with_world(accessible_by(Access::Session).with(refused));
    let output = Call::new(&server, "status").set("action_timeout", "5").run();
    output.fails(&["maximum number of user sessions", "all sessions of the iDRAC are in use"]);
    let tokenless = Fault::always("POST", "/Sessions", Misbehaviour::Status(201, "{}".to_owned()));
    let server = Server::with_world(accessible_by(Access::Session).with(tokenless));
    Call::new(&server, "status").set("action_timeout", "5").run().fails(&["without a token"]);
}

#[test]
fn passwords_reach_the_bmc_unchanged() {
    let long = "x".repeat(128);
    let passwords: &[&[u8]] = &[
        b"a=b",
        b"#hash",
        b"in\"side",
        b"\"around\"",
        b"trailing ",
        b" leading",
        "p\u{e4}\u{df}\u{1f511}".as_bytes(),
        b"a:b",
        b"-dash",
        b"\xff\xfe",
        b"$HOME`id`;",
        long.as_bytes(),
    ];
    for password in passwords {
        let server = Server::with_world(World { password: password.to_vec(), ..World::one_system() });
        Call::new(&server, "status").bytes("password", password).run().succeeds("Status: ON");
        Call::new(&server, "status").bytes("password", password).run_as_arguments().succeeds("Status: ON");
        if std::str::from_utf8(password).is_ok() {
            let server = Server::with_world(World { password: password.to_vec(), ..accessible_by(Access::Session) });
            Call::new(&server, "status").bytes("password", password).run().succeeds("Status: ON");
        }
    }
}

fn password_script(directory: &Path, body: &str) -> String {
    let path = directory.join("give-password");
    script(&path, body);
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_password_comes_from_a_script_or_a_file() {
    let server = Server::start();
    let directory = tempfile::tempdir().unwrap();
    let call = Call::new(&server, "status").without("password");
    call.clone()
        .set("password_script", &password_script(directory.path(), &format!("echo '{PASSWORD}'")))
        .run()
        .succeeds("Status: ON");
    let file = directory.path().join("password");
    std::fs::write(&file, format!("{PASSWORD}\n")).unwrap();
    call.clone().set("password_file", file.to_str().unwrap()).run().succeeds("Status: ON");
    // As in the fencing library, the script takes precedence over a password.
    let both = call.clone().set("password", "wrong");
    both.set("password_script", &password_script(directory.path(), &format!("echo '{PASSWORD}'")))
        .run()
        .succeeds("Status: ON");

    let before = server.requests().len();
    for (body, words) in
        [("exit 3", "exit code 3"), ("true", "printed no password"), ("echo; echo x", "printed no password")]
    {
        call.clone()
            .set("password_script", &password_script(directory.path(), body))
            .run()
            .fails(&["password_script", words]);
    }
    call.clone().set("password_script", "relative").run().fails(&["absolute path"]);
    call.clone().set("password_script", "/nonexistent/x").run().fails(&["/nonexistent/x"]);
    call.clone().set("password_file", "/nonexistent/x").run().fails(&["/nonexistent/x"]);
    call.run().fails(&["password is missing"]);
    assert_eq!(server.requests().len(), before, "without a password nothing is asked");
}

#[test]
fn a_password_script_may_leave_a_child_behind() {
    let server = Server::start();
    let directory = tempfile::tempdir().unwrap();
    // A script may start an agent or a cache that outlives it.
    for body in [format!("sleep 8 & echo '{PASSWORD}'"), format!("echo '{PASSWORD}'; sleep 8 &")] {
        let script = password_script(directory.path(), &body);
        let call = Call::new(&server, "status").without("password").set("password_script", &script);
        call.run().succeeds("Status: ON").within(0.0, 4.0);
    }
}

#[test]
fn a_script_that_hangs_is_ended() {
    let server = Server::start();
    let directory = tempfile::tempdir().unwrap();
    let hanging = password_script(directory.path(), "sleep 60");
    let call = Call::new(&server, "status").without("password").set("password_script", &hanging);
    call.set("action_timeout", "2").run().fails(&["password_script", "killed"]).within(1.5, 4.0);
}

#[test]
fn no_secret_is_shown_anywhere() {
    use base64::Engine as _;
    let basic = base64::engine::general_purpose::STANDARD.encode(format!("admin:{PASSWORD}"));
    let secrets = [PASSWORD, basic.as_str(), "token-1-secret", "token-2-secret"];
    at_once([Access::Basic, Access::Session], |access| {
        at_once(
            [("GET", "/Systems", 403), ("POST", "Reset", 400), ("GET", "/Systems/1", 503), ("DELETE", "", 500)],
            |(method, path, status)| {
                for action in ["off", "status"] {
                    let server = Server::with_world(accessible_by(access).with(Fault::always(
                        method,
                        path,
                        Misbehaviour::Echo(status),
                    )));
                    let directory = tempfile::tempdir().unwrap();
                    let debug_file = directory.path().join("debug");
                    let call = Call::new(&server, action)
                        .set("action_timeout", "4")
                        .set("verbose", "1")
                        .set("debug_file", debug_file.to_str().unwrap());
                    let output = call.run();
                    let written = std::fs::read_to_string(&debug_file).unwrap();
                    assert!(written.contains("GET https://"), "the debug file tells what was done: {written}");
                    for secret in secrets {
                        assert!(!output.stderr.contains(secret), "{}", output.stderr);
                        assert!(!output.stdout.contains(secret), "{}", output.stdout);
                        assert!(!written.contains(secret), "{written}");
                    }
                    assert_eq!(std::fs::metadata(&debug_file).unwrap().permissions().mode() & 0o777, 0o600);
                }
            },
        );
    });
}

#[test]
fn no_core_file_holds_the_password() {
    use std::os::unix::process::ExitStatusExt as _;
    let directory = tempfile::tempdir().unwrap();
    let quit = |call: &Call| {
        #[expect(clippy::disallowed_methods, reason = "a test starts the program under test itself")]
        // A shell's background job ignores SIGQUIT, and so do its children.
        let mut child = std::process::Command::new("/usr/bin/env")
            .args(["--default-signal=QUIT", "/bin/sh", "-c", "ulimit -c unlimited; exec \"$0\""])
            .arg(crate::bmc::agent::program())
            .current_dir(directory.path())
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&call.input()).unwrap();
        tandem::os::clock::sleep(Duration::from_millis(700));
        let pid = nix::unistd::Pid::from_raw(child.id().try_into().unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGQUIT).unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(nix::sys::signal::Signal::SIGQUIT as i32));
        status.core_dumped()
    };
    let silent = Server::with_world(World::one_system().with(Fault::always("GET", "", Misbehaviour::Silence)));
    assert!(!quit(&Call::new(&silent, "off")), "while the BMC is asked");
    assert!(!quit(&Call::new(&silent, "off").set("delay", "5")), "during the delay");
}

#[test]
fn what_hangs_on_this_machine_is_bounded_too() {
    let server = Server::start();
    let directory = tempfile::tempdir().unwrap();
    let call = Call::new(&server, "status").set("action_timeout", "1");
    at_once(["password_file", "ssl_ca_file"], |option| {
        let pipe = directory.path().join(option);
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let call = if option == "password_file" { call.clone().without("password") } else { call.clone() };
        let output = call.set(option, pipe.to_str().unwrap()).run();
        output.fails(&["Timed out after 5 s", "on this machine"]).within(4.0, 7.0);
    });
}

#[test]
fn mistakes_in_the_input_do_not_show_the_password() {
    for input in [
        "passwordx=hunter2\naction=status\n",
        "action=status\npassword=hunter2\nip=bad host\n",
        "hunter2\naction=status\n",
    ] {
        let output = Call::default().with_input(input.as_bytes());
        assert_eq!(output.code, 1);
        assert!(!output.stderr.contains("hunter2"), "{}", output.stderr);
    }
    let output = Call::default().with_arguments(&["-o", "status", "--passw0rd=hunter2"]);
    assert!(!output.stderr.contains("hunter2"), "{}", output.stderr);
}
