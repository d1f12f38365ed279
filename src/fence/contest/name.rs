//! The names of marks, by which a session is recognised as a mark of this node or the other one.

use std::time::Duration;

use crate::adapters::redfish::mark::{Marks, OtherSession};
use crate::os::clock;

/// The beginning of a Redfish session's `Context` by which the session is recognized as one that announces a reset in a fence
/// race.
const PREFIX: &str = "tandem-fence-race";

/// The name of the sessions by which this node announces a reset in a fence race. The other node's sessions have another name.
#[derive(Clone, Debug)]
pub(in crate::fence) struct MarkName {
    longest: Duration,
    /// The hash of this node's target. The two nodes have different targets, so their hashes differ. Every run of an agent
    /// computes the same hash.
    id: String,
}

/// A session that the other node may have opened to announce a reset in a fence race.
pub(super) struct Rival {
    pub(super) shown: String,
    /// A key that identifies this session, and that no other session ever has. `None` if the BMC shows neither a `Context` nor a
    /// time of creation.
    pub(super) key: Option<String>,
    pub(super) longest: Duration,
}

impl MarkName {
    pub(in crate::fence) fn new(target: &str, longest: Duration) -> Self {
        // FNV-1a is sufficient, because a node compares only with an id that it has written itself.
        let id = target
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        Self { longest, id: format!("{id:016x}") }
    }

    /// Returns the `Context` of a new session that announces a reset. It has the prefix, the seconds after which the session's
    /// agent has ended, this node's id, and a number that differs for each session of this node.
    pub(in crate::fence) fn context(&self) -> String {
        format!("{PREFIX} {} {} {:x}", self.longest.as_secs(), self.id, clock::boot_nanoseconds())
    }

    /// Returns whether the `Context` of the session `other` shows that the other node opened the session to announce a reset.
    pub(super) fn is_a_rivals(&self, other: &OtherSession) -> bool {
        self.other_marks_time(other).is_some()
    }

    fn other_marks_time(&self, other: &OtherSession) -> Option<Duration> {
        let mut words = other.context.as_deref()?.strip_prefix(PREFIX)?.split_whitespace();
        let longest = words.next().and_then(|word| word.parse().ok()).map_or(self.longest, Duration::from_secs);
        (words.next() != Some(self.id.as_str())).then_some(longest)
    }

    /// Returns the session `other` as a [`Rival`]; `None` if the other node cannot have opened it for the fence race. `list` is
    /// the list that contains it, and `user` is the account that has read this list.
    pub(super) fn rival(&self, other: &OtherSession, list: &Marks, user: &str) -> Option<Rival> {
        let origin = other.origin.as_ref().map(|origin| format!(" from {origin}")).unwrap_or_default();
        let shown = format!("{}{origin}", other.path);
        if other.context.as_deref().is_some_and(|context| context.starts_with(PREFIX)) {
            let longest = self.other_marks_time(other)?;
            let key = other.context.as_ref().map(|context| format!("{} {context}", other.path));
            return Some(Rival { shown, key, longest });
        }
        if list.keeps_context || other.user.as_deref().is_some_and(|theirs| theirs != user) {
            return None;
        }
        let key = other.created.as_ref().map(|created| format!("{} {created}", other.path));
        Some(Rival { shown, key, longest: self.longest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(user: &str, context: Option<&str>) -> OtherSession {
        let context = context.map(str::to_owned);
        OtherSession { path: "/s/7".into(), user: Some(user.into()), context, ..OtherSession::default() }
    }

    #[test]
    fn a_rival_is_known_by_its_context_and_else_by_its_user() {
        let ours = MarkName::new("192.0.2.2:443  node2", Duration::from_secs(54));
        let theirs = MarkName::new("192.0.2.1:443  node1", Duration::from_secs(99));
        let (kept, dropped) = (Marks { keeps_context: true, ..Marks::default() }, Marks::default());
        let seen =
            |other: &OtherSession, list: &Marks| ours.rival(other, list, "admin").map(|rival| rival.longest.as_secs());
        for list in [&kept, &dropped] {
            assert_eq!(seen(&session("other", Some(&theirs.context())), list), Some(99), "whatever its user");
            assert_eq!(seen(&session("admin", Some(&ours.context())), list), None, "of an earlier run of this node");
            assert_eq!(seen(&session("admin", Some(PREFIX)), list), Some(54), "cut off by the BMC");
            assert_eq!(seen(&session("operator", None), list), None);
        }
        assert_eq!(seen(&session("admin", None), &kept), None, "an operator's");
        assert_eq!(seen(&session("admin", None), &dropped), Some(54));
        assert_eq!(seen(&OtherSession::default(), &dropped), Some(54), "one that may not be read");
        let created = |created: Option<&str>| {
            let other = OtherSession { created: created.map(str::to_owned), ..session("admin", None) };
            ours.rival(&other, &dropped, "admin").and_then(|rival| rival.key)
        };
        assert_eq!(created(None), None, "its path may be another session's later");
        assert_eq!(created(Some("2026-11-29T00:00:00Z")).as_deref(), Some("/s/7 2026-11-29T00:00:00Z"));
    }
}
