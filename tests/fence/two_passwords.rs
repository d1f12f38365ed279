//! A password file with two lines: the agent logs in whichever is valid, and locks no account.

#![allow(clippy::unwrap_used, reason = "what fails here ends the test")]

use std::path::{Path, PathBuf};

use crate::bmc::agent::{Call, Output};
use crate::bmc::model::{Access, error_body};
use crate::bmc::{Fault, Misbehaviour, Server, World, at_once};

const OLD: &str = "s3cret-pass";
const NEW: &str = "n3w-s3cret";

/// Writes a password file with these lines. Returns its path.
fn file(directory: &Path, lines: &[&str]) -> PathBuf {
    let path = directory.join("password");
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    path
}

fn act(server: &Server, action: &str, file: &Path) -> Output {
    let call = Call::new(server, action).without("password").set("password_file", file.to_str().unwrap());
    call.set("action_timeout", "15").run()
}

fn world(access: Access, password: &str) -> World {
    World { access, password: password.as_bytes().to_vec(), ..World::that_locks() }
}

/// Returns the path of the agent's record of its last login at this BMC.
fn memory(server: &Server) -> String {
    format!("/run/fence_redfish_rs-{}:{}-login.json", server.address, server.port)
}

/// Returns the number of passwords that the BMC has refused since the last call of this function.
fn refusals(server: &Server) -> usize {
    std::mem::take(&mut server.world().most_refused)
}

#[test]
fn whichever_line_is_valid_each_action_gets_in_and_is_refused_once_at_most_and_only_the_first_time() {
    at_once([Access::Basic, Access::Session, Access::Both], |access| {
        for (lines, costs) in [([OLD, NEW], 0), ([NEW, OLD], 1)] {
            let server = Server::with_world(world(access, OLD));
            let directory = tempfile::tempdir().unwrap();
            let file = file(directory.path(), &lines);
            act(&server, "off", &file).succeeds("Success: Powered OFF");
            assert_eq!(refusals(&server), costs, "{access:?} {lines:?}");
            for (action, done) in
                [("on", "Success: Powered ON"), ("monitor", ""), ("reboot", "Success: Rebooted"), ("monitor", "")]
            {
                act(&server, action, &file).succeeds(done);
                assert_eq!(refusals(&server), 0, "{action}: it was known which line is valid");
            }
            let world = server.world();
            assert_eq!(world.sessions.len(), 0, "{access:?}");
        }
    });
}

#[test]
fn both_wrong_is_one_sentence_and_one_refusal_for_each() {
    at_once([Access::Basic, Access::Session, Access::Both], |access| {
        for action in ["off", "monitor", "status"] {
            let server = Server::with_world(world(access, "another"));
            let directory = tempfile::tempdir().unwrap();
            let output = act(&server, action, &file(directory.path(), &[OLD, NEW]));
            output.fails(&["unable to log in, the BMC accepts neither line of password_file"]).within(0.0, 2.0);
            assert_eq!(refusals(&server), 2, "{access:?}");
            assert!(server.posted().is_empty());
            assert!(!output.stderr.contains(OLD) && !output.stderr.contains(NEW), "{output:?}");
        }
    });
}

/// Asserts that only one action fails if a BMC requires another way to log in than before, although the password file
/// has two passwords. A firmware update may disable basic authentication.
#[test]
fn a_bmc_that_takes_another_way_than_before_is_asked_for_it_after_one_action() {
    let server = Server::with_world(world(Access::Basic, NEW));
    let directory = tempfile::tempdir().unwrap();
    let file = file(directory.path(), &[OLD, NEW]);
    act(&server, "monitor", &file).succeeds("");
    server.world().access = Access::Session;
    act(&server, "monitor", &file).fails(&["neither line of password_file"]);
    act(&server, "monitor", &file).succeeds("");
}

/// Asserts that no password counts as valid because the service root answers, which needs no login.
#[test]
fn an_answer_of_the_service_root_proves_nothing() {
    let hangs = Fault::always("GET", "/Systems", Misbehaviour::Silence);
    let server = Server::with_world(world(Access::Basic, NEW).with(hangs));
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), &[OLD, NEW]);
    let call = Call::new(&server, "monitor").without("password").set("password_file", path.to_str().unwrap());
    assert_eq!(call.set("action_timeout", "1").run().code, 1);
    assert!(!Path::new(&memory(&server)).exists());
}

/// Asserts that the agent tries both passwords anew after the file has changed. The line that the BMC accepted in the
/// old file may be another one in the new file.
#[test]
fn a_file_that_changed_is_looked_at_afresh() {
    let server = Server::with_world(world(Access::Basic, OLD));
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), &[NEW, OLD]);
    act(&server, "monitor", &path).succeeds("");
    assert_eq!(refusals(&server), 1);
    let path = file(directory.path(), &[OLD, NEW]);
    act(&server, "monitor", &path).succeeds("");
    assert_eq!(refusals(&server), 0, "the line that it was before is the wrong one now");
}

#[test]
fn a_password_that_changes_in_the_middle_of_an_action_does_not_end_it() {
    at_once([Access::Basic, Access::Both], |access| {
        let server = Server::with_world(world(access, OLD));
        let directory = tempfile::tempdir().unwrap();
        let path = file(directory.path(), &[OLD, NEW]);
        server.world().system().when_off = vec![(std::time::Duration::from_millis(1_500), "Off")];
        let done = std::thread::scope(|scope| {
            let off = scope.spawn(|| act(&server, "off", &path));
            let end = tandem::os::clock::Deadline::after(std::time::Duration::from_secs(10));
            while server.posted().is_empty() && !end.has_passed() {
                end.sleep(std::time::Duration::from_millis(5));
            }
            let mut world = server.world();
            world.password = NEW.as_bytes().to_vec();
            world.sessions.clear();
            drop(world);
            off.join().unwrap()
        });
        done.succeeds("Success: Powered OFF");
        assert_eq!((refusals(&server), server.posted()), (1, vec!["ForceOff".to_owned()]), "{access:?}");
    });
}

/// Asserts that the agent tries the other password after a 403, because some BMCs answer 403 to a wrong password. If the BMC answers 403
/// to both, the failure quotes the BMC's words.
#[test]
fn a_403_at_the_login_is_worth_the_other_line_and_keeps_its_words() {
    let denied = error_body("Base.1.8.AccessDenied", "The user is not known.");
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), &[NEW, OLD]);
    let once = Fault::once("GET", "/Systems", Misbehaviour::Status(403, denied.clone()));
    let server = Server::with_world(world(Access::Basic, OLD).with(once));
    act(&server, "monitor", &path).succeeds("");
    let path = file(directory.path(), &[OLD, NEW]);
    let always = Fault::always("GET", "/Systems", Misbehaviour::Status(403, denied));
    let server = Server::with_world(world(Access::Basic, OLD).with(always));
    act(&server, "monitor", &path).fails(&["The user is not known"]);
}

#[test]
fn sessions_that_are_not_to_be_had_leave_basic_authentication() {
    at_once([503, 404, 405], |status| {
        let full = Fault::always("POST", "/Sessions", Misbehaviour::Status(status, String::new()));
        let server = Server::with_world(world(Access::Both, NEW).with(full));
        let directory = tempfile::tempdir().unwrap();
        act(&server, "off", &file(directory.path(), &[OLD, NEW])).succeeds("Success: Powered OFF");
        assert_eq!(refusals(&server), 1, "{status}");
    });
}

/// Asserts that the agent does not lock the account if the BMC refuses the first password and then hangs. The action
/// fails, and the next ones begin with the password that was not refused.
#[test]
fn a_bmc_that_hangs_after_a_refusal_does_not_lock_the_account() {
    let hangs = Fault::always("GET", "/Systems", Misbehaviour::Silence).after(1);
    let server = Server::with_world(world(Access::Basic, NEW).with(hangs));
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), &[OLD, NEW]);
    for _ in 0..4 {
        let call = Call::new(&server, "monitor").without("password").set("password_file", path.to_str().unwrap());
        assert_eq!(call.set("action_timeout", "1").run().code, 1);
    }
    assert_eq!(refusals(&server), 1);
}

#[test]
fn neither_line_is_shown_anywhere() {
    use base64::Engine as _;
    let encoded = |word: &str| base64::engine::general_purpose::STANDARD.encode(format!("admin:{word}"));
    let secrets = [OLD.to_owned(), NEW.to_owned(), encoded(OLD), encoded(NEW)];
    at_once([Access::Basic, Access::Session], |access| {
        let echo = Fault::always("GET", "/Systems", Misbehaviour::Echo(400));
        let server = Server::with_world(world(access, NEW).with(echo));
        let directory = tempfile::tempdir().unwrap();
        let path = file(directory.path(), &[OLD, NEW]);
        let debug = directory.path().join("debug");
        let call = Call::new(&server, "monitor").without("password").set("password_file", path.to_str().unwrap());
        let call = call.set("verbose", "1").set("debug_file", debug.to_str().unwrap()).set("action_timeout", "3");
        let output = call.run();
        let remembered = std::fs::read_to_string(memory(&server)).unwrap_or_default();
        let written = std::fs::read_to_string(&debug).unwrap() + &remembered;
        for secret in &secrets {
            assert!(![&output.stdout, &output.stderr, &written].iter().any(|text| text.contains(secret)), "{written}");
        }
    });
}
