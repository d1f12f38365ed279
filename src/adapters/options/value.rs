//! The conversion of a text to a value of an option's kind, or to an error text that contains a valid form.

use std::path::{Component, PathBuf};

use super::standard::Standard;
use super::{OptionKind, OptionRow};

/// The parsed value of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionValue {
    Text(String),
    Words(Vec<String>),
    Number(i64),
    Truth(bool),
    Path(PathBuf),
    Paths(Vec<PathBuf>),
}

impl OptionKind {
    /// Returns a text for operators that describes the allowed values.
    pub fn wanted(self) -> String {
        match self {
            Self::Text | Self::Secret => "a text".to_owned(),
            Self::Words => "words separated by blanks".to_owned(),
            Self::Integer(least, most) | Self::Seconds(least, most) => {
                format!("a whole number from {least} to {most}")
            }
            Self::Switch | Self::Truth => "yes or no".to_owned(),
            Self::OneOf(choices) => format!("one of {}", choices.join(", ")),
            Self::Path | Self::Directory => "an absolute path".to_owned(),
            Self::Paths => "absolute paths separated by commas".to_owned(),
        }
    }
}

impl OptionRow {
    /// Parses `text` as a value of this option. The error text names what to write instead.
    pub fn parse<T: TryFrom<OptionValue>>(&self, standard: Standard, text: &str) -> Result<T, String> {
        let value = self.typed(standard, text)?;
        // A number may be too large for its type, if the table permits it. No caller asks for a path as a number.
        T::try_from(value).map_err(|_| self.is_not_wanted(standard, text))
    }

    fn typed(&self, standard: Standard, text: &str) -> Result<OptionValue, String> {
        let is_not_wanted = || self.is_not_wanted(standard, text);
        match self.kind {
            OptionKind::Text | OptionKind::Secret => Ok(OptionValue::Text(text.to_owned())),
            OptionKind::Words => Ok(OptionValue::Words(text.split_whitespace().map(str::to_owned).collect())),
            OptionKind::Integer(least, most) | OptionKind::Seconds(least, most) => {
                let number = text.parse().ok().filter(|number| (least..=most).contains(number));
                number.map(OptionValue::Number).ok_or_else(is_not_wanted)
            }
            OptionKind::Switch | OptionKind::Truth => standard.truth(text).map(OptionValue::Truth).ok_or_else(|| {
                format!("{}={} is neither yes nor no: write 1 or 0", self.name, self.shown(standard, text))
            }),
            OptionKind::OneOf(choices) => {
                let choice = choices.iter().find(|choice| text.eq_ignore_ascii_case(choice));
                choice.map(|choice| OptionValue::Text((*choice).to_owned())).ok_or_else(is_not_wanted)
            }
            OptionKind::Path => self.path(standard, text).map(OptionValue::Path),
            OptionKind::Paths => {
                let paths = text.split(',').map(str::trim).filter(|path| !path.is_empty());
                let paths: Result<_, _> = paths.map(|path| self.path(standard, path)).collect();
                paths.map(OptionValue::Paths)
            }
            OptionKind::Directory => self.directory(standard, text).map(OptionValue::Path),
        }
    }

    /// Returns the part of the wrong value `text` that an error text may show. A secret is never shown.
    fn shown(&self, standard: Standard, text: &str) -> String {
        if self.kind == OptionKind::Secret { "...".to_owned() } else { standard.shown(text) }
    }

    fn is_not_wanted(&self, standard: Standard, text: &str) -> String {
        format!("{}={} is not {}", self.name, self.shown(standard, text), self.kind.wanted())
    }

    /// Parses a path. A colon is an error, because podman separates the parts of a mount by colons and has no way to quote one.
    fn path(&self, standard: Standard, text: &str) -> Result<PathBuf, String> {
        let (name, shown) = (self.name, self.shown(standard, text));
        if !text.starts_with('/') {
            return Err(format!("{name}={shown} is not an absolute path: begin it with '/'"));
        }
        if text.contains(':') {
            return Err(format!("{name}={shown} has a colon in it: podman mounts no such path"));
        }
        if text.contains(char::is_control) {
            return Err(format!("{name} has a line break or the like in it: type the path in one line"));
        }
        Ok(PathBuf::from(text))
    }

    fn directory(&self, standard: Standard, text: &str) -> Result<PathBuf, String> {
        let path = self.path(standard, text)?;
        if path.components().any(|part| matches!(part, Component::Normal(_))) {
            return Ok(path);
        }
        Err(format!(
            "{}={} is the root directory: give one such as /var/lib/etcd",
            self.name,
            self.shown(standard, text)
        ))
    }
}

/// The error of converting an option's value to a type that it does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherType;

/// Implements the conversion of an [`OptionValue`] to each type that callers use.
macro_rules! from_value {
    ($($type:ty: $pattern:pat => $made:expr;)+) => {
        $(impl TryFrom<OptionValue> for $type {
            type Error = OtherType;

            fn try_from(value: OptionValue) -> Result<Self, OtherType> {
                match value {
                    $pattern => $made,
                    _ => Err(OtherType),
                }
            }
        })+
    };
}

from_value! {
    String: OptionValue::Text(text) => Ok(text);
    Vec<String>: OptionValue::Words(words) => Ok(words);
    bool: OptionValue::Truth(truth) => Ok(truth);
    PathBuf: OptionValue::Path(path) => Ok(path);
    Vec<PathBuf>: OptionValue::Paths(paths) => Ok(paths);
    i32: OptionValue::Number(number) => Self::try_from(number).map_err(|_| OtherType);
    u16: OptionValue::Number(number) => Self::try_from(number).map_err(|_| OtherType);
    u32: OptionValue::Number(number) => Self::try_from(number).map_err(|_| OtherType);
    u64: OptionValue::Number(number) => Self::try_from(number).map_err(|_| OtherType);
    usize: OptionValue::Number(number) => Self::try_from(number).map_err(|_| OtherType);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: TryFrom<OptionValue>>(kind: OptionKind, text: &str) -> Result<T, String> {
        OptionRow::new("x", kind, "").parse(Standard::ResourceAgent, text)
    }

    #[test]
    fn a_number_keeps_to_its_range() {
        let kind = OptionKind::Integer(-3, 5);
        for (text, number) in [("-3", -3), ("0", 0), ("5", 5), ("+4", 4)] {
            assert_eq!(read(kind, text), Ok(number), "{text}");
        }
        for text in ["-4", "6", "", " 1", "1.0", "1e0", "0x1", "99999999999999999999", "1s"] {
            assert_eq!(read::<i32>(kind, text), Err(format!("x={text} is not a whole number from -3 to 5")));
        }
        assert!(read::<u16>(kind, "-1").unwrap_err().contains("is not a whole number"), "for its type, too");
    }

    #[test]
    fn lists_have_their_separators() {
        assert_eq!(read(OptionKind::Words, " a  b=c "), Ok(vec!["a".to_owned(), "b=c".to_owned()]));
        assert_eq!(read(OptionKind::Paths, "/a, /b,,"), Ok(vec![PathBuf::from("/a"), PathBuf::from("/b")]));
        assert!(
            read::<Vec<PathBuf>>(OptionKind::Paths, "/a,b").unwrap_err().starts_with("x=b is not an absolute path")
        );
    }

    #[test]
    fn a_choice_is_the_one_of_the_table() {
        let kind = OptionKind::OneOf(&["onoff", "cycle"]);
        assert_eq!(read(kind, "Cycle"), Ok("cycle".to_owned()));
        assert_eq!(read::<String>(kind, "wild"), Err("x=wild is not one of onoff, cycle".to_owned()));
    }

    #[test]
    fn a_directory_is_not_the_root() {
        assert_eq!(read(OptionKind::Directory, "/a"), Ok(PathBuf::from("/a")));
        for text in ["/", "//.", "/.."] {
            let refused = read::<PathBuf>(OptionKind::Directory, text).unwrap_err();
            assert!(refused.ends_with("is the root directory: give one such as /var/lib/etcd"), "{refused}");
        }
        for text in ["a", "", "/a:b", "/a\nb"] {
            assert!(read::<PathBuf>(OptionKind::Path, text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_value_is_no_value_of_another_type() {
        assert!(read::<bool>(OptionKind::Text, "1").is_err());
        assert_eq!(read::<bool>(OptionKind::Secret, "hunter2"), Err("x=... is not a text".to_owned()));
        assert!(read::<String>(OptionKind::Integer(0, 9), "1").is_err());
        assert!(read::<PathBuf>(OptionKind::Paths, "/a").is_err());
    }

    #[test]
    fn what_a_fence_agent_shows_of_a_value_is_short_and_in_one_line() {
        let row = OptionRow::new("delay", OptionKind::Seconds(0, 9), "");
        let said = row.parse::<u64>(Standard::FenceAgent, &format!("1\n{}", "s".repeat(100))).unwrap_err();
        assert_eq!(said, format!("delay='1{}' is not a whole number from 0 to 9", "s".repeat(39)));
    }
}
