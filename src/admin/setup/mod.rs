//! `tandem setup`: makes a cluster with two voters of two machines with the packages. An operator types it on one node,
//! or on each.

mod first;
mod input;
mod join;
mod ssh;
mod told;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::exit::Exit;
use super::prompt::Answers;
use super::report::{Form, show};
use crate::adapters::ssh::host;
use crate::agent::resource::params;
use crate::base::duration;
use crate::operate::failure::Failure;

const HELP: &str = "\
FILE describes the cluster. --example prints one with every setting explained, and --example --write writes it. Both nodes
need only the packages.

The command checks this node, writes /etc/tandem/OTHER.join (0600), and waits until 'tandem setup join' is typed with that
file on the other node, named OTHER; --ssh types it there. Then it checks both machines and both BMCs, and prints all
faults at once. It changes nothing while there is one. Then it makes certificates, passwords, etcd's image, units and pcsd
on each node, and with pcs the cluster, its properties, the fence devices and etcd. At the end it waits for two voters.

Typed again, it does what is left. It finds out from the machines how far it is. It prints what differs from FILE, and
changes that only with --change. It never touches etcd's data, another cluster, or a firewall, for which it prints the
commands. Once the cluster exists, it need not ask the other node again.

If no CA has signed the certificate of a BMC, the command shows its fingerprint and asks for a confirmation, then pins it.
With --yes it pins it unseen. FILE may have it as ssl_fingerprint.

With --platform openshift it makes the cluster that the etcd operator of Two Node OpenShift with Fencing makes, and refuses
while that operator has jobs of its own (tnf-...). Addresses, users and passwords of the BMCs come from the Secrets
fencing-credentials-NODE, whatever FILE has. Image, certificates and settings come from the pod's manifest. The other node
then waits at port 9990.

Exit codes:
  0  there are two voters
  1  failed or refused
  2  FILE is wrong; each fault is printed with line and column
  3  --dry-run found something to do, or something that it could not check

With --json:
  node       this node
  other      the other node
  dry_run    whether this was a dry run
  redundant  whether there are two voters; null if that was not checked
  steps      each with id, title, on (the node), state (done, made, to do, differs or refused; made is done by this call),
             commands (what you would type; for a file its path, mode and content in words), differences (what, there,
             described), and why it was refused or could not be checked
  warnings, faults   sentences
  price      what the cluster pays for its way to decide a split, as a sentence
  next       what to type now";

const JOIN_HELP: &str = "\
FILE is the one that 'tandem setup' wrote on the other node. Copy it here by a way that keeps it secret. The command waits
for the other node at this node's address and etcd's peer port (2380; 9990 on OpenShift), and does what that node asks. It
deletes FILE once the other node is connected. FILE is void after 24 hours, and as soon as the other node's command ends.

With --dry-run it changes nothing on either node, does not wait, and keeps FILE. It prints what is wrong with this
machine, or each step here as done, to do or differs, with its commands. It neither shows nor compares what only the other
node has: passwords, pcsd's token, and certificates of Tandem's own CA. 'tandem setup --dry-run --ssh' there does that.

Exit codes:
  0  this node is a part of the cluster
  1  failed or refused
  3  --dry-run found something to do

With --json: node (this node), from (the other one), joined (whether the other node's command ended well) and text (its
last message). With --dry-run the keys are those of 'tandem setup --json'.";

/// Makes the cluster that FILE describes on both nodes: Pacemaker, fencing, certificates and etcd
#[derive(Args)]
#[command(after_help = HELP, args_conflicts_with_subcommands = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    join: Option<Below>,
    #[command(flatten)]
    first: First,
}

/// The other node's part.
#[derive(Subcommand)]
enum Below {
    Join(Join),
}

/// What the first node is asked.
#[derive(Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub(super) struct First {
    /// File that describes the cluster
    #[arg(value_name = "FILE", default_value = crate::operate::setup::file::PATH)]
    file: PathBuf,
    /// Prints an example of FILE with every setting explained
    #[arg(long)]
    example: bool,
    /// Writes the example to FILE instead, for root alone (0600); refuses if FILE exists
    #[arg(long, requires = "example")]
    write: bool,
    /// Changes nothing on either node, and prints each step as done, to do or differs, with its commands
    #[arg(long)]
    dry_run: bool,
    /// Also changes what differs from FILE; without it, prints the differences
    #[arg(long)]
    change: bool,
    /// Types 'tandem setup join' on this other node, through ssh; without it, you type it there
    #[arg(long, value_name = "[USER@]HOST", value_parser = host)]
    ssh: Option<String>,
    /// Kind of cluster, from which names and settings follow
    #[arg(long, value_enum, default_value_t = Platform::Plain)]
    platform: Platform,
    /// Access to OpenShift's API, for --platform openshift
    #[arg(long, value_name = "FILE", default_value = params::DEFAULT_KUBECONFIG)]
    kubeconfig: PathBuf,
    /// Longest wait for the command on the other node, such as 10m or 1h
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration)]
    timeout: Duration,
    #[command(flatten)]
    answers: Answers,
    #[command(flatten)]
    form: Form,
}

/// Joins the cluster that 'tandem setup' makes on the other node
#[derive(Args)]
#[command(after_help = JOIN_HELP)]
pub(super) struct Join {
    /// The file that 'tandem setup' wrote on the other node
    #[arg(value_name = "FILE", required_unless_present = "stdin")]
    file: Option<PathBuf>,
    /// Reads the content of FILE from standard input, and stops waiting once standard input is closed
    #[arg(long, conflicts_with = "file")]
    stdin: bool,
    /// Changes nothing on either node, and prints what would be done on this one
    #[arg(long, conflicts_with = "stdin")]
    dry_run: bool,
    /// Longest wait for the other node, such as 10m or 1h
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration)]
    timeout: Duration,
    #[command(flatten)]
    form: Form,
}

/// The names and settings that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Platform {
    /// A cluster as in the guides of Tandem
    Plain,
    /// The cluster that OpenShift's etcd operator makes
    Openshift,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    match &arguments.join {
        Some(Below::Join(join)) if join.dry_run => show(&join::look(join)?, join.form),
        Some(Below::Join(join)) => show(&join::run(join)?, join.form),
        None => first::run(&arguments.first),
    }
}
