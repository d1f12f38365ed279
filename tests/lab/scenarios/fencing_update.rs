//! A BMC's password changes, and its node's power is cut at a random moment of the change. The node is fenced as
//! quickly as before, the account is not locked, and no log contains the password.

use std::time::{Duration, Instant};

use super::steps;
use crate::cluster;
use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::bmc::accounts;
use crate::host::node::{BMC_USER, NODES, Node};
use crate::host::state::Lab;
use crate::judge::check::{eventually, must};
use crate::load::writer::Writers;
use crate::sh::Result;

/// The node that is fenced. The administrator works on the other node, [`SEAT`].
const VICTIM: Node = Node::Two;
const SEAT: Node = Node::One;
const FILE: &str = "/etc/tandem/bmc-node2";
/// The file from which the command reads a new password, because arguments must not contain it.
const NEW: &str = "/etc/tandem/new-password";
/// The beginning of each new password, by which the scenario searches logs for passwords.
const SECRET: &str = "lab-s3cret-";
/// The number of updates while Pacemaker is in a transition. The first one creates the cluster property with the
/// update's time, and the second one finds it.
const AMID: u64 = 2;
/// A resource with a start so slow that an update fits into Pacemaker's transition.
const SLOW: &str = "slow";
/// The number of updates of each kind in the daily run.
const ROUNDS: u64 = 2;
/// The environment variable that sets the number of updates of each kind for the nightly run.
const AT_NIGHT: &str = "TANDEM_UPDATES";
/// The limit for the additional time that fencing takes during an update.
const LATER: Duration = Duration::from_secs(5);
/// The approximate duration of an update, within which the power cut is drawn.
const SPAN: Duration = Duration::from_secs(4);
const PATIENCE: Duration = Duration::from_secs(90);

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// A password in a file on each node. The command changes it with `--change-at-bmc`, once the files on both nodes
    /// have the old and the new password.
    File,
    /// A password in the CIB. The command changes the fence device to another account, which the BMC has in addition
    /// to the old one.
    Cib,
}

pub fn run(lab: &Lab, wish: Wish) -> Result<()> {
    let rounds = std::env::var(AT_NIGHT).ok().and_then(|text| text.parse().ok()).unwrap_or(ROUNDS);
    let mut chance = steps::chance()?;
    let mut writers = super::writing(lab)?;
    accounts::set_locks(lab, VICTIM, true)?;
    lab.set("boot-delay", "3")?;
    let usual = cut_and_wait(lab, &writers, Duration::ZERO)?;
    println!("   without an update the first write came after {:.1} s", usual.as_secs_f64());
    amid_transitions(lab)?;
    let mut number = AMID;
    for kind in [Kind::Cib, Kind::File] {
        prepare(lab, kind)?;
        for _ in 0..rounds {
            number += 1;
            let password = format!("{SECRET}{number}");
            round(lab, &writers, kind, &password, chance.up_to(SPAN), usual)?;
        }
    }
    no_password_in_a_log(lab)?;
    accounts::set_locks(lab, VICTIM, false)?;
    lab.set("boot-delay", &wish.boot_delay.to_string())?;
    super::ends_well(lab, &mut writers)
}

/// Updates the fence device while Pacemaker is in a transition, and checks that no log shows the password. Pacemaker
/// logs the change that ends a transition, with its value.
fn amid_transitions(lab: &Lab) -> Result<()> {
    for number in 1..=AMID {
        let from = NODES.map(|node| steps::log_length(lab, node));
        let update = other_account(lab, &format!("{SECRET}{number}"))?;
        let delays = ["startdelay=15", "stopdelay=0", "mondelay=0"];
        pcs::run(lab, SEAT, &[&["resource", "create", SLOW, "ocf:heartbeat:Delay"], &delays[..]].concat())?;
        must(&update, host::typed(lab, SEAT, &update)?, |(code, _)| [0, 3].contains(code))?;
        let aborted = || -> Vec<String> {
            let logs: String = NODES.iter().zip(from).map(|(node, from)| steps::said(lab, *node, from)).collect();
            logs.lines().filter(|line| line.contains(" aborted by ")).map(str::to_owned).collect()
        };
        // The controller hears of the write, and logs it, at about the time when the command ends.
        let by_the_update = |lines: &Vec<String>| lines.iter().any(|line| line.contains("tandem-fencing-update"));
        eventually("a transition that the update ended", aborted, by_the_update)?;
        pcs::run_and_wait(lab, SEAT, &["resource", "delete", SLOW])?;
    }
    no_password_in_a_log(lab)
}

/// Configures the fence device with a password of this kind.
fn prepare(lab: &Lab, kind: Kind) -> Result<()> {
    let device = cluster::fence_device(VICTIM);
    match kind {
        Kind::Cib => Ok(()),
        Kind::File => {
            for node in NODES {
                host::put(lab, node, FILE, &format!("{}\n", accounts::password(lab, VICTIM)))?;
                host::must(lab, node, &["chmod", "600", FILE])?;
            }
            let (user, file) = (format!("username={BMC_USER}"), format!("password_file={FILE}"));
            pcs::run(lab, SEAT, &["stonith", "update", &device, "password=", &user, &file])
        }
    }
}

fn round(lab: &Lab, writers: &Writers, kind: Kind, new: &str, pause: Duration, usual: Duration) -> Result<()> {
    let update = match kind {
        Kind::Cib => other_account(lab, new)?,
        Kind::File => staged(lab, new)?,
    };
    let update = update.as_str();
    println!("   {kind:?}: the power goes after {:.2} s", pause.as_secs_f64());
    let took = std::thread::scope(|scope| -> Result<Duration> {
        let typed = scope.spawn(|| host::typed(lab, SEAT, update).map_err(|error| error.to_string()));
        let took = cut_and_wait(lab, writers, pause);
        let typed = typed.join().map_err(|_| "the command's thread has ended")??;
        must("what the command shows", typed, |(_, said)| !said.contains(new))?;
        took
    })?;
    must("the time to the first write", took, |took| *took <= usual + LATER)?;
    must("the account", accounts::is_locked(lab, VICTIM), |locked| !locked)?;
    if let Kind::File = kind {
        // On real hosts a timer runs this after a boot, because a boot deletes what a node has published.
        host::must(lab, VICTIM, &["tandem", "collect"])?;
    }
    // The same command, typed again, ends the same, whether or not it was interrupted.
    must(update, host::typed(lab, SEAT, update)?, |(code, _)| [0, 3].contains(code))?;
    let check = format!("tandem fencing check {}", cluster::fence_device(VICTIM));
    must("the check", host::typed(lab, SEAT, &check)?, |(code, _)| [0, 3].contains(code))?;
    if let Kind::File = kind {
        must("the BMC's password", accounts::password(lab, VICTIM), |password| password == new)?;
        // The victim returns with a staged password, and finds out which line is valid.
        host::must(lab, VICTIM, &["tandem", "collect"])?;
        let file = host::must(lab, VICTIM, &["cat", FILE])?;
        must("the victim's copy", file.trim().to_owned(), |file| file == new)?;
    }
    Ok(())
}

/// Returns the command that gives the fence device another account of the BMC. That account is not the current one,
/// and the command does not change it at the BMC.
fn other_account(lab: &Lab, new: &str) -> Result<String> {
    let user = accounts::USERS[usize::from(new.ends_with(['0', '2', '4', '6', '8']))];
    accounts::set_account(lab, VICTIM, user, new)?;
    host::put(lab, SEAT, NEW, &format!("{new}\n"))?;
    Ok(format!("tandem fencing update node2 --username {user} --password-file {NEW}"))
}

/// Adds the new password to the victim's copy of the password file. Returns the command that then changes the
/// password at the BMC.
fn staged(lab: &Lab, new: &str) -> Result<String> {
    for node in [SEAT, VICTIM] {
        host::put(lab, node, NEW, &format!("{new}\n"))?;
    }
    let stage = format!("tandem fencing update node2 --stage --password-file {NEW} || [ $? = 3 ]");
    host::must(lab, VICTIM, &["sh", "-c", &stage])?;
    // On real hosts a timer runs this: the administrator's node learns that the other copy has both passwords, too.
    host::must(lab, VICTIM, &["tandem", "collect"])?;
    Ok(format!("tandem fencing update node2 --change-at-bmc --password-file {NEW}"))
}

/// Cuts the victim's power after `pause`. Returns the time from the power cut to the next write.
fn cut_and_wait(lab: &Lab, writers: &Writers, pause: Duration) -> Result<Duration> {
    std::thread::sleep(pause);
    let began = Instant::now();
    steps::cut(lab, VICTIM)?;
    steps::wait_write(writers, PATIENCE)?;
    let took = began.elapsed();
    etcd::wait_two_voters(lab, Duration::from_secs(180))?;
    Ok(took)
}

fn no_password_in_a_log(lab: &Lab) -> Result<()> {
    for node in NODES {
        let log = steps::said(lab, node, 0);
        must("a line of the log with a password", log.lines().find(|line| line.contains(SECRET)), Option::is_none)?;
    }
    Ok(())
}
