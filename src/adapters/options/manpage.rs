//! The man page of an agent: the parts that all agents have, for the tables with their contents.

use roff::{Inline, Roff, bold, italic, roman};

use super::help::{meaning, usage};
use super::standard::Standard;
use super::{OptionKind, OptionRow};

/// A man page in roff to which sections are added.
#[derive(Debug)]
pub struct Page(Roff);

impl Page {
    /// Creates the man page `name(section)` of the manual `manual`, with its section NAME. `short` is the description in that
    /// section.
    pub fn new(name: &str, section: &str, manual: &str, short: &str) -> Self {
        let mut roff = Roff::new();
        let version = concat!("tandem ", env!("CARGO_PKG_VERSION"));
        // The date is an empty argument, because the version is more informative.
        roff.control("TH", [name.to_uppercase().as_str(), section, "\"\"", version, manual]);
        let mut page = Self(roff);
        page.section("NAME").text([roman(format!("{name} - {short}"))]);
        page
    }

    pub fn section(&mut self, title: &str) -> &mut Self {
        self.0.control("SH", [title]);
        self
    }

    /// Adds text to the current paragraph.
    pub fn text(&mut self, words: impl Into<Vec<Inline>>) -> &mut Self {
        self.0.text(words);
        self
    }

    /// Adds lines that `man` shows as they are, without joining them.
    pub fn lines(&mut self, lines: &str) -> &mut Self {
        self.0.control("nf", []).text([roman(lines)]).control("fi", []);
        self
    }

    /// Begins an entry of a list, with `term` as its heading.
    pub fn entry(&mut self, term: impl Into<Vec<Inline>>) -> &mut Self {
        self.0.control("TP", []).text(term);
        self
    }

    /// Adds an entry for each option. An entry for a resource agent has the parameter's type and its long description. An entry
    /// for a fence agent has the option's spelling on the command line, and its name on standard input.
    pub fn options<'a>(&mut self, standard: Standard, rows: impl IntoIterator<Item = &'a OptionRow>) -> &mut Self {
        for row in rows {
            match standard {
                Standard::ResourceAgent => self.parameter(standard, row),
                Standard::FenceAgent => self.option(row),
            };
        }
        self
    }

    fn parameter(&mut self, standard: Standard, row: &OptionRow) -> &mut Self {
        let kind = standard.type_name(row.kind);
        let remark = match (row.required, row.default) {
            (true, _) => format!("{kind}, required"),
            (false, Some(default)) => format!("{kind}, default {default}"),
            (false, None) => kind.to_owned(),
        };
        self.entry([bold(row.name), roman(format!(" ({remark})"))]).text([roman(row.long)])
    }

    fn option(&mut self, row: &OptionRow) -> &mut Self {
        self.entry([bold(usage(row))]).text(explanation(row));
        if let OptionKind::OneOf(choices) = row.kind {
            self.text([roman(format!("One of {}.", choices.join(", ")))]);
        }
        self
    }

    /// Adds the section SEE ALSO, with the names and sections of other man pages.
    pub fn see_also(&mut self, pages: &[(&str, u8)]) -> &mut Self {
        self.section("SEE ALSO");
        for (at, (name, section)) in pages.iter().enumerate() {
            let comma = if at + 1 < pages.len() { "," } else { "" };
            self.text([bold(*name), roman(format!("({section}){comma}"))]);
        }
        self
    }

    /// Returns the roff of the page, which begins with the heading (`.TH`). Programs that parse the man page of `fence_redfish`
    /// expect that.
    pub fn finish(&self) -> String {
        // `man` shows a plain apostrophe as a curved one, which no shell accepts. The crate's own escape defines a string first,
        // which would come before the heading.
        self.0.to_roff().replace('\'', "\\(aq")
    }
}

/// Returns the short description of an option, and its name on standard input.
fn explanation(row: &OptionRow) -> Vec<Inline> {
    let meaning = meaning(row);
    let meaning = meaning.trim_end_matches('.');
    if row.for_people {
        return vec![roman(format!("{meaning}. On the command line only."))];
    }
    let old = row.old.map(|old| format!(" (formerly {old})")).unwrap_or_default();
    vec![roman(format!("{meaning}. On standard input: ")), italic(row.name), roman(format!("{old}."))]
}
