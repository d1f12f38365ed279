//! The lock of a change of a pair's members: a cluster property that is made in one write which fails where it is there.

use super::attributes::MEMBER_CHANGE;
use super::{Error, run};
use crate::adapters::command::Programs;
use crate::adapters::pace::Question;
use crate::adapters::xml::escape;

/// A set of its own: the CIB's manager refuses to make what has an id that is there.
const SET: &str = "tandem-member-change";
/// The CIB's manager says so with this exit code.
const EXISTS: i32 = 108;

/// Takes the lock in the words of `change`; answers whether nobody else had it.
pub fn take(programs: &Programs, change: &str) -> Result<bool, Error> {
    // What is left where somebody has deleted the property alone keeps nobody.
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

/// Gives it back.
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
