//! `tandem member protect` and `unprotect`: the hook that delays the deletion of a member's Machine.

use clap::{Args, ValueEnum};

use super::source::SourceArguments;
use crate::adapters::openshift::machines::Api;
use crate::admin::exit::Exit;
use crate::admin::prompt::{Answers, Prompt};
use crate::admin::report::{Form, Report, show};
use crate::operate::failure::Failure;
use crate::operate::members::protect::{self, Protected, Row};
use crate::operate::members::source::Target;

const HELP: &str = "\
While the hook is on a Machine, the controller of Machines neither drains nor deletes it. On a Machine of the
Cluster API the hook is 'pre-drain.delete.hook.machine.cluster.x-k8s.io/etcd-quorum'. On a Machine of OpenShift's
Machine API it is 'EtcdQuorumOperator' of 'clusteroperator/etcd' among the preDrain hooks.

Put the hook on before a learner is promoted, and take it off once the member is removed. A Machine that is being
deleted gets no hook, because its hook was taken off on purpose. Where OpenShift's etcd operator runs, it keeps its
own hooks, and the command writes nothing. Not run on a real OpenShift.

Exit codes:
  0  done, or done before
  1  failed, or no member answered
  2  the arguments are wrong
  3  a Machine is being deleted

With --json:
  operator  whether OpenShift's etcd operator keeps the hooks, so that nothing was written
  machines  for each node what was done: written, already (done before), deleting (its Machine is being deleted), or
            none (it has no Machine of the control plane)";

/// Puts a hook on a member's Machine, which delays the deletion of the Machine
#[derive(Args)]
#[command(after_help = HELP)]
pub(in crate::admin) struct Protect {
    #[command(flatten)]
    whose: Whose,
}

/// Takes the hook off a member's Machine, so that the Machine may be deleted
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
    /// Selects every voter
    #[arg(long, conflicts_with = "node")]
    all: bool,
    /// API that has the Machine; by default, the one in which it is found
    #[arg(long, value_enum)]
    hook: Option<Hook>,
    #[command(flatten)]
    source: SourceArguments,
    #[command(flatten)]
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Hook {
    /// OpenShift's Machine API
    MachineApi,
    /// The Cluster API of Kubernetes
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

impl Protect {
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        let target = self.whose.source.target();
        show(&self.whose.of(&target).protect()?, self.whose.form)
    }
}

impl Unprotect {
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        let target = self.whose.source.target();
        let prompt = Prompt::new(&self.answers, self.whose.form);
        show(&self.whose.of(&target).unprotect(&prompt)?, self.whose.form)
    }
}

impl Whose {
    fn of<'a>(&'a self, target: &'a Target) -> protect::Whose<'a> {
        protect::Whose { target, node: self.node.as_deref(), api: self.hook.map(Api::from) }
    }
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
                _ => format!("{node}: it has no Machine of the control plane"),
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
    use crate::admin::report::golden;

    #[test]
    fn every_answer_has_its_golden() {
        let row = |node: &str, done| Row { node: node.to_owned(), done };
        golden::compare("member-unprotect", &Protected { operator: false, machines: vec![row("node2", "written")] });
        let machines = vec![row("m1", "already"), row("m2", "deleting")];
        let again = Protected { operator: false, machines };
        assert_eq!(again.exit(), Exit::Degraded);
        golden::compare("member-protect", &again);
    }
}
