//! `tandem certs renew`: renews this node's certificates of Tandem's own CA before they expire.

use std::fmt::Write as _;

use clap::Args;
use serde::Serialize;

use crate::admin::node::ResourceArgument;
use crate::admin::report::{Form, Report};
use crate::operate::certs::here::{self, Here};
use crate::operate::certs::join_file;
use crate::operate::certs::pki::{Certificate, Files, Holder, Leaf};
use crate::operate::failure::Failure;
use crate::operate::health::words::rfc3339;
use crate::operate::node::must_be_root;
use crate::os::clock;
use crate::os::output::complain;

const HELP: &str = "\
The command replaces the certificate of this node's etcd, and the one of 'tandem etcdctl', by new ones that are valid for a
year. The key stays, so one rename replaces a certificate. etcd shows the new one with the next handshake, without a
restart. tandem-certs.timer types the command with --if-due each day:

  systemctl enable --now tandem-certs.timer

With --json: renewed and kept, one object for each certificate:
  file   path of the certificate
  ends   when it ends
  why    why it was renewed, or why not
  shown  whether etcd shows the renewed one; null for others, or if that is not known";

/// Renews the certificates of this node that Tandem's own CA has issued
#[derive(Args)]
#[command(after_help = HELP)]
pub(in crate::admin) struct Arguments {
    /// Renews only certificates that have a third of their time left or less, lack an address of the node, or do not fit
    /// their key
    #[arg(long)]
    if_due: bool,
    /// Also makes new keys
    #[arg(long)]
    new_key: bool,
    #[command(flatten)]
    resource: ResourceArgument,
    #[command(flatten)]
    pub form: Form,
}

/// The report of `tandem certs renew`.
#[derive(Default, Serialize)]
pub(super) struct Renewed {
    renewed: Vec<One>,
    kept: Vec<One>,
}

#[derive(Serialize)]
struct One {
    file: String,
    ends: String,
    why: String,
    shown: Option<bool>,
}

impl Report for Renewed {
    fn text(&self) -> String {
        let mut text = String::new();
        for One { file, ends, why, shown } in &self.renewed {
            let shown = match shown {
                Some(true) => ", etcd shows it",
                Some(false) => ", etcd does not show it yet",
                None => "",
            };
            let _ = writeln!(text, "{file}: renewed ({why}), until {ends}{shown}");
        }
        for One { file, ends, why, .. } in &self.kept {
            let _ = writeln!(text, "{file}: {why}, until {ends}");
        }
        text.trim_end().to_owned()
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<Renewed, Failure> {
    must_be_root()?;
    for path in join_file::delete_void(clock::wall_seconds()) {
        complain(format_args!("tandem: {} is void and was deleted: the CA's key was in it", path.display()));
    }
    let files = here::files();
    // While Pacemaker is stopped, the present certificate names this node.
    let here = Here::find(arguments.resource.id()).ok();
    if let Some(here) = &here {
        here.must_have_own_ca()?;
    }
    let _lock = files.lock()?;
    let holder = here::holder(here.as_ref(), &files)?;
    let mut done = renew(&files, &holder, arguments.if_due, arguments.new_key, clock::wall_seconds())?;
    let seen = here.as_ref().and_then(|here| here.own_seen().ok());
    let leaf = files.leaf(Leaf::Etcd)?;
    let etcds = files.path(Leaf::Etcd.cert()).display().to_string();
    for one in done.renewed.iter_mut().filter(|one| one.file == etcds) {
        one.shown = seen.as_ref().zip(leaf.as_ref()).map(|(seen, leaf)| seen.show(leaf));
    }
    Ok(done)
}

fn renew(files: &Files, holder: &Holder, if_due: bool, new_key: bool, now: u64) -> Result<Renewed, Failure> {
    let authority = files.issuing()?;
    let mut done = Renewed::default();
    for leaf in [Leaf::Etcd, Leaf::Client] {
        let there = files.leaf(leaf)?;
        let file = files.path(leaf.cert()).display().to_string();
        let why = match (due(files, leaf, there.as_ref(), holder, now)?, there) {
            (Some(why), _) => why,
            (None, Some(there)) if if_due => {
                done.kept.push(One { file, ends: rfc3339(there.ends), why: "not due".to_owned(), shown: None });
                continue;
            }
            (None, _) => "asked for",
        };
        if new_key {
            files.renew_with_new_key(leaf, &authority, holder, now)?;
        } else {
            files.renew(leaf, &authority, holder, now)?;
        }
        let ends = files.leaf(leaf)?.map(|new| rfc3339(new.ends)).unwrap_or_default();
        done.renewed.push(One { file, ends, why: why.to_owned(), shown: None });
    }
    Ok(done)
}

/// Returns the reason why the certificate of `leaf` must be renewed; `None` if no renewal is due. `there` is the present certificate.
fn due(
    files: &Files,
    leaf: Leaf,
    there: Option<&Certificate>,
    holder: &Holder,
    now: u64,
) -> Result<Option<&'static str>, Failure> {
    let Some(there) = there else { return Ok(Some("there was none")) };
    if !files.fits(leaf)? {
        return Ok(Some("it did not fit its key"));
    }
    if there.ends.saturating_sub(now) <= there.ends.saturating_sub(there.begins) / 3 {
        return Ok(Some("due"));
    }
    let lacks = leaf == Leaf::Etcd && holder.reached_at.iter().any(|name| !there.names.contains(name));
    Ok(lacks.then_some("it lacked an address or a name"))
}

#[cfg(test)]
mod tests;
