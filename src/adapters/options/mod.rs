//! Options of the programs: one kind of table for the resource agent's parameters and for the fence agent's options. A row
//! defines everything about an option once. The value and the text for a wrong one ([`value`]), the meta-data ([`standard`]), the
//! help ([`help`]) and the man page ([`manpage`]) are generated from it.

pub mod help;
pub mod manpage;
pub mod standard;
pub mod value;
pub mod yes_no;

/// The kind of an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionKind {
    Text,
    /// A secret, which is never printed and of which no byte is changed.
    Secret,
    /// Words separated by blanks.
    Words,
    /// A whole number, with the least and the greatest allowed one.
    Integer(i64, i64),
    /// A time in seconds, with the least and the greatest allowed one.
    Seconds(i64, i64),
    /// A truth value that is true if the option is on the command line, where it has no value. Elsewhere it has the value yes or
    /// no.
    Switch,
    /// A truth value that is written as a word such as yes or no, on the command line too.
    Truth,
    OneOf(&'static [&'static str]),
    /// An absolute path that podman can mount.
    Path,
    /// Absolute paths that podman can mount, separated by commas.
    Paths,
    /// An absolute path of a directory that belongs to the program alone. The program moves, deletes and mounts what is in it.
    Directory,
}

/// The definition of one option of an agent.
#[derive(Clone, Copy, Debug)]
pub struct OptionRow {
    /// The option's name in the cluster's configuration. With dashes for underscores it is the long option on the command line.
    pub name: &'static str,
    /// The option's former name, which still works and is declared as deprecated; `None` if there is none.
    pub old: Option<&'static str>,
    /// The option's letter on the command line; `None` if it has no short form.
    pub letter: Option<char>,
    pub kind: OptionKind,
    /// The placeholder for the option's value in the help, or an example of a value.
    pub value: &'static str,
    pub default: Option<&'static str>,
    /// True if the agent fails without the option.
    pub required: bool,
    /// True if a changed value takes effect without a restart of the resource.
    pub reloadable: bool,
    /// True if the option prints a text for people, such as the help. It exists only on the command line.
    pub for_people: bool,
    pub short: &'static str,
    /// The details that follow the short description; may be empty.
    pub long: &'static str,
}

impl OptionRow {
    /// Creates an option that is not required and has no default.
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

    /// Returns the name of the long option, without its two dashes.
    pub fn long_option(&self) -> String {
        self.name.replace('_', "-")
    }

    /// Returns whether the option has a value on the command line.
    pub fn takes_value(&self) -> bool {
        self.kind != OptionKind::Switch
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::standard::Standard;
    use super::value::OptionValue;
    use super::*;

    /// Asserts that a table of options is valid: no name occurs twice, and each default is a value of its option's kind.
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
