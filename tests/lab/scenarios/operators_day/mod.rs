//! An operator's day, step by step. Each step checks the expected sentence on the screen, and types the command that
//! follows as printed. Commands of other scenarios are not repeated: `typed_commands` (states that Pacemaker keeps),
//! `database_full`, `image_typo`, `image_upgrade` and `settings_upgrade`, `fencing_update`, `upgrade_by_may_stop`, and
//! those of `setup`, `member` and `certs`.

mod fencing;
mod parted;
mod quiet;

use crate::cluster::etcd;
use crate::cluster::typed;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::judge::check::{eventually, must};
use crate::sh::Result;

/// A step of the scenario `operators_day`. The operator types on the etcd leader's node, and the failure happens to
/// the other node.
type Step = fn(&Lab, Seat) -> Result<()>;

/// The node where the operator types (`here`), and the other one.
#[derive(Clone, Copy)]
struct Seat {
    here: Node,
    there: Node,
    /// The boot delay of the lab in seconds, which a step that changes it must restore.
    boot_delay: u64,
}

const STEPS: &[(&str, Step)] = &[
    ("what a new operator types first", quiet::first_look),
    ("a machine on which Pacemaker does not run", quiet::without_pacemaker),
    ("an etcd that is killed", quiet::killed),
    ("a collector that publishes late", quiet::late_collector),
    ("a report for others", quiet::gathered),
    ("a follower that loses power", fencing::cut),
    ("a BMC's certificate", fencing::fingerprint),
    ("a password that the BMC refuses, and then the node is lost", fencing::refused),
    ("the test of fencing", fencing::tested),
    ("a partition", parted::partition),
    ("both off, and one comes back", parted::one_comes_back),
    ("both off, and one is given up", parted::given_up),
];

pub(super) fn run(lab: &Lab, wish: Wish) -> Result<()> {
    for (what, step) in STEPS {
        let here = etcd::wait_two_voters(lab, std::time::Duration::from_secs(180))?.leader;
        crate::cluster::redundant::wait(lab)?;
        println!("   {what}");
        step(lab, Seat { here, there: here.other(), boot_delay: wish.boot_delay })?;
        lab.set("boot-delay", &wish.boot_delay.to_string())?;
    }
    let mut writers = super::writing(lab)?;
    super::ends_well(lab, &mut writers)
}

/// Returns the exit code of `line`, run on `on`, and its output as one line. Fails if the output contains XML
/// entities.
fn answer(lab: &Lab, on: Node, line: &str) -> Result<(i32, String)> {
    let (code, said) = host::typed(lab, on, line)?;
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    must(&format!("'{line}' prints no entity"), said, |said| {
        !["&apos;", "&amp;", "&quot;", "&lt;"].iter().any(|one| said.contains(one))
    })
    .map(|said| (code, said))
}

/// Checks that `line`, run once on `on`, ends with the exit code `wanted` and prints each of `words`. Returns the
/// output.
fn says(lab: &Lab, on: Node, line: &str, wanted: i32, words: &[&str]) -> Result<String> {
    let what = format!("'{line}' on {on} ends with {wanted} and prints {words:?}");
    let fits = |(code, said): &(i32, String)| *code == wanted && words.iter().all(|one| said.contains(one));
    must(&what, answer(lab, on, line)?, fits).map(|(_, said)| said)
}

/// Runs `line` on `on` until it ends with the exit code `wanted` and prints each of `words`. Returns the output.
fn comes_to_say(lab: &Lab, on: Node, line: &str, wanted: i32, words: &[&str]) -> Result<String> {
    let what = format!("'{line}' on {on} ends with {wanted} and prints {words:?}");
    let fits = |said: &Result<(i32, String)>| {
        said.as_ref().is_ok_and(|(code, said)| *code == wanted && words.iter().all(|one| said.contains(one)))
    };
    eventually(&what, || answer(lab, on, line), fits)?.map(|(_, said)| said)
}

/// Runs `tandem status` on `on` until it prints each of `words`, and returns its output. The exit code may be any,
/// because the verdict is `unknown` while a query fails.
fn comes_to_show(lab: &Lab, on: Node, words: &[&str]) -> Result<String> {
    let what = format!("status on {on} prints {words:?}");
    let fits =
        |said: &Result<(i32, String)>| said.as_ref().is_ok_and(|(_, said)| words.iter().all(|one| said.contains(one)));
    eventually(&what, || answer(lab, on, "tandem status"), fits)?.map(|(_, said)| said)
}

/// Runs the command that `tandem status` on `on` prints for the problem `id`. That command must be `wanted`. Returns
/// its exit code and output.
fn types(lab: &Lab, on: Node, id: &str, wanted: &str) -> Result<(i32, String)> {
    let command = typed::command_of(lab, on, id)?;
    must(&format!("the command of {id}"), command.clone(), |command| command == wanted)?;
    println!("      {command}");
    typed::types(lab, on, &command)
}
