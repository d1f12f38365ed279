//! Performs an action. Only this file changes anything on a node.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Component, Path};
use std::time::Duration;

use super::action::{Action, File};
use super::description::Description;
use super::found_file::is_private;
use crate::adapters::command::Programs;
use crate::base::shell;
use crate::records::state_file;

/// Timeout of podman. It is long, because an image may be large and its registry distant.
const PULL: Duration = Duration::from_secs(600);
/// Timeout of pcs. It is long, because pcs waits for the other node's pcsd and for the cluster's start.
const PCS: Duration = Duration::from_secs(600);
const OTHERS: Duration = Duration::from_secs(300);
/// Names of all programs that a setup step may run.
const PROGRAMS: [&str; 5] = ["chmod", "pcs", "podman", "rm", "systemctl"];
/// The directory of all files that a setup step writes, except password files.
const DIRECTORY: &str = "/etc/tandem";

/// Runs the command or writes the file of `action`. An error has the command and its output.
pub fn apply(programs: &Programs, action: &Action) -> Result<(), String> {
    match action {
        Action::Command(words) => {
            command(programs, words)?;
            // pcs, pcsd and podman rename and write without a sync. A step that is done is not examined again, so a
            // power cut must not undo it. An empty Corosync key, for example, prevents Corosync's start.
            command(programs, &["sync".to_owned()])
        }
        Action::Write(file) => write(file),
    }
}

fn command(programs: &Programs, words: &[String]) -> Result<(), String> {
    let Some((program, arguments)) = words.split_first() else { return Ok(()) };
    let limit = match program.as_str() {
        "podman" => PULL,
        "pcs" => PCS,
        _ => OTHERS,
    };
    let typed = || shell::line(words);
    let output = programs.run(program, arguments, limit).map_err(|error| format!("{}: {error}", typed()))?;
    if output.code == 0 {
        return Ok(());
    }
    Err(format!("{} failed ({}): {}", typed(), output.code, said(&output.stdout, &output.stderr)))
}

/// Returns a failed program's output on one line: the lines that begin with Error, or all lines if there are none.
fn said(stdout: &str, stderr: &str) -> String {
    const LONGEST: usize = 600;
    let text = if stderr.trim().is_empty() { stdout } else { stderr };
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let errors: Vec<&str> = lines.iter().copied().filter(|line| line.starts_with("Error")).collect();
    let told = if errors.is_empty() { lines } else { errors };
    let told = told.join("; ");
    if told.is_empty() { "it said nothing".to_owned() } else { told.chars().take(LONGEST).collect() }
}

/// Writes a file and creates its directories. A directory is private if the file is.
fn write(file: &File) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{} cannot be written: {error}", file.path.display());
    if let Some(directory) = file.path.parent() {
        let mode = if is_private(file.mode) { 0o700 } else { 0o755 };
        let top = Path::new(DIRECTORY);
        if directory.starts_with(top) && directory != top {
            DirBuilder::new().recursive(true).mode(0o755).create(top).map_err(failed)?;
        }
        DirBuilder::new().recursive(true).mode(mode).create(directory).map_err(failed)?;
    }
    state_file::replace(&file.path, &file.content, file.mode).map_err(failed)
}

/// Returns whether `action`, which the other node sent, is one that a setup of the described cluster can contain.
pub fn is_of_setup(action: &Action, description: &Description) -> bool {
    match action {
        Action::Command(words) => words.first().is_some_and(|program| PROGRAMS.contains(&program.as_str())),
        Action::Write(file) => {
            let is_plain = file.path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
            let is_password = description.nodes.iter().any(|node| node.bmc.password_file == file.path);
            is_plain && (is_password || file.path.starts_with(DIRECTORY))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use zeroize::Zeroizing;

    use super::*;
    use crate::adapters::command::fake_program;
    use crate::operate::setup::file;

    fn words(text: &str) -> Action {
        Action::Command(text.split(' ').map(str::to_owned).collect())
    }

    #[test]
    fn a_failure_has_the_programs_own_words() {
        let dir = tempfile::tempdir().unwrap();
        let script = "echo Warning: old >&2; echo 'Error: node2: Unable to authenticate' >&2; echo 'Error: Errors have occurred' >&2; exit 1";
        let programs = fake_program(dir.path(), "pcs", script);
        let why = apply(&programs, &words("pcs host auth node1")).unwrap_err();
        assert_eq!(
            why,
            "pcs host auth node1 failed (1): Error: node2: Unable to authenticate; Error: Errors have occurred"
        );
        let map = words("pcs resource update etcd node_ip_map=node1:192.0.2.1;node2:192.0.2.2");
        let why = apply(&programs, &map).unwrap_err();
        let pasted = "pcs resource update etcd 'node_ip_map=node1:192.0.2.1;node2:192.0.2.2' failed (1)";
        assert!(why.starts_with(pasted), "a shell takes it as it is: {why}");
        assert!(apply(&fake_program(dir.path(), "pcs", "exit 0"), &words("pcs status")).is_ok());
    }

    #[test]
    fn what_a_command_has_written_is_on_the_disk_before_the_next_one() {
        let dir = tempfile::tempdir().unwrap();
        let typed = dir.path().join("typed");
        let note = |word: &str| format!("echo {word} >> {}", typed.display());
        fake_program(dir.path(), "pcs", &note("pcs"));
        let programs = fake_program(dir.path(), "sync", &note("sync"));
        apply(&programs, &words("pcs cluster setup tandem")).unwrap();
        assert_eq!(std::fs::read_to_string(&typed).unwrap(), "pcs\nsync\n");
    }

    #[test]
    fn a_file_has_its_mode_and_so_has_a_directory_that_is_made_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/secret");
        let content = Zeroizing::new(b"hunter2\n".to_vec());
        let file = File { path: path.clone(), mode: 0o600, content, what: "a password".to_owned() };
        assert!(!format!("{file:?}").contains("hunter2"));
        apply(&Programs::default(), &Action::Write(file)).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert_eq!(std::fs::read(&path).unwrap(), b"hunter2\n");
    }

    #[test]
    fn nothing_else_is_done_for_the_other_node() {
        let described = file::read(file::EXAMPLE).unwrap();
        let write = |path: &str| {
            Action::Write(File { path: path.into(), mode: 0o600, content: Zeroizing::default(), what: String::new() })
        };
        assert!(is_of_setup(&words("pcs cluster start"), &described));
        assert!(is_of_setup(&write("/etc/tandem/pki/ca.key"), &described));
        for wrong in [words("sh -c true"), words("/bin/sh"), write("/etc/shadow"), write("/etc/tandem/../shadow")] {
            assert!(!is_of_setup(&wrong, &described), "{wrong:?}");
        }
    }
}
