//! The power of the node that runs `tandem fencing test` fails in the middle of the test: when the other node is off,
//! while that boots, or while that is back as a learner. In any state of Pacemaker and the BMC, two voters are the
//! result once both have power. Nothing that was acknowledged is lost, and the test leaves nothing that an operator
//! would have to undo.

use std::sync::mpsc;
use std::time::Duration;

use crate::cluster;
use crate::cluster::etcd;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::power;
use crate::host::state::Lab;
use crate::judge::check::must;
use crate::random::Random;
use crate::scenarios::steps;
use crate::sh::{self, Result};

/// The node that is fenced by `tandem fencing test`. The command runs on the other node, [`SEAT`].
const VICTIM: Node = Node::Two;
const SEAT: Node = Node::One;
const TEST: &str = "tandem fencing test node2 --confirm node2 --timeout 5m";
/// The time-out from the start of the fencing test until the fenced node reaches the state in which the power cut is due.
const LIMIT: Duration = Duration::from_secs(120);
/// The boot delay of the fenced machine in seconds. When the machine boots, Corosync has noticed its loss, and the survivor's agent has
/// run a monitor since. So the machine becomes a learner. If it booted earlier, it would stay a voter.
const BOOT_DELAY: &str = "20";

/// The state of the fenced node in which the other node's power is cut.
#[derive(Clone, Copy, Debug)]
enum Moment {
    Off,
    Boots,
    Learner,
}

pub fn run(lab: &Lab, wish: Wish) -> Result<()> {
    etcd::wait_two_voters(lab, Duration::from_secs(60))?;
    crate::cluster::redundant::wait(lab)?;
    let mut chance = steps::chance()?;
    let mut writers = crate::scenarios::writing(lab)?;
    for moment in [Moment::Off, Moment::Boots, Moment::Learner] {
        let before = left(lab);
        cut_at(lab, moment, &mut chance)?;
        lab.set("boot-delay", "0")?;
        NODES.into_iter().try_for_each(|node| steps::on(lab, node, wish.boot_delay))?;
        etcd::wait_two_voters(lab, Duration::from_secs(240))?;
        let complaints = cluster::wait_clean(lab)?;
        must("nothing is left to clean up", complaints, Vec::is_empty)?;
        crate::cluster::redundant::wait(lab)?;
        must("nothing is left of the test", left(lab), |now| *now == before)?;
    }
    crate::scenarios::ends_well(lab, &mut writers)?;
    // A further test must be possible, and pass.
    lab.set("boot-delay", BOOT_DELAY)?;
    let (code, said) = host::typed(lab, SEAT, TEST)?;
    must("the next test passes", (code, said), |(code, _)| *code == 0).map(drop)
}

/// Returns all that a fencing test may leave behind: its records, and its changes of Pacemaker's configuration.
fn left(lab: &Lab) -> Vec<String> {
    let records = host::said(lab, SEAT, &["sh", "-c", "cat /var/lib/tandem/fencing-tests.jsonl 2> /dev/null || true"]);
    let tested = cluster::attribute(lab, VICTIM, "forever", "etcd_fencing_tested").unwrap_or_default();
    let scopes = ["resources", "constraints", "fencing-topology"];
    let configured = scopes.map(|scope| host::said(lab, SEAT, &["cibadmin", "--query", "--scope", scope]));
    let standby = NODES.map(|node| cluster::attribute(lab, node, "forever", "standby").unwrap_or_default());
    [&[records, tested][..], &configured, &standby].concat()
}

fn cut_at(lab: &Lab, moment: Moment, chance: &mut Random) -> Result<()> {
    lab.set("boot-delay", BOOT_DELAY)?;
    let from = events(lab).len();
    let (done, waits) = mpsc::channel();
    let for_thread = lab.clone();
    std::thread::spawn(move || {
        let _ = done.send(host::typed(&for_thread, SEAT, TEST).map_err(|error| error.to_string()));
    });
    let happened = |words: &str| {
        let all = events(lab);
        all.get(from..).is_some_and(|new| new.contains(words)).then_some(())
    };
    let pause = Duration::from_millis(20);
    let off = format!("power of {VICTIM} is cut");
    sh::wait_for("the node to be fenced", LIMIT, pause, || happened(&off))?;
    match moment {
        Moment::Off => {}
        Moment::Boots => {
            sh::wait_for("the node to be switched on", LIMIT, pause, || happened(&format!("{VICTIM} is switched on")))?;
            std::thread::sleep(chance.up_to(Duration::from_secs(24)));
        }
        Moment::Learner => {
            // The survivor is queried because it answers at once. The other node is a learner for only a second or two.
            let is_listed = |view: &etcd::View| view.voters.len() == 1 && view.others > 0;
            let learner = || etcd::view(lab, SEAT).is_ok_and(|view| is_listed(&view)).then_some(());
            sh::wait_for("the node to be listed as a learner", LIMIT, pause, learner)?;
            std::thread::sleep(chance.up_to(Duration::from_secs(1)));
        }
    }
    power::cut(lab, SEAT)?;
    println!("   {SEAT}, which conducts, is cut: {moment:?}");
    // The waiting client got no answer.
    let said = waits.recv_timeout(Duration::from_secs(30))?;
    must("the test was cut off", said, |said| said.as_ref().map_or(true, |(code, _)| *code != 0)).map(drop)
}

fn events(lab: &Lab) -> String {
    std::fs::read_to_string(lab.events()).unwrap_or_default()
}
