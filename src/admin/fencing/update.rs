//! `tandem fencing update`: changes the password, user, address or certificate of a node's BMC. The node can be fenced
//! at every moment.
//!
//! A password file gets the new password as its second line, by one rename. It loses the first line once the BMC
//! accepts the second. The CIB changes in one write. Only a staged password is stored before the BMC has accepted it.

use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use zeroize::Zeroizing;

use crate::adapters::ssh::host;
use crate::admin::exit::Exit;
use crate::admin::node::ResourceArgument;
use crate::admin::report::{Form, Report};
use crate::base::duration;
use crate::operate::failure::Failure;
use crate::operate::fencing::update::{self, Order, Terminal, Updated};
use crate::operate::node::must_be_root;
use crate::os::wiped;

const HELP: &str = "\
The command stores nothing before the BMC has accepted it from this node and has shown the node's own UUID. If the BMC
refuses it, nothing is changed.

Only --stage stores a password that the BMC does not have yet: as the second line of the password file, which the fence
agent tries if the BMC refuses the first. So stage it on both nodes, change it at the BMC, then type the command without a
password on both: it keeps the line that is valid. The collector does that by itself, too. --change-at-bmc does all of
this. Without --ssh the command prints what to type on the other node.

--from-secret takes address, user and password from OpenShift's Secret fencing-credentials-NODE, where they differ from
the device's. They are proven first like any other value.

Without an option for a new value the command asks for a new password. If the file has two lines, it finds out which of
them is valid instead.

Exit codes:
  0  done
  1  refused, and nothing was changed unless the message says so
  3  done on this node, and something is left to do: the other node's copy is old, or OpenShift's API did not answer. Then
     OpenShift's operator puts the old value back until you type the command again.

With --json, which never has a password:
  node    the node
  device  its fence device
  done    a sentence for each change
  lines   how many passwords this node's file has now; null if the password is in the CIB
  old_on  the node with an old copy of the file, or null
  secret  whether OpenShift's Secret has the new value; null if there is no Secret
  next    what to type now";

/// Gives a node's fence device another password, user, address or certificate; asks for the password if none is given
#[derive(Args)]
#[command(after_help = HELP)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub(in crate::admin) struct Arguments {
    /// The node that the BMC belongs to
    #[arg(value_name = "NODE")]
    node: String,
    /// Id of the fence device; needed only if the node has several
    #[arg(long, value_name = "ID")]
    device: Option<String>,
    /// Takes the new password from the first line of this file
    #[arg(long, value_name = "FILE", conflicts_with = "password_stdin")]
    password_file: Option<PathBuf>,
    /// Takes the new password from the first line of standard input
    #[arg(long)]
    password_stdin: bool,
    /// Asks for no password; the command on the other node passes it
    #[arg(long, hide = true)]
    no_question: bool,
    /// New user at the BMC
    #[arg(long, value_name = "NAME")]
    username: Option<String>,
    /// New address of the BMC, with :PORT if the port is not 443
    #[arg(long, value_name = "ADDRESS")]
    ip: Option<String>,
    /// New Redfish path of the system, such as /redfish/v1/Systems/1
    #[arg(long, value_name = "URI")]
    systems_uri: Option<String>,
    /// SHA-256 fingerprint of the BMC's new certificate
    #[arg(long, value_name = "SHA256")]
    ssl_fingerprint: Option<String>,
    /// Stores the new password next to the present one, before the BMC has it
    #[arg(long, conflicts_with_all = ["change_at_bmc", "username", "ip", "systems_uri", "ssl_fingerprint"])]
    stage: bool,
    /// Also sets the new password at the BMC
    #[arg(long, conflicts_with_all = ["username", "ip", "systems_uri", "ssl_fingerprint"])]
    change_at_bmc: bool,
    /// Takes address, user and password from OpenShift's Secret of the node
    #[arg(long, conflicts_with_all = ["password_file", "password_stdin", "username", "ip", "systems_uri", "ssl_fingerprint", "stage", "change_at_bmc"])]
    from_secret: bool,
    /// Does the same on this other node, through ssh; without it, prints what to type there
    #[arg(long, value_name = "[USER@]HOST", value_parser = host)]
    ssh: Option<String>,
    /// Longest wait for the other node, and for OpenShift's API, such as 60s or 5m
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    timeout: Duration,
    #[command(flatten)]
    resource: ResourceArgument,
    #[command(flatten)]
    pub form: Form,
}

impl Arguments {
    fn order(&self) -> Order {
        Order {
            node: self.node.clone(),
            device: self.device.clone(),
            password_file: self.password_file.clone(),
            password_stdin: self.password_stdin,
            no_question: self.no_question,
            username: self.username.clone(),
            ip: self.ip.clone(),
            systems_uri: self.systems_uri.clone(),
            ssl_fingerprint: self.ssl_fingerprint.clone(),
            stage: self.stage,
            change_at_bmc: self.change_at_bmc,
            from_secret: self.from_secret,
            ssh: self.ssh.clone(),
            timeout: self.timeout,
            resource: self.resource.id().map(str::to_owned),
        }
    }
}

/// The terminal at which this command was typed.
struct Here;

impl Terminal for Here {
    fn input(&self, limit: u64) -> io::Result<Zeroizing<Vec<u8>>> {
        wiped::read(io::stdin().lock().take(limit), usize::try_from(limit).unwrap_or_default())
    }

    fn password(&self, question: &str) -> io::Result<Zeroizing<String>> {
        rpassword::prompt_password(question).map(Zeroizing::new)
    }
}

impl Report for Updated {
    fn text(&self) -> String {
        let mut lines = self.done.clone();
        if let Some(node) = &self.old_on {
            lines.push(format!("{node} has an old copy of the password file"));
        }
        if self.secret == Some(false) {
            lines.push("OpenShift's operator will put the old one back: its Secret could not be changed".to_owned());
        }
        lines.extend(self.next.iter().map(|next| format!("now {next}")));
        lines.join("\n")
    }

    fn exit(&self) -> Exit {
        if self.old_on.is_some() || self.secret == Some(false) { Exit::Degraded } else { Exit::Done }
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<Updated, Failure> {
    must_be_root()?;
    update::run(&arguments.order(), &Here)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::report::golden;

    #[test]
    fn what_is_left_to_be_done_is_told_and_is_the_exit_code() {
        let done = Updated { node: "node2".to_owned(), device: "fence-node2".to_owned(), ..Updated::default() };
        assert_eq!(done.exit(), Exit::Done);
        let left = Updated {
            done: vec!["the BMC accepts the new password, and /etc/tandem/bmc-password has it".to_owned()],
            lines: Some(1),
            old_on: Some("node1".to_owned()),
            secret: Some(false),
            next: vec![
                "type on node1: tandem fencing update node2".to_owned(),
                "type again, when the API answers: tandem fencing update node2".to_owned(),
            ],
            ..done
        };
        assert_eq!(left.exit(), Exit::Degraded);
        golden::compare("fencing-update", &left);
    }
}
