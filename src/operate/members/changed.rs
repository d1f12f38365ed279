//! The answer of a command that changed the members.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::decide::members::{Forbidden, Membership};

/// The end of a change.
#[derive(Debug, Serialize)]
pub struct Changed {
    pub wish: &'static str,
    pub node: String,
    pub done: bool,
    pub rule: Option<&'static str>,
    pub because: Option<String>,
    pub instead: Option<String>,
    /// The steps that this call carried out.
    pub made: Vec<String>,
    /// The environment with which the new member's etcd must be started.
    pub new_etcd: Option<BTreeMap<&'static str, String>>,
    pub voters: usize,
    pub healthy_voters: usize,
    pub seconds: u64,
}

impl Changed {
    /// Returns the answer of a finished change, after `seconds`.
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

    /// Turns it into the answer of a change that a rule ended.
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
