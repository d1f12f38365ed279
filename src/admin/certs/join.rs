//! `tandem certs join`: this node's part of a rotation that began on the other one.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::rotate::{Rotated, Way, told};
use crate::admin::node::ResourceArgument;
use crate::admin::report::Form;
use crate::base::duration;
use crate::operate::certs::here::{self, Here};
use crate::operate::certs::join_file::JoinFile;
use crate::operate::certs::pki::rotation::{self, Role};
use crate::operate::failure::Failure;
use crate::operate::node::must_be_root;
use crate::os::clock;

const HELP: &str = "\
The command continues until both nodes trust only the new CA, as 'tandem certs rotate-ca' on the other node does, and
deletes FILE then. If it was cut off, type it again: it continues.

With --json, the keys are those of 'tandem certs rotate-ca' (state, next, ca, ends, join_file, steps); join_file is null.";

/// Does this node's part of a replacement of the CA that began on the other node
#[derive(Args)]
#[command(after_help = HELP)]
pub(in crate::admin) struct Arguments {
    /// File that 'tandem certs rotate-ca' wrote on the other node, copied to this one; - reads it from standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Longest wait for the other node, such as 10m or 1h
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration)]
    timeout: Duration,
    #[command(flatten)]
    resource: ResourceArgument,
    #[command(flatten)]
    pub form: Form,
}

pub(super) fn run(arguments: &Arguments) -> Result<Rotated, Failure> {
    must_be_root()?;
    let join = JoinFile::read(&arguments.file, std::io::stdin().lock())?;
    let (files, here) = (here::files(), Here::find(arguments.resource.id())?);
    here.must_have_own_ca()?;
    let ca = join.authority(&here.node, clock::wall_seconds())?;
    let holder = here::holder(Some(&here), &files)?;
    let lock = files.lock()?;
    let is_over = rotation::adopt(&files, &ca)?;
    drop(lock);
    let rotated = if is_over {
        told("done", None, &ca)
    } else {
        let way = Way { files: &files, here: &here, holder: &holder, role: Role::Second, keep_old: false };
        way.go(&ca, arguments.timeout, None)?
    };
    if rotated.state == "done" {
        let _ = std::fs::remove_file(&arguments.file);
    }
    Ok(rotated)
}
