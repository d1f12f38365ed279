//! Finds the newest revision that two histories share.
//!
//! A history has every change after the revision to which it was compacted. Before that it has only the last change of
//! each key. A change in one history therefore proves a fork only if the other history would have that change too.

use super::hashes::Mark;
use crate::operate::failure::Failure;

/// The first revision of every etcd, at which it has no keys.
pub(super) const FIRST: u64 = 1;

/// All changes that an etcd history has at one revision.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) revision: u64,
    pub(super) marks: Vec<Mark>,
}

/// One of the two compared etcd histories, which is read change by change from its beginning.
pub(super) struct Side<'a> {
    pub(super) groups: &'a mut dyn FnMut() -> Result<Option<Group>, Failure>,
    /// The revision after which the history has every change. Before that it has only the last change of each key.
    pub(super) whole_after: u64,
    /// The last revision that was read so far.
    pub(super) end: u64,
}

impl Side<'_> {
    fn next(&mut self) -> Result<Option<Group>, Failure> {
        let group = (self.groups)()?;
        self.end = self.end.max(group.as_ref().map_or(0, |group| group.revision));
        Ok(group)
    }

    fn is_whole_at(&self, revision: u64) -> bool {
        revision > self.whole_after
    }
}

/// Bounds of the last revision that two etcd histories share. The revision `least` is certainly shared, and none above
/// `most` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fork {
    pub least: u64,
    pub most: u64,
}

/// Finds the last revision that two histories share, as bounds.
pub(super) fn find(mut one: Side<'_>, mut other: Side<'_>) -> Result<Fork, Failure> {
    let (mut left, mut right) = (one.next()?, other.next()?);
    let (mut least, mut most) = (FIRST, u64::MAX);
    loop {
        let (revision, same) = match (&mut left, &mut right) {
            (Some(group), Some(beside)) if group.revision == beside.revision => {
                let at = group.revision;
                (at, agree(&mut group.marks, one.is_whole_at(at), &mut beside.marks, other.is_whole_at(at)))
            }
            (Some(group), beside) if beside.as_ref().is_none_or(|beside| group.revision < beside.revision) => {
                (group.revision, absent(&other, group.revision, beside.is_none()))
            }
            (group, Some(beside)) => (beside.revision, absent(&one, beside.revision, group.is_none())),
            (_, None) => break,
        };
        match same {
            Some(true) => least = revision,
            Some(false) => {
                // etcd has no revision 0, but a damaged database may have a change with it.
                most = revision.saturating_sub(1);
                break;
            }
            None => {}
        }
        if left.as_ref().is_some_and(|group| group.revision == revision) {
            left = one.next()?;
        }
        if right.as_ref().is_some_and(|group| group.revision == revision) {
            right = other.next()?;
        }
    }
    let most = most.min(one.end).min(other.end).max(least);
    Ok(Fork { least, most })
}

/// Returns whether the histories agree at a revision at which `side` has no change and the other history has one. Returns `Some(false)`
/// if `side` certainly never had a change there. Returns `None` if `side` may have had one that is compacted.
fn absent(side: &Side<'_>, revision: u64, has_ended: bool) -> Option<bool> {
    (side.is_whole_at(revision) || (has_ended && revision > side.end)).then_some(false)
}

/// Returns whether both histories have the same changes at one revision. Returns `None` if that is uncertain, because a
/// history is compacted there.
fn agree(one: &mut [Mark], is_one_whole: bool, other: &mut [Mark], is_other_whole: bool) -> Option<bool> {
    one.sort_unstable();
    other.sort_unstable();
    let has = |marks: &[Mark], mark: &Mark| marks.binary_search(mark).is_ok();
    let within = |few: &[Mark], all: &[Mark]| few.iter().all(|mark| has(all, mark));
    let of_key = |marks: &[Mark], key| marks.get(marks.partition_point(|mark| mark.key < key)).copied();
    let is_false = match (is_one_whole, is_other_whole) {
        (true, true) => one != other,
        (true, false) => !within(other, one),
        (false, true) => !within(one, other),
        (false, false) => {
            one.iter().any(|mark| of_key(other, mark.key).is_some_and(|found| found.key == mark.key && found != *mark))
        }
    };
    let is_shared = !is_false && one.iter().any(|mark| has(other, mark));
    if is_false { Some(false) } else { is_shared.then_some(true) }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Rows<'a> = &'a [(u64, &'a [(u128, u64)])];

    fn groups(rows: Rows<'_>) -> impl FnMut() -> Result<Option<Group>, Failure> {
        let mark = |(key, content): &(u128, u64)| Mark { key: *key, content: *content };
        let group =
            |(revision, marks): &(u64, &[_])| Group { revision: *revision, marks: marks.iter().map(mark).collect() };
        let mut groups = rows.iter().map(group).collect::<Vec<_>>().into_iter();
        move || Ok(groups.next())
    }

    fn fork((one, one_compacted): (Rows<'_>, u64), (other, other_compacted): (Rows<'_>, u64)) -> (u64, u64) {
        let (mut one, mut other) = (groups(one), groups(other));
        let one = Side { groups: &mut one, whole_after: one_compacted, end: one_compacted };
        let other = Side { groups: &mut other, whole_after: other_compacted, end: other_compacted };
        let Fork { least, most } = find(one, other).unwrap();
        (least, most)
    }

    const A: Rows<'_> = &[(2, &[(1, 1)]), (3, &[(2, 1)]), (4, &[(1, 2), (3, 1)]), (5, &[(4, 1)])];

    /// Asserts that databases with a change at revision 0, which etcd never writes, are compared without a panic.
    #[test]
    fn changes_at_revision_0_that_differ_are_after_the_fork() {
        assert_eq!(fork((&[(0, &[(1, 1)])], 0), (&[(0, &[(1, 2)])], 0)), (1, 1));
    }

    #[test]
    fn whole_histories_have_an_exact_fork() {
        assert_eq!(fork((A, 0), (A, 0)), (5, 5));
        assert_eq!(fork((A, 0), (&A[..2], 0)), (3, 3));
        assert_eq!(fork((A, 0), (&[], 0)), (1, 1));
        let other: Rows<'_> = &[(2, &[(1, 1)]), (3, &[(2, 1)]), (4, &[(3, 1), (1, 9)]), (5, &[(4, 1)])];
        assert_eq!(fork((A, 0), (other, 0)), (3, 3), "what is equal behind the first difference is no fork");
        let order: Rows<'_> = &[(2, &[(1, 1)]), (3, &[(2, 1)]), (4, &[(3, 1), (1, 2)])];
        assert_eq!(fork((A, 0), (order, 0)), (4, 4));
    }

    #[test]
    fn a_compacted_history_leaves_bounds() {
        // Up to revision 4 only the last change of each key is left.
        let compacted: Rows<'_> = &[(3, &[(2, 1)]), (4, &[(1, 2), (3, 1)]), (6, &[(9, 9)])];
        assert_eq!(fork((A, 0), (compacted, 4)), (4, 4));
        let written_since: Rows<'_> = &[(3, &[(2, 1)]), (7, &[(1, 7), (3, 7)])];
        assert_eq!(fork((A, 0), (written_since, 7)), (3, 5));
        let earlier: Rows<'_> = &[(2, &[(1, 1)]), (3, &[(2, 5)]), (7, &[(3, 7)])];
        assert_eq!(fork((A, 0), (earlier, 7)), (2, 2));
        // Neither history is complete there, so the same transaction may have written another key.
        let part: Rows<'_> = &[(4, &[(3, 1)]), (5, &[(4, 1)]), (6, &[(1, 1)])];
        assert_eq!(fork((&[(4, &[(1, 2)]), (5, &[(4, 1)])], 4), (part, 6)), (5, 5));
        assert_eq!(fork((&[(4, &[(1, 2)])], 4), (&[(4, &[(1, 3)])], 4)), (1, 3));
    }
}
