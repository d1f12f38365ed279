//! One instance of a clone: it is banned from its node for a while, so that Pacemaker stops it there, and allowed again.

use roxmltree::{Document, Node};

use super::element::text;
use super::exit_code::NO_SUCH;
use super::{Error, run};
use crate::adapters::command::Programs;
use crate::adapters::pace::Question;
use crate::adapters::xml::escape;
use crate::base::utc;

/// Returns the id of this program's constraint that bans an instance from `node`. `pcs resource ban` uses another id.
pub fn constraint(node: &str) -> String {
    format!("tandem-upgrade-{node}")
}

/// Bans the instance of `clone` from `node` until the time `until`, in seconds since 1970. After that time the constraint has no effect, so
/// that an interrupted command leaves no node without etcd.
pub fn keep_away(programs: &Programs, clone: &str, node: &str, until: u64) -> Result<(), Error> {
    let (id, clone, until) = (escape(&constraint(node)), escape(clone), utc(until));
    let node = escape(node);
    let xml = format!(
        "<rsc_location id=\"{id}\" rsc=\"{clone}\"><rule id=\"{id}-rule\" score=\"-INFINITY\" boolean-op=\"and\">\
         <expression id=\"{id}-node\" attribute=\"#uname\" operation=\"eq\" value=\"{node}\"/>\
         <date_expression id=\"{id}-until\" operation=\"lt\" end=\"{until}\"/></rule></rsc_location>"
    );
    let words = ["--modify", "--allow-create", "--scope", "constraints", "--xml-text", &xml];
    run(programs, "cibadmin", &words).map(drop)
}

/// Removes the constraint of [`keep_away`]. A missing constraint is no error.
pub fn let_back(programs: &Programs, node: &str) -> Result<(), Error> {
    let xml = format!("<rsc_location id=\"{}\"/>", escape(&constraint(node)));
    let output =
        programs.run("cibadmin", &["--delete", "--scope", "constraints", "--xml-text", &xml], Question::Pacemaker)?;
    match output.code {
        0 | NO_SUCH => Ok(()),
        code => Err(Error::Tool { tool: "cibadmin", code, complaint: output.complaint().to_owned() }),
    }
}

pub fn set_parameter(programs: &Programs, resource: &str, name: &str, value: &str) -> Result<(), Error> {
    let words = ["--resource", resource, "--set-parameter", name, "--parameter-value", value];
    run(programs, "crm_resource", &words).map(drop)
}

/// Returns the nodes on which Pacemaker would restart `resource` after a change of `parameter`. Pacemaker decides by the meta-data of the
/// agent that started the instance.
pub fn restarts_for(programs: &Programs, resource: &str, parameter: &str) -> Result<Vec<String>, Error> {
    let xml = run(programs, "cibadmin", &["--query", "--scope", "status"])?;
    let document = Document::parse(&xml).map_err(|error| Error::Parse(error.to_string()))?;
    let restarts = |state: &Node<'_, '_>| {
        let mut operations = state.descendants().filter(|element| element.has_tag_name("lrm_rsc_op"));
        operations.any(|operation| forces(operation, resource, parameter))
    };
    let states = document.descendants().filter(|element| element.has_tag_name("node_state"));
    Ok(states.filter(restarts).map(|state| text(state, "uname")).collect())
}

fn forces(operation: Node<'_, '_>, resource: &str, parameter: &str) -> bool {
    let of = operation.parent_element().and_then(|parent| parent.attribute("id")).unwrap_or_default();
    let is_it = of == resource || of.strip_prefix(resource).is_some_and(|rest| rest.starts_with(':'));
    let forced = operation.attribute("op-force-restart").unwrap_or_default();
    is_it && forced.split_whitespace().any(|name| name == parameter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::command::fake_program;

    #[test]
    fn a_constraint_ends_by_itself_and_is_taken_back_where_it_is_there_or_not() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("said");
        let script = |code: i32| format!("echo \"$@\" >> {}; exit {code}", file.display());
        keep_away(&fake_program(dir.path(), "cibadmin", &script(0)), "etcd-clone", "node2", 951_782_400).unwrap();
        let said = std::fs::read_to_string(&file).unwrap();
        assert!(
            said.contains("operation=\"lt\" end=\"2000-02-29 00:00:00Z\"") && said.contains("value=\"node2\""),
            "{said}"
        );
        assert!(let_back(&fake_program(dir.path(), "cibadmin", &script(NO_SUCH)), "node2").is_ok());
        assert!(let_back(&fake_program(dir.path(), "cibadmin", &script(102)), "node2").is_err());
    }

    /// Asserts that Pacemaker restarts an instance that an older agent has started. The operation history is that of Pacemaker 2.1.5 for
    /// parameters that the older meta-data does not declare as reloadable.
    #[test]
    fn an_instance_that_an_older_agent_started_is_restarted_for_the_parameter() {
        let dir = tempfile::tempdir().unwrap();
        let state = |node: &str, forced: &str| {
            format!(
                "<node_state uname='{node}'><lrm><lrm_resources><lrm_resource id='etcd'><lrm_rsc_op \
                 op-force-restart='{forced}'/></lrm_resource></lrm_resources></lrm></node_state>"
            )
        };
        let status = [state("node1", " pod_manifest  name "), state("node2", " pod_manifest  image  name ")].concat();
        let programs = fake_program(dir.path(), "cibadmin", &format!("echo \"<status>{status}</status>\""));
        assert_eq!(restarts_for(&programs, "etcd", "image").unwrap(), ["node2"]);
        assert!(restarts_for(&programs, "other", "image").unwrap().is_empty());
    }
}
