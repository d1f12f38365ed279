//! The debug file: what was sent and answered, without secrets.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::{Arc, Mutex};

use nix::fcntl::OFlag;

use crate::adapters::redfish::client::Trace;
use crate::base::utc;
use crate::os::clock;

/// Opens the debug file (if one is wanted) and gives the function that writes to it and to the debug log.
///
/// One that cannot be opened is done without: a node is fenced also where a disk is full, read-only or gone.
pub fn open(path: Option<&str>) -> Trace {
    let file = path.and_then(|path| {
        let opened = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            // A pipe that nobody reads must not keep us.
            .custom_flags(OFlag::O_NONBLOCK.bits())
            .open(path);
        opened.map_err(|error| log::warn!("debug_file {path} cannot be opened, so nothing is written: {error}")).ok()
    });
    let file = Mutex::new(file);
    Arc::new(move |line: &str| {
        log::debug!("{line}");
        if let Ok(mut file) = file.lock()
            && let Some(file) = file.as_mut()
        {
            let _ = writeln!(file, "{} DEBUG: {line}", utc(clock::wall_seconds()));
        }
    })
}
