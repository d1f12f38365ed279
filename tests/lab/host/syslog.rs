//! A minimal syslog: it reads `/dev/log`, and writes `/var/log/messages` with milliseconds.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use crate::host::node::Node;
use crate::host::state::append_stamped;
use crate::sh::Result;

const MESSAGES: &str = "/var/log/messages";

/// Starts a thread that receives messages at the host's `/dev/log` and appends them to its syslog.
pub fn start(node: Node) -> Result<()> {
    let socket = UnixDatagram::bind("/dev/log").map_err(|error| format!("cannot listen on /dev/log: {error}"))?;
    fs::set_permissions("/dev/log", fs::Permissions::from_mode(0o666))?;
    // Some programs use this path instead.
    symlink("/dev/log", "/run/syslog")?;
    std::thread::spawn(move || {
        let mut buffer = vec![0_u8; 64 * 1024];
        while let Ok(length) = socket.recv(&mut buffer) {
            let text = String::from_utf8_lossy(&buffer[..length]);
            append_stamped(Path::new(MESSAGES), node.name(), &strip(&text));
        }
    });
    Ok(())
}

/// Writes a line of the lab's own to the host's syslog.
pub fn say(node: Node, tag: &str, text: &str) {
    append_stamped(Path::new(MESSAGES), node.name(), &format!("{tag}: {text}"));
}

/// Removes the priority, the time and the host name from a message such as `<30>Nov 21 07:03:11 host tag[1]: text`.
/// The lab adds a time that is exact to the millisecond.
fn strip(text: &str) -> String {
    let text = text.trim_end_matches(['\n', '\0']);
    let rest = match text.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        Some((_, rest)) => rest,
        None => text,
    };
    let looks_dated = rest.as_bytes().get(15) == Some(&b' ') && rest.as_bytes().get(9) == Some(&b':');
    let rest = if looks_dated { rest.get(16..).unwrap_or(rest) } else { rest };
    let rest = ["node1 ", "node2 "].iter().find_map(|host| rest.strip_prefix(host)).unwrap_or(rest);
    rest.replace('\n', " | ")
}
