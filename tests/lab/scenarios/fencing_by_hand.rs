//! Fencing as an administrator sets it up, tests it and relies on it: the tools of stock Pacemaker, the agent from the
//! shell, topology levels, a delay, and a node that is switched on again.

use std::fs;
use std::time::Duration;

use super::steps;
use crate::cluster::pcs;
use crate::cluster::up::{self, Wish};
use crate::host;
use crate::host::bmc;
use crate::host::node::{BMC_PASSWORD, BMC_USER, Node};
use crate::host::power;
use crate::host::state::{self, Lab};
use crate::judge::check::{eventually, must};
use crate::sh::{self, Result};

/// The node that is fenced. The administrator works on the other node, [`SEAT`].
const VICTIM: Node = Node::One;
const SEAT: Node = Node::Two;
const PASSWORD_FILE: &str = "/etc/tandem/bmc-password";
/// The boot delay in seconds. It is long enough for Corosync to lose the fenced node, and short because the scenario
/// fences often.
const BOOT_DELAY: &str = "5";
/// A fencing delay that is longer than any delay that a slow machine causes.
const DELAY: Duration = Duration::from_secs(7);
/// The time-out until a BMC's refusal is reported. The fencer's own time-out is a minute.
const AT_ONCE: Duration = Duration::from_secs(30);

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    lab.set("boot-delay", BOOT_DELAY)?;
    tools(lab)?;
    from_the_shell(lab)?;
    asked_for_text(lab)?;
    fenced_by_name(lab)?;
    kept_off_and_switched_on(lab)?;
    delayed(lab)?;
    refused(lab)?;
    second_level(lab)?;
    nothing_is_told(lab)
}

/// Returns the output of a command on the administrator's node, with its exit code as the last line.
fn shell(lab: &Lab, command: &str) -> Result<String> {
    let output = host::output(lab, SEAT, &["sh", "-c", &format!("{command}; echo \"code $?\"")])?;
    Ok(output.text().trim().to_owned())
}

fn expect(what: &str, said: &str, wanted: &str) -> Result<()> {
    if said == wanted { Ok(()) } else { Err(format!("{what}: '{said}' instead of '{wanted}'").into()) }
}

fn contains(what: &str, said: &str, words: &[&str]) -> Result<()> {
    match words.iter().find(|word| !said.contains(**word)) {
        Some(word) => Err(format!("{what}: no '{word}' in: {said}").into()),
        None => Ok(()),
    }
}

/// Returns the fence agent's options for the victim's BMC, in the form of `stonith_admin`.
fn options(password: &str) -> String {
    let ip = VICTIM.bmc_ip();
    format!("-o ip={ip} -o username={BMC_USER} -o password={password} -o system_uuid={}", VICTIM.uuid())
}

fn tools(lab: &Lab) -> Result<()> {
    contains("--list-installed", &shell(lab, "stonith_admin --list-installed")?, &["fence_redfish_rs", "code 0"])?;
    let metadata = shell(lab, "stonith_admin --metadata --agent fence_redfish_rs")?;
    contains(
        "--metadata",
        &metadata,
        &["<resource-agent name=\"fence_redfish_rs\"", "name=\"system_uuid\"", "code 0"],
    )?;
    contains("pcs describe", &shell(lab, "pcs stonith describe fence_redfish_rs")?, &["system_uuid", "code 0"])?;
    let validate = |more: &str| {
        shell(lab, &format!("stonith_admin --validate --agent fence_redfish_rs {} {more}", options("any")))
    };
    contains("--validate", &validate("")?, &["succeeded", "code 0"])?;
    contains("--validate with a fault", &validate("-o delay=soon")?, &["delay='soon'"])?;
    let create = "pcs stonith create wrong fence_redfish_rs ip=10.98.0.101 username=u password=p";
    let refused = shell(lab, &format!("{create} system_uuid=x pcmk_host_list=node1 --agent-validation"))?;
    contains("pcs create with a fault", &refused, &["system_uuid=x is no UUID", "dmidecode", "code 1"])?;
    let started = |said: &String| ["fence-node1", "fence-node2"].iter().all(|name| is_started(said, name));
    let status = || shell(lab, "pcs stonith status").unwrap_or_default();
    eventually("pcs shows the fence devices as started", status, started).map(drop)
}

/// Returns whether the output of `pcs stonith status` shows the fence device `name` as started.
fn is_started(status: &str, name: &str) -> bool {
    status.lines().any(|line| line.contains(name) && line.contains("Started"))
}

fn from_the_shell(lab: &Lab) -> Result<()> {
    let (ip, uuid, id) = (VICTIM.bmc_ip(), VICTIM.uuid(), VICTIM.system_id());
    shell(lab, &format!("umask 077; echo '{BMC_PASSWORD}' > {PASSWORD_FILE}"))?;
    let by_hand = |action: &str, more: &str| {
        let call = format!("fence_redfish_rs -o {action} -a {ip} -l {BMC_USER} --password-file {PASSWORD_FILE} {more}");
        shell(lab, &call)
    };
    expect("status", &by_hand("status", "")?, "Status: ON\ncode 0")?;
    expect("monitor", &by_hand("monitor", "")?, "code 0")?;
    expect("list", &by_hand("list", "")?, &format!("{id},{VICTIM}\ncode 0"))?;
    expect("list-status", &by_hand("list-status", "")?, &format!("{id},{VICTIM},ON\ncode 0"))?;
    expect("status by UUID", &by_hand("status", &format!("--system-uuid {uuid}"))?, "Status: ON\ncode 0")?;
    let other = by_hand("off", &format!("--system-uuid {}", SEAT.uuid()))?;
    contains("off of another machine", &other, &["this BMC is another machine's", "code 1"])?;
    let lines =
        format!("printf 'action=status\\nip={ip}\\nlogin={BMC_USER}\\npasswd_script=/bin/cat {PASSWORD_FILE}\\n'");
    expect("options on standard input", &shell(lab, &format!("{lines} | fence_redfish_rs"))?, "Status: ON\ncode 0")?;
    if !power::is_on(lab, VICTIM) {
        return Err("the machine was powered off although the agent refused".into());
    }
    let (began, from) = (state::since_epoch(), steps::log_length(lab, SEAT));
    expect("reboot", &by_hand("reboot", "")?, "Success: Rebooted\ncode 0")?;
    let resets = resets(lab, began);
    if resets.iter().map(|(_, kind)| kind.as_str()).collect::<Vec<_>>() != ["ForceOff", "On"] {
        return Err(format!("reboot by hand sent {resets:?}").into());
    }
    // Pacemaker did not request this reset: it finds its node lost, later if it is busy, and fences it once more.
    let lost = format!("Node {VICTIM} state is now lost");
    steps::wait_said(lab, SEAT, from, &lost, Duration::from_secs(60))?;
    steps::nobody_is_wanted_dead(lab)
}

/// Checks the options `version` and `help` of a fence device, with which the agent only prints text. No node may be fenced, and the fencer
/// must not report that one was.
fn asked_for_text(lab: &Lab) -> Result<()> {
    let began = state::since_epoch();
    for option in ["version", "help"] {
        for value in ["1", "yes"] {
            text_is_no_fencing(lab, option, value)?;
        }
    }
    let set = |value: &str| shell(lab, &format!("pcs stonith update fence-node1 version={value} --force"));
    contains("update of a device", &set("1")?, &["code 0"])?;
    let fenced = shell(lab, "stonith_admin --fence node1 --timeout 60");
    contains("update of a device", &set("")?, &["code 0"])?;
    must("a device with version=1 fences nobody", fenced?, |said| !said.contains("code 0"))?;
    pcs::run(lab, SEAT, &["stonith", "history", "cleanup", "node1"])?;
    match resets(lab, began).first() {
        None => Ok(()),
        Some((_, kind)) => Err(format!("an option that asks for text sent {kind}").into()),
    }
}

fn text_is_no_fencing(lab: &Lab, option: &str, value: &str) -> Result<()> {
    let more = format!("-o {option}={value}");
    let validate = format!("stonith_admin --validate --agent fence_redfish_rs {} {more}", options("any"));
    must(&format!("{option}={value} is not validated"), shell(lab, &validate)?, |said| !said.contains("code 0"))?;
    let (ip, id) = (VICTIM.bmc_ip(), VICTIM.system_id());
    for action in ["off", "reboot", "monitor"] {
        let lines = [
            format!("action={action}"),
            format!("ip={ip}"),
            format!("username={BMC_USER}"),
            format!("password={BMC_PASSWORD}"),
            format!("systems_uri=/redfish/v1/Systems/{id}"),
            format!("{option}={value}"),
        ];
        let call = format!("printf '%s\\n' {} | fence_redfish_rs", lines.join(" "));
        must(&format!("{action} with {option}={value} fails"), shell(lab, &call)?, |said| !said.contains("code 0"))?;
    }
    Ok(())
}

/// Returns the resets that were requested from the victim's BMC since `since`, each with its time and type.
fn resets(lab: &Lab, since: Duration) -> Vec<(Duration, String)> {
    let log = fs::read_to_string(lab.bmc_log()).unwrap_or_default();
    let source = format!("bmc-{VICTIM}: POST ");
    let after = state::stamp(since);
    let lines = log.lines().filter_map(|line| line.split_once(' ')).filter(|(stamp, _)| **stamp >= *after);
    lines
        .filter_map(|(stamp, rest)| {
            let kind = rest.strip_prefix(&source)?.split(' ').nth(1)?;
            Some((state::since_stamp(stamp, since), kind.to_owned()))
        })
        .collect()
}

/// Runs `pcs stonith fence` or a similar command, which must succeed. Returns the time until the victim's first
/// reset.
fn fence(lab: &Lab, command: &str) -> Result<Duration> {
    let began = state::since_epoch();
    let said = shell(lab, command)?;
    let took = state::since_epoch().saturating_sub(began);
    println!("   {command}: {:.1} s: {}", took.as_secs_f64(), said.replace('\n', " "));
    contains(command, &said, &["code 0"])?;
    let first = resets(lab, began).into_iter().next();
    first.map(|(at, _)| at).ok_or_else(|| format!("{command}: no reset reached the BMC").into())
}

fn fenced_by_name(lab: &Lab) -> Result<()> {
    fence(lab, "pcs stonith fence node1")?;
    let history = || shell(lab, "stonith_admin --history node1").unwrap_or_default();
    eventually("the history has it", history, |said| said.contains("reboot of node1 successful"))?;
    up::wait_online(lab)
}

/// Checks that a node stays off after it was fenced with *off*, until the administrator requests *on*, which Pacemaker
/// calls unfencing.
fn kept_off_and_switched_on(lab: &Lab) -> Result<()> {
    fence(lab, "pcs stonith fence node1 --off")?;
    if power::is_on(lab, VICTIM) {
        return Err("the node was fenced with off, and is on".into());
    }
    let by_hand = format!("fence_redfish_rs -o status -a {} -l admin --password-file {PASSWORD_FILE}", VICTIM.bmc_ip());
    expect("status of a node that is off", &shell(lab, &by_hand)?, "Status: OFF\ncode 2")?;
    let off = by_hand.replace("status", "off");
    expect("off of a node that is off", &shell(lab, &off)?, "Success: Already OFF\ncode 0")?;
    fence(lab, "stonith_admin --unfence node1 --timeout 60")?;
    if !power::is_on(lab, VICTIM) {
        return Err("the node was unfenced, and is off".into());
    }
    up::wait_online(lab)
}

fn delayed(lab: &Lab) -> Result<()> {
    let seconds = DELAY.as_secs();
    pcs::run(lab, SEAT, &["stonith", "update", "fence-node1", &format!("pcmk_delay_base={seconds}s")])?;
    let first = fence(lab, "pcs stonith fence node1")?;
    pcs::run(lab, SEAT, &["stonith", "update", "fence-node1", "pcmk_delay_base=0s"])?;
    if first < DELAY {
        return Err(format!("the reset came after {:.1} s in spite of the delay", first.as_secs_f64()).into());
    }
    up::wait_online(lab)
}

/// Checks fencing by a BMC that refuses the password. It must fail soon, and the history and the log must have the
/// reason.
fn refused(lab: &Lab) -> Result<()> {
    bmc::set_mode(lab, VICTIM, "refuse")?;
    let began = state::since_epoch();
    let said = shell(lab, "stonith_admin --fence node1 --timeout 60");
    let took = state::since_epoch().saturating_sub(began);
    bmc::set_mode(lab, VICTIM, "ok")?;
    let said = said?;
    println!("   a BMC that refuses the password: {:.1} s: {}", took.as_secs_f64(), said.replace('\n', " "));
    if said.contains("code 0") || took > AT_ONCE || !power::is_on(lab, VICTIM) {
        return Err(format!("fencing without a password: {:.1} s, {said}", took.as_secs_f64()).into());
    }
    wait_for_words(lab, "the BMC does not accept this username and password")?;
    pcs::run(lab, SEAT, &["stonith", "history", "cleanup", "node1"])
}

fn wait_for_words(lab: &Lab, words: &str) -> Result<()> {
    let what = format!("'{words}' in the syslog of {SEAT} or {VICTIM}");
    sh::wait_for(&what, Duration::from_secs(60), Duration::from_millis(200), || {
        [SEAT, VICTIM].iter().any(|node| messages(lab, *node).contains(words)).then_some(())
    })
}

fn messages(lab: &Lab, node: Node) -> String {
    fs::read(lab.messages(node)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// Changes the BMC's password and updates only one of two fence devices. The device of the second level must still
/// fence.
fn second_level(lab: &Lab) -> Result<()> {
    let set_password = |password: &str| -> Result<()> {
        let command = format!("umask 077; echo '{password}' > {PASSWORD_FILE}");
        [SEAT, VICTIM].iter().try_for_each(|node| host::must(lab, *node, &["sh", "-c", &command]).map(drop))
    };
    set_password(BMC_PASSWORD)?;
    let file = format!("password_file={PASSWORD_FILE}");
    let ip = format!("ip={}", VICTIM.bmc_ip());
    let user = format!("username={BMC_USER}");
    let create = ["stonith", "create", "first-node1", "fence_redfish_rs", &ip, &user, &file, "pcmk_host_list=node1"];
    // The monitor's interval is long, so that fencing is the first to meet the wrong password.
    pcs::run_and_wait(lab, SEAT, &[&create[..], &["op", "monitor", "interval=10min"]].concat())?;
    let said = host::said(lab, SEAT, &["crm_resource", "--locate", "--resource", "first-node1"]);
    contains("create with a password file", &said, &["is running"])?;
    for level in [["1", "node1", "first-node1"], ["2", "node1", "fence-node1"]] {
        pcs::run(lab, SEAT, &[&["stonith", "level", "add"], &level[..]].concat())?;
    }
    pcs::run(lab, SEAT, &["stonith", "level", "verify"])?;
    set_password("an-older-one")?;
    let began = state::since_epoch();
    fence(lab, "pcs stonith fence node1")?;
    let refusals = refusals(lab, began);
    println!("   the first level was refused {refusals} times");
    if refusals == 0 {
        return Err("the first level was not tried".into());
    }
    up::wait_online(lab)?;
    pcs::run(lab, SEAT, &["stonith", "level", "clear"])?;
    pcs::run(lab, SEAT, &["stonith", "delete", "first-node1"])
}

fn refusals(lab: &Lab, since: Duration) -> usize {
    let log = fs::read_to_string(lab.bmc_log()).unwrap_or_default();
    let (after, source) = (state::stamp(since), format!(" bmc-{VICTIM}: "));
    let of_victim = log.lines().filter(|line| **line > *after && line.contains(&source));
    of_victim.filter(|line| line.ends_with("-> 401")).count()
}

fn nothing_is_told(lab: &Lab) -> Result<()> {
    for node in [SEAT, VICTIM] {
        let logs = "cat /var/log/messages /var/log/pacemaker/pacemaker.log /var/log/cluster/* 2>/dev/null";
        let said = host::output(lab, node, &["sh", "-c", logs])?.stdout;
        let told = said.lines().find(|line| line.contains("fence_redfish_rs") && line.contains(BMC_PASSWORD));
        if let Some(line) = told {
            return Err(format!("the password is in a log of {node}: {line}").into());
        }
    }
    Ok(())
}
