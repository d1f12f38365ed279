//! `tandem-alert`: Pacemaker's alert agent that writes down what happened. Nobody sees what it prints, so it says in the journal
//! why nothing could be written.

use std::ffi::OsString;
use std::path::Path;

use log::{LevelFilter, error};

use crate::adapters::ocf::alert as told;
use crate::adapters::ocf::env::Env;
use crate::operate::events::alert;
use crate::os::logging;
use crate::os::output::complain;
use crate::records::events;

/// As Pacemaker calls it: everything is in the environment.
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
            // Only now: most calls have nothing to say there.
            logging::init(logging::Settings { tag, stderr: LevelFilter::Off, syslog: LevelFilter::Info, file: None });
            error!("{why}");
            1
        }
    }
}

/// Where events are; an option of the alert names another place.
fn directory(env: &Env) -> std::path::PathBuf {
    Path::new(env.get("events_directory").unwrap_or(events::DIRECTORY)).to_owned()
}
