//! kubelet as Pacemaker runs it on OpenShift: a unit with the lines of RHCOS' own, before which systemd starts cri-o, and
//! after which Pacemaker starts etcd. Both programs are doubles.

use std::time::{Duration, Instant};

use super::{roles, two_voters, two_voters_since};
use crate::cluster::ETCD_CLONE;
use crate::cluster::asked;
use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::cluster::redundant;
use crate::cluster::typed;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::judge::check::{eventually, must, within};
use crate::judge::history;
use crate::load::writer::Writers;
use crate::scenarios::steps;
use crate::sh::{self, Result};

const UNIT: &str = "kubelet.service";
const CLONE: &str = "kubelet-clone";
const CRIO: &str = "crio.service";
/// A systemd unit with those lines of RHCOS' kubelet unit that decide when systemd starts, restarts and stops it.
const KUBELET_UNIT: &str = "[Unit]
Description=Kubernetes Kubelet
Requires=crio.service
After=crio.service
[Service]
Type=notify
ExecStart=/usr/local/bin/kubelet
Restart=always
RestartSec=10
[Install]
WantedBy=multi-user.target
";
const CRIO_UNIT: &str = "[Unit]
Description=Container Runtime Interface for OCI (CRI-O)
[Service]
Type=notify
ExecStart=/usr/local/bin/crio
Restart=on-failure
RestartSec=10
[Install]
WantedBy=multi-user.target
";
const CRIO_DOUBLE: &str = "#!/bin/sh\nsystemd-notify --ready\nexec sleep infinity\n";
/// A script that takes kubelet's place. It fails at its start while the file [`NO_START`] exists, and ignores SIGTERM while [`NO_STOP`]
/// exists.
const KUBELET_DOUBLE: &str = "#!/bin/sh
[ ! -e /etc/lab/kubelet-does-not-start ] || exit 1
trap '[ -e /etc/lab/kubelet-does-not-stop ] || exit 0' TERM
systemd-notify --ready
while :; do sleep 60 & wait $!; done
";
const NO_START: &str = "/etc/lab/kubelet-does-not-start";
const NO_STOP: &str = "/etc/lab/kubelet-does-not-stop";
/// The path of a drop-in that removes systemd's time limit for stopping kubelet. Pacemaker's own time limit then ends first.
const STOP_TIME: &str = "/etc/systemd/system/kubelet.service.d/lab.conf";
const STOP_TIME_LINES: &str = "[Service]\nTimeoutStopSec=infinity\n";

/// The limit for a writer's gap in an orderly hand-over. It covers an election and a few retries, but no recovery.
const LONGEST_GAP: Duration = Duration::from_secs(8);
/// The limit for a writer's gap after a failed stop.
const AFTER_FAILED_STOP: Duration = Duration::from_secs(40);
/// The time-out until kubelet runs again. Pacemaker checks once a minute whether kubelet runs, and delays its start by 15 s.
const RUNS_AGAIN: Duration = Duration::from_secs(180);
/// The time-out until a stop of kubelet has failed, and the time-out until the node is fenced afterwards.
const STOP_FAILS: Duration = Duration::from_secs(180);

/// Installs a fake kubelet and a fake cri-o on both nodes. Makes Pacemaker run kubelet before etcd, by the commands of `tandem setup
/// --platform openshift`.
pub fn furnish(lab: &Lab) -> Result<()> {
    for node in NODES {
        install(lab, node)?;
    }
    let by = NODES[0];
    let words = "resource create kubelet systemd:kubelet op start timeout=180s start-delay=15s meta interleave=true \
                 migration-threshold=60 --disabled";
    pcs::run(lab, by, &words.split_whitespace().collect::<Vec<_>>())?;
    pcs::run(lab, by, &["resource", "clone", "kubelet"])?;
    pcs::run(lab, by, &["resource", "enable", "kubelet"])?;
    for node in NODES {
        runs(lab, node)?;
    }
    pcs::run(lab, by, &["constraint", "order", CLONE, "then", ETCD_CLONE])?;
    pcs::run_and_wait(lab, by, &["constraint", "colocation", "add", ETCD_CLONE, "with", CLONE])?;
    two_voters(lab)?;
    redundant::wait(lab)
}

fn install(lab: &Lab, node: Node) -> Result<()> {
    let units = "/etc/systemd/system";
    let files = [
        (format!("{units}/{UNIT}"), KUBELET_UNIT),
        (format!("{units}/{CRIO}"), CRIO_UNIT),
        ("/usr/local/bin/kubelet".to_owned(), KUBELET_DOUBLE),
        ("/usr/local/bin/crio".to_owned(), CRIO_DOUBLE),
    ];
    for (path, content) in files {
        host::put(lab, node, &path, content)?;
    }
    let ready = "chmod 0755 /usr/local/bin/kubelet /usr/local/bin/crio && systemctl daemon-reload && sync";
    host::must(lab, node, &["sh", "-c", ready]).map(drop)
}

/// Waits until kubelet runs on a node. cri-o must run as well, because kubelet's unit requires it.
fn runs(lab: &Lab, node: Node) -> Result<()> {
    within(RUNS_AGAIN, &format!("kubelet runs on {node}"), || state(lab, node, UNIT), |state| state == "active")?;
    must("cri-o runs where kubelet does", state(lab, node, CRIO), |state| state == "active").map(drop)
}

/// Returns the state of a unit, in the words of `systemctl`.
fn state(lab: &Lab, node: Node, unit: &str) -> String {
    host::said(lab, node, &["systemctl", "show", "--value", "--property=ActiveState", unit]).trim().to_owned()
}

fn process(lab: &Lab, node: Node) -> Result<String> {
    let said = host::must(lab, node, &["systemctl", "show", "--value", "--property=MainPID", UNIT])?;
    must("kubelet has a process", said.trim().to_owned(), |pid| !pid.is_empty() && pid != "0")
}

fn kill(lab: &Lab, node: Node) -> Result<()> {
    let pid = process(lab, node)?;
    host::must(lab, node, &["kill", "-9", &pid])?;
    lab.event(&format!("kubelet on {node} got SIGKILL"));
    Ok(())
}

/// Kills kubelet on the leader's node. Pacemaker must restart it, because systemd does not restart a unit that Pacemaker runs. Pacemaker
/// also restarts etcd, which must leave in good order.
pub fn killed(lab: &Lab, _: Wish) -> Result<()> {
    let mut writers = crate::scenarios::writing(lab)?;
    let (leader, _) = roles(lab)?;
    redundant::wait(lab)?;
    let resets = steps::resets_asked(lab);
    let (before, struck) = (process(lab, leader)?, Instant::now());
    kill(lab, leader)?;
    let runs_anew = || process(lab, leader).is_ok_and(|now| now != before).then_some(());
    sh::wait_for("kubelet to run again", RUNS_AGAIN, Duration::from_secs(1), runs_anew)?;
    runs(lab, leader)?;
    println!("   kubelet runs again after {:.0} s", struck.elapsed().as_secs_f64());
    // etcd follows kubelet.
    host::must(lab, leader, &["crm_resource", "--wait", "--timeout=300s"])?;
    two_voters_since(lab, struck)?;
    must("nobody was fenced", steps::resets_asked(lab), |now| *now == resets)?;
    hardly_noticed(&writers)?;
    crate::scenarios::ends_well(lab, &mut writers)
}

/// Checks that no writer waited for longer than an orderly hand-over takes.
fn hardly_noticed(writers: &Writers) -> Result<()> {
    let (gap, _) = writers.longest_wait();
    println!("   longest gap {:.1} s", gap.as_secs_f64());
    must("writers hardly waited", gap, |gap| *gap <= LONGEST_GAP).map(drop)
}

/// Makes kubelet's start fail on the leader's node. Pacemaker must keep etcd stopped there and repeat the start, which succeeds once the
/// cause is removed.
pub fn does_not_start(lab: &Lab, _: Wish) -> Result<()> {
    let mut writers = crate::scenarios::writing(lab)?;
    let (leader, stays) = roles(lab)?;
    redundant::wait(lab)?;
    let resets = steps::resets_asked(lab);
    host::put(lab, leader, NO_START, "")?;
    let struck = Instant::now();
    kill(lab, leader)?;
    let done = is_told(lab, leader, &writers);
    host::must(lab, leader, &["rm", NO_START])?;
    done?;
    let (gap, _) = writers.longest_wait();
    println!("   longest gap {:.1} s until then", gap.as_secs_f64());
    runs(lab, leader)?;
    host::must(lab, stays, &["crm_resource", "--wait", "--timeout=300s"])?;
    two_voters_since(lab, struck)?;
    must("nobody was fenced", steps::resets_asked(lab), |now| *now == resets)?;
    hardly_noticed(&writers)?;
    crate::scenarios::ends_well(lab, &mut writers)
}

/// Checks the state of the cluster while kubelet does not start on `off`. No etcd runs there, and the other node takes writes. `tandem
/// status` must name the failure and a command that shows its cause.
fn is_told(lab: &Lab, off: Node, writers: &Writers) -> Result<()> {
    let on = off.other();
    let is_told = |answer: &Result<asked::Answer>| {
        answer.as_ref().is_ok_and(|answer| answer.verdict == asked::DEGRADED.0 && answer.names("start-failed"))
    };
    let answer = within(STOP_FAILS, "status tells of the failed start", || asked::ask(lab, on), is_told)??;
    println!("   status: {}, {:?}", answer.verdict, answer.problems);
    let words = format!("kubelet does not start on {off}");
    let text = || host::typed(lab, on, "tandem status").map(|(_, said)| said).unwrap_or_default();
    eventually("status names kubelet", text, |said| said.contains(&words))?;
    let command = typed::command_of(lab, on, "start-failed")?;
    println!("   {command}");
    let (code, said) = typed::types(lab, on, &command)?;
    let shows = |said: &String| code == 0 && said.contains("Failed to start kubelet.service");
    must("its command shows why", said, shows)?;
    steps::wait_alone(lab, on)?;
    must("no etcd runs where kubelet does not", etcd::pid(lab, off), Option::is_none)?;
    must("kubelet does not run", state(lab, off, UNIT), |state| state != "active")?;
    steps::wait_write(writers, Duration::from_secs(20)).map(drop)
}

/// Puts the leader's node to standby while its kubelet ignores SIGTERM. etcd must leave in good order. Then kubelet's stop must fail, and
/// Pacemaker must fence the node.
pub fn does_not_stop(lab: &Lab, _: Wish) -> Result<()> {
    let mut writers = crate::scenarios::writing(lab)?;
    let (leader, stays) = roles(lab)?;
    deafen(lab, leader)?;
    redundant::wait(lab)?;
    let (cuts, from) = (steps::power_cuts(lab), steps::log_length(lab, leader));
    steps::standby(lab, leader, true)?;
    let failed = format!("Result of stop operation for kubelet on {leader}: ");
    steps::wait_said(lab, leader, from, &failed, STOP_FAILS)?;
    let (failed_at, struck) = (writers.now(), Instant::now());
    let line = steps::said(lab, leader, from);
    println!("   {}", line.lines().find(|line| line.contains(&failed)).unwrap_or_default());
    let fenced = || (steps::power_cuts(lab) > cuts).then_some(());
    sh::wait_for("the node to be fenced", STOP_FAILS, Duration::from_millis(300), fenced)?;
    println!("   fenced {:.1} s after the failed stop", struck.elapsed().as_secs_f64());
    host::wait_booted(lab, leader)?;
    host::must(lab, leader, &["sh", "-c", &format!("rm -f {NO_STOP} {STOP_TIME}; systemctl daemon-reload; sync")])?;
    steps::wait_alone(lab, stays)?;
    steps::wait_write(&writers, AFTER_FAILED_STOP)?;
    let (gap, _) = history::longest_gap(&writers.acknowledged(), failed_at, writers.now());
    println!("   longest gap after the failed stop {:.1} s", gap.as_secs_f64());
    must("writes returned in time", gap, |gap| *gap <= AFTER_FAILED_STOP)?;
    steps::wait_pacemaker(lab, leader)?;
    steps::standby(lab, leader, false)?;
    runs(lab, leader)?;
    two_voters_since(lab, struck)?;
    crate::scenarios::ends_well(lab, &mut writers)
}

/// Makes the running kubelet of a node ignore SIGTERM from now on.
fn deafen(lab: &Lab, node: Node) -> Result<()> {
    host::put(lab, node, NO_STOP, "")?;
    host::put(lab, node, STOP_TIME, STOP_TIME_LINES)?;
    host::must(lab, node, &["systemctl", "daemon-reload"]).map(drop)
}
