//! `tandem data-dir show`: prints the evidence that the agent reads, for people and for scripts.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use serde::{Serialize, Serializer};

use super::checked;
use crate::adapters::command::Programs;
use crate::adapters::data_dir::{self, AsideKind, DataDir, Described, History};
use crate::admin::node::ResourceArgument;
use crate::admin::report::{Form, Report};
use crate::decide::reason::LastWritten;
use crate::operate::failure::Failure;
use crate::operate::node;

const HELP: &str = "\
The command only reads, and works whether etcd runs or not. It also reads data that was moved aside ('member-backup-*',
'member-history-*'); 'tandem data-dir list' has the paths.

Exit codes:
  0  the data can be used
  1  there is none, or it cannot be used or read

With --json, ids are 64-bit numbers. A tool that takes numbers for floating point, such as jq before 1.7, rounds them.
Without any data all keys are null, and damage is empty.
  cluster_id, member_id, node (the member's name), last_term, last_index, commit_index
  revision        revision of the last change in the database
  voters, learners   ids of the members
  has_left        whether the member was removed from the cluster
  database_ahead  the index that the database reaches, if the log ends before it; else null
  damage          what is damaged, in sentences; empty if nothing is";

/// Shows to which member the data belongs, how far it reaches, and which members it lists
#[derive(Args)]
#[command(after_help = HELP)]
pub(in crate::admin) struct Arguments {
    #[command(flatten)]
    pub form: Form,
    /// etcd's --data-dir, the directory that holds 'member', or data that was moved aside; the default is that of the etcd
    /// resource
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
    #[command(flatten)]
    resource: ResourceArgument,
}

pub(super) fn run(arguments: &Arguments) -> Result<Shown, Failure> {
    let dir = match &arguments.dir {
        Some(dir) => dir.clone(),
        None => node::data_dir(&Programs::default(), arguments.resource.id())?,
    };
    if AsideKind::of(&dir).is_some() && dir.is_dir() {
        let found = data_dir::read_aside(&dir)?;
        let (written, described) = (LastWritten(data_dir::last_written_aside(&dir)), data_dir::described(&dir));
        return Ok(Shown { dir, is_open: false, written, found, described });
    }
    let dir = checked(&dir)?;
    let found = data_dir::read(dir)?;
    let described = data_dir::described(&dir.join("member"));
    // Only the text contains it, and the check takes locks for a moment.
    let is_open = !arguments.form.json && matches!(found, DataDir::Present(_)) && data_dir::is_open(dir)?;
    let written = LastWritten(data_dir::last_written(dir));
    Ok(Shown { dir: dir.to_owned(), is_open, written, found, described })
}

/// The report of `tandem data-dir show`: the content of a data dir.
pub(super) struct Shown {
    dir: PathBuf,
    is_open: bool,
    written: LastWritten,
    found: DataDir,
    described: Described,
}

/// Returns the name of the member to which the data belongs; `None` if the name is unknown.
pub(super) fn node<'a>(history: &History, described: &'a Described) -> Option<&'a String> {
    described.names.get(&history.member_id).filter(|name| !name.is_empty())
}

impl Serialize for Shown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Json::of(&self.found, &self.described).serialize(serializer)
    }
}

impl Report for Shown {
    fn text(&self) -> String {
        match &self.found {
            DataDir::Present(history) => self.for_people(history),
            DataDir::Broken { .. } | DataDir::Blank => String::new(),
        }
    }

    fn complaint(&self) -> Option<Cow<'_, str>> {
        let dir = self.dir.display();
        match &self.found {
            DataDir::Present(_) => None,
            DataDir::Broken { why } => Some(format!("etcd cannot start from {dir}: {why}").into()),
            DataDir::Blank => Some(format!("{dir} holds no data of a member: type etcd's --data-dir").into()),
        }
    }
}

/// The report's JSON. Scripts rely on its keys.
#[derive(Default, Serialize)]
struct Json<'a> {
    cluster_id: Option<u64>,
    member_id: Option<u64>,
    node: Option<&'a String>,
    last_term: Option<u64>,
    last_index: Option<u64>,
    commit_index: Option<u64>,
    revision: Option<u64>,
    voters: Option<&'a BTreeSet<u64>>,
    learners: Option<&'a BTreeSet<u64>>,
    has_left: Option<bool>,
    database_ahead: Option<u64>,
    damage: Vec<&'a str>,
}

impl<'a> Json<'a> {
    fn of(found: &'a DataDir, described: &'a Described) -> Self {
        match found {
            DataDir::Blank => Self::default(),
            DataDir::Broken { why } => Self { damage: vec![why], ..Self::default() },
            DataDir::Present(history) => Self {
                cluster_id: Some(history.cluster_id),
                member_id: Some(history.member_id),
                node: node(history, described),
                last_term: Some(history.last_term),
                last_index: Some(history.last_index),
                commit_index: Some(history.commit_index),
                revision: described.revision,
                voters: Some(&history.voters),
                learners: Some(&history.learners),
                has_left: Some(history.has_left),
                database_ahead: history.database_ahead,
                damage: history.damage.iter().map(String::as_str).collect(),
            },
        }
    }
}

impl Shown {
    fn for_people(&self, history: &History) -> String {
        let me = history.member_id;
        let lines = |all: Vec<String>| if all.is_empty() { "none".to_owned() } else { all.join("\n              ") };
        let named = |id: &u64| {
            let name = self.described.names.get(id).filter(|name| !name.is_empty());
            let name = name.map(|name| format!(", {name}")).unwrap_or_default();
            format!("{}{name}{}", super::id(*id), if *id == me { ", this member" } else { "" })
        };
        let list = |ids: &BTreeSet<u64>| lines(ids.iter().map(named).collect());
        let role = match (history.has_left, history.is_voter(), history.learners.contains(&me)) {
            (true, ..) => "has left the cluster",
            (_, true, _) => "a voter",
            (_, _, true) => "a learner",
            _ => "not yet in its own log",
        };
        let damage = lines(history.damage.clone());
        let etcd = match AsideKind::of(&self.dir) {
            Some(AsideKind::Backup) => "does not use it: moved aside before a join; the newest few are kept",
            Some(AsideKind::History) => "does not use it: given up for another history; nothing deletes it but you",
            None if self.is_open => "runs: the numbers are already old",
            None => "does not have it open",
        };
        let (dir, written) = (self.dir.display(), &self.written);
        let node = node(history, &self.described).map_or("not known", String::as_str);
        let revision = self.described.revision.map_or_else(|| "not known".to_owned(), |revision| revision.to_string());
        let (cluster, member) = (super::id(history.cluster_id), super::id(me));
        let (voters, learners) = (list(&history.voters), list(&history.learners));
        let (index, term, commit) = (history.last_index, history.last_term, history.commit_index);
        format!(
            "data dir      {dir}\n\
         etcd          {etcd}\n\
         cluster       {cluster}\n\
         member        {member}, {role}\n\
         node          {node}\n\
         last entry    index {index}, term {term}{written}\n\
         commit index  {commit}\n\
         revision      {revision}\n\
         voters        {voters}\n\
         learners      {learners}\n\
         damage        {damage}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::report::golden;

    #[test]
    fn a_history_is_shown_whole() {
        let history = History {
            cluster_id: 0xcdf8_1818_e32e_3b5b,
            member_id: 0xfedc_ba98_7654_3210,
            last_term: 7,
            last_index: 4_405,
            commit_index: 4_404,
            voters: BTreeSet::from([0x8000_0000_0000_0001, 0xfedc_ba98_7654_3210]),
            learners: BTreeSet::new(),
            has_left: false,
            database_ahead: None,
            damage: Vec::new(),
        };
        let (dir, found) = (PathBuf::from("/var/lib/etcd"), DataDir::Present(history));
        let described =
            Described { revision: Some(3_120), names: [(0xfedc_ba98_7654_3210, "node1".to_owned())].into() };
        let written = LastWritten(Some(951_782_399));
        golden::compare("data-dir-show", &Shown { dir, is_open: true, written, found, described });
    }
}
