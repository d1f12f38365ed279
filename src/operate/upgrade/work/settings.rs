//! Changes parameters that restart etcd. Each node gets its new values while its etcd is stopped, in an attribute set
//! of its own, so that Pacemaker restarts nothing. The last step moves them to the set of both nodes.

use super::super::{Step, Upgraded, seen};
use super::Work;
use crate::adapters::pacemaker::node_settings::{self, Pair, Written};
use crate::adapters::pacemaker::{by_hand, instance, member_change};
use crate::base::shell;
use crate::operate::cluster::Cluster;
use crate::operate::failure::Failure;
use crate::operate::health::view;
use crate::operate::node;
use crate::os::clock::Deadline;

/// Parameters that may be changed one node at a time. They take effect at etcd's next start, and a node needs none of them to find its
/// peer or its data.
pub(in crate::operate) const CHANGEABLE: [&str; 4] = ["etcd_settings", "run_opts", "run_cmd", "run_cmd_opts"];

impl Work<'_> {
    /// Returns the steps that the change of settings would perform, for a dry run.
    pub(in crate::operate::upgrade) fn plan_settings(mut self) -> Result<Upgraded, Failure> {
        self.may_be_set()?;
        let cluster = self.look()?;
        Self::may_begin(&cluster, self.is_begun(&cluster)?)?;
        let to_do = self.settings_to_do(&cluster, &self.written(&cluster)?);
        self.report.steps = to_do.into_iter().map(|what| Step { what, seconds: None }).collect();
        self.report.done = self.report.steps.is_empty();
        self.progress.end();
        Ok(self.report)
    }

    pub(in crate::operate::upgrade) fn run_settings(mut self) -> Result<Upgraded, Failure> {
        let done = self.settings_steps();
        self.progress.end();
        done.map(|()| self.report)
    }

    fn settings_steps(&mut self) -> Result<(), Failure> {
        self.may_be_set()?;
        let _lock = super::lock()?;
        let cluster = self.look()?;
        let is_begun = self.is_begun(&cluster)?;
        Self::may_begin(&cluster, is_begun)?;
        let to_do = self.settings_to_do(&cluster, &self.written(&cluster)?);
        if to_do.is_empty() && !is_begun {
            self.report.done = true;
            return Ok(());
        }
        self.takes_over(&cluster, &to_do, is_begun)?;
        for name in seen::in_order(&cluster) {
            self.gives(&name)?;
        }
        self.until(seen::both_vote)?;
        self.holds_on_both(&cluster)?;
        member_change::give_back(&self.programs)?;
        self.report.done = true;
        Ok(())
    }

    fn pairs(&self) -> &[Pair] {
        &self.order.settings
    }

    fn written(&self, cluster: &Cluster) -> Result<Written, Failure> {
        Ok(node_settings::read(&self.programs, &view::etcd_id(cluster))?)
    }

    /// Checks that `tandem upgrade` may change each of the settings, and that the agent accepts the values.
    fn may_be_set(&self) -> Result<(), Failure> {
        for (name, _) in self.pairs() {
            if !CHANGEABLE.contains(&name.as_str()) {
                return Err(Failure(format!(
                    "nothing was done: {name} is none of {}: see 'man ocf_tandem_podman-etcd' for what it takes to change it",
                    CHANGEABLE.join(", ")
                )));
            }
        }
        node::takes(self.order.resource.as_deref(), self.pairs())
    }

    /// Returns the command that restores the previous settings; `None` if the new settings equal the previous ones.
    /// The resource keeps the previous values until the last step.
    pub(super) fn settings_of_before(&self, cluster: &Cluster) -> Option<String> {
        let written = self.written(cluster).ok()?;
        let of_before =
            |name: &String| written.of_all.iter().find(|(one, _)| one == name).map_or("", |(_, value)| value.as_str());
        let differ = self.pairs().iter().any(|(name, value)| of_before(name) != value);
        let words = self.pairs().iter().map(|(name, _)| format!("{name}={}", of_before(name)));
        differ.then(|| format!("tandem upgrade --settings {}", shell::line(&words.collect::<Vec<_>>())))
    }

    fn has(&self, written: &Written, name: &str) -> bool {
        self.pairs().iter().all(|(setting, value)| written.value(name, setting).unwrap_or_default() == value)
    }

    fn settings_to_do(&self, cluster: &Cluster, written: &Written) -> Vec<String> {
        let without = seen::in_order(cluster).into_iter().filter(|name| !self.has(written, name));
        let mut to_do: Vec<String> =
            without.map(|name| format!("restarts etcd on {name} with it, and waits until it votes")).collect();
        if !to_do.is_empty() || !written.of_node.is_empty() {
            to_do.push("makes it the setting of both nodes; nothing is restarted by that".to_owned());
        }
        to_do
    }

    /// Stops etcd on a node, gives the node the new settings, and starts etcd with them. etcd must be stopped first, because Pacemaker
    /// restarts a running etcd at once if its parameters change. An interrupted command may have left a ban from the node. Such a ban is
    /// lifted only after the settings are written.
    fn gives(&mut self, name: &str) -> Result<(), Failure> {
        let cluster = self.look()?;
        if self.has(&self.written(&cluster)?, name) {
            return Ok(instance::let_back(&self.programs, name)?);
        }
        let began = Deadline::after(self.end.left());
        match (view::etcd_fact(&cluster, name).is_absent(), view::writes(&cluster)) {
            (false, _) => self.stops(name)?,
            (true, Some(true)) => self.keeps_away(name)?,
            // etcd takes no writes now, so there is none to hold up.
            (true, _) => {}
        }
        let given = self
            .written(&cluster)
            .and_then(|written| Ok(node_settings::set_on(&self.programs, &written, name, self.pairs())?));
        instance::let_back(&self.programs, name)?;
        given?;
        if seen::has_failed(&cluster, name) {
            by_hand::forget_failures(&self.programs, &view::etcd_id(&cluster), name)?;
        }
        self.until(seen::both_vote)?;
        self.done(super::restarted(name), &began);
        Ok(())
    }

    /// Writes the new settings to the resource's parameters, for both nodes, and deletes the settings of single
    /// nodes. Restarts nothing, because each etcd already runs with these values.
    fn holds_on_both(&mut self, cluster: &Cluster) -> Result<(), Failure> {
        let began = Deadline::after(self.end.left());
        let written = self.written(cluster)?;
        node_settings::set_on_all(&self.programs, &written, self.pairs())?;
        for name in view::names(cluster) {
            node_settings::forget_on(&self.programs, &name)?;
        }
        self.done(of_both(), &began);
        Ok(())
    }
}

fn of_both() -> String {
    "it is the setting of both nodes".to_owned()
}
