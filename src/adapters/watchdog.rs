//! A watchdog device: examined before it is opened, opened with its time-out set, fed with a zero byte, and disarmed with `V`.
//!
//! This module does not know the clients. It reads the kernel's data about the device from `/sys/class/watchdog`, so that it
//! needs no `ioctl`. util-linux's `wdctl` sets the time-out. In tests a FIFO replaces the device, and its reader sees each byte.

pub(crate) mod refusal;

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::{major, minor};

use self::refusal::{Holder, Refusal, Words};
use crate::adapters::command::Programs;
use crate::os::proc;

/// The directory in which the kernel lists the watchdog devices.
pub(crate) const SYSFS: &str = "/sys/class/watchdog";
/// The device number (major, minor) of `/dev/watchdog`, which is another name of the first watchdog.
const MISC: (u64, u64) = (10, 130);
const FIRST: &str = "watchdog0";
/// The byte that is written to feed the watchdog. Any byte but `V` does.
const FOOD: &[u8] = &[0];
/// The byte of the magic close: if it was written last, closing the device stops the watchdog.
const MAGIC: &[u8] = b"V";
/// The time limit of `wdctl`, which opens the device, sets the time-out and closes it.
const WDCTL_TIME: Duration = Duration::from_secs(10);

/// The path of a watchdog device, and the settings that the caller wants.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) path: PathBuf,
    pub(crate) timeout: Duration,
    /// The interval at which the watchdog will be fed.
    pub(crate) interval: Duration,
    /// The kernel's directory of watchdogs, [`SYSFS`], or its replacement in a test.
    pub(crate) sysfs: PathBuf,
    /// The kind of interface by which the operator sets device and time-out. Error texts name its options or keys.
    pub(crate) words: Words,
}

/// A watchdog device that was checked and may be opened.
#[derive(Clone, Debug)]
pub(crate) struct Examined {
    wanted: Wanted,
    /// The kernel's data about the device; `None` for a FIFO, which tests use in place of a device.
    entry: Option<Entry>,
}

/// The properties of an open watchdog device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct About {
    pub(crate) path: PathBuf,
    pub(crate) identity: String,
    /// The time-out that the kernel reports. It may differ from the time-out that the caller wants.
    pub(crate) timeout: Duration,
    /// True if writing `V` and closing stops the device; `None` if that is unknown, because another program has left the device running.
    pub(crate) has_magic_close: Option<bool>,
    /// Warnings for the operator.
    pub(crate) warnings: Vec<String>,
}

/// An open watchdog device, which is therefore running. If this value is dropped, the device is closed without `V`, and the
/// machine resets.
#[derive(Debug)]
pub(crate) struct Device {
    file: File,
}

impl Device {
    pub(crate) fn feed(&mut self) -> io::Result<()> {
        self.file.write_all(FOOD)
    }

    /// Closes the device after writing `V`. That stops the watchdog, unless it lacks the magic close.
    pub(crate) fn disarm(mut self) -> io::Result<()> {
        self.file.write_all(MAGIC)
    }
}

/// Checks whether the watchdog device may be opened, without opening it.
pub(crate) fn examine(wanted: Wanted) -> Result<Examined, Refusal> {
    let least = 2 * wanted.interval.as_secs();
    if wanted.timeout.as_secs() < least {
        return Err(Refusal::ShortTimeout { seconds: wanted.timeout.as_secs(), least, words: wanted.words });
    }
    let path = &wanted.path;
    let found = match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(Refusal::Missing(path.clone())),
        found => found.map_err(|source| Refusal::Unreadable { device: path.clone(), source })?,
    };
    let kind = found.file_type();
    let other = |kind| Refusal::OtherKind { device: path.clone(), kind, words: wanted.words };
    if kind.is_fifo() {
        return Ok(Examined { wanted, entry: None });
    } else if kind.is_file() {
        return Err(Refusal::RegularFile(path.clone()));
    } else if !kind.is_char_device() {
        return Err(other(if kind.is_dir() { "a directory" } else { "a socket or a disk" }));
    }
    let number = (major(found.rdev()), minor(found.rdev()));
    let entry = Entry::of(&wanted.sysfs, number).ok_or_else(|| Refusal::NotListed(path.clone()))?;
    entry.check_free(path)?;
    entry.check_way_out(path)?;
    entry.is_active().map_err(|source| Refusal::Unreadable { device: entry.dir.join("state"), source })?;
    Ok(Examined { wanted, entry: Some(entry) })
}

impl Examined {
    pub(crate) fn is_fifo(&self) -> bool {
        self.entry.is_none()
    }

    /// Returns whether the watchdog is running already, because an earlier program has not stopped it; `None` for a FIFO.
    pub(crate) fn is_running(&self) -> Option<bool> {
        self.entry.as_ref().map(|entry| entry.is_active().unwrap_or(true))
    }

    /// Opens the watchdog device. From here on the caller must feed it, or the machine resets.
    pub(crate) fn open(self, programs: &Programs) -> Result<(Device, About), Refusal> {
        let Some(entry) = &self.entry else { return self.open_fifo() };
        let wanted_s = self.wanted.timeout.as_secs();
        let was_active = entry.is_active().unwrap_or(true);
        let mut warnings = Vec::new();
        let mut has_magic_close = None;
        if was_active {
            warnings.push("another program has left it running; it is taken over".to_owned());
        } else {
            let set = self.set_timeout(programs);
            // wdctl has closed the device with `V`. A device that is still running must be fed now, whatever its time-out is.
            let is_stopped = entry.is_active().is_ok_and(|active| !active);
            has_magic_close = Some(is_stopped);
            if is_stopped {
                set?;
                self.check_taken(entry, wanted_s)?;
            } else {
                warnings.push("it has no magic close: once this program ends, the machine resets".to_owned());
                warnings.extend(set.err().map(|why| why.to_string()));
            }
        }
        let file = self.opened(OpenOptions::new().write(true), entry)?;
        let timeout = entry.timeout().unwrap_or(self.wanted.timeout);
        if timeout != self.wanted.timeout {
            warnings.push(format!("its time-out is {} s, not {wanted_s} s", timeout.as_secs()));
        }
        let identity = entry.identity();
        Ok((Device { file }, About { path: self.wanted.path, identity, timeout, has_magic_close, warnings }))
    }

    fn set_timeout(&self, programs: &Programs) -> Result<(), Refusal> {
        let seconds = self.wanted.timeout.as_secs();
        let path = self.wanted.path.to_string_lossy();
        let arguments = ["--settimeout", &seconds.to_string(), &path];
        let why = match programs.run("wdctl", &arguments, WDCTL_TIME) {
            Ok(output) if output.code == 0 => return Ok(()),
            Ok(output) => output.complaint().to_owned(),
            Err(error) => error.to_string(),
        };
        Err(Refusal::NoTimeout { device: self.wanted.path.clone(), wanted: seconds, why, words: self.wanted.words })
    }

    fn check_taken(&self, entry: &Entry, wanted: u64) -> Result<(), Refusal> {
        let (device, words) = (self.wanted.path.clone(), self.wanted.words);
        match entry.timeout() {
            Ok(taken) if taken.as_secs() == wanted => Ok(()),
            Ok(taken) => Err(Refusal::OtherTimeout { device, wanted, taken: taken.as_secs(), words }),
            Err(error) => Err(Refusal::NoTimeout { device, wanted, why: error.to_string(), words }),
        }
    }

    fn opened(&self, options: &mut OpenOptions, entry: &Entry) -> Result<File, Refusal> {
        let device = self.wanted.path.clone();
        options.open(&device).map_err(|source| match source.raw_os_error().map(Errno::from_raw) {
            Some(Errno::EBUSY) => entry.check_free(&device).err().unwrap_or(Refusal::Busy(device)),
            _ => Refusal::Open { device, source },
        })
    }

    /// Opens a FIFO in place of a device, for reading and writing. Opening then does not wait for a reader, and writes do not fail when a
    /// reader ends.
    fn open_fifo(self) -> Result<(Device, About), Refusal> {
        let path = self.wanted.path;
        let opened = OpenOptions::new().read(true).write(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(&path);
        let file = opened.map_err(|source| Refusal::Open { device: path.clone(), source })?;
        let about = About {
            path,
            identity: "a FIFO".to_owned(),
            timeout: self.wanted.timeout,
            has_magic_close: Some(true),
            warnings: vec!["it is a FIFO: nothing resets this machine".to_owned()],
        };
        Ok((Device { file }, about))
    }
}

/// A watchdog in the list of the kernel.
#[derive(Clone, Debug)]
struct Entry {
    dir: PathBuf,
    /// The device numbers (major, minor) by which the watchdog can be opened.
    numbers: BTreeSet<(u64, u64)>,
}

impl Entry {
    /// Finds the watchdog with the device number `number`; `None` if the kernel lists none.
    fn of(sysfs: &Path, number: (u64, u64)) -> Option<Self> {
        let mut entries = fs::read_dir(sysfs).ok()?.flatten().map(|entry| Self::at(entry.path()));
        entries.find(|entry| entry.numbers.contains(&number))
    }

    fn at(dir: PathBuf) -> Self {
        let text = fs::read_to_string(dir.join("dev")).unwrap_or_default();
        let number =
            text.trim().split_once(':').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        let misc = dir.ends_with(FIRST).then_some(MISC);
        Self { dir, numbers: number.into_iter().chain(misc).collect() }
    }

    fn read(&self, name: &str) -> io::Result<String> {
        Ok(fs::read_to_string(self.dir.join(name))?.trim().to_owned())
    }

    fn identity(&self) -> String {
        self.read("identity").unwrap_or_else(|_| "unknown".to_owned())
    }

    /// Returns whether the watchdog is running, as the kernel reports it.
    fn is_active(&self) -> io::Result<bool> {
        self.read("state").map(|state| state == "active")
    }

    fn timeout(&self) -> io::Result<Duration> {
        let seconds = self.read("timeout")?.parse().map_err(|_| io::Error::from(ErrorKind::InvalidData))?;
        Ok(Duration::from_secs(seconds))
    }

    fn check_way_out(&self, device: &Path) -> Result<(), Refusal> {
        let unknown =
            |why: String| Refusal::NoWayOutUnknown { device: device.to_owned(), file: self.dir.join("nowayout"), why };
        match self.read("nowayout").as_deref() {
            Ok("0") => Ok(()),
            Ok("1") => Err(Refusal::NoWayOut { device: device.to_owned(), identity: self.identity() }),
            Ok(other) => Err(unknown(format!("it has '{other}'"))),
            Err(error) => Err(unknown(error.to_string())),
        }
    }

    fn check_free(&self, device: &Path) -> Result<(), Refusal> {
        match proc::openers(&self.numbers).first() {
            Some((pid, name)) => {
                let holder = Holder { name: name.clone(), pid: *pid };
                Err(Refusal::Held { device: device.to_owned(), holder })
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
