//! `tandem gather`: collects what a bug report needs in one file, without secrets.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use super::report::{Form, Report};
use super::status;
use crate::adapters::command::Programs;
use crate::adapters::pacemaker;
use crate::operate::failure::Failure;
use crate::operate::gather::archive::Archive;
use crate::operate::gather::redact::Redactor;
use crate::operate::gather::sources::{self, Found, Source};
use crate::operate::node::must_be_root;
use crate::os::clock;

const HELP: &str = "\
The archive holds this node's status, decisions and events, the CIB with the configuration of its fence devices, what the
tools of Pacemaker, Corosync and podman print, the ends of the logs, and versions. It holds nothing that is stored in
etcd. Passwords, tokens and keys are removed from all parts; names and addresses are not. Each part has at most 8 MiB,
and all parts together have at most 128 MiB. Only its owner can read the file: check it before you send it. Type the
command on both nodes.

With --json:
  file     path of the archive
  bytes    size of the archive
  entries  names of its parts
  missing  what could not be collected, each with name and why";

/// Packs what a bug report needs into one archive, without secrets
#[derive(Args)]
#[command(after_help = HELP)]
pub(super) struct Arguments {
    /// File to write, which must not exist; the default is /var/tmp/tandem-NODE-TIME.tar.gz
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    pub form: Form,
}

/// The report of `tandem gather`: the archive and its content.
#[derive(Serialize)]
pub(super) struct Gathered {
    file: PathBuf,
    bytes: u64,
    entries: Vec<String>,
    missing: Vec<Missing>,
}

/// A file that could not be collected, and the reason.
#[derive(Serialize)]
struct Missing {
    name: String,
    why: String,
}

impl Report for Gathered {
    fn text(&self) -> String {
        let Self { file, bytes, entries, missing } = self;
        let mut text = format!("{}: {} parts, {} KiB", file.display(), entries.len(), bytes.div_ceil(1024));
        for Missing { name, why } in missing {
            let _ = write!(text, "\nwithout {name}: {why}");
        }
        text
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<Gathered, Failure> {
    must_be_root()?;
    let programs = Programs::default();
    let node = pacemaker::local_node(&programs).unwrap_or_else(|_| host_name());
    let file = match &arguments.output {
        Some(file) => file.clone(),
        None => PathBuf::from(format!("/var/tmp/tandem-{node}-{}.tar.gz", clock::utc_stamp())),
    };
    let mut sources = sources::all(&programs);
    let status = status::text().unwrap_or_else(|Failure(why)| why);
    sources.push(Source::text("tandem/status.txt", format!("{status}\n")));
    gather(&file, &sources, &programs)
}

fn host_name() -> String {
    nix::unistd::gethostname().map_or_else(|_| "node".to_owned(), |name| name.to_string_lossy().into_owned())
}

fn gather(file: &Path, sources: &[Source], programs: &Programs) -> Result<Gathered, Failure> {
    if file.exists() {
        return Err(Failure(format!("{} is there already: name another file with --output", file.display())));
    }
    let failed = |error: std::io::Error| Failure(format!("{}: {error}", file.display()));
    // The CIB is read first, because its secrets are removed from everything else.
    let mut left = sources::ALL_LIMIT;
    let mut read = |source: &Source| {
        let found = source.read(programs, left)?;
        left = left.saturating_sub(found.text.len() as u64);
        Ok(found)
    };
    let found: Vec<(&Source, Result<Found, String>)> = sources.iter().map(|source| (source, read(source))).collect();
    let redactor = Redactor::new(found.iter().filter_map(|(_, found)| found.as_ref().ok()).map(|found| &*found.text));
    let mut archive = Archive::create(file).map_err(failed)?;
    let (mut entries, mut missing) = (Vec::new(), Vec::new());
    for (source, found) in found {
        match found {
            Ok(found) => {
                archive.add(&source.name, redactor.clean(&found.text).as_bytes()).map_err(failed)?;
                entries.push(source.name.clone());
            }
            Err(why) => missing.push(Missing { name: source.name.clone(), why: redactor.clean(&why) }),
        }
    }
    let list: String = missing.iter().fold(String::new(), |mut list, one| {
        let _ = writeln!(list, "{}: {}", one.name, one.why);
        list
    });
    archive.add("MISSING", list.as_bytes()).map_err(failed)?;
    let bytes = archive.finish().map_err(failed)?;
    Ok(Gathered { file: file.to_owned(), bytes, entries, missing })
}

#[cfg(test)]
mod tests;
