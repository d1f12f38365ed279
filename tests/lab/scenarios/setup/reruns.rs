//! `tandem setup` in a finished state: it checks, and changes nothing.

use super::described::FILE;
use super::snapshot;
use super::typed::{HERE, THERE, join_line, typed};
use crate::host;
use crate::host::state::Lab;
use crate::sh::Result;

const TRACE: &str = "/var/tmp/setup.trace";
/// The programs that a second `tandem setup` may run, each with the values that its first argument may have. With these the program
/// changes nothing. An empty list allows any argument.
const LOOKING: &[(&str, &[&str])] = &[
    ("tandem", &[]),
    ("fence_redfish_rs", &[]),
    ("cibadmin", &["--query", "-Q"]),
    ("crm_mon", &[]),
    ("crm_node", &[]),
    ("corosync-cmapctl", &[]),
    ("corosync-quorumtool", &[]),
    ("corosync-cfgtool", &["-s", "-n"]),
    ("podman", &["image", "images", "ps", "inspect", "version", "info", "container"]),
    ("systemctl", &["is-active", "is-enabled", "cat", "show", "list-unit-files"]),
    // The lab's systemctl runs this.
    ("exe", &["host-systemctl"]),
    ("pcs", &["--version", "status", "config"]),
    ("attrd_updater", &["--query", "-Q"]),
    ("crm_attribute", &["--query", "-G"]),
    ("crm_resource", &["--locate", "--query", "--list", "-W", "--resource"]),
    ("stonith_admin", &["--list", "--list-registered", "--history", "-L", "-H"]),
    // podman's own programs.
    ("conmon", &["--version"]),
    ("runc", &["--version"]),
    ("runc-lab", &["--version"]),
    ("true", &[]),
];

/// Checks that `tandem setup --dry-run` lists the work before any step, and leaves both nodes unchanged.
pub fn shows_what_is_to_do(lab: &Lab) -> Result<()> {
    let before = snapshot::exact(lab)?;
    let done = typed(lab, HERE, &format!("tandem setup {FILE} --dry-run"))?;
    done.must_be(3)?;
    for words in ["pcs cluster setup", "pcs stonith create", "pcs resource create"] {
        if !done.said.contains(words) {
            return Err(format!("--dry-run does not show '{words}': {}", done.said).into());
        }
    }
    match snapshot::difference(&before, &snapshot::exact(lab)?) {
        None => Ok(()),
        Some(difference) => Err(format!("--dry-run has changed something: {difference}").into()),
    }
}

/// Checks that `tandem setup join --dry-run` lists the other node's work while the first node's command waits. It
/// must leave both nodes and the join file unchanged.
pub fn join_shows_what_is_to_do(lab: &Lab) -> Result<()> {
    let before = snapshot::exact(lab)?;
    let done = typed(lab, THERE, &format!("{} --dry-run", join_line()))?;
    done.must_be(3)?;
    for words in [format!("pcsd, and its token on {THERE}"), "systemctl enable --now pcsd".to_owned()] {
        if !done.said.contains(&words) {
            return Err(format!("join --dry-run does not show '{words}': {}", done.said).into());
        }
    }
    match snapshot::difference(&before, &snapshot::exact(lab)?) {
        None => Ok(()),
        Some(difference) => Err(format!("join --dry-run has changed something: {difference}").into()),
    }
}

/// Checks that a second `tandem setup` runs no program that changes anything, and that nothing changes. The same
/// holds for `--dry-run`, which must report that all is done.
pub fn changes_nothing(lab: &Lab) -> Result<()> {
    let configuration = snapshot::configuration(lab)?;
    let modes = snapshot::modes(lab)?;
    for (what, line) in [("typed again", "tandem setup"), ("--dry-run", "tandem setup --dry-run")] {
        let traced = format!("strace -f -q -e trace=execve -s 400 -o {TRACE} {line} {FILE}");
        let done = typed(lab, HERE, &traced)?;
        done.must_be(0).map_err(|error| format!("{what}: {error}"))?;
        println!("   {what}: {:.1} s", done.took.as_secs_f64());
        let changing = changing(&host::must(lab, HERE, &["cat", TRACE])?);
        if !changing.is_empty() {
            return Err(format!("{what}, it executed {}", changing.join("; ")).into());
        }
    }
    let now = snapshot::configuration(lab)?;
    if let Some(line) = configuration.symmetric_difference(&now).next() {
        return Err(format!("typed again, it has changed the configuration: {line}").into());
    }
    match snapshot::difference(&modes, &snapshot::modes(lab)?) {
        None => Ok(()),
        Some(difference) => Err(format!("typed again, it has changed files: {difference}").into()),
    }
}

/// Returns the command lines in `trace` that may have changed something.
fn changing(trace: &str) -> Vec<String> {
    let executed = trace.lines().filter(|line| line.contains("execve(") && line.trim_end().ends_with("= 0"));
    let mut found: Vec<String> =
        executed.filter_map(words).filter(|words| !only_looks(words)).map(|words| words.join(" ")).collect();
    found.sort();
    found.dedup();
    found
}

/// Parses `[pid] execve("/usr/sbin/pcs", ["pcs", "status"], ...) = 0` into the called program and its arguments.
fn words(line: &str) -> Option<Vec<String>> {
    let (_, list) = line.split_once(", [")?;
    let (list, _) = list.split_once(']')?;
    let mut words: Vec<String> = list.split("\", \"").map(|word| word.trim_matches('"').to_owned()).collect();
    let program = words.first_mut()?;
    *program = program.rsplit('/').next()?.to_owned();
    Some(words)
}

fn only_looks(words: &[String]) -> bool {
    // An interpreter runs a script, and the script was executed under its own name before.
    let Some((program, rest)) = words.split_first() else { return true };
    if program.starts_with("python3") || program == "sh" || program == "ruby" {
        return true;
    }
    // A query of the program's version.
    if matches!(rest, [word] if word == "--version" || word == "-v") {
        return true;
    }
    let known = LOOKING.iter().find(|(name, _)| name == program);
    known.is_some_and(|(_, looks)| {
        looks.is_empty() || rest.iter().any(|word| looks.contains(&word.as_str()) || is_config(word))
    })
}

/// Returns whether a command line's argument makes it a query, as in `pcs stonith config` or `pcs property config`.
fn is_config(word: &str) -> bool {
    word == "config" || word == "status"
}
