//! Reads values from a TOML table and collects faults.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Fault, nearest};

/// A range of bytes in the description file.
pub(super) type At = Range<usize>;
/// A string of the description file with its place.
pub(super) type Placed = (String, At);

/// A table of the description file, with its name: "" for the top level, or such as "etcd" and "node 1".
pub(super) struct Section<'a, 'i> {
    name: String,
    at: At,
    table: &'a DeTable<'i>,
}

impl<'a, 'i> Section<'a, 'i> {
    pub(super) fn new(name: &str, at: At, table: &'a DeTable<'i>) -> Self {
        Self { name: name.to_owned(), at, table }
    }

    pub(super) fn at(&self) -> At {
        // The fault points to the table's header, because an operator looks for that.
        self.at.start..self.at.start
    }

    pub(super) fn get(&self, key: &str) -> Option<&'a Spanned<DeValue<'i>>> {
        self.table.get(key)
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = (&str, At)> {
        self.table.keys().map(|key| (key.get_ref().as_ref(), key.span()))
    }

    fn of_it(&self) -> String {
        if self.name.is_empty() { String::new() } else { format!(" of {}", self.name) }
    }
}

/// The text of the description file, and the faults found so far.
pub(super) struct Reader<'t> {
    text: &'t str,
    faults: Vec<Fault>,
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, faults: Vec::new() }
    }

    pub(super) fn is_faulty(&self) -> bool {
        !self.faults.is_empty()
    }

    pub(super) fn into_faults(mut self) -> Vec<Fault> {
        self.faults.sort();
        self.faults.dedup();
        self.faults
    }

    pub(super) fn fault(&mut self, at: At, text: String) {
        let before = self.text.get(..at.start).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        self.faults.push(Fault { line, column, text });
    }

    /// Adds a fault for each key of `section` that is not in `known`.
    pub(super) fn known(&mut self, section: &Section<'_, '_>, known: &[&'static str]) {
        for (key, at) in section.keys().filter(|(key, _)| !known.contains(key)) {
            let near = nearest::of(key, known.iter().copied());
            let instead = near
                .map_or_else(|| format!("known here are {}", known.join(", ")), |near| format!("did you mean {near}?"));
            self.fault(at, format!("'{}' is no setting{}: {instead}", shown(key), section.of_it()));
        }
    }

    /// Returns the string of a required key. Adds a fault and returns `None` if it is missing or no string.
    pub(super) fn text(&mut self, section: &Section<'_, '_>, key: &str) -> Option<Placed> {
        let found = self.text_if_any(section, key)?;
        if found.is_none() {
            self.fault(section.at(), format!("{key}{} is missing: write {key} = \"...\"", section.of_it()));
        }
        found
    }

    /// Returns the string of an optional key; `Some(None)` if the key is missing. Adds a fault and returns `None` if
    /// the value is no string.
    #[expect(clippy::option_option, reason = "wrong, not there, there")]
    pub(super) fn text_if_any(&mut self, section: &Section<'_, '_>, key: &str) -> Option<Option<Placed>> {
        let Some(value) = section.get(key) else { return Some(None) };
        let at = value.span();
        match value.get_ref() {
            DeValue::String(text) if text.contains(char::is_control) => {
                self.fault(at, format!("{key} has a control character or a line break in it: leave that out"));
                None
            }
            DeValue::String(text) => Some(Some((text.trim().to_owned(), at))),
            other => {
                self.fault(at, format!("{key} is {}: write a text, {key} = \"...\"", kind_of(other)));
                None
            }
        }
    }

    /// Returns a required table. Adds a fault and returns `None` if it is missing or no table.
    pub(super) fn table<'a, 'i>(&mut self, section: &Section<'a, 'i>, key: &str) -> Option<Section<'a, 'i>> {
        let found = self.table_if_any(section, key)?;
        if found.is_none() {
            let header = if section.name.is_empty() { format!("[{key}]") } else { format!("[node.{key}]") };
            self.fault(section.at(), format!("{key}{} is missing: write a table {header}", section.of_it()));
        }
        found
    }

    /// Returns an optional table; `Some(None)` if it is missing. Adds a fault and returns `None` if the value is no
    /// table.
    #[expect(clippy::option_option, reason = "wrong, not there, there")]
    pub(super) fn table_if_any<'a, 'i>(
        &mut self,
        section: &Section<'a, 'i>,
        key: &str,
    ) -> Option<Option<Section<'a, 'i>>> {
        let Some(value) = section.get(key) else { return Some(None) };
        let name = if section.name.is_empty() { key.to_owned() } else { format!("{}'s {key}", section.name) };
        match value.get_ref() {
            DeValue::Table(table) => Some(Some(Section::new(&name, value.span(), table))),
            other => {
                self.fault(value.span(), format!("{key} is {}: write a table", kind_of(other)));
                None
            }
        }
    }

    /// Returns each key of `section` with its value as text and its place. Adds a fault for a value that is no string,
    /// whole number or boolean.
    pub(super) fn scalars(&mut self, section: &Section<'_, '_>) -> Vec<(String, String, At)> {
        let mut found = Vec::new();
        for (key, value) in section.table {
            let text = match value.get_ref() {
                DeValue::String(text) => text.trim().to_owned(),
                DeValue::Boolean(truth) => truth.to_string(),
                DeValue::Integer(number) if number.radix() == 10 => number.as_str().replace('_', ""),
                other => {
                    let text =
                        format!("{} is {}: write a text or a whole number", shown(key.get_ref()), kind_of(other));
                    self.fault(value.span(), text);
                    continue;
                }
            };
            if text.contains(char::is_control) {
                let text =
                    format!("{} has a control character or a line break in it: leave that out", shown(key.get_ref()));
                self.fault(value.span(), text);
                continue;
            }
            found.push((key.get_ref().to_string(), text, value.span()));
        }
        // The faults must come in the file's order, which the table may not keep.
        found.sort_by_key(|(.., at)| at.start);
        found
    }
}

/// Returns a word of the description file for a message: without control characters, and at most 60 letters.
pub(super) fn shown(word: &str) -> String {
    word.chars().filter(|letter| !letter.is_control()).take(60).collect()
}

pub(super) fn kind_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
