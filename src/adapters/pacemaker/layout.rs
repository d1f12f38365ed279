//! The CIB, as far as setup compares it: properties, resources, fence devices, and the constraints between them.

use std::collections::BTreeMap;

use roxmltree::Node as Element;

use super::cib_document::CibDocument;
use crate::adapters::pacemaker::configuration::properties;
use crate::adapters::pacemaker::duration::millis;
use crate::adapters::pacemaker::element::{children, nvpairs, text};
use crate::adapters::pacemaker::fence_device;
use crate::adapters::pacemaker::primitive::Primitives;
use crate::adapters::pacemaker::seen::{FenceDevice, Resource};

/// The configuration in the CIB, without secrets.
#[derive(Clone, Debug, Default)]
pub struct Cib {
    pub(crate) properties: BTreeMap<String, String>,
    pub(crate) resources: Vec<Resource>,
    pub(crate) devices: Vec<FenceDevice>,
    /// The resources that have a password in the CIB itself, each with the name of the option.
    pub(crate) passwords: Vec<(String, String)>,
    /// The id of each grouped resource's group, by the resource's id.
    pub(crate) groups: BTreeMap<String, String>,
    /// The meta-attributes of each cloned resource's clone, by the resource's id.
    pub(crate) clones: BTreeMap<String, BTreeMap<String, String>>,
    /// The `start-delay` of each resource that has one, in milliseconds.
    pub(crate) start_delays: BTreeMap<String, u64>,
    /// The mandatory order constraints, each with the resource that starts first, and the one that starts after it.
    pub(crate) orders: Vec<(String, String)>,
    /// The mandatory colocation constraints, each with the dependent resource, and the one that it needs.
    pub(crate) colocations: Vec<(String, String)>,
}

const PASSWORDS: [&str; 2] = ["password", "passwd"];
const ALWAYS: [&str; 2] = ["INFINITY", "+INFINITY"];

pub fn parse(xml: &str) -> Result<Cib, String> {
    let document = CibDocument::parse(xml)?;
    let section = document.configuration()?;
    let primitives = Primitives::of(section);
    let elements = || section.descendants().filter(|element| element.has_tag_name("primitive"));
    let meta = |clone: Element<'_, '_>| nvpairs(clone, "meta_attributes").map(owned).collect();
    Ok(Cib {
        properties: properties(section),
        resources: primitives.all().map(|primitive| primitive.resource()).collect(),
        devices: fence_device::all(&primitives, section),
        passwords: elements().flat_map(passwords).collect(),
        groups: elements().filter_map(|element| Some((id(element), id(above(element, &["group"])?)))).collect(),
        clones: elements()
            .filter_map(|element| Some((id(element), meta(above(element, &["clone", "master"])?))))
            .collect(),
        start_delays: elements().filter_map(|element| Some((id(element), start_delay(element)?))).collect(),
        orders: children(section, "constraints", "rsc_order").filter_map(order).collect(),
        colocations: children(section, "constraints", "rsc_colocation").filter_map(colocation).collect(),
    })
}

fn id(element: Element<'_, '_>) -> String {
    text(element, "id")
}

fn owned((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

fn above<'a, 'i>(element: Element<'a, 'i>, names: &[&'static str]) -> Option<Element<'a, 'i>> {
    element.ancestors().find(|above| names.iter().any(|name| above.has_tag_name(*name)))
}

fn passwords(primitive: Element<'_, '_>) -> Vec<(String, String)> {
    let names = nvpairs(primitive, "instance_attributes").map(|(name, _)| name).filter(|name| PASSWORDS.contains(name));
    names.map(|name| (id(primitive), name.to_owned())).collect()
}

impl Cib {
    pub(crate) fn resource(&self, id: &str) -> Option<&Resource> {
        self.resources.iter().find(|resource| resource.id == id)
    }

    pub(crate) fn device(&self, id: &str) -> Option<&FenceDevice> {
        self.devices.iter().find(|device| device.resource.id == id)
    }

    pub(crate) fn passwords_of(&self, id: &str) -> impl Iterator<Item = &str> {
        self.passwords.iter().filter(move |(owner, _)| owner == id).map(|(_, name)| name.as_str())
    }

    pub(crate) fn group_of(&self, id: &str) -> Option<&str> {
        self.groups.get(id).map(String::as_str)
    }

    /// Returns the meta-attributes of the clone of the resource `id`. Returns none if it is not cloned.
    pub(crate) fn clone_meta(&self, id: &str) -> &BTreeMap<String, String> {
        const NONE: &BTreeMap<String, String> = &BTreeMap::new();
        self.clones.get(id).unwrap_or(NONE)
    }

    pub(crate) fn is_clone_stopped(&self, id: &str) -> bool {
        self.clone_meta(id).get("target-role").is_some_and(|role| role == "Stopped")
    }

    pub(crate) fn start_delay(&self, id: &str) -> Option<u64> {
        self.start_delays.get(id).copied()
    }

    pub(crate) fn is_ordered(&self, first: &str, then: &str) -> bool {
        self.orders.iter().any(|(one, other)| one == first && other == then)
    }

    pub(crate) fn is_colocated(&self, resource: &str, with: &str) -> bool {
        self.colocations.iter().any(|(one, other)| one == resource && other == with)
    }
}

fn start_delay(primitive: Element<'_, '_>) -> Option<u64> {
    let mut operations = children(primitive, "operations", "op");
    millis(operations.find(|operation| operation.attribute("name") == Some("start"))?.attribute("start-delay")?)
}

fn order(constraint: Element<'_, '_>) -> Option<(String, String)> {
    let is_mandatory = constraint.attribute("kind").is_none_or(|kind| kind == "Mandatory");
    let is_start = ["first-action", "then-action"].iter().all(|action| {
        // `then-action` defaults to `first-action`.
        constraint.attribute(*action).is_none_or(|word| word == "start")
    });
    let pair = (constraint.attribute("first")?.to_owned(), constraint.attribute("then")?.to_owned());
    (is_mandatory && is_start).then_some(pair)
}

fn colocation(constraint: Element<'_, '_>) -> Option<(String, String)> {
    let has_roles = ["rsc-role", "with-rsc-role"].iter().any(|role| constraint.has_attribute(*role));
    let is_always = constraint.attribute("score").is_none_or(|score| ALWAYS.contains(&score));
    let pair = (constraint.attribute("rsc")?.to_owned(), constraint.attribute("with-rsc")?.to_owned());
    (is_always && !has_roles).then_some(pair)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_constraints_that_always_hold_count() {
        let read = |constraints: &str| {
            parse(&format!("<cib><configuration><constraints>{constraints}</constraints></configuration></cib>"))
                .unwrap()
        };
        for (xml, expected) in [
            ("<rsc_order first='a' then='b'/>", true),
            ("<rsc_order first='a' then='b' first-action='start' then-action='start' kind='Mandatory'/>", true),
            ("<rsc_order first='a' then='b' kind='Optional'/>", false),
            ("<rsc_order first='a' then='b' first-action='promote' then-action='start'/>", false),
            ("<rsc_order first='b' then='a'/>", false),
        ] {
            assert_eq!(read(xml).is_ordered("a", "b"), expected, "{xml}");
        }
        for (xml, expected) in [
            ("<rsc_colocation rsc='a' with-rsc='b' score='INFINITY'/>", true),
            ("<rsc_colocation rsc='a' with-rsc='b'/>", true),
            ("<rsc_colocation rsc='a' with-rsc='b' score='100'/>", false),
            ("<rsc_colocation rsc='a' with-rsc='b' score='INFINITY' with-rsc-role='Promoted'/>", false),
            ("<rsc_colocation rsc='b' with-rsc='a' score='INFINITY'/>", false),
        ] {
            assert_eq!(read(xml).is_colocated("a", "b"), expected, "{xml}");
        }
    }

    #[test]
    fn what_is_no_cib_is_no_empty_one() {
        assert!(parse("<html/>").is_err() && parse("<cib").is_err() && parse("<cib/>").is_err());
        assert!(parse("<cib><configuration/></cib>").unwrap().resources.is_empty());
    }
}
