//! Tests with devices as the kernel lists them, in a directory that replaces `/sys/class/watchdog`. `/dev/full` replaces the
//! device file.

use std::io::Read;

use nix::sys::stat::Mode;

use super::*;
use crate::adapters::command::fake_program;

/// The device number of `/dev/full`, which replaces a watchdog in tests. Hardly any program opens it, and each write to it fails.
const FULL: &str = "1:7";
const DEVICE: &str = "/dev/full";

/// Creates a directory like `/sys/class/watchdog` with one watchdog. `files` are its attributes by name; an empty text removes one.
fn kernel(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let entry = dir.path().join("watchdog3");
    fs::create_dir(&entry).unwrap();
    let usual =
        [("dev", FULL), ("identity", "Software Watchdog"), ("nowayout", "0"), ("state", "inactive"), ("timeout", "60")];
    for (name, text) in usual.iter().chain(files) {
        if text.is_empty() {
            fs::remove_file(entry.join(name)).unwrap();
        } else {
            fs::write(entry.join(name), format!("{text}\n")).unwrap();
        }
    }
    dir
}

fn wanted(path: impl Into<PathBuf>, sysfs: &Path) -> Wanted {
    Wanted {
        path: path.into(),
        timeout: Duration::from_secs(10),
        interval: Duration::from_secs(1),
        sysfs: sysfs.to_owned(),
        words: Words::Options,
    }
}

/// Returns the reason why `/dev/full` is refused as a watchdog with the attributes `files` in the kernel's directory.
fn refused(files: &[(&str, &str)]) -> String {
    let kernel = kernel(files);
    examine(wanted(DEVICE, kernel.path())).unwrap_err().to_string().replace(&kernel.path().display().to_string(), "SYS")
}

/// Creates a fake `wdctl` that runs `script`. In the script `$ENTRY` is the kernel's directory of the device.
fn with_wdctl(kernel: &Path, script: &str) -> (tempfile::TempDir, Programs) {
    let dir = tempfile::tempdir().unwrap();
    let entry = kernel.join("watchdog3").display().to_string();
    let script = format!("[ \"$*\" = '--settimeout 10 {DEVICE}' ] || exit 9\n{}", script.replace("$ENTRY", &entry));
    fake_program(dir.path(), "wdctl", &script);
    let programs = Programs::default().with_fakes(dir.path().to_owned());
    (dir, programs)
}

fn opened(files: &[(&str, &str)], script: &str) -> Result<About, String> {
    let kernel = kernel(files);
    let (_dir, programs) = with_wdctl(kernel.path(), script);
    let examined = examine(wanted(DEVICE, kernel.path())).unwrap();
    examined.open(&programs).map(|(_, about)| about).map_err(|why| why.to_string())
}

#[test]
fn what_is_no_watchdog_is_refused_with_what_to_type() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let why = |path: &Path| examine(wanted(path, dir.path())).unwrap_err().to_string();
    let missing = why(&dir.path().join("none"));
    assert!(missing.contains("'modprobe softdog'") && missing.contains("/etc/modules-load.d/"), "{missing}");
    let regular = why(&file);
    assert!(regular.contains(&format!("'rm {}'", file.display())), "{regular}");
    assert!(why(dir.path()).contains("is a directory, not a watchdog"), "{}", why(dir.path()));
    assert!(why(Path::new(DEVICE)).contains("is no watchdog that the kernel lists"), "{}", why(Path::new(DEVICE)));
}

#[test]
fn the_first_watchdog_is_found_by_both_of_its_device_numbers() {
    let kernel = kernel(&[]);
    fs::rename(kernel.path().join("watchdog3"), kernel.path().join("watchdog0")).unwrap();
    for number in [(1, 7), MISC] {
        assert!(Entry::of(kernel.path(), number).is_some_and(|entry| entry.dir.ends_with("watchdog0")), "{number:?}");
    }
    assert!(Entry::of(kernel.path(), (10, 131)).is_none());
    assert!(Entry::of(Path::new("/nowhere"), MISC).is_none());
}

#[test]
fn a_device_that_cannot_be_stopped_is_refused() {
    assert_eq!(
        refused(&[("nowayout", "1")]),
        "/dev/full (Software Watchdog) cannot be stopped once it runs: load its module with nowayout=0, as in \
         'modprobe softdog nowayout=0'"
    );
    let unknown = refused(&[("nowayout", "")]);
    assert!(
        unknown.starts_with("whether /dev/full can be stopped once it runs is not known (SYS/watchdog3/nowayout: ")
    );
    assert!(refused(&[("nowayout", "yes")]).contains("it has 'yes'"));
    assert!(refused(&[("state", "")]).contains("state cannot be examined"));
}

/// Asserts that the refusal of a busy device names the process. The test uses `/dev/random`, because other tests use `/dev/full` at the
/// same time.
#[test]
fn a_holder_is_named() {
    let kernel = kernel(&[("dev", "1:8")]);
    let random = File::open("/dev/random").unwrap();
    let holder = std::thread::spawn(move || {
        Programs::default().run_holding("sleep", &["3"], random, Duration::from_secs(20)).unwrap();
    });
    let end = crate::os::clock::Deadline::after(Duration::from_secs(2));
    let why = loop {
        if let Err(why) = examine(wanted("/dev/random", kernel.path())) {
            break why.to_string();
        }
        assert!(!end.has_passed());
        end.sleep(Duration::from_millis(20));
    };
    assert!(why.starts_with("/dev/random is busy: ") && why.contains("has it open: 'systemctl status "), "{why}");
    holder.join().unwrap();
}

#[test]
fn a_time_out_below_two_intervals_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut short = wanted("/dev/none", dir.path());
    short.timeout = Duration::from_secs(1);
    let why = examine(short).unwrap_err().to_string();
    assert_eq!(why, "a time-out of 1 s is less than two intervals of feeding: type '--timeout 2s' or more");
}

#[test]
fn the_time_out_is_set_before_the_device_is_opened() {
    let about = opened(&[], "echo 10 > $ENTRY/timeout").unwrap();
    assert_eq!(about.timeout, Duration::from_secs(10));
    assert_eq!((about.identity.as_str(), about.has_magic_close), ("Software Watchdog", Some(true)));
    assert_eq!(about.warnings, Vec::<String>::new());
}

#[test]
fn a_time_out_that_is_not_taken_is_refused_while_nothing_runs() {
    let other = opened(&[], "echo 16 > $ENTRY/timeout").unwrap_err();
    assert_eq!(other, "/dev/full took no time-out of 10 s, it has 16 s: type '--timeout 16s'");
    let failed = opened(&[], "echo 'wdctl: cannot set timeout' >&2; exit 1").unwrap_err();
    assert!(failed.contains("took no time-out of 10 s (wdctl: cannot set timeout)"), "{failed}");
    assert!(opened(&[], "echo 10 > $ENTRY/timeout; exit 1").is_err());
    assert!(opened(&[("timeout", "")], "exit 0").is_err(), "it cannot be read back");
}

/// Asserts that a device is accepted if `wdctl` has already started it. If it were refused, nothing would feed it and the machine would
/// reset.
#[test]
fn what_runs_after_wdctl_is_taken_over_with_whatever_time_out_it_has() {
    for script in ["echo 16 > $ENTRY/timeout; echo active > $ENTRY/state", "echo active > $ENTRY/state; exit 1"] {
        let about = opened(&[], script).unwrap();
        assert_eq!(about.has_magic_close, Some(false), "{script}");
        assert!(about.warnings[0].contains("no magic close"), "{:?}", about.warnings);
    }
    let about = opened(&[], "echo 16 > $ENTRY/timeout; echo active > $ENTRY/state").unwrap();
    assert_eq!(about.timeout, Duration::from_secs(16), "as read back");
    assert_eq!(about.warnings.last().unwrap(), "its time-out is 16 s, not 10 s");
}

#[test]
fn what_runs_before_is_not_disarmed_by_wdctl() {
    let about = opened(&[("state", "active"), ("timeout", "30")], "echo 1 > $ENTRY/timeout").unwrap();
    assert_eq!((about.timeout, about.has_magic_close), (Duration::from_secs(30), None));
    assert!(about.warnings[0].contains("taken over"), "{:?}", about.warnings);
}

#[test]
fn a_fifo_shows_each_byte() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("watchdog");
    nix::unistd::mkfifo(&path, Mode::S_IRWXU).unwrap();
    let examined = examine(wanted(&path, dir.path())).unwrap();
    assert!(examined.is_fifo());
    let (mut device, about) = examined.open(&Programs::default()).unwrap();
    assert_eq!(about.warnings, ["it is a FIFO: nothing resets this machine"]);
    let mut reader = File::open(&path).unwrap();
    device.feed().unwrap();
    device.feed().unwrap();
    device.disarm().unwrap();
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, b"\0\0V");
}
