//! The answer of a command that changed the members.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::decide::members::{Forbidden, Membership};

/// The result of a command that changed the members, as it is printed.
#[derive(Debug, Serialize)]
pub struct Changed {
    pub wish: &'static str,
    pub node: String,
    pub done: bool,
    pub rule: Option<&'static str>,
    pub because: Option<String>,
    pub instead: Option<String>,
    /// The steps that this run of the command carried out, in words.
    pub made: Vec<String>,
    /// The environment variables with which the new member's etcd must be started; `None` if no new member waits for its start.
    pub new_etcd: Option<BTreeMap<&'static str, String>>,
    pub voters: usize,
    pub healthy_voters: usize,
    pub seconds: u64,
}

impl Changed {
    /// Returns the result of a finished change, which took `seconds`.
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

    /// Turns the result into that of a change that the rule `why` has stopped.
    #[must_use]
    pub fn forbidden(self, why: &Forbidden) -> Self {
        Self {
            done: false,
            rule: Some(why.rule()),
            because: Some(why.to_string()),
            instead: Some(why.instead()),
            ..self
        }
    }
}
