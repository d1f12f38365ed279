//! What a command that changes the members answers.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::decide::members::{Forbidden, Membership};

/// How a change ended.
#[derive(Debug, Serialize)]
pub struct Changed {
    pub wish: &'static str,
    pub node: String,
    pub done: bool,
    pub rule: Option<&'static str>,
    pub because: Option<String>,
    pub instead: Option<String>,
    /// What this call did.
    pub made: Vec<String>,
    /// What the new member's etcd is to be started with.
    pub new_etcd: Option<BTreeMap<&'static str, String>>,
    pub voters: usize,
    pub healthy_voters: usize,
    pub seconds: u64,
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
