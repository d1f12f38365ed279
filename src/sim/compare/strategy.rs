//! Other ways to run two members, each as a function with the shape of [`decide::decide`], so that they live in the same
//! world: the same Pacemaker, the same etcd, the same faults. What joining a living cluster takes is the same for all of
//! them, and is left to the real core.

use crate::base::Fact;
use crate::decide;
use crate::decide::evidence::{DataDir, DurableState, Evidence, Lineage, PeerAgent, PeerNode};
use crate::decide::plan::{Decision, Effect, Exit, Phase, Plan, Progress, Request, RunMode};
use crate::decide::reason::{Health, Reason};

/// The rules that decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strategy {
    #[default]
    Tandem,
    /// Two members of etcd without help: one that is alone waits.
    PlainRaft,
    /// The rules of the agent written in shell, as published: the node that has the higher index forces a new cluster from it,
    /// with what etcd itself knows to be committed. Each node's index is a sample of up to 10 s ago, and the two nodes do
    /// not sample at once: under writes the second node's is the older one here.
    ShellAgent,
    /// A node that does not see the other one continues at once, and when they meet again the configured primary's data wins.
    ActiveActive,
    /// The configured primary continues at once; the other one waits for an operator.
    ActivePassive,
}

/// Each with its name in the table, and what it does.
pub const ALL: [(Strategy, &str, &str); 5] = [
    (Strategy::PlainRaft, "plain Raft", "two members of etcd and nobody who helps: one that is alone waits"),
    (
        Strategy::ShellAgent,
        "shell agent",
        "whoever has the higher index forces a new cluster, and drops what it does not know to be committed",
    ),
    (
        Strategy::ActiveActive,
        "primary, active-active",
        "a node that sees nobody goes on at once; where two meet, the primary's data wins",
    ),
    (
        Strategy::ActivePassive,
        "primary, active-passive",
        "the configured primary goes on at once, the other one waits for an operator",
    ),
    (
        Strategy::Tandem,
        "Tandem",
        "runs standalone once its peer is confirmed off and its own log has all that was acknowledged",
    ),
];

/// The configured primary.
const PRIMARY: &str = "node1";
/// How many writes came between the two nodes' samples.
const SAMPLE_IS_OLDER_BY: u64 = 5;

impl Strategy {
    /// Whether lost nodes are fenced. The older controllers take them for dead, and etcd by itself does not care.
    pub fn fences(self) -> bool {
        matches!(self, Self::ShellAgent | Self::Tandem)
    }

    /// One round's decision.
    pub fn decide(self, request: Request, evidence: &Evidence, progress: &Progress) -> Decision {
        if self == Self::Tandem {
            return decide::decide(request, evidence, progress);
        }
        Decision::around(self.plan(request, evidence, progress), request, evidence, progress)
    }

    fn plan(self, request: Request, evidence: &Evidence, progress: &Progress) -> Plan {
        let is_etcds_own = self == Self::PlainRaft;
        match request {
            Request::Start => self.start(evidence, progress),
            Request::Stop if is_etcds_own || !own_is_led(evidence) => stop(evidence),
            Request::Monitor => self.monitor(evidence, progress),
            Request::Notify if is_etcds_own || !own_is_led(evidence) => exit(Exit::Success),
            _ => decide::decide(request, evidence, progress).plan,
        }
    }

    fn start(self, evidence: &Evidence, progress: &Progress) -> Plan {
        if evidence.container_may_run() {
            return exit(Exit::Success);
        }
        let (Some(cib), Some(record)) = (evidence.cib.known(), evidence.published_state()) else {
            return exit(Exit::Retriable);
        };
        if cib.own_record.as_ref() != Some(&record) {
            return Plan::then_look(vec![Effect::PublishRecord(record)], 50, progress.clone(), Reason::NothingToDo);
        }
        let peer_serves = evidence.peer_etcd.known().is_some_and(|etcd| etcd.leader.is_some());
        if peer_serves && self != Self::PlainRaft {
            return decide::decide(Request::Start, evidence, progress).plan;
        }
        match voters(&record.disk) {
            0 => exit(Exit::Retriable),
            1 if self != Self::ShellAgent => run(RunMode::Normally),
            _ => self.begin(evidence, sample(&evidence.me.name, &record.disk)),
        }
    }

    /// A voter's data, and no cluster that serves.
    fn begin(self, evidence: &Evidence, own_index: u64) -> Plan {
        let Some(cib) = evidence.cib.known() else { return exit(Exit::Retriable) };
        let peer_is_gone = cib.peer_node != PeerNode::Online;
        let confirmed = evidence.confirmation.known().is_some();
        match self {
            Self::ShellAgent => {
                let claimed = cib.standalone_node.as_ref() == Some(&evidence.me.name);
                let both = evidence.notify.as_ref().is_some_and(|notify| notify.start.len() > 1);
                let peer_index = cib.peer_record.as_ref().map(|record| sample(evidence.peer_name(), &record.disk));
                match peer_index.filter(|_| both).map(|peer| own_index.cmp(&peer)) {
                    _ if claimed => force(evidence),
                    _ if cib.standalone_node.as_deref() == Some(evidence.peer_name()) => exit(Exit::Retriable),
                    Some(std::cmp::Ordering::Greater) => claim(evidence),
                    Some(std::cmp::Ordering::Equal) => run(RunMode::Normally),
                    None if cib.peer_agent == PeerAgent::Active => exit(Exit::Retriable),
                    // Its own index is no older than the one it saw last.
                    None if confirmed || !evidence.was_left_behind() => claim(evidence),
                    Some(std::cmp::Ordering::Less) | None => exit(Exit::Retriable),
                }
            }
            Self::ActiveActive | Self::ActivePassive if peer_is_gone && self.may_go_on(evidence, confirmed) => {
                force(evidence)
            }
            _ => run(RunMode::Normally),
        }
    }

    fn may_go_on(self, evidence: &Evidence, confirmed: bool) -> bool {
        self == Self::ActiveActive || evidence.me.name == PRIMARY || confirmed
    }

    fn monitor(self, evidence: &Evidence, progress: &Progress) -> Plan {
        let peer = evidence.peer_etcd.known().filter(|etcd| etcd.leader.is_some());
        if !evidence.container_may_run() {
            // The shell agent's crashed member waits until its peer runs standalone.
            let waits = self == Self::ShellAgent && peer.is_none();
            return exit(if waits { Exit::Success } else { Exit::NotRunning });
        }
        match &evidence.own_etcd {
            _ if self == Self::PlainRaft => exit(Exit::Success),
            Fact::Known(own) if own.leader.is_some() => match peer {
                // Two histories: the primary's wins.
                Some(peer) if peer.has_one_voter() && own.has_one_voter() && evidence.me.name != PRIMARY => {
                    let effects = vec![Effect::StopContainer { grace_s: 1 }, Effect::MoveDataAside];
                    Plan::exit(effects, Exit::NotRunning, Reason::NothingToDo)
                }
                _ => decide::decide(Request::Monitor, evidence, progress).plan,
            },
            _ if peer.is_none() && self.claims(evidence) => {
                let claim = Effect::SetStandalone(Some(evidence.me.name.clone()));
                Plan::exit(vec![claim, Effect::StopContainer { grace_s: 1 }], Exit::Retriable, Reason::NothingToDo)
            }
            _ => exit(Exit::Success),
        }
    }

    /// Whether a member that lost its leader is to be restarted alone.
    fn claims(self, evidence: &Evidence) -> bool {
        let is_gone = evidence.cib.known().is_some_and(|cib| cib.peer_node != PeerNode::Online);
        let has_served = evidence.boot_state().is_some_and(|memory| memory.voter.is_some());
        let confirmed = evidence.confirmation.known().is_some();
        match self {
            Self::ShellAgent => has_served && (is_gone || evidence.peer_etcd.is_absent()),
            _ => (has_served || confirmed) && is_gone && self.may_go_on(evidence, confirmed),
        }
    }
}

fn own_is_led(evidence: &Evidence) -> bool {
    evidence.own_etcd.known().is_some_and(|etcd| etcd.leader.is_some())
}

/// How many voters its data names, if it is one of them.
fn voters(disk: &DataDir) -> usize {
    match disk {
        DataDir::Present(history) if !history.has_left && history.voters.contains(&history.member_id) => {
            history.voters.len()
        }
        _ => 0,
    }
}

/// The index as the shell agent has it.
fn sample(node: &str, disk: &DataDir) -> u64 {
    match disk {
        DataDir::Present(history) if node == PRIMARY => history.last_index,
        DataDir::Present(history) => history.last_index.saturating_sub(SAMPLE_IS_OLDER_BY),
        DataDir::Blank | DataDir::Broken { .. } => 0,
    }
}

fn exit(exit: Exit) -> Plan {
    Plan::exit(Vec::new(), exit, Reason::NothingToDo)
}

fn run(mode: RunMode) -> Plan {
    let progress = Progress::enter(Phase::Started(mode.clone()), 0);
    Plan::then_look(vec![Effect::RunContainer(mode)], 100, progress, Reason::NothingToDo)
}

/// The shell agent claims first, and goes on once it sees that the claim is its own.
fn claim(evidence: &Evidence) -> Plan {
    let effects = vec![Effect::SetStandalone(Some(evidence.me.name.clone()))];
    Plan::then_look(effects, 100, Progress::enter(Phase::Announced, 0), Reason::NothingToDo)
}

/// What etcd itself makes of the data: entries that it does not know to be committed are dropped. That it went on is
/// recorded, as the indices in the CIB tell it.
fn force(evidence: &Evidence) -> Plan {
    let mode = RunMode::ForceNewCluster;
    let forks = evidence.cib.known().map_or(0, |cib| cib.lineage.forks) + 1;
    let lineage = Lineage { forks, by: evidence.me.name.clone() };
    let effects = vec![
        Effect::WriteNote(DurableState { lineage: lineage.clone(), ..DurableState::default() }),
        Effect::PublishLineage(lineage),
        Effect::SetStandalone(Some(evidence.me.name.clone())),
        Effect::RunContainer(mode.clone()),
    ];
    Plan::then_look(effects, 100, Progress::enter(Phase::Started(mode), 0), Reason::NothingToDo)
}

fn stop(evidence: &Evidence) -> Plan {
    let effects = if evidence.container_may_run() { vec![Effect::StopContainer { grace_s: 1 }] } else { Vec::new() };
    Plan::exit(effects, Exit::Success, Reason::Running(Health::Stopped))
}
