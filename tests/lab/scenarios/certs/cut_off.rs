//! The CA is replaced with interruptions: a node is off, a node loses its power, or the commands are killed.

use std::time::Duration;

use super::super::setup::typed::{self, Done, HERE, THERE, Typed};
use super::super::steps;
use super::clients::Following;
use super::replaced::{self, GO_ON, JOIN, ROTATE};
use super::seen::{self, PKI};
use crate::cluster::etcd;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::power;
use crate::host::state::Lab;
use crate::judge::check::must;
use crate::sh::{self, Result};

/// The largest number of interruptions of one rotation. It is above the number of changes that a rotation makes on
/// both nodes.
const CHANGES: usize = 40;
/// The text that `tandem certs` prints before each change.
const CHANGED: &str = "it is changed now";
/// The boot delay in seconds that keeps a node off even if it is fenced.
const STAYS_OFF: &str = "100000";

pub(super) fn node_off(lab: &Lab, wish: Wish) -> Result<()> {
    let old = replaced::in_use(lab)?;
    let mut writers = super::super::writing(lab)?;
    let following = Following::begin(lab);
    lab.set("boot-delay", STAYS_OFF)?;
    steps::cut(lab, THERE)?;
    steps::wait_alone(lab, HERE)?;
    steps::wait_write(&writers, Duration::from_secs(90))?;

    let waiting = typed::typed(lab, HERE, &format!("{ROTATE} --timeout 40s"))?;
    println!("   {}", waiting.said.trim().lines().last().unwrap_or_default());
    waiting.must_be(1)?;
    must("it says what it waits for, and what to type", &waiting.said, |said| {
        said.contains("the other node") && said.contains("type the same again")
    })?;
    must("the old CA signs what is shown", issuer(lab, HERE)?, |issuer| old_issuer(lab, issuer))?;
    steps::wait_write(&writers, Duration::from_secs(30))?;

    steps::on(lab, THERE, wish.boot_delay)?;
    etcd::wait_two_voters(lab, Duration::from_secs(180))?;
    println!("   {THERE} is back, and is served with its old certificate");
    must("it has its old certificate", issuer(lab, THERE)?, |issuer| old_issuer(lab, issuer))?;
    let [here, there] = replaced::two_commands(lab, GO_ON)?;
    here.must_be(0)?;
    there.must_be(0)?;
    replaced::replaced(lab, &old)?;
    drop(following);
    super::super::ends_well(lab, &mut writers)
}

/// Returns the issuer of the certificate in the file that etcd on `node` uses.
fn issuer(lab: &Lab, node: Node) -> Result<String> {
    host::must(lab, node, &["openssl", "x509", "-noout", "-issuer", "-in", &format!("{PKI}/etcd.crt")])
}

/// Returns whether `issuer` is the old CA. Until the old CA is dropped, it is the first one in the bundle of the first node.
fn old_issuer(lab: &Lab, issuer: &str) -> bool {
    let subject = format!("openssl x509 -noout -subject -in {PKI}/ca.crt");
    let subject = host::said(lab, HERE, &["sh", "-c", &subject]);
    subject.trim().trim_start_matches("subject=") == issuer.trim().trim_start_matches("issuer=")
}

/// The way in which both commands of a rotation are interrupted.
#[derive(Clone, Copy, Debug)]
enum Blow {
    /// Both commands get SIGKILL.
    Sigkill,
    Power(Node),
}

pub(super) fn by_sigkill(lab: &Lab, _: Wish) -> Result<()> {
    let members = steps::members(lab)?;
    let mut writers = super::super::writing(lab)?;
    let following = Following::begin(lab);
    again_and_again(lab, Blow::Sigkill)?;
    drop(following);
    steps::same_members(lab, members)?;
    super::super::ends_well(lab, &mut writers)
}

pub(super) fn by_power(lab: &Lab, wish: Wish) -> Result<()> {
    let mut writers = super::super::writing(lab)?;
    let following = Following::begin(lab);
    lab.set("boot-delay", "3")?;
    for node in [THERE, HERE] {
        again_and_again(lab, Blow::Power(node))?;
    }
    drop(following);
    lab.set("boot-delay", &wish.boot_delay.to_string())?;
    super::super::ends_well(lab, &mut writers)
}

/// Rotates the CA and interrupts both commands at the first change. Types the commands again, interrupts them at the
/// next change, and so on until they complete.
fn again_and_again(lab: &Lab, blow: Blow) -> Result<()> {
    let old = replaced::in_use(lab)?;
    let mut made = 0;
    for number in 0..CHANGES {
        let line = if number == 0 { ROTATE } else { GO_ON };
        match once(lab, line, blow)? {
            None => made += 1,
            Some(done) => {
                done.must_be(0)?;
                // When the first node is done, the other one may still have work.
                finish(lab, &done)?;
                println!("   {blow:?}: cut off {made} times");
                must("it was cut off at most of its steps", made, |made| *made >= 5)?;
                return replaced::replaced(lab, &old);
            }
        }
    }
    Err(format!("it does not come to its end, typed {CHANGES} times").into())
}

/// Runs the commands of a rotation on both nodes, and interrupts them when either makes its next change. Returns the
/// result of the first node's command if there was no further change.
fn once(lab: &Lab, line: &str, blow: Blow) -> Result<Option<Done>> {
    let mut first = Typed::begin(lab, HERE, line)?;
    let second = match replaced::carry(lab, &mut first) {
        Ok(()) => Some(Typed::begin(lab, THERE, JOIN)?),
        Err(_) if first.ended() => None,
        Err(error) => return Err(error),
    };
    let changes = |typed: &Typed| typed.said().lines().filter(|line| line.contains(CHANGED)).count();
    let mut second = second;
    let far_enough = sh::wait_for("its next change", Duration::from_secs(200), Duration::from_millis(3), || {
        let now = changes(&first) + second.as_ref().map_or(0, changes);
        let ended = first.ended() && second.as_mut().is_none_or(Typed::ended);
        (now > 0 || ended).then_some(now > 0)
    })?;
    if !far_enough {
        let done = first.done()?;
        if let Some(second) = second {
            second.done()?.must_be(0)?;
        }
        return Ok(Some(done));
    }
    let last = |typed: &Typed| typed.said().lines().rfind(|line| line.contains(CHANGED)).map(str::to_owned);
    let at = last(&first).map(|line| format!("{HERE}: {line}"));
    let at = at.or_else(|| second.as_ref().and_then(last).map(|line| format!("{THERE}: {line}")));
    println!("   {blow:?} at {}", at.unwrap_or_default());
    if let Blow::Power(node) = blow {
        power::cut(lab, node)?;
    }
    for mut typed in [Some(first), second].into_iter().flatten() {
        let _ = typed.kill();
        let _ = typed.done();
    }
    if let Blow::Power(node) = blow {
        sh::wait_for("the node to be switched on", Duration::from_secs(120), Duration::from_millis(200), || {
            power::is_on(lab, node).then_some(())
        })?;
    }
    etcd::wait_two_voters(lab, Duration::from_secs(180))?;
    NODES.into_iter().try_for_each(|node| replaced::end_leftovers(lab, node))?;
    let bundle = host::must(lab, THERE, &["grep", "-c", "BEGIN", &format!("{PKI}/ca.crt")])?;
    must("there is a CA", bundle.trim().to_owned(), |count| ["1", "2"].contains(&count.as_str()))?;
    Ok(None)
}

/// Runs the other node's command once more if a rotation is not complete although the first node's command is done.
fn finish(lab: &Lab, first: &Done) -> Result<()> {
    if seen::nothing_is_under_way(lab).is_ok() {
        return Ok(());
    }
    println!("   {HERE} was through: {}", first.said.lines().last().unwrap_or_default());
    typed::typed(lab, THERE, JOIN)?.must_be(0)
}
