//! `--check`: one line with performance data and an exit code, as monitoring plugins answer.

use std::fmt::Write;

use super::document::{Status, Time};
use super::table;
use crate::admin::exit::Exit;
use crate::operate::failure::Failure;
use crate::operate::health::Verdict;
use crate::os::output;

/// The states of a monitoring plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ok,
    Warning,
    Critical,
    Unknown,
}

impl State {
    fn of(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Redundant => Self::Ok,
            Verdict::Degraded => Self::Warning,
            Verdict::Down => Self::Critical,
            Verdict::Unknown => Self::Unknown,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
            Self::Unknown => "UNKNOWN",
        }
    }

    /// Returns the exit code of a monitoring plugin: 0 to 3 for OK, WARNING, CRITICAL and UNKNOWN. These meanings differ from those of
    /// [`Exit`].
    fn exit(self) -> Exit {
        match self {
            Self::Ok => Exit::Done,
            Self::Warning => Exit::Failed,
            Self::Critical => Exit::Usage,
            Self::Unknown => Exit::Degraded,
        }
    }
}

/// Prints the plugin's line and returns its exit code. A failed query is UNKNOWN. Its error goes to stdout, where a monitoring system
/// expects it.
pub(super) fn run(status: Result<Status, Failure>) -> Result<Exit, Failure> {
    let (line, state) = match status {
        Ok(status) => (line(&status), State::of(status.verdict)),
        Err(Failure(why)) => (format!("TANDEM {} - {}", State::Unknown.word(), plain(&why)), State::Unknown),
    };
    output::say(line)?;
    Ok(state.exit())
}

pub(super) fn line(status: &Status) -> String {
    let mut line = format!("TANDEM {} - {}", State::of(status.verdict).word(), plain(&table::head(status)));
    if let Some(worst) = status.problems.first() {
        let _ = write!(line, "; {}", plain(&worst.text));
        let more = status.problems.len() - 1;
        if more > 0 {
            let _ = write!(line, "; {more} more");
        }
    }
    let _ = write!(line, " | {}", performance(status).join(" "));
    line
}

/// Replaces the characters that would end the line or begin the performance data.
fn plain(text: &str) -> String {
    text.replace('|', "/").replace('\n', " ")
}

/// Returns the performance data, as `'name'=value;warning;critical;least;most`. Unknown values are left out.
fn performance(status: &Status) -> Vec<String> {
    let mut data = vec![format!("problems={};;;0", status.problems.len())];
    data.extend(status.voters.map(|voters| format!("voters={voters};2:;1:;0")));
    for node in &status.nodes {
        let (name, etcd) = (node.name.replace(['\'', '=', ' '], "_"), &node.etcd);
        let quota = etcd.quota_bytes.map(|quota| quota.to_string()).unwrap_or_default();
        data.extend(etcd.lag.map(|lag| format!("'{name} lag'={lag};;;0")));
        data.extend(etcd.db_bytes.map(|bytes| format!("'{name} database'={bytes}B;;;0;{quota}")));
        data.extend(etcd.answer_millis.map(|millis| format!("'{name} answer'={millis}ms;;;0")));
        data.extend(node.free_bytes.map(|bytes| format!("'{name} free'={bytes}B;;;0")));
        let first = node.certificates.iter().flatten().map(|certificate| certificate.ends).min();
        let days = first.map(|Time(ends)| ends.saturating_sub(status.at.0) / 86_400);
        data.extend(days.map(|days| format!("'{name} certificate days'={days};30:;7:")));
        let checks = node.fence_devices.iter().flatten().filter_map(|device| Some((&device.id, device.check_millis?)));
        data.extend(checks.map(|(id, millis)| format!("'{id} check'={millis}ms;;;0")));
    }
    data
}
