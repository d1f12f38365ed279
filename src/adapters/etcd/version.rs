//! The version of etcd in an image. Names in the configuration file and known defects depend on it.

pub use crate::decide::evidence::Version;

impl Version {
    /// Parses the output of `etcd --version`, as in `etcd Version: 3.5.21`; `None` if it is not one of etcd 3.
    pub fn parse(printed: &str) -> Option<Self> {
        Self::of(printed.lines().find_map(|line| line.trim().strip_prefix("etcd Version:"))?.trim())
    }

    /// Parses a version such as `3.5.21`; `None` if it is not one of etcd 3.
    pub fn of(number: &str) -> Option<Self> {
        let mut parts = number.split(['.', '-', '+']);
        let major: u32 = parts.next()?.parse().ok()?;
        let (minor, patch) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        (major == 3).then_some(Self { minor, patch })
    }
}

/// A defect of etcd that affects clusters of two members. Each minor version is listed with its first release without the defect. A minor
/// version that is not listed never had the defect, or has no fix. The source is etcd's CHANGELOG-3.4 to 3.6.
struct Defect {
    what: &'static str,
    fixed: &'static [Version],
}

const DEFECTS: &[Defect] = &[
    // A survivor is a cluster of one, which acknowledged before the entry was on its disk. The fixed release of 3.4 is from its
    // git history, because its changelog does not name it.
    Defect {
        what: "a single member acknowledges writes that a power cut can lose",
        fixed: &[Version { minor: 4, patch: 21 }, Version { minor: 5, patch: 5 }],
    },
    Defect {
        what: "a member that was killed under load can hold other data than its peer",
        fixed: &[Version { minor: 5, patch: 3 }],
    },
    Defect {
        what: "a forced new cluster can keep members that are gone",
        fixed: &[Version { minor: 5, patch: 22 }, Version { minor: 6, patch: 1 }],
    },
    Defect {
        what: "a forced new cluster can keep a learner that is gone",
        fixed: &[Version { minor: 5, patch: 25 }, Version { minor: 6, patch: 6 }],
    },
    Defect { what: "a member can fail to start after a promotion", fixed: &[Version { minor: 6, patch: 4 }] },
];

/// Returns the known defects of `version` that affect clusters of two members, each with the release that mends it.
pub fn defects(version: Version) -> Vec<String> {
    let concerns = |defect: &&Defect| {
        defect.fixed.iter().find(|fixed| fixed.minor == version.minor && version.patch < fixed.patch)
    };
    let told = |defect: &Defect| {
        let fixed = defect.fixed.iter().find(|fixed| fixed.minor == version.minor)?;
        Some(format!("{} (mended in {fixed})", defect.what))
    };
    DEFECTS.iter().filter(|defect| concerns(defect).is_some()).filter_map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_etcd_prints_is_read() {
        let printed = "etcd Version: 3.5.21\nGit SHA: a17edfd\nGo Version: go1.23\n";
        assert_eq!(Version::parse(printed), Some(Version { minor: 5, patch: 21 }));
        assert_eq!(Version::parse("etcd Version: 3.6.0-rc.5"), Some(Version { minor: 6, patch: 0 }));
        assert_eq!(Version::parse("etcdctl version: 3.5.21"), None);
        assert_eq!(Version::parse("etcd Version: 4.0.0"), None);
    }

    #[test]
    fn known_defects_are_named_with_their_mending() {
        let of = |minor, patch| defects(Version { minor, patch });
        assert_eq!(of(5, 21).len(), 2);
        assert_eq!(of(5, 22), ["a forced new cluster can keep a learner that is gone (mended in 3.5.25)"]);
        assert_eq!(of(6, 0).len(), 3);
        assert!(of(5, 25).is_empty() && of(4, 21).is_empty() && of(7, 0).is_empty());
        let durability =
            |fixed| format!("a single member acknowledges writes that a power cut can lose (mended in {fixed})");
        assert_eq!(of(4, 20), [durability("3.4.21")]);
        assert_eq!(of(5, 4).first(), Some(&durability("3.5.5")));
        assert_eq!((of(5, 2).len(), of(5, 3).len(), of(5, 5).len()), (4, 3, 2));
    }
}
