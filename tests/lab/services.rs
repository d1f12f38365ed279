//! The services of a host, started in order and watched: Corosync, then Pacemaker. Runs inside the host.

use std::process::{Child, Command};
use std::time::Duration;

use nix::sys::signal::SigSet;

use crate::node::Node;
use crate::sh::{self, Result};
use crate::syslog;

/// Does not come back while the host lives.
pub fn run(node: Node) -> Result<()> {
    // Who brought the lab up holds some signals back; the services take them, and end in good order when they are told.
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
    crate::sidecar::run(node);
    loop {
        std::thread::park();
    }
}

/// Says in the host's log when a service ends: nothing restarts it, as after a real fencing.
fn watch(node: Node, name: &'static str, mut child: Child) {
    std::thread::spawn(move || {
        let how = child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        syslog::say(node, "boot", &format!("{name} has ended: {how}"));
    });
}
