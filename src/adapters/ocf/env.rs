//! The environment of a resource agent, as Pacemaker sets it, as types.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;
use std::time::Duration;

use crate::adapters::options::yes_no;
use crate::decide::evidence::{Moment, Notify, Operation};

/// The environment variables with which Pacemaker calls a resource agent.
#[derive(Clone, Debug, Default)]
pub struct Env {
    variables: BTreeMap<String, String>,
}

impl Env {
    /// Reads the environment of this process. Skips variables that are not UTF-8, because the agent needs none of them.
    pub fn from_process() -> Self {
        Self::from_pairs(
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))),
        )
    }

    pub fn from_pairs(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { variables: pairs.into_iter().collect() }
    }

    /// Returns the trimmed value of the variable `name`; `None` if it is missing or blank.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    /// Returns the resource parameter `name` (variable `OCF_RESKEY_<name>`); `None` if it is missing or blank.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.get(&format!("OCF_RESKEY_{name}"))
    }

    fn meta(&self, name: &str) -> Option<&str> {
        self.parameter(&format!("CRM_meta_{name}"))
    }

    /// Returns the id of the resource. The instance number of a clone (`etcd:0`) is removed, because these numbers swap between
    /// nodes.
    pub fn resource(&self) -> &str {
        let instance = self.get("OCF_RESOURCE_INSTANCE").unwrap_or("etcd");
        instance.split(':').next().unwrap_or(instance)
    }

    /// Returns the name of the node on which Pacemaker runs this action; `None` in a call by hand.
    pub fn on_node(&self) -> Option<&str> {
        self.meta("on_node")
    }

    /// Returns the time-out that Pacemaker sets for this action; `None` in a call by hand.
    pub fn timeout(&self) -> Option<Duration> {
        self.meta("timeout").and_then(|ms| ms.parse().ok()).map(Duration::from_millis)
    }

    /// Returns the check level of a monitor (`OCF_CHECK_LEVEL`); 0 if it is not set. There are the levels 0, 10 and 20. A number
    /// between two levels counts as the lower one.
    pub fn check_level(&self) -> u32 {
        self.get("OCF_CHECK_LEVEL").and_then(|level| level.parse().ok()).unwrap_or(0)
    }

    /// Returns whether this action is a recurring monitor. Pacemaker's probes have the interval 0.
    pub fn is_recurring(&self) -> bool {
        self.meta("interval").and_then(|ms| ms.parse::<u64>().ok()).is_some_and(|ms| ms > 0)
    }

    /// Returns whether the resource is a promotable clone.
    pub fn is_promotable(&self) -> bool {
        self.meta("promotable").and_then(yes_no::of_pacemaker) == Some(true) || self.meta("promoted_max").is_some()
    }

    /// Returns a hash of all variables that begin with `OCF_`, and of this program's version. Two calls with an equal hash are
    /// about the same resource, parameters and role.
    pub fn asked(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        env!("CARGO_PKG_VERSION").hash(&mut hasher);
        self.variables.iter().filter(|(name, _)| name.starts_with("OCF_")).for_each(|pair| pair.hash(&mut hasher));
        hasher.finish()
    }

    /// Returns the directory in which resource agents keep files until the next boot.
    pub fn volatile_dir(&self) -> PathBuf {
        PathBuf::from(self.get("HA_RSCTMP").unwrap_or("/run/resource-agents"))
    }

    /// Returns the file to which Pacemaker's resource agents log in addition to the journal; `None` if it is not set.
    pub fn log_file(&self) -> Option<PathBuf> {
        self.get("HA_LOGFILE").or_else(|| self.get("HA_logfile")).map(PathBuf::from)
    }

    /// Returns whether Pacemaker asks for debug messages.
    pub fn debug(&self) -> bool {
        self.get("HA_debug").is_some_and(|value| value != "0")
    }

    /// Returns the contents of the `notify` variables; `None` if there are none, for example in a call by hand.
    pub fn notify(&self) -> Option<Notify> {
        let has_any = self.variables.keys().any(|name| name.starts_with("OCF_RESKEY_CRM_meta_notify_"));
        if !has_any {
            return None;
        }
        let nodes = |what: &str| -> BTreeSet<String> {
            let names = self.meta(&format!("notify_{what}_uname")).unwrap_or_default();
            names.split_whitespace().map(str::to_owned).collect()
        };
        // The list of active instances does not include promoted ones.
        let mut active = nodes("active");
        active.extend(nodes("promoted"));
        active.extend(nodes("master"));
        Some(Notify {
            moment: match self.meta("notify_type") {
                Some("pre") => Moment::Pre,
                Some("post") => Moment::Post,
                _ => Moment::Outside,
            },
            operation: match self.meta("notify_operation") {
                Some("start") => Operation::Start,
                Some("stop") => Operation::Stop,
                Some("promote") => Operation::Promote,
                Some("demote") => Operation::Demote,
                _ => Operation::None,
            },
            active,
            start: nodes("start"),
            stop: nodes("stop"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Env {
        Env::from_pairs(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    #[test]
    fn a_clone_instance_loses_its_number() {
        assert_eq!(env(&[("OCF_RESOURCE_INSTANCE", "etcd:1")]).resource(), "etcd");
    }

    #[test]
    fn without_notify_variables_nothing_is_known_of_the_transition() {
        assert_eq!(env(&[("OCF_RESKEY_CRM_meta_timeout", "600000")]).notify(), None);
    }

    #[test]
    fn notify_lists_are_sets_of_nodes_and_a_blank_is_none() {
        let notify = env(&[
            ("OCF_RESKEY_CRM_meta_notify_type", "post"),
            ("OCF_RESKEY_CRM_meta_notify_operation", "stop"),
            ("OCF_RESKEY_CRM_meta_notify_stop_uname", "node2 "),
            ("OCF_RESKEY_CRM_meta_notify_start_uname", " "),
            ("OCF_RESKEY_CRM_meta_notify_active_uname", "node2 node1 node2"),
        ])
        .notify()
        .unwrap();
        assert_eq!((notify.moment, notify.operation), (Moment::Post, Operation::Stop));
        assert_eq!(notify.stop.iter().collect::<Vec<_>>(), ["node2"]);
        assert!(notify.start.is_empty());
        assert_eq!(notify.active.len(), 2);
    }
}
