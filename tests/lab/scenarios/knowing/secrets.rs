//! Secrets in all of the cluster's places for them: a device's password in the CIB and in a file, a key, the path of a
//! hook, and BMCs that send back the request. No output, file or published value of any command contains one of them.

use std::time::Duration;

use crate::cluster;
use crate::cluster::collector;
use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::bmc;
use crate::host::node::{BMC_PASSWORD, BMC_USER, NODES, Node};
use crate::host::state::Lab;
use crate::judge::check::must;
use crate::scenarios::steps;
use crate::sh::Result;

/// The second line of a BMC's password file: a new password that is not set at the BMC yet.
const STAGED: &str = "st4ged-secret";
/// The part of a webhook's URL that permits to write there.
const HOOK: &str = "h00k-secret";
const PASSWORD_FILE: &str = "/etc/tandem/bmc-password";
const ALERT: &str = "tandem";
const REPORT: &str = "/var/tmp/report.tar.gz";
/// The commands that must print no secret.
const COMMANDS: &[&str] = &[
    "tandem status",
    "tandem status --json",
    "tandem status --check",
    "tandem status --output pacemakercluster",
    "tandem fencing check",
    "tandem fencing check --json",
    "tandem fencing test node9 --confirm node9",
    "tandem collect --json",
    "tandem metrics",
    "tandem events test",
    "tandem events",
    "tandem events --json --since 2h",
    "tandem explain",
    "tandem explain --json",
    "tandem member list --json",
];
/// The commands that print files, published values and the syslog, none of which may contain a secret.
const FILES: &[&str] = &[
    "cat /var/lib/tandem/*.json* /var/lib/tandem/bmc/*",
    "cat /var/lib/pacemaker/tandem/*",
    "attrd_updater --query --all --name tandem-collected",
    "crm_mon --one-shot --show-node-attributes --failcounts --inactive",
    "cat /var/log/messages",
];

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    etcd::wait_two_voters(lab, Duration::from_secs(60))?;
    crate::cluster::redundant::wait(lab)?;
    let mut writers = crate::scenarios::writing(lab)?;
    plant(lab)?;
    for mode in ["ok", "echo", "echo-refusing"] {
        for node in NODES {
            bmc::set_mode(lab, node, mode)?;
            let device = cluster::fence_device(node);
            host::must(lab, node, &["crm_resource", "--refresh", "--resource", &device])?;
        }
        // The pause lets the next monitors run, which fail in the last mode.
        std::thread::sleep(Duration::from_secs(10));
        collector::collect(lab).or_else(|error| if mode == "ok" { Err(error) } else { Ok(()) })?;
        NODES.into_iter().try_for_each(|node| nothing_is_told(lab, node))?;
        println!("   nothing is told while the BMCs do '{mode}'");
    }
    for node in NODES {
        bmc::set_mode(lab, node, "ok")?;
        host::must(lab, node, &["crm_resource", "--refresh", "--resource", &cluster::fence_device(node)])?;
    }
    pcs::run(lab, Node::One, &["alert", "delete", ALERT])?;
    collector::forget(lab)?;
    steps::nobody_is_wanted_dead(lab)?;
    crate::scenarios::ends_well(lab, &mut writers)
}

fn plant(lab: &Lab) -> Result<()> {
    for node in NODES {
        host::put(lab, node, PASSWORD_FILE, &format!("{BMC_PASSWORD}\n{STAGED}\n"))?;
        host::must(lab, node, &["chmod", "600", PASSWORD_FILE])?;
    }
    let file = format!("password_file={PASSWORD_FILE}");
    pcs::run(lab, Node::One, &["stonith", "update", &cluster::fence_device(Node::Two), "password=", &file])?;
    pcs::run(lab, Node::One, &["alert", "create", &format!("id={ALERT}"), "path=/usr/libexec/tandem/alert"])?;
    let recipient = format!("value=https://127.0.0.1:9/{HOOK}");
    pcs::run(lab, Node::One, &["alert", "recipient", "add", ALERT, &recipient])
}

/// Returns the secrets that the scenario has put on a node, and the lines of the node's private key.
fn secrets(lab: &Lab, node: Node) -> Result<Vec<String>> {
    let key = host::must(lab, node, &["cat", "/etc/tandem/etcd.key"])?;
    let lines: Vec<String> = key.lines().filter(|line| !line.starts_with("-----")).map(str::to_owned).collect();
    must("the key has lines", lines.len(), |count| *count > 1)?;
    let login = bmc::login(BMC_USER, BMC_PASSWORD);
    let planted = [BMC_PASSWORD, STAGED, HOOK].map(str::to_owned);
    Ok(planted.into_iter().chain([login]).chain(lines).collect())
}

fn nothing_is_told(lab: &Lab, node: Node) -> Result<()> {
    let secrets = secrets(lab, node)?;
    let has_none = |what: &str, said: &str| -> Result<()> {
        match secrets.iter().find(|secret| said.contains(secret.as_str())) {
            None => Ok(()),
            Some(secret) => {
                let line = said.lines().find(|line| line.contains(secret.as_str())).unwrap_or_default();
                Err(format!("'{what}' on {node} shows a secret: {line}").into())
            }
        }
    };
    let raw = host::must(lab, node, &["cibadmin", "--query"])?;
    must("what Pacemaker itself shows has one", has_none("cibadmin", &raw).is_err(), |has| *has)?;
    for command in COMMANDS.iter().chain(FILES) {
        let (_, said) = host::typed(lab, node, command)?;
        must(&format!("'{command}' on {node} says something"), said.as_str(), |said| !said.is_empty())?;
        has_none(command, &said)?;
    }
    host::must(lab, node, &["rm", "-f", REPORT])?;
    let (code, said) = host::typed(lab, node, &format!("tandem gather --output {REPORT}"))?;
    must("a report is gathered", (code, said.as_str()), |(code, _)| *code == 0)?;
    has_none("tandem gather", &said)?;
    let parts = host::must(lab, node, &["tar", "--extract", "--gzip", "--to-stdout", "--file", REPORT])?;
    // The report must contain the very places in which the secrets were planted.
    let names = [PASSWORD_FILE, "fence-node1", "127.0.0.1:9"];
    must("the report has the devices and the alert", names.map(|name| parts.contains(name)), |all| *all == [true; 3])?;
    has_none(REPORT, &parts)?;
    host::must(lab, node, &["rm", "-f", REPORT]).map(drop)
}
