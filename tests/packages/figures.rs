//! How large the release binary is, and what the action costs that Pacemaker asks for most often without need: it prints
//! the figures and holds them to their limits. `make package` builds the binary and runs this.

#![expect(clippy::disallowed_methods, reason = "the test starts the binary as Pacemaker would")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

const LARGEST_BINARY: u64 = 10_000_000;
const SLOWEST_METADATA: Duration = Duration::from_millis(5);
const LARGEST_RESIDENT_KIB: i64 = 10 * 1024;
const RUNS: usize = 200;

fn binary() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(target).join("release/tandem");
    assert!(path.exists(), "{} is missing: type 'make build'", path.display());
    path
}

fn metadata() -> Command {
    let mut command = Command::new(binary());
    command.args(["podman-etcd", "meta-data"]).env_clear().stdout(Stdio::null());
    command
}

#[test]
fn the_binary_is_small() {
    let bytes = std::fs::metadata(binary()).unwrap().len();
    println!("release binary: {bytes} bytes");
    assert!(bytes < LARGEST_BINARY, "{bytes} bytes");
}

/// The median counts: the machine does other things, too. The memory is the largest that any child of this test ever
/// had, what it shared with the test before its own program was loaded included: an upper bound.
#[test]
fn meta_data_is_quick_and_light() {
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let began = Instant::now();
            assert!(metadata().status().unwrap().success());
            began.elapsed()
        })
        .collect();
    times.sort();
    let (least, median) = (times[0], times[RUNS / 2]);
    let resident = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss();
    println!("podman-etcd meta-data: least {least:?}, median of {RUNS} {median:?}, at most {resident} KiB resident");
    assert!(median < SLOWEST_METADATA, "{median:?}");
    assert!(resident < LARGEST_RESIDENT_KIB, "{resident} KiB");
}
