//! `tandem fencing`: whether each node could be fenced, a fencing that is a test of it, and other credentials for it.

mod ask;
mod check;
pub(super) mod copies;
mod record;
mod seen;
mod test;
mod update;
mod watch;

use clap::Subcommand;

pub(super) use self::record::tests_of_this_node;
use super::exit::Exit;
use super::report::show;
use crate::adapters::pacemaker::seen::Configuration;
use crate::base::Fact;
use crate::operate::cluster::Cluster;
use crate::operate::failure::Failure;

/// The configuration of a cluster that has this node.
fn with_node<'a>(cluster: &'a Cluster, node: &str) -> Result<&'a Configuration, Failure> {
    let Fact::Known(configuration) = &cluster.configuration else {
        let why = cluster.configuration.why_unknown();
        return Err(Failure(format!("the CIB cannot be read ({why}): see 'pcs status', or type 'pcs cluster start'")));
    };
    let nodes = &configuration.nodes;
    if !nodes.iter().any(|one| one == node) {
        return Err(Failure(format!("no node is called '{node}'; there are: {}", nodes.join(", "))));
    }
    Ok(configuration)
}

/// Checks and tests the fencing of both nodes, and changes the passwords of their BMCs
#[derive(Subcommand)]
pub(super) enum Command {
    Check(check::Arguments),
    Test(test::Arguments),
    Update(Box<update::Arguments>),
}

impl Command {
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        match self {
            Self::Check(arguments) => show(&check::run(arguments)?, arguments.form),
            Self::Test(arguments) => show(&test::run(arguments)?, arguments.form),
            Self::Update(arguments) => show(&update::run(arguments)?, arguments.form),
        }
    }
}
