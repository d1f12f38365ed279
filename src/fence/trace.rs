//! The debug file: requests and answers, without secrets.

use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::adapters::redfish::client::Trace;
use crate::base::{printable, utc};
use crate::os::{appended, clock};

/// Opens the debug file if one is configured. Returns the function that writes to the debug file and to the debug log.
///
/// A file that cannot be opened is no error, because a node must be fenced even if a disk is full, read-only or missing.
pub fn open(path: Option<&str>) -> Trace {
    let file = path.and_then(|path| {
        let opened = appended::open(Path::new(path), 0o600).map(|opened| opened.file);
        opened.map_err(|error| log::warn!("debug_file {path} cannot be opened and is not written: {error}")).ok()
    });
    let file = Mutex::new(file);
    Arc::new(move |line: &str| {
        log::debug!("{line}");
        if let Ok(mut file) = file.lock()
            && let Some(file) = file.as_mut()
        {
            let line = format!("{} DEBUG: {}\n", utc(clock::wall_seconds()), printable::one_line(line));
            let _ = file.write_all(line.as_bytes());
        }
    })
}
