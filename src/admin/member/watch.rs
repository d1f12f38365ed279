//! `tandem member watch`: keeps the hooks on the voters' Machines.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use super::source::SourceArguments;
use crate::admin::exit::Exit;
use crate::admin::report::{Form, Report, show};
use crate::operate::failure::Failure;
use crate::operate::members::watch::{self, Due, Kept, PATH};
use crate::os::clock;
use crate::os::output::complain;
use crate::records::events::{self, own};

const HELP: &str = "\
Each 30 seconds, or once with --once, the command does this:
  - It puts the hook of 'tandem member protect' on the Machine of each voter that lacks it, unless the Machine is
    being deleted.
  - It takes the hook off a Machine that is being deleted, once a majority confirms that its node has no member.
  - If a voter's Machine is being deleted, and another machine of the control plane runs without a member, it prints
    the 'tandem member replace' to type.

It promotes, removes and deletes nothing. Where OpenShift's etcd operator runs, it writes nothing. If another writer
takes the hook off a Machine three times, the command puts it on no more, until it finds the hook there again.

In a pair, 'pcs resource update etcd machine_hooks=yes' has the collector do the same. Not run on a real OpenShift.

Exit codes of --once:
  0  done, or nothing was left to do
  1  failed, or no member answered
  2  the arguments are wrong
  3  something could not be done, or a hook is put on no more

With --json, one object each time that something was done or has changed:
  operator   whether OpenShift's etcd operator keeps the hooks, so that nothing was written
  put_on     the nodes whose Machine got the hook
  taken_off  the nodes whose Machine lost it
  given_up   the nodes whose Machine gets it no more
  due        each replacement that is to be typed, with old, new and command
  problems   what could not be done, in sentences";

/// Keeps a hook on the Machine of each voter, and takes it off once the member is removed
#[derive(Args)]
#[command(after_help = HELP)]
pub(in crate::admin) struct Arguments {
    /// Checks and writes the hooks once, then ends; for a timer or a script
    #[arg(long)]
    once: bool,
    /// File that counts how often another writer took each hook off
    #[arg(long, value_name = "FILE", default_value = PATH)]
    state: PathBuf,
    #[command(flatten)]
    source: SourceArguments,
    #[command(flatten)]
    form: Form,
}

/// Interval at which `tandem member watch` checks the hooks on the Machines.
const PAUSE: Duration = Duration::from_secs(30);

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let target = arguments.source.target();
    if arguments.once {
        let kept = watch::of_target(&target, &arguments.state)?;
        record(Path::new(events::DIRECTORY), clock::wall_seconds(), &kept);
        return show(&kept, arguments.form);
    }
    let (mut due, mut problems) = (Vec::new(), Vec::new());
    loop {
        match watch::of_target(&target, &arguments.state) {
            Ok(kept) => {
                record(Path::new(events::DIRECTORY), clock::wall_seconds(), &kept);
                if is_news(&kept, &due, &problems) {
                    show(&kept, arguments.form)?;
                }
                (due, problems) = (kept.due, kept.problems);
            }
            Err(Failure(why)) => {
                if problems != [why.clone()] {
                    complain(format_args!("tandem: {why}"));
                }
                problems = vec![why];
            }
        }
        clock::sleep(PAUSE);
    }
}

/// Records the events of the run `kept` at the wall-clock time `at` in seconds. A machine without `/var/lib/pacemaker` records
/// nothing, and the command prints all of it anyway.
fn record(directory: &Path, at: u64, kept: &Kept) {
    for told in watch::events(at, kept) {
        own::tell(directory, Some(told));
    }
}

/// Returns whether the run `kept` is to be reported. True if it changed a hook, or if it found anything that the previous run had not
/// found. `due` and `problems` are from the previous run.
fn is_news(kept: &Kept, due: &[Due], problems: &[String]) -> bool {
    let did = [&kept.put_on, &kept.taken_off, &kept.given_up].into_iter().any(|nodes| !nodes.is_empty());
    did || kept.due.iter().any(|one| !due.contains(one)) || kept.problems.iter().any(|one| !problems.contains(one))
}

impl Report for Kept {
    fn text(&self) -> String {
        let put_on = self.put_on.iter().map(|node| format!("{node}: the deletion of its Machine waits for it"));
        let taken_off = self.taken_off.iter().map(|node| format!("{node}: its Machine may be deleted"));
        let given_up = self.given_up.iter().map(|node| Self::gave_up(node));
        let due = self.due.iter().map(Due::sentence);
        let lines = put_on.chain(taken_off).chain(given_up).chain(due).chain(self.problems.iter().cloned());
        let lines: Vec<String> = lines.collect();
        match lines.join("\n") {
            text if !text.is_empty() => text,
            _ if self.operator => "OpenShift's etcd operator keeps the hooks by itself: nothing was written".to_owned(),
            _ => "nothing was left to do".to_owned(),
        }
    }

    fn exit(&self) -> Exit {
        if self.problems.is_empty() && self.given_up.is_empty() { Exit::Done } else { Exit::Degraded }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::report::golden;

    fn due(old: &str) -> Due {
        let command = format!("tandem member replace {old} --new node4=192.0.2.4");
        Due { old: old.to_owned(), new: "node4".to_owned(), command }
    }

    #[test]
    fn every_turn_has_its_golden() {
        let node = |name: &str| vec![name.to_owned()];
        let kept = Kept {
            operator: false,
            put_on: node("node1"),
            taken_off: node("node5"),
            given_up: node("node2"),
            due: vec![due("node3")],
            problems: vec!["the hook of node6's Machine is not written: the API answers 403".to_owned()],
        };
        assert_eq!((kept.exit(), Kept::default().exit()), (Exit::Degraded, Exit::Done));
        golden::compare("member-watch", &kept);
        golden::compare("member-watch-operator", &Kept { operator: true, ..Kept::default() });
        assert_eq!(Kept::default().text(), "nothing was left to do");
    }

    #[test]
    fn a_turn_is_recorded_as_the_collector_records_it() {
        let dir = tempfile::tempdir().unwrap();
        let kept = Kept { given_up: vec!["node2".to_owned()], due: vec![due("node3")], ..Kept::default() };
        record(dir.path(), 1_000_000, &kept);
        let text = std::fs::read_to_string(dir.path().join(events::FILES[0])).unwrap();
        let reasons = [events::reason::HOOK_GIVEN_UP, events::reason::REPLACEMENT_DUE];
        assert!(reasons.iter().all(|reason| text.contains(reason)) && text.lines().count() == 2, "{text}");
    }

    #[test]
    fn what_lasts_is_shown_once() {
        let kept = Kept { due: vec![due("node3")], problems: vec!["why".to_owned()], ..Kept::default() };
        assert!(is_news(&kept, &[], &["why".to_owned()]) && is_news(&kept, &[due("node3")], &[]));
        assert!(!is_news(&kept, &[due("node3")], &["why".to_owned()]) && !is_news(&Kept::default(), &[], &[]));
    }
}
