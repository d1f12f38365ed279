//! The options that `confirm-recovery` needs in a state of the two nodes, and the answer if one is missing.

use clap::Args;
use serde::Serialize;

use super::{Bmc, Fencing};
use crate::admin::exit::Exit;
use crate::admin::report::Report;
use crate::operate::failure::Failure;

/// The options for a command without a terminal.
#[derive(Args)]
pub(super) struct WordArguments {
    /// Grants this node quorum alone, if it has none; without it, the command asks
    #[arg(long)]
    pub(super) grant_quorum: bool,
    /// Confirms to Pacemaker that this lost node is off, as you have seen; without it, the command asks if this is needed
    #[arg(long, value_name = "NODE")]
    pub(super) confirm_off: Option<String>,
    /// Prints the command with the options that this state needs, and changes nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Asks nothing: if an option is missing, changes nothing and ends with 3
    #[arg(long)]
    pub(super) no_input: bool,
}

/// The confirmations that the present state needs. A command without a needed `--accept-loss` or `--node-is-on` is
/// refused earlier, so that these options are never listed as missing.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) peer: String,
    /// True if `--accept-loss` was given.
    pub(super) accept_loss: bool,
    /// True if the lost node's BMC reports On and `--node-is-on` was given.
    pub(super) node_is_on: bool,
    /// True if this node lacks quorum, so that granting it must be confirmed.
    pub(super) quorum: bool,
    pub(super) off: Off,
}

/// The need for the operator to confirm that the lost node is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Off {
    /// No confirmation is needed, because Pacemaker sees the node or has a confirmation that it is off.
    Known,
    /// No confirmation is needed, because the node's BMC answers. Pacemaker can fence the node by itself.
    Fenceable,
    /// A confirmation is needed, because the node's BMC does not answer. Pacemaker starts nothing before an operator confirms that the
    /// node is off.
    Unproven,
}

impl Off {
    pub(super) fn of(seen: &Fencing, bmc: Bmc) -> Self {
        match (seen, bmc) {
            (Fencing::Left, Bmc::On | Bmc::Off) => Self::Fenceable,
            (Fencing::Left, Bmc::Unknown | Bmc::NotAsked) => Self::Unproven,
            (Fencing::Confirmed | Fencing::Online | Fencing::Unknown, _) => Self::Known,
        }
    }
}

/// The confirmations that the options of the command give.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Given {
    pub(super) confirm: bool,
    pub(super) quorum: bool,
    pub(super) off: bool,
}

impl Asked {
    /// Returns the options that the present state needs and `given` lacks.
    pub(super) fn missing(&self, given: Given) -> Vec<String> {
        let peer = &self.peer;
        let rows = [
            (!given.confirm, format!("--confirm {peer}")),
            (self.quorum && !given.quorum, "--grant-quorum".to_owned()),
            (self.off == Off::Unproven && !given.off, format!("--confirm-off {peer}")),
        ];
        rows.into_iter().filter(|(is_missing, _)| *is_missing).map(|(_, word)| word).collect()
    }

    /// Returns the report of missing options. `given` contains the confirmations that the command had.
    pub(super) fn needs(&self, given: Given, bmc: Bmc, dry_run: bool) -> Needs {
        let before =
            [(self.accept_loss, "--accept-loss".to_owned()), (self.node_is_on, format!("--node-is-on {}", self.peer))];
        let words = before.into_iter().filter(|(has_it, _)| *has_it).map(|(_, word)| word);
        let words: Vec<String> = words.chain(self.missing(Given::default())).collect();
        let command = format!("tandem confirm-recovery {}", words.join(" "));
        Needs { given_up: self.peer.clone(), bmc, missing: self.missing(given), command, dry_run }
    }
}

/// The report that options are missing, or of a dry run. Nothing was changed.
#[derive(Debug, Serialize)]
pub(in crate::admin) struct Needs {
    given_up: String,
    bmc: Bmc,
    missing: Vec<String>,
    command: String,
    #[serde(skip)]
    dry_run: bool,
}

impl Report for Needs {
    fn text(&self) -> String {
        if self.dry_run {
            return format!("nothing was done; this state takes '{}'", self.command);
        }
        format!("nothing was done; missing: {}; this state takes '{}'", self.missing.join(", "), self.command)
    }

    fn exit(&self) -> Exit {
        if self.dry_run { Exit::Done } else { Exit::Degraded }
    }
}

/// Refuses `--confirm-off` for a node that may be on, or for another node than the lost one.
pub(super) fn check_off(named: &str, peer: &str, seen: &Fencing, bmc: Bmc) -> Result<(), Failure> {
    if named != peer {
        return Err(Failure(format!("--confirm-off names {named}, and the node that is given up is {peer}")));
    }
    match (seen, bmc) {
        (Fencing::Online, _) => {
            Err(Failure(format!("Pacemaker sees {peer}, so --confirm-off is refused: 'pcs stonith fence {peer}'")))
        }
        (_, Bmc::On) => {
            Err(Failure(format!("{peer}'s BMC reports On, so --confirm-off is refused: 'pcs stonith fence {peer}'")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::report::golden;

    fn asked(quorum: bool, off: Off) -> Asked {
        Asked { peer: "node2".to_owned(), accept_loss: false, node_is_on: false, quorum, off }
    }

    #[test]
    fn each_state_has_its_words() {
        for (state, words) in [
            (asked(false, Off::Known), vec!["--confirm node2"]),
            (asked(true, Off::Known), vec!["--confirm node2", "--grant-quorum"]),
            (asked(true, Off::Fenceable), vec!["--confirm node2", "--grant-quorum"]),
            (asked(true, Off::Unproven), vec!["--confirm node2", "--grant-quorum", "--confirm-off node2"]),
        ] {
            assert_eq!(state.missing(Given::default()), words);
            assert_eq!(state.missing(Given { confirm: true, quorum: true, off: true }), Vec::<String>::new());
        }
        let accepted = Asked { accept_loss: true, node_is_on: true, ..asked(false, Off::Fenceable) };
        let command = accepted.needs(Given::default(), Bmc::On, true).command;
        assert_eq!(command, "tandem confirm-recovery --accept-loss --node-is-on node2 --confirm node2");
    }

    #[test]
    fn a_node_that_pacemaker_can_fence_needs_no_witness() {
        assert_eq!(Off::of(&Fencing::Left, Bmc::Unknown), Off::Unproven);
        assert_eq!([Bmc::On, Bmc::Off].map(|bmc| Off::of(&Fencing::Left, bmc)), [Off::Fenceable; 2]);
        let seen = [Fencing::Confirmed, Fencing::Online, Fencing::Unknown];
        assert!(seen.iter().all(|seen| Off::of(seen, Bmc::NotAsked) == Off::Known));
    }

    #[test]
    fn no_node_that_may_be_on_is_confirmed_off() {
        let refused = |named: &str, seen, bmc| check_off(named, "node2", &seen, bmc).map_err(|Failure(why)| why);
        assert_eq!(refused("node2", Fencing::Left, Bmc::Unknown), Ok(()));
        assert_eq!(refused("node2", Fencing::Left, Bmc::Off), Ok(()));
        let online = refused("node2", Fencing::Online, Bmc::NotAsked).unwrap_err();
        let on = refused("node2", Fencing::Left, Bmc::On).unwrap_err();
        assert!([online, on].iter().all(|why| why.ends_with("'pcs stonith fence node2'")));
        assert!(refused("node1", Fencing::Left, Bmc::Off).unwrap_err().contains("given up is node2"));
    }

    #[test]
    fn what_is_missing_is_told() {
        let needs = asked(true, Off::Unproven).needs(Given { confirm: true, ..Given::default() }, Bmc::Unknown, false);
        assert_eq!(needs.exit(), Exit::Degraded);
        golden::compare("confirm-recovery-words", &needs);
        let dry = asked(true, Off::Unproven).needs(Given::default(), Bmc::Unknown, true);
        assert_eq!(
            (dry.exit(), dry.text().contains("takes 'tandem confirm-recovery --confirm node2")),
            (Exit::Done, true)
        );
    }
}
