//! A third voter at the client's place on the network. With either host cut, the other two voters continue, and no
//! agent stops etcd, forces or removes the third voter. Without the third voter a survivor waits for a majority, and
//! continues once it has one.

use std::thread;
use std::time::Duration;

use super::steps;
use crate::cluster::etcd::{self, View};
use crate::cluster::redundant;
use crate::cluster::third_voter::{self, ThirdVoter};
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::judge::check::{must, within};
use crate::load::writer::Writers;
use crate::sh::Result;

const JOINS: Duration = Duration::from_secs(120);
const RETURNS: Duration = Duration::from_secs(180);
/// The time-out for the first write after an election. No recovery is needed while two of three voters are left.
const ELECTED: Duration = Duration::from_secs(15);
/// The time of several monitors.
const A_WHILE: Duration = Duration::from_secs(25);

pub fn run(lab: &Lab, wish: Wish) -> Result<()> {
    etcd::wait_two_voters(lab, Duration::from_secs(60))?;
    redundant::wait(lab)?;
    let mut writers = super::writing(lab)?;
    let third_voter = added(lab)?;
    for victim in [Node::Two, Node::One] {
        cut(lab, &writers, victim)?;
    }
    third_voter.kill();
    steps::wait_write(&writers, ELECTED)?;
    let third_voter = ThirdVoter::start(lab)?;
    three_voters(lab)?;
    let third_voter = without_majority(lab, &writers, wish, third_voter)?;
    removed(lab, third_voter)?;
    super::ends_well(lab, &mut writers)
}

/// Removes the third voter by `tandem member remove`, and ends its process.
pub(super) fn removed(lab: &Lab, third_voter: ThirdVoter) -> Result<()> {
    let removed = host::must(lab, Node::One, &["tandem", "member", "remove", third_voter::NAME, "--yes"])?;
    println!("   {}", removed.trim().replace('\n', "\n   "));
    must("the property goes with the guest", named(lab), String::is_empty)?;
    third_voter.kill();
    Ok(())
}

/// Adds the third voter by `tandem member add`. The command is killed once the member is listed, and then typed
/// again, as an operator does.
fn added(lab: &Lab) -> Result<ThirdVoter> {
    let outside = format!("{}={}", third_voter::NAME, third_voter::peer_url());
    let typed = format!("exec timeout --signal=KILL 40 tandem member add --outside {outside} --yes");
    let cut_off = host::said(lab, Node::One, &["sh", "-c", &typed]);
    println!("   {}", cut_off.trim().replace('\n', "\n   "));
    must("the property names the guest", named(lab), |named| named.contains(&outside))?;
    joined(lab)
}

/// Adds the third voter by `tandem member add`: the command lists the member, the lab starts its process, and the
/// command promotes it.
pub(super) fn joined(lab: &Lab) -> Result<ThirdVoter> {
    let outside = format!("{}={}", third_voter::NAME, third_voter::peer_url());
    let (lab_, outside_) = (lab.clone(), outside.clone());
    let again = thread::spawn(move || {
        let words = ["tandem", "member", "add", "--outside", &outside_, "--yes", "--timeout", "3m"];
        host::must(&lab_, Node::One, &words).map_err(|error| error.to_string())
    });
    // The process starts later, because an etcd that is not listed exits at once.
    let view = || etcd::view(lab, Node::One).map_err(|error| error.to_string());
    within(JOINS, "the guest is listed", view, |view| view.as_ref().is_ok_and(|view| view.others == 1)).map(drop)?;
    let third_voter = ThirdVoter::join(lab)?;
    let done = again.join().map_err(|_| "the command's thread panicked")??;
    println!("   {}", done.trim().replace('\n', "\n   "));
    must("and its id", named(lab), |named| named.split_whitespace().count() == 2)?;
    three_voters(lab)?;
    Ok(third_voter)
}

fn named(lab: &Lab) -> String {
    property(lab, Node::One, "etcd_guest")
}

/// Returns a cluster property of Pacemaker. The text is empty if the property is not set.
fn property(lab: &Lab, by: Node, name: &str) -> String {
    let query = ["crm_attribute", "--type", "crm_config", "--name", name, "--query", "--quiet"];
    host::must(lab, by, &query).map(|value| value.trim().to_owned()).unwrap_or_default()
}

pub(super) fn three_voters(lab: &Lab) -> Result<()> {
    let votes =
        |view: &std::result::Result<View, String>| view.as_ref().is_ok_and(|it| it.voters.len() == 3 && it.reads);
    for node in NODES {
        let what = format!("etcd on {node} is one of three voters");
        within(RETURNS.max(JOINS), &what, || etcd::view(lab, node).map_err(|error| error.to_string()), votes)
            .map(drop)?;
    }
    Ok(())
}

/// Cuts the power of a host. Its peer and the third voter must continue at once, with the same etcd processes.
fn cut(lab: &Lab, writers: &Writers, victim: Node) -> Result<()> {
    let left = victim.other();
    let (ran, began) = (etcd::pid(lab, left), etcd::wait_view(lab, left)?);
    steps::cut(lab, victim)?;
    steps::wait_write(writers, ELECTED)?;
    thread::sleep(A_WHILE);
    must("the same etcd runs", etcd::pid(lab, left), |pid| *pid == ran)?;
    must("with the same members", etcd::wait_view(lab, left)?.voters, |voters| *voters == began.voters)?;
    must("and nobody said that it is alone", property(lab, left, "standalone_node"), String::is_empty)?;
    wait_peer(lab, victim)
}

/// Waits until Pacemaker has fenced the host, and etcd runs there again as one of three voters.
fn wait_peer(lab: &Lab, node: Node) -> Result<()> {
    within(RETURNS, &format!("etcd runs on {node} again"), || etcd::pid(lab, node), Option::is_some)?;
    three_voters(lab)
}

/// Checks the loss of the third voter and of a host. The other host must wait and report for which voters. It must
/// continue once the third voter is back.
fn without_majority(lab: &Lab, writers: &Writers, wish: Wish, third_voter: ThirdVoter) -> Result<ThirdVoter> {
    let (victim, left) = (Node::Two, Node::One);
    lab.set("boot-delay", "90")?;
    let ran = etcd::pid(lab, left);
    third_voter.kill();
    steps::cut(lab, victim)?;
    thread::sleep(Duration::from_secs(2));
    steps::nobody_writes(writers, A_WHILE)?;
    let explained = || host::said(lab, left, &["tandem", "explain"]);
    within(A_WHILE, "it says for whom it waits", explained, |said| {
        said.contains("waits for a majority of its voters")
    })?;
    must("its etcd runs on", etcd::pid(lab, left), |pid| *pid == ran)?;
    let third_voter = ThirdVoter::start(lab)?;
    steps::wait_write(writers, Duration::from_secs(30))?;
    lab.set("boot-delay", &wish.boot_delay.to_string())?;
    wait_peer(lab, victim)?;
    Ok(third_voter)
}
