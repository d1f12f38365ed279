//! A CIB, and answers of Pacemaker's tools, with hostile values in all places that Tandem reads. No subcommand panics,
//! hangs, or prints a terminal's control characters. Needs root.

#![allow(clippy::unwrap_used, reason = "what fails here ends the test")]

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::killed_agent::{STAGE, script, set_the_stage};
use crate::namespaces::{self, program};

const CIB: &str = include_str!("../data/fixtures/cib/two-voters.xml");
const CRM_MON: &str = include_str!("../data/fixtures/crm_mon/fenced.xml");

/// A value with characters that XML may contain: line ends, C1 controls, changes of the text's direction, and entities.
const HOSTILE: &str =
    "x&#10;forged: line&#13;&#9;\u{9b}31m\u{85}\u{202e}evil\u{2066}\u{2028}&lt;a b=&quot;&amp;amp;&#x202e;'";
/// A JSON value with escapes of controls and with the largest numbers, for an attribute that contains JSON.
const HOSTILE_JSON: &str = "{&quot;boot_id&quot;:&quot;\\u001b[2J\\u001b]0;owned\\u0007\\r\\n&quot;,&quot;disk&quot;:&quot;Blank&quot;,\
    &quot;lineage&quot;:{&quot;forks&quot;:18446744073709551615,&quot;by&quot;:&quot;\\u202e\\u001b[31mn&quot;},\
    &quot;claims&quot;:true,&quot;nonce&quot;:18446744073709551615}";
/// A value with characters that XML must not contain, so that a reader must refuse the document.
const NO_XML: &str = "&#27;[2J\u{1b}]0;owned\u{7}&undefined;";

/// The attributes of nodes and of the cluster that other programs can write.
const WRITTEN: [&str; 19] = [
    "etcd_record",
    "etcd_lineage",
    "standalone_node",
    "learner_node",
    "etcd_primary",
    "etcd_redundancy",
    "etcd_reached",
    "etcd_guest",
    "etcd_member_change",
    "etcd_fencing_updated",
    "etcd_alarm",
    "cluster_id",
    "member_id",
    "node_ip",
    "revision",
    "member_removal_lock",
    "etcd_fencing_tested",
    "force_new_cluster",
    "restart_no_leave",
];
/// The names of values in the fixture's configuration.
const CONFIGURED: [&str; 15] = [
    "node_ip_map",
    "image",
    "cert_file",
    "trusted_ca_file",
    "oom",
    "ip",
    "password",
    "username",
    "systems_uri",
    "pcmk_host_list",
    "pcmk_delay_base",
    "migration-threshold",
    "cluster-name",
    "dc-version",
    "stonith-enabled",
];

const COMMANDS: &[&[&str]] = &[
    &["status"],
    &["status", "--json"],
    &["status", "--check"],
    &["status", "--may-stop", "node2"],
    &["explain"],
    &["explain", "--json"],
    &["confirm-recovery", "--yes", "--confirm", "node2"],
    &["fencing", "check"],
    &["certs", "show"],
    &["member", "list"],
    &["member", "plan", "stop", "node2"],
    &["collect"],
    &["metrics"],
];

/// The time within which a subcommand must end.
const LONGEST: Duration = Duration::from_secs(20);
/// The largest allowed size of a subcommand's output, in bytes.
const LONGEST_OUTPUT: usize = 256 * 1024;

fn stage_tools() {
    for (name, text) in [
        ("cibadmin", "cat /run/stage/cib.xml"),
        ("crm_mon", "cat /run/stage/crm_mon.xml"),
        ("attrd_updater", "case \"$*\" in *--query*) cat /run/stage/attributes.xml;; esac"),
        ("crm_node", "case $1 in -n) echo node1;; *) printf '1 node1 member\\n2 node2 member\\n';; esac"),
        ("crm_attribute", "exit 6"),
        ("corosync-quorumtool", "exit 1"),
        ("corosync-cmapctl", "exit 1"),
        ("stonith_admin", "exit 1"),
        ("crm_resource", "exit 1"),
        ("journalctl", "exit 1"),
        ("pcs", "exit 1"),
        ("podman", "echo 'Error: no such container etcd' >&2; exit 125"),
    ] {
        script(name, text);
    }
    put("crm_mon.xml", CRM_MON);
    put("attributes.xml", "<pacemaker-result/>");
    put("cib.xml", CIB);
}

fn put(name: &str, text: &str) {
    fs::write(format!("{STAGE}/{name}"), text).unwrap();
}

/// Returns the fixture's CIB with `value` as the value of each of `names`. A name that the fixture lacks is added to both
/// nodes and to the cluster.
fn cib_with(names: &[&str], value: &str) -> String {
    names.iter().fold(CIB.to_owned(), |cib, name| with(&cib, name, value))
}

fn with(cib: &str, name: &str, value: &str) -> String {
    let (start, mut rest, mut text) = (format!("name=\"{name}\" value=\""), cib, String::new());
    while let Some(at) = rest.find(&start) {
        let (before, after) = rest.split_at(at + start.len());
        text.push_str(before);
        text.push_str(value);
        rest = &after[after.find('"').unwrap()..];
    }
    text.push_str(rest);
    if !cib.contains(&start) {
        for set in ["cib-bootstrap-options", "nodes-1", "nodes-2", "status-1", "status-2"] {
            let opening = format!("id=\"{set}\">");
            assert!(text.contains(&opening), "{set}");
            let pair = format!("{opening}<nvpair id=\"{set}-{name}\" name=\"{name}\" value=\"{value}\"/>");
            text = text.replace(&opening, &pair);
        }
    }
    text
}

/// Runs one subcommand of `tandem`. Returns what is wrong with its answer, or `None` if nothing is.
fn fault(arguments: &[&str]) -> Option<String> {
    let began = Instant::now();
    let mut command = program("/usr/bin/timeout");
    command.args(["-s", "KILL", &LONGEST.as_secs().to_string(), &format!("{STAGE}/tandem")]).args(arguments);
    let output = command.env_clear().env("HOME", "/").stdin(Stdio::null()).output().unwrap();
    if began.elapsed() >= LONGEST || output.status.code().is_none_or(|code| code >= 5) {
        return Some(format!("{:?} after {:?}: {output:?}", output.status, began.elapsed()));
    }
    let unfit = |letter: char| letter.is_control() && letter != '\n' || "\u{202e}\u{2066}\u{2028}".contains(letter);
    for bytes in [&output.stdout, &output.stderr] {
        let text = String::from_utf8_lossy(bytes);
        let is_wrong = text.chars().any(unfit)
            || text.contains("panicked")
            || text.lines().any(|line| line.starts_with("forged"))
            || text.len() >= LONGEST_OUTPUT;
        if is_wrong {
            let around = text.find("forged").map_or(0, |at| at.saturating_sub(200));
            return Some(format!(
                "{} bytes: {:?}",
                text.len(),
                text.chars().skip(around).take(600).collect::<String>()
            ));
        }
    }
    None
}

/// Runs every subcommand of [`COMMANDS`]. Returns what is wrong with their answers.
fn faults(what: &str) -> Vec<String> {
    std::thread::scope(|scope| {
        let start = |arguments: &'static &[&str]| (arguments, scope.spawn(|| fault(arguments)));
        let started: Vec<_> = COMMANDS.iter().map(start).collect();
        let ended = started.into_iter().map(|(arguments, thread)| (arguments, thread.join().unwrap()));
        ended.filter_map(|(arguments, why)| Some(format!("{arguments:?}, {what}: {}", why?))).collect()
    })
}

#[test]
fn no_subcommand_passes_on_what_a_writer_of_the_cib_wrote() {
    namespaces::run(module_path!(), "no_subcommand_passes_on_what_a_writer_of_the_cib_wrote", 300, || {
        set_the_stage();
        fs::copy(env!("CARGO_BIN_EXE_tandem"), format!("{STAGE}/tandem")).unwrap();
        stage_tools();
        let mut wrong = Vec::new();
        let mut check_all = |what: &str| wrong.extend(faults(what));
        check_all("nothing hostile");
        // A wrong map hides other faults of the configuration.
        let (map, others) = CONFIGURED.split_at(1);
        for (what, names) in [("what is written", &WRITTEN[..]), ("what is configured", others), ("the map", map)] {
            for (kind, value) in [("hostile", HOSTILE), ("hostile JSON", HOSTILE_JSON)] {
                put("cib.xml", &cib_with(names, value));
                check_all(&format!("{what}, {kind}"));
            }
        }
        let letters = "A".repeat(1_000_000);
        put("cib.xml", &cib_with(&["etcd_record", "etcd_alarm", "standalone_node", "image"], &letters));
        check_all("a million letters");
        put("cib.xml", &cib_with(&["etcd_alarm"], NO_XML));
        check_all("no XML");
        put("cib.xml", &CIB.replace("uname=\"node2\"", &format!("uname=\"{HOSTILE}\"")));
        check_all("a node's name");
        put("cib.xml", CIB);
        // These cases replace each text of crm_mon, and of a collector.
        put("crm_mon.xml", &CRM_MON.replace("node2", HOSTILE).replace("=\"ok\"", &format!("=\"{HOSTILE}\"")));
        check_all("crm_mon");
        put("crm_mon.xml", CRM_MON);
        let value = HOSTILE_JSON.replace("boot_id", "tandem").replace("\"Blank\"", "1");
        put(
            "attributes.xml",
            &format!(
                "<pacemaker-result><attribute name=\"tandem-collected\" host=\"node2\" value=\"{value}\"/>\
             <attribute name=\"tandem-collected\" host=\"{HOSTILE}\" value=\"{value}\"/></pacemaker-result>"
            ),
        );
        check_all("a collector's attribute");
        assert!(wrong.is_empty(), "{} faults: {}", wrong.len(), wrong.join("\n"));
    });
}
