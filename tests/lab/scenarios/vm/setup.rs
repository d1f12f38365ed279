//! `tandem setup` on machines that were installed from Debian's packages and run systemd.

use crate::cluster::up::Wish;
use crate::demo::Victim;
use crate::host;
use crate::host::blank::Blank;
use crate::host::node::NODES;
use crate::host::state::Lab;
use crate::judge::check;
use crate::scenarios::setup::described::{Described, FILE};
use crate::scenarios::setup::fencing_both;
use crate::scenarios::setup::killed::{self, Blow};
use crate::scenarios::setup::typed::{self, HERE};
use crate::scenarios::setup::{no_join_file_is_left, one_command, survives};
use crate::sh::Result;

/// The systemd units that `tandem setup` enables for each boot.
const ENABLED: [&str; 5] =
    ["corosync.service", "pacemaker.service", "pcsd.service", "tandem-collect.timer", "tandem-certs.timer"];

/// Sets up a pair by one `tandem setup`. Typed again, it must report that all is done. The units must start by
/// themselves after a power cut.
pub fn to_two_voters(lab: &Lab, _: Wish) -> Result<()> {
    let described = Described::default();
    described.write(lab)?;
    one_command(lab, described)?;
    no_join_file_is_left(lab)?;
    for line in ["tandem setup", "tandem setup --dry-run"] {
        typed::typed(lab, HERE, &format!("{line} {FILE}"))?.must_be(0)?;
    }
    for node in NODES {
        let enabled = host::must(lab, node, &[&["systemctl", "is-enabled"][..], &ENABLED].concat())?;
        check::must("what it needs is enabled", enabled, |said| said.lines().all(|line| line == "enabled"))?;
    }
    survives(lab, Victim::Leader)
}

/// Runs `tandem fencing test --both`. The other node's half runs in a transient unit of systemd.
pub fn both_are_fenced(lab: &Lab, wish: Wish) -> Result<()> {
    let described = Described::default();
    described.write(lab)?;
    one_command(lab, described)?;
    fencing_both::run(lab, wish)
}

/// Cuts the power of the two nodes in turn, after each line that `tandem setup` prints. Each cut loses the data that
/// was not synced.
pub fn cut_off(lab: &Lab, wish: Wish) -> Result<()> {
    killed::run(lab, wish, Blank::Debian, Blow::PowerInTurn)
}
