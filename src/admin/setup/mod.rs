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
FILE describes the cluster; --example prints one with every setting explained, and --example --write writes it. Both nodes need nothing but the packages. The
command looks at this node, writes /etc/tandem/OTHER.join (0600) and waits until 'tandem setup join' was typed with that file on
the other node; --ssh types it there. Then it looks at both machines and at both BMCs, tells all faults of both at once, and
changes nothing while there is one. What it does then: certificates, passwords, etcd's image, units and pcsd on each node;
then the cluster, its properties, the fence devices and etcd, by pcs; and it waits for two voters.

Typed again it does what is left. No file says how far it got. What is there otherwise than FILE says is shown, and changed with
--change alone. It never touches etcd's data, another cluster, or a firewall, whose commands it prints. Where the cluster is there,
the other node need not be asked again.

A BMC's certificate that nobody signed is shown with its fingerprint, and pinned once somebody has confirmed it: --yes does so
unseen. FILE may have it as ssl_fingerprint.

With --platform openshift the cluster is what the etcd operator of Two Node OpenShift with Fencing makes, and refused while that has
jobs of its own (tnf-...). The BMCs' addresses, users and passwords are those of the Secrets fencing-credentials-NODE, whatever FILE
says; image, certificates and settings are the pod's own. The other node waits at port 9990 then.

Exit codes: 0 two voters; 1 failed or refused; 2 FILE is wrong, each fault with its line and column; 3 --dry-run found something to
do, or that it could not look at.

With --json: node is this node, other the other one; dry_run; redundant says whether there are two voters (null where it was not looked);
steps has each step's id, title, node (on), state (done, made: it was done now, to do, differs, refused), commands (as they would be
typed; of a file its path, its mode and what it is), differences (what, there, described) and why it was refused, or what --dry-run
misses; warnings are sentences, faults too; price is what the decision of a split costs; next is what to type now.";

const JOIN_HELP: &str = "\
FILE is the one that 'tandem setup' wrote on the other node, brought here by whatever way keeps it secret. The command waits for the
other node, at this node's address and etcd's port for peers (2380; 9990 on OpenShift), and does what it asks. FILE is deleted once the other node
is there; it is void after 24 hours, and as soon as the other node's command has ended.

With --dry-run it changes nothing on either node, waits for nobody, and leaves FILE where it is: it says what is wrong with this machine,
or each step here as done, to do or differs, with its commands. Passwords, pcsd's token, and certificates where they are Tandem's own, come from the other
node alone, so these are neither shown nor compared: 'tandem setup --dry-run --ssh' there does that.

Exit codes: 0 this node is in, 1 failed or refused, 3 --dry-run found something to do.

With --json: node is this node, from the one that asked; joined says whether all ended well there; text has its last words. With --dry-run
the keys are those of 'tandem setup --json'.";

/// Makes the cluster that FILE describes: Pacemaker, fencing, certificates, etcd, on both nodes
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
    /// The description of the cluster
    #[arg(value_name = "FILE", default_value = crate::operate::setup::file::PATH)]
    file: PathBuf,
    /// Prints a FILE with every setting explained
    #[arg(long)]
    example: bool,
    /// Writes that to FILE instead, for root alone (0600), and never over a file that is there
    #[arg(long, requires = "example")]
    write: bool,
    /// Changes nothing on either node, and prints each step as done, to do or differs, with its commands
    #[arg(long)]
    dry_run: bool,
    /// Also changes what is there otherwise than FILE says
    #[arg(long)]
    change: bool,
    /// Types the other node's command there, through ssh
    #[arg(long, value_name = "[USER@]HOST", value_parser = host)]
    ssh: Option<String>,
    /// Whose names and words
    #[arg(long, value_enum, default_value_t = Platform::Plain)]
    platform: Platform,
    /// What OpenShift's API is asked with
    #[arg(long, value_name = "FILE", default_value = params::DEFAULT_KUBECONFIG)]
    kubeconfig: PathBuf,
    /// How long it waits for the other node's command
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
    /// How long it waits for the other node
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration)]
    timeout: Duration,
    #[command(flatten)]
    form: Form,
}

/// The names and settings that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Platform {
    /// Those of this program's guide
    Plain,
    /// Those of OpenShift's etcd operator
    Openshift,
}

pub(super) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    match &arguments.join {
        Some(Below::Join(join)) if join.dry_run => show(&join::look(join)?, join.form),
        Some(Below::Join(join)) => show(&join::run(join)?, join.form),
        None => first::run(&arguments.first),
    }
}
