//! The directory of a lab, with all its files. It must be on a real file system, because podman's overlay driver needs
//! one.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::fcntl::{Flock, FlockArg};

use crate::host::node::Node;
use crate::sh::{self, Result};

const ROOT: &str = "/var/lib/tandem-lab";
/// The directory of this machine for the logs of failed runs. They outlive the lab.
pub const FAILED_LOGS: &str = "/var/tmp/tandem-lab-logs";

/// A lab with its name and its directories. All functions of the lab take it as an argument.
#[derive(Clone, Debug)]
pub struct Lab {
    pub name: String,
}

impl Lab {
    pub fn named(name: &str) -> Result<Self> {
        let fits = (1..=20).contains(&name.len())
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            && name.starts_with(|c: char| c.is_ascii_lowercase());
        if fits {
            Ok(Self { name: name.to_owned() })
        } else {
            Err(format!("'{name}' cannot name a lab; type 1 to 20 lower-case letters, digits or '-'").into())
        }
    }

    pub fn dir(&self) -> PathBuf {
        Path::new(ROOT).join(&self.name)
    }

    pub fn exists(&self) -> bool {
        self.dir().is_dir()
    }

    pub fn must_exist(&self) -> Result<()> {
        if self.exists() { Ok(()) } else { Err("the lab is not up; type 'cargo lab up'".into()) }
    }

    pub fn pki(&self) -> PathBuf {
        self.dir().join("pki")
    }

    pub fn node_dir(&self, node: Node) -> PathBuf {
        self.dir().join(node.name())
    }

    /// Returns the directory with the content of one of the node's disks. `role` is `etc`, `usr`, `var-lib`, `var-log` or
    /// `var-tmp`.
    pub fn disk(&self, node: Node, role: &str) -> PathBuf {
        self.node_dir(node).join("disk").join(role)
    }

    /// Returns the path of the host's syslog, which the host sees as `/var/log/messages`.
    pub fn messages(&self, node: Node) -> PathBuf {
        self.disk(node, "var-log").join("messages")
    }

    /// Returns the directory with those decisions of the node's agent that were replayed last.
    pub fn taken_decisions(&self, node: Node) -> PathBuf {
        self.node_dir(node).join("decisions")
    }

    /// Returns the path of the file that names the host's pid 1.
    pub fn init_record(&self, node: Node) -> PathBuf {
        self.node_dir(node).join("init.pid")
    }

    pub fn bmc_record(&self) -> PathBuf {
        self.dir().join("bmc.pid")
    }

    pub fn bmc_log(&self) -> PathBuf {
        self.dir().join("bmc.log")
    }

    /// Returns the path of the log of the lab's own actions: power, network, and killed processes.
    pub fn events(&self) -> PathBuf {
        self.dir().join("events.log")
    }

    /// Returns a setting that the commands on this lab share, such as the etcd version or a BMC's mode. `None` if it
    /// is not set.
    pub fn setting(&self, key: &str) -> Option<String> {
        fs::read_to_string(self.dir().join("settings").join(key)).ok().map(|text| text.trim().to_owned())
    }

    pub fn set(&self, key: &str, value: &str) -> Result<()> {
        let dir = self.dir().join("settings");
        sh::make_dir(&dir)?;
        sh::write(&dir.join(key), value)
    }

    /// Appends a line to the log of the lab's own actions.
    pub fn event(&self, text: &str) {
        append_stamped(&self.events(), "lab", text);
    }

    /// Locks the lab for one command, until the lock is dropped. Fails if another command holds the lock.
    pub fn lock_whole(&self) -> Result<Flock<fs::File>> {
        let dir = fs::File::open(self.dir())?;
        Flock::lock(dir, FlockArg::LockExclusiveNonblock)
            .map_err(|(_, errno)| format!("cannot lock {}: {errno}", self.dir().display()).into())
    }

    /// Locks the power of one host until the lock is dropped, so that two commands do not switch it at once.
    pub fn lock(&self, node: Node) -> Result<Flock<fs::File>> {
        let path = self.node_dir(node).join("power.lock");
        let file = fs::File::create(&path).map_err(|error| format!("cannot open {}: {error}", path.display()))?;
        Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, errno)| format!("cannot lock {node}: {errno}").into())
    }
}

/// Removes the directory that holds all labs, if no lab is left in it.
pub fn remove_root_if_empty() {
    let _ = fs::remove_dir(ROOT);
}

/// Returns the names of all labs that have a directory.
pub fn all_labs() -> Vec<String> {
    let Ok(entries) = fs::read_dir(ROOT) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Appends one line `TIME SOURCE: TEXT` to a log, in the form that [`crate::judge::timeline`] merges.
pub fn append_stamped(path: &Path, source: &str, text: &str) {
    if let Ok(mut file) = fs::OpenOptions::new().append(true).create(true).open(path) {
        // The line is one write, so that lines of several processes do not mix.
        let _ = file.write_all(format!("{} {source}: {text}\n", stamp(since_epoch())).as_bytes());
    }
}

/// Returns the wall-clock time since 1970, for labels and to set a machine's clock.
pub fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Formats a time since 1970 as `2026-11-21T07:03:11.123Z`, which sorts as text.
pub fn stamp(since_epoch: Duration) -> String {
    let seconds = since_epoch.as_secs();
    let (year, month, day) = civil(seconds / 86_400);
    let of_day = seconds % 86_400;
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60,
        since_epoch.subsec_millis()
    )
}

/// Converts days since 1970 to year, month and day. It counts in 400-year eras that begin in March, so that the leap
/// day comes last.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year + era * 400 + u64::from(month <= 2), month, day)
}

/// Returns the time from `since_epoch` to the next moment with the time of day in `stamp`. If that is more than half a day, the stamp is
/// older than `since_epoch`, and the result is zero.
pub fn since_stamp(stamp: &str, since_epoch: Duration) -> Duration {
    const DAY: u64 = 86_400_000;
    let number = |from: usize, to: usize| stamp.get(from..to).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    let of_day = ((number(11, 13) * 60 + number(14, 16)) * 60 + number(17, 19)) * 1000 + number(20, 23);
    let base = u64::try_from(since_epoch.as_millis()).unwrap_or(0) % DAY;
    let ahead = (of_day + DAY - base) % DAY;
    // The stamp is older, so no time has passed.
    Duration::from_millis(if ahead > DAY / 2 { 0 } else { ahead })
}
