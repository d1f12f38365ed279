//! Tests of podman's temporary failures, with a podman that fails on demand.

use std::path::Path;

use super::*;
use crate::adapters::command::fake_program;

/// A fake podman. Each `run` or `start` fails as the next line of the file `failures` defines. It records its arguments in the file
/// `asked`.
const FAILING: &str = r#"cd DIRECTORY
echo "$*" >> asked
case $1 in run | start) ;; *) exit 0 ;; esac
[ -s failures ] || exit 0
code=$(head -n 1 failures | cut -d' ' -f1)
head -n 1 failures | cut -d' ' -f2- >&2
sed -i 1d failures
exit "$code"
"#;

/// Creates a fake podman. Its next calls of `run` or `start` fail with the exit codes and texts in `failures`.
fn failing(directory: &Path, failures: &[&str]) -> Programs {
    let lines = failures.iter().flat_map(|line| [*line, "\n"]).collect::<String>();
    std::fs::write(directory.join("failures"), lines).unwrap();
    fake_program(directory, "podman", &FAILING.replace("DIRECTORY", &directory.display().to_string()))
}

fn asked(directory: &Path) -> Vec<String> {
    std::fs::read_to_string(directory.join("asked")).unwrap().lines().map(str::to_owned).collect()
}

fn container_lock(directory: &Path) -> ContainerLock {
    ContainerLock::at(directory.join("turn"))
}

fn in_seconds(seconds: u64) -> Deadline {
    Deadline::after(Duration::from_secs(seconds))
}

const LOST_STORAGE: &str = "125 Error: the container name \"etcd\" is already in use";
const LOST_RACE: &str = "127 Error: unit libpod-1.scope: cgroup v2: scope not found";

#[test]
fn a_container_that_podman_has_lost_is_removed_from_its_storage_once() {
    let dir = tempfile::tempdir().unwrap();
    let programs = failing(dir.path(), &[LOST_STORAGE]);
    run(&programs, &container_lock(dir.path()), "etcd", &["image".to_owned()], in_seconds(30)).unwrap();
    assert_eq!(asked(dir.path()), ["run --detach image", "rm --storage etcd", "run --detach image"]);

    let dir = tempfile::tempdir().unwrap();
    let programs = failing(dir.path(), &[LOST_STORAGE, LOST_STORAGE, LOST_STORAGE]);
    let error = run(&programs, &container_lock(dir.path()), "etcd", &["image".to_owned()], in_seconds(30)).unwrap_err();
    assert!(matches!(error, Error::Failed { code: 125, .. }), "{error}");
    assert_eq!(asked(dir.path()).len(), 3, "once, not for ever");

    let dir = tempfile::tempdir().unwrap();
    let programs = failing(dir.path(), &["126 Error: no such program in the image"]);
    assert!(run(&programs, &container_lock(dir.path()), "etcd", &["image".to_owned()], in_seconds(30)).is_err());
    assert_eq!(asked(dir.path()), ["run --detach image"], "another failure is no lost container");
}

#[test]
fn a_race_that_podman_lost_is_run_again_until_it_is_won() {
    let dir = tempfile::tempdir().unwrap();
    let programs = failing(dir.path(), &[LOST_RACE, LOST_RACE]);
    start(&programs, &container_lock(dir.path()), "etcd", in_seconds(30)).unwrap();
    assert_eq!(asked(dir.path()), ["start etcd"; 3]);

    let dir = tempfile::tempdir().unwrap();
    let programs = failing(dir.path(), &["127 Error: command not found", LOST_RACE]);
    assert!(start(&programs, &container_lock(dir.path()), "etcd", in_seconds(30)).is_err());
    assert_eq!(asked(dir.path()).len(), 1, "another failure with that code is no race");
}

#[test]
fn a_race_is_not_run_again_past_the_end_of_the_action() {
    let dir = tempfile::tempdir().unwrap();
    let programs = failing(dir.path(), &[LOST_RACE; 10]);
    let began = std::time::Instant::now();
    let error = start(&programs, &container_lock(dir.path()), "etcd", Deadline::after(Duration::from_millis(1500)))
        .unwrap_err();
    assert!(matches!(error, Error::Failed { code: 127, .. }), "{error}");
    assert!(began.elapsed() < Duration::from_secs(5));
}
