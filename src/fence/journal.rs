//! The debug file: what was sent and answered, without secrets.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::{Arc, Mutex};

use time::OffsetDateTime;

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
            let _ = writeln!(file, "{} DEBUG: {line}", stamp(clock::wall_seconds()));
        }
    }))
}

/// `2026-11-21 07:00:00Z`.
fn stamp(seconds: u64) -> String {
    let known = i64::try_from(seconds).ok().and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
    known.map_or_else(
        || seconds.to_string(),
        |at| {
            let (date, (hour, minute, second)) = (at.date(), at.to_hms());
            format!("{date} {hour:02}:{minute:02}:{second:02}Z")
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right() {
        assert_eq!(stamp(0), "1970-01-01 00:00:00Z");
        assert_eq!(stamp(951_782_399), "2000-02-28 23:59:59Z");
        assert_eq!(stamp(951_782_400), "2000-02-29 00:00:00Z");
        assert_eq!(stamp(1_798_761_599), "2026-12-31 23:59:59Z");
        assert_eq!(stamp(1_709_164_800), "2024-02-29 00:00:00Z");
    }
}
