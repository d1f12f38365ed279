//! `tandem data-dir advance-commit`: does by hand what the agent does before it forces a new cluster.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::DirArgument;
use crate::adapters::data_dir;
use crate::admin::report::{Form, Report};
use crate::operate::failure::Failure;

const HELP: &str = "\
etcd --force-new-cluster drops each entry of the log that is not recorded as committed. In a cluster of two voters such an
entry can be an acknowledged write. Type this command first, and only if the other member is gone for good or will join
again with an empty data dir: then each entry of the log counts as committed.

The command refuses while etcd has the data dir open. It refuses the data of a learner or of a member that has left, and
damaged data. It also refuses if the database is ahead of the end of the log, because a forced new cluster then destroys
the log. It keeps a copy of the end of the log in DIR; the copy's name has the file and the first byte.

With --json:
  commit_before  the commit index before
  commit_now     the commit index now
  kept_copy      path of the copy, or null if nothing had to be changed";

/// Records every entry of the log as committed, so that --force-new-cluster loses none
#[derive(Args)]
#[command(after_help = HELP)]
pub(in crate::admin) struct Arguments {
    #[command(flatten)]
    dir: DirArgument,
    #[command(flatten)]
    pub form: Form,
}

/// The report of `tandem data-dir advance-commit`.
#[derive(Serialize)]
pub(super) struct Advanced {
    commit_before: u64,
    commit_now: u64,
    kept_copy: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> Result<Advanced, Failure> {
    let done = data_dir::advance_commit(arguments.dir.checked()?)?;
    Ok(Advanced { commit_before: done.from, commit_now: done.to, kept_copy: done.kept_copy })
}

impl Report for Advanced {
    fn text(&self) -> String {
        let copy = match &self.kept_copy {
            Some(copy) => format!("copy kept            {}", copy.display()),
            None => "nothing had to be changed: every entry was recorded as committed".to_owned(),
        };
        format!("commit index before  {}\ncommit index now     {}\n{copy}", self.commit_before, self.commit_now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::report::golden;

    #[test]
    fn both_indices_and_the_copy_are_told() {
        let kept_copy = Some(PathBuf::from("/var/lib/etcd/0000000000000001-0000000000000009.wal.4096"));
        golden::compare("data-dir-advance-commit", &Advanced { commit_before: 41, commit_now: 44, kept_copy });
    }
}
