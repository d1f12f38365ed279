//! The services of a host, started in order and watched: Corosync, then Pacemaker. It runs inside the host.

use std::process::{Child, Command};
use std::time::Duration;

use nix::sys::signal::SigSet;

use crate::host::node::Node;
use crate::host::syslog;
use crate::sh::{self, Result};

/// Starts Corosync and Pacemaker on the host, and does not return while the host lives.
pub fn run(node: Node) -> Result<()> {
    // The lab's process blocks some signals. The services must not inherit that, so that SIGTERM ends them in good
    // order.
    SigSet::empty().thread_set_mask()?;
    syslog::say(node, "boot", "host is up, starting corosync");
    let corosync = Command::new("corosync").arg("-f").spawn()?;
    watch(node, "corosync", corosync);
    let joined = sh::wait_for_quietly(Duration::from_secs(60), Duration::from_millis(100), || {
        sh::output(Command::new("corosync-cfgtool").arg("-s")).is_ok_and(|done| done.ok)
    });
    if !joined {
        syslog::say(node, "boot", "corosync does not answer within 60 s, pacemaker is not started");
        return Err("corosync does not answer".into());
    }
    let pacemaker = Command::new("pacemakerd")
        .arg("-f")
        .env("PCMK_logfile", "/var/log/pacemaker/pacemaker.log")
        .env("PCMK_logfacility", "daemon")
        .env("PCMK_blackbox", "no")
        .spawn()?;
    syslog::say(node, "boot", "pacemaker is started");
    watch(node, "pacemakerd", pacemaker);
    if let Some(lone_boot) = crate::cluster::lone_boot::at_boot()? {
        watch(node, "tandem lone-boot", lone_boot);
    }
    crate::cluster::sidecar::run(node);
    loop {
        std::thread::park();
    }
}

/// Logs the end of a service in the host's syslog. The lab never restarts a service, because Pacemaker stays down
/// after a real fencing, too.
fn watch(node: Node, name: &'static str, mut child: Child) {
    std::thread::spawn(move || {
        let how = child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        syslog::say(node, "boot", &format!("{name} has ended: {how}"));
    });
}
