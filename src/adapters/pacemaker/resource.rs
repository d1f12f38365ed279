//! The agent's resource in the CIB's configuration. It is for the operator's command, which has no environment from Pacemaker.

use roxmltree::{Document, Node};

use super::element::nvpairs;
use super::{Error, run};
use crate::adapters::command::Programs;
use crate::adapters::ocf::env::Env;
use crate::adapters::options::yes_no;

/// A resource in the CIB with the agent `podman-etcd`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configured {
    pub id: String,
    pub parameters: Vec<(String, String)>,
    pub promotable: bool,
}

impl Configured {
    /// Returns the environment variables with which Pacemaker runs the agent. Omits those that only exist in a transition.
    pub fn env(&self) -> Env {
        let mut pairs: Vec<(String, String)> =
            self.parameters.iter().map(|(name, value)| (format!("OCF_RESKEY_{name}"), value.clone())).collect();
        pairs.push(("OCF_RESOURCE_INSTANCE".to_owned(), self.id.clone()));
        if self.promotable {
            pairs.push(("OCF_RESKEY_CRM_meta_promotable".to_owned(), "true".to_owned()));
        }
        Env::from_pairs(pairs)
    }
}

/// Returns whether this node's partition has quorum, by the CIB of this node.
pub fn has_quorum(programs: &Programs) -> Result<bool, Error> {
    let xml = run(programs, "cibadmin", &["--query", "--no-children"])?;
    let document = Document::parse(&xml).map_err(|error| Error::Parse(error.to_string()))?;
    Ok(document.root_element().attribute("have-quorum") == Some("1"))
}

/// Returns every resource with the agent `podman-etcd` in the CIB of this node.
pub fn configured(programs: &Programs) -> Result<Vec<Configured>, Error> {
    parse(&run(programs, "cibadmin", &["--query", "--scope", "resources"])?)
}

/// Parses the section `resources` of a CIB.
pub fn parse(xml: &str) -> Result<Vec<Configured>, Error> {
    let document = Document::parse(xml).map_err(|error| Error::Parse(error.to_string()))?;
    let ours = document
        .descendants()
        .filter(|node| node.has_tag_name("primitive") && node.attribute("type") == Some("podman-etcd"));
    Ok(ours.filter_map(read).collect())
}

fn read(primitive: Node<'_, '_>) -> Option<Configured> {
    let id = primitive.attribute("id")?.to_owned();
    let clone = primitive.ancestors().find(|node| node.has_tag_name("clone"));
    let promotable = clone.is_some_and(|clone| {
        nvpairs(clone, "meta_attributes")
            .any(|(name, value)| name == "promotable" && yes_no::of_pacemaker(value) == Some(true))
    });
    let parameters = nvpairs(primitive, "instance_attributes");
    let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    Some(Configured { id, parameters, promotable })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resource_is_found_with_its_parameters_and_its_kind_of_clone() {
        let xml = include_str!("../../../tests/data/fixtures/cib/two-voters.xml");
        let found = parse(xml).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].id, "etcd");
        assert_eq!(found[0].env().resource(), "etcd");
        assert!(found[0].env().parameter("node_ip_map").is_some_and(|map| map.contains("node2:")));
        assert!(!found[0].promotable);
        let promotable = "<resources><clone><primitive type='podman-etcd' id='e'/>\
             <meta_attributes><nvpair name='promotable' value='true'/></meta_attributes></clone></resources>";
        assert!(parse(promotable).unwrap()[0].promotable);
    }
}
