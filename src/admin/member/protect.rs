//! `tandem member protect` and `unprotect`: the hook that holds the deletion of a member's Machine up.

use std::path::Path;

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::look::{self, machine_names};
use super::source::SourceArguments;
use crate::adapters::openshift::machine::PATIENCE;
use crate::adapters::openshift::machines::{Api, Machines, Written};
use crate::admin::exit::Exit;
use crate::admin::prompt::{Answers, Prompt};
use crate::admin::report::{Form, Report, show};
use crate::decide::members::{Member, Membership};
use crate::operate::failure::Failure;

const HELP: &str = "\
The hook is 'pre-drain.delete.hook.machine.cluster.x-k8s.io/etcd-quorum' on a Machine of the Cluster API, and 'EtcdQuorumOperator' of
'clusteroperator/etcd' among the preDrain hooks of one of the Machine API: its controller neither drains nor deletes the Machine while
it is there. Put it on before a learner is promoted, and take it off once the member is gone. It is never put back on a Machine that
is being deleted: who took it off meant it. Where OpenShift's etcd operator runs, it keeps its hooks by itself, and nothing is
written. Not run on a real OpenShift.

Exit codes: 0 done, or there already; 1 failed, or nobody could be asked; 2 the arguments make no sense; 3 a Machine is being deleted.

With --json: operator says whether an etcd operator keeps the hooks, so that nothing was written; machines has each node with what
was done (written, already, deleting, none: it has no Machine).";

/// Holds the deletion of a member's Machine up until the member is gone
#[derive(Args)]
#[command(after_help = HELP)]
pub(in crate::admin) struct Protect {
    #[command(flatten)]
    whose: Whose,
}

/// Lets the deletion of a member's Machine go on
#[derive(Args)]
#[command(after_help = HELP)]
pub(in crate::admin) struct Unprotect {
    #[command(flatten)]
    whose: Whose,
    #[command(flatten)]
    answers: Answers,
}

#[derive(Args)]
struct Whose {
    /// The node, or the member by its name, id or peer URL
    #[arg(value_name = "NODE", required_unless_present = "all")]
    node: Option<String>,
    /// Every voter
    #[arg(long, conflicts_with = "node")]
    all: bool,
    /// The API whose Machine it is (the one that has it)
    #[arg(long, value_enum)]
    hook: Option<Hook>,
    #[command(flatten)]
    source: SourceArguments,
    #[command(flatten)]
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Hook {
    MachineApi,
    ClusterApi,
}

impl From<Hook> for Api {
    fn from(hook: Hook) -> Self {
        match hook {
            Hook::MachineApi => Self::Machine,
            Hook::ClusterApi => Self::Cluster,
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Protected {
    pub(super) operator: bool,
    pub(super) machines: Vec<Row>,
}

#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) node: String,
    pub(super) done: &'static str,
}

impl Protect {
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        show(&self.whose.write(true, |_, _| Ok(()))?, self.whose.form)
    }
}

impl Unprotect {
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        let prompt = Prompt::new(&self.answers, self.whose.form);
        show(&self.whose.write(false, |node, member| may_go(&prompt, node, member))?, self.whose.form)
    }
}

fn may_go(prompt: &Prompt<'_>, node: &str, member: Option<&Member>) -> Result<(), Failure> {
    match member {
        Some(member) if !member.is_learner => {
            prompt.tell(format_args!("{node} votes, and its Machine may be deleted then"))?;
            prompt.name_or_leave(&format!("type '{node}' if it may"), node)
        }
        _ => Ok(()),
    }
}

impl Whose {
    fn write(
        &self,
        is_to_be: bool,
        may: impl Fn(&str, Option<&Member>) -> Result<(), Failure>,
    ) -> Result<Protected, Failure> {
        let source = self.source.source()?;
        let Some(kubeconfig) = &source.kubeconfig else {
            return Err(Failure("no API is known that makes Machines: name its '--kubeconfig FILE'".to_owned()));
        };
        let membership = look::look(&source)?.membership;
        let named = named(self.node.as_deref(), &membership);
        for (node, member) in &named {
            may(node, *member)?;
        }
        let mut machines = Machines::read(kubeconfig, PATIENCE).map_err(Failure)?;
        write(&mut machines, &named, self.hook.map(Api::from), is_to_be)
    }
}

/// Those that were meant: the one by its name, which need not be a member any more, or all voters.
fn named<'a>(node: Option<&str>, membership: &'a Membership) -> Vec<(String, Option<&'a Member>)> {
    let Some(node) = node else {
        return membership.voters().map(|voter| (voter.shown(), Some(voter))).collect();
    };
    vec![(node.to_owned(), super::judge::find(membership, node))]
}

/// The hook of one member, as a part of its change; `None` where an operator keeps the hooks, and nothing is written.
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

impl Report for Protected {
    fn text(&self) -> String {
        if self.operator {
            return "OpenShift's etcd operator keeps the hooks by itself: nothing was written".to_owned();
        }
        let line = |row: &Row| {
            let node = &row.node;
            match row.done {
                "written" => format!("{node}: done"),
                "already" => format!("{node}: nothing was left to do"),
                "deleting" => format!("{node}: its Machine is being deleted, and gets no hook"),
                _ => format!("{node}: it has no Machine"),
            }
        };
        self.machines.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    fn exit(&self) -> Exit {
        if self.machines.iter().any(|row| row.done == "deleting") { Exit::Degraded } else { Exit::Done }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::openshift::kubeconfig::for_server;
    use crate::adapters::openshift::machines::stand_in::StandIn;
    use crate::admin::report::golden;

    fn member(node: u64, is_learner: bool) -> Member {
        let peer_urls = vec![format!("https://192.0.2.{node}:2380")];
        Member { id: node, name: format!("m{node}"), peer_urls, is_learner, ..Member::default() }
    }

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        answers: Answers,
    }

    #[test]
    fn the_machine_of_a_voter_may_go_where_its_name_was_typed() {
        use clap::Parser as _;
        let may = |answer: &[&str], member: Option<&Member>| {
            let Line { answers } = Line::parse_from(std::iter::once(&"tandem").chain(answer));
            may_go(&Prompt::new(&answers, Form { json: true }), "node2", member).is_ok()
        };
        let (voter, learner) = (member(2, false), member(2, true));
        assert!(may(&["--confirm", "node2"], Some(&voter)) && may(&["--yes"], Some(&voter)));
        assert!(!may(&["--confirm", "node1"], Some(&voter)));
        assert!(may(&["--confirm", "node1"], Some(&learner)) && may(&["--confirm", "node1"], None));
    }

    #[test]
    fn a_hook_is_written_in_the_api_that_was_named() {
        let dir = tempfile::tempdir().unwrap();
        let stand_in = StandIn::start(false);
        stand_in.add(Api::Machine, "node2", "192.0.2.2");
        let mut machines = Machines::read(&for_server(&dir, &stand_in.server), PATIENCE).unwrap();
        let written = write(&mut machines, &[("node2".to_owned(), None)], Some(Api::Cluster), true).unwrap();
        assert_eq!((written.machines[0].done, stand_in.patches()), ("none", 0));
    }

    #[test]
    fn voters_are_found_by_their_address_and_nothing_is_written_beside_an_operator() {
        let dir = tempfile::tempdir().unwrap();
        let membership =
            Membership { members: vec![member(1, false), member(2, false), member(3, true)], ..Membership::default() };
        let all = named(None, &membership);
        for has_operator in [false, true] {
            let stand_in = StandIn::start(has_operator);
            for node in 1..=3 {
                stand_in.add(Api::Cluster, &format!("node{node}"), &format!("192.0.2.{node}"));
            }
            let read = || Machines::read(&for_server(&dir, &stand_in.server), PATIENCE).unwrap();
            let written = write(&mut read(), &all, None, true).unwrap();
            assert_eq!(written.operator, has_operator);
            let is_protected = |node: &str| read().of(&[node]).unwrap().is_protected();
            assert_eq!(["node1", "node2", "node3"].map(is_protected), [!has_operator, !has_operator, false]);
            if has_operator {
                assert_eq!(stand_in.patches(), 0);
                continue;
            }
            stand_in.delete(Api::Cluster, "node2");
            let off = write(&mut read(), &named(Some("node2"), &membership), None, false).unwrap();
            golden::compare("member-unprotect", &off);
            let again = write(&mut read(), &all, None, true).unwrap();
            assert_eq!(again.exit(), Exit::Degraded);
            golden::compare("member-protect", &again);
        }
    }
}
