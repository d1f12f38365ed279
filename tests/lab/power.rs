//! Power: a cut that no process can notice or answer, and a boot from the same disks.

use std::time::Duration;

use crate::host;
use crate::net;
use crate::node::Node;
use crate::sh::Result;
use crate::state::{self, Lab};

/// Whether the BMC would say that this host is switched on: the button's state, not how far it has booted.
pub fn is_on(lab: &Lab, node: Node) -> bool {
    lab.setting(&key(node)).as_deref() == Some("on")
}

fn key(node: Node) -> String {
    format!("power-{node}")
}

/// Cuts the power. The cables go dead first: otherwise the dying kernel would send FINs, and peers would learn at
/// once what a real power cut never tells them. The disks stay.
pub fn cut(lab: &Lab, node: Node) -> Result<()> {
    let _lock = lab.lock(node)?;
    cut_locked(lab, node)
}

fn cut_locked(lab: &Lab, node: Node) -> Result<()> {
    if net::host_handle(lab, node).exists() {
        net::deaden(lab, node)?;
    }
    if let Some(init) = host::running(lab, node) {
        init.kill()?;
        lab.event(&format!("power of {node} is cut"));
    }
    // Off means that nothing runs any more: that is what fencing relies on.
    host::empty(lab, node)?;
    lab.set(&key(node), "off")
}

/// Presses the button. The host boots after the lab's boot delay; nothing happens if it runs already.
pub fn on(lab: &Lab, node: Node) -> Result<()> {
    let lock = lab.lock(node)?;
    if host::running(lab, node).is_some() {
        return Ok(());
    }
    lab.set(&key(node), "on")?;
    let delay = lab.setting("boot-delay").and_then(|text| text.parse().ok()).unwrap_or(0);
    if delay > 0 {
        lab.event(&format!("{node} is switched on and boots in {delay} s"));
        // A machine that is switched off and on again meanwhile begins anew: only the last press of the button counts.
        let press = format!("{:?}", state::since_epoch());
        lab.set(&format!("press-{node}"), &press)?;
        // Not under the lock: a machine can be switched off while it boots.
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
    // What the last power cut left of network and cgroup goes now: at that time nothing may keep the cut waiting.
    net::unplug(lab, node);
    host::remove_cgroup(lab, node);
    net::plug_in(lab, node)?;
    host::start(lab, node)?;
    lab.event(&format!("{node} is switched on"));
    Ok(())
}
