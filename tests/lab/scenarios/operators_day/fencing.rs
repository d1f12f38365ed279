//! Steps in which a node is fenced, or cannot be.

use std::path::Path;
use std::time::Duration;

use super::{Seat, answer, comes_to_say, comes_to_show, says};
use crate::cluster;
use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::host;
use crate::host::bmc;
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::judge::check::must;
use crate::programs::release;
use crate::scenarios::steps;
use crate::sh::Result;

/// Cuts the power of a node. Until its fencing is over, `tandem status` must offer no command, and must show how long
/// that may take.
pub(super) fn cut(lab: &Lab, seat: Seat) -> Result<()> {
    let Seat { here, there, .. } = seat;
    // The BMC is slow, so that the screen is visible meanwhile.
    bmc::set_mode(lab, there, "hang")?;
    steps::cut(lab, there)?;
    let lost = format!("{there} is lost and not confirmed off");
    let said = comes_to_show(lab, here, &[&lost, "may take", "nothing to type yet", "tandem status --watch"])?;
    bmc::set_mode(lab, there, "ok")?;
    must("no other command is offered for that node", said, |said| !said.contains("pcs stonith confirm"))?;
    comes_to_say(lab, here, "tandem status", 3, &["degraded"])?;
    // An answer may take 5 s.
    says(lab, here, "timeout 8 tandem status --watch", 124, &["degraded"]).map(drop)
}

/// Checks that the command `line` finds that the fence device works. The command ends with 0, or with 3 if it has advice.
fn fences(lab: &Lab, on: Node, line: &str) -> Result<()> {
    must(&format!("'{line}' finds that it fences"), answer(lab, on, line)?, |(code, _)| [0, 3].contains(code)).map(drop)
}

/// Checks that the operator must compare a BMC's certificate before it is pinned. No printed command may contain a
/// fingerprint that was only observed.
pub(super) fn fingerprint(lab: &Lab, seat: Seat) -> Result<()> {
    let Seat { here, there, .. } = seat;
    let (device, wrong) = (cluster::fence_device(there), vec!["AB"; 32].join(":"));
    let update = format!("tandem fencing update {there} --ssl-fingerprint");
    says(lab, here, &format!("{update} AB:CD"), 1, &["64 hex digits"])?;
    says(lab, here, &format!("{update} {wrong}"), 1, &["is not the pinned one", "compare"])?;
    // The operator bypasses the command.
    let pinned = format!("ssl_fingerprint={wrong}");
    pcs::run(lab, here, &["stonith", "update", &device, "ssl_insecure=0", &pinned, "--force"])?;
    let (code, said) = host::typed(lab, here, &format!("tandem fencing check {device}"))?;
    must("fencing could not work", code, |code| *code == 4)?;
    let seen = said
        .split_whitespace()
        .map(|word| word.trim_end_matches([';', ',', '.', ':']))
        .find(|word| word.len() == wrong.len());
    let seen = seen.ok_or_else(|| format!("no fingerprint is shown: {said}"))?;
    let commands: Vec<&str> = said.lines().filter(|line| line.starts_with("    ")).map(str::trim).collect();
    let offered = format!("{update} SHA256");
    must("the command has no fingerprint that was only seen", commands, |commands| {
        commands.contains(&offered.as_str()) && commands.iter().all(|command| !command.contains(seen))
    })?;
    fences(lab, here, &format!("{update} {seen}"))?;
    fences(lab, here, &format!("tandem fencing check {device}"))?;
    pcs::run(lab, here, &["stonith", "update", &device, "ssl_insecure=", "ssl_fingerprint="])
}

/// Checks a BMC that refuses the password. From the first failed fencing on, `tandem status` must show the reason, and
/// two commands: one confirms that the node is off, the other one corrects the password.
pub(super) fn refused(lab: &Lab, seat: Seat) -> Result<()> {
    let Seat { here, there, .. } = seat;
    let device = cluster::fence_device(there);
    let way = format!("tandem fencing update {there}");
    bmc::set_mode(lab, there, "refuse")?;
    says(lab, here, &format!("tandem fencing check {device}"), 4, &["401", &way])?;
    steps::cut(lab, there)?;
    let sees = format!("type 'pcs stonith confirm {there}'");
    let lost = format!("{there} is lost and not confirmed off: attempt");
    comes_to_show(lab, here, &[&lost, "401", "the user name or password is wrong", &sees, &way])?;
    // It asks at a terminal. The option that answers the question is `--force` for pcs 0.11, and `--yes` for 0.12.
    let confirm = format!("pcs stonith confirm {there}");
    says(lab, here, &format!("{confirm} --force || {confirm} --yes"), 0, &[])?;
    comes_to_say(lab, here, "tandem status", 3, &["degraded"])?;
    bmc::set_mode(lab, there, "ok")?;
    fences(lab, here, &format!("tandem fencing check {device}"))?;
    steps::on(lab, there, seat.boot_delay)?;
    etcd::wait_two_voters(lab, Duration::from_secs(180))?;
    comes_to_say(lab, here, "tandem status", 0, &["redundant"]).map(drop)
}

/// Runs `tandem fencing test`, which must pass even if the host is back before Corosync missed it. Pacemaker 3.0
/// starts so early that it receives the notice of its own fencing, and ends for good ("allegedly just fenced"). No
/// real machine boots that fast, so hosts with Pacemaker 3.0 boot later.
pub(super) fn tested(lab: &Lab, seat: Seat) -> Result<()> {
    let Seat { here, there, .. } = seat;
    let is_the_machines_own = release::root(lab) == Path::new("/");
    lab.set("boot-delay", if is_the_machines_own { "0" } else { "8" })?;
    let test = format!("tandem fencing test {there} --confirm {there} --timeout 5m");
    let back = format!("{there} was fenced and is back");
    says(lab, here, &test, 0, &["Off proven", "Pacemaker told", "voter", &back]).map(drop)
}
