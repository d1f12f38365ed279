//! Unit files: their paths, their contents, and whether a unit is enabled.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::sh::{self, Result};

/// The directories of systemd's unit files. A file in an earlier directory overrides one in a later directory.
const DIRS: &[&str] = &["/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system"];
const LINKS: &str = "/etc/systemd/system";
/// The names of the machine's units that the lab's hosts have. Other units of the machine's packages are ignored.
const KNOWN: &[&str] = &["corosync", "pacemaker", "pcsd", "pcsd-ruby", "ssh"];
const OURS: &str = "tandem";

/// A systemd unit with the settings in its file.
#[derive(Clone, Debug)]
pub struct Unit {
    /// The unit's full name, such as `corosync.service`. For an alias it is the name of the unit that the alias
    /// refers to.
    pub name: String,
    pub path: PathBuf,
    /// The settings in the unit's file, each as section, key and value.
    lines: Vec<(String, String, String)>,
}

impl Unit {
    /// Finds a unit by its name, with or without `.service`, or by an alias. Returns `None` if there is no such unit.
    pub fn find(name: &str) -> Option<Self> {
        let name = if is_unit(name) { name.to_owned() } else { format!("{name}.service") };
        let path = DIRS.iter().map(|dir| Path::new(dir).join(&name)).find_map(|path| path.canonicalize().ok())?;
        let name = path.file_name()?.to_str()?.to_owned();
        let stem = name.rsplit_once('.')?.0;
        let is_known = KNOWN.contains(&stem) || stem.starts_with(OURS);
        let text = fs::read_to_string(&path).ok().filter(|_| is_known)?;
        Some(Self { name, path, lines: parse(&text) })
    }

    /// Returns all units of a host that have a file.
    pub fn all() -> Vec<Self> {
        let entries = DIRS.iter().filter_map(|dir| fs::read_dir(dir).ok()).flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut units: Vec<Self> = names.filter(|name| is_unit(name)).filter_map(|name| Self::find(&name)).collect();
        units.sort_by(|one, other| one.name.cmp(&other.name));
        units.dedup_by(|one, other| one.name == other.name);
        units
    }

    pub fn text(&self) -> String {
        fs::read_to_string(&self.path).unwrap_or_default()
    }

    pub fn is_timer(&self) -> bool {
        kind(&self.name) == Some("timer")
    }

    /// Returns all values of `key` in a section of the unit's file, in the file's order.
    pub fn values(&self, section: &str, key: &str) -> Vec<&str> {
        let of_key = self.lines.iter().filter(|(of, name, _)| of == section && name == key);
        of_key.map(|(_, _, value)| value.as_str()).collect()
    }

    /// Returns the last value of `key` in a section of the unit's file; `None` if the section lacks the key.
    pub fn value(&self, section: &str, key: &str) -> Option<&str> {
        self.values(section, key).pop()
    }

    pub fn time(&self, section: &str, key: &str) -> Option<Duration> {
        self.value(section, key).and_then(time)
    }

    /// Returns the names of units in a setting that lists units, such as `Requires=`.
    pub fn list(&self, section: &str, key: &str) -> Vec<String> {
        self.values(section, key).iter().flat_map(|value| value.split_whitespace()).map(str::to_owned).collect()
    }

    /// Returns the unit's state as `systemctl is-enabled` prints it: `enabled`, `disabled`, or `static` for a unit
    /// without `WantedBy=`.
    pub fn enabled(&self) -> &'static str {
        if self.list("Install", "WantedBy").is_empty() {
            return "static";
        }
        if self.links().iter().any(|link| fs::symlink_metadata(link).is_ok()) { "enabled" } else { "disabled" }
    }

    /// Creates the links that enable the unit at boot, and returns a report of them.
    pub fn enable(&self) -> Result<String> {
        let mut said = String::new();
        for link in self.links().iter().filter(|link| fs::symlink_metadata(link).is_err()) {
            sh::make_dir(link.parent().unwrap_or(Path::new("/")))?;
            symlink(&self.path, link)?;
            said.push_str(&format!("Created symlink {} \u{2192} {}.\n", link.display(), self.path.display()));
        }
        for also in self.list("Install", "Also").iter().filter_map(|name| Self::find(name)) {
            if also.name != self.name && also.enabled() == "disabled" {
                said.push_str(&also.enable()?);
            }
        }
        Ok(said)
    }

    /// Removes the links that enable the unit at boot, and returns a report of them.
    pub fn disable(&self) -> Result<String> {
        let mut said = String::new();
        for link in self.links().iter().filter(|link| fs::symlink_metadata(link).is_ok()) {
            fs::remove_file(link)?;
            said.push_str(&format!("Removed {}.\n", link.display()));
        }
        Ok(said)
    }

    fn links(&self) -> Vec<PathBuf> {
        let targets = self.list("Install", "WantedBy");
        targets.iter().map(|target| Path::new(LINKS).join(format!("{target}.wants")).join(&self.name)).collect()
    }
}

fn is_unit(name: &str) -> bool {
    matches!(kind(name), Some("service" | "timer"))
}

/// Returns the part of a unit's name after the last dot, such as `service`; `None` if there is no dot.
fn kind(name: &str) -> Option<&str> {
    name.rsplit_once('.').map(|(_, kind)| kind)
}

fn parse(text: &str) -> Vec<(String, String, String)> {
    let mut section = String::new();
    let mut lines = Vec::new();
    let joined = text.replace("\\\n", " ");
    for line in joined.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            name.clone_into(&mut section);
        } else if let Some((key, value)) = line.split_once('=').filter(|_| !line.starts_with(['#', ';'])) {
            lines.push((section.clone(), key.trim().to_owned(), value.trim().to_owned()));
        }
    }
    lines
}

/// Parses a time span in a unit's file: `90`, `60s`, `30min`, `1h 30min`. Returns `None` for any other text, such as
/// `infinity`.
pub fn time(text: &str) -> Option<Duration> {
    let mut seconds = 0.0;
    for word in text.split_whitespace() {
        let end = word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len());
        let (number, unit) = word.split_at(end);
        let unit = match unit {
            "" | "s" | "sec" => 1.0,
            "ms" => 0.001,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return None,
        };
        seconds += number.parse::<f64>().ok()? * unit;
    }
    Duration::try_from_secs_f64(seconds).ok()
}
