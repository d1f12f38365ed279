//! Judges whether both members may run a release of etcd. Pure.

use crate::adapters::etcd::version::{self, Version};

/// Returns warnings about the etcd release `new`, which is in the image `image`. The error is the reason why members of the releases
/// `running` must not be upgraded to it.
pub(super) fn judge(image: &str, new: Version, running: &[Version]) -> Result<Vec<String>, String> {
    let Some(oldest) = running.iter().min() else { return Err("no etcd reports its release".to_owned()) };
    // The data has the format of the oldest member's minor release.
    if new.minor < oldest.minor {
        return Err(format!(
            "{image} is etcd {new}, and the data is of {oldest}: etcd reads no data of a later minor release, so name an image of 3.{} or \
             later",
            oldest.minor
        ));
    }
    let next = oldest.minor + 1;
    if new.minor > next {
        return Err(format!(
            "{image} is etcd {new}, and {oldest} runs: etcd goes one minor release at a time, so name an image of 3.{next} first"
        ));
    }
    let newest = running.iter().max().filter(|newest| new < **newest);
    let older = newest.map(|newest| older(new, *newest));
    let defects = version::defects(new).into_iter().map(|defect| format!("etcd {new}: {defect}"));
    Ok(older.into_iter().chain(defects).collect())
}

fn older(new: Version, newest: Version) -> String {
    format!("etcd {new} is older than {newest}, which runs")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Version {
        Version::of(text).unwrap()
    }

    fn judged(new: &str, running: &[&str]) -> Result<Vec<String>, String> {
        judge("etcd:new", of(new), &running.iter().map(|version| of(version)).collect::<Vec<_>>())
    }

    #[test]
    fn a_release_is_not_older_than_the_data_and_one_minor_release_ahead_at_most() {
        for (new, running) in [("3.5.26", ["3.5.21"; 2]), ("3.6.7", ["3.5.26"; 2]), ("3.6.7", ["3.6.7", "3.5.26"])] {
            assert_eq!(judged(new, &running), Ok(Vec::new()), "{new} for {running:?}");
        }
        for (new, running, why) in [
            ("3.5.26", ["3.6.7"; 2], "the data is of 3.6.7: etcd reads no data of a later minor release"),
            ("3.6.7", ["3.4.30"; 2], "one minor release at a time, so name an image of 3.5 first"),
            ("3.6.7", ["3.4.30", "3.5.26"], "so name an image of 3.5 first"),
        ] {
            let refused = judged(new, &running).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }

    /// Asserts that a member may return to the old release while its peer runs the new one. The returning member gets a copy of the
    /// peer's data.
    #[test]
    fn half_way_there_is_a_way_back() {
        assert_eq!(judged("3.5.26", &["3.5.26", "3.6.7"]).unwrap(), ["etcd 3.5.26 is older than 3.6.7, which runs"]);
    }

    #[test]
    fn known_defects_are_named() {
        let known = judged("3.5.22", &["3.5.23"; 2]).unwrap();
        assert_eq!(known[0], "etcd 3.5.22 is older than 3.5.23, which runs");
        assert!(known[1].starts_with("etcd 3.5.22: a forced new cluster can keep a learner"), "{known:?}");
        assert!(judged("3.5.30", &[]).is_err(), "nothing is known of the data");
    }
}
