//! `tandem etcdctl`: etcd's own command, with the endpoint and the certificates of this node's resource.

use std::ffi::OsString;
use std::io::IsTerminal;

use clap::Args;

use super::node::ResourceArgument;
use crate::operate::etcdctl;
use crate::operate::failure::Failure;

const HELP: &str = "\
It runs etcdctl in etcd's container on this node, where the image has it, else etcdctl of this machine (package etcd-client). Where etcd does
not run on this node, the peer's etcd is asked. The endpoint and the certificates are those of the resource, in ETCDCTL_ENDPOINTS,
ETCDCTL_CACERT, ETCDCTL_CERT and ETCDCTL_KEY; an option that is typed, such as --endpoints, takes its variable's place. Certificates of
Tandem's own CA are those of its user root.

All words that follow are etcdctl's own, and so are what it reads, what it prints and its exit code:

  tandem etcdctl endpoint status --cluster --write-out=table
  tandem etcdctl snapshot save /var/lib/etcd/backup.db

A path that etcdctl reads or writes is one in the container, where it runs there.";

/// Runs etcdctl with the endpoint and the certificates of this node's etcd
#[derive(Args)]
#[command(after_help = HELP, disable_help_flag = true)]
pub(super) struct Arguments {
    #[command(flatten)]
    resource: ResourceArgument,
    /// What etcdctl is to do
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    typed: Vec<OsString>,
}

/// Replaces this process by etcdctl. Returns only if that fails.
pub(super) fn run(arguments: &Arguments) -> Failure {
    let has_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    match etcdctl::call(arguments.resource.id(), &arguments.typed, has_terminal) {
        Ok(call) => call.become_it(),
        Err(why) => why,
    }
}
