//! The changes around a running agent: the list of members, and the reasons to be disarmed.

use super::Shell;
use crate::fencing_agent::config::Config;
use crate::fencing_agent::config::refusal::Refusal;
use crate::fencing_agent::core::Event;
use crate::fencing_agent::shell::report::Told;

impl Shell {
    /// Passes the reasons for not using the watchdog to the agent's pure core if they have changed. They come from the disable file and
    /// from this node's Node. Passes nothing before the API server has shown the Node. Returns whether the agent must end.
    pub(super) fn maintain(&mut self) -> bool {
        let of_node = match (&self.kubernetes, &self.work.of_node) {
            (None, _) => Vec::new(),
            (Some(_), Some(reasons)) => reasons.clone(),
            (Some(_), None) => return false,
        };
        let wanted = &self.config.disable_file;
        let of_file = wanted.exists().then(|| format!("{} is there", wanted.display()));
        let reasons: Vec<String> = of_file.into_iter().chain(of_node).collect();
        if self.work.maintenance.as_ref() == Some(&reasons) {
            return false;
        }
        self.work.maintenance = Some(reasons.clone());
        self.handle(Event::Maintenance(reasons))
    }

    /// Applies a changed list of members; logs the error if it is invalid. Returns whether the agent must end.
    pub(super) fn take_list(&mut self, changed: Result<Option<Config>, Refusal>) -> bool {
        match changed {
            Ok(None) => false,
            Ok(Some(config)) => {
                self.config = config;
                let listed = self.list();
                self.keeper.keep(self.config.members.clone());
                self.chronicle.info(format!("members: {}, quorum {}", listed.len(), self.config.quorum()));
                self.handle(Event::Listed(listed))
            }
            Err(why) => {
                self.chronicle.warn(format!("the list of members is kept as it is: {why}"));
                false
            }
        }
    }

    /// Handles a report from a thread that uses the Kubernetes API. Returns whether the agent must end.
    pub(super) fn of_kubernetes(&mut self, told: Told) -> bool {
        match told {
            Told::Listed(members) if members == self.config.members => false,
            Told::Listed(members) => {
                let changed = self.config.with_members(members).map(Some);
                self.take_list(changed)
            }
            Told::Maintenance(reasons) => {
                self.work.of_node = Some(reasons);
                self.maintain()
            }
            Told::Answered(asked) => self.handle(Event::ApiAnswered { asked }),
            Told::Failed(asked) => self.handle(Event::ApiFailed { asked }),
            Told::Warning(words) => {
                self.chronicle.warn(words);
                false
            }
        }
    }
}
