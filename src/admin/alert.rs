//! `tandem-alert`: Pacemaker's alert agent that records events. Its output is not shown, so it logs to the journal why
//! an event could not be written.

use std::ffi::OsString;
use std::path::Path;

use log::{LevelFilter, error};

use crate::adapters::ocf::alert as told;
use crate::adapters::ocf::env::Env;
use crate::operate::events::alert;
use crate::os::logging;
use crate::os::output::complain;
use crate::records::events;

/// Runs the alert agent that records events, and returns its exit code. Pacemaker passes the alert in environment variables.
pub(super) fn run(_: &[OsString]) -> u8 {
    let tag = "tandem-alert".to_owned();
    let env = Env::from_process();
    if env.get("CRM_alert_kind").is_none() {
        complain("tandem-alert: Pacemaker calls this: 'pcs alert create id=tandem path=/usr/libexec/tandem/alert'");
        return 1;
    }
    match alert::tell(&directory(&env), &told::read(&env)) {
        Ok(()) => 0,
        Err(why) => {
            // Logging begins only here, because most calls have nothing to log.
            logging::init(logging::Settings { tag, stderr: LevelFilter::Off, syslog: LevelFilter::Info, file: None });
            error!("{why}");
            1
        }
    }
}

/// Returns the directory to which the agent writes events. The alert's option `events_directory` may replace the default.
fn directory(env: &Env) -> std::path::PathBuf {
    Path::new(env.get("events_directory").unwrap_or(events::DIRECTORY)).to_owned()
}
