//! What the agent says about itself: metadata for Pacemaker and pcs, help and a man page for people. All from the table.

use std::fmt::Write as _;

use roff::{Inline, bold, italic, line_break, roman};

use super::config::ACTIONS;
use super::options::{OPTIONS, OptionKind, Row};
use crate::options::manpage::Page;
use crate::xml::Writer;

const NAME: &str = "fence_redfish_rs";
const SHORT: &str = "I/O Fencing agent for Redfish";
const LONG: &str = "fence_redfish_rs is an I/O Fencing agent which can be used with Out-of-Band controllers that support \
    Redfish APIs. These controllers provide remote access to control power on a server. It takes the options of \
    fence_redfish. A node counts as fenced only when the controller says twice that the system is off.";

/// The metadata that the fencer, pcs and stonith_admin read.
pub fn metadata() -> String {
    let mut xml = Writer::document("");
    xml.open("resource-agent", &[("name", NAME), ("shortdesc", SHORT)]);
    xml.text("longdesc", &[], LONG);
    xml.text("vendor-url", &[], "https://www.dmtf.org/standards/redfish");
    xml.open("parameters", &[]);
    for row in OPTIONS.iter().filter(|row| !row.is_for_people()) {
        parameter(&mut xml, row, row.name, row.old.map(|old| ("obsoletes", old)));
        if let Some(old) = row.old {
            parameter(&mut xml, row, old, Some(("deprecated", "1")));
        }
    }
    xml.close();
    xml.open("actions", &[]);
    for (name, _, declared) in ACTIONS {
        if *declared {
            // A power fence agent is not for unfencing: "on" is never run on its own when a node joins.
            let automatic = [("name", *name), ("automatic", "0")];
            xml.empty("action", if *name == "on" { &automatic } else { &automatic[..1] });
        }
    }
    xml.finish()
}

fn parameter(xml: &mut Writer, row: &Row, name: &str, relation: Option<(&str, &str)>) {
    let mut attributes = vec![("name", name), ("unique", "0"), ("required", if row.required { "1" } else { "0" })];
    attributes.extend(relation);
    xml.open("parameter", &attributes);
    xml.empty("getopt", &[("mixed", &usage(row))]);
    let mut content = vec![("type", type_name(row.kind))];
    content.extend(row.default.map(|default| ("default", default)));
    match row.kind {
        OptionKind::Choice(choices) => {
            xml.open("content", &content);
            for choice in choices {
                xml.empty("option", &[("value", choice)]);
            }
            xml.close();
        }
        _ => {
            xml.empty("content", &content);
        }
    }
    xml.text("shortdesc", &[("lang", "en")], row.help);
    xml.close();
}

fn type_name(kind: OptionKind) -> &'static str {
    match kind {
        // The fencing library, too, calls what takes "true/false" on the command line a string.
        OptionKind::Text | OptionKind::Secret | OptionKind::Truth => "string",
        OptionKind::Integer => "integer",
        OptionKind::Seconds => "second",
        OptionKind::Flag => "boolean",
        OptionKind::Choice(_) => "select",
    }
}

fn usage(row: &Row) -> String {
    let value = if row.takes_value() { format!("=[{}]", row.value) } else { String::new() };
    let short = row.short.map(|letter| format!("-{letter}, ")).unwrap_or_default();
    format!("{short}--{}{value}", row.long())
}

/// What `-h` prints.
pub fn help() -> String {
    let mut text = format!("Usage:\n\t{NAME} [options]\nOptions:\n");
    for row in OPTIONS {
        let mut line = format!("   {:<34}", usage(row));
        for word in help_of(row).split(' ') {
            let start = line.rfind('\n').map_or(0, |at| at + 1);
            if line.len() - start + word.len() > 110 {
                let _ = write!(line, "\n{:<37}", "");
            }
            let _ = write!(line, " {word}");
        }
        text.push_str(&line);
        text.push('\n');
    }
    text.push_str("Without any option, key=value lines are read from standard input.\n");
    text
}

fn help_of(row: &Row) -> String {
    match row.default {
        Some(default) => format!("{} (Default: {default})", row.help),
        None => row.help.to_owned(),
    }
}

/// A man page: `fence_redfish_rs -o manpage | man -l -`.
pub fn manpage() -> String {
    let mut page = Page::new(NAME, "8", "Fence agents", SHORT);
    page.section("SYNOPSIS").text([bold(NAME), roman(" [options]")]);
    page.text([line_break(), bold(NAME), roman(" < key=value lines")]);
    page.section("DESCRIPTION").text([roman(LONG)]);
    page.section("OPTIONS");
    page.text([roman("Each option is given on the command line, or by its name on standard input.")]);
    for row in OPTIONS {
        page.entry([bold(usage(row))]).text(explanation(row));
        if let OptionKind::Choice(choices) = row.kind {
            page.text([roman(format!("One of {}.", choices.join(", ")))]);
        }
    }
    page.section("ACTIONS");
    for (name, _, _) in ACTIONS.iter().filter(|(_, _, declared)| *declared) {
        page.entry([bold(*name)]).text([roman(what_it_does(name))]);
    }
    page.section("EXIT STATUS");
    for (code, meaning) in EXIT_CODES {
        page.entry([roman(*code)]).text([roman(*meaning)]);
    }
    page.finish()
}

const EXIT_CODES: &[(&str, &str)] = &[
    ("0", "Done, and proven; for status: the system is on."),
    ("1", "Not done, or not known."),
    ("2", "status only: the system is off."),
];

/// What an option is for, and how it is given to a fence device.
fn explanation(row: &Row) -> Vec<Inline> {
    let help = help_of(row);
    let help = help.trim_end_matches('.');
    if row.is_for_people() {
        return vec![roman(format!("{help}. On the command line only."))];
    }
    let old = row.old.map(|old| format!(" (formerly {old})")).unwrap_or_default();
    vec![roman(format!("{help}. On standard input: ")), italic(row.name), roman(format!("{old}."))]
}

fn what_it_does(action: &str) -> &'static str {
    match action {
        "on" => "Powers the system on and waits until it says On.",
        "off" => "Powers the system off by force, and succeeds when it has said Off twice, a second apart.",
        "reboot" => "Off as above, then on. Once Off is proven it succeeds, also where powering on fails.",
        "status" => "Says whether the system is on.",
        "list" => "Lists the systems behind the BMC that can be reset: id and name.",
        "list-status" => "As list, with the power state of each.",
        "monitor" => "Proves that fencing would work: login, the right system, its power state, its Reset action.",
        "metadata" => "Prints what Pacemaker has to know about this agent.",
        "manpage" => "Prints this page.",
        "validate-all" => "Checks the options without asking the BMC.",
        "diag" => "Sends a non-maskable interrupt, which makes most operating systems dump their memory.",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_is_in_every_text() {
        let texts = [metadata(), help(), manpage().replace("\\-", "-")];
        for row in OPTIONS {
            // Who reads the metadata writes them into a fence device.
            for text in &texts[usize::from(row.is_for_people())..] {
                assert!(text.contains(&format!("--{}", row.long())), "{} in {text}", row.name);
            }
            assert_eq!(texts[0].contains(&format!("name=\"{}\"", row.name)), !row.is_for_people(), "{}", row.name);
        }
    }

    #[test]
    fn every_action_is_described() {
        for (name, _, declared) in ACTIONS {
            assert!(!declared || !what_it_does(name).is_empty(), "{name}");
        }
    }

    #[test]
    fn on_is_never_automatic() {
        assert!(metadata().contains("<action name=\"on\" automatic=\"0\" />"));
        assert_eq!(metadata().matches("automatic").count(), 1);
    }
}
