//! How far data reaches and until when, for people. The clock of a machine may be wrong, so it decides nothing.

use std::fmt;

use crate::base::utc;
use crate::decide::evidence::LogPosition;

/// Place in a log, behind its word. It prints nothing where the place is not known, because an etcd without a leader may not
/// report it.
pub(super) struct At(pub(super) &'static str, pub(super) LogPosition);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(word, LogPosition { term, index }) = self;
        if self.1 == LogPosition::default() { Ok(()) } else { write!(f, "{word} term {term} index {index}") }
    }
}

/// A place in a log, in a sentence.
pub(super) struct Long(pub(super) LogPosition);

impl fmt::Display for Long {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LogPosition { term, index } = self.0;
        write!(f, "term {term} index {index}")
    }
}

/// The same where there is little room: `TERM/INDEX`.
pub(super) struct Short(pub(super) LogPosition);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LogPosition { term, index } = self.0;
        write!(f, "{term}/{index}")
    }
}

/// The words that follow a place in the log; none where the time is not known.
#[derive(Clone, Copy, Debug)]
pub struct LastWritten(pub Option<u64>);

impl fmt::Display for LastWritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |seconds| write!(f, ", last written {}", utc(seconds)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_not_told() {
        assert_eq!(LastWritten(None).to_string(), "");
        assert_eq!(LastWritten(Some(951_782_399)).to_string(), ", last written 2000-02-28 23:59:59Z");
    }
}
