//! How far data reaches and until when, for people. The clock of a machine may be wrong, so it decides nothing.

use std::fmt;

use crate::base::utc;
use crate::decide::evidence::LogPosition;

/// Printer of a log position with a word in front of it. It prints nothing if the position is unknown, because an etcd without a
/// leader may not report its position.
pub(super) struct At(pub(super) &'static str, pub(super) LogPosition);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(word, LogPosition { term, index }) = self;
        if self.1 == LogPosition::default() { Ok(()) } else { write!(f, "{word} term {term} index {index}") }
    }
}

/// Printer of a log position in full: `term TERM index INDEX`.
pub(super) struct Long(pub(super) LogPosition);

impl fmt::Display for Long {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LogPosition { term, index } = self.0;
        write!(f, "term {term} index {index}")
    }
}

/// Printer of a log position in little space: `TERM/INDEX`.
pub(super) struct Short(pub(super) LogPosition);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LogPosition { term, index } = self.0;
        write!(f, "{term}/{index}")
    }
}

/// Printer of the time at which a log was last written, in seconds since 1970. It is printed after a log position. It prints
/// nothing if the time is unknown.
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
