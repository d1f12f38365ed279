//! Options of the programs: one kind of table for the resource agent's parameters and for the fence agent's options. A row
//! says everything about an option once; from it come the typed value and the sentence for a wrong one ([`value`]), the
//! meta-data ([`standard`]), the help ([`help`]) and the man page ([`manpage`]).

pub mod help;
pub mod manpage;
pub mod standard;
pub mod value;
pub mod yes_no;

/// What values an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionKind {
    Text,
    /// Never shown, and taken byte by byte as it comes.
    Secret,
    /// Words separated by blanks.
    Words,
    /// A whole number, from the least to the most.
    Integer(i64, i64),
    /// A time, from the least to the most.
    Seconds(i64, i64),
    /// A switch: no value on the command line, a truth value everywhere else.
    Switch,
    /// A truth value, on the command line too.
    Truth,
    OneOf(&'static [&'static str]),
    /// An absolute path that podman can mount.
    Path,
    /// Such paths, separated by commas.
    Paths,
    /// Such a path of a directory that is the program's alone: what is in it is moved, deleted and mounted.
    Directory,
}

/// A row of a table of options.
#[derive(Clone, Copy, Debug)]
pub struct OptionRow {
    /// The name in the cluster's configuration; with dashes it is the long option.
    pub name: &'static str,
    /// The name that it had before: still taken, and declared as deprecated.
    pub old: Option<&'static str>,
    /// The letter that stands for it on the command line.
    pub letter: Option<char>,
    pub kind: OptionKind,
    /// How a value looks: a word for it that the help shows, or an example to type.
    pub value: &'static str,
    pub default: Option<&'static str>,
    /// Whether nobody can leave it out.
    pub required: bool,
    /// Whether a change takes effect without a restart.
    pub reloadable: bool,
    /// Whether it asks for a text to read: then it is on the command line only, and no parameter of a resource.
    pub for_people: bool,
    pub short: &'static str,
    /// More than [`Self::short`] says; may be empty.
    pub long: &'static str,
}

impl OptionRow {
    /// An option that may be left out, without a default.
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

    /// The long option, without its two dashes.
    pub fn long_option(&self) -> String {
        self.name.replace('_', "-")
    }

    /// Whether the command line gives it a value.
    pub fn takes_value(&self) -> bool {
        self.kind != OptionKind::Switch
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::standard::Standard;
    use super::value::OptionValue;
    use super::*;

    /// What holds of every table: no name means two options, and each default is a value of its kind.
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
