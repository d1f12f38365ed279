//! The lock against two member changes of a pair: a cluster property. It is created in one write, which fails if the property
//! exists.

use super::attributes::MEMBER_CHANGE;
use super::{Error, run};
use crate::adapters::command::Programs;
use crate::adapters::pace::Question;
use crate::adapters::xml::escape;

/// The id of the set of cluster properties that is the lock against a second member change. The CIB's manager refuses to create a second
/// element with this id.
const SET: &str = "tandem-member-change";
/// The exit code of `cibadmin` for an element with an id that already exists.
const EXISTS: i32 = 108;

/// Takes the lock against a second member change. `change` describes the change. Returns whether the lock was free.
pub fn take(programs: &Programs, change: &str) -> Result<bool, Error> {
    // An empty set is left where an operator has deleted only the property. It does not block the lock.
    let emptied = format!("//cluster_property_set[@id='{SET}' and not(nvpair)]");
    let _ = programs.run("cibadmin", &["--delete", "--xpath", emptied.as_str()], Question::Pacemaker)?;
    let xml = format!(
        "<cluster_property_set id=\"{SET}\"><nvpair id=\"{SET}-text\" name=\"{MEMBER_CHANGE}\" value=\"{}\"/></cluster_property_set>",
        escape(change)
    );
    let words = ["--create", "--scope", "crm_config", "--xml-text", xml.as_str()];
    let output = programs.run("cibadmin", &words, Question::Pacemaker)?;
    match output.code {
        0 => Ok(true),
        EXISTS => Ok(false),
        code => Err(Error::Tool { tool: "cibadmin", code, complaint: output.complaint().to_owned() }),
    }
}

/// Releases the lock against a second member change.
pub fn give_back(programs: &Programs) -> Result<(), Error> {
    let xml = format!("<cluster_property_set id=\"{SET}\"/>");
    run(programs, "cibadmin", &["--delete", "--scope", "crm_config", "--xml-text", &xml]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::command::fake_program;

    #[test]
    fn the_lock_is_had_by_who_made_it_and_by_nobody_where_it_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let taken = |script: &str| take(&fake_program(dir.path(), "cibadmin", script), "node1 replaces 'node2'");
        assert!(taken("exit 0").unwrap());
        assert!(!taken("case $1 in --create) exit 108;; esac").unwrap());
        assert!(taken("case $1 in --create) echo no >&2; exit 5;; esac").unwrap_err().to_string().contains("(5): no"));
        let file = dir.path().join("said");
        let programs = fake_program(dir.path(), "cibadmin", &format!("echo \"$@\" >> {}", file.display()));
        assert!(take(&programs, "a<b").unwrap());
        give_back(&programs).unwrap();
        let said = std::fs::read_to_string(file).unwrap();
        assert!(said.contains("value=\"a&lt;b\"") && said.contains("--delete --scope crm_config"), "{said}");
    }
}
