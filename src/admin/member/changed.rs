//! What a command that changes the members answers.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::admin::exit::Exit;
use crate::admin::report::Report;
use crate::decide::members::{Forbidden, Membership};

/// How a change ended.
#[derive(Debug, Serialize)]
pub(super) struct Changed {
    pub(super) wish: &'static str,
    pub(super) node: String,
    pub(super) done: bool,
    pub(super) rule: Option<&'static str>,
    pub(super) because: Option<String>,
    pub(super) instead: Option<String>,
    /// What this call did.
    pub(super) made: Vec<String>,
    /// What the new member's etcd is to be started with.
    pub(super) new_etcd: Option<BTreeMap<&'static str, String>>,
    pub(super) voters: usize,
    pub(super) healthy_voters: usize,
    pub(super) seconds: u64,
}

impl Changed {
    /// It is done, after `seconds`.
    pub(super) fn done(
        wish: &'static str,
        node: &str,
        membership: Option<&Membership>,
        made: Vec<String>,
        seconds: u64,
    ) -> Self {
        Self {
            wish,
            node: node.to_owned(),
            done: true,
            rule: None,
            because: None,
            instead: None,
            made,
            new_etcd: None,
            voters: membership.map_or(0, |membership| membership.voters().count()),
            healthy_voters: membership.map_or(0, Membership::healthy),
            seconds,
        }
    }

    /// The same, ended by a rule.
    pub(super) fn forbidden(self, why: &Forbidden) -> Self {
        Self {
            done: false,
            rule: Some(why.rule()),
            because: Some(why.to_string()),
            instead: Some(why.instead()),
            ..self
        }
    }
}

impl Report for Changed {
    fn text(&self) -> String {
        let (wish, node) = (self.wish, &self.node);
        let figures = format!("{} of {} voters are healthy", self.healthy_voters, self.voters);
        let made: Vec<String> = self.made.iter().map(|what| format!("\n  {what}")).collect();
        let made = made.concat();
        match (&self.rule, &self.because, &self.instead) {
            (Some(rule), Some(because), Some(instead)) => {
                format!(
                    "no: {wish} {node} is not to be done now ({rule}): {because}\ninstead: {instead}\n{figures}{made}"
                )
            }
            _ if self.made.is_empty() => format!("{wish} {node}: nothing was left to do\n{figures}"),
            _ => format!("{wish} {node}: done in {} s\n{figures}{made}", self.seconds),
        }
    }

    fn exit(&self) -> Exit {
        if self.done { Exit::Done } else { Exit::Degraded }
    }
}
