//! Where the parts of a report come from: files of ours, of the cluster's, and what its tools print.

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::adapters::command::Programs;
use crate::os::regular_file;
use crate::records::decision_log;
use crate::records::events;

/// Of each part the end.
const LIMIT: u64 = 8 * 1024 * 1024;
/// How long one tool may take.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Lines of the container's log.
const LOG_LINES: &str = "20000";

/// One part.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// Its name in the archive.
    pub(crate) name: String,
    from: From,
}

#[derive(Clone, Debug)]
enum From {
    File(PathBuf),
    Program(&'static str, Vec<String>),
    Text(String),
}

/// What a part holds.
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

    /// What it holds, or why it cannot be had.
    pub(crate) fn read(&self, programs: &Programs) -> Result<Found, String> {
        let text = match &self.from {
            From::Text(text) => text.clone(),
            From::File(path) => end_of(path).map_err(|error| format!("{}: {error}", path.display()))?,
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

/// The end of a file, from the beginning of a line on.
fn end_of(path: &Path) -> std::io::Result<String> {
    let mut file = regular_file::open(path)?;
    let begin = file.metadata()?.len().saturating_sub(LIMIT);
    file.seek(SeekFrom::Start(begin))?;
    let mut bytes = Vec::new();
    file.take(LIMIT).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let whole = if begin == 0 { 0 } else { text.find('\n').map_or(0, |end| end + 1) };
    Ok(text[whole..].to_owned())
}

/// All of them, the CIB first.
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
    sources.extend(ours(Path::new(decision_log::DIRECTORY), "tandem"));
    sources.extend(ours(&Path::new(decision_log::DIRECTORY).join("bmc"), "tandem/bmc"));
    sources.extend(ours(Path::new(events::DIRECTORY), "tandem"));
    sources
}

/// What the cluster's services said within two days. What agents say is theirs, too.
fn journal() -> Source {
    const UNITS: [&str; 4] = ["--unit=corosync", "--unit=pacemaker", "--unit=pcsd", "--unit=tandem-collect"];
    let how = ["--since=-48h", "--lines=50000", "--no-pager", "--output=short-iso-precise"];
    Source::program("logs/journal", "journalctl", &[&how[..], &UNITS[..]].concat())
}

/// The containers of our resources; by its usual name where the cluster cannot be asked.
fn containers(programs: &Programs) -> Vec<String> {
    let configured = crate::adapters::pacemaker::resource::configured(programs).unwrap_or_default();
    let name = |parameters: &[(String, String)]| {
        let named = parameters.iter().find(|(name, _)| name == "name").map(|(_, value)| value.clone());
        named.unwrap_or_else(|| "etcd".to_owned())
    };
    let names: Vec<String> = configured.iter().map(|resource| name(&resource.parameters)).collect();
    // A name that podman or a path would take for something else is none.
    let is_plain = |name: &String| {
        name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
    };
    if names.is_empty() { vec!["etcd".to_owned()] } else { names.into_iter().filter(is_plain).collect() }
}

/// Files that Tandem writes: JSON, and lines of it.
fn ours(directory: &Path, folder: &str) -> Vec<Source> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    // Not over a link: one of these directories is not root's.
    let files = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let names = files.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> =
        names.filter(|name| [".json", ".jsonl", ".jsonl.1"].iter().any(|end| name.ends_with(end))).collect();
    names.sort();
    names.into_iter().map(|name| Source::file(&format!("{folder}/{name}"), directory.join(name))).collect()
}
