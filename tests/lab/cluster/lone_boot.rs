//! A boot without the peer: the resource's parameters that allow it, and `tandem-lone-boot.service`, which each boot starts.

use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use crate::cluster::{self, pcs};
use crate::host;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::judge::check;
use crate::sh::Result;

/// The value of `lone_boot_wait`, the shortest that the parameter allows.
pub const WAIT: Duration = Duration::from_secs(30);
/// The time that a lone boot takes in addition to [`WAIT`]: the boot itself, its steps and etcd's start.
pub const BESIDES: Duration = Duration::from_secs(30);
const UNIT: &str = "tandem-lone-boot";
/// The file that replaces the enabled unit on a host without systemd.
const ENABLED: &str = "/etc/lab-lone-boot";
/// The setting of a lab in which a lone boot is allowed.
const SETTING: &str = "lone-boot";

/// Sets the parameters that allow a lone boot, and has each later boot of a host start `tandem lone-boot`. Waits until both
/// agents have published the UUIDs of their machines.
pub fn allow(lab: &Lab) -> Result<()> {
    let wait = format!("lone_boot_wait={}", WAIT.as_secs());
    pcs::run_and_wait(lab, NODES[0], &["resource", "update", cluster::ETCD, "lone_boot=sole_voter", &wait])?;
    enable(lab, true)?;
    lab.set(SETTING, "yes")?;
    let published = || NODES.map(|node| cluster::attribute(lab, node, "forever", "etcd_system_uuid"));
    let wanted = NODES.map(|node| Some(node.uuid()));
    check::eventually("both agents have published their machines' UUIDs", published, |seen| *seen == wanted).map(drop)
}

/// Takes back what [`allow`] has set.
pub fn forbid(lab: &Lab) -> Result<()> {
    lab.set(SETTING, "no")?;
    enable(lab, false)?;
    pcs::run_and_wait(lab, NODES[0], &["resource", "update", cluster::ETCD, "lone_boot=", "lone_boot_wait="])
}

/// Returns whether the lab's hosts may boot alone.
pub fn is_allowed(lab: &Lab) -> bool {
    lab.setting(SETTING).as_deref() == Some("yes")
}

/// Enables or disables the unit on both hosts. On virtual machines the change is synced, because a power cut would lose it.
fn enable(lab: &Lab, on: bool) -> Result<()> {
    let line = match (host::Kind::of(lab), on) {
        (host::Kind::Vm, true) => format!("systemctl enable {UNIT} && sync"),
        (host::Kind::Vm, false) => format!("systemctl disable {UNIT} && sync"),
        (host::Kind::Namespaces, true) => format!("touch {ENABLED}"),
        (host::Kind::Namespaces, false) => format!("rm -f {ENABLED}"),
    };
    NODES.into_iter().try_for_each(|node| host::must(lab, node, &["sh", "-c", &line]).map(drop))
}

/// Starts `tandem lone-boot` as systemd would, if the unit is enabled. It runs inside a host without systemd.
pub fn at_boot() -> Result<Option<Child>> {
    if !Path::new(ENABLED).exists() {
        return Ok(None);
    }
    let line = format!("tandem lone-boot 2>&1 | logger --tag {UNIT}");
    Ok(Some(Command::new("sh").args(["-c", &line]).spawn()?))
}

/// Checks that `tandem lone-boot` ends on both nodes once there is quorum.
pub fn ends(lab: &Lab) -> Result<()> {
    // The brackets keep the pattern from finding a shell that has it in its command line.
    let search = |node: Node| host::output(lab, node, &["pgrep", "-f", "[t]andem lone-boot"]).map(|done| done.ok);
    let running = || NODES.map(search);
    check::eventually("no lone boot runs where there is quorum", running, |seen| {
        seen.iter().all(|seen| matches!(seen, Ok(false)))
    })
    .map(drop)
}
