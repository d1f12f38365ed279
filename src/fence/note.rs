//! The facts that an action has found about its BMC, written down for checks of the fencing: see
//! [`bmc_note`](crate::records::bmc_note). The notes cost no request, and no action waits for them or fails because of them.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, SystemTime};

use super::Error;
use super::act::ActorSeen;
use super::config::{Action, Config};
use crate::adapters::redfish::bmc::{Bmc, Target};
use crate::adapters::redfish::discovery::Pointer;
use crate::adapters::redfish::quirks::PowerWord;
use crate::adapters::redfish::resource::{Power, System};
use crate::adapters::redfish::select::{self, Wanted};
use crate::os::clock;
use crate::os::regular_file;
use crate::os::uuid;
use crate::records::bmc_note::{self, BmcNote, FencingNote};

/// The time for which an action waits until its notes are written. Notes are files about systems (see [`BmcNote`]), which `tandem
/// status` reads. The time is short so that a hanging directory does not delay the action.
const PATIENCE: Duration = Duration::from_millis(200);
/// The greatest number of notes (see [`BmcNote`]) in the directory. If it is reached, the oldest note is deleted before a new one
/// is written.
const FILES: usize = 32;
/// The greatest length of a text from the BMC in a note (see [`BmcNote`]), in characters. Longer texts are cut.
const WORDS: usize = 100;
/// The greatest length of a failure's text in a note (see [`BmcNote`]), in characters. The agent itself writes that text.
const SENTENCE: usize = 500;
/// The greatest number of reset types in a note (see [`BmcNote`]). The Redfish standard defines fewer.
const TYPES: usize = 32;
/// The age from which an incomplete file is taken for one that a killed agent left, and is removed.
const LEFT_BEHIND: Duration = Duration::from_secs(60);

/// A note about one system (see [`BmcNote`]), with the facts by which the agent finds an earlier note of the same system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noted {
    pub note: BmcNote,
    /// True if the BMC has returned the system, so that the note contains the system's path. If false, the agent searches the earlier
    /// notes for one about the same system, by its UUID or its name.
    found: bool,
    /// True if the note is about a power action. Such a note adds the action's result to the facts that the last monitor
    /// recorded.
    adds: bool,
    /// The UUID that the system must have; `None` if it is not configured.
    uuid: Option<String>,
}

/// Returns a note (see [`BmcNote`]) for each system when a power action begins. From this note `tandem status` reports that the
/// action is in progress.
pub(super) fn of_beginning(config: &Config) -> Vec<Noted> {
    if !config.action.switches_off() {
        return Vec::new();
    }
    let fencing = FencingNote { began_at_millis: clock::wall_millis(), ..FencingNote::default() };
    let of_system = |pointer: &Pointer| {
        let note = BmcNote {
            address: config.address.short(),
            system: called(pointer),
            fencing: Some(fencing.clone()),
            ..BmcNote::default()
        };
        Noted { note, found: false, adds: true, uuid: pointer.uuid.clone() }
    };
    config.systems.iter().map(of_system).collect()
}

/// Returns the notes (see [`BmcNote`]) about an action that has lasted `took` so far. Only monitors and actions that switch a
/// system off have notes.
pub(super) fn of(
    config: &Config,
    bmc: Option<&Bmc>,
    seen: &ActorSeen,
    failure: Option<&Error>,
    took: Duration,
) -> Vec<Noted> {
    let adds = config.action.switches_off();
    if !adds && config.action != Action::Monitor {
        return Vec::new();
    }
    let clean = |text: &str, limit: usize| -> String {
        let text = bmc.map_or_else(|| text.to_owned(), |bmc| bmc.client().clean(text));
        text.chars().take(limit).collect()
    };
    let failure = failure.map(|error| {
        let text = bmc.map_or_else(|| error.to_string(), |bmc| bmc.client().clean_own(&error.to_string()));
        text.chars().take(SENTENCE).collect::<String>()
    });
    let now = clock::wall_millis();
    let fencing = adds.then(|| FencingNote {
        began_at_millis: now.saturating_sub(millis(took)),
        ended_at_millis: Some(now),
        failure: failure.clone(),
    });
    let certificate = bmc.and_then(|bmc| bmc.client().certificate());
    let common = BmcNote {
        address: config.address.short(),
        at: clock::wall_seconds(),
        millis: if adds { 0 } else { millis(took) },
        failure,
        certificate_ends: certificate.as_ref().and_then(|certificate| certificate.ends),
        fingerprint: certificate.map(|certificate| certificate.fingerprint),
        clock_ahead: bmc.and_then(|bmc| bmc.client().clock_ahead()),
        millis_to_off: seen.fenced.to_off.filter(|_| adds).map(millis),
        off_at_millis: seen.fenced.off_at.filter(|_| adds),
        on_at_millis: seen.fenced.on_at.filter(|_| adds),
        fencing,
        ..BmcNote::default()
    };
    let noted = |system: Option<(&str, &System)>, types: Option<&Vec<String>>, pointer: Option<&Pointer>| {
        let mut note = BmcNote { system: pointer.map(called).unwrap_or_default(), ..common.clone() };
        if let Some((path, system)) = system {
            let word = |text: &Option<String>| text.as_deref().map(|text| clean(text, WORDS));
            note.system = clean(path, WORDS);
            note.uuid = word(&system.uuid);
            note.power = power(&system.power).map(|power| clean(power, WORDS));
            note.last_reset = word(&system.last_reset);
            note.restore_policy = word(&system.restore_policy);
            note.reset_types = types.map(|types| types.iter().take(TYPES).map(|one| clean(one, WORDS)).collect());
        }
        Noted { note, found: system.is_some(), adds, uuid: pointer.and_then(|pointer| pointer.uuid.clone()) }
    };
    let listed = select::resettable(&seen.listed).filter_map(|(at, system)| Some((seen.listed.get(at)?, system)));
    let listed: Vec<Noted> = listed
        .map(|(candidate, system)| {
            let types = system.reset.as_ref().and_then(|reset| reset.allowed.as_ref());
            noted(Some((&candidate.uri, system)), types, None)
        })
        .collect();
    if !listed.is_empty() {
        return listed;
    }
    if seen.hosts.is_empty() {
        return config.systems.iter().map(|pointer| noted(None, None, Some(pointer))).collect();
    }
    let of_host = |host: &Target| {
        let mut noted = noted(host.path().zip(host.system()), host.seen_allowed(), Some(host.pointer()));
        noted.note.chassis_on = host.chassis_on.as_ref().map(|chassis| clean(chassis, WORDS));
        noted
    };
    seen.hosts.iter().map(of_host).collect()
}

/// Returns `notes` without those about a failed monitor that an operator has run by hand. The options of such a run may differ from
/// those of the fence device.
pub(super) fn of_the_device(mut notes: Vec<Noted>, under_fencer: bool) -> Vec<Noted> {
    notes.retain(|noted| under_fencer || noted.adds || noted.note.failure.is_none());
    notes
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the text for a power state in a note (see [`BmcNote`]). On and Off are written as the standard writes them, and any
/// other state as the BMC reported it.
fn power(power: &Power) -> Option<&str> {
    match power {
        Power::Known(PowerWord::On, _) => Some("On"),
        Power::Known(PowerWord::Off, _) => Some("Off"),
        Power::Known(_, word) => Some(word),
        Power::Unclear(_) => None,
    }
}

/// Returns the fence device's name for a system that was not found. The name does not contain the node's name, because the fencer
/// sends that only with some actions.
fn called(pointer: &Pointer) -> String {
    match (&pointer.systems_uri, &pointer.wanted) {
        (Some(uri), _) => uri.clone(),
        (None, Wanted::Named(name)) => name.clone(),
        (None, Wanted::Any | Wanted::Node(_)) => String::new(),
    }
}

/// Writes the files of `notes` to `directory`. Creates the directory if its parent exists. If `makes_all` is true, creates the
/// parents, too. Waits only briefly: if the disk hangs, the notes are written later or never.
pub fn keep(directory: &Path, notes: Vec<Noted>, makes_all: bool) {
    if notes.is_empty() {
        return;
    }
    let directory = directory.to_owned();
    let (done, waits) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        write_all(&directory, &notes, makes_all);
        let _ = done.send(());
    });
    let _ = waits.recv_timeout(PATIENCE);
}

/// Writes the files of `notes` to `directory`, without a time limit.
pub fn write_all(directory: &Path, notes: &[Noted], makes_all: bool) {
    for noted in notes {
        if let Err(error) = write(directory, noted, makes_all) {
            log::debug!("the BMC's note cannot be written in {}: {error}", directory.display());
        }
    }
}

fn write(directory: &Path, noted: &Noted, makes_all: bool) -> io::Result<()> {
    match fs::DirBuilder::new().recursive(makes_all).mode(0o700).create(directory) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let before = (!noted.found).then(|| earlier(directory, noted)).flatten();
    let system = before.as_ref().map_or(&noted.note.system, |before| &before.system).clone();
    let path = bmc_note::path(directory, &noted.note.address, &system);
    let before = before.or_else(|| read(&path)).unwrap_or_default();
    let mut note = if noted.adds && before.at > 0 { before.clone() } else { noted.note.clone() };
    note.system = system;
    let newest = if noted.note.millis_to_off.is_some() { &noted.note } else { &before };
    note.millis_to_off = newest.millis_to_off;
    note.off_at_millis = newest.off_at_millis;
    note.on_at_millis = newest.on_at_millis;
    note.fencing = fencing_after(noted.note.fencing.clone(), before.fencing);
    if note.at == 0 {
        // The system has not been observed yet.
    } else if note.failure.is_none() {
        note.last_success = Some(note.at);
    } else {
        note.last_success = note.last_success.or(before.last_success);
        // The UUID identifies the system in the next failure.
        note.uuid = note.uuid.or(before.uuid);
    }
    make_room(directory, &path);
    replace(&path, &serde_json::to_vec(&note)?)
}

/// Returns the newer of two fencings. While the newer one is in progress, the result has its beginning, and the end and the
/// failure of the older one.
fn fencing_after(newer: Option<FencingNote>, older: Option<FencingNote>) -> Option<FencingNote> {
    match (newer, older) {
        (Some(newer), Some(older)) if newer.ended_at_millis.is_none() => {
            Some(FencingNote { began_at_millis: newer.began_at_millis, ..older })
        }
        (newer, older) => newer.or(older),
    }
}

/// Returns the earlier note (see [`BmcNote`]) about a system that the BMC does not have now. It is the note with the system's
/// UUID, or with a path that ends in the system's name. If neither UUID nor name is configured, it is the only note about this
/// BMC.
fn earlier(directory: &Path, noted: &Noted) -> Option<BmcNote> {
    let mut found = all(directory);
    found.retain(|note| note.address == noted.note.address && note.at > 0);
    let last = |path: &str| path.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
    let name = last(&noted.note.system);
    found.retain(|note| match (&noted.uuid, &note.uuid) {
        (Some(uuid), Some(theirs)) => uuid::same(uuid, theirs),
        (Some(_), None) => !name.is_empty() && last(&note.system) == name,
        (None, _) => name.is_empty() || last(&note.system) == name,
    });
    if found.len() == 1 { found.pop() } else { None }
}

/// Returns every note (see [`BmcNote`]) in `directory` that can be read.
pub fn all(directory: &Path) -> Vec<BmcNote> {
    files(directory).into_iter().filter_map(|path| read(&path)).collect()
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().take(FILES * 4);
    entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|ending| ending == "json")).collect()
}

fn read(path: &Path) -> Option<BmcNote> {
    serde_json::from_slice(&regular_file::read_at_most(path, bmc_note::LIMIT).ok()?).ok()
}

/// Deletes the oldest file in `directory` if there are [`FILES`] files. Without this, files about removed devices would stay for
/// ever.
fn make_room(directory: &Path, path: &Path) {
    let files = files(directory);
    if files.len() < FILES || files.iter().any(|one| one == path) {
        return;
    }
    let age = |path: &PathBuf| fs::metadata(path).and_then(|data| data.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    if let Some(oldest) = files.iter().min_by_key(|path| age(path)) {
        let _ = fs::remove_file(oldest);
    }
}

/// Replaces the file at `path` without syncing it to disk, because a disk that hangs must not delay a fencing. If a power cut
/// loses the file, the next monitor writes a new one.
fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let aside = path.with_extension("new");
    let begin = || OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside);
    let mut file = match begin() {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && is_left_behind(&aside) => {
            fs::remove_file(&aside)?;
            begin()?
        }
        other => other?,
    };
    let written = file.write_all(text).and_then(|()| fs::rename(&aside, path));
    if written.is_err() {
        let _ = fs::remove_file(&aside);
    }
    written
}

fn is_left_behind(path: &Path) -> bool {
    let age = fs::symlink_metadata(path).and_then(|data| data.modified()).ok().and_then(|at| at.elapsed().ok());
    age.is_some_and(|age| age > LEFT_BEHIND)
}

#[cfg(test)]
mod tests;
