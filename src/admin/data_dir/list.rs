//! `tandem data-dir list`: the data of the resource, and the backups and histories next to it.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use clap::Args;
use comfy_table::{Table, presets};
use serde::Serialize;

use super::checked;
use super::show::node;
use crate::adapters::command::Programs;
use crate::adapters::data_dir::{self, AsideKind, DataDir, Described};
use crate::admin::node::ResourceArgument;
use crate::admin::report::{Form, Report};
use crate::operate::failure::Failure;
use crate::operate::health::words::{rfc3339, size};
use crate::operate::node as own_node;

const HELP: &str = "\
Each row is about one directory:
  data     the data that etcd runs from
  backup   data that was moved aside before its member joined anew; the agent keeps the newest few
  history  data of a node that ran standalone and gave way to the data of its peer. It may hold writes that exist nowhere
           else: 'tandem data-dir diff' lists its keys, and only 'tandem data-dir forget' deletes it.
Term, index and revision show how far each reaches. Of the same cluster, the one with the higher revision has more.
'tandem data-dir show PATH' shows all about one of them.

Exit codes:
  0  there is data
  1  there is none, or it could not be listed

With --json, what is not known is null, and ids are 64-bit numbers:
  dir      the data dir
  entries  one object for each row:
    kind     data, backup or history
    path     path of the directory
    moved    when it was moved aside, in RFC 3339; null for the data
    bytes    its size on the disk
    cluster_id, member_id, node (the member's name), last_term, last_index, revision
    written  when its log was last written, in RFC 3339
    problem  why it cannot be used, or null";

/// Lists etcd's data, its backups, and its histories: data that was given up for that of the other node
#[derive(Args)]
#[command(after_help = HELP)]
pub(in crate::admin) struct Arguments {
    #[command(flatten)]
    pub form: Form,
    /// etcd's --data-dir, the directory that holds 'member'; the default is that of the etcd resource
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
    #[command(flatten)]
    resource: ResourceArgument,
}

/// The report of `tandem data-dir list`: all data, backups and histories in a data dir.
#[derive(Debug, Serialize)]
pub(super) struct Listed {
    dir: PathBuf,
    entries: Vec<Entry>,
}

#[derive(Debug, Default, Serialize)]
struct Entry {
    kind: &'static str,
    path: PathBuf,
    moved: Option<String>,
    bytes: Option<u64>,
    cluster_id: Option<u64>,
    member_id: Option<u64>,
    node: Option<String>,
    last_term: Option<u64>,
    last_index: Option<u64>,
    revision: Option<u64>,
    written: Option<String>,
    problem: Option<String>,
}

pub(super) fn run(arguments: &Arguments) -> Result<Listed, Failure> {
    let dir = match &arguments.dir {
        Some(dir) => dir.clone(),
        None => own_node::data_dir(&Programs::default(), arguments.resource.id())?,
    };
    listed(checked(&dir)?)
}

fn listed(dir: &Path) -> Result<Listed, Failure> {
    let mut entries = Vec::new();
    if let Some(bytes) = data_dir::bytes(dir)? {
        let path = dir.join("member");
        let entry = Entry { kind: "data", bytes: Some(bytes), ..Entry::default() };
        entries.push(described(entry, path, data_dir::read(dir), data_dir::last_written(dir)));
    }
    for aside in data_dir::aside(dir)? {
        let kind = match AsideKind::of(&aside.path) {
            Some(AsideKind::History) => "history",
            Some(AsideKind::Backup) | None => "backup",
        };
        let moved = Some(aside.at).filter(|at| *at > 0).map(rfc3339);
        let entry = Entry { kind, moved, bytes: Some(aside.bytes), ..Entry::default() };
        let written = data_dir::last_written_aside(&aside.path);
        entries.push(described(entry, aside.path.clone(), data_dir::read_aside(&aside.path), written));
    }
    Ok(Listed { dir: dir.to_owned(), entries })
}

fn described(entry: Entry, path: PathBuf, found: Result<DataDir, data_dir::Error>, written: Option<u64>) -> Entry {
    let of: Described = data_dir::described(&path);
    let entry = Entry { path, revision: of.revision, written: written.map(rfc3339), ..entry };
    match found {
        Ok(DataDir::Present(history)) => Entry {
            cluster_id: Some(history.cluster_id),
            member_id: Some(history.member_id),
            node: node(&history, &of).cloned(),
            last_term: Some(history.last_term),
            last_index: Some(history.last_index),
            ..entry
        },
        Ok(DataDir::Broken { why }) => Entry { problem: Some(why), ..entry },
        Ok(DataDir::Blank) => Entry { problem: Some("it holds no data of a member".to_owned()), ..entry },
        Err(error) => Entry { problem: Some(error.to_string()), ..entry },
    }
}

impl Report for Listed {
    fn text(&self) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(["kind", "size", "cluster", "node", "term, index", "revision", "last written", "path"]);
        let unknown = || "-".to_owned();
        for one in &self.entries {
            let place = one.last_term.zip(one.last_index).map(|(term, index)| format!("{term}, {index}"));
            table.add_row([
                one.kind.to_owned(),
                one.bytes.map_or_else(unknown, size),
                one.cluster_id.map_or_else(unknown, |id| format!("{id:x}")),
                one.node.clone().or_else(|| one.member_id.map(|id| format!("{id:x}"))).unwrap_or_else(unknown),
                place.or_else(|| one.problem.clone()).unwrap_or_else(unknown),
                one.revision.map_or_else(unknown, |revision| revision.to_string()),
                one.written.clone().unwrap_or_else(unknown),
                one.path.display().to_string(),
            ]);
        }
        if self.entries.is_empty() {
            return String::new();
        }
        table.to_string().lines().map(|line| line.trim_end().trim_start_matches(' ')).collect::<Vec<_>>().join("\n")
    }

    fn complaint(&self) -> Option<Cow<'_, str>> {
        let nothing = || format!("{} holds no data of a member: type etcd's --data-dir", self.dir.display());
        self.entries.is_empty().then(|| nothing().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::report::golden;

    #[test]
    fn each_history_has_a_row_with_whose_it_is_and_how_far_it_reaches() {
        let data = Entry {
            kind: "data",
            path: "/var/lib/etcd/member".into(),
            bytes: Some(25_165_824),
            cluster_id: Some(0xcdf8_1818_e32e_3b5b),
            member_id: Some(0x8e9e_05c5_2164_694d),
            node: Some("node1".to_owned()),
            last_term: Some(9),
            last_index: Some(52_114),
            revision: Some(48_001),
            written: Some("2026-11-23T10:00:00Z".to_owned()),
            ..Entry::default()
        };
        let history = Entry {
            kind: "history",
            path: "/var/lib/etcd/member-history-0001-20261123T081200Z".into(),
            moved: Some("2026-11-23T08:12:00Z".to_owned()),
            node: None,
            last_term: Some(8),
            last_index: Some(51_900),
            revision: None,
            written: None,
            ..data.copy()
        };
        let broken = Entry {
            kind: "backup",
            path: "/var/lib/etcd/member-backup-0001-20261120T081200Z".into(),
            bytes: Some(4096),
            problem: Some("it holds no data of a member".to_owned()),
            ..Entry::default()
        };
        golden::compare("data-dir-list", &Listed { dir: "/var/lib/etcd".into(), entries: vec![data, broken, history] });
    }

    impl Entry {
        fn copy(&self) -> Self {
            Self { path: PathBuf::new(), moved: None, written: None, problem: None, node: self.node.clone(), ..*self }
        }
    }
}
