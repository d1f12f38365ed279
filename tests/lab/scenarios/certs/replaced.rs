//! The CA is replaced under writers. The checks are the length of the gap in the writes, and remains of the old CA.

use std::time::Duration;

use super::super::setup::typed::{self, Done, HERE, THERE, Typed};
use super::super::steps;
use super::clients::Following;
use super::seen;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::host::tls;
use crate::judge::check::must;
use crate::load::writer::Writers;
use crate::sh::{self, Result};

/// The command that begins a rotation of the CA. `--again` confirms it for a CA that is less than a day old, as the
/// lab's CA always is.
pub(super) const ROTATE: &str = "tandem certs rotate-ca --again --yes";
/// The command that continues a rotation of the CA. It needs no `--again`.
pub(super) const GO_ON: &str = "tandem certs rotate-ca --yes";
const WRITTEN: &str = "/etc/tandem/certs-node2.join";
const CARRIED: &str = "/root/carried-certs.join";
pub(super) const JOIN: &str = "tandem certs join /root/carried-certs.join";
/// The longest time for which a write may wait during a rotation.
pub(super) const GAP: Duration = Duration::from_secs(5);

pub(super) fn run(lab: &Lab, _: Wish) -> Result<()> {
    let members = steps::members(lab)?;
    let booted = steps::boots(lab);
    let mut writers = super::super::writing(lab)?;
    let following = Following::begin(lab);
    of_today_is_not_replaced(lab)?;

    println!("   with two commands");
    let old = in_use(lab)?;
    let [here, there] = two_commands(lab, ROTATE)?;
    here.must_be(0)?;
    there.must_be(0)?;
    well_replaced(lab, &old, &writers)?;

    println!("   with one, by ssh");
    let old = in_use(lab)?;
    typed::typed(lab, HERE, &format!("{ROTATE} --ssh root@{THERE}"))?.must_be(0)?;
    well_replaced(lab, &old, &writers)?;

    println!("   from the other node");
    let old = in_use(lab)?;
    typed::typed(lab, THERE, &format!("{ROTATE} --ssh root@{HERE}"))?.must_be(0)?;
    well_replaced(lab, &old, &writers)?;

    drop(following);
    steps::same_members(lab, members)?;
    super::super::ends_well(lab, &mut writers)?;
    steps::nobody_was_fenced(lab, booted)
}

fn of_today_is_not_replaced(lab: &Lab) -> Result<()> {
    let old = in_use(lab)?;
    let (code, said) = host::typed(lab, HERE, GO_ON)?;
    must("it says how another one is made", (code, said), |(code, said)| *code == 0 && said.contains("--again"))?;
    old.must_be_in_use(lab)?;
    seen::nothing_is_under_way(lab)
}

pub(super) fn in_use(lab: &Lab) -> Result<seen::Ca> {
    let ca = seen::ca(lab, HERE)?;
    ca.must_be_in_use(lab)?;
    Ok(ca)
}

/// Waits until the first node's command has written the join file for the other node, and copies that file there.
pub(super) fn carry(lab: &Lab, first: &mut Typed) -> Result<()> {
    let what = format!("{HERE} to write {WRITTEN}");
    let content = sh::wait_for(&what, Duration::from_secs(60), Duration::from_millis(50), || {
        if first.ended() {
            return Some(None);
        }
        let read = host::output(lab, HERE, &["cat", WRITTEN]).ok()?;
        (read.ok && !read.stdout.is_empty()).then_some(Some(read.stdout))
    })?;
    let content = content.ok_or_else(|| format!("it has ended before it wrote {WRITTEN}: {}", first.said()))?;
    host::put(lab, THERE, CARRIED, &content)?;
    host::must(lab, THERE, &["chmod", "600", CARRIED]).map(drop)
}

pub(super) fn two_commands(lab: &Lab, line: &str) -> Result<[Done; 2]> {
    let mut first = Typed::begin(lab, HERE, line)?;
    carry(lab, &mut first)?;
    let second = Typed::begin(lab, THERE, JOIN)?;
    let first = first.done()?;
    Ok([first, second.done()?])
}

/// Checks that the old CA is replaced, and that no write has waited longer than [`GAP`].
fn well_replaced(lab: &Lab, old: &seen::Ca, writers: &Writers) -> Result<()> {
    replaced(lab, old)?;
    let (wait, at) = writers.longest_wait();
    println!("   the longest time without a write was {:.1} s", wait.as_secs_f64());
    must("no write waits long", (wait, at), |(wait, _)| *wait <= GAP)?;
    Ok(())
}

/// Checks the end of a rotation: two voters, certificates of one CA, and no remains of the CA `old`.
pub(super) fn replaced(lab: &Lab, old: &seen::Ca) -> Result<()> {
    crate::cluster::etcd::wait_two_voters(lab, Duration::from_secs(60))?;
    old.must_be_gone(lab)?;
    seen::nothing_is_under_way(lab)?;
    println!("   both show certificates of '{}' alone", seen::one_ca(lab)?);
    NODES.into_iter().try_for_each(|node| seen::shown_is_so(lab, node))
}

/// Rotates the CA with `--keep-old`. The nodes must trust the old CA until an externally managed client has a new
/// certificate.
pub(super) fn keeping(lab: &Lab, _: Wish) -> Result<()> {
    let old = in_use(lab)?;
    issued(lab, "before")?;
    let mut writers = super::super::writing(lab)?;
    let remote = format!("--ssh root@{THERE}");
    let line = format!("{ROTATE} --keep-old {remote} --timeout 60s");
    let kept = Typed::begin(lab, HERE, &line)?.done()?;
    kept.must_be(0)?;
    must("it says that the old one is trusted", kept.said, |said| said.contains("the old CA is trusted still"))?;
    old.must_be_in_use(lab)?;
    steps::wait_write(&writers, Duration::from_secs(20))?;
    issued(lab, "after")?;
    let ended = typed::typed(lab, HERE, &format!("{GO_ON} {remote}"))?;
    ended.must_be(0)?;
    replaced(lab, &old)?;
    super::super::ends_well(lab, &mut writers)
}

/// Issues a client certificate by `tandem certs issue`, and gives it to the lab's clients.
fn issued(lab: &Lab, name: &str) -> Result<()> {
    let dir = format!("/root/issued-{name}");
    let (code, said) = host::typed(lab, HERE, &format!("tandem certs issue --name {name} --out {dir}"))?;
    must("a client's certificate is issued", (code, said), |(code, _)| *code == 0)?;
    let files = [("ca.crt", "ca.crt"), (&format!("{name}.crt"), "client.crt"), (&format!("{name}.key"), "client.key")];
    let read = files.map(|(from, to)| (host::must(lab, HERE, &["cat", &format!("{dir}/{from}")]), to));
    for (text, to) in read {
        tls::write_secret(&lab.pki().join(to), text?.as_bytes())?;
    }
    host::must(lab, HERE, &["rm", "-r", &dir]).map(drop)
}

/// Waits until `tandem certs` has ended on `node`. The commands of the two nodes do not end together, because each notices the other one's
/// end a moment later.
pub(super) fn end_leftovers(lab: &Lab, node: Node) -> Result<()> {
    let none = || host::must(lab, node, &["sh", "-c", "! pgrep -f '^tandem certs'"]).ok().map(drop);
    sh::wait_for(&format!("'tandem certs' on {node} to end"), Duration::from_secs(90), Duration::from_millis(300), none)
}
