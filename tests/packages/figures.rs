//! The figures of the release binary: its size, its crates, and the cost of the action that Pacemaker calls most often
//! without need. The test prints them, and checks their limits. `make package` builds the binary and runs this.

#![expect(clippy::disallowed_methods, reason = "the test starts the binary as Pacemaker would")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

/// The largest allowed size of the installed binary, in bytes. A larger binary fails the test, so that a growth is a
/// deliberate decision. The test prints the present size.
const LARGEST_BINARY: u64 = 12_000_000;
const SHOWN_CRATES: usize = 15;
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

/// Returns the size of the binary in bytes as `make install` installs it. The build leaves the functions' names in it.
fn stripped_size() -> u64 {
    let place = tempfile::tempdir().unwrap();
    let stripped = place.path().join("tandem");
    assert!(Command::new("strip").arg("-o").arg(&stripped).arg(binary()).status().unwrap().success());
    std::fs::metadata(stripped).unwrap().len()
}

/// Returns the crate that wrote a function: the first name in the symbol. It is `core` for `<core::option::Option<T> as
/// Clone>::clone`.
fn crate_of(symbol: &str) -> &str {
    let begin = symbol.trim_start_matches(|c: char| !c.is_ascii_alphabetic() && c != '_');
    let begin = ["dyn ", "mut ", "const "].iter().fold(begin, |rest, word| rest.strip_prefix(word).unwrap_or(rest));
    let end = begin.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(begin.len());
    if begin[end..].starts_with("::") || begin[end..].starts_with('[') { &begin[..end] } else { "(no crate's)" }
}

/// Returns the bytes of each crate's functions, the largest first. `listing` is the output of `nm` about a binary with its
/// symbols.
fn by_crate(listing: &str) -> Vec<(String, u64)> {
    let mut sizes: BTreeMap<String, u64> = BTreeMap::new();
    for line in listing.lines() {
        let fields: Vec<&str> = line.splitn(4, ' ').collect();
        let [_, size, kind, symbol] = fields[..] else { continue };
        if kind.eq_ignore_ascii_case("t") {
            *sizes.entry(crate_of(symbol).to_owned()).or_default() += u64::from_str_radix(size, 16).unwrap();
        }
    }
    let mut rows: Vec<(String, u64)> = sizes.into_iter().collect();
    rows.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    rows
}

#[test]
fn the_binary_is_within_its_budget() {
    let bytes = stripped_size();
    println!("release binary: {bytes} bytes of {LARGEST_BINARY}; its functions, by the crate that wrote them:");
    let listing = Command::new("nm").args(["--print-size", "--demangle"]).arg(binary()).output().unwrap();
    assert!(listing.status.success(), "nm: {}", String::from_utf8_lossy(&listing.stderr));
    let rows = by_crate(&String::from_utf8_lossy(&listing.stdout));
    assert!(rows.iter().any(|(name, _)| name == "tandem"), "the binary has no names: {rows:?}");
    for (name, bytes) in rows.iter().take(SHOWN_CRATES) {
        println!("  {bytes:>9}  {name}");
    }
    assert!(bytes < LARGEST_BINARY, "{bytes} bytes");
}

#[test]
fn functions_are_counted_for_the_crate_that_wrote_them() {
    let listing = "0010 0010 t tandem::decide::decide\n\
        0020 0001 T <core::option::Option<T> as core::clone::Clone>::clone\n\
        0030 0002 t <&mut tandem::os::A as core::fmt::Debug>::fmt\n\
        0040 0004 t main\n0050 0008 r tandem::TABLE\n                 U memcpy";
    let rows = [("tandem", 18), ("(no crate's)", 4), ("core", 1)];
    assert_eq!(by_crate(listing), rows.map(|(name, bytes)| (name.to_owned(), bytes)));
}

/// Asserts that `podman-etcd meta-data` is fast and needs little memory. The median of the times counts, because the machine
/// has other load. The memory is the largest of any child of this test. It includes what the child shared with the test
/// before it loaded its own program, so it is an upper bound.
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
