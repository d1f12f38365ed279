//! Selects the program to run, by an exact match in one table: of the base name of `argv[0]`, else of the first argument.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use nix::sys::stat::{Mode, umask};

use crate::os::output::{complain, say};

/// A program inside the binary.
struct Applet {
    name: &'static str,
    /// The name of another program that this applet can replace. Under that name the binary runs this applet.
    replaces: Option<&'static str>,
    summary: &'static str,
    /// The applet's main function. It gets the arguments after the applet's name, and returns the exit code of the process.
    run: fn(&[OsString]) -> u8,
}

/// The binary's own name. Under this name the binary runs the operator's command, unless the first argument is the name of another
/// applet.
const OWN_NAME: &str = "tandem";

const APPLETS: &[Applet] = &[
    Applet {
        name: "podman-etcd",
        replaces: None,
        summary: "OCF resource agent: runs a two-member etcd in podman",
        run: crate::agent::process::main,
    },
    Applet {
        name: "fence_redfish_rs",
        replaces: Some("fence_redfish"),
        summary: "fence agent: switches power through a Redfish BMC",
        run: crate::fence::process::main,
    },
    Applet {
        name: "tandem-release-locks",
        replaces: None,
        summary: "alert agent: releases the locks of a fenced node",
        run: crate::admin::release_locks,
    },
    Applet {
        name: "tandem-alert",
        replaces: None,
        summary: "alert agent: records what happened as events",
        run: crate::admin::alert,
    },
    Applet {
        name: "watchdog-mux",
        replaces: None,
        summary: "daemon: feeds one watchdog device for many programs",
        run: crate::watchdog::process::main,
    },
    Applet {
        name: "fencing-agent",
        replaces: None,
        summary: "daemon: lists reachable members, and lets a minority reset itself",
        run: crate::fencing_agent::process::main,
    },
    Applet { name: OWN_NAME, replaces: None, summary: "the operator's command", run: crate::admin::run },
];

/// Runs the applet that `args` selects. The first of `args` is the name under which the binary was started.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    keep_memory_private();
    let mut args = args.into_iter();
    let invoked_as = args.next().unwrap_or_default();
    let base_name = name_of(Path::new(&invoked_as));
    let rest: Vec<OsString> = args.collect();
    ExitCode::from(dispatch(&base_name, rest))
}

/// Returns the last part of a program's path. In a directory called `tandem`, the name `alert` means `tandem-alert`.
fn name_of(path: &Path) -> String {
    let last = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_ours = path.parent().is_some_and(|directory| directory.ends_with(OWN_NAME));
    if is_ours && last == "alert" { "tandem-alert".to_owned() } else { last }
}

/// Forbids core dumps of this process, because passwords and private keys are in its memory. Programs that it starts may dump core. If
/// the kernel refuses, the process continues without this protection.
fn keep_memory_private() {
    let _ = nix::sys::prctl::set_dumpable(false);
}

/// Sets the umask so that only this process's user may use the files that the process creates. Code that needs a wider mode sets it
/// explicitly. For the operator's command, the umask forbids other users only to write. The programs that this command starts, such as
/// pcs, create files that other users have to read.
fn keep_files_private(applet: &Applet) {
    let most = Mode::from_bits_truncate(0o077);
    let usual = umask(most);
    if applet.name == OWN_NAME {
        umask(usual | Mode::from_bits_truncate(0o022));
    }
}

fn start(applet: &Applet, rest: &[OsString]) -> u8 {
    keep_files_private(applet);
    (applet.run)(rest)
}

fn dispatch(base_name: &str, mut rest: Vec<OsString>) -> u8 {
    if let Some(applet) = find(base_name).filter(|applet| applet.name != OWN_NAME) {
        return start(applet, &rest);
    }
    let first = rest.first().map(|arg| arg.to_string_lossy().into_owned());
    match first.as_deref() {
        Some("--list") => list(),
        Some("--version" | "-V") => version(),
        Some(name) if name != OWN_NAME && find(name).is_some() => {
            rest.remove(0);
            find(name).map_or(1, |applet| start(applet, &rest))
        }
        _ => match find(base_name) {
            Some(own) => start(own, &rest),
            None => unknown(base_name, first.as_deref()),
        },
    }
}

fn find(name: &str) -> Option<&'static Applet> {
    APPLETS.iter().find(|applet| applet.name == name || applet.replaces == Some(name))
}

fn list() -> u8 {
    let lines: Vec<String> = APPLETS.iter().map(|applet| format!("{:<21} {}", applet.name, applet.summary)).collect();
    u8::from(say(lines.join("\n")).is_err())
}

fn version() -> u8 {
    u8::from(say(format!("tandem {}", crate::os::version::VERSION)).is_err())
}

fn unknown(base_name: &str, first: Option<&str>) -> u8 {
    let names: Vec<&str> = APPLETS.iter().map(|applet| applet.name).collect();
    let argument = first.filter(|arg| !arg.starts_with('-')).map(|arg| format!(" (nor '{arg}')")).unwrap_or_default();
    complain(format_args!(
        "tandem: no program is called '{base_name}'{argument}; start it as one of {}, or type 'tandem --list'",
        names.join(", ")
    ));
    1
}
