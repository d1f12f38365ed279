//! The times at which this node first saw each mark on a BMC. A mark that is older than the longest action is a killed agent's.
//! One action may be too short to find that out.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::adapters::https::address::Address;
use crate::os::clock;
use crate::records::state_file;

/// The directory of the files that record when this node first saw each of the other node's mark sessions (see
/// [`Site`](super::race::Site)). A reboot empties the directory.
const DIR: &str = "/run";

/// The time that replaces the first sighting of a mark session (see [`Site`](super::race::Site)) once the agent that opened it is known
/// to have ended. It makes the session older than any limit.
const EVER: u64 = 0;

/// A mark session on a BMC (see [`Site`](super::race::Site)), and the time at which this node first saw it, in nanoseconds since the
/// machine booted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Sighting {
    mark: String,
    first: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Seen {
    marks: Vec<Sighting>,
}

/// The other node's mark sessions (see [`Site`](super::race::Site)) that this node has seen on one BMC. A file stores them for the
/// agent's next runs.
#[derive(Clone, Debug)]
pub(super) struct Sightings {
    path: PathBuf,
    seen: Seen,
}

impl Sightings {
    /// Reads from a file when this node first saw each mark session (see [`Site`](super::race::Site)) on the BMC at `address`.
    pub(super) fn of(address: &Address) -> Self {
        Self::below(Path::new(DIR), address)
    }

    fn below(dir: &Path, address: &Address) -> Self {
        let path = dir.join(format!("fence_redfish_rs-{}-marks.json", address.full()));
        let now = clock::boot_nanoseconds();
        let mut seen = state_file::read::<Seen>(&path).known().cloned().unwrap_or_default();
        seen.marks.retain(|sighting| sighting.first <= now);
        Self { path, seen }
    }

    /// Stores `marks`, the other node's mark sessions (see [`Site`](super::race::Site)) in the BMC's present list. Drops all other
    /// sessions from the file. Returns for each of `marks` how long ago this node first saw it.
    pub(super) fn note(&mut self, marks: &[&str]) -> Vec<Duration> {
        let now = clock::boot_nanoseconds();
        let mut next = Seen::default();
        for mark in marks {
            let earlier = self.seen.marks.iter().find(|sighting| sighting.mark == *mark);
            let first = earlier.map_or(now, |sighting| sighting.first);
            next.marks.push(Sighting { mark: (*mark).to_owned(), first });
        }
        self.keep(next);
        let age = |first| if first == EVER { Duration::MAX } else { Duration::from_nanos(now.saturating_sub(first)) };
        self.seen.marks.iter().map(|sighting| age(sighting.first)).collect()
    }

    /// Records that the agents that opened the stored mark sessions (see [`Site`](super::race::Site)) have ended, because their node is
    /// proven off.
    pub(super) fn condemn(&mut self) {
        let mut next = self.seen.clone();
        next.marks.iter_mut().for_each(|sighting| sighting.first = EVER);
        self.keep(next);
    }

    fn keep(&mut self, next: Seen) {
        if next != self.seen {
            self.seen = next;
            if let Err(error) = state_file::write(&self.path, &self.seen) {
                log::info!("{} cannot be written: {error}", self.path.display());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_file_keeps_its_form() {
        let text = include_str!("../../tests/data/fixtures/formats/0.1.0/marks.json");
        let seen = Seen { marks: vec![Sighting { mark: "/s/1 a".to_owned(), first: 1_000_000_000 }] };
        assert_eq!(serde_json::from_str::<Seen>(text).unwrap(), seen);
        assert_eq!(serde_json::to_string(&seen).unwrap(), text.trim_end());
    }

    #[test]
    fn a_mark_is_as_old_as_its_first_sighting_and_a_gone_one_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let address = Address::parse("192.0.2.1", 443).unwrap();
        let sightings = || Sightings::below(dir.path(), &address);
        assert_eq!(sightings().note(&["a"]), [Duration::ZERO]);
        clock::sleep(Duration::from_millis(2));
        let ages = sightings().note(&["b", "a"]);
        assert!(ages[0].is_zero() && ages[1] >= Duration::from_millis(2), "{ages:?}");
        sightings().condemn();
        assert_eq!(sightings().note(&["b", "c"]), [Duration::MAX, Duration::ZERO]);
        assert!(sightings().note(&[]).is_empty());
        assert_eq!(sightings().note(&["a"]), [Duration::ZERO]);
        let later = Seen { marks: vec![Sighting { mark: "a".to_owned(), first: u64::MAX }] };
        fs::write(sightings().path, serde_json::to_string(&later).unwrap()).unwrap();
        assert_eq!(sightings().note(&["a"]), [Duration::ZERO], "of an earlier boot");
    }
}
