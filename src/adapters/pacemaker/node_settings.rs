//! Parameters of a resource that apply to one node: a separate set with a rule. Pacemaker evaluates the rule for each instance,
//! so a change restarts no instance on another node.

use roxmltree::{Document, Node};

use super::element::{child, pairs_of};
use super::exit_code::NO_SUCH;
use super::{Error, run};
use crate::adapters::command::Programs;
use crate::adapters::pace::Question;
use crate::adapters::xml::escape;

/// The name and the value of a resource's parameter.
pub type Pair = (String, String);

const SETS: &str = "instance_attributes";

/// The parameters of a resource in the CIB: those for all nodes, and those for one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The name and id of each element around the parameters, from the outermost one to the primitive.
    path: Vec<(String, String)>,
    /// The id of the set of parameters for all nodes.
    set: String,
    /// The id of each parameter in the set for all nodes, by the parameter's name.
    ids: Vec<Pair>,
    /// The parameters for all nodes.
    pub of_all: Vec<Pair>,
    /// The parameters that this module has set for a single node, by that node's name.
    pub of_node: Vec<(String, Vec<Pair>)>,
}

impl Written {
    /// Returns the value of the parameter `name` on `node`; `None` if it is not set.
    pub fn value<'a>(&'a self, node: &str, name: &str) -> Option<&'a str> {
        let of_node = self.of_node.iter().find(|(one, _)| one == node).map(|(_, pairs)| pairs.as_slice());
        let find = |pairs: &'a [Pair]| pairs.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str());
        of_node.and_then(find).or_else(|| find(&self.of_all))
    }

    /// Returns the parameters in `pairs` that must be written. Omits an empty value of a parameter that is not set, because Pacemaker would
    /// restart a running resource for it.
    fn telling<'a>(&self, pairs: &'a [Pair]) -> Vec<&'a Pair> {
        let is_known = |name: &str| self.of_all.iter().any(|(one, _)| one == name);
        pairs.iter().filter(|(name, value)| !value.is_empty() || is_known(name)).collect()
    }

    fn enclosed(&self, set: &str) -> String {
        let open: Vec<String> = self.path.iter().map(|(name, id)| format!("<{name} id=\"{}\">", escape(id))).collect();
        let close: Vec<String> = self.path.iter().rev().map(|(name, _)| format!("</{name}>")).collect();
        format!("{}{set}{}", open.concat(), close.concat())
    }
}

/// Returns the id of the set of parameters for `node` only.
fn set_of(node: &str) -> String {
    format!("tandem-settings-{node}")
}

/// Reads the parameters of `resource` from the CIB.
pub fn read(programs: &Programs, resource: &str) -> Result<Written, Error> {
    parse(&run(programs, "cibadmin", &["--query", "--scope", "resources"])?, resource)
}

fn parse(xml: &str, resource: &str) -> Result<Written, Error> {
    let document = Document::parse(xml).map_err(|error| Error::Parse(error.to_string()))?;
    let mut primitives = document.descendants().filter(|one| one.has_tag_name("primitive"));
    let primitive = primitives.find(|one| one.attribute("id") == Some(resource));
    let primitive = primitive.ok_or_else(|| Error::Parse(format!("it has no resource {resource}")))?;
    let is_inside =
        |one: &Node<'_, '_>| one.is_element() && one.tag_name().name() != "resources" && one.attribute("id").is_some();
    let mut path: Vec<(String, String)> = primitive
        .ancestors()
        .take_while(is_inside)
        .map(|one| (one.tag_name().name().to_owned(), one.attribute("id").unwrap_or_default().to_owned()))
        .collect();
    path.reverse();
    let owned = |set: Node<'_, '_>| pairs_of(set).map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let sets = || primitive.children().filter(|one| one.has_tag_name(SETS));
    let base = sets().find(|set| child(*set, "rule").is_none());
    let pairs = base.into_iter().flat_map(|set| set.children().filter(|one| one.has_tag_name("nvpair")));
    let id = |pair: Node<'_, '_>| Some((pair.attribute("name")?.to_owned(), pair.attribute("id")?.to_owned()));
    let of_node = |set: Node<'_, '_>| Some((set.attribute("id")?.strip_prefix(&set_of(""))?.to_owned(), owned(set)));
    Ok(Written {
        path,
        set: base.and_then(|set| set.attribute("id")).map_or_else(|| format!("{resource}-{SETS}"), str::to_owned),
        ids: pairs.filter_map(id).collect(),
        of_all: base.map(owned).unwrap_or_default(),
        of_node: sets().filter_map(of_node).collect(),
    })
}

fn modify(programs: &Programs, written: &Written, set: &str) -> Result<(), Error> {
    let xml = written.enclosed(set);
    let words = ["--modify", "--allow-create", "--scope", "resources", "--xml-text", &xml];
    run(programs, "cibadmin", &words).map(drop)
}

fn nvpair(id: &str, (name, value): &Pair) -> String {
    format!("<nvpair id=\"{}\" name=\"{}\" value=\"{}\"/>", escape(id), escape(name), escape(value))
}

/// Sets the parameters `pairs` for `node` only. Removes all earlier settings for that node.
pub fn set_on(programs: &Programs, written: &Written, node: &str, pairs: &[Pair]) -> Result<(), Error> {
    forget_on(programs, node)?;
    let (id, pairs) = (set_of(node), written.telling(pairs));
    if pairs.is_empty() {
        return Ok(());
    }
    let values: String = pairs.into_iter().map(|pair| nvpair(&format!("{id}-{}", pair.0), pair)).collect();
    let (id, node) = (escape(&id), escape(node));
    let set = format!(
        "<{SETS} id=\"{id}\" score=\"1000\"><rule id=\"{id}-rule\" score=\"INFINITY\" boolean-op=\"and\"><expression id=\"{id}-node\" \
         attribute=\"#uname\" operation=\"eq\" value=\"{node}\"/></rule>{values}</{SETS}>"
    );
    modify(programs, written, &set)
}

/// Sets the parameters `pairs` for all nodes, in one write. Settings for one node override them.
pub fn set_on_all(programs: &Programs, written: &Written, pairs: &[Pair]) -> Result<(), Error> {
    let id = |name: &str| {
        let known = written.ids.iter().find(|(one, _)| one == name).map(|(_, id)| id.clone());
        known.unwrap_or_else(|| format!("{}-{name}", written.set))
    };
    let pairs = written.telling(pairs);
    if pairs.is_empty() {
        return Ok(());
    }
    let values: String = pairs.into_iter().map(|pair| nvpair(&id(&pair.0), pair)).collect();
    modify(programs, written, &format!("<{SETS} id=\"{}\">{values}</{SETS}>", escape(&written.set)))
}

/// Removes the parameters that were set for `node` only.
pub fn forget_on(programs: &Programs, node: &str) -> Result<(), Error> {
    let path = format!("//{SETS}[@id='{}']", set_of(node));
    let output = programs.run("cibadmin", &["--delete", "--xpath", &path], Question::Pacemaker)?;
    match output.code {
        0 | NO_SUCH => Ok(()),
        code => Err(Error::Tool { tool: "cibadmin", code, complaint: output.complaint().to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::command::fake_program;

    const CIB: &str = r##"<resources><clone id="etcd-clone"><primitive id="etcd">
        <instance_attributes id="etcd-ia"><nvpair id="p1" name="image" value="etcd:1"/><nvpair id="p2" name="etcd_settings" value="a=1"/>
        </instance_attributes><instance_attributes id="tandem-settings-node2" score="1000"><rule id="r" score="INFINITY"><expression
        id="e" attribute="#uname" operation="eq" value="node2"/></rule><nvpair id="n" name="etcd_settings" value="a=2"/>
        </instance_attributes></primitive></clone></resources>"##;

    #[test]
    fn what_holds_on_one_node_is_told_from_what_holds_on_all() {
        let written = parse(CIB, "etcd").unwrap();
        assert_eq!(written.value("node1", "etcd_settings"), Some("a=1"));
        assert_eq!(written.value("node2", "etcd_settings"), Some("a=2"));
        assert_eq!((written.value("node2", "image"), written.value("node2", "run_opts")), (Some("etcd:1"), None));
        assert!(parse(CIB, "other").is_err());
    }

    #[test]
    fn a_set_is_written_where_it_belongs_and_a_pair_keeps_its_id() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("said");
        let programs = fake_program(dir.path(), "cibadmin", &format!("echo \"$@\" >> {}", file.display()));
        let written = parse(CIB, "etcd").unwrap();
        let pairs =
            [("etcd_settings".to_owned(), "a=3;b=\"4\"".to_owned()), ("run_opts".to_owned(), "--cpus 2".to_owned())];
        set_on(&programs, &written, "node1", &pairs).unwrap();
        set_on_all(&programs, &written, &pairs).unwrap();
        let said = std::fs::read_to_string(&file).unwrap();
        let enclosed = "<clone id=\"etcd-clone\"><primitive id=\"etcd\"><instance_attributes id=\"tandem-settings-node1\" score=\"1000\">";
        assert!(said.contains(enclosed) && said.contains("</instance_attributes></primitive></clone>"), "{said}");
        assert!(said.contains("attribute=\"#uname\" operation=\"eq\" value=\"node1\""), "{said}");
        assert!(said.contains("<instance_attributes id=\"etcd-ia\"><nvpair id=\"p2\" name=\"etcd_settings\" value=\"a=3;b=&quot;4&quot;\"/>"), "{said}");
        assert!(said.contains("<nvpair id=\"etcd-ia-run_opts\" name=\"run_opts\" value=\"--cpus 2\"/>"), "{said}");
    }

    #[test]
    fn an_empty_value_is_written_where_there_was_one_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("said");
        let programs = fake_program(dir.path(), "cibadmin", &format!("echo \"$@\" >> {}", file.display()));
        let written = parse(CIB, "etcd").unwrap();
        let empty = |name: &str| [(name.to_owned(), String::new())];
        set_on(&programs, &written, "node1", &empty("run_opts")).unwrap();
        set_on_all(&programs, &written, &empty("run_opts")).unwrap();
        let said = std::fs::read_to_string(&file).unwrap();
        assert_eq!(said.matches("--modify").count(), 0, "{said}");
        set_on_all(&programs, &written, &empty("etcd_settings")).unwrap();
        let said = std::fs::read_to_string(&file).unwrap();
        assert!(said.contains("<nvpair id=\"p2\" name=\"etcd_settings\" value=\"\"/>"), "{said}");
    }
}
