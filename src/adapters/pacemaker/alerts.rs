//! The alerts in the cluster's configuration, and the recipients that their agents are called for.

use roxmltree::{Document, Node};

use super::exit_code::NO_SUCH;
use super::{Error, run};
use crate::adapters::command::Programs;

/// Returns the recipients of all alerts in the CIB with an agent's path that `is_ours` accepts. Returns `None` if there is no such alert,
/// and an empty list if no such alert has a recipient.
pub fn recipients(programs: &Programs, is_ours: fn(&str) -> bool) -> Result<Option<Vec<String>>, Error> {
    match run(programs, "cibadmin", &["--query", "--scope", "alerts"]) {
        Ok(xml) => parse(&xml, is_ours),
        // The CIB has no section of alerts.
        Err(Error::Tool { code: NO_SUCH, .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn parse(xml: &str, is_ours: fn(&str) -> bool) -> Result<Option<Vec<String>>, Error> {
    let document = Document::parse(xml).map_err(|error| Error::Parse(error.to_string()))?;
    let is_alert = |node: &Node<'_, '_>| node.has_tag_name("alert") && node.attribute("path").is_some_and(is_ours);
    let alerts: Vec<Node<'_, '_>> = document.descendants().filter(is_alert).collect();
    let recipients = alerts.iter().flat_map(Node::children).filter(|node| node.has_tag_name("recipient"));
    let mut values: Vec<String> = Vec::new();
    for value in recipients.filter_map(|node| node.attribute("value")) {
        if !values.iter().any(|known| known == value) {
            values.push(value.to_owned());
        }
    }
    Ok((!alerts.is_empty()).then_some(values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recipients_of_our_alert_are_taken_and_no_others() {
        let xml = r#"<alerts><alert id="tandem" path="/usr/libexec/tandem/alert"><select id="s"/>
            <recipient id="r1" value="journal"/><recipient id="r2" value="https://h/x"/>
            <recipient id="r3" value="journal"/></alert>
            <alert id="smtp" path="/usr/share/pacemaker/alerts/alert_smtp.sh"><recipient id="r4" value="a@b"/></alert></alerts>"#;
        let ours = |path: &str| path.ends_with("/tandem/alert");
        assert_eq!(parse(xml, ours).unwrap(), Some(vec!["journal".to_owned(), "https://h/x".to_owned()]));
        assert_eq!(parse("<alerts/>", ours).unwrap(), None);
        assert!(parse("<alerts>", ours).is_err());
    }
}
