//! `tandem setup join`: lets the other node set this one up.

use std::io::stdin;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use super::Join;
use super::input::Input;
use super::told::{Joined, Told};
use crate::adapters::command::Programs;
use crate::admin::progress::Progress;
use crate::operate::cluster;
use crate::operate::failure::Failure;
use crate::operate::setup::channel::{self, Patience, Serving, join_file, serve};
use crate::operate::setup::drive::{self, Alone, Refusal};
use crate::operate::setup::machine::Here;
use crate::operate::setup::node;
use crate::operate::talk::Progress as _;
use crate::os::clock::{self, Deadline};

/// Reads the join file. Also returns standard input if the file came from there.
fn read(arguments: &Join) -> Result<(join_file::Join, Option<Input>), Failure> {
    match arguments.file.as_deref().filter(|_| !arguments.stdin) {
        Some(file) => Ok((join_file::read(file)?, None)),
        None => Ok(Input::read(stdin(), Patience::default().silence).map(|(join, input)| (join, Some(input)))?),
    }
}

/// Returns the index of this machine among the two nodes. Fails if the join file may not be used on this machine.
fn which(join: &join_file::Join) -> Result<usize, Failure> {
    let which = node::is_described(&join.description);
    join.check(clock::wall_seconds(), which.map(|at| join.description.nodes[at].name.as_str()))?;
    which.ok_or_else(|| Failure("this machine is none of the two nodes: see 'ip address'".to_owned()))
}

/// Returns the steps that `tandem setup join` would perform here. Does not wait for the other node, and does not delete the join file.
pub(super) fn look(arguments: &Join) -> Result<Told, Failure> {
    cluster::must_be_root()?;
    let (join, _) = read(arguments)?;
    let at = which(&join)?;
    let programs = Programs::default();
    let here = Here::new(programs.clone(), join.description.clone(), at, true);
    let progress = Progress::new();
    progress.say("looks at this machine");
    let looked = drive::alone(&programs, &join.description, at, &here);
    progress.end();
    let (warnings, faults, steps) = match looked {
        Ok(Alone { warnings, faults, steps }) => (warnings, faults, steps),
        Err(Refusal(faults)) => (Vec::new(), faults, Vec::new()),
    };
    for warning in &warnings {
        progress.keep(&format!("warning: {warning}"));
    }
    let next = arguments.file.as_deref().map(|file| format!("'tandem setup join {}'", file.display()));
    Ok(Told {
        node: join.node,
        other: join.from,
        dry_run: true,
        redundant: None,
        steps,
        warnings,
        faults,
        price: None,
        next,
    })
}

pub(super) fn run(arguments: &Join) -> Result<Joined, Failure> {
    cluster::must_be_root()?;
    let (join, input) = read(arguments)?;
    let file = arguments.file.as_deref().filter(|_| input.is_none());
    let at = which(&join)?;
    let here = Here::new(Programs::default(), join.description.clone(), at, join.is_dry);
    let address = SocketAddr::new(join.description.nodes[at].address, channel::port(&join.description));
    let progress = Progress::new();
    progress.say(&format!("waits for {} at {address}", join.from));
    let leftover = if input.is_some() { Patience::LEFTOVER } else { Duration::ZERO };
    let patience = Patience { leftover, ..Patience::default() };
    let still = || input.as_ref().map_or(Ok(()), Input::still);
    let served = serve(address, &join, &here, patience, Deadline::after(arguments.timeout), still, |told| {
        match told {
        Serving::Stranger(who) => progress.keep(&format!(
            "warning: {who} connected without the other half of this file's keys; if 'tandem setup' was typed again on {}, end this and type it with the new file",
            join.from
        )),
        Serving::Connected => {
            // The file has no further use.
            if let Some(file) = file {
                forget(file, &progress);
            }
            progress.say(&format!("{} is connected", join.from));
        }
        Serving::Progress(text) => progress.say(&format!("{}: {text}", join.from)),
    }
    });
    progress.end();
    let node = join.node.clone();
    match served {
        Ok((is_in, text)) => Ok(Joined { node, from: join.from.clone(), is_in, text }),
        Err(error) => Err(Failure(format!(
            "{error}: type 'tandem setup' on {} again, and this with the file that it writes",
            join.from
        ))),
    }
}

fn forget(file: &Path, progress: &Progress) {
    if let Err(error) = std::fs::remove_file(file) {
        progress.keep(&format!("warning: {} cannot be deleted: {error}", file.display()));
    }
}
