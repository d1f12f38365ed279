//! `tandem certs rotate-ca`: replaces the trusted CA while etcd serves.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use zeroize::Zeroizing;

use crate::adapters::command::Programs;
use crate::adapters::ssh::{self, Running};
use crate::admin::exit::Exit;
use crate::admin::node::ResourceArgument;
use crate::admin::prompt::{Answers, Prompt};
use crate::admin::report::{Form, Report};
use crate::base::duration;
use crate::operate::certs::here::{self, Here};
use crate::operate::certs::join_file::{self, JoinFile};
use crate::operate::certs::pki::rotation::{self, Next, Role, Site as _, State};
use crate::operate::certs::pki::{Authority, Failed, Files, Holder};
use crate::operate::certs::site::{self, ThisNode};
use crate::operate::failure::Failure;
use crate::operate::health::words::rfc3339;
use crate::operate::node::must_be_root;
use crate::os::clock::{self, Deadline};
use crate::os::output;

const HELP: &str = "\
Each node does its part. This node begins, and writes what the other one needs into /etc/tandem/certs-NODE.join (0600; it
has the key of the new CA, and is void after a day). Copy that file to the other node and type 'tandem certs join FILE'
there, or have --ssh do both.

Both nodes then trust the old CA and the new one, and restart etcd one after the other, without leaving the member list.
Both take new certificates. Once neither node shows a certificate of the old CA, both trust only the new one, and restart
etcd once more. During each restart etcd has no quorum for a few seconds.

If the command was cut off, type it again: it finds out from the machines what is missing, and continues. It waits for a
node that is off. Such a node comes back with its old certificate, and its peer still trusts that.

Clients with a certificate of the old CA need one of the new CA before the old CA is removed. With --keep-old both nodes
continue to trust the old CA, until you type the command without it.

Exit codes:
  0  done, or kept
  1  failed, or not complete within --timeout: type it again
  3  --dry-run found something to do

With --json:
  state      done, kept (the old CA is still trusted), waiting or, with --dry-run, next
  next       what comes next here, what the command waits for, or why nothing was done
  ca, ends   name and end of the new CA, or of the one that is in use
  join_file  path of the file for the other node, or null
  steps      what was done, in sentences";

/// Interval between two observations of the rotation's progress. Ten intervals are added to the time limit of the ssh command that
/// runs on the other node.
const LOOKS: Duration = Duration::from_millis(700);

/// Replaces Tandem's own CA on both nodes
#[derive(Args)]
#[command(after_help = HELP)]
pub(in crate::admin) struct Arguments {
    /// Prints what comes next, and changes nothing
    #[arg(long)]
    dry_run: bool,
    /// Types 'tandem certs join' on this other node, through ssh, which must ask no question; without it, you type it there
    #[arg(long, value_name = "[USER@]HOST", value_parser = ssh::host)]
    ssh: Option<String>,
    /// Continues to trust the old CA
    #[arg(long)]
    keep_old: bool,
    /// Replaces the CA although it is of today; without it, such a CA is not replaced
    #[arg(long)]
    again: bool,
    /// Longest wait for the other node, such as 10m or 1h
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration)]
    timeout: Duration,
    #[command(flatten)]
    resource: ResourceArgument,
    #[command(flatten)]
    answers: Answers,
    #[command(flatten)]
    pub form: Form,
}

/// The report of `tandem certs rotate-ca`: how far the rotation is.
#[derive(Debug, Default, Serialize)]
pub(super) struct Rotated {
    pub(super) state: &'static str,
    pub(super) next: Option<String>,
    pub(super) ca: String,
    pub(super) ends: String,
    pub(super) join_file: Option<PathBuf>,
    pub(super) steps: Vec<String>,
}

impl Rotated {
    /// Returns `next`, the reason why nothing had to be done, as the end of a sentence. Returns an empty text if there is no `next`.
    fn untouched(&self) -> String {
        self.next.as_ref().map(|next| format!("; {next}")).unwrap_or_default()
    }
}

impl Report for Rotated {
    fn text(&self) -> String {
        let mut text = String::new();
        for step in &self.steps {
            let _ = writeln!(text, "done: {step}");
        }
        let Self { ca, ends, .. } = self;
        let _ = match self.state {
            "done" => write!(text, "'{ca}' is the one CA, until {ends}{}", self.untouched()),
            "kept" => write!(text, "every certificate is of '{ca}', and the old CA is trusted still"),
            _ => write!(text, "{}: {}", self.state, self.next.as_deref().unwrap_or_default()),
        };
        if let Some(file) = self.join_file.as_ref().filter(|_| self.state != "done") {
            let _ = write!(text, "\nfor the other node: {}", file.display());
        }
        text
    }

    fn complaint(&self) -> Option<std::borrow::Cow<'_, str>> {
        let next = self.next.as_deref().unwrap_or_default();
        (self.state == "waiting")
            .then(|| format!("the rotation is not at its end ({next}): type the same again").into())
    }

    fn exit(&self) -> Exit {
        if self.state == "next" { Exit::Degraded } else { Exit::Done }
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<Rotated, Failure> {
    must_be_root()?;
    let (files, here) = (here::files(), Here::find(arguments.resource.id())?);
    here.must_have_own_ca()?;
    let now = clock::wall_seconds();
    let is_under_way = files.next()?.is_some();
    if !is_under_way {
        // Most likely an operator repeats a command that was interrupted, after the rotation had ended.
        if !arguments.again && rotation::is_fresh(&files, now)? {
            return fresh(&files, &here, arguments.dry_run);
        }
        unknown_cas(&here, &files)?;
    }
    if arguments.dry_run {
        return dry_run(&files, &here, is_under_way);
    }
    if !arguments.keep_old {
        ask(&Prompt::new(&arguments.answers, arguments.form))?;
    }
    let holder = here::holder(Some(&here), &files)?;
    let lock = files.lock()?;
    let next = rotation::begin(&files, &here.cluster(), arguments.again, now)?;
    drop(lock);
    let Some(next) = next else { return fresh(&files, &here, false) };
    let join = here.other.as_ref().map(|(other, _)| JoinFile::new(&next, other, &here.node, now));
    let file = join.as_ref().map(JoinFile::write).transpose()?;
    let remote = match (&arguments.ssh, &join) {
        (Some(host), Some(join)) => Some(Remote::begin(host, &join.text()?, arguments.timeout)),
        _ => None,
    };
    let way = Way { files: &files, here: &here, holder: &holder, role: Role::First, keep_old: arguments.keep_old };
    let mut rotated = way.go(&next, arguments.timeout, remote.as_ref())?;
    rotated.join_file = file;
    if rotated.state == "done"
        && let Some(file) = rotated.join_file.take()
    {
        let _ = std::fs::remove_file(file);
    }
    Ok(rotated)
}

/// Returns the report that no new CA is made, because the present CA was made today. Deletes the other node's join file, because it
/// contains the CA's key. An interrupted command may have left that file here.
fn fresh(files: &Files, here: &Here, dry_run: bool) -> Result<Rotated, Failure> {
    if !dry_run && let Some((other, _)) = &here.other {
        let _ = std::fs::remove_file(join_file::path(other));
    }
    let why = "it is of today, so nothing was done: type it with --again to have another one";
    Ok(told("done", Some(why.to_owned()), &files.authority()?))
}

fn ask(prompt: &Prompt<'_>) -> Result<(), Failure> {
    let question = "Clients that were issued certificates need new ones, or are refused once the old CA goes (--keep-old keeps it).\n\
                    Type 'yes' to continue";
    if prompt.leave(question)? {
        return Ok(());
    }
    let word = "yes";
    Err(Failure(format!("nothing was done: '{word}' was not typed")))
}

pub(super) fn told(state: &'static str, next: Option<String>, ca: &Authority) -> Rotated {
    let certificate = ca.certificate();
    let name = certificate.name().unwrap_or_default().to_owned();
    Rotated { state, next, ca: name, ends: rfc3339(certificate.ends), join_file: None, steps: Vec::new() }
}

/// Refuses a rotation while the peer trusts a CA that this node does not know. The operator must first run `tandem certs join` for the
/// peer's rotation.
fn unknown_cas(here: &Here, files: &Files) -> Result<(), Failure> {
    let known: Vec<Vec<u8>> = files.bundle()?.into_iter().map(|one| one.subject_der).collect();
    let Some(peer) = here.peer() else { return Ok(()) };
    let trusts = peer.seen.map(|seen| seen.trusts).unwrap_or_default();
    if trusts.iter().flatten().any(|subject| !known.contains(subject)) {
        let node = peer.node;
        return Err(Failure(format!(
            "{node} trusts a CA that is not known here: type 'tandem certs join' with the file of {node}"
        )));
    }
    Ok(())
}

fn dry_run(files: &Files, here: &Here, is_under_way: bool) -> Result<Rotated, Failure> {
    if !is_under_way {
        return Ok(told("next", Some("make a new CA, and the other node's join file".to_owned()), &files.authority()?));
    }
    let ca = files.next()?.map_or_else(|| files.authority(), Ok)?;
    let look = ThisNode { here }.look();
    Ok(match rotation::next(&State::read(files)?, &look, Role::First, false) {
        Next::Do(step) => told("next", Some(step.to_string()), &ca),
        Next::Wait(why) => told("next", Some(why), &ca),
        Next::Kept | Next::Done => told("done", None, &ca),
    })
}

/// A node's part of a CA rotation.
pub(super) struct Way<'a> {
    pub(super) files: &'a Files,
    pub(super) here: &'a Here,
    pub(super) holder: &'a Holder,
    pub(super) role: Role,
    pub(super) keep_old: bool,
}

impl Way<'_> {
    /// Performs this node's steps until the rotation is done or `timeout` is over. Fails if the command of `remote` fails.
    pub(super) fn go(&self, ca: &Authority, timeout: Duration, remote: Option<&Remote>) -> Result<Rotated, Failure> {
        let end = Deadline::after(timeout);
        let mut site = ThisNode { here: self.here };
        if let Ok(_lock) = self.files.lock() {
            site::take_back(self.here);
        }
        let (mut steps, mut said) = (Vec::new(), String::new());
        let state = loop {
            // The lock is not held all the time, because the timer may renew certificates in between.
            let lock = match self.files.lock() {
                Err(Failed::Busy(_)) if !end.has_passed() => {
                    end.sleep(LOOKS);
                    continue;
                }
                lock => lock?,
            };
            let now = clock::wall_seconds();
            let next = rotation::advance(self.files, &mut site, self.role, self.keep_old, self.holder, now)?;
            drop(lock);
            match next {
                Next::Do(step) => steps.push(step.to_string()),
                Next::Kept => break told("kept", None, ca),
                Next::Done => break told("done", None, ca),
                Next::Wait(why) if end.has_passed() => break told("waiting", Some(why), ca),
                Next::Wait(why) => {
                    if let Some(failed) = remote.and_then(Remote::failed) {
                        return Err(failed);
                    }
                    if why != said {
                        output::complain(format_args!("waiting: {why}"));
                        said = why;
                    }
                }
            }
            end.sleep(LOOKS);
        };
        Ok(Rotated { steps, ..state })
    }
}

/// The command `tandem certs join` that runs on the other node through ssh, and the ssh host.
pub(super) struct Remote(Running, String);

impl Remote {
    /// Starts `tandem certs join` on the other node. The join file is sent on standard input, because it contains a secret.
    fn begin(host: &str, join: &str, timeout: Duration) -> Self {
        let seconds = format!("{}s", timeout.as_secs());
        let words = ["certs", "join", "-", "--timeout", &seconds];
        let join = Zeroizing::new(join.as_bytes().to_vec());
        // The command there continues by itself if this one ends.
        let running = Running::begin(&Programs::default(), host, &words, join, None, timeout + LOOKS * 10);
        Self(running, host.to_owned())
    }

    /// Returns the reason why the command on the other node failed; `None` while it runs, or if it succeeded.
    fn failed(&self) -> Option<Failure> {
        let why = match self.0.ended()? {
            Ok(output) if output.code == 0 => return None,
            Ok(output) => output.complaint().to_owned(),
            Err(error) => error.to_string(),
        };
        Some(Failure(format!("'ssh {} tandem certs join' failed: {why}", self.1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::report::golden;

    #[test]
    fn where_a_rotation_stands_is_told_with_what_comes_next() {
        let waiting = Rotated {
            state: "waiting",
            next: Some("the new CA is not trusted by the other node yet".to_owned()),
            ca: "Tandem CA of demo, 2026-11-23 08:53:20 UTC".to_owned(),
            ends: "2036-11-22T08:53:20Z".to_owned(),
            join_file: Some(join_file::path("node2")),
            steps: vec![rotation::RotationStep::Trust.to_string(), rotation::RotationStep::Restart.to_string()],
        };
        assert!(waiting.complaint().is_some_and(|why| why.contains("type the same again")));
        golden::compare("certs-rotate-ca", &waiting);
        let done = Rotated { state: "done", next: None, join_file: None, ..waiting };
        assert_eq!((done.complaint(), done.exit()), (None, Exit::Done));
        golden::compare("certs-join", &done);
        let fresh = Rotated { next: Some("it is of today".to_owned()), steps: Vec::new(), ..done };
        assert!(fresh.text().ends_with("; it is of today"), "{}", fresh.text());
    }
}
