//! A primitive of the CIB, with the values that it inherits from its template and from its clone.

use std::collections::BTreeMap;

use roxmltree::Node as Element;

use super::seen::Resource;
use crate::adapters::options::yes_no;
use crate::adapters::pacemaker::duration::millis;
use crate::adapters::pacemaker::element::{child, nvpairs, text};

/// Pacemaker's default time-out of an operation in milliseconds.
const DEFAULT_TIMEOUT_MILLIS: u64 = 20_000;
/// Parts of names of parameters, variables and headers that indicate a secret value.
const SECRET: [&str; 16] = [
    "passw",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "community",
    "_kg",
    "api_key",
    "apikey",
    "private_key",
    "privatekey",
    "key_data",
    "credential",
    "authkey",
    "authorization",
    "cookie",
];
/// Endings of names that indicate the location of a secret, and no secret itself.
const PLACE_OF_A_SECRET: [&str; 5] = ["file", "script", "path", "dir", "location"];

/// All primitives in a CIB's configuration.
pub(crate) struct Primitives<'a, 'i> {
    resources: Option<Element<'a, 'i>>,
    default_timeout: u64,
}

/// One primitive in the CIB. A template, if it has one, provides what the primitive itself lacks.
#[derive(Clone, Copy)]
pub(crate) struct Primitive<'a, 'i> {
    element: Element<'a, 'i>,
    template: Option<Element<'a, 'i>>,
    default_timeout: u64,
}

impl<'a, 'i> Primitives<'a, 'i> {
    pub(crate) fn of(configuration: Element<'a, 'i>) -> Self {
        let defaults = child(configuration, "op_defaults").map(|defaults| pairs(defaults, META));
        let timeout = defaults.and_then(|defaults| millis(defaults.get("timeout")?));
        Self {
            resources: child(configuration, "resources"),
            default_timeout: timeout.unwrap_or(DEFAULT_TIMEOUT_MILLIS),
        }
    }

    /// Returns every primitive, also inside groups and clones.
    pub(crate) fn all(&self) -> impl Iterator<Item = Primitive<'a, 'i>> + '_ {
        let all = self.resources.into_iter().flat_map(|resources| resources.descendants());
        all.filter(|element| element.has_tag_name("primitive")).map(|element| Primitive {
            element,
            template: self.template(element),
            default_timeout: self.default_timeout,
        })
    }

    fn template(&self, element: Element<'a, 'i>) -> Option<Element<'a, 'i>> {
        let name = element.attribute("template")?;
        self.resources?.children().find(|one| one.has_tag_name("template") && one.attribute("id") == Some(name))
    }
}

const PARAMETERS: &str = "instance_attributes";
const META: &str = "meta_attributes";

impl Primitive<'_, '_> {
    /// Returns the name of the primitive's agent, such as `podman-etcd`.
    pub(crate) fn agent_type(&self) -> &str {
        self.says("type")
    }

    /// Returns the class of the primitive's agent, such as `ocf`, `systemd` or `stonith`.
    pub(crate) fn class(&self) -> &str {
        self.says("class")
    }

    pub(crate) fn resource(&self) -> Resource {
        let clone = self.element.ancestors().find(|above| matches!(above.tag_name().name(), "clone" | "master"));
        let clone_meta = clone.map(|clone| pairs(clone, META)).unwrap_or_default();
        let promotable = clone_meta.get("promotable").and_then(|word| yes_no::of_pacemaker(word)) == Some(true);
        let mut parameters = self.merged(PARAMETERS);
        parameters.retain(|name, _| !is_secret(name));
        let mut meta = clone_meta;
        meta.extend(self.merged(META));
        Resource {
            id: text(self.element, "id"),
            agent: self.agent(),
            clone: clone.map(|clone| text(clone, "id")),
            promotable: promotable || clone.is_some_and(|clone| clone.has_tag_name("master")),
            parameters,
            meta,
            operations: self.operations(),
        }
    }

    /// Returns the XML attribute `name` of the primitive, or of its template. Returns an empty text if neither has it.
    fn says(&self, name: &str) -> &str {
        let said = self.element.attribute(name);
        said.or_else(|| self.template?.attribute(name)).unwrap_or_default()
    }

    fn agent(&self) -> String {
        let parts = [self.class(), self.says("provider"), self.agent_type()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(":")
    }

    fn merged(&self, sets: &'static str) -> BTreeMap<String, String> {
        let mut merged = self.template.map(|template| pairs(template, sets)).unwrap_or_default();
        merged.extend(pairs(self.element, sets));
        merged
    }

    fn operations(&self) -> Vec<(String, u64, u64)> {
        let lists = [Some(self.element), self.template].into_iter().flatten();
        let own = lists.filter_map(|element| child(element, "operations")).flat_map(|list| list.children());
        let operation = |element: Element<'_, '_>| {
            let meta = pairs(element, META);
            let given = |name: &str| element.attribute(name).or_else(|| meta.get(name).map(String::as_str));
            let timeout = given("timeout").and_then(millis).unwrap_or(self.default_timeout);
            (text(element, "name"), given("interval").and_then(millis).unwrap_or_default(), timeout)
        };
        let mut all: Vec<(String, u64, u64)> = Vec::new();
        for (name, interval, timeout) in own.filter(|element| element.has_tag_name("op")).map(operation) {
            if !all.iter().any(|known| known.0 == name && known.1 == interval) {
                all.push((name, interval, timeout));
            }
        }
        all
    }
}

/// Returns the nvpairs in the sets called `sets` directly below `element`. If a name occurs twice, the first value counts, as in
/// Pacemaker.
pub(crate) fn pairs(element: Element<'_, '_>, sets: &'static str) -> BTreeMap<String, String> {
    let mut pairs = BTreeMap::new();
    for (name, value) in nvpairs(element, sets) {
        pairs.entry(name.to_owned()).or_insert_with(|| value.to_owned());
    }
    pairs
}

/// Returns whether the value of a parameter called `name` is a secret, which must not be printed.
pub(crate) fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    let is_place = PLACE_OF_A_SECRET.iter().any(|end| name.ends_with(end));
    !is_place && SECRET.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_their_names_and_their_places_are_none() {
        for secret in [
            "password",
            "passwd",
            "Password",
            "snmp_priv_passwd",
            "community",
            "api-key",
            "hexadecimal_kg",
            "client-key-data",
            "X-Auth-Token",
            "Cookie",
        ] {
            assert!(is_secret(secret), "{secret}");
        }
        for told in ["password_file", "password_script", "passwd_script", "passwd-script", "ip", "username", "key_file"]
        {
            assert!(!is_secret(told), "{told}");
        }
    }
}
