//! The collector under the restrictions of its unit, as far as possible without systemd. It is root with the few
//! capabilities of `tandem-collect.service`, cannot gain privileges, and has a read-only system without `/root`. It
//! still publishes, writes its files, and delivers events.

use std::time::Duration;

use serde_json::Value;

use crate::cluster::asked;
use crate::cluster::collector;
use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::cluster::redundant;
use crate::cluster::up::Wish;
use crate::host;
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::judge::check::must;
use crate::sh::Result;

const UNIT: &str = include_str!("../../../../systemd/tandem-collect.service");
const NODE: Node = Node::One;
const ALERT: &str = "tandem";
/// The file to which an event recipient writes.
const EVENTS: &str = "/var/log/tandem-events";
/// The directory of node_exporter's files, which the collector writes.
const TEXTFILES: &str = "/var/lib/prometheus/node-exporter";
/// The commands for the mounts that `ProtectSystem`, `ProtectControlGroups`, `ProtectKernelTunables` and
/// `ProtectHome` make in a unit.
const MOUNTS: &str = "mount --bind /proc/sys /proc/sys; \
                      for place in /usr /sys/fs/cgroup /sys /proc/sys; do mount -o remount,bind,ro $place; done; \
                      mount -t tmpfs -o ro,mode=000 tmpfs /root";

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    etcd::wait_two_voters(lab, Duration::from_secs(60))?;
    redundant::wait(lab)?;
    pcs::run(lab, NODE, &["alert", "create", &format!("id={ALERT}"), "path=/usr/libexec/tandem/alert"])?;
    for recipient in ["journal", &format!("file:{EVENTS}")] {
        pcs::run(lab, NODE, &["alert", "recipient", "add", ALERT, &format!("value={recipient}")])?;
    }
    host::must(lab, NODE, &["mkdir", "-p", TEXTFILES])?;
    let capabilities = capabilities()?;
    for (more, may) in [("", true), (",-dac_override", false)] {
        host::must(lab, NODE, &["rm", "-f", EVENTS])?;
        // The event is for the next collection to deliver.
        happens(lab)?;
        let call = format!(
            "set -e; {MOUNTS}; exec setpriv --no-new-privs --bounding-set=-all{capabilities}{more} \
             --inh-caps=-all tandem collect --json"
        );
        let done = host::output(lab, NODE, &["unshare", "--mount", "sh", "-c", &call])?;
        println!("   with{capabilities}{more}: {}", done.text().replace('\n', " "));
        must("it does all of its work, or else is denied some of it", works(&done.stdout), |works| *works == may)?;
    }
    let answer = asked::ask(lab, NODE.other())?;
    must("the other node sees what it published", answer, |answer| answer.problems.len() == 1)?;
    pcs::run(lab, NODE, &["alert", "delete", ALERT])?;
    host::must(lab, NODE, &["rm", "-rf", TEXTFILES])?;
    collector::forget(lab)
}

/// Returns the capabilities of the collector's unit in the form of `setpriv`: `,+chown,+dac_override`.
fn capabilities() -> Result<String> {
    let line = UNIT.lines().find_map(|line| line.strip_prefix("CapabilityBoundingSet=")).ok_or("it names none")?;
    let names = line.split_whitespace().map(|name| name.trim_start_matches("CAP_").to_lowercase());
    Ok(names.fold(String::new(), |all, name| all + ",+" + &name))
}

/// Runs Tandem's alert agent as Pacemaker's user, so that there is a new event to deliver.
fn happens(lab: &Lab) -> Result<()> {
    const TELL: &str = "CRM_alert_kind=node CRM_alert_node=$1 CRM_alert_desc=member CRM_alert_timestamp_epoch=$(date +%s) \
                        CRM_alert_timestamp_usec=$(date +%6N) runuser -u hacluster /usr/libexec/tandem/alert";
    host::must(lab, NODE, &["sh", "-c", TELL, "sh", NODE.other().name()]).map(drop)
}

fn works(said: &str) -> bool {
    let Ok(done) = serde_json::from_str::<Value>(said) else { return false };
    let is_brought = |outcome: &Value| outcome["delivered"].as_u64() > Some(0) && outcome["failure"].is_null();
    let recipients = done["recipients"].as_array();
    done["status"].is_string()
        && done["metrics"].as_str().is_some_and(|path| path.starts_with(TEXTFILES))
        && done["problems"].as_array().is_some_and(Vec::is_empty)
        && recipients.is_some_and(|all| all.len() == 2 && all.iter().all(is_brought))
}
