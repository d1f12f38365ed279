//! A monitor that closely follows one that found etcd healthy: it returns the same answer while etcd's process lives.
//!
//! Pacemaker runs a monitor every second, because monitors detect the death of etcd. A full monitor queries etcd, its
//! peer and the CIB, and costs ten times as much. For what it detects, every four seconds is enough. Every other action
//! makes the next monitor a full one.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::adapters::ocf::env::Env;
use crate::adapters::ocf::exit::{Answered, Code};
use crate::adapters::podman::process::{self, Process};
use crate::base::Fact;
use crate::decide::Request;
use crate::os::clock;
use crate::records::state_file;

/// Time for which a full monitor's result is valid. Monitors in that time return the result without an observation. With a monitor every
/// second, every fourth one is full; with one every 5 s, each is.
const ENOUGH_FOR: Duration = Duration::from_millis(3500);

/// Result of the last full monitor (one that observed etcd), from a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RecentMonitor {
    /// Time at which the last full monitor (one that observed etcd) ended, in nanoseconds since this boot.
    at: u64,
    /// Hash of everything that Pacemaker passed to the last full monitor (see [`Env::asked`]).
    asked: u64,
    /// etcd's process in the last full monitor. The result is only used while this process is alive.
    #[serde(flatten)]
    process: Process,
    /// True if the last full monitor found etcd running as Promoted.
    promoted: bool,
}

fn path(env: &Env) -> PathBuf {
    state_file::recent_monitor_path(&env.volatile_dir(), env.resource())
}

/// Returns the result of the last monitor that observed etcd, if `request` is a monitor and that result is still valid. Any other request
/// deletes the result.
pub(super) fn answer(env: &Env, request: Request) -> Option<Answered> {
    if request != Request::Monitor {
        // If the file cannot be removed, its process and its age still limit it.
        let _ = std::fs::remove_file(path(env));
        return None;
    }
    let Fact::Known(last) = state_file::read::<RecentMonitor>(&path(env)) else { return None };
    let age = clock::boot_nanoseconds().checked_sub(last.at).map(Duration::from_nanos)?;
    let still_counts =
        age < ENOUGH_FOR && env.check_level() == 0 && last.asked == env.asked() && last.process.is_alive();
    still_counts.then(|| if last.promoted { Code::RunningPromoted } else { Code::Success }.into())
}

/// Stores the result of a full monitor that found etcd healthy and changed nothing, for the next monitors.
pub(super) fn keep(env: &Env, code: Code) {
    let promoted = match code {
        Code::Success => false,
        Code::RunningPromoted => true,
        _ => return,
    };
    let process_path = state_file::process_path(&env.volatile_dir(), env.resource());
    let Some(process) = process::remembered(&process_path) else { return };
    let last = RecentMonitor { at: clock::boot_nanoseconds(), asked: env.asked(), process, promoted };
    if let Err(error) = state_file::write(&path(env), &last) {
        log::debug!("this monitor's result cannot be written, so the next monitor is a full one: {error}");
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a child in the place of etcd")]
mod tests {
    use super::*;

    #[test]
    fn the_file_keeps_its_form() {
        let text = include_str!("../../tests/data/fixtures/formats/0.1.0/recent-monitor.json");
        let last: RecentMonitor = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&last).unwrap(), text.trim_end());
    }

    struct Etcd {
        dir: tempfile::TempDir,
        child: std::process::Child,
    }

    impl Etcd {
        fn runs() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
            let etcd = Self { dir, child };
            etcd.is_remembered();
            etcd
        }

        fn is_remembered(&self) {
            let path = state_file::process_path(self.dir.path(), "etcd");
            process::remember(&path, i32::try_from(self.child.id()).unwrap());
        }

        fn env(&self, more: &[(&str, &str)]) -> Env {
            let directory = self.dir.path().display().to_string();
            let pairs = [("HA_RSCTMP", &*directory), ("OCF_RESOURCE_INSTANCE", "etcd")];
            Env::from_pairs(pairs.iter().chain(more).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
        }

        fn answer(&self, request: Request, more: &[(&str, &str)]) -> Option<Code> {
            answer(&self.env(more), request).map(|answered| answered.code)
        }

        fn end(&mut self) {
            self.child.kill().unwrap();
            self.child.wait().unwrap();
        }
    }

    impl Drop for Etcd {
        fn drop(&mut self) {
            self.end();
        }
    }

    #[test]
    fn a_monitor_answers_as_the_last_one_until_etcd_ends() {
        let mut etcd = Etcd::runs();
        assert_eq!(etcd.answer(Request::Monitor, &[]), None, "no monitor was whole yet");
        keep(&etcd.env(&[]), Code::RunningPromoted);
        assert_eq!(etcd.answer(Request::Monitor, &[]), Some(Code::RunningPromoted));
        keep(&etcd.env(&[]), Code::Success);
        assert_eq!(etcd.answer(Request::Monitor, &[]), Some(Code::Success));
        etcd.end();
        assert_eq!(etcd.answer(Request::Monitor, &[]), None);
    }

    #[test]
    fn another_process_makes_the_next_monitor_whole() {
        let mut etcd = Etcd::runs();
        keep(&etcd.env(&[]), Code::Success);
        etcd.end();
        etcd.child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        etcd.is_remembered();
        assert_eq!(etcd.answer(Request::Monitor, &[]), None);
    }

    #[test]
    fn other_parameters_and_checks_that_ask_more_make_it_whole() {
        let etcd = Etcd::runs();
        keep(&etcd.env(&[("OCF_RESKEY_image", "etcd:1")]), Code::Success);
        assert_eq!(etcd.answer(Request::Monitor, &[("OCF_RESKEY_image", "etcd:1")]), Some(Code::Success));
        assert_eq!(etcd.answer(Request::Monitor, &[("OCF_RESKEY_image", "etcd:2")]), None);
        let closer = [("OCF_CHECK_LEVEL", "10")];
        keep(&etcd.env(&closer), Code::Success);
        assert_eq!(etcd.answer(Request::Monitor, &closer), None);
    }

    #[test]
    fn every_other_action_makes_the_next_monitor_a_full_one() {
        let etcd = Etcd::runs();
        for request in
            [Request::Notify, Request::Promote, Request::Demote, Request::Stop, Request::Start, Request::Probe]
        {
            keep(&etcd.env(&[]), Code::Success);
            assert_eq!(etcd.answer(request, &[]), None, "{request}");
            assert_eq!(etcd.answer(Request::Monitor, &[]), None, "after {request}");
        }
    }

    #[test]
    fn age_and_a_failure_make_it_whole() {
        let etcd = Etcd::runs();
        keep(&etcd.env(&[]), Code::NotRunning);
        assert_eq!(etcd.answer(Request::Monitor, &[]), None);
        keep(&etcd.env(&[]), Code::Success);
        let mut last: RecentMonitor = state_file::read(&path(&etcd.env(&[]))).known().cloned().unwrap();
        last.at -= u64::try_from(ENOUGH_FOR.as_nanos()).unwrap();
        state_file::write(&path(&etcd.env(&[])), &last).unwrap();
        assert_eq!(etcd.answer(Request::Monitor, &[]), None);
    }
}
