//! Exchange of the collected facts between the nodes, as a private node attribute. Pacemaker writes such an attribute to no CIB and runs
//! no scheduler for it. The attribute disappears when the node's Pacemaker stops.

use std::collections::BTreeMap;
use std::time::Duration;

use roxmltree::Document;
use serde_json::Value;

use super::Collected;
use super::error::NotPublished;
use crate::adapters::command::{Output, Programs};
use crate::adapters::pace::limits::Limits;
use crate::adapters::pacemaker::exit_code::{DISCONNECTED, NO_ATTRIBUTE};
use crate::base::{Fact, json};
use crate::os::clock;
use crate::records::events::cut;

/// Name of the private node attribute with the facts of a node.
const NAME: &str = "tandem-collected";
/// Largest size of the attribute's value, in bytes. A larger value is shortened, because it is passed as an argument and goes through
/// Corosync.
const LIMIT: usize = 48 * 1024;

/// Longest text in a published value, in bytes.
const TEXT_LIMIT: usize = 1024;
/// Largest number in a published value, 2^53. JSON readers represent integers up to this one exactly.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Largest accepted difference between the clocks of two nodes, in seconds.
const CLOCKS_DIFFER: u64 = 3_600;

/// Time limit for writing the attribute. A shorter limit would keep a slow emulated machine from ever publishing, and no caller is in a
/// hurry.
const FOR_A_WRITE: Duration = Duration::from_secs(10);

/// Publishes `collected` as the facts of this node.
pub fn publish(programs: &Programs, collected: &Collected) -> Result<(), NotPublished> {
    let value = value(collected).map_err(NotPublished)?;
    let arguments = ["--private", "--name", NAME, "--update", &value];
    match programs.run("attrd_updater", &arguments, FOR_A_WRITE) {
        Ok(output) if output.code == 0 => Ok(()),
        Ok(output) => Err(NotPublished(output.complaint().to_owned())),
        Err(error) => Err(NotPublished(error.to_string())),
    }
}

/// Serializes the facts as JSON. If the text is too large, halves the longest lists until it fits.
fn value(collected: &Collected) -> Result<String, String> {
    let mut collected = collected.clone();
    loop {
        let value = serde_json::to_string(&collected).map_err(|error| error.to_string())?;
        if value.len() <= LIMIT {
            return Ok(value);
        }
        let longest = collected.moved_aside.len().max(collected.bmcs.len()).max(collected.certificates.len());
        if longest == 0 {
            return Err(format!("it has {} bytes", value.len()));
        }
        collected.moved_aside.truncate(longest / 2);
        collected.bmcs.truncate(longest / 2);
        collected.certificates.truncate(longest / 2);
    }
}

/// Queries the facts that all nodes have published.
pub(super) fn ask(programs: &Programs, limits: &Limits) -> Fact<BTreeMap<String, Fact<Collected>>> {
    let arguments = ["--query", "--all", "--name", NAME, "--output-as=xml"];
    match programs.run("attrd_updater", &arguments, limits.attributes) {
        Ok(output) => read(&output, clock::wall_seconds()),
        Err(error) => Fact::Unknown(error.to_string()),
    }
}

fn read(output: &Output, now: u64) -> Fact<BTreeMap<String, Fact<Collected>>> {
    match output.code {
        0 => parse(&output.stdout, now).map_or_else(Fact::Unknown, Fact::Known),
        DISCONNECTED => Fact::Absent,
        code if NO_ATTRIBUTE.contains(&code) => Fact::Known(BTreeMap::new()),
        code => Fact::Unknown(format!("attrd_updater failed ({code}): {}", output.complaint())),
    }
}

/// Parses the facts that a node published. Any member of Pacemaker's group can write them, so texts are cut and cleaned, and numbers must
/// be exact. A time in the future is refused, because such facts would never become old.
fn understood(value: &str, now: u64) -> Result<Collected, String> {
    if value.len() > LIMIT {
        return Err(format!("it has {} bytes", value.len()));
    }
    let mut value: Value = json::from_text(value).map_err(|error| error.to_string())?;
    clean(&mut value)?;
    let collected: Collected = json::from_value(&value).map_err(|error| error.to_string())?;
    match collected.at.checked_sub(now) {
        Some(ahead) if ahead > CLOCKS_DIFFER => Err(format!("it is {ahead} s ahead of this node's clock")),
        _ => Ok(collected),
    }
}

fn clean(value: &mut Value) -> Result<(), String> {
    match value {
        Value::Null | Value::Bool(_) => Ok(()),
        Value::Number(number) => match number.as_f64() {
            Some(number) if number.abs() <= EXACT => Ok(()),
            _ => Err(format!("{number} is too large")),
        },
        Value::String(text) => {
            *text = cut(std::mem::take(text), TEXT_LIMIT);
            Ok(())
        }
        Value::Array(values) => values.iter_mut().try_for_each(clean),
        Value::Object(fields) => {
            *fields = std::mem::take(fields).into_iter().map(|(key, value)| (cut(key, TEXT_LIMIT), value)).collect();
            fields.values_mut().try_for_each(clean)
        }
    }
}

/// Parses the XML of `attrd_updater`. It has an `<attribute name="tandem-collected" host="node1" value="{...}"/>` for each node. A
/// deleted attribute has an empty value.
fn parse(xml: &str, now: u64) -> Result<BTreeMap<String, Fact<Collected>>, String> {
    let document = Document::parse(xml).map_err(|error| error.to_string())?;
    let attributes = document.descendants().filter(|element| element.attribute("name") == Some(NAME));
    let of_node = |element: roxmltree::Node<'_, '_>| {
        let value = element.attribute("value").filter(|value| !value.is_empty());
        let collected = match value.map(|value| understood(value, now)) {
            None => Fact::Absent,
            Some(Ok(collected)) => Fact::Known(collected),
            Some(Err(error)) => Fact::Unknown(format!("what its collector published is not understood: {error}")),
        };
        Some((element.attribute("host")?.to_owned(), collected))
    };
    Ok(attributes.filter_map(of_node).collect())
}

#[cfg(test)]
mod tests {
    use super::super::MovedAside;
    use super::*;

    const NOW: u64 = 1_795_444_435;

    fn output(code: i32, stdout: &str) -> Output {
        Output { code, stdout: stdout.to_owned(), stderr: String::new() }
    }

    #[test]
    fn what_was_published_is_read_of_each_node() {
        let collected = Collected { at: 7, tandem: "0.1.0 \"<&>\"".to_owned(), ..Collected::default() };
        let value = crate::adapters::xml::escape(&value(&collected).unwrap());
        let xml = format!(
            "<pacemaker-result><attribute name=\"{NAME}\" value=\"{value}\" host=\"node1\"/>\
             <attribute name=\"{NAME}\" value=\"\" host=\"node2\"/><attribute name=\"{NAME}\" value=\"7\" host=\"node3\"/>\
             <status code=\"0\" message=\"OK\"/></pacemaker-result>"
        );
        let Fact::Known(read) = read(&output(0, &xml), NOW) else { panic!("{xml}") };
        assert_eq!((&read["node1"], &read["node2"]), (&Fact::Known(collected), &Fact::Absent));
        assert!(matches!(read["node3"], Fact::Unknown(_)));
    }

    #[test]
    fn nobody_published_is_known_and_no_answer_is_not() {
        for code in NO_ATTRIBUTE {
            assert_eq!(read(&output(code, ""), NOW), Fact::Known(BTreeMap::new()));
        }
        assert_eq!(read(&output(DISCONNECTED, ""), NOW), Fact::Absent);
        assert!(matches!(read(&output(1, ""), NOW), Fact::Unknown(_)));
        assert!(matches!(read(&output(0, "<half"), NOW), Fact::Unknown(_)));
    }

    /// Asserts that published facts are cleaned or refused if they may do harm. Every member of Pacemaker's group can publish them,
    /// because Pacemaker checks no rights for private attributes.
    #[test]
    fn what_a_stranger_published_is_cleaned_or_refused() {
        let value =
            r#"{"tandem": "\u001b[2J1\u202e", "enabled": {"pcsd\u0007": true}, "free_bytes": 9007199254740992}"#;
        let collected = understood(value, NOW).unwrap();
        assert_eq!((collected.tandem.as_str(), collected.enabled["pcsd "]), (" [2J1 ", true));
        for large in ["9007199254740994", "18446744073709551615", "-9223372036854775808", "1e300"] {
            let value = format!(r#"{{"moved_aside": [{{"bytes": 1}}, {{"bytes": {large}}}]}}"#);
            assert!(understood(&value, NOW).is_err(), "{large}");
        }
        assert!(understood(&format!(r#"{{"tandem": "{}"}}"#, "x".repeat(LIMIT)), NOW).is_err());
        let at = |at: u64| understood(&format!(r#"{{"at": {at}}}"#), NOW);
        assert!(at(NOW + CLOCKS_DIFFER).is_ok() && at(NOW + CLOCKS_DIFFER + 1).is_err(), "it would never become old");
    }

    #[test]
    fn what_is_too_much_is_cut_where_it_is_a_list() {
        let aside = MovedAside { path: "/var/lib/etcd/member-backup-".to_owned() + &"1".repeat(200), at: 1, bytes: 1 };
        let many = Collected { at: 7, moved_aside: vec![aside; 1_000], ..Collected::default() };
        let value = value(&many).unwrap();
        let read: Collected = serde_json::from_str(&value).unwrap();
        assert!(value.len() <= LIMIT && read.at == 7 && read.moved_aside.len() > 100);
        let endless = Collected { tandem: "x".repeat(LIMIT), ..Collected::default() };
        assert!(super::value(&endless).is_err());
    }
}
