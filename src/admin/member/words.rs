//! The arguments of the commands that change the members, of a pair and of any other etcd.

use std::net::IpAddr;
use std::time::Duration;

use clap::Args;

use super::source::SourceArguments;
use crate::admin::prompt::Answers;
use crate::admin::report::Form;
use crate::base::duration;
use crate::decide::members::Newcomer;
use crate::operate::members::order::{Order, Terms, newcomer};

const HELP: &str = "\
Before each step the command observes the members anew and checks the rules of 'tandem member plan'. Where waiting
helps, it waits, until --timeout. A command that was killed or cut off may be typed again, and does what is left.
A lock keeps a second command from changing the members at the same time. Without --endpoints and
ETCDCTL_ENDPOINTS the command changes the pair of this node's etcd resource.

Exit codes:
  0  done
  1  failed, or no member answered
  2  the arguments are wrong
  3  a rule forbids it now, or still forbade it at the end of --timeout

With --json (with --dry-run the keys are those of 'tandem member plan'):
  wish           add, remove, replace or promote
  node           the node or member that was changed
  done           whether the change is complete
  rule           the rule that forbids the next step (M1 to M14 of docs/operate/recovery.md); null if it is complete
  because        the reason; null if it is complete
  instead        what to type or to wait for; null if it is complete
  made           what this call changed, one sentence for each step; empty if all was done before
  new_etcd       the settings to start the new member's etcd with, by environment variable; null if no member is new
  voters, healthy_voters   the numbers now
  seconds        how long the command took";

/// Adds a member as a learner, and promotes it to a voter once it has caught up
#[derive(Args)]
#[command(after_help = HELP)]
pub(in crate::admin) struct Add {
    /// Name of the new member, and its address or peer URL; the default port is 2380
    #[arg(value_name = "NAME=ADDRESS", value_parser = newcomer, required_unless_present = "outside")]
    new: Option<Newcomer>,
    /// In a pair, adds a third member on a machine that no agent manages; a step on the way to three machines
    #[arg(long, value_name = "NAME=URL", value_parser = newcomer, conflicts_with_all = ["new", "fence", "endpoints"])]
    outside: Option<Newcomer>,
    /// In a pair, an option of the new machine's fence device, such as ip=ADDRESS or password_file=FILE; repeat it for each
    /// option. Needed are ip, username and password_file
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value, conflicts_with = "endpoints")]
    fence: Vec<(String, String)>,
    /// In a pair, the new machine's address on a further Corosync link; repeat it for each link, in their order
    #[arg(long = "link", value_name = "ADDRESS", conflicts_with = "endpoints")]
    links: Vec<IpAddr>,
    #[command(flatten)]
    shared: Shared,
}

/// Removes the member of NODE
#[derive(Args)]
#[command(after_help = HELP)]
pub(in crate::admin) struct Remove {
    /// The node, or the member by its name, id or peer URL
    #[arg(value_name = "NODE")]
    node: String,
    /// Also removes a healthy voter that nothing replaces; the command asks for its name first
    #[arg(long)]
    allow_fewer_voters: bool,
    #[command(flatten)]
    shared: Shared,
}

/// Replaces the member OLD by a new one, as planned work or after a loss
#[derive(Args)]
#[command(after_help = HELP)]
pub(in crate::admin) struct Replace {
    /// The node that leaves, or its member by name, id or peer URL; in a pair, without it the change under way continues
    #[arg(value_name = "OLD")]
    old: Option<String>,
    /// The new member, and its address or peer URL; in a pair, without it a new machine takes over the name and address of OLD
    #[arg(long, value_name = "NAME=ADDRESS", value_parser = newcomer)]
    new: Option<Newcomer>,
    /// In a pair, an option of the new machine's fence device, such as ip=ADDRESS or password_file=FILE; repeat it for each
    /// option. Needed are ip, username and password_file; only a machine with the name of OLD keeps the device of OLD without it
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value, conflicts_with = "endpoints")]
    fence: Vec<(String, String)>,
    /// In a pair, the new machine's address on a further Corosync link; repeat it for each link, in their order
    #[arg(long = "link", value_name = "ADDRESS", conflicts_with = "endpoints")]
    links: Vec<IpAddr>,
    /// Confirms that the old machine is off, where its BMC does not report that; the command asks for the name of OLD first
    #[arg(long, conflicts_with = "endpoints")]
    old_is_off: bool,
    /// Takes back what can be taken back of the change that is under way
    #[arg(long, conflicts_with_all = ["endpoints", "new", "fence", "links", "old_is_off"])]
    abort: bool,
    #[command(flatten)]
    shared: Shared,
}

/// Promotes NODE's learner to a voter once it has caught up
#[derive(Args)]
#[command(after_help = HELP)]
pub(in crate::admin) struct Promote {
    /// The node, or the member by its name, id or peer URL
    #[arg(value_name = "NODE")]
    node: String,
    #[command(flatten)]
    shared: Shared,
}

/// What every change takes.
#[derive(Args)]
pub(super) struct Shared {
    #[command(flatten)]
    source: SourceArguments,
    /// Changes nothing, and prints the plan as 'tandem member plan' does
    #[arg(long)]
    dry_run: bool,
    /// Longest wait for what passes by itself, such as 90s or 30m
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = duration)]
    timeout: Duration,
    #[command(flatten)]
    pub(super) answers: Answers,
    #[command(flatten)]
    pub(super) form: Form,
}

impl Shared {
    pub(super) fn terms(&self) -> Terms {
        Terms { target: self.source.target(), dry_run: self.dry_run, timeout: self.timeout }
    }
}

impl Add {
    pub(super) fn order(&self) -> (Order, &Shared) {
        // clap requires one of the two.
        let new = self.new.clone().unwrap_or_else(|| Newcomer { name: String::new(), peer_url: String::new() });
        let order = match self.outside.clone() {
            Some(new) => Order::AddOutside { new },
            None => Order::Add { new, fence: self.fence.clone(), links: self.links.clone() },
        };
        (order, &self.shared)
    }
}

impl Remove {
    pub(super) fn order(&self) -> (Order, &Shared) {
        (Order::Remove { node: self.node.clone(), allow_fewer_voters: self.allow_fewer_voters }, &self.shared)
    }
}

impl Replace {
    pub(super) fn order(&self) -> (Order, &Shared) {
        let order = Order::Replace {
            old: self.old.clone(),
            new: self.new.clone(),
            fence: self.fence.clone(),
            links: self.links.clone(),
            old_is_off: self.old_is_off,
            abort: self.abort,
        };
        (order, &self.shared)
    }
}

impl Promote {
    pub(super) fn order(&self) -> (Order, &Shared) {
        (Order::Promote { node: self.node.clone() }, &self.shared)
    }
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=').filter(|(key, value)| !key.is_empty() && !value.is_empty()) {
        Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
        None => Err("it is not KEY=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_of_a_fence_device_has_a_key_and_a_value() {
        assert_eq!(key_value("ip=192.0.2.3"), Ok(("ip".to_owned(), "192.0.2.3".to_owned())));
        assert_eq!(key_value("plug=/a=b"), Ok(("plug".to_owned(), "/a=b".to_owned())));
        for wrong in ["ip", "=192.0.2.3", "ip=", ""] {
            assert!(key_value(wrong).is_err(), "{wrong}");
        }
    }
}
