//! `tandem metrics`: what Prometheus is told of the cluster, printed.

use std::path::Path;

use clap::Args;

use super::{node, say};
use crate::operate::cluster;
use crate::operate::events::deliver::{self, Places};
use crate::operate::failure::Failure;
use crate::operate::fencing::record::tests_of_this_node;
use crate::operate::health::{self, conditions};
use crate::operate::metrics::{self, Disruptions, Extras, disruptions};

const HELP: &str = "\
The text format of Prometheus, version 0.0.4, as node_exporter's textfile directory takes it; 'tandem collect' puts the same \
into tandem.prom there. What is not known is left out. Rules and a dashboard that use it are in /usr/share/tandem.";

/// Prints the cluster's metrics for Prometheus
#[derive(Args)]
#[command(after_help = HELP)]
pub(super) struct Arguments {
    #[command(flatten)]
    resource: node::ResourceArgument,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let cluster = cluster::ask(arguments.resource.id())?;
    let extras = Extras {
        events: deliver::counts(&Places::default()).unwrap_or_default(),
        fencing_tests: tests_of_this_node(),
        disruptions: Disruptions::read(Path::new(disruptions::PATH)),
    };
    let page = metrics::render(&cluster, &health::assess(&cluster), &conditions::of(&cluster), &extras);
    say(page.trim_end())
}
