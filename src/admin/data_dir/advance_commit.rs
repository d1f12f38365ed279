//! `tandem data-dir advance-commit`: by hand, what the agent does before it forces a new cluster.

use clap::{ArgMatches, Command};

use crate::admin::{Failure, Subcommand, say};
use crate::data_dir;

const HELP: &str = "\
etcd --force-new-cluster drops every entry of the log that is not recorded as committed. In a cluster of two voters
such an entry can be a write that was acknowledged. Do this first, and only if the other member is gone for good or
will join again with an empty data dir: every entry of the log then counts as committed.

Refuses while etcd has the data dir open, and on the data of a learner, of a member that has left, and on damaged data;
also where the database reaches beyond the end of the log, as a forced new cluster then destroys the log.
A copy of the end of the log, as it was before, is kept in DIR; its name says of which file and from which byte.";

pub(super) const SUBCOMMAND: Subcommand = Subcommand { command, run };

fn command() -> Command {
    let about = "Records every entry of the log as committed, so that --force-new-cluster loses none";
    Command::new("advance-commit").about(about).after_help(HELP).arg(super::dir_argument())
}

fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let done = data_dir::advance_commit(super::dir(matches)?)?;
    say(format_args!("commit index before  {}", done.from))?;
    say(format_args!("commit index now     {}", done.to))?;
    match done.kept_copy {
        Some(copy) => say(format_args!("copy kept            {}", copy.display())),
        None => say("nothing had to be changed: every entry was recorded as committed"),
    }
}
