//! The agent's descriptions of itself, from the table of options: metadata for Pacemaker and pcs, help and a man page for people.

use roff::{bold, line_break, roman};

use super::config::ACTIONS;
use super::options::rows;
use crate::adapters::options::help;
use crate::adapters::options::manpage::Page;
use crate::adapters::options::standard::Standard;
use crate::adapters::xml::Writer;

const NAME: &str = "fence_redfish_rs";
const SHORT: &str = "I/O Fencing agent for Redfish";
const LONG: &str = "fence_redfish_rs is an I/O Fencing agent which can be used with Out-of-Band controllers that support \
    Redfish APIs. These controllers provide remote access to control power on a server. It takes the options of \
    fence_redfish. A node counts as fenced only when the controller has reported twice that the system is off.";

/// Returns the metadata that the fencer, pcs and stonith_admin read.
pub fn metadata() -> String {
    let mut xml = Writer::document("");
    xml.open("resource-agent", &[("name", NAME), ("shortdesc", SHORT)]);
    xml.text("longdesc", &[], LONG);
    xml.text("vendor-url", &[], "https://www.dmtf.org/standards/redfish");
    xml.open("parameters", &[]);
    for row in rows().filter(|row| !row.for_people) {
        Standard::FenceAgent.declare(&mut xml, row);
    }
    xml.close();
    xml.open("actions", &[]);
    for (name, _, declared) in ACTIONS {
        if *declared {
            // A power fence agent does not unfence, so "on" never runs by itself when a node joins.
            let automatic = [("name", *name), ("automatic", "0")];
            xml.empty("action", if *name == "on" { &automatic } else { &automatic[..1] });
        }
    }
    xml.finish()
}

/// Returns the text that the option `-h` prints.
pub fn help() -> String {
    let mut text = format!("Usage:\n\t{NAME} [options]\nOptions:\n{}", help::list(rows()));
    text.push_str("Without any option, key=value lines are read from standard input.\n");
    text
}

/// Returns the source of the man page. `fence_redfish_rs -o manpage | man -l -` shows it.
pub fn manpage() -> String {
    let mut page = Page::new(NAME, "8", "Fence agents", SHORT);
    page.section("SYNOPSIS").text([bold(NAME), roman(" [options]")]);
    page.text([line_break(), bold(NAME), roman(" < key=value lines")]);
    page.section("DESCRIPTION").text([roman(LONG)]);
    page.section("OPTIONS");
    page.text([roman("Each option is given on the command line, or by its name on standard input.")]);
    page.options(Standard::FenceAgent, rows());
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

fn what_it_does(action: &str) -> &'static str {
    match action {
        "on" => "Powers the system on, and waits until it reports On.",
        "off" => "Powers the system off by force, and succeeds when it has reported Off twice, a second apart.",
        "reboot" => "Powers the system off as above, then on. Succeeds once Off is proven, even if powering on fails.",
        "status" => "Prints whether the system is on.",
        "list" => "Lists the id and name of each system behind the BMC that can be reset.",
        "list-status" => "Lists the same, with the power state of each system.",
        "monitor" => "Proves that fencing would work: login, the right system, its power state, its Reset action.",
        "metadata" => "Prints the metadata that Pacemaker reads.",
        "manpage" => "Prints the source of this page.",
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
        for row in rows() {
            // Readers of the metadata write its options into a fence device.
            for text in &texts[usize::from(row.for_people)..] {
                assert!(text.contains(&format!("--{}", row.long_option())), "{} in {text}", row.name);
            }
            assert_eq!(texts[0].contains(&format!("name=\"{}\"", row.name)), !row.for_people, "{}", row.name);
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
