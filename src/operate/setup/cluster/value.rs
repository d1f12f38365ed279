//! Options and their values in the CIB, and the rules by which two spellings are equal.

use uuid::Uuid;

use crate::adapters::options::yes_no;
use crate::adapters::pacemaker::duration::millis;

/// The kind of an option's value, which decides when two spellings are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    /// A duration, such as `15s`, `15` or `PT15S`.
    Time,
    /// A boolean, such as `true`, `1` or `yes`.
    Truth,
    Uuid,
    /// A list with `;` in any order, such as `a;b`.
    Set,
}

/// An option of a resource or of the cluster, with the value that the description demands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) name: String,
    pub(crate) value: String,
    pub(crate) kind: Kind,
}

impl Wanted {
    pub(crate) fn new(name: &str, value: impl Into<String>, kind: Kind) -> Self {
        Self { name: name.to_owned(), value: value.into(), kind }
    }

    /// Returns the option as an argument of pcs, `NAME=VALUE`.
    pub(crate) fn word(&self) -> String {
        format!("{}={}", self.name, self.value)
    }

    /// Returns whether the present value `there` is equal to the wanted one, in any spelling of its kind.
    pub(crate) fn is(&self, there: &str) -> bool {
        let wanted = self.value.as_str();
        let both = |same: bool| wanted == there || same;
        match self.kind {
            Kind::Text => wanted == there,
            Kind::Time => both(millis(wanted).is_some_and(|wanted| millis(there) == Some(wanted))),
            Kind::Truth => {
                both(yes_no::of_pacemaker(wanted).is_some_and(|wanted| yes_no::of_pacemaker(there) == Some(wanted)))
            }
            Kind::Uuid => both(Uuid::parse_str(wanted).is_ok_and(|wanted| Uuid::parse_str(there) == Ok(wanted))),
            Kind::Set => both(members(wanted) == members(there)),
        }
    }
}

fn members(text: &str) -> Vec<&str> {
    let mut members: Vec<&str> = text.split(';').map(str::trim).filter(|member| !member.is_empty()).collect();
    members.sort_unstable();
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_the_same_is_no_difference() {
        for (kind, wanted, there, expected) in [
            (Kind::Text, "a", "a", true),
            (Kind::Text, "10", "10s", false),
            (Kind::Time, "10s", "10", true),
            (Kind::Time, "10s", "PT10S", true),
            (Kind::Time, "10s", "1s", false),
            (Kind::Time, "soon", "later", false),
            (Kind::Truth, "true", "1", true),
            (Kind::Truth, "1", "yes", true),
            (Kind::Truth, "true", "false", false),
            (Kind::Truth, "true", "", false),
            (Kind::Truth, "maybe", "perhaps", false),
            (Kind::Uuid, "4C4C4544-0042-3010-8052-B4C04F4C5831", "4c4c4544-0042-3010-8052-b4c04f4c5831", true),
            (Kind::Uuid, "4C4C4544-0042-3010-8052-B4C04F4C5831", "5c4c4544-0042-3010-8052-b4c04f4c5831", false),
            (Kind::Uuid, "no uuid", "none either", false),
            (Kind::Set, "node1:192.0.2.1;node2:192.0.2.2", "node2:192.0.2.2; node1:192.0.2.1", true),
            (Kind::Set, "node1:192.0.2.1;node2:192.0.2.2", "node2:192.0.2.2", false),
        ] {
            assert_eq!(Wanted::new("x", wanted, kind).is(there), expected, "{kind:?}: {wanted} and {there}");
        }
    }
}
