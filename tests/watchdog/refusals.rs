//! Refusals with their commands, and a second multiplexer, which must not disturb the first.

use std::fs;
use std::os::unix::net::UnixListener;

use nix::sys::signal::Signal;

use crate::{Place, command, text};

/// Returns the line with which `watchdog-mux` refuses to start in `place`. Fails if it starts.
fn refused(place: &Place, options: &[&str]) -> String {
    let device = place.path("watchdog").display().to_string();
    let words: Vec<&str> = ["run", "--device", &device].into_iter().chain(options.iter().copied()).collect();
    let output = place.asked(&words);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let errors: Vec<&str> = said.lines().filter(|line| line.contains(": ERROR: ")).collect();
    assert_eq!(errors.len(), 1, "{said}");
    assert!(errors[0].contains('\''), "it names nothing to type: {said}");
    errors[0].to_owned()
}

/// Asserts that a second `watchdog-mux` is refused without a connection to the first one. A connection would count as a
/// client, and its end would reset the machine.
#[test]
fn a_second_one_is_refused_and_the_first_is_not_disturbed() {
    let mut mux = Place::new().start(&["--client-timeout", "3s"]);
    let why = refused(mux.place(), &[]);
    assert!(why.contains("is taken, another multiplexer serves it"), "{why}");
    for words in [&["status"][..], &["status", "--json"], &["metrics"]] {
        let shown = mux.place().asked(words);
        assert_eq!(shown.status.code(), Some(0), "{words:?}: {}", text(&shown.stderr));
    }
    mux.must_be_fed();
    let log = mux.place().log();
    assert!(!log.contains("client") && log.contains("armed: ") && log.contains("nothing resets this machine"), "{log}");
    mux.signal(Signal::SIGTERM);
    mux.must_end_disarmed();
}

#[test]
fn each_refusal_opens_nothing_and_leaves_nothing() {
    let place = Place::new();
    assert!(refused(&place, &["--timeout", "1s"]).contains("less than two intervals of feeding"));
    assert!(refused(&place, &["--client-timeout", "1s"]).contains("'--client-timeout 2s'"));
    assert!(refused(&place, &["--module=-r"]).contains("no name of a module"));
    assert!(refused(&place, &["--module", "no_such_module"]).contains("'modprobe no_such_module'"));
    fs::create_dir(place.marker()).unwrap();
    assert!(refused(&place, &[]).contains("'reboot'"));
    fs::remove_dir(place.marker()).unwrap();
    fs::remove_file(place.path("watchdog")).unwrap();
    assert!(refused(&place, &[]).contains("'modprobe softdog'"));
    fs::write(place.path("watchdog"), "").unwrap();
    assert!(refused(&place, &[]).contains("is a regular file"));
    assert_eq!(fs::read(place.path("watchdog")).unwrap(), b"", "it was fed");
    fs::remove_file(place.path("watchdog")).unwrap();
    std::os::unix::fs::symlink("/dev/null", place.path("watchdog")).unwrap();
    assert!(refused(&place, &[]).contains("no watchdog that the kernel lists"));
    for left in ["watchdog-mux.sock", "watchdog-mux.json", "watchdog-mux.active"] {
        assert!(!place.path(left).exists(), "{left}");
    }
}

#[test]
fn a_module_of_the_environment_is_loaded_first() {
    let place = Place::new();
    let run = |module: &str| {
        let mut run = command();
        run.arg("--run-dir").arg(place.socket().parent().unwrap()).args(["run", "--device", "/dev/null"]);
        text(&run.env("WATCHDOG_MODULE", module).output().unwrap().stderr)
    };
    assert!(run("no_such_module").contains("'modprobe no_such_module'"));
    assert!(run("").contains("no watchdog that the kernel lists"), "none is asked for");
}

#[test]
fn a_socket_of_another_program_is_not_taken_from_it() {
    let place = Place::new();
    let listener = UnixListener::bind(place.socket()).unwrap();
    assert!(refused(&place, &[]).contains("is taken"));
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "it was connected to");
}

#[test]
fn wrong_arguments_are_usage_and_without_a_multiplexer_there_is_nothing_to_show() {
    let run = |words: &[&str]| command().args(words).output().unwrap();
    for wrong in [&["run", "--timeout", "soon"][..], &["run", "--no-such"], &["start"], &[]] {
        assert_eq!(run(wrong).status.code(), Some(2), "{wrong:?}");
    }
    let place = Place::new();
    for words in [["status"], ["metrics"]] {
        let output = place.asked(&words);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), String::new()), "{words:?}");
        assert!(text(&output.stderr).contains("'systemctl start watchdog-mux'"), "{}", text(&output.stderr));
    }
}
