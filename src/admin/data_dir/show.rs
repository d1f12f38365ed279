//! `tandem data-dir show`: the evidence that the agent reads, for people and for scripts.

use std::collections::BTreeSet;
use std::path::Path;

use clap::{Arg, ArgAction, ArgMatches, Command};
use serde::Serialize;

use crate::admin::{Failure, Subcommand, say};
use crate::data_dir::{self, DataDir, History};
use crate::decide::reason::LastWritten;

const HELP: &str = "\
Reads only; works while etcd runs or not.

With --json, one object with the keys cluster_id, member_id, last_term, last_index, commit_index, voters, learners,
has_left, database_ahead and damage. Ids are numbers of 64 bits: a tool that takes numbers for floating point, such as
jq before 1.7, rounds them. database_ahead is the index that the database reaches where the log ends before it, and else
null. Without any data all are null, and damage is empty; if what is there cannot be used, damage says why.

Exit code: 0 if there is a usable history, or none at all; 1 if it cannot be used or could not be read.";

pub(super) const SUBCOMMAND: Subcommand = Subcommand { command, run };

fn command() -> Command {
    let json = Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print one JSON object");
    let about = "Shows whose data it is, how far it reaches and who the members are";
    Command::new("show").about(about).after_help(HELP).arg(json).arg(super::dir_argument())
}

fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let dir = super::dir(matches)?;
    let found = data_dir::read(dir)?;
    if matches.get_flag("json") {
        say(serde_json::to_string_pretty(&Json::from(&found))?)?;
    } else if let DataDir::Present(history) = &found {
        say(for_people(dir, history, data_dir::is_open(dir)?))?;
    }
    match found {
        DataDir::Present(_) => Ok(()),
        DataDir::Broken { why } => Err(Failure(format!("etcd cannot start from {}: {why}", dir.display()))),
        DataDir::Blank => {
            if !matches.get_flag("json") {
                say(format_args!("{} holds no data of a member", dir.display()))?;
            }
            Ok(())
        }
    }
}

/// The keys that scripts rely on.
#[derive(Default, Serialize)]
struct Json<'a> {
    cluster_id: Option<u64>,
    member_id: Option<u64>,
    last_term: Option<u64>,
    last_index: Option<u64>,
    commit_index: Option<u64>,
    voters: Option<&'a BTreeSet<u64>>,
    learners: Option<&'a BTreeSet<u64>>,
    has_left: Option<bool>,
    database_ahead: Option<u64>,
    damage: Vec<&'a str>,
}

impl<'a> From<&'a DataDir> for Json<'a> {
    fn from(found: &'a DataDir) -> Self {
        match found {
            DataDir::Blank => Self::default(),
            DataDir::Broken { why } => Self { damage: vec![why], ..Self::default() },
            DataDir::Present(history) => Self {
                cluster_id: Some(history.cluster_id),
                member_id: Some(history.member_id),
                last_term: Some(history.last_term),
                last_index: Some(history.last_index),
                commit_index: Some(history.commit_index),
                voters: Some(&history.voters),
                learners: Some(&history.learners),
                has_left: Some(history.has_left),
                database_ahead: history.database_ahead,
                damage: history.damage.iter().map(String::as_str).collect(),
            },
        }
    }
}

fn for_people(dir: &Path, history: &History, is_open: bool) -> String {
    let me = history.member_id;
    let lines = |all: Vec<String>| if all.is_empty() { "none".to_owned() } else { all.join("\n              ") };
    let named = |id: &u64| format!("{}{}", super::id(*id), if *id == me { ", this member" } else { "" });
    let list = |ids: &BTreeSet<u64>| lines(ids.iter().map(named).collect());
    let role = match (history.has_left, history.is_voter(), history.learners.contains(&me)) {
        (true, ..) => "has left the cluster",
        (_, true, _) => "a voter",
        (_, _, true) => "a learner",
        _ => "not yet in its own log",
    };
    let damage = lines(history.damage.clone());
    let etcd = if is_open { "runs: the numbers are already old" } else { "does not have it open" };
    let written = LastWritten(data_dir::last_written(dir));
    let dir = dir.display();
    let (cluster, member) = (super::id(history.cluster_id), super::id(me));
    let (voters, learners) = (list(&history.voters), list(&history.learners));
    let (index, term, commit) = (history.last_index, history.last_term, history.commit_index);
    format!(
        "data dir      {dir}\n\
         etcd          {etcd}\n\
         cluster       {cluster}\n\
         member        {member}, {role}\n\
         last entry    index {index}, term {term}{written}\n\
         commit index  {commit}\n\
         voters        {voters}\n\
         learners      {learners}\n\
         damage        {damage}"
    )
}
