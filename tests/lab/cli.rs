//! The command line of the lab. Each wrong argument gets one sentence that names the error.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::bench_agent::{Bench, Contestant};
use crate::cluster::CloneKind;
use crate::cluster::up::{self, Wish};
use crate::host;
use crate::host::blank::Blank;
use crate::host::node::Node;
use crate::host::state::{self, Lab};
use crate::host::vm::disk::Drive;
use crate::power_cuts::{Kind, Series};
use crate::programs::image::Version;
use crate::programs::release::Release;
use crate::programs::shell_agent::Agent;
use crate::scenarios::{self, Manner, Wanted};
use crate::sh::{self, Result};
use crate::{
    bench_agent, cluster, cluster::etcd, cluster::teardown, demo, host::bmc, host::init, host::net, host::power,
    host::services, host::units, judge::evidence, judge::self_test, judge::timeline, load::token_load, load::writer,
    power_cuts,
};

const HELP: &str = "\
The two-host lab: Corosync, Pacemaker, podman, etcd and a BMC, twice, on this machine. Needs root.

  cargo lab up [--etcd 3.4|3.5] [--clone plain|promotable] [--agent tandem|shell] [--release 12|13] [--bare]
               [--blank [rpm|debian]] [--boot-delay SECONDS]
                              bring two hosts, their cluster and etcd up (--bare: without fence devices and etcd;
                              --agent shell: with the shell agent from Debian unstable; --release: as hosts of that
                              Debian, Pacemaker 2.1 or 3.0; --blank: nothing but the packages, as RPMs or as
                              Debian's leave them: no cluster, 'systemctl' and pcsd as on a real host)
  cargo lab fetch [--etcd 3.4|3.5] [--release 12|13]
                              make what labs are made of, and keep it: etcd's image, the packages of another Debian
  cargo lab down              take everything away
  cargo lab status            hosts, BMCs, etcd as each side sees it
  cargo lab crm_mon [NODE]    what Pacemaker shows
  cargo lab shell NODE        a shell on a host
  cargo lab exec NODE -- CMD  a command on a host
  cargo lab cut NODE          cut a host's power
  cargo lab on NODE           switch it on
  cargo lab partition         cut the cluster network between the hosts (BMCs stay reachable)
  cargo lab heal              mend it
  cargo lab kill-etcd NODE    SIGKILL to the host's etcd process
  cargo lab bmc NODE MODE     make a BMC ok, refuse (the password), hang, unreachable, stranger or says-off
  cargo lab write [SECONDS]   write to etcd without pause, then read every acknowledged write back
  cargo lab logs NODE         a host's syslog
  cargo lab timeline          both hosts' logs, BMCs and power in one story
  cargo lab demo [--victim leader|follower]
                              the main job: cut a node's power and watch (brings its own lab up and down)
  cargo lab run [--jobs N] [--results FILE] [SCENARIO...]
                              scenarios; those of every day if none is named, all of them with --nightly; --jobs 3
                              runs three labs side by side; --results FILE replaces their rows in the table of results
  cargo lab list [--long]     the scenarios; with --long also when, where and from which state each runs
  cargo lab power-cuts [--runs N] [--seed SEED] [--kind KIND] [--lone-boot] [--results FILE]
                              N power cuts at random moments; fails if an acknowledged write is lost; with --lone-boot
                              a node that boots without its peer serves if it was the sole voter
  cargo lab bench-agent [--runs N] [--agent shell|restart|standin] [--data MB] [--token MILLISECONDS]
                        [--race] [--only power-cut|node-hung|etcd-killed|graceful-stop|image|both-cut]
                              the shell agent and Tandem's two ways of a recovery side by side, over a database of so many
                              megabytes, and how long etcd takes no writes; with --race, Tandem's fence agents race and
                              have no delay
  cargo lab token-load [--token MILLISECONDS] [--minutes N]
                              how often Corosync loses its token wrongly on hosts under full load, and on one that freezes
  cargo lab self-test         the lab's own checks, without a lab

With --vm, before the command, the hosts are virtual machines, and what was not synced is lost with their power; 'make vm-lab'
makes the Debian packages that they install (TANDEM_DEB names them).

A lab has a name (--name LAB before the command, default 'tandem'); labs of different names do not touch each other.
";

pub fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let done = match words.split_first() {
        // The arguments of `systemctl` are not parsed by the lab.
        Some((verb, rest)) if verb == "host-systemctl" => units::systemctl(rest),
        _ => dispatch(&mut words),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lab: {error}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(words: &mut Vec<String>) -> Result<()> {
    let vm = take_flag(words, "--vm");
    let name = take_option(words, "--name")?.unwrap_or_else(|| if vm { "tandem-vm" } else { "tandem" }.to_owned());
    let lab = Lab::named(&name)?;
    let hosts = if vm { host::Kind::Vm } else { host::Kind::of(&lab) };
    if hosts == host::Kind::Vm {
        sh::wait_longer(host::vm::slower(&lab));
    }
    if words.is_empty() {
        words.push("help".to_owned());
    }
    let verb = words.remove(0);
    match verb.as_str() {
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(())
        }
        "list" => list(words),
        "self-test" => self_test::run(),
        "up" => {
            let wish = wish(words, hosts)?;
            nothing_more(words)?;
            crate::interrupt::install()?;
            up::up(&lab, wish)
        }
        "fetch" => fetch(words, hosts),
        "down" => {
            nothing_more(words)?;
            down(&lab)
        }
        "demo" => {
            let victim = demo::Victim::parse(take_option(words, "--victim")?.as_deref().unwrap_or("leader"))?;
            let wish = wish(words, hosts)?;
            nothing_more(words)?;
            crate::interrupt::install()?;
            demo::run(&lab, wish, victim)
        }
        "run" => {
            let wish = wish(words, hosts)?;
            let manner = manner(words)?;
            crate::interrupt::install()?;
            scenarios::run(&lab, wish, &manner)
        }
        "power-cuts" => {
            let series = series(words)?;
            let results = take_option(words, "--results")?.map(PathBuf::from);
            let wish = wish(words, hosts)?;
            nothing_more(words)?;
            crate::interrupt::install()?;
            power_cuts::run(&lab, wish, series, results.as_deref())
        }
        "bench-agent" => {
            let bench = bench(words)?;
            let wish = wish(words, hosts)?;
            nothing_more(words)?;
            crate::interrupt::install()?;
            bench_agent::run(&lab, wish, &bench)
        }
        "token-load" => {
            let minutes = take_option(words, "--minutes")?.unwrap_or_else(|| "60".to_owned());
            let minutes = minutes.parse().map_err(|_| format!("--minutes takes a number, not '{minutes}'"))?;
            let wish = wish(words, hosts)?;
            nothing_more(words)?;
            crate::interrupt::install()?;
            token_load::run(&lab, wish, minutes)
        }
        other => part(&lab, other, words),
    }
}

/// Runs a hidden subcommand, such as `bmc-daemon`, with which the lab starts its own background processes.
fn part(lab: &Lab, verb: &str, words: &mut Vec<String>) -> Result<()> {
    match verb {
        "host-boot" => host::namespaces::boot(lab, node(words)?),
        "host-init" => init::run(lab, node(words)?),
        "disk-daemon" => {
            let node = node(words)?;
            host::vm::nbd::daemon(lab, node, Drive::parse(words.first().map_or("", String::as_str))?)
        }
        "host-units" => units::run(node(words)?),
        "host-services" => services::run(node(words)?),
        "bmc-daemon" => {
            node(words)?;
            bmc::daemon(lab)
        }
        other => by_hand(lab, other, words),
    }
}

fn fetch(words: &mut Vec<String>, hosts: host::Kind) -> Result<()> {
    let wish = wish(words, hosts)?;
    nothing_more(words)?;
    crate::interrupt::install()?;
    up::fetch_parts(wish)
}

/// Runs a subcommand of `cargo lab` that needs a running lab.
fn by_hand(lab: &Lab, verb: &str, words: &mut Vec<String>) -> Result<()> {
    const VERBS: &[&str] = &[
        "status",
        "crm_mon",
        "shell",
        "sh",
        "exec",
        "cut",
        "on",
        "partition",
        "heal",
        "kill-etcd",
        "bmc",
        "write",
        "logs",
        "timeline",
    ];
    if !VERBS.contains(&verb) {
        return Err(format!("there is no command '{verb}'; type 'cargo lab help' for those there are").into());
    }
    lab.must_exist()?;
    match verb {
        "status" => {
            status(lab);
            Ok(())
        }
        "crm_mon" => {
            let node = if words.is_empty() { host::any_running(lab)? } else { node(words)? };
            print!("{}", cluster::crm_mon(lab, node)?);
            Ok(())
        }
        "shell" | "sh" => interactive(host::command(lab, node(words)?, &["bash", "--login"])?),
        "exec" => exec(lab, words),
        "cut" => power::cut(lab, node(words)?),
        "on" => power::on(lab, node(words)?),
        "partition" => net::set_partition(lab, true),
        "heal" => net::set_partition(lab, false),
        "kill-etcd" => etcd::kill(lab, node(words)?),
        "bmc" => bmc::set_mode(lab, node(words)?, words.first().map_or("", String::as_str)),
        "write" => writer::by_hand(lab, words.first().map_or("10", String::as_str)),
        "logs" => {
            print!("{}", std::fs::read_to_string(lab.messages(node(words)?)).unwrap_or_default());
            Ok(())
        }
        _ => {
            for line in timeline::merged(lab) {
                println!("{line}");
            }
            Ok(())
        }
    }
}

fn manner(words: &mut Vec<String>) -> Result<Manner> {
    let jobs = take_option(words, "--jobs")?.unwrap_or_else(|| "1".to_owned());
    let jobs = jobs.parse().map_err(|_| format!("--jobs takes a number of labs, not '{jobs}'"))?;
    let report = take_option(words, "--report")?.map(PathBuf::from);
    let results = take_option(words, "--results")?.map(PathBuf::from);
    let wanted = match words.as_slice() {
        [] => Wanted::Daily,
        [only] if only == "--nightly" => Wanted::Nightly,
        names => Wanted::Named(names.to_vec()),
    };
    Ok(Manner { wanted, jobs, report, results })
}

fn wish(words: &mut Vec<String>, hosts: host::Kind) -> Result<Wish> {
    let mut wish = Wish { hosts, ..Wish::default() };
    if let Some(version) = take_option(words, "--etcd")? {
        wish.etcd = Version::parse(&version)?;
    }
    if let Some(number) = take_option(words, "--release")? {
        wish.release = Release::parse(&number)?;
    }
    if let Some(kind) = take_option(words, "--clone")? {
        wish.clone = CloneKind::parse(&kind)?;
    }
    if let Some(agent) = take_option(words, "--agent")? {
        wish.agent = Agent::parse(&agent)?;
    }
    if let Some(seconds) = take_option(words, "--boot-delay")? {
        wish.boot_delay = seconds.parse().map_err(|_| format!("--boot-delay takes seconds, not '{seconds}'"))?;
    }
    wish.bare = take_flag(words, "--bare");
    wish.blank = blank(words);
    wish.restarts = take_flag(words, "--restart");
    if let Some(token) = take_option(words, "--token")? {
        wish.token = Some(token.parse().map_err(|_| format!("--token takes milliseconds, not '{token}'"))?);
    }
    Ok(wish)
}

/// Removes `--blank` and its optional kind from the command line's words. Returns `None` if there is no `--blank`.
fn blank(words: &mut Vec<String>) -> Option<Blank> {
    let at = words.iter().position(|word| word == "--blank")?;
    words.remove(at);
    let kind = words.get(at).and_then(|word| Blank::parse(word).ok());
    if kind.is_some() {
        words.remove(at);
    }
    kind.or(Some(Blank::Rpm))
}

fn take_flag(words: &mut Vec<String>, flag: &str) -> bool {
    let at = words.iter().position(|word| word == flag);
    at.map(|at| words.remove(at)).is_some()
}

fn bench(words: &mut Vec<String>) -> Result<Bench> {
    let contestants = match take_option(words, "--agent")? {
        Some(name) => vec![Contestant::parse(&name)?],
        None => Contestant::ALL.to_vec(),
    };
    let megabytes = take_option(words, "--data")?.unwrap_or_else(|| "0".to_owned());
    let megabytes = megabytes.parse().map_err(|_| format!("--data takes megabytes, not '{megabytes}'"))?;
    let runs = take_option(words, "--runs")?.unwrap_or_else(|| "5".to_owned());
    let runs = runs.parse().map_err(|_| format!("--runs takes a number, not '{runs}'"))?;
    let race = take_flag(words, "--race");
    Ok(Bench { contestants, runs, megabytes, only: take_option(words, "--only")?, race })
}

fn series(words: &mut Vec<String>) -> Result<Series> {
    let runs = take_option(words, "--runs")?.unwrap_or_else(|| "5".to_owned());
    let seed = take_option(words, "--seed")?;
    let number = |option: &str, text: &str| -> Result<u64> {
        text.parse().map_err(|_| format!("{option} takes a number, not '{text}'").into())
    };
    Ok(Series {
        runs: number("--runs", &runs)?.max(1),
        seed: seed.map(|seed| number("--seed", &seed)).transpose()?,
        kind: take_option(words, "--kind")?.map(|kind| Kind::parse(&kind)).transpose()?,
        lone_boot: take_flag(words, "--lone-boot"),
    })
}

/// Removes `option` and its value from the command line's words, and returns the value. Returns `None` if there is no
/// such option.
fn take_option(words: &mut Vec<String>, option: &str) -> Result<Option<String>> {
    // Words after `--` belong to a command on a host.
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let Some(at) = words[..end].iter().position(|word| word == option) else { return Ok(None) };
    if at + 1 >= end {
        return Err(format!("{option} needs a value; type 'cargo lab help'").into());
    }
    words.remove(at);
    Ok(Some(words.remove(at)))
}

fn node(words: &mut Vec<String>) -> Result<Node> {
    if words.is_empty() {
        return Err("which node? type node1 or node2".into());
    }
    words.remove(0).parse()
}

fn list(words: &[String]) -> Result<()> {
    let is_long = words.first().is_some_and(|word| word == "--long");
    nothing_more(&words[usize::from(is_long)..])?;
    scenarios::list(is_long);
    Ok(())
}

fn nothing_more(words: &[String]) -> Result<()> {
    match words.first() {
        None => Ok(()),
        Some(word) => Err(format!("'{word}' means nothing here; type 'cargo lab help'").into()),
    }
}

fn exec(lab: &Lab, words: &mut Vec<String>) -> Result<()> {
    let node = node(words)?;
    if words.first().is_some_and(|word| word == "--") {
        words.remove(0);
    }
    if words.is_empty() {
        return Err("which command? type 'cargo lab exec NODE -- COMMAND'".into());
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    interactive(host::command(lab, node, &words)?)
}

/// Runs a command on the caller's terminal. If the command fails, the lab exits with its exit code.
fn interactive(mut command: Command) -> Result<()> {
    let status = command.status()?;
    if !status.success() {
        std::process::exit(status.code().unwrap_or(1));
    }
    Ok(())
}

fn down(lab: &Lab) -> Result<()> {
    let left = teardown::down(lab);
    if left.is_empty() {
        println!("the lab is down, nothing is left of it");
        return Ok(());
    }
    Err(format!("still there: {}", left.join(", ")).into())
}

fn status(lab: &Lab) {
    let names = state::all_labs();
    println!("lab '{}' ({} on this machine), etcd {}", lab.name, names.len(), lab.setting("etcd").unwrap_or_default());
    for line in evidence::standing(lab) {
        println!("{line}");
    }
}
