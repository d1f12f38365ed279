//! New values for a fence device's options, in one write of the CIB.
//!
//! `pcs stonith update` is not used, because it takes values as arguments, where every user of the machine can read a password. A
//! user and its password, or an address and its certificate, must also change at the same moment. The fencer reads the device
//! from the CIB, so one write never shows it half of a change.
//!
//! A write of the configuration ends a transition that is under way. Pacemaker's controller then logs the first change in the
//! order of the CIB, with the value of an `nvpair` (`abort_transition_graph`). So the same write changes a cluster property,
//! which comes before all resources. The journal then has the property and not the password.

use roxmltree::{Document, Node};
use zeroize::Zeroizing;

use super::attributes::FENCING_UPDATED;
use super::{Error, run};
use crate::adapters::command::Programs;
use crate::adapters::pace::Question;
use crate::adapters::xml::escape;
use crate::os::clock;

const MODIFY: [&str; 4] = ["--modify", "--scope", "configuration", "--xml-pipe"];
/// The id of the set of cluster properties that has only the time of the last change of a fence device.
const SET: &str = "tandem-fencing-update";
/// The present and the former name of some options. A change in the CIB keeps the name that the CIB has.
const OLD_NAMES: [(&str, &str); 3] = [("ip", "ipaddr"), ("username", "login"), ("password", "passwd")];

/// Returns the former name of an option of a fence device; `None` if it had none.
pub fn old_name(name: &str) -> Option<&'static str> {
    OLD_NAMES.iter().find(|(new, _)| *new == name).map(|(_, old)| *old)
}

/// Sets options of the fence device `device` in the CIB. Adds options that the device does not have yet.
pub fn set(programs: &Programs, device: &str, values: &[(&str, &str)]) -> Result<(), Error> {
    let cib = Zeroizing::new(run(programs, "cibadmin", &["--query", "--scope", "resources"])?);
    let change = change(&cib, device, values, clock::wall_millis())?;
    let output = programs.run_with_input("cibadmin", &MODIFY, change.as_bytes(), Question::Pacemaker)?;
    if output.code == 0 {
        return Ok(());
    }
    // The tool's own error is dropped, because it may show the values.
    Err(Error::Tool {
        tool: "cibadmin",
        code: output.code,
        complaint: format!("the options of {device} stay as they were"),
    })
}

/// Returns the XML of the property [`FENCING_UPDATED`], which precedes the device in the change. Pacemaker's controller logs only the first
/// change in the CIB, so it logs this property and no password. The value differs each time, because the property would otherwise not
/// change.
fn updated(device: &str, at: u64) -> String {
    let (id, name) = (SET, FENCING_UPDATED);
    let device = escape(device);
    format!(
        "<cluster_property_set id=\"{id}\"><nvpair id=\"{id}-at\" name=\"{name}\" value=\"{at} {device}\"/></cluster_property_set>"
    )
}

/// Returns the XML of a change of `device`. The change has the property with the time `at`, and the device with only its new values. The
/// device is inside its enclosing elements, such as a group.
fn change(cib: &str, device: &str, values: &[(&str, &str)], at: u64) -> Result<Zeroizing<String>, Error> {
    let document = Document::parse(cib).map_err(|error| Error::Parse(error.to_string()))?;
    let is_it = |node: &Node<'_, '_>| node.has_tag_name("primitive") && node.attribute("id") == Some(device);
    let lacks = || Error::Parse(format!("it has no fence device {device}"));
    let primitive = document.descendants().find(is_it).ok_or_else(lacks)?;
    let set = primitive.children().find(|child| child.has_tag_name("instance_attributes")).ok_or_else(lacks)?;
    let set_id = set.attribute("id").ok_or_else(lacks)?;
    // The buffer has its full size, because one that grows leaves copies of the password behind.
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
