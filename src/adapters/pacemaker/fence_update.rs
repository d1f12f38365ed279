//! New values for options of a fence device, in one write of the CIB.
//!
//! Not by `pcs stonith update`: it takes values as arguments only, where each user of the machine can read a password, and a
//! user with its password, or an address with its certificate, must change in the same moment. The fencer takes the device as it
//! is in the CIB, so that there is none in which it has half of a change.
//!
//! A write of the configuration ends a transition that is under way, and Pacemaker's controller then logs the first thing that
//! the write changes, in the order of the CIB, with the value of an `nvpair` (`abort_transition_graph`). So a property of the
//! cluster, which stands before all resources, changes in the same write: it is in the journal, and the password is not.

use roxmltree::{Document, Node};
use zeroize::Zeroizing;

use super::attributes::FENCING_UPDATED;
use super::{Error, run};
use crate::adapters::command::Programs;
use crate::adapters::pace::Question;
use crate::adapters::xml::escape;
use crate::os::clock;

const MODIFY: [&str; 4] = ["--modify", "--scope", "configuration", "--xml-pipe"];
/// The set of the property that says when this was done, and nothing else.
const SET: &str = "tandem-fencing-update";
/// What the same option was called before: the CIB keeps the name that it has.
const OLD_NAMES: [(&str, &str); 3] = [("ip", "ipaddr"), ("username", "login"), ("password", "passwd")];

/// What an option of a fence device was called before.
pub fn old_name(name: &str) -> Option<&'static str> {
    OLD_NAMES.iter().find(|(new, _)| *new == name).map(|(_, old)| *old)
}

/// Gives options of `device` these values; what it lacks is added.
pub fn set(programs: &Programs, device: &str, values: &[(&str, &str)]) -> Result<(), Error> {
    let cib = Zeroizing::new(run(programs, "cibadmin", &["--query", "--scope", "resources"])?);
    let change = change(&cib, device, values, clock::wall_millis())?;
    let output = programs.run_with_input("cibadmin", &MODIFY, change.as_bytes(), Question::Pacemaker)?;
    if output.code == 0 {
        return Ok(());
    }
    // Its complaint may show what it was given.
    Err(Error::Tool {
        tool: "cibadmin",
        code: output.code,
        complaint: format!("the options of {device} stay as they were"),
    })
}

/// What the controller may log: another text each time, as one that stays is none of what changes.
fn updated(device: &str, at: u64) -> String {
    let (id, name) = (SET, FENCING_UPDATED);
    let device = escape(device);
    format!(
        "<cluster_property_set id=\"{id}\"><nvpair id=\"{id}-at\" name=\"{name}\" value=\"{at} {device}\"/></cluster_property_set>"
    )
}

/// That it was changed `at` this time, and the device with only what is new in it, inside whatever it is inside of.
fn change(cib: &str, device: &str, values: &[(&str, &str)], at: u64) -> Result<Zeroizing<String>, Error> {
    let document = Document::parse(cib).map_err(|error| Error::Parse(error.to_string()))?;
    let is_it = |node: &Node<'_, '_>| node.has_tag_name("primitive") && node.attribute("id") == Some(device);
    let lacks = || Error::Parse(format!("it has no fence device {device}"));
    let primitive = document.descendants().find(is_it).ok_or_else(lacks)?;
    let set = primitive.children().find(|child| child.has_tag_name("instance_attributes")).ok_or_else(lacks)?;
    let set_id = set.attribute("id").ok_or_else(lacks)?;
    // A text that grows leaves copies of the password behind.
    let room =
        2_048 + values.iter().map(|(name, value)| 2 * (set_id.len() + name.len()) + 6 * value.len()).sum::<usize>();
    let mut xml = Zeroizing::new(String::with_capacity(room));
    xml.push_str("<configuration><crm_config>");
    xml.push_str(&updated(device, at));
    xml.push_str("</crm_config><resources>");
    let around: Vec<(String, String)> = set
        .ancestors()
        .take_while(|node| node.is_element() && !node.has_tag_name("resources"))
        .filter_map(|node| Some((node.tag_name().name().to_owned(), node.attribute("id")?.to_owned())))
        .collect();
    for (tag, id) in around.iter().rev() {
        for piece in ["<", tag, " id=\"", &escape(id), "\">"] {
            xml.push_str(piece);
        }
    }
    for (name, value) in values {
        let pair = set.children().find(|pair| {
            let known = pair.attribute("name");
            known == Some(*name) || known.is_some() && known == old_name(name)
        });
        let named = pair.and_then(|pair| pair.attribute("name")).unwrap_or(name);
        let id = pair.and_then(|pair| pair.attribute("id")).map_or_else(|| format!("{set_id}-{name}"), str::to_owned);
        let value = Zeroizing::new(escape(value));
        for piece in ["<nvpair id=\"", &escape(&id), "\" name=\"", named, "\" value=\"", &value, "\"/>"] {
            xml.push_str(piece);
        }
    }
    for (tag, _) in &around {
        for piece in ["</", tag, ">"] {
            xml.push_str(piece);
        }
    }
    xml.push_str("</resources></configuration>");
    Ok(xml)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::command::fake_program;

    const CIB: &str = r#"<resources><primitive id="f1"><instance_attributes id="f1-ia">
        <nvpair id="a" name="ipaddr" value="192.0.2.1"/><nvpair id="b" name="username" value="admin"/>
        </instance_attributes></primitive></resources>"#;

    #[test]
    fn only_what_is_new_is_written_under_the_name_that_it_has() {
        let values = [("ip", "192.0.2.9"), ("password", "a<\"&'b")];
        assert_eq!(
            *change(CIB, "f1", &values, 1_795_625_214_044).unwrap(),
            "<configuration><crm_config><cluster_property_set id=\"tandem-fencing-update\">\
             <nvpair id=\"tandem-fencing-update-at\" name=\"etcd_fencing_updated\" value=\"1795625214044 f1\"/>\
             </cluster_property_set></crm_config><resources>\
             <primitive id=\"f1\"><instance_attributes id=\"f1-ia\"><nvpair id=\"a\" name=\"ipaddr\" value=\"192.0.2.9\"/>\
             <nvpair id=\"f1-ia-password\" name=\"password\" value=\"a&lt;&quot;&amp;'b\"/></instance_attributes></primitive>\
             </resources></configuration>"
        );
        assert!(change(CIB, "f2", &values, 1).is_err());
        let grouped =
            CIB.replace("<resources>", "<resources><group id=\"g\">").replace("</resources>", "</group></resources>");
        assert!(
            change(&grouped, "f1", &values, 1).unwrap().contains("<resources><group id=\"g\"><primitive id=\"f1\">")
        );
    }

    #[test]
    fn what_cannot_be_written_is_told_without_what_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let script = format!("case $1 in --query) echo '{}';; *) cat >&2; exit 76;; esac", CIB.replace('\n', " "));
        let programs = fake_program(dir.path(), "cibadmin", &script);
        let error = set(&programs, "f1", &[("password", "hunter2")]).unwrap_err().to_string();
        assert!(error.contains("cibadmin failed (76)") && !error.contains("hunter2"), "{error}");
    }
}
