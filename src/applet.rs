//! Which program is this? One table, matched exactly: on the base name of `argv[0]`, else on the first argument.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use nix::sys::stat::{Mode, umask};

use crate::os::output::{complain, say};

/// A program inside the binary.
struct Applet {
    name: &'static str,
    /// The name of what it replaces, where it stands in that one's place.
    replaces: Option<&'static str>,
    summary: &'static str,
    /// Gets the arguments after the applet's name; answers the process' exit code.
    run: fn(&[OsString]) -> u8,
}

/// The binary's own name; as `argv[0]` it is a program too, but its first argument may name another one.
const OWN_NAME: &str = "tandem";

const APPLETS: &[Applet] = &[
    Applet {
        name: "podman-etcd",
        replaces: None,
        summary: "OCF resource agent: a two-member etcd in podman",
        run: crate::agent::process::main,
    },
    Applet {
        name: "fence_redfish_rs",
        replaces: Some("fence_redfish"),
        summary: "fence agent: power through a Redfish BMC",
        run: crate::fence::process::main,
    },
    Applet {
        name: "tandem-release-locks",
        replaces: None,
        summary: "alert agent: a fenced node's locks",
        run: crate::admin::release_locks,
    },
    Applet {
        name: "tandem-alert",
        replaces: None,
        summary: "alert agent: what happened, as events",
        run: crate::admin::alert,
    },
    Applet {
        name: "watchdog-mux",
        replaces: None,
        summary: "daemon: one watchdog device for many programs",
        run: crate::watchdog::process::main,
    },
    Applet {
        name: "fencing-agent",
        replaces: None,
        summary: "daemon: members that reach each other, and a reset of a minority",
        run: crate::fencing_agent::process::main,
    },
    Applet { name: OWN_NAME, replaces: None, summary: "the operator's command", run: crate::admin::run },
];

/// Runs the program that `args` (with the program's name first) ask for.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    keep_memory_private();
    let mut args = args.into_iter();
    let invoked_as = args.next().unwrap_or_default();
    let base_name = name_of(Path::new(&invoked_as));
    let rest: Vec<OsString> = args.collect();
    ExitCode::from(dispatch(&base_name, rest))
}

/// The name of a program: the last part of its path. One that says little by itself counts in a directory of ours alone.
fn name_of(path: &Path) -> String {
    let last = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_ours = path.parent().is_some_and(|directory| directory.ends_with(OWN_NAME));
    if is_ours && last == "alert" { "tandem-alert".to_owned() } else { last }
}

/// No core dump: passwords and private keys pass through this memory. Programs that are started from here are not
/// concerned. Where the kernel refuses, the work goes on all the same.
fn keep_memory_private() {
    let _ = nix::sys::prctl::set_dumpable(false);
}

/// What a program makes is for its own user; a wider mode is set where it is wanted. What the operator's command starts, such as
/// pcs, makes files that others read, and none that others write.
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
