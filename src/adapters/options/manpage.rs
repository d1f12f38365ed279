//! The man page of an agent: the parts that all of them have, for the tables that say what is in them.

use roff::{Inline, Roff, bold, italic, roman};

use super::help::{meaning, usage};
use super::standard::Standard;
use super::{OptionKind, OptionRow};

/// A page in the making.
#[derive(Debug)]
pub struct Page(Roff);

impl Page {
    /// The page `name(section)` of a manual, up to its section NAME.
    pub fn new(name: &str, section: &str, manual: &str, short: &str) -> Self {
        let mut roff = Roff::new();
        let version = concat!("tandem ", env!("CARGO_PKG_VERSION"));
        // An empty argument stands for the date: the version says more.
        roff.control("TH", [name.to_uppercase().as_str(), section, "\"\"", version, manual]);
        let mut page = Self(roff);
        page.section("NAME").text([roman(format!("{name} - {short}"))]);
        page
    }

    /// Begins a section.
    pub fn section(&mut self, title: &str) -> &mut Self {
        self.0.control("SH", [title]);
        self
    }

    /// Goes on in the paragraph.
    pub fn text(&mut self, words: impl Into<Vec<Inline>>) -> &mut Self {
        self.0.text(words);
        self
    }

    /// Lines that stay as they are.
    pub fn lines(&mut self, lines: &str) -> &mut Self {
        self.0.control("nf", []).text([roman(lines)]).control("fi", []);
        self
    }

    /// Begins an entry of a list.
    pub fn entry(&mut self, term: impl Into<Vec<Inline>>) -> &mut Self {
        self.0.control("TP", []).text(term);
        self
    }

    /// An entry for each option, as pages of the standard have it: a parameter with its type and its long description, or an
    /// option as it is typed, with the name that a fence device gives it.
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

    /// The other pages to read, with their sections.
    pub fn see_also(&mut self, pages: &[(&str, u8)]) -> &mut Self {
        self.section("SEE ALSO");
        for (at, (name, section)) in pages.iter().enumerate() {
            let comma = if at + 1 < pages.len() { "," } else { "" };
            self.text([bold(*name), roman(format!("({section}){comma}"))]);
        }
        self
    }

    /// As `man` reads it, from the heading on, as programs expect that know the page of `fence_redfish`.
    pub fn finish(&self) -> String {
        // A plain apostrophe is a curved one on the screen, which no shell takes. The crate's own way, a string that is
        // defined first, would stand before the heading.
        self.0.to_roff().replace('\'', "\\(aq")
    }
}

/// What an option is for, and how it is given to a fence device.
fn explanation(row: &OptionRow) -> Vec<Inline> {
    let meaning = meaning(row);
    let meaning = meaning.trim_end_matches('.');
    if row.for_people {
        return vec![roman(format!("{meaning}. On the command line only."))];
    }
    let old = row.old.map(|old| format!(" (formerly {old})")).unwrap_or_default();
    vec![roman(format!("{meaning}. On standard input: ")), italic(row.name), roman(format!("{old}."))]
}
