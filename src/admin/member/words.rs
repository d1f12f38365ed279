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
Each step is judged by the rules of 'tandem member plan' just before it is taken, with a look of its own; where waiting helps, the
command waits, until --timeout. Killed or cut off anywhere, it is typed again and does what is left. Two at once are kept apart by
a lock. Without --endpoints and ETCDCTL_ENDPOINTS the pair of this node's resource is meant.

Exit codes: 0 done; 1 failed, or nobody could be asked; 2 the arguments make no sense; 3 a rule forbids it now, or did until --timeout.

With --json, and without --dry-run, whose answer is that of 'tandem member plan':
  wish (add, remove, replace, promote), node, done, rule (M1 to M14 of docs/operate/recovery.md), because, instead (what to type or to
                 wait for; these three are null where it is done)
  made           what this call did, in sentences; empty where everything was done before
  new_etcd       what the new member's etcd is to be started with, by variable; null where no member is new
  voters, healthy_voters   as it is now
  seconds        how long it took";

/// Adds a member: as a learner, which becomes a voter once it has caught up
#[derive(Args)]
#[command(after_help = HELP)]
pub(in crate::admin) struct Add {
    /// The new member, and its address or peer URL
    #[arg(value_name = "NAME=ADDRESS", value_parser = newcomer, required_unless_present = "outside")]
    new: Option<Newcomer>,
    /// A third member beside a pair, on a machine that no agent looks after: for whoever leaves the pair for three machines
    #[arg(long, value_name = "NAME=URL", value_parser = newcomer, conflicts_with_all = ["new", "fence", "endpoints"])]
    outside: Option<Newcomer>,
    /// In a pair, an option of its fence device, such as ip=ADDRESS or password_file=FILE; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value, conflicts_with = "endpoints")]
    fence: Vec<(String, String)>,
    /// In a pair, the new machine's address on a further Corosync link; given for each link, in their order
    #[arg(long = "link", value_name = "ADDRESS", conflicts_with = "endpoints")]
    links: Vec<IpAddr>,
    #[command(flatten)]
    shared: Shared,
}

/// Removes NODE's member
#[derive(Args)]
#[command(after_help = HELP)]
pub(in crate::admin) struct Remove {
    /// The node, or the member by its name, id or peer URL
    #[arg(value_name = "NODE")]
    node: String,
    /// A healthy voter may go although nothing replaces it; asked back
    #[arg(long)]
    allow_fewer_voters: bool,
    #[command(flatten)]
    shared: Shared,
}

/// Replaces OLD by a new member: one command, planned or after a loss
#[derive(Args)]
#[command(after_help = HELP)]
pub(in crate::admin) struct Replace {
    /// The node that is to go; in a pair, nothing goes on with the replacement that is under way
    #[arg(value_name = "OLD")]
    old: Option<String>,
    /// What is to take its place; in a pair, nothing means a new machine with the same name and address
    #[arg(long, value_name = "NAME=ADDRESS", value_parser = newcomer)]
    new: Option<Newcomer>,
    /// An option of the new machine's fence device, such as ip=ADDRESS or password_file=FILE; may be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value, conflicts_with = "endpoints")]
    fence: Vec<(String, String)>,
    /// The new machine's address on a further Corosync link; given for each link, in their order
    #[arg(long = "link", value_name = "ADDRESS", conflicts_with = "endpoints")]
    links: Vec<IpAddr>,
    /// The old machine is off although its BMC does not say so; asked back
    #[arg(long, conflicts_with = "endpoints")]
    old_is_off: bool,
    /// Takes back what can be taken back of the replacement that is under way
    #[arg(long, conflicts_with_all = ["endpoints", "new", "fence", "links", "old_is_off"])]
    abort: bool,
    #[command(flatten)]
    shared: Shared,
}

/// Makes NODE's learner a voter once it has caught up
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
    /// Changes nothing, and answers as 'tandem member plan' does
    #[arg(long)]
    dry_run: bool,
    /// How long it waits for what passes by itself
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
