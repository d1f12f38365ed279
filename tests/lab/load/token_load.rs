//! A measurement of wrongly lost Corosync tokens. Both hosts run under full load of processors, disks and network for
//! some time. Then a host freezes for a moment, like a machine with stalls of its hardware.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::cluster;
use crate::cluster::teardown;
use crate::cluster::up::{self, Wish};
use crate::host::node::{NODES, Node};
use crate::host::state::{self, Lab};
use crate::host::{self, Kind, namespaces, vm};
use crate::interrupt;
use crate::sh::Result;

/// Corosync's statistic that counts the tokens that were lost while all members were there.
const LOST: &str = "stats.srp.operational_token_lost";
/// The line that Corosync logs when three quarters of the token's time-out have passed without a token.
const NEARLY: &str = "Token has not been received in";
const LOOK: Duration = Duration::from_secs(10);
/// The times for which a host freezes, in milliseconds.
const STALLS: [u64; 7] = [250, 500, 700, 900, 1200, 2000, 2800];
/// The number of processes on each host that only use a CPU.
const HOGS: usize = 4;
const SINK: &str = "use IO::Socket::INET; my $s = IO::Socket::INET->new(LocalPort => 5001, Listen => 5, ReuseAddr => 1) or die; \
                    while (my $c = $s->accept) { 1 while sysread($c, my $b, 65536) }";
const SOURCE: &str = "use IO::Socket::INET; my $b = 'x' x 65536; while (1) { my $s = IO::Socket::INET->new(PeerAddr => $ARGV[0], \
                      PeerPort => 5001); if ($s) { 1 while syswrite($s, $b) } else { sleep 1 } }";
const WRITE: &str = "while :; do dd if=/dev/zero of=/var/lib/token-load bs=1M count=128 oflag=dsync status=none; done";

/// Loads both hosts for `minutes`, and prints how often Corosync lost its token.
pub fn run(lab: &Lab, wish: Wish, minutes: u64) -> Result<()> {
    teardown::make_room(lab)?;
    let _guard = teardown::AtEnd(lab);
    up::up(lab, wish)?;
    let before = counts(lab)?;
    let mut load = start(lab, Node::One)?;
    load.extend(start(lab, Node::Two)?);
    println!("both hosts under load for {minutes} minutes: {HOGS} processes, a disk that is synced, TCP both ways");
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(minutes * 60) {
        interrupt::check()?;
        std::thread::sleep(LOOK);
        let lost = counts(lab)?;
        if lost != before {
            println!("   {:.0} s: lost {lost:?}", began.elapsed().as_secs_f64());
        }
    }
    let after = counts(lab)?;
    println!(
        "tokens lost under load: {} and {}, nearly lost: {}",
        after[0] - before[0],
        after[1] - before[1],
        nearly(lab)
    );
    println!("the machine's load: {}", std::fs::read_to_string("/proc/loadavg")?.trim());
    for child in &mut load {
        child.kill()?;
        child.wait()?;
    }
    stalls(lab)
}

/// Starts the processes that load a host's network, disk and CPUs. They end with the host at the latest.
fn start(lab: &Lab, node: Node) -> Result<Vec<Child>> {
    let peer = node.other().ip();
    let mut words: Vec<Vec<&str>> =
        vec![vec!["perl", "-e", SINK], vec!["perl", "-e", SOURCE, &peer], vec!["sh", "-c", WRITE]];
    words.extend((0..HOGS).map(|_| vec!["perl", "-e", "1 while 1"]));
    words
        .iter()
        .map(|words| Ok(host::command(lab, node, words)?.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?))
        .collect()
}

fn counts(lab: &Lab) -> Result<[u64; 2]> {
    let [one, two] = NODES.map(|node| count(lab, node));
    Ok([one?, two?])
}

fn count(lab: &Lab, node: Node) -> Result<u64> {
    let told = host::must(lab, node, &["corosync-cmapctl", "-m", "stats", "-g", LOST])?;
    let number = told.rsplit_once('=').map(|(_, number)| number.trim().parse());
    Ok(number.ok_or_else(|| format!("corosync-cmapctl has no {LOST}: {told}"))??)
}

/// Returns how often Corosync logged a late token on either host.
fn nearly(lab: &Lab) -> usize {
    let log = |node| std::fs::read_to_string(lab.messages(node)).unwrap_or_default();
    NODES.into_iter().map(|node| log(node).matches(NEARLY).count()).sum()
}

/// Freezes a host for longer and longer times, and prints after which of them Corosync lost its token. After a freeze that got the host
/// fenced, waits for its return.
fn stalls(lab: &Lab) -> Result<()> {
    for millis in STALLS {
        interrupt::check()?;
        cluster::wait_clean(lab)?;
        let node = NODES[1];
        let (before, from) = (count(lab, node.other())?, state::since_epoch());
        freeze(lab, node, Duration::from_millis(millis))?;
        let froze = state::since_epoch().saturating_sub(from).as_secs_f64();
        std::thread::sleep(Duration::from_secs(8));
        let lost = count(lab, node.other())? - before;
        println!("a host froze for {froze:.2} s: {}", if lost == 0 { "no token lost" } else { "the token was lost" });
        crate::cluster::etcd::wait_two_voters(lab, Duration::from_secs(180))?;
    }
    Ok(())
}

/// Freezes a host for `time`. A machine that is fenced meanwhile is another process afterwards, which gets no signal.
fn freeze(lab: &Lab, node: Node, time: Duration) -> Result<()> {
    match Kind::of(lab) {
        Kind::Namespaces => namespaces::frozen(lab, node, || {
            std::thread::sleep(time);
            Ok(())
        }),
        Kind::Vm => {
            let machine = vm::signal(lab, node, Signal::SIGSTOP)?;
            std::thread::sleep(time);
            machine.signal(Signal::SIGCONT)
        }
    }
}
