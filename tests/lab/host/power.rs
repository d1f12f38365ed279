//! The hosts' power: a cut that no process can notice or react to, and a boot from the same disks.

use std::time::Duration;

use crate::host;
use crate::host::node::Node;
use crate::host::state::{self, Lab};
use crate::sh::Result;

/// Returns whether the host's power is on, which is what its BMC reports. Such a host may not have booted yet.
pub fn is_on(lab: &Lab, node: Node) -> bool {
    // A guest can power its machine off by itself.
    let by_itself = host::Kind::of(lab) == host::Kind::Vm
        && host::running(lab, node).is_none()
        && lab.setting(&boots(node)).as_deref() != Some("soon");
    lab.setting(&key(node)).as_deref() == Some("on") && !by_itself
}

fn key(node: Node) -> String {
    format!("power-{node}")
}

/// Returns the name of a setting of the lab. Its value is `soon` while a host that was switched on waits for the end of
/// its boot delay, and `now` afterwards.
fn boots(node: Node) -> String {
    format!("boots-{node}")
}

/// Cuts the host's power. Its disks stay.
pub fn cut(lab: &Lab, node: Node) -> Result<()> {
    let _lock = lab.lock(node)?;
    cut_locked(lab, node)
}

fn cut_locked(lab: &Lab, node: Node) -> Result<()> {
    if host::cut(lab, node)? {
        lab.event(&format!("power of {node} is cut"));
    }
    lab.set(&key(node), "off")
}

/// Presses the host's power button. The host boots after the lab's boot delay, unless it runs already.
pub fn on(lab: &Lab, node: Node) -> Result<()> {
    let lock = lab.lock(node)?;
    if host::running(lab, node).is_some() {
        return Ok(());
    }
    lab.set(&key(node), "on")?;
    let delay = lab.setting("boot-delay").and_then(|text| text.parse().ok()).unwrap_or(0);
    if delay > 0 {
        lab.event(&format!("{node} is switched on and boots in {delay} s"));
        // Only the last press counts, because a machine that is switched off and on again meanwhile starts from the
        // beginning.
        let press = format!("{:?}", state::since_epoch());
        lab.set(&format!("press-{node}"), &press)?;
        lab.set(&boots(node), "soon")?;
        // The lock is released first, because a machine can be switched off while it boots.
        drop(lock);
        std::thread::sleep(Duration::from_secs(delay));
        let _lock = lab.lock(node)?;
        let is_last = lab.setting(&format!("press-{node}")) == Some(press);
        return if is_last && is_on(lab, node) { boot(lab, node) } else { Ok(()) };
    }
    boot(lab, node)
}

fn boot(lab: &Lab, node: Node) -> Result<()> {
    if host::running(lab, node).is_some() {
        return Ok(());
    }
    host::boot(lab, node)?;
    lab.set(&boots(node), "now")?;
    lab.event(&format!("{node} is switched on"));
    Ok(())
}
