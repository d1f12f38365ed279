//! Options of the programs: one kind of table for the resource agent's parameters and for the fence agent's options. A row
//! defines everything about an option once. The value and the text for a wrong one ([`value`]), the meta-data ([`standard`]), the
//! help ([`help`]) and the man page ([`manpage`]) are generated from it.

pub mod help;
pub mod manpage;
pub mod standard;
pub mod value;
pub mod yes_no;

/// The kind of an option's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionKind {
    Text,
    /// A secret, which is never printed and is kept byte by byte.
    Secret,
    /// Words separated by blanks.
    Words,
    /// A whole number, from the least to the greatest.
    Integer(i64, i64),
    /// A time in seconds, from the least to the greatest.
    Seconds(i64, i64),
    /// A switch. It has no value on the command line, and a truth value elsewhere.
    Switch,
    /// A truth value, also on the command line.
    Truth,
    OneOf(&'static [&'static str]),
    /// An absolute path that podman can mount.
    Path,
    /// Absolute paths that podman can mount, separated by commas.
    Paths,
    /// An absolute path of the program's own directory. The program moves, deletes and mounts its contents.
    Directory,
}

/// A row of a table of options.
#[derive(Clone, Copy, Debug)]
pub struct OptionRow {
    /// The name in the cluster's configuration. With dashes it is the long option.
    pub name: &'static str,
    /// The option's former name, which still works and is declared as deprecated.
    pub old: Option<&'static str>,
    /// The option's letter on the command line.
    pub letter: Option<char>,
    pub kind: OptionKind,
    /// The placeholder for a value in the help, or an example.
    pub value: &'static str,
    pub default: Option<&'static str>,
    /// True if the option must be given.
    pub required: bool,
    /// True if a change takes effect without a restart.
    pub reloadable: bool,
    /// True if the option prints a text, and so exists only on the command line.
    pub for_people: bool,
    pub short: &'static str,
    /// The details in addition to [`Self::short`]; may be empty.
    pub long: &'static str,
}

impl OptionRow {
    /// Creates an optional option without a default.
    pub const fn new(name: &'static str, kind: OptionKind, short: &'static str) -> Self {
        Self {
            name,
            old: None,
            letter: None,
            kind,
            value: "",
            default: None,
            required: false,
            reloadable: false,
            for_people: false,
            short,
            long: "",
        }
    }

    #[must_use]
    pub const fn old(self, name: &'static str) -> Self {
        Self { old: Some(name), ..self }
    }

    #[must_use]
    pub const fn letter(self, letter: char) -> Self {
        Self { letter: Some(letter), ..self }
    }

    #[must_use]
    pub const fn value(self, value: &'static str) -> Self {
        Self { value, ..self }
    }

    #[must_use]
    pub const fn default(self, default: &'static str) -> Self {
        Self { default: Some(default), ..self }
    }

    #[must_use]
    pub const fn required(self) -> Self {
        Self { required: true, ..self }
    }

    #[must_use]
    pub const fn reloadable(self) -> Self {
        Self { reloadable: true, ..self }
    }

    #[must_use]
    pub const fn for_people(self) -> Self {
        Self { for_people: true, ..self }
    }

    #[must_use]
    pub const fn long(self, long: &'static str) -> Self {
        Self { long, ..self }
    }

    /// Returns the long option, without its two dashes.
    pub fn long_option(&self) -> String {
        self.name.replace('_', "-")
    }

    /// Returns whether the command line gives the option a value.
    pub fn takes_value(&self) -> bool {
        self.kind != OptionKind::Switch
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::standard::Standard;
    use super::value::OptionValue;
    use super::*;

    /// Checks a table: no name is used twice, and each default is a value of its kind.
    pub(crate) fn assert_sound<'a>(standard: Standard, rows: impl IntoIterator<Item = &'a OptionRow>) {
        let (mut names, mut letters): (Vec<String>, Vec<char>) = (Vec::new(), Vec::new());
        for row in rows {
            let old = row.old.map(|old| old.replace('-', "_")).filter(|old| old != row.name);
            for name in std::iter::once(row.name.to_owned()).chain(old) {
                assert!(!names.contains(&name), "{name}");
                names.push(name);
            }
            if let Some(letter) = row.letter {
                assert!(!letters.contains(&letter), "{letter}");
                letters.push(letter);
            }
            if let Some(default) = row.default {
                let value: Result<OptionValue, String> = row.parse(standard, default);
                assert!(value.is_ok(), "{value:?}");
            }
            assert!(!row.short.is_empty(), "{}", row.name);
            assert!(!row.required || row.default.is_none(), "{} has a default, so it may be left out", row.name);
        }
        assert!(!names.is_empty());
    }
}
