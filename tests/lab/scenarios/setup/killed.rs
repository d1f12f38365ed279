//! `tandem setup` is interrupted after every step and typed again. It ends in the same state as an undisturbed one.

use std::collections::BTreeSet;
use std::time::Duration;

use super::described::{Described, FILE};
use super::snapshot;
use super::typed::{self, HERE, THERE, Typed};
use crate::cluster::etcd;
use crate::cluster::teardown;
use crate::cluster::up::{self, Wish};
use crate::host;
use crate::host::blank::Blank;
use crate::host::node::{NODES, Node};
use crate::host::power;
use crate::host::state::{self, Lab};
use crate::sh::{self, Result};

/// The most interruptions of one set-up. It is above the number of lines that `tandem setup` prints.
const CUTS: usize = 40;
/// The fewest interruptions of one set-up. It is below the number of lines that `tandem setup` prints.
const STEPS: usize = 20;
/// The number of failures in a row that are allowed without an interruption. The command may fail because the node
/// that was cut is still booting.
const IN_VAIN: usize = 2;

/// The way in which `tandem setup` is interrupted.
#[derive(Clone, Copy, Debug)]
pub enum Blow {
    Sigkill,
    Power(Node),
    /// The power of the two nodes is cut in turn.
    PowerInTurn,
}

impl Blow {
    /// Interrupts `command` in this way. Returns whether it was still running.
    fn strike(self, lab: &Lab, command: &mut Typed, number: usize) -> Result<bool> {
        let node = match self {
            Self::Sigkill => return command.kill(),
            Self::Power(node) => node,
            Self::PowerInTurn => NODES[number % NODES.len()],
        };
        power::cut(lab, node).map(|()| true)
    }
}

pub fn by_sigkill(lab: &Lab, wish: Wish) -> Result<()> {
    run(lab, wish, Blank::Rpm, Blow::Sigkill)
}

pub fn by_the_first_nodes_power(lab: &Lab, wish: Wish) -> Result<()> {
    run(lab, wish, Blank::Rpm, Blow::Power(HERE))
}

pub fn by_the_other_nodes_power(lab: &Lab, wish: Wish) -> Result<()> {
    run(lab, wish, Blank::Rpm, Blow::Power(THERE))
}

/// The result of a set-up: Pacemaker's configuration, and the files of both nodes.
#[derive(Debug)]
struct End {
    configuration: BTreeSet<String>,
    files: [BTreeSet<String>; 2],
}

impl End {
    fn of(lab: &Lab) -> Result<Self> {
        Ok(Self { configuration: snapshot::configuration(lab)?, files: snapshot::modes(lab)? })
    }
}

/// Checks that an interrupted `tandem setup` has the same result as an undisturbed one.
pub fn run(lab: &Lab, wish: Wish, blank: Blank, blow: Blow) -> Result<()> {
    let described = Described::default();
    let blank = Wish { blank: Some(blank), ..wish };
    up::up(lab, blank)?;
    described.write(lab)?;
    // Another scenario measures its duration.
    typed::typed(lab, HERE, &format!("tandem setup {FILE} --ssh root@{THERE}"))?.must_be(0)?;
    let undisturbed = End::of(lab)?;
    teardown::down(lab);

    up::up(lab, blank)?;
    described.write(lab)?;
    let cuts = cut_off_again_and_again(lab, blow)?;
    println!("   cut off {cuts} times");
    if cuts < STEPS {
        return Err(format!("it was cut off {cuts} times, which is not after every step").into());
    }
    typed::nothing_is_left(lab)?;
    super::no_join_file_is_left(lab)?;
    super::become_a_client(lab)?;
    etcd::wait_two_voters(lab, etcd::TWO_VOTERS_WITHIN)?;
    let end = End::of(lab)?;
    if let Some(line) = undisturbed.configuration.symmetric_difference(&end.configuration).next() {
        return Err(format!("the configuration is not what it is without a cut: {line}").into());
    }
    if let Some(difference) = snapshot::difference(&undisturbed.files, &end.files) {
        return Err(format!("the files are not what they are without a cut: {difference}").into());
    }
    super::survives(lab, crate::demo::Victim::Leader)
}

/// Runs `tandem setup`, and interrupts it as soon as it prints a line after which no earlier run was interrupted. Repeats that until
/// the command completes. A repeated command prints nothing about steps that are done already. Returns the number of interruptions.
fn cut_off_again_and_again(lab: &Lab, blow: Blow) -> Result<usize> {
    let mut after = BTreeSet::new();
    let mut in_vain = 0;
    while after.len() <= CUTS {
        let mut command = Typed::begin(lab, HERE, &format!("tandem setup {FILE} --ssh root@{THERE}"))?;
        let far_enough = sh::wait_for("its next step", Duration::from_secs(300), Duration::from_millis(5), || {
            (command.ended() || new_line(&command.said(), &after).is_some()).then_some(())
        });
        let cuts = after.len();
        if far_enough.is_err() || has_ended(lab, &mut command) {
            let done = command.done()?;
            if done.code == Some(0) {
                return Ok(cuts);
            }
            // The struck node may still be coming back. An operator would type it again, too.
            in_vain += 1;
            let last = done.said.lines().last().unwrap_or_default();
            println!("   after {cuts} cuts it said: {last}");
            if in_vain > IN_VAIN {
                return Err(format!("after {cuts} cuts it did not go on, typed {in_vain} times: {last}").into());
            }
        } else {
            let line = new_line(&command.said(), &after).unwrap_or_default();
            println!("   cut off after: {line}");
            if blow.strike(lab, &mut command, cuts)? {
                after.insert(line);
                in_vain = 0;
            }
            // Without its node or its other half, the command ends by itself, or is killed.
            let _ = command.kill();
            let _ = command.done();
        }
        wait_both(lab)?;
    }
    Err(format!("it does not come to its end, cut off {CUTS} times").into())
}

/// Returns whether `tandem setup` has ended. Its last lines report the result and are no steps, so the lab must not interrupt the command
/// after them. For a virtual machine it waits a moment, because ssh reports the end late.
fn has_ended(lab: &Lab, command: &mut Typed) -> bool {
    match host::Kind::of(lab) {
        host::Kind::Namespaces => command.ended(),
        host::Kind::Vm => command.ends_soon(),
    }
}

/// Returns the first complete line of `said` after which the command was not interrupted yet. Lines that differ only
/// in figures count as the same.
fn new_line(said: &str, after: &BTreeSet<String>) -> Option<String> {
    let whole = said.rsplit_once('\n')?.0;
    whole.lines().map(without_figures).find(|line| !after.contains(line))
}

/// Replaces the figures in a line by N, as in `/var/lib/etcd has N MB of room`. A digit in a name, as in `node1`,
/// stays.
fn without_figures(line: &str) -> String {
    let is_figure = |word: &str| word.starts_with(|first: char| first.is_ascii_digit());
    let words: Vec<&str> = line.split(' ').map(|word| if is_figure(word) { "N" } else { word }).collect();
    words.join(" ")
}

/// Switches both nodes on, and waits until they have booted and sshd runs. For services that start later, `tandem setup` itself must wait.
fn wait_both(lab: &Lab) -> Result<()> {
    lab.set("boot-delay", "0")?;
    for node in NODES {
        power::on(lab, node)?;
        host::wait_booted(lab, node)?;
        let sshd = || host::must(lab, node, &["systemctl", "is-active", "ssh"]).ok().map(drop);
        sh::wait_for(&format!("sshd on {node}"), Duration::from_secs(60), Duration::from_millis(200), sshd)?;
        set_clock(lab, node)?;
    }
    Ok(())
}

/// Sets a virtual machine's clock, as chrony does on real hosts. After a boot the clock is wrong by part of a second, because the kernel
/// reads a hardware clock that counts whole seconds.
fn set_clock(lab: &Lab, node: Node) -> Result<()> {
    if host::Kind::of(lab) == host::Kind::Vm {
        let now = state::since_epoch().as_secs_f64();
        host::must(lab, node, &["date", "--set", &format!("@{now:.3}")])?;
    }
    Ok(())
}
