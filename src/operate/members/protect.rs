//! The hook that delays the deletion of a member's Machine.

use std::path::Path;

use serde::Serialize;

use super::judge;
use super::look::{self, machine_names};
use crate::adapters::openshift::machine::PATIENCE;
use crate::adapters::openshift::machines::{Api, Machines, Written};
use crate::decide::members::{Member, Membership};
use crate::operate::failure::Failure;
use crate::operate::members::source::Target;
use crate::operate::talk::Talk;

/// The members for which a command sets or removes the deletion hook of the Machine.
#[derive(Clone, Copy, Debug)]
pub struct Whose<'a> {
    pub target: &'a Target,
    /// The one member that the operator named; `None` for every voter.
    pub node: Option<&'a str>,
    /// The API in which the members' Machines are; `None` to search all APIs.
    pub api: Option<Api>,
}

/// The result of a command that sets or removes deletion hooks.
#[derive(Debug, Serialize)]
pub struct Protected {
    pub operator: bool,
    pub machines: Vec<Row>,
}

/// The result for the deletion hook of one Machine.
#[derive(Debug, Serialize)]
pub struct Row {
    pub node: String,
    pub done: &'static str,
}

impl Whose<'_> {
    /// Sets the hooks that delay the deletion of the selected members' Machines.
    pub fn protect(&self) -> Result<Protected, Failure> {
        self.write(true, |_, _| Ok(()))
    }

    /// Removes the hooks that delay the deletion of the selected members' Machines. The operator must confirm it for a voter.
    pub fn unprotect(&self, talk: &dyn Talk) -> Result<Protected, Failure> {
        self.write(false, |node, member| may_go(talk, node, member))
    }

    fn write(
        &self,
        is_to_be: bool,
        may: impl Fn(&str, Option<&Member>) -> Result<(), Failure>,
    ) -> Result<Protected, Failure> {
        let source = self.target.source()?;
        let Some(kubeconfig) = &source.kubeconfig else {
            return Err(Failure("no API is known that makes Machines: name its '--kubeconfig FILE'".to_owned()));
        };
        let membership = look::look(&source)?.membership;
        if let Some(node) = self.node {
            judge::must_be_one(&membership, node)?;
        }
        let named = named(self.node, &membership);
        for (node, member) in &named {
            may(node, *member)?;
        }
        let mut machines = Machines::read(kubeconfig, PATIENCE).map_err(Failure)?;
        write(&mut machines, &named, self.api, is_to_be)
    }
}

fn may_go(talk: &dyn Talk, node: &str, member: Option<&Member>) -> Result<(), Failure> {
    match member {
        Some(member) if !member.is_learner => {
            talk.tell(&format_args!("{node} votes, and its Machine may be deleted then"))?;
            talk.name_or_leave(&format!("type '{node}' if it may"), node)
        }
        _ => Ok(()),
    }
}

/// Returns all voters, or only the member `node`, which may have left the member list already.
fn named<'a>(node: Option<&str>, membership: &'a Membership) -> Vec<(String, Option<&'a Member>)> {
    let Some(node) = node else {
        return membership.voters().map(|voter| (voter.shown(), Some(voter))).collect();
    };
    vec![(node.to_owned(), judge::find(membership, node))]
}

/// Sets or removes the deletion hook on one member's Machine, as a part of a member change. Returns `None` if an OpenShift operator keeps
/// the hooks.
pub(super) fn hook(kubeconfig: &Path, node: &str, names: &[&str], is_to_be: bool) -> Result<Option<Written>, Failure> {
    let read = Machines::read(kubeconfig, PATIENCE);
    let written =
        read.and_then(
            |mut machines| {
                if machines.has_operator { Ok(None) } else { machines.write(names, None, is_to_be).map(Some) }
            },
        );
    written.map_err(|why| not_written(node, &why))
}

fn not_written(node: &str, why: &str) -> Failure {
    Failure(format!("the hook of {node}'s Machine is not written: {why}"))
}

fn write(
    machines: &mut Machines,
    named: &[(String, Option<&Member>)],
    api: Option<Api>,
    is_to_be: bool,
) -> Result<Protected, Failure> {
    if machines.has_operator {
        return Ok(Protected { operator: true, machines: Vec::new() });
    }
    let mut rows = Vec::new();
    for (node, member) in named {
        let mut names: Vec<&str> = member.map(|member| machine_names(member)).unwrap_or_default();
        names.push(node);
        let written = machines.write(&names, api, is_to_be).map_err(|why| not_written(node, &why))?;
        let done = match written {
            Written::Yes => "written",
            Written::Already => "already",
            Written::BeingDeleted => "deleting",
            Written::NoMachine => "none",
        };
        rows.push(Row { node: node.clone(), done });
    }
    Ok(Protected { operator: false, machines: rows })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::kubernetes::kubeconfig::for_server;
    use crate::adapters::openshift::machines::fake_api::FakeApi;
    use crate::operate::talk::fake_operator::Operator;

    fn member(node: u64, is_learner: bool) -> Member {
        let peer_urls = vec![format!("https://192.0.2.{node}:2380")];
        Member { id: node, name: format!("m{node}"), peer_urls, is_learner, ..Member::default() }
    }

    #[test]
    fn the_machine_of_a_voter_may_go_where_its_name_was_typed() {
        let may = |talk: &Operator, member: Option<&Member>| may_go(talk, "node2", member).is_ok();
        let confirm = |node| Operator { confirm: Some(node), ..Operator::default() };
        let yes = Operator { yes: true, ..Operator::default() };
        let (voter, learner) = (member(2, false), member(2, true));
        assert!(may(&confirm("node2"), Some(&voter)) && may(&yes, Some(&voter)));
        assert!(!may(&confirm("node1"), Some(&voter)));
        assert!(may(&confirm("node1"), Some(&learner)) && may(&confirm("node1"), None));
    }

    #[test]
    fn a_hook_is_written_in_the_api_that_was_named() {
        let dir = tempfile::tempdir().unwrap();
        let fake_api = FakeApi::start(false);
        fake_api.add(Api::Machine, "node2", "192.0.2.2");
        let mut machines = Machines::read(&for_server(&dir, &fake_api.server), PATIENCE).unwrap();
        let written = write(&mut machines, &[("node2".to_owned(), None)], Some(Api::Cluster), true).unwrap();
        assert_eq!((written.machines[0].done, fake_api.patches()), ("none", 0));
    }

    #[test]
    fn voters_are_found_by_their_address_and_nothing_is_written_beside_an_operator() {
        let dir = tempfile::tempdir().unwrap();
        let membership =
            Membership { members: vec![member(1, false), member(2, false), member(3, true)], ..Membership::default() };
        let all = named(None, &membership);
        for has_operator in [false, true] {
            let fake_api = FakeApi::start(has_operator);
            for node in 1..=3 {
                fake_api.add(Api::Cluster, &format!("node{node}"), &format!("192.0.2.{node}"));
                let addresses = serde_json::json!([{"address": format!("192.0.2.{node}")}]);
                let status = serde_json::json!({"status": {"addresses": addresses}});
                fake_api.make(&format!("/api/v1/nodes/node{node}"), status);
            }
            let read = || Machines::read(&for_server(&dir, &fake_api.server), PATIENCE).unwrap();
            let written = write(&mut read(), &all, None, true).unwrap();
            assert_eq!(written.operator, has_operator);
            let is_protected = |node: &str| read().of(&[node]).unwrap().unwrap().is_protected();
            assert_eq!(["node1", "node2", "node3"].map(is_protected), [!has_operator, !has_operator, false]);
            if has_operator {
                assert_eq!(fake_api.patches(), 0);
                continue;
            }
            fake_api.delete(Api::Cluster, "node2");
            let done = |written: Protected| -> Vec<(String, &str)> {
                written.machines.into_iter().map(|row| (row.node, row.done)).collect()
            };
            let off = write(&mut read(), &named(Some("node2"), &membership), None, false).unwrap();
            assert_eq!(done(off), [("node2".to_owned(), "written")]);
            let again = write(&mut read(), &all, None, true).unwrap();
            assert_eq!(done(again), [("m1".to_owned(), "already"), ("m2".to_owned(), "deleting")]);
        }
    }
}
