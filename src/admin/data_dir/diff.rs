//! `tandem data-dir diff`: lists the keys that one history changed and another one lacks.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use super::checked;
use crate::adapters::data_dir::{self, AsideKind, Keys};
use crate::admin::exit::Exit;
use crate::admin::node::ResourceArgument;
use crate::admin::report::{Form, Report};
use crate::base::printable;
use crate::operate::failure::Failure;
use crate::operate::histories::{self, Difference, Fork, InOther, Key, Kind, Live, Other};
use crate::operate::node;

const HELP: &str = "\
A and B are data dirs, backups, or histories that were given up ('tandem data-dir list' names them). No etcd may run on
them. The word 'live' in place of B means the etcd that runs on this node, which is asked for all of its keys. The command
writes nothing, and shows no value.

The fork is the newest revision that both share. The command lists the keys that A changed after the fork. A row has:
  1. the change in A: created, changed or deleted. A key that was created and deleted again is 'deleted'.
  2. the revision of the last change in A, or '-' if A's log has the change and its database does not yet
  3. what happened to the key in B after the fork: unchanged (B lacks the change), changed (B wrote it, too, so you have to
     merge two changes), or same (B has the same value, or lacks the key, too)
  4. the key
  5. 'uncertain' if the change is in a transaction that only A's log has, because its conditions are not evaluated

A history that was compacted after the fork lacks deletions, and shows less exactly where the fork is. Then 'complete' is
false, and the list may have too many keys or too few. Kubernetes compacts every five minutes: compare soon after the
fork, or compare with a history that was kept.

Exit codes:
  0  it is proven that B lacks nothing of A
  3  B lacks keys, or may lack some
  1  A or B cannot be read

With --json:
  a, b       each with path, revision (the last one) and compacted (the revision up to which it was compacted, or null)
  fork       revision and at_most; they differ if the fork cannot be found exactly
  complete   whether the list is complete
  proven     whether it is proven that B lacks nothing
  changed    how many keys A changed
  lacking    how many of these are not the same in B
  uncertain  how many of these are uncertain
  keys       at most --limit of them, each with key, hex (its bytes), change, revision (or null), uncertain and b";

/// Lists the keys that A changed since A and B were equal, and whether B has these changes
#[derive(Args)]
#[command(after_help = HELP)]
pub(in crate::admin) struct Arguments {
    #[command(flatten)]
    pub form: Form,
    /// Data with the changes: a data dir, a backup, or a history that was given up
    #[arg(value_name = "A")]
    history: PathBuf,
    /// Data that may lack these changes: another one of these, or 'live' for the etcd that runs on this node
    #[arg(value_name = "B")]
    other: PathBuf,
    /// Lists only keys that begin with PREFIX
    #[arg(long, default_value = "", hide_default_value = true, value_name = "PREFIX")]
    prefix: String,
    /// Lists at most this many keys, sorted by name; 0 lists all
    #[arg(long, default_value_t = 1000, value_name = "NUMBER")]
    limit: usize,
    #[command(flatten)]
    resource: ResourceArgument,
}

/// The argument that names the running etcd in place of a data dir.
const LIVE: &str = "live";

/// The report of `tandem data-dir diff`: the keys that differ.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    a: Side,
    b: Side,
    fork: ForkFound,
    complete: bool,
    proven: bool,
    changed: usize,
    lacking: usize,
    uncertain: usize,
    keys: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Side {
    path: PathBuf,
    revision: u64,
    compacted: Option<u64>,
}

#[derive(Debug, Serialize)]
struct ForkFound {
    revision: u64,
    at_most: u64,
}

#[derive(Debug, Serialize)]
struct Row {
    key: String,
    hex: String,
    change: Kind,
    revision: Option<u64>,
    uncertain: bool,
    b: InOther,
}

pub(super) fn run(arguments: &Arguments) -> Result<Found, Failure> {
    let history = stored(&arguments.history)?;
    let other = if arguments.other.as_os_str() == LIVE {
        let context = node::context(arguments.resource.id())?;
        let (endpoint, credentials) = (context.own_endpoint.clone(), context.credentials().clone());
        Other::Live(Box::new(Live { endpoint, credentials }))
    } else {
        Other::Stored(Box::new(stored(&arguments.other)?))
    };
    let found = histories::compare(&history, &other, arguments.prefix.as_bytes())?;
    Ok(report(arguments, &history, &found))
}

/// Opens the data of a stopped etcd on the disk. A backup or history inside a data dir is opened relative to that data dir, so that no
/// link in it is followed.
fn stored(path: &Path) -> Result<Keys, Failure> {
    if AsideKind::of(path).is_some()
        && path.is_dir()
        && let Some(name) = path.file_name()
    {
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        return Ok(Keys::open(dir, name)?);
    }
    let dir = checked(path)?;
    if data_dir::is_open(dir)? {
        let dir = dir.display();
        return Err(Failure(format!("etcd runs on {dir}: type 'live' as B to compare with it, or stop it first")));
    }
    Ok(Keys::open(dir, "member")?)
}

fn report(arguments: &Arguments, history: &Keys, found: &Difference) -> Found {
    let (mut changed, mut lacking, mut uncertain) = (0, 0, 0);
    let mut keys = Vec::new();
    for key in found.keys() {
        changed += 1;
        lacking += usize::from(key.in_other != InOther::Same);
        uncertain += usize::from(key.is_uncertain);
        if arguments.limit == 0 || keys.len() < arguments.limit {
            keys.push(Row::of(&key));
        }
    }
    let Fork { least, most } = found.fork;
    let (a, b) = (arguments.history.clone(), arguments.other.clone());
    Found {
        a: Side { path: a, revision: found.revision, compacted: Some(history.compacted()) },
        b: Side { path: b, revision: found.other_revision, compacted: found.other_compacted },
        fork: ForkFound { revision: least, at_most: most },
        complete: found.is_complete,
        proven: found.is_proven,
        changed,
        lacking,
        uncertain,
        keys,
    }
}

impl Row {
    fn of(key: &Key<'_>) -> Self {
        let hex = key.key.iter().fold(String::new(), |mut hex, byte| {
            // Writing to a string cannot fail.
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        Self {
            key: printable::one_line(&String::from_utf8_lossy(key.key)).into_owned(),
            hex,
            change: key.kind,
            revision: key.revision,
            uncertain: key.is_uncertain,
            b: key.in_other,
        }
    }

    fn line(&self) -> String {
        let change = match self.change {
            Kind::Created => "created",
            Kind::Changed => "changed",
            Kind::Deleted => "deleted",
        };
        let b = match self.b {
            InOther::Unchanged => "unchanged in B",
            InOther::Changed => "changed in B",
            InOther::Same => "same in B",
        };
        let revision = self.revision.map_or_else(|| "-".to_owned(), |revision| revision.to_string());
        let uncertain = if self.uncertain { "  uncertain" } else { "" };
        format!("{change:<8}  {revision:>10}  {b:<14}  {}{uncertain}", self.key)
    }
}

impl Side {
    fn line(&self, name: &str) -> String {
        let compacted = match self.compacted {
            Some(0) => ", never compacted".to_owned(),
            Some(compacted) => format!(", compacted up to {compacted}"),
            None => String::new(),
        };
        format!("{name}         {}, up to revision {}{compacted}", self.path.display(), self.revision)
    }
}

impl Found {
    fn verdict(&self) -> String {
        let (changed, lacking) = (self.changed, self.lacking);
        let complete = if self.complete { "" } else { "; compacted behind the fork, so the list may not be complete" };
        let uncertain = match self.uncertain {
            0 => String::new(),
            uncertain => format!(" ({uncertain} uncertain)"),
        };
        match lacking {
            0 => format!("B has all of the {changed} keys that A changed{complete}"),
            _ => format!("B lacks {lacking} of the {changed} keys that A changed{uncertain}{complete}"),
        }
    }
}

impl Report for Found {
    fn text(&self) -> String {
        let ForkFound { revision, at_most } = self.fork;
        let upper = if at_most > revision { format!(", at most {at_most}") } else { String::new() };
        let mut lines = vec![
            self.a.line("A"),
            self.b.line("B"),
            format!("fork      revision {revision}{upper}"),
            format!("verdict   {}", self.verdict()),
        ];
        if !self.keys.is_empty() {
            lines.push(String::new());
            lines.extend(self.keys.iter().map(Row::line));
        }
        if self.changed > self.keys.len() {
            lines.push(format!("and {} more: --limit 0 lists all", self.changed - self.keys.len()));
        }
        lines.join("\n")
    }

    fn exit(&self) -> Exit {
        if self.proven { Exit::Done } else { Exit::Degraded }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::report::golden;

    #[test]
    fn each_changed_key_has_a_line_and_no_value() {
        let key = |key: &'static [u8], kind, revision, in_other| Key {
            key,
            kind,
            revision,
            is_uncertain: revision.is_none(),
            in_other,
        };
        let keys = [
            key(b"/registry/leases/node1", Kind::Changed, Some(47_105), InOther::Changed),
            key(b"/registry/pods/a\x1b[2J", Kind::Created, Some(47_101), InOther::Unchanged),
            key(b"/registry/pods/b", Kind::Deleted, Some(47_103), InOther::Same),
            key(b"/registry/pods/\xff", Kind::Created, None, InOther::Unchanged),
        ];
        let found = Found {
            a: Side {
                path: "/var/lib/etcd/member-history-0001-20261123T081200Z".into(),
                revision: 47_105,
                compacted: Some(0),
            },
            b: Side { path: LIVE.into(), revision: 48_001, compacted: None },
            fork: ForkFound { revision: 47_098, at_most: 47_100 },
            complete: true,
            proven: false,
            changed: 5,
            lacking: 3,
            uncertain: 1,
            keys: keys.iter().map(Row::of).collect(),
        };
        assert_eq!(found.exit(), Exit::Degraded);
        golden::compare("data-dir-diff", &found);
        assert_eq!(Found { proven: true, ..found }.exit(), Exit::Done);
    }
}
