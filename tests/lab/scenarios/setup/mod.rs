//! `tandem setup` on hosts with nothing but the packages: it makes two voters, and either node may be lost at once.

mod by_hand;
mod cases;
pub(super) mod described;
pub(super) mod fencing_both;
pub(super) mod killed;
mod password_by_ssh;
mod reruns;
mod seeded;
mod snapshot;
mod three_plain;
pub(super) mod typed;
mod wrong;

use std::time::Duration;

use super::needs::Needs;
use super::table::{Scenario, scenario};
use crate::cluster::CloneKind;
use crate::cluster::etcd;
use crate::cluster::up::Wish;
use crate::demo::{self, Victim};
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::host::tls;
use crate::load::writer::STEADY;
use crate::sh::{self, Result};
use described::{Described, FILE};
use killed::{by_sigkill, by_the_first_nodes_power, by_the_other_nodes_power};
use typed::{HERE, THERE};
use wrong::run as wrong_input;

/// The scenarios of this folder, in the order in which they run.
pub(super) const SCENARIOS: &[Scenario] = &[
    scenario(
        "blank_hosts",
        "a cluster by pcs, typed by hand on hosts with nothing but the packages: it comes back after a power cut",
        by_hand::run,
    )
    .needs(Needs::Blank)
    .leaves_a_mess()
    .nightly(),
    scenario(
        "setup_two_commands",
        "'tandem setup' on hosts with nothing but the packages, and again; then either node's power is cut",
        by_two_commands,
    ).nightly()
    .needs(Needs::Blank)
    .leaves_a_mess(),
    scenario("setup_by_ssh", "'tandem setup --ssh' is one command, and changes nothing typed again", by_ssh)
        .needs(Needs::Blank)
        .leaves_a_mess()
        .nightly(),
    scenario("setup_plain", "'tandem setup' makes a plain clone", plain).needs(Needs::Blank).leaves_a_mess().nightly(),
    scenario("setup_own_certificates", "'tandem setup' takes a site's certificates", own_certificates)
        .needs(Needs::Blank)
        .leaves_a_mess()
        .nightly(),
    scenario("setup_ipv6", "'tandem setup' over IPv6, and a second link", ipv6)
        .needs(Needs::Blank)
        .leaves_a_mess()
        .nightly(),
    scenario(
        "setup_data_on_one_node",
        "'tandem setup' where the other node has an etcd's data: nothing of it is lost",
        data_on_one_node,
    )
    .needs(Needs::Blank)
    .leaves_a_mess()
    .nightly(),
    scenario(
        "setup_from_three_etcds",
        "three plain etcds become a pair: 'tandem member remove' twice, then 'tandem setup'; nothing of it is lost",
        from_three_etcds,
    )
    .needs(Needs::Blank)
    .leaves_a_mess()
    .nightly(),
    scenario(
        "setup_over_debians_example",
        "'tandem setup' on hosts that run the example cluster of Debian's packages",
        over_debians_example,
    )
    .needs(Needs::BlankDebian)
    .leaves_a_mess()
    .nightly(),
    scenario(
        "setup_killed",
        "'tandem setup' gets SIGKILL after every step and is typed again: the same configuration, files and modes",
        by_sigkill,
    )
    .needs(Needs::Nothing)
    .leaves_a_mess()
    .nightly(),
    scenario(
        "setup_first_node_cut",
        "the same, and the power of the node on which it is typed is cut",
        by_the_first_nodes_power,
    )
    .needs(Needs::Nothing)
    .leaves_a_mess()
    .nightly(),
    scenario("setup_other_node_cut", "the same, and the other node's power is cut", by_the_other_nodes_power)
        .needs(Needs::Nothing)
        .leaves_a_mess()
        .nightly(),
    scenario(
        "fencing_update_by_ssh",
        "'tandem fencing update --ssh' in each of its ways: both nodes' password files follow, and the node can be fenced",
        password_by_ssh::run,
    )
    .needs(Needs::SetUp)
    .leaves_a_mess()
    .nightly(),
    scenario(
        "fencing_test_both",
        "'tandem fencing test --both --ssh': each node is fenced by the other one, and both records are there",
        fencing_both::run,
    )
    .needs(Needs::SetUp)
    .leaves_a_mess()
    .nightly(),
    scenario(
        "setup_wrong_input",
        "wrong files, addresses, BMCs, passwords, clocks and join files: a sentence each, and nothing is changed",
        wrong_input,
    ).nightly()
    .needs(Needs::Blank)
    .leaves_a_mess(),
];

/// The time within which `tandem setup` must reach two voters.
const LIMIT: Duration = Duration::from_secs(120);

fn by_two_commands(lab: &Lab, _: Wish) -> Result<()> {
    let described = Described::default();
    described.write(lab)?;
    reruns::shows_what_is_to_do(lab)?;
    let done = typed::two_commands(lab, &format!("tandem setup {FILE}"), || reruns::join_shows_what_is_to_do(lab))?;
    ended_well(lab, described, &done)?;
    no_join_file_is_left(lab)?;
    reruns::changes_nothing(lab)?;
    survives(lab, Victim::Leader)?;
    survives(lab, Victim::Follower)
}

/// Sets up a pair by `tandem setup` with the defaults, for scenarios about its later life.
pub(super) fn by_default(lab: &Lab) -> Result<()> {
    let described = Described::default();
    described.write(lab)?;
    // Other scenarios measure its duration.
    typed::typed(lab, HERE, &format!("tandem setup {FILE} --ssh root@{THERE}"))?.must_be(0)?;
    become_a_client(lab)?;
    etcd::wait_two_voters(lab, Duration::from_secs(60)).map(drop)
}

fn by_ssh(lab: &Lab, _: Wish) -> Result<()> {
    let described = Described::default();
    described.write(lab)?;
    one_command(lab, described)?;
    no_join_file_is_left(lab)?;
    reruns::changes_nothing(lab)?;
    survives(lab, Victim::Follower)
}

fn plain(lab: &Lab, _: Wish) -> Result<()> {
    let described = Described { clone: CloneKind::Plain, ..Described::default() };
    described.write(lab)?;
    one_command(lab, described)?;
    survives(lab, Victim::Leader)
}

fn own_certificates(lab: &Lab, _: Wish) -> Result<()> {
    let described = Described { own_certificates: true, ..Described::default() };
    described.write(lab)?;
    one_command(lab, described)?;
    for node in NODES {
        let made = host::output(lab, node, &["test", "-e", "/etc/tandem/pki"])?;
        if made.ok {
            return Err(format!("{node} has a CA of Tandem's, which nobody asked for").into());
        }
    }
    survives(lab, Victim::Leader)
}

fn ipv6(lab: &Lab, _: Wish) -> Result<()> {
    let described = Described { ipv6: true, ..Described::default() };
    described.write(lab)?;
    one_command(lab, described)?;
    let conf = host::must(lab, THERE, &["cat", "/etc/corosync/corosync.conf"])?;
    let links = [format!("ring0_addr: {}", NODES[0].ipv6()), format!("ring1_addr: {}", NODES[0].ip())];
    if !links.iter().all(|link| conf.contains(link)) {
        return Err(format!("Corosync's links are not as described: {conf}").into());
    }
    survives(lab, Victim::Follower)
}

/// Sets up a pair while the second node has etcd data already. `tandem setup` is typed on the first node.
fn data_on_one_node(lab: &Lab, _: Wish) -> Result<()> {
    let described = Described::default();
    described.write(lab)?;
    let seed = seeded::begin(lab, THERE)?;
    one_command(lab, described)?;
    seeded::must_be_there(lab, &seed)?;
    survives(lab, Victim::Leader)
}

fn from_three_etcds(lab: &Lab, _: Wish) -> Result<()> {
    let described = Described::default();
    described.write(lab)?;
    let seeds = three_plain::begin(lab)?;
    one_command(lab, described)?;
    seeds.iter().try_for_each(|seed| seeded::must_be_there(lab, seed))?;
    survives(lab, Victim::Leader)
}

/// Sets up a pair on hosts in the state after the installation of Debian's packages. Each host then runs a cluster of its own, with the
/// packages' example of a configuration.
fn over_debians_example(lab: &Lab, _: Wish) -> Result<()> {
    let described = Described::default();
    described.write(lab)?;
    one_command(lab, described)?;
    survives(lab, Victim::Leader)
}

pub(super) fn one_command(lab: &Lab, described: Described) -> Result<()> {
    let done = typed::typed(lab, HERE, &format!("tandem setup {FILE} --ssh root@{THERE}"))?;
    ended_well(lab, described, &[done])
}

/// Checks that all commands of a set-up succeeded within [`LIMIT`], and that there are two voters at that moment.
fn ended_well(lab: &Lab, described: Described, done: &[typed::Done]) -> Result<()> {
    for command in done {
        command.must_be(0)?;
    }
    let took = done.iter().map(|command| command.took).max().unwrap_or_default();
    println!("   two voters, as it says, after {:.0} s", took.as_secs_f64());
    // The limit is stretched for an emulated machine.
    if took > sh::patience(LIMIT) {
        return Err(format!("it took {:.0} s, more than {} s", took.as_secs_f64(), LIMIT.as_secs()).into());
    }
    if !described.own_certificates {
        become_a_client(lab)?;
    }
    match etcd::two_voters(lab) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("'tandem setup' said that there were two voters: {error}").into()),
    }
}

/// Gives the lab's clients the certificate that Tandem's own CA has issued for clients.
pub(super) fn become_a_client(lab: &Lab) -> Result<()> {
    for name in ["ca.crt", "client.crt", "client.key"] {
        let text = host::must(lab, HERE, &["cat", &format!("/etc/tandem/pki/{name}")])?;
        tls::write_secret(&lab.pki().join(name), text.as_bytes())?;
    }
    Ok(())
}

pub(super) fn no_join_file_is_left(lab: &Lab) -> Result<()> {
    for node in NODES {
        let left = host::must(lab, node, &["sh", "-c", "ls /etc/tandem/*.join /root/*.join 2>/dev/null; true"])?;
        if !left.trim().is_empty() {
            return Err(format!("{node} still has {}", left.trim()).into());
        }
    }
    Ok(())
}

/// Cuts a node's power while clients write. The other node must run standalone, and no acknowledged write may be
/// lost.
pub(super) fn survives(lab: &Lab, victim: Victim) -> Result<()> {
    let outcome = demo::power_cut(lab, victim, STEADY, false, |_| Ok(()))?;
    super::recovered(lab, &outcome)
}

/// Runs a program on both nodes, and returns its outputs. Fails if a program fails.
fn on_both(lab: &Lab, words: &[&str]) -> Result<[String; 2]> {
    let [one, two] = NODES.map(|node: Node| host::must(lab, node, words));
    Ok([one?, two?])
}
