//! States in which a node that boots without its peer does nothing, and reports the rule that forbids it.

use std::time::Duration;

use super::{FIRST, LAST, NEVER, lose_both, switched_on};
use crate::cluster::etcd;
use crate::cluster::lone_boot::{self, WAIT};
use crate::cluster::up::Wish;
use crate::host;
use crate::host::bmc;
use crate::host::net;
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::judge::check;
use crate::load::writer::Writers;
use crate::scenarios::steps;
use crate::sh::Result;

/// The time for which most cases check that a node stays inert. It ends 15 s after `lone_boot_wait`, so that a wrong lone boot
/// would begin within it.
const SHORT: Duration = Duration::from_secs(15).saturating_add(WAIT);
/// The time for which some cases check that a node stays inert. It ends 60 s after `lone_boot_wait`.
const LONG: Duration = Duration::from_secs(60).saturating_add(WAIT);
/// The time for which a node must stay inert in the case in which no operator comes for long.
const HALF_AN_HOUR: Duration = Duration::from_secs(1_800);

/// The exit code of `tandem lone-boot --dry-run` if a rule forbids the lone boot.
const WOULD_NOT: i32 = 3;
/// The exit code of `tandem lone-boot --dry-run` if a fact is missing.
const NOT_KNOWN: i32 = 1;

pub fn daily(lab: &Lab, wish: Wish) -> Result<()> {
    let mut writers = crate::scenarios::writing(lab)?;
    lone_boot::allow(lab)?;
    two_voters(lab, wish, SHORT)?;
    crate::scenarios::ends_well(lab, &mut writers)?;
    let mut writers = crate::scenarios::writing(lab)?;
    lose_both(lab, &writers)?;
    peer_not_proven_off(lab, SHORT)?;
    returns(lab, wish)?;
    crate::scenarios::ends_well(lab, &mut writers)?;
    lone_boot::forbid(lab)
}

pub fn nightly(lab: &Lab, wish: Wish) -> Result<()> {
    type Case = fn(&Lab, Wish, &Writers) -> Result<()>;
    let cases: [(&str, Case); 5] = [
        ("left behind", left_behind),
        ("departed", departed),
        ("a learner", learner),
        ("the network is cut and both are up", network_cut),
        ("the BMC", |lab, _, writers| {
            lose_both(lab, writers)?;
            peer_not_proven_off(lab, LONG)?;
            bmc::set_mode(lab, FIRST, "unreachable")?;
            stays_inert(lab, LAST, NOT_KNOWN, "L5", HALF_AN_HOUR)?;
            bmc::set_mode(lab, FIRST, "ok")
        }),
    ];
    lone_boot::allow(lab)?;
    for (name, case) in cases {
        println!("   {name}");
        let mut writers = crate::scenarios::writing(lab)?;
        case(lab, wish, &writers)?;
        returns(lab, wish)?;
        crate::scenarios::ends_well(lab, &mut writers)?;
    }
    two_voters(lab, wish, LONG)?;
    crate::cluster::redundant::wait(lab)?;
    lone_boot::forbid(lab)
}

/// Checks for the duration `time` that `node` stays inert: no etcd runs there, Corosync waits, and no power is
/// switched. `tandem lone-boot --dry-run` must end with `code` and report the rule in `words`, as the log and `tandem
/// explain` do.
fn stays_inert(lab: &Lab, node: Node, code: i32, words: &str, time: Duration) -> Result<()> {
    let asked = (steps::resets_asked(lab), switched_on(lab));
    let dry = || host::typed(lab, node, "tandem lone-boot --dry-run");
    let told = |said: &Result<(i32, String)>| said.as_ref().is_ok_and(|said| said.0 == code && said.1.contains(words));
    let what = format!("'tandem lone-boot --dry-run' ends with {code} and says '{words}'");
    check::within(Duration::from_secs(60), &what, dry, told)??;
    is_explained(lab, node, words)?;
    steps::stays_inert(lab, node, time.as_secs())?;
    check::must("it is told still", dry()?, |said| said.0 == code && said.1.contains(words))?;
    let quorum = host::said(lab, node, &["corosync-quorumtool", "-s"]);
    check::must("Corosync waits", quorum, |said| said.contains("Activity blocked"))?;
    check::must("no power is touched", (steps::resets_asked(lab), switched_on(lab)), |now| *now == asked).map(drop)
}

/// Checks that the last reason in the log of `tandem lone-boot` on `node` and a reason of `tandem explain` have `words`, and the
/// command that an operator can type.
fn is_explained(lab: &Lab, node: Node, words: &str) -> Result<()> {
    let says = |line: &str| line.contains(words) && line.contains("'tandem confirm-recovery'");
    let limit = Duration::from_secs(60);
    let log = || {
        let said = steps::said(lab, node, 0);
        let is_reason = |line: &&str| line.contains("tandem-lone-boot") && line.contains("this node");
        said.lines().rfind(is_reason).unwrap_or_default().to_owned()
    };
    check::within(limit, &format!("the log of 'tandem lone-boot' says '{words}'"), log, |line| says(line))?;
    let explain = || host::said(lab, node, &["tandem", "explain"]);
    let what = format!("'tandem explain' says '{words}'");
    check::within(limit, &what, explain, |said| said.lines().any(says)).map(drop)
}

/// Boots `node` without its peer. The boot starts `tandem lone-boot`.
fn boots_alone(lab: &Lab, node: Node) -> Result<()> {
    steps::on(lab, node, 3600)?;
    steps::wait_pacemaker(lab, node)
}

/// Switches on the nodes that are off, and waits for two voters.
fn returns(lab: &Lab, wish: Wish) -> Result<()> {
    lab.set("boot-delay", &wish.boot_delay.to_string())?;
    for node in [FIRST, LAST] {
        if host::running(lab, node).is_none() {
            steps::on(lab, node, wish.boot_delay)?;
        }
    }
    etcd::wait_two_voters(lab, Duration::from_secs(240))?;
    lone_boot::ends(lab)
}

fn two_voters(lab: &Lab, wish: Wish, time: Duration) -> Result<()> {
    lab.set("boot-delay", NEVER)?;
    for node in [FIRST, LAST] {
        steps::cut(lab, node)?;
    }
    boots_alone(lab, LAST)?;
    stays_inert(lab, LAST, WOULD_NOT, "L2: this node does not boot alone, because this data names other voters", time)?;
    returns(lab, wish)
}

/// Checks that a sole voter does not boot alone while its BMC does not prove the peer off: it is unreachable, another
/// machine's, or reports On.
fn peer_not_proven_off(lab: &Lab, time: Duration) -> Result<()> {
    let press = |state: &str| lab.set(&format!("power-{FIRST}"), state);
    bmc::set_mode(lab, FIRST, "unreachable")?;
    boots_alone(lab, LAST)?;
    stays_inert(lab, LAST, NOT_KNOWN, "L5", time)?;
    bmc::set_mode(lab, FIRST, "stranger")?;
    stays_inert(lab, LAST, WOULD_NOT, "BMC is 7a4e", time)?;
    press("on")?;
    bmc::set_mode(lab, FIRST, "ok")?;
    stays_inert(lab, LAST, WOULD_NOT, "BMC says On", time)?;
    // The peer is Off for most of the wait, and On before it ends.
    press("off")?;
    steps::stays_inert(lab, LAST, WAIT.as_secs() - 10)?;
    press("on")?;
    stays_inert(lab, LAST, WOULD_NOT, "BMC says On", time)?;
    press("off")
}

fn left_behind(lab: &Lab, _: Wish, writers: &Writers) -> Result<()> {
    lab.set("boot-delay", NEVER)?;
    steps::cut(lab, LAST)?;
    steps::wait_write(writers, Duration::from_secs(90))?;
    std::thread::sleep(Duration::from_secs(2));
    steps::cut(lab, FIRST)?;
    steps::cut(lab, LAST)?;
    boots_alone(lab, LAST)?;
    stays_inert(lab, LAST, WOULD_NOT, "L2", LONG)
}

fn departed(lab: &Lab, wish: Wish, _: &Writers) -> Result<()> {
    steps::standby(lab, LAST, true)?;
    steps::wait_alone(lab, FIRST)?;
    steps::wait_stopped(lab, &[LAST])?;
    lab.set("boot-delay", NEVER)?;
    steps::cut(lab, FIRST)?;
    steps::cut(lab, LAST)?;
    steps::cut(lab, FIRST)?;
    boots_alone(lab, LAST)?;
    stays_inert(lab, LAST, WOULD_NOT, "L2: this node does not boot alone, because this member left", LONG)?;
    lab.set("boot-delay", &wish.boot_delay.to_string())?;
    steps::on(lab, FIRST, wish.boot_delay)?;
    crate::cluster::up::wait_online(lab)?;
    steps::standby(lab, LAST, false)
}

fn learner(lab: &Lab, _: Wish, _: &Writers) -> Result<()> {
    steps::standby(lab, LAST, true)?;
    steps::wait_alone(lab, FIRST)?;
    let log = steps::log_length(lab, LAST);
    steps::standby(lab, LAST, false)?;
    steps::wait_said(lab, LAST, log, "joining as a learner", Duration::from_secs(60))?;
    lab.set("boot-delay", NEVER)?;
    steps::cut(lab, FIRST)?;
    steps::cut(lab, LAST)?;
    steps::cut(lab, FIRST)?;
    boots_alone(lab, LAST)?;
    // The transfer may not have begun, or the promotion may have come first.
    stays_inert(lab, LAST, WOULD_NOT, "L2", LONG)
}

fn network_cut(lab: &Lab, _: Wish, writers: &Writers) -> Result<()> {
    lose_both(lab, writers)?;
    net::set_partition(lab, true)?;
    boots_alone(lab, FIRST)?;
    boots_alone(lab, LAST)?;
    stays_inert(lab, LAST, WOULD_NOT, "BMC says On", LONG)?;
    stays_inert(lab, FIRST, WOULD_NOT, "L2", WAIT)?;
    net::set_partition(lab, false)
}
