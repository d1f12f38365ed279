//! The steps for etcd's resource, in three commands, because one command needs other arguments in pcs 0.12 than in
//! 0.11. Nothing starts before the last command.

use std::path::Path;

use super::found::{Found, pcs, refused, step};
use super::value::{Kind, Wanted};
use crate::adapters::pacemaker::layout::Cib;
use crate::adapters::pacemaker::seen::Resource;
use crate::agent::resource::params;
use crate::operate::setup::action::Action;
use crate::operate::setup::description::{Certificates, Clone, Description, Node};
use crate::operate::setup::step::{SetupStep, State};

const AGENT: &str = "ocf:tandem:podman-etcd";
const AGENT_TYPE: &str = ":podman-etcd";
const DATA_DIR: &str = "data_dir";
const DEFAULT_DATA_DIR: &str = "/var/lib/etcd";
/// Paths of the certificate of Tandem's own CA, and of the certificate and key that this CA issues for etcd.
const OWN: [&str; 3] = ["/etc/tandem/pki/ca.crt", "/etc/tandem/pki/etcd.crt", "/etc/tandem/pki/etcd.key"];

// Titles of the steps.
const TITLE: &str = "etcd's resource";
const MAY_START: &str = "may start";

/// The etcd resource and its clone, with the options that the description demands.
#[derive(Clone, Debug)]
pub(crate) struct Etcd {
    pub(crate) agent: &'static str,
    pub(crate) options: Vec<Wanted>,
    /// Meta-attributes of the etcd resource itself, not of its clone.
    pub(crate) meta: Vec<Wanted>,
    pub(crate) clone: Clone,
}

/// Returns the parameter `node_ip_map`, such as `node1:192.0.2.1;node2:192.0.2.2`.
pub(crate) fn node_ip_map(nodes: &[Node; 2]) -> Wanted {
    let map = nodes.each_ref().map(|node| format!("{}:{}", node.name, node.address)).join(";");
    Wanted::new("node_ip_map", map, Kind::Set)
}

/// Returns the meta-attribute that sets after how many failed starts Pacemaker bans the resource from a node.
pub(crate) fn migration_threshold() -> Wanted {
    Wanted::new("migration-threshold", "60", Kind::Text)
}

impl Etcd {
    pub(super) fn of(description: &Description) -> Self {
        let text = |name: &str, value: &str| Wanted::new(name, value, Kind::Text);
        let etcd = &description.etcd;
        let places = match &description.certificates {
            Certificates::Own => OWN.map(Path::new).to_vec(),
            Certificates::Given { ca, cert, key } => vec![ca.as_path(), cert, key],
            Certificates::OfThePod => Vec::new(),
        };
        let mut options = vec![node_ip_map(&description.nodes), text("image", &etcd.image)];
        let places = ["trusted_ca_file", "cert_file", "key_file"].into_iter().zip(places);
        for (name, path) in places.chain([(DATA_DIR, etcd.data_dir.as_path())]) {
            options.push(text(name, &path.display().to_string()));
        }
        if !etcd.settings.is_empty() {
            let settings: Vec<String> = etcd.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
            options.push(Wanted::new("etcd_settings", settings.join(";"), Kind::Set));
        }
        options.extend(description.primary.as_ref().map(|primary| text("configured_primary", primary)));
        if description.lone_boot {
            options.push(text("lone_boot", params::SOLE_VOTER));
        }
        let mut meta = vec![migration_threshold()];
        if description.clone == Clone::Promotable {
            meta.push(text("priority", "1"));
        }
        Self { agent: AGENT, options, meta, clone: description.clone }
    }

    pub(crate) fn steps(&self, cib: &Cib, on: &str) -> Vec<SetupStep> {
        let (id, title) = ("etcd", TITLE);
        let mut found = Found::default();
        match cib.resource(id) {
            None => {
                if let Some(other) = cib.resources.iter().find(|other| other.agent.ends_with(AGENT_TYPE)) {
                    return vec![refused(id, title, on, runs_already(&other.id))];
                }
                found.miss(self.create(id));
                found.miss(self.make_clone(id));
            }
            Some(there) if there.agent != self.agent => return vec![refused(id, title, on, is_anothers(there))],
            Some(there) => {
                if let Some(group) = cib.group_of(id) {
                    return vec![refused(id, title, on, is_grouped(group))];
                }
                self.compare(&mut found, there);
                match &there.clone {
                    None => found.miss(self.make_clone(id)),
                    Some(clone) => self.compare_clone(&mut found, cib, id, clone),
                }
            }
        }
        found.steps(id, title, on)
    }

    fn create(&self, id: &str) -> Action {
        let is_default = |option: &&Wanted| option.name == DATA_DIR && option.value == DEFAULT_DATA_DIR;
        let options = self.options.iter().filter(|option| !is_default(option)).map(Wanted::word);
        let meta = std::iter::once("meta".to_owned()).chain(self.meta.iter().map(Wanted::word));
        let words = ["resource", "create", id, self.agent].map(str::to_owned).into_iter();
        pcs(words.chain(options).chain(meta).chain(["--disabled".to_owned()]))
    }

    fn compare(&self, found: &mut Found, there: &Resource) {
        let mut parameters = there.parameters.clone();
        parameters.entry(DATA_DIR.to_owned()).or_insert_with(|| DEFAULT_DATA_DIR.to_owned());
        found.compare_and_change(&["resource", "update", &there.id], &there.id, &self.options, &parameters);
        found.compare_and_change(&["resource", "meta", &there.id], &there.id, &self.meta, &there.meta);
    }

    /// Returns the meta-attributes that Pacemaker reads only from the clone of the etcd resource.
    fn clone_meta(&self) -> Vec<Wanted> {
        let mut meta = Vec::new();
        if self.clone == Clone::Promotable {
            meta.push(Wanted::new("promoted-max", "2", Kind::Text));
        }
        meta.extend(["interleave", "notify"].map(|name| Wanted::new(name, "true", Kind::Truth)));
        meta
    }

    fn make_clone(&self, id: &str) -> Action {
        let how = match self.clone {
            Clone::Plain => "clone",
            Clone::Promotable => "promotable",
        };
        let meta = self.clone_meta();
        pcs(["resource", how, id, "meta"].map(str::to_owned).into_iter().chain(meta.iter().map(Wanted::word)))
    }

    fn compare_clone(&self, found: &mut Found, cib: &Cib, id: &str, clone: &str) {
        let is_promotable = cib.resource(id).is_some_and(|resource| resource.promotable);
        let kind = |promotable: bool| if promotable { "promotable" } else { "plain" };
        let mut words = Vec::new();
        match (is_promotable, self.clone) {
            (true, Clone::Plain) => words.extend(["promotable=", "promoted-max="].map(str::to_owned)),
            (false, Clone::Promotable) => words.push("promotable=true".to_owned()),
            (true, Clone::Promotable) | (false, Clone::Plain) => {}
        }
        if !words.is_empty() {
            found.differ(format!("{clone}: clone"), kind(is_promotable), kind(!is_promotable));
        }
        words.extend(found.compare(clone, &self.clone_meta(), cib.clone_meta(id)));
        if !words.is_empty() {
            found.change(pcs(["resource", "meta", clone].map(str::to_owned).into_iter().chain(words)));
        }
    }
}

fn runs_already(id: &str) -> String {
    format!(
        "the resource {id} runs podman-etcd already, and setup calls its own etcd: continue with '{id}' by hand, or, if it is not \
         needed, type 'pcs resource delete {id}' and this again"
    )
}

fn is_anothers(there: &Resource) -> String {
    format!(
        "there is a resource {} of {} already, which setup did not make: take it over by hand as README says, or, if it is not \
         needed, type 'pcs resource delete {}' and this again",
        there.id, there.agent, there.id
    )
}

fn is_grouped(group: &str) -> String {
    format!(
        "etcd is in the group {group}, where it cannot be cloned by itself: type 'pcs resource ungroup {group} etcd' and this again"
    )
}

/// Returns the step that enables the resource `id`, because setup creates each resource as disabled.
pub(crate) fn enable(id: &str, cib: &Cib, on: &str) -> SetupStep {
    let is_stopped = |resource: &Resource| resource.meta.get("target-role").is_some_and(|role| role == "Stopped");
    let state = match cib.resource(id) {
        Some(resource) if !is_stopped(resource) && !cib.is_clone_stopped(id) => State::Done,
        _ => State::ToDo(vec![pcs(["resource", "enable", id])]),
    };
    step(&format!("{id}-enable"), &format!("{id} {MAY_START}"), on, state)
}
