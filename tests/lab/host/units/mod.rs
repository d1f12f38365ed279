//! A replacement of systemd on a host of namespaces. The manager reads systemd's own unit files, and really starts,
//! watches and stops the services. A `systemctl` queries it. It supports the subset of systemd that the units of a
//! cluster need.

mod client;
mod file;
mod manager;
mod service;
mod timer;

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;

use nix::sys::signal::SigSet;
use serde_json::{Value, json};

use crate::host::node::Node;
use crate::host::syslog;
use crate::sh::Result;
use manager::Manager;

/// The socket on a host at which the lab's service manager listens for `systemctl`.
const SOCKET: &str = "/run/lab-units";
/// The script that is `systemctl` on a host. It calls the lab's program through `/proc/1/exe`, because the host has
/// no other copy.
pub const SYSTEMCTL: &str = "#!/bin/sh\nexec /proc/1/exe host-systemctl \"$@\"\n";

/// The script that is `systemd-run` on a host. It runs the command after `--` in a session of its own, which outlives
/// the login.
pub const SYSTEMD_RUN: &str = "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nexec setsid --fork \"$@\" < /dev/null > /var/log/systemd-run.log 2>&1\n";

/// The output and exit code of a `systemctl` command.
#[derive(Debug, Default)]
pub struct Answer {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Answer {
    fn said(code: i32, out: impl Into<String>) -> Self {
        Self { code, out: out.into(), err: String::new() }
    }

    fn refused(code: i32, err: impl Into<String>) -> Self {
        Self { code, out: String::new(), err: err.into() }
    }
}

/// Runs a host's service manager: starts the enabled units, and executes the commands of `systemctl`. Does not return
/// while the host lives.
pub fn run(node: Node) -> Result<()> {
    // The lab's process blocks some signals. The services must not inherit that, so that SIGTERM ends them in good
    // order.
    SigSet::empty().thread_set_mask()?;
    let listener = UnixListener::bind(SOCKET).map_err(|error| format!("cannot listen on {SOCKET}: {error}"))?;
    syslog::say(node, "boot", "host is up, starting what is enabled");
    let manager = Arc::new(Manager::new(node));
    Manager::boot(&manager);
    for stream in listener.incoming().flatten() {
        let manager = Arc::clone(&manager);
        std::thread::spawn(move || {
            // A client that hangs up early needs no answer.
            let _ = serve(&manager, stream);
        });
    }
    Ok(())
}

fn serve(manager: &Arc<Manager>, mut stream: UnixStream) -> Result<()> {
    let mut asked = String::new();
    stream.read_to_string(&mut asked)?;
    let words: Vec<&str> = asked.split('\0').collect();
    let answer = client::answer(manager, &words);
    let text = json!({"code": answer.code, "out": answer.out, "err": answer.err}).to_string();
    Ok(stream.write_all(text.as_bytes())?)
}

/// Runs as a host's `systemctl`: sends the arguments to the service manager, and prints the answer.
pub fn systemctl(words: &[String]) -> Result<()> {
    let mut stream = UnixStream::connect(Path::new(SOCKET)).map_err(|error| format!("no service manager: {error}"))?;
    stream.write_all(words.join("\0").as_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let answer: Value = serde_json::from_str(&text)?;
    let part = |key: &str| answer.get(key).and_then(Value::as_str).unwrap_or_default();
    print!("{}", part("out"));
    eprint!("{}", part("err"));
    std::io::stdout().flush()?;
    let code = answer.get("code").and_then(Value::as_i64).unwrap_or(1);
    std::process::exit(i32::try_from(code)?)
}
