//! A data disk that is not mounted. The agent, with scripts in place of podman and Pacemaker's tools, launches nothing
//! on the empty mount point. Needs root, as `killed_agent` does.

#![allow(clippy::unwrap_used, reason = "what fails here ends the test")]

use std::path::Path;
use std::time::Duration;

use tandem::os::clock::Deadline;

use super::killed_agent::{STAGE, agent, etcd_lives, in_namespaces, kill_group, position_of, set_the_stage, told};
use crate::namespaces::program;

fn shell(text: &str) {
    assert!(program("/bin/sh").args(["-c", text]).status().unwrap().success(), "{text}");
}

/// Runs a start until the container is launched and `is_over` returns true, kills it, and runs a stop.
fn start_and_stop(from: usize, is_over: fn() -> bool) {
    let start = agent("start", 600).spawn().unwrap();
    let patience = Deadline::after(Duration::from_secs(20));
    while position_of("launched", from).is_none() || !is_over() {
        assert!(!patience.has_passed(), "{}", told());
        patience.sleep(Duration::from_millis(20));
    }
    kill_group(start);
    assert_eq!(agent("stop", 90).status().unwrap().code(), Some(0), "{}", told());
    assert!(!etcd_lives(), "{}", told());
}

#[test]
fn nothing_is_launched_on_the_mount_point_of_a_disk_that_is_not_mounted() {
    in_namespaces(module_path!(), "nothing_is_launched_on_the_mount_point_of_a_disk_that_is_not_mounted", || {
        set_the_stage();
        let mount = format!("mkdir -p {STAGE}/data && mount -t tmpfs disk1 {STAGE}/data");
        shell(&mount);
        start_and_stop(0, || Path::new("/var/lib/tandem/data-mount-etcd.json").exists());
        shell(&format!("umount {STAGE}/data && rm -f {STAGE}/asked"));
        assert_eq!(agent("start", 60).status().unwrap().code(), Some(1), "{}", told());
        let why = format!("the file system that held the data (disk1, tmpfs) is not mounted at {STAGE}/data");
        assert!(told().contains(&why) && position_of("run --detach", 0).is_none(), "{}", told());
        shell(&mount);
        start_and_stop(0, || true);
    });
}
