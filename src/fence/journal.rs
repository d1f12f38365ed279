//! The debug file: what was sent and answered, without secrets.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::{Arc, Mutex};

use crate::clock;
use crate::redfish::client::Trace;

/// Opens the debug file (if one is wanted) and gives the function that writes to it and to the debug log.
pub fn open(path: Option<&str>) -> Result<Trace, String> {
    let file: Option<File> = path
        .map(|path| {
            OpenOptions::new()
                .append(true)
                .create(true)
                .mode(0o600)
                .open(path)
                .map_err(|error| format!("Unable to create file {path}: {error}"))
        })
        .transpose()?;
    let file = Mutex::new(file);
    Ok(Arc::new(move |line: &str| {
        log::debug!("{line}");
        if let Ok(mut file) = file.lock()
            && let Some(file) = file.as_mut()
        {
            let _ = writeln!(file, "{} DEBUG: {line}", clock::utc(clock::wall_seconds()));
        }
    }))
}
