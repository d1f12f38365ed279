//! `tandem fencing update --ssh` over a real sshd: both nodes' password files are updated, for each way to change a
//! BMC's password.

use std::time::Duration;

use super::super::steps;
use super::described::password_file;
use super::typed::{HERE, THERE};
use crate::cluster::etcd;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::bmc::accounts;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::judge::check::must;
use crate::sh::Result;

/// The node with the BMC that gets a new password.
const OF: Node = THERE;
/// The file from which the command reads the new password, because arguments must not contain it.
const NEW: &str = "/root/new-password";
const SSH: &str = "--ssh root@node2";

pub(super) fn run(lab: &Lab, _: Wish) -> Result<()> {
    let mut writers = super::super::writing(lab)?;
    accounts::set_locks(lab, OF, true)?;
    let first = accounts::password(lab, OF);
    both_have(lab, &[&first])?;

    println!("   changed at the BMC before");
    accounts::set_password(lab, OF, "lab-s3cret-1")?;
    give(lab, "lab-s3cret-1")?;
    update(lab, &format!("--password-file {NEW} {SSH}"), 0)?;
    both_have(lab, &["lab-s3cret-1"])?;

    println!("   staged, changed at the BMC, settled");
    give(lab, "lab-s3cret-2")?;
    update(lab, &format!("--stage --password-stdin {SSH} < {NEW}"), 0)?;
    both_have(lab, &["lab-s3cret-1", "lab-s3cret-2"])?;
    accounts::set_password(lab, OF, "lab-s3cret-2")?;
    // If a collector was first, no second line is left, and the command would ask for a password.
    update_or(lab, SSH, &[0, 1])?;
    both_have(lab, &["lab-s3cret-2"])?;

    println!("   by one command");
    give(lab, "lab-s3cret-3")?;
    update(lab, &format!("--change-at-bmc --password-file {NEW} {SSH}"), 0)?;
    must("the BMC's password", accounts::password(lab, OF), |now| now == "lab-s3cret-3")?;
    both_have(lab, &["lab-s3cret-3"])?;

    println!("   refused");
    give(lab, "lab-s3cret-wrong")?;
    let said = update(lab, &format!("--password-file {NEW} {SSH}"), 1)?;
    must("a refusal", said, |said| said.contains("nothing was changed"))?;
    give(lab, "lab-s3cret-4")?;
    // The user does not exist on the other node, which has to get the password first.
    let nobody = "--ssh nobody@node2";
    let said = update(lab, &format!("--change-at-bmc --password-file {NEW} {nobody}"), 1)?;
    must("a refusal", said, |said| {
        said.contains("nothing was changed") && said.contains("type there 'tandem fencing")
    })?;
    both_have(lab, &["lab-s3cret-3"])?;
    must("the BMC's password", accounts::password(lab, OF), |now| now == "lab-s3cret-3")?;

    println!("   with the other node out of reach at first");
    accounts::set_password(lab, OF, "lab-s3cret-4")?;
    let said = update(lab, &format!("--password-file {NEW} {nobody}"), 3)?;
    must("what is left", said, |said| {
        said.contains(&format!("{THERE} has an old copy")) && said.contains("now type on")
    })?;
    has(lab, HERE, &["lab-s3cret-4"])?;
    has(lab, THERE, &["lab-s3cret-3"])?;
    update(lab, &format!("--password-file {NEW} {SSH}"), 0)?;
    both_have(lab, &["lab-s3cret-4"])?;

    must("the account", accounts::is_locked(lab, OF), |locked| !locked)?;
    no_password_in_a_log(lab)?;
    steps::cut(lab, OF)?;
    steps::wait_write(&writers, Duration::from_secs(90))?;
    etcd::wait_two_voters(lab, Duration::from_secs(180))?;
    super::super::ends_well(lab, &mut writers)
}

fn give(lab: &Lab, password: &str) -> Result<()> {
    host::put(lab, HERE, NEW, &format!("{password}\n"))?;
    host::must(lab, HERE, &["chmod", "600", NEW]).map(drop)
}

fn update(lab: &Lab, words: &str, expected: i32) -> Result<String> {
    update_or(lab, words, &[expected])
}

fn update_or(lab: &Lab, words: &str, expected: &[i32]) -> Result<String> {
    let line = format!("tandem fencing update {OF} {words}");
    let (code, said) = host::typed(lab, HERE, &line)?;
    println!("   {line}: {code}: {}", said.replace('\n', "; "));
    let is_told = |said: &str| said.contains("lab-s3cret");
    Ok(must(&line, (code, said), |(code, said)| expected.contains(code) && !is_told(said))?.1)
}

fn both_have(lab: &Lab, lines: &[&str]) -> Result<()> {
    NODES.into_iter().try_for_each(|node| has(lab, node, lines))
}

/// Checks that a node's copy of the password file has exactly `lines`, and that only root can read it.
fn has(lab: &Lab, node: Node, lines: &[&str]) -> Result<()> {
    let file = password_file(OF);
    let text = host::must(lab, node, &["cat", &file])?;
    must(&format!("the copy of {node}"), text.lines().collect::<Vec<_>>(), |there| there == lines)?;
    let mode = host::must(lab, node, &["stat", "--format", "%a %U", &file])?;
    must(&format!("the mode of {node}'s copy"), mode.trim().to_owned(), |mode| mode == "600 root")?;
    Ok(())
}

fn no_password_in_a_log(lab: &Lab) -> Result<()> {
    for node in NODES {
        let found = host::must(lab, node, &["sh", "-c", "grep -rl lab-s3cret /var/log; true"])?;
        must(&format!("a password in a log of {node}"), found, String::is_empty)?;
    }
    Ok(())
}
