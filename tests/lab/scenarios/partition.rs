//! The hosts lose each other, while the client and the BMCs still reach both. One fences the other, and at no time do
//! both take writes independently.

use std::time::Duration;

use crate::cluster::etcd;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::net;
use crate::host::node::{NODES, Node};
use crate::host::power;
use crate::host::state::{self, Lab};
use crate::judge::figures;
use crate::judge::story::{Story, StoryStep};
use crate::sh::{self, Result};

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let mut writers = super::writing(lab)?;
    let mut stories = NODES.map(|victim| Story::begin(lab, victim, false));
    net::set_partition(lab, true)?;
    let healed = cut_off(lab, &mut writers, &mut stories);
    // The network is repaired even after a failure, so that the logs show the consequence.
    net::set_partition(lab, false)?;
    healed?;
    super::ends_well(lab, &mut writers)
}

/// Follows a partition until one node is fenced and the other one takes writes. Then checks that the fenced node,
/// which boots into the partition, neither recovers nor takes a write.
fn cut_off(lab: &Lab, writers: &mut crate::load::writer::Writers, stories: &mut [Story; 2]) -> Result<()> {
    let began = state::since_epoch();
    let winner = sh::wait_for("one node to be fenced", Duration::from_secs(120), Duration::from_millis(100), || {
        stories.iter_mut().for_each(Story::follow);
        let fenced =
            NODES.into_iter().zip(stories.iter()).find(|(_, story)| story.steps.contains_key(&StoryStep::Fenced));
        fenced.map(|(victim, _)| victim.other())
    })?;
    let fenced_at = writers.now();
    let first =
        sh::wait_for("the other one to take writes", Duration::from_secs(120), Duration::from_millis(50), || {
            writers.first_after(fenced_at)
        })?;
    let seconds = (state::since_epoch().saturating_sub(began)).as_secs_f64();
    figures::print(format!("{} fenced, first write to {} after {seconds:.1} s", winner.other(), first.node));
    if first.node != winner {
        return Err(format!("{winner} fenced its peer, but {} took the first write", first.node).into());
    }
    // The fenced node boots into the partition, and must not start a recovery.
    let booted = || power::is_on(lab, winner.other()) && crate::host::running(lab, winner.other()).is_some();
    sh::wait_for("the fenced node to boot", Duration::from_secs(120), Duration::from_millis(200), || {
        booted().then_some(())
    })?;
    gives_nothing_up(lab, winner)?;
    only_the_winner_serves(lab, winner)?;
    let strays = writers.acknowledged().iter().filter(|ack| ack.began > fenced_at && ack.node != winner).count();
    if strays > 0 {
        return Err(format!("{strays} writes were taken by the fenced node while it was cut off").into());
    }
    Ok(())
}

/// Checks that `tandem confirm-recovery` on the fenced node is refused while the winner runs, and does not have the winner fenced. Most
/// forms of the command are refused because the winner's BMC reports On. The form with `--node-is-on` and the fenced node is refused
/// because that option must name the other node. The form with `--node-is-on` and the winner is not tested.
fn gives_nothing_up(lab: &Lab, winner: Node) -> Result<()> {
    let fenced = winner.other();
    super::steps::wait_pacemaker(lab, fenced)?;
    let says_on = format!("{winner}'s BMC says that it is on");
    let forms = [
        (format!("tandem confirm-recovery --confirm {winner} --yes < /dev/null"), says_on.as_str()),
        (format!("printf '{winner}\\nyes\\n{winner}\\n' | tandem confirm-recovery"), &says_on),
        (
            format!("tandem confirm-recovery --accept-loss --verbose --json --confirm {winner} --yes < /dev/null"),
            &says_on,
        ),
        (
            format!("tandem confirm-recovery --node-is-on {fenced} --confirm {winner} --yes < /dev/null"),
            "--node-is-on names",
        ),
    ];
    for (script, why) in &forms {
        let output = host::output(lab, fenced, &["sh", "-c", script])?;
        if output.ok || !output.text().contains(why) {
            return Err(format!("'{script}' should be refused with \"{why}\": {}", output.text()).into());
        }
    }
    if power::is_on(lab, winner) { Ok(()) } else { Err(format!("{winner} was shot").into()) }
}

/// Checks for ten seconds that the winner is the only voter and serves reads, and that the other node's etcd does not
/// respond.
fn only_the_winner_serves(lab: &Lab, winner: Node) -> Result<()> {
    for _ in 0..10 {
        std::thread::sleep(Duration::from_secs(1));
        let view = etcd::wait_view(lab, winner)?;
        if view.voters.len() != 1 || !view.reads {
            return Err(format!("the winner, {winner}, does not serve alone: {view:?}").into());
        }
        if let Ok(view) = etcd::view(lab, winner.other()) {
            return Err(format!("{} answers while it is cut off: {view:?}", winner.other()).into());
        }
    }
    Ok(())
}
