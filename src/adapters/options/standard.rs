//! The two standards of agents, and everything in which they differ: meta-data, words and quotes.

use super::help::usage;
use super::yes_no;
use super::{OptionKind, OptionRow};
use crate::adapters::xml::Writer;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standard {
    /// The OCF resource-agent API 1.1.
    ResourceAgent,
    /// The fence agents' API, as their library `fencing.py.py` prints it. The meta-data has the elements of the OCF API, and each
    /// option's spelling on the command line. It has one description for each option, and declares old names as separate
    /// parameters.
    FenceAgent,
}

impl Standard {
    /// Parses a word for yes or no; `None` for any other word.
    pub(super) fn truth(self, word: &str) -> Option<bool> {
        match self {
            Self::ResourceAgent => yes_no::of_resource_agents(word),
            Self::FenceAgent => yes_no::of_fence_agents(word),
        }
    }

    /// Returns the part of a wrong value that an error text shows. A resource agent's parameters are no secrets, so the whole value is
    /// shown. A fence agent may get any text by mistake, so only the first 40 characters are shown.
    pub(super) fn shown(self, text: &str) -> String {
        match self {
            Self::ResourceAgent => text.to_owned(),
            Self::FenceAgent => {
                let start: String = text.chars().filter(|character| !character.is_control()).take(40).collect();
                format!("'{start}'")
            }
        }
    }

    /// Returns the name of the type that the meta-data declares for options of `kind`.
    pub(super) fn type_name(self, kind: OptionKind) -> &'static str {
        let is_fence = self == Self::FenceAgent;
        match kind {
            OptionKind::Seconds(..) if is_fence => "second",
            // The fencing library, too, declares an option that takes "true/false" on the command line as a string.
            OptionKind::Truth if is_fence => "string",
            OptionKind::Integer(..) | OptionKind::Seconds(..) => "integer",
            OptionKind::Switch | OptionKind::Truth => "boolean",
            // The schema of the resource agents in Debian 12 has no choices.
            OptionKind::OneOf(_) if !is_fence => "string",
            OptionKind::OneOf(_) => "select",
            OptionKind::Text
            | OptionKind::Secret
            | OptionKind::Words
            | OptionKind::Path
            | OptionKind::Paths
            | OptionKind::Directory => "string",
        }
    }

    /// Writes the elements of the meta-data that declare the option `row`.
    pub fn declare(self, xml: &mut Writer, row: &OptionRow) {
        self.parameter(xml, row, row.name, row.old.map(|old| ("obsoletes", old)));
        if let Some(old) = row.old {
            self.parameter(xml, row, old, Some(("deprecated", "1")));
        }
    }

    fn parameter(self, xml: &mut Writer, row: &OptionRow, name: &str, relation: Option<(&str, &str)>) {
        let mut attributes = vec![("name", name)];
        if self == Self::FenceAgent {
            // No option needs different values on two fence devices.
            attributes.push(("unique", "0"));
        }
        attributes.push(("required", if row.required { "1" } else { "0" }));
        if row.reloadable {
            attributes.push(("reloadable", "1"));
        }
        attributes.extend(relation);
        xml.open("parameter", &attributes);
        match self {
            Self::ResourceAgent => {
                xml.text("longdesc", &[("lang", "en")], row.long);
                xml.text("shortdesc", &[("lang", "en")], row.short);
                self.content(xml, row);
            }
            Self::FenceAgent => {
                xml.empty("getopt", &[("mixed", &usage(row))]);
                self.content(xml, row);
                xml.text("shortdesc", &[("lang", "en")], row.short);
            }
        }
        xml.close();
    }

    fn content(self, xml: &mut Writer, row: &OptionRow) {
        let mut content = vec![("type", self.type_name(row.kind))];
        content.extend(row.default.map(|default| ("default", default)));
        let choices = match row.kind {
            OptionKind::OneOf(choices) if self == Self::FenceAgent => choices,
            _ => &[],
        };
        if choices.is_empty() {
            xml.empty("content", &content);
            return;
        }
        xml.open("content", &content);
        for choice in choices {
            xml.empty("option", &[("value", choice)]);
        }
        xml.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: OptionRow = OptionRow::new("ip_port", OptionKind::Integer(1, 9), "Port")
        .old("ipport")
        .letter('u')
        .value("port")
        .default("4")
        .long("The port.");

    fn declared(standard: Standard, row: &OptionRow) -> String {
        let mut xml = Writer::document("");
        standard.declare(&mut xml, row);
        xml.finish().lines().skip(1).map(str::trim).collect()
    }

    #[test]
    fn a_resource_agent_describes_a_parameter_twice() {
        let row = OptionRow { old: None, reloadable: true, ..ROW };
        assert_eq!(
            declared(Standard::ResourceAgent, &row),
            "<parameter name=\"ip_port\" required=\"0\" reloadable=\"1\">\
             <longdesc lang=\"en\">The port.</longdesc><shortdesc lang=\"en\">Port</shortdesc>\
             <content type=\"integer\" default=\"4\" /></parameter>"
        );
    }

    #[test]
    fn a_fence_agent_says_how_an_option_is_typed_and_what_it_was_called() {
        let rest = "<getopt mixed=\"-u, --ip-port=[port]\" /><content type=\"integer\" default=\"4\" />\
                    <shortdesc lang=\"en\">Port</shortdesc></parameter>";
        let [new, old] = [("ip_port", "obsoletes=\"ipport\""), ("ipport", "deprecated=\"1\"")]
            .map(|(name, more)| format!("<parameter name=\"{name}\" unique=\"0\" required=\"0\" {more}>{rest}"));
        assert_eq!(declared(Standard::FenceAgent, &ROW), format!("{new}{old}"));
    }

    #[test]
    fn choices_are_listed() {
        let row = OptionRow { kind: OptionKind::OneOf(&["a", "b"]), default: Some("b"), ..ROW };
        let choices = "<content type=\"select\" default=\"b\"><option value=\"a\" /><option value=\"b\" /></content>";
        assert!(declared(Standard::FenceAgent, &row).contains(choices));
        let text = "<content type=\"string\" default=\"b\" />";
        assert!(declared(Standard::ResourceAgent, &row).contains(text), "{}", declared(Standard::ResourceAgent, &row));
    }
}
