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
            let _ = writeln!(file, "{} DEBUG: {line}", stamp(clock::wall_seconds()));
        }
    }))
}

/// `2026-11-21 07:00:00` in UTC.
fn stamp(seconds: u64) -> String {
    let (days, second) = (seconds / 86400, seconds % 86400);
    // Days since 0000-03-01, so that the leap day is the last of its year; years come in groups of 400.
    let shifted = days + 719_468;
    let era_day = shifted % 146_097;
    let era_year = (era_day - era_day / 1460 + era_day / 36_524 - era_day / 146_096) / 365;
    let year_day = era_day - (365 * era_year + era_year / 4 - era_year / 100);
    let month_index = (5 * year_day + 2) / 153;
    let day = year_day - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    let year = shifted / 146_097 * 400 + era_year + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
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
