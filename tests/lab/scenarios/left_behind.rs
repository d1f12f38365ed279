//! A node returns after its peer ran standalone and then died. It has no proof that its data is complete, so it refuses
//! and gives the reason. `tandem explain` agrees, and an operator's confirmation lets it start. Writes that were
//! acknowledged before the peer ran standalone are not lost even then, and the peer's own data is kept when it returns.

use std::time::Duration;

use super::{steps, words};
use crate::cluster::etcd;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::bmc;
use crate::host::node::Node;
use crate::host::power;
use crate::host::state::Lab;
use crate::judge::check::eventually;
use crate::judge::figures;
use crate::judge::history;
use crate::load::writer::Writers;
use crate::sh::{self, Result};

pub(super) const LEFT: Node = Node::One;
pub(super) const PEER: Node = Node::Two;

pub fn run(lab: &Lab, wish: Wish) -> Result<()> {
    let mut writers = super::writing(lab)?;
    let cut_at = writers.now();
    leave_behind(lab, &writers)?;
    let acknowledged = writers.stop()?;
    let before: Vec<_> = acknowledged.into_iter().filter(|ack| ack.ended < cut_at).collect();

    refuses(lab)?;
    confirm(lab, "nobody\n", false)?;
    refuses(lab)?;
    words::give_up(lab, LEFT, "", &["--confirm node2", "--grant-quorum", "--confirm-off node2"])?;
    steps::wait_alone(lab, LEFT)?;
    let lost = history::lost(&before, &writers.read_back(LEFT)?.store).len();
    figures::print(format!("{} writes acknowledged before the cut, {lost} of them lost", before.len()));
    if lost > 0 {
        return Err(format!("{lost} writes are lost that both members had acknowledged").into());
    }
    peer_returns(lab, wish)
}

/// Cuts node 1's power for long. Node 2 runs standalone and takes writes. Then it loses power and its BMC becomes
/// unreachable, and node 1 is switched on.
pub(super) fn leave_behind(lab: &Lab, writers: &Writers) -> Result<()> {
    lab.set("boot-delay", "3600")?;
    power::cut(lab, LEFT)?;
    let cut_at = writers.now();
    sh::wait_for("node2 to take writes alone", Duration::from_secs(120), Duration::from_millis(100), || {
        writers.first_after(cut_at)
    })?;
    std::thread::sleep(Duration::from_secs(2));
    bmc::set_mode(lab, PEER, "unreachable")?;
    power::cut(lab, PEER)?;
    lab.set("boot-delay", "0")?;
    power::on(lab, LEFT)
}

/// Checks that etcd does not start on node 1 without its peer, and that `tandem explain` gives the reason and the
/// command to type.
fn refuses(lab: &Lab) -> Result<()> {
    steps::wait_pacemaker(lab, LEFT)?;
    for _ in 0..5 {
        std::thread::sleep(Duration::from_secs(1));
        if let Ok(view) = etcd::view(lab, LEFT) {
            return Err(format!("etcd serves on the node that was left behind: {view:?}").into());
        }
    }
    let explain = || host::said(lab, LEFT, &["tandem", "explain"]);
    let told = ["if that lasts", "node2 is not confirmed stopped", "pcs stonith confirm node2"];
    let tells = |said: &String| told.iter().all(|words| said.contains(words));
    eventually(&format!("'tandem explain' says each of {told:?}"), explain, tells).map(drop)
}

/// Runs `tandem confirm-recovery` with `answers` as its input. Checks that it warns of lost writes, and succeeds
/// exactly if `succeeds` is true.
pub(super) fn confirm(lab: &Lab, answers: &str, succeeds: bool) -> Result<()> {
    let script = format!("printf '{}' | tandem confirm-recovery", answers.replace('\n', "\\n"));
    let output = host::output(lab, LEFT, &["sh", "-c", &script])?;
    let told = output.stdout;
    if output.ok != succeeds {
        return Err(format!(
            "'tandem confirm-recovery' should have {}: {told} {}",
            if succeeds { "succeeded" } else { "refused" },
            output.stderr
        )
        .into());
    }
    let warns = told.contains("every write that it acknowledged since is lost")
        && told.contains("Nothing is lost if you start node2");
    if warns { Ok(()) } else { Err(format!("'tandem confirm-recovery' does not say what may be lost: {told}").into()) }
}

/// Brings back the node that an operator gave up. It must join, and its old data must be kept next to its data dir.
fn peer_returns(lab: &Lab, wish: Wish) -> Result<()> {
    bmc::set_mode(lab, PEER, "ok")?;
    power::on(lab, PEER)?;
    etcd::wait_two_voters(lab, Duration::from_secs(120))?;
    let kept = host::must(lab, PEER, &["sh", "-c", "ls -d /var/lib/etcd/member-history-*"])?;
    if kept.trim().is_empty() {
        return Err("the data of the node that was given up is not kept".into());
    }
    lab.set("boot-delay", &wish.boot_delay.to_string())?;
    super::clean(lab)
}
