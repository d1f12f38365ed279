//! The man page of an agent: the parts that all agents have, for the tables with their contents.

use roff::{Inline, Roff, bold, italic, roman};

use super::help::{meaning, usage};
use super::standard::Standard;
use super::{OptionKind, OptionRow};

/// A man page under construction.
#[derive(Debug)]
pub struct Page(Roff);

impl Page {
    /// Starts the page `name(section)` of a manual, and ends in its section NAME.
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

    /// Adds text to the present paragraph.
    pub fn text(&mut self, words: impl Into<Vec<Inline>>) -> &mut Self {
        self.0.text(words);
        self
    }

    /// Adds lines that are not filled.
    pub fn lines(&mut self, lines: &str) -> &mut Self {
        self.0.control("nf", []).text([roman(lines)]).control("fi", []);
        self
    }

    /// Begins an entry of a list.
    pub fn entry(&mut self, term: impl Into<Vec<Inline>>) -> &mut Self {
        self.0.control("TP", []).text(term);
        self
    }

    /// Adds an entry for each option, in the form of the standard. A parameter has its type and its long description. An option
    /// has its spelling on the command line, and its name for a fence device.
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

    /// Adds the other pages to read, with their sections.
    pub fn see_also(&mut self, pages: &[(&str, u8)]) -> &mut Self {
        self.section("SEE ALSO");
        for (at, (name, section)) in pages.iter().enumerate() {
            let comma = if at + 1 < pages.len() { "," } else { "" };
            self.text([bold(*name), roman(format!("({section}){comma}"))]);
        }
        self
    }

    /// Returns the page for `man`, from the heading on. Programs that parse the page of `fence_redfish` expect this.
    pub fn finish(&self) -> String {
        // `man` shows a plain apostrophe as a curved one, which no shell accepts. The crate's own escape defines a string first,
        // which would come before the heading.
        self.0.to_roff().replace('\'', "\\(aq")
    }
}

/// Returns an option's description, and its name for a fence device.
fn explanation(row: &OptionRow) -> Vec<Inline> {
    let meaning = meaning(row);
    let meaning = meaning.trim_end_matches('.');
    if row.for_people {
        return vec![roman(format!("{meaning}. On the command line only."))];
    }
    let old = row.old.map(|old| format!(" (formerly {old})")).unwrap_or_default();
    vec![roman(format!("{meaning}. On standard input: ")), italic(row.name), roman(format!("{old}."))]
}
