//! Delivers events to the recipients that the cluster configures: each at least once and in order, independently for
//! each recipient. A recipient that is down is tried again after growing pauses, and then gets everything. If more
//! events wait than are kept, the oldest are lost.

mod counts;
mod cursor;
mod post;
mod recipient;
mod shown;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use counts::{count, counts};
pub use cursor::Cursor;
pub use post::Trust;
pub use recipient::Recipient;
pub use shown::Unknown;

use crate::adapters::command::Programs;
use crate::adapters::pacemaker::{self, alerts};
use crate::base::Fact;
use crate::base::utc;
use crate::os::clock::{self, Deadline};
use crate::os::{appended, directory as os_directory, ofd_lock};
use crate::records::events::{Event, read};
use crate::records::state_file;

/// The folder with the delivery progress of each recipient.
pub const DIRECTORY: &str = "/var/lib/tandem/deliver";
/// Longest time for deliveries to one recipient in one run of the collector. The next run delivers the rest.
const BUDGET: Duration = Duration::from_secs(10);

/// Returns whether `path` is the path of Tandem's alert agent.
pub fn is_ours(path: &str) -> bool {
    path.ends_with("/tandem/alert") || path.ends_with("/tandem-alert")
}

/// The folders of events and of delivery progress, and the CAs to verify recipients with.
#[derive(Clone, Debug)]
pub struct Places {
    pub events: PathBuf,
    pub state: PathBuf,
    pub trust: Trust,
}

impl Default for Places {
    fn default() -> Self {
        Self { events: crate::records::events::DIRECTORY.into(), state: DIRECTORY.into(), trust: Trust::System }
    }
}

/// The result of one run's delivery to one recipient.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// The recipient in a printable form. A URL is shortened to its host, because the rest may be a secret.
    pub recipient: String,
    /// The number of events that this run delivered.
    pub delivered: u64,
    pub waiting: u64,
    /// The number of events that the recipient will never get.
    pub lost: u64,
    pub failure: Option<String>,
}

/// Returns the recipients that the cluster configures for Tandem's alert agent. If the cluster does not answer, returns those that it
/// configured last. `None` means that no alert uses that agent.
pub fn recipients(programs: &Programs, places: &Places) -> Result<Option<Vec<String>>, pacemaker::Error> {
    #[derive(Default, PartialEq, Serialize, Deserialize)]
    struct Known {
        recipients: Option<Vec<String>>,
    }
    let path = places.state.join("recipients.json");
    match alerts::recipients(programs, is_ours) {
        Ok(recipients) => {
            let known = Known { recipients };
            // A URL may be a secret, so only root may read the folder and the file. A failure to store it is ignored,
            // because the cluster is asked again.
            if state_file::read::<Known>(&path) != Fact::Known(Known { recipients: known.recipients.clone() }) {
                let _ = directory(&places.state).and_then(|()| state_file::write(&path, &known));
            }
            Ok(known.recipients)
        }
        Err(error) => match state_file::read::<Known>(&path) {
            Fact::Known(known) => Ok(known.recipients),
            _ => Err(error),
        },
    }
}

/// Delivers the waiting events to each of `recipients`. If `at_once` is true, pauses after failures are skipped.
pub fn deliver(places: &Places, recipients: &[String], at_once: bool) -> io::Result<Vec<Outcome>> {
    directory(&places.state)?;
    let lock = appended::open(&places.state.join("lock"), 0o600)?.file;
    let patience = Deadline::after(if at_once { BUDGET * 2 } else { Duration::ZERO });
    while !ofd_lock::try_take(&lock)? {
        if patience.has_passed() {
            // The collector that holds the lock delivers the same events.
            return Ok(Vec::new());
        }
        patience.sleep(Duration::from_millis(50));
    }
    let events = read::all(&places.events)?;
    let one = |text: &String| to_one(places, &events, text, at_once);
    Ok(std::thread::scope(|scope| {
        let threads: Vec<_> = recipients.iter().map(|text| scope.spawn(move || one(text))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    }))
}

fn directory(path: &Path) -> io::Result<()> {
    os_directory::make(path, 0o700)
}

fn to_one(places: &Places, events: &[Event], text: &str, at_once: bool) -> Outcome {
    let shown = shown::shown(text);
    let mut outcome = Outcome { recipient: shown.clone(), delivered: 0, waiting: 0, lost: 0, failure: None };
    let mut recipient = match Recipient::parse(text, &places.trust) {
        Ok(recipient) => recipient,
        Err(unknown) => return Outcome { failure: Some(unknown.to_string()), ..outcome },
    };
    let path = places.state.join(format!("{}.json", recipient::file_name(text)));
    let now = clock::wall_seconds();
    let (before, begins) = match state_file::read::<Cursor>(&path) {
        Fact::Known(cursor) => (cursor, false),
        // A damaged file begins again, so that some events may be delivered twice.
        _ => (Cursor::new(events, now), true),
    };
    let mut cursor = before.clone();
    let deadline = Deadline::after(BUDGET);
    if at_once || !cursor.pauses(now) {
        let run =
            cursor.bring(events, now, &mut || deadline.has_passed(), &mut |event| recipient.send(event, deadline));
        outcome.delivered = run.delivered;
        outcome.failure = run.failure;
    } else {
        outcome.failure = Some(format!("it is tried again at {}", utc(cursor.again_at)));
    }
    outcome.waiting = cursor.waiting(events);
    outcome.lost = cursor.lost;
    if (begins || cursor != before)
        && let Err(error) = state_file::write(&path, &cursor)
    {
        outcome.failure = Some(format!("{}: {error}", path.display()));
    }
    outcome
}

#[cfg(test)]
mod tests;
