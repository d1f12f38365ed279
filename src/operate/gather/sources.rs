//! The sources of a report: files of Tandem and of the cluster, and the output of the cluster's tools.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nix::libc;

use crate::adapters::command::Programs;
use crate::os::{proc, regular_file};
use crate::records::decision_log;
use crate::records::events;

/// Most bytes of one file in the archive of `tandem gather`. A longer file loses its beginning.
const LIMIT: u64 = 8 * 1024 * 1024;
/// Most bytes of all files in the archive of `tandem gather` together, because all are in memory at the same time.
pub(crate) const ALL_LIMIT: u64 = 128 * 1024 * 1024;
/// Longest time for each program that `tandem gather` runs to collect its output.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Most lines that are taken from a container's log.
const LOG_LINES: &str = "20000";

/// The source of one file in the archive of `tandem gather`.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The name of the file in the archive.
    pub(crate) name: String,
    from: From,
}

#[derive(Clone, Debug)]
enum From {
    File(PathBuf),
    /// A file in a directory to which users other than root may write. It is already open, so that it cannot be replaced by a link.
    Open(Arc<File>),
    Program(&'static str, Vec<String>),
    Text(String),
}

/// The content of one file for the archive of `tandem gather`.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) text: String,
}

impl Source {
    pub(crate) fn file(name: &str, path: impl Into<PathBuf>) -> Self {
        Self { name: name.to_owned(), from: From::File(path.into()) }
    }

    fn program(name: &str, program: &'static str, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|word| (*word).to_owned()).collect();
        Self { name: name.to_owned(), from: From::Program(program, arguments) }
    }

    pub(crate) fn text(name: &str, text: String) -> Self {
        Self { name: name.to_owned(), from: From::Text(text) }
    }

    /// Reads the source. Of a text longer than `limit` bytes, only the end is read. The error is the reason why the source is unreadable.
    pub(crate) fn read(&self, programs: &Programs, limit: u64) -> Result<Found, String> {
        let limit = limit.min(LIMIT);
        if limit == 0 {
            return Err(format!("the parts before it have {} MiB", ALL_LIMIT / 1024 / 1024));
        }
        let opened = |path: &Path| regular_file::open(path).and_then(|file| end_of(&file, limit));
        let text = match &self.from {
            From::Text(text) => text.clone(),
            From::File(path) => opened(path).map_err(|error| format!("{}: {error}", path.display()))?,
            From::Open(file) => end_of(file, limit).map_err(|error| error.to_string())?,
            From::Program(program, arguments) => {
                let output = programs.run(program, arguments, TIMEOUT).map_err(|error| error.to_string())?;
                if output.code != 0 && output.stdout.is_empty() {
                    return Err(format!("{program} failed ({}): {}", output.code, output.complaint()));
                }
                format!("{}{}", output.stdout, output.stderr)
            }
        };
        Ok(Found { text })
    }
}

/// Reads the last `limit` bytes of a file, beginning with a whole line.
fn end_of(mut file: &File, limit: u64) -> io::Result<String> {
    let begin = file.metadata()?.len().saturating_sub(limit);
    file.seek(SeekFrom::Start(begin))?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let whole = if begin == 0 { 0 } else { text.find('\n').map_or(0, |end| end + 1) };
    Ok(text[whole..].to_owned())
}

/// Returns all sources for the archive of `tandem gather`. The CIB comes first, because its secrets are removed from every source.
/// [`ALL_LIMIT`] may cut off later sources.
pub(crate) fn all(programs: &Programs) -> Vec<Source> {
    let mut sources = vec![
        Source::program("pacemaker/cib.xml", "cibadmin", &["--query"]),
        Source::text("versions/tandem", format!("{}\n", crate::os::version::VERSION)),
        Source::program("pacemaker/crm_mon.txt", "crm_mon", &["--one-shot", "--inactive", "--show-detail"]),
        Source::program("pacemaker/crm_mon.xml", "crm_mon", &["--output-as=xml", "--inactive", "--fence-history=3"]),
        Source::program("pacemaker/fencing", "stonith_admin", &["--history", "*", "--verbose"]),
        Source::program("corosync/quorum", "corosync-quorumtool", &["-s"]),
        Source::program("corosync/links", "corosync-cfgtool", &["-s"]),
        Source::file("corosync/corosync.conf", "/etc/corosync/corosync.conf"),
        Source::program("versions/pacemaker", "pacemakerd", &["--version"]),
        Source::program("versions/corosync", "corosync", &["-v"]),
        Source::program("versions/podman", "podman", &["--version"]),
        Source::file("versions/os-release", "/etc/os-release"),
        Source::program("podman/containers", "podman", &["ps", "--all", "--no-trunc"]),
        Source::file("logs/pacemaker.log", "/var/log/pacemaker/pacemaker.log"),
        journal(),
    ];
    for name in containers(programs) {
        let log = ["logs", "--timestamps", "--tail", LOG_LINES, &name];
        sources.push(Source::program(
            &format!("podman/{name}.json"),
            "podman",
            &["inspect", "--type=container", &name],
        ));
        sources.push(Source::program(&format!("logs/{name}"), "podman", &log));
    }
    let directory = Path::new(decision_log::DIRECTORY);
    sources.extend(ours(directory, "tandem", is_json));
    sources.extend(ours(&directory.join("bmc"), "tandem/bmc", is_json));
    sources.extend(ours(Path::new(events::DIRECTORY), "tandem", |name| events::FILES.contains(&name)));
    sources
}

/// Returns the journal of the cluster's services for the last two days. It includes what the agents log.
fn journal() -> Source {
    const UNITS: [&str; 4] = ["--unit=corosync", "--unit=pacemaker", "--unit=pcsd", "--unit=tandem-collect"];
    let how = ["--since=-48h", "--lines=50000", "--no-pager", "--output=short-iso-precise"];
    Source::program("logs/journal", "journalctl", &[&how[..], &UNITS[..]].concat())
}

/// Returns the container names of Tandem's resources, or the default name if the cluster does not answer.
fn containers(programs: &Programs) -> Vec<String> {
    let configured = crate::adapters::pacemaker::resource::configured(programs).unwrap_or_default();
    let name = |parameters: &[(String, String)]| {
        let named = parameters.iter().find(|(name, _)| name == "name").map(|(_, value)| value.clone());
        named.unwrap_or_else(|| "etcd".to_owned())
    };
    let names: Vec<String> = configured.iter().map(|resource| name(&resource.parameters)).collect();
    // Skips a name that podman or a path would misread.
    let is_plain = |name: &String| {
        name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
    };
    if names.is_empty() { vec!["etcd".to_owned()] } else { names.into_iter().filter(is_plain).collect() }
}

/// Returns whether `name` has only plain characters and ends with `.json`, `.jsonl` or `.jsonl.1`.
fn is_json(name: &str) -> bool {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    is_plain && [".json", ".jsonl", ".jsonl.1"].iter().any(|end| name.ends_with(end))
}

/// Returns the files of `directory` that Tandem wrote, each already open. No link is followed, because another user may replace a file by
/// a link.
fn ours(directory: &Path, folder: &str, is_ours: impl Fn(&str) -> bool) -> Vec<Source> {
    let Ok(opened) = open(directory, libc::O_DIRECTORY) else { return Vec::new() };
    let directory = proc::open_file(&opened);
    let Ok(entries) = fs::read_dir(&directory) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| is_ours(name)).collect();
    names.sort();
    names
        .into_iter()
        .filter_map(|name| {
            let file = open(&directory.join(&name), libc::O_NONBLOCK | libc::O_NOCTTY).ok()?;
            let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
            is_file.then(|| Source { name: format!("{folder}/{name}"), from: From::Open(Arc::new(file)) })
        })
        .collect()
}

fn open(path: &Path, flags: i32) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(flags | libc::O_NOFOLLOW).open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Asserts that a file is not read if it was replaced by a link after the listing. In the folder of events, any member of Pacemaker's
    /// group could replace a file.
    #[test]
    fn what_is_put_in_a_files_place_after_the_listing_is_not_taken() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("secret"), "s3cret").unwrap();
        fs::write(at("a.json"), "ours").unwrap();
        symlink(at("secret"), at("b.json")).unwrap();
        nix::unistd::mkfifo(&at("c.json"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        fs::write(at("d\u{1b}[2J.json"), "named").unwrap();
        fs::write(at("e.txt"), "other").unwrap();
        let sources = ours(dir.path(), "tandem", is_json);
        fs::remove_file(at("a.json")).unwrap();
        symlink(at("secret"), at("a.json")).unwrap();
        let read = |source: &Source| source.read(&Programs::default(), LIMIT).unwrap().text;
        let found: Vec<(&str, String)> = sources.iter().map(|source| (source.name.as_str(), read(source))).collect();
        assert_eq!(found, [("tandem/a.json", "ours".to_owned())]);
        let refused = sources[0].read(&Programs::default(), 0).unwrap_err();
        assert_eq!(refused, "the parts before it have 128 MiB");
    }
}
