//! `tandem data-dir forget`: deletes a history that was given up, by its name.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use super::checked;
use crate::adapters::command::Programs;
use crate::adapters::data_dir;
use crate::admin::node::ResourceArgument;
use crate::admin::prompt::{Answers, Prompt};
use crate::admin::report::{Form, Report};
use crate::base::Fact;
use crate::decide::evidence::DurableState;
use crate::operate::failure::Failure;
use crate::operate::health::words::size;
use crate::operate::node;
use crate::records::own_dir;

const HELP: &str = "\
A history that was given up ('member-history-*') is the data of a node that ran standalone, and gave way to the data of
its peer. It may hold writes that exist nowhere else, so no program deletes it by itself. List its keys first:
'tandem data-dir diff PATH live'. The command asks for the history's name, unless --confirm has it.

The command deletes neither etcd's present data nor backups, of which the agent keeps the newest. It refuses while this
node joins its peer. It follows no link.

With --json: path of the history, and bytes (the space that it took on the disk).";

/// Deletes a history: data that was given up for that of the other node
#[derive(Args)]
#[command(after_help = HELP)]
pub(in crate::admin) struct Arguments {
    #[command(flatten)]
    pub form: Form,
    /// Name of the history: the last part of its path in 'tandem data-dir list'
    #[arg(value_name = "NAME")]
    name: String,
    /// etcd's --data-dir, the directory that holds 'member'; the default is that of the etcd resource
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Name of the history, as the confirmation; without it, the command asks for the name
    #[arg(long, value_name = "NAME")]
    confirm: Option<String>,
    #[command(flatten)]
    resource: ResourceArgument,
}

/// The report of `tandem data-dir forget`: the history that was deleted.
#[derive(Debug, Serialize)]
pub(super) struct Forgotten {
    path: PathBuf,
    bytes: u64,
}

pub(super) fn run(arguments: &Arguments) -> Result<Forgotten, Failure> {
    let dir = match &arguments.dir {
        Some(dir) => dir.clone(),
        None => node::data_dir(&Programs::default(), arguments.resource.id())?,
    };
    let answers = Answers::confirming(arguments.confirm.clone());
    forget(checked(&dir)?, &arguments.name, &Prompt::new(&answers, arguments.form))
}

fn forget(dir: &Path, name: &str, prompt: &Prompt<'_>) -> Result<Forgotten, Failure> {
    // A path from the list is accepted, too.
    let name = name.strip_prefix(&format!("{}/", dir.display())).unwrap_or(name);
    let Some(bytes) = data_dir::history_bytes(dir, name)? else {
        return Err(Failure(format!("{name} is no history in {}: see 'tandem data-dir list'", dir.display())));
    };
    check_that_nothing_joins(dir)?;
    prompt.name(&question(name, bytes), name)?;
    check_that_nothing_joins(dir)?;
    data_dir::forget_history(dir, name)?;
    Ok(Forgotten { path: dir.join(name), bytes })
}

fn question(name: &str, bytes: u64) -> String {
    format!(
        "{name} takes {} and may hold writes that exist nowhere else ('tandem data-dir diff' lists its keys). \
         It is deleted for good once you type its name",
        size(bytes)
    )
}

/// Refuses to delete a history while this node joins its peer. Until this node votes, the history may be one of only two copies of the
/// data.
fn check_that_nothing_joins(dir: &Path) -> Result<(), Failure> {
    match own_dir::read::<DurableState>(dir, own_dir::NOTE) {
        Fact::Known(note) if note.joins => Err(Failure(
            "this node joins its peer, and has no copy of all data yet: type it again once it votes, see 'tandem status'"
                .to_owned(),
        )),
        Fact::Unknown(why) => {
            Err(Failure(format!("whether this node joins its peer is not known: {why}; see 'tandem explain'")))
        }
        Fact::Known(_) | Fact::Absent | Fact::NotAsked => Ok(()),
    }
}

impl Report for Forgotten {
    fn text(&self) -> String {
        format!("deleted {}, which took {}", self.path.display(), size(self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::admin::report::golden;

    const NAME: &str = "member-history-0001-20261123T081200Z";

    fn asked(dir: &Path, name: &str, answer: &str) -> Result<Forgotten, String> {
        let answers = Answers::confirming(Some(answer.to_owned()));
        forget(dir, name, &Prompt::new(&answers, Form { json: false })).map_err(|Failure(why)| why)
    }

    fn note(dir: &Path, joins: bool) {
        own_dir::write(dir, own_dir::NOTE, &DurableState { joins, ..DurableState::default() }).unwrap();
    }

    #[test]
    fn what_was_deleted_is_shown() {
        let path = Path::new("/var/lib/etcd").join(NAME);
        golden::compare("data-dir-forget", &Forgotten { path, bytes: 734_003_200 });
    }

    #[test]
    fn only_a_history_that_is_named_twice_is_deleted() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path();
        let history = dir.join(NAME);
        for name in ["member", "member-backup-0001-20261123T081200Z", NAME] {
            fs::create_dir_all(dir.join(name).join("snap")).unwrap();
        }
        let elsewhere = tempfile::tempdir().unwrap();
        fs::write(elsewhere.path().join("kept"), "").unwrap();
        let link = "member-history-0002-20261123T081200Z";
        symlink(elsewhere.path(), dir.join(link)).unwrap();
        for other in
            ["member", "member-backup-0001-20261123T081200Z", link, "..", "tandem", "", "member-history-9", "a/b"]
        {
            let why = asked(dir, other, other).unwrap_err();
            assert!(why.contains("is no history in"), "{other}: {why}");
        }
        assert!(asked(dir, NAME, "yes").unwrap_err().contains("nothing was done"));
        note(dir, true);
        assert!(asked(dir, NAME, NAME).unwrap_err().starts_with("this node joins its peer"));
        fs::write(own_dir::path(dir, own_dir::NOTE), "damaged").unwrap();
        assert!(asked(dir, NAME, NAME).unwrap_err().starts_with("whether this node joins"));
        assert!(history.exists());
        note(dir, false);
        asked(dir, &history.display().to_string(), NAME).unwrap();
        assert!(!history.exists() && dir.join("member").exists());
        let left: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left.len(), 4, "{left:?}");
        assert!(elsewhere.path().join("kept").exists());
    }
}
