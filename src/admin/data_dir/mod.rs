//! `tandem data-dir`: reads and repairs etcd's data dir without etcd.

mod advance_commit;
mod diff;
mod forget;
mod list;
mod show;

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::exit::Exit;
use super::report::show as print;
use crate::operate::failure::Failure;

/// Shows, compares and repairs etcd's data on disk, without etcd
#[derive(Subcommand)]
pub(super) enum Command {
    Show(show::Arguments),
    List(list::Arguments),
    Diff(diff::Arguments),
    Forget(forget::Arguments),
    AdvanceCommit(advance_commit::Arguments),
}

impl Command {
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        match self {
            Self::Show(arguments) => print(&show::run(arguments)?, arguments.form),
            Self::List(arguments) => print(&list::run(arguments)?, arguments.form),
            Self::Diff(arguments) => print(&diff::run(arguments)?, arguments.form),
            Self::Forget(arguments) => print(&forget::run(arguments)?, arguments.form),
            Self::AdvanceCommit(arguments) => print(&advance_commit::run(arguments)?, arguments.form),
        }
    }
}

/// The argument that names the data dir.
#[derive(Args)]
struct DirArgument {
    /// etcd's --data-dir, the directory that holds 'member'
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

impl DirArgument {
    fn checked(&self) -> Result<&Path, Failure> {
        checked(&self.dir)
    }
}

/// Returns `dir` if it is a directory that can be a data dir. A missing directory is refused as a typing error, although etcd would
/// create it.
fn checked(dir: &Path) -> Result<&Path, Failure> {
    let found =
        fs::metadata(dir).map_err(|error| Failure(format!("{}: {error}; type etcd's --data-dir", dir.display())))?;
    if !found.is_dir() {
        return Err(Failure(format!("{} is not a directory; type etcd's --data-dir", dir.display())));
    }
    match part_of(dir)? {
        Some(whole) => {
            Err(Failure(format!("{} is a part of a data dir; type {} instead", dir.display(), whole.display())))
        }
        None => Ok(dir),
    }
}

/// Returns the data dir of which `dir` is a part: its `member`, or `wal` or `snap` in that. Returns `None` if `dir` is no such part.
fn part_of(dir: &Path) -> Result<Option<PathBuf>, Failure> {
    let whole = fs::canonicalize(dir)?;
    if dir.join("wal").is_dir() && !dir.join("member").exists() {
        return Ok(whole.parent().map(Path::to_owned));
    }
    let is_part = ["member/wal", "member/snap"].iter().any(|part| whole.ends_with(part));
    Ok(whole.ancestors().nth(2).filter(|_| is_part).map(Path::to_owned))
}

/// Formats an id in hexadecimal, as etcd prints it, and in decimal, as JSON has it.
fn id(id: u64) -> String {
    format!("{id:x} ({id})")
}
