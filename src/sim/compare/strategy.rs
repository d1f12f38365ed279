//! Other ways to run two members. Each is a function with the shape of [`decide::decide`], so that all run in the same
//! world: the same Pacemaker, the same etcd, the same faults. Joining a live cluster takes the same steps for all of
//! them, and is left to the real core.

use crate::base::Fact;
use crate::decide;
use crate::decide::evidence::{DataDir, DurableState, Etcd, Evidence, Lineage, PeerAgent, PeerNode};
use crate::decide::plan::{Decision, Effect, Exit, Phase, Plan, Progress, Request, RunMode};
use crate::decide::reason::{Health, Reason};
use crate::sim::model::reach::Links;

/// The rules by which the two nodes of a comparison decide. They are Tandem's, or those of another way to run two members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strategy {
    #[default]
    Tandem,
    /// Tandem with a configured primary, to which the other node gives leadership back.
    TandemPrimary,
    /// Two members of etcd without any program that helps them. A member without its peer waits.
    PlainRaft,
    /// The rules of the published shell agent. The node with the higher index forces a new cluster from its data, and keeps the entries
    /// that etcd knows to be committed.
    ///
    /// Each node's index is a sample that is up to 10 s old, and the two nodes take their samples at different times. In the model, the
    /// second node's sample is always the older one while clients write.
    ShellAgent,
    /// A controller with a configured primary. A node that does not see the other node continues at once. When the two
    /// nodes meet again, the primary's data wins, and the primary gets leadership back.
    ActiveActive,
    /// A controller with a configured primary, and with one leading node at a time. The secondary waits while its detector reports a
    /// partition. A node also waits if it knows that its own links are cut.
    ActivePassive(Detector),
}

/// The detector that reports network partitions to a controller of [`Strategy::ActivePassive`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Detector {
    Right,
    /// A detector that wrongly reports a partition as a failure of the peer. It reports correctly when a node's own links are cut.
    Wrong,
    /// No detector: a controller assumes that a silent peer has failed.
    Off,
}

/// All strategies, each with its name in the table and a description.
pub const ALL: [(Strategy, &str, &str); 8] = [
    (Strategy::PlainRaft, "plain Raft", "two members of etcd without help: one that is alone waits"),
    (
        Strategy::ShellAgent,
        "shell agent",
        "the node with the higher index forces a new cluster, and drops what it does not know to be committed",
    ),
    (
        Strategy::ActiveActive,
        "active-active",
        "controllers with a primary: a node alone continues at once; where two meet, the primary's data wins",
    ),
    (
        Strategy::ActivePassive(Detector::Right),
        "active-passive, right",
        "the same, but a secondary alone stands still where its detector reports a partition",
    ),
    (
        Strategy::ActivePassive(Detector::Wrong),
        "active-passive, wrong",
        "the same, with a detector that takes a partition for a failure of the peer",
    ),
    (Strategy::ActivePassive(Detector::Off), "active-passive, off", "the same, without a detector"),
    (
        Strategy::Tandem,
        "Tandem",
        "runs standalone once its peer is confirmed off and its own log has all that was acknowledged",
    ),
    (
        Strategy::TandemPrimary,
        "Tandem, primary",
        "the same with a configured primary, which gets leadership back once it was well for 60 s",
    ),
];

/// The name of the node that is configured as the primary.
const PRIMARY: &str = "node1";
/// The number of writes that the second node's sampled index lacks in the shell agent's strategy, because its sample is older.
const SAMPLE_IS_OLDER_BY: u64 = 5;

impl Strategy {
    /// Returns whether Pacemaker runs the members under this strategy. Pacemaker fences lost nodes, and a node that boots waits for the
    /// other one. Without Pacemaker, a controller assumes that silent nodes are dead, and plain etcd only waits for them.
    pub fn has_pacemaker(self) -> bool {
        self == Self::ShellAgent || self.is_tandem()
    }

    /// Returns whether the nodes decide by Tandem's own rules.
    pub fn is_tandem(self) -> bool {
        matches!(self, Self::Tandem | Self::TandemPrimary)
    }

    /// Returns the index of Tandem's configured primary, which is the node [`PRIMARY`]; `None` if the strategy has none, or is not
    /// Tandem's.
    pub(super) fn tandems_primary(self) -> Option<u8> {
        (self == Self::TandemPrimary).then_some(0)
    }

    fn is_controller(self) -> bool {
        matches!(self, Self::ActiveActive | Self::ActivePassive(_))
    }

    /// Decides from one observation. `links` is the report of a correct partition detector on this node.
    pub fn decide(self, request: Request, evidence: &Evidence, progress: &Progress, links: Links) -> Decision {
        if self.is_tandem() {
            return decide::decide(request, evidence, progress);
        }
        Decision::around(self.plan(request, evidence, progress, links), request, evidence, progress)
    }

    fn plan(self, request: Request, evidence: &Evidence, progress: &Progress, links: Links) -> Plan {
        let is_etcds_own = self == Self::PlainRaft;
        match request {
            Request::Start => self.start(evidence, progress, links),
            Request::Stop if is_etcds_own || !own_is_led(evidence) => stop(evidence),
            Request::Monitor => self.monitor(evidence, progress, links),
            Request::Notify if is_etcds_own || !own_is_led(evidence) => exit(Exit::Success),
            Request::Notify if self.is_controller() && are_two_histories(evidence) => give_way(evidence),
            _ => decide::decide(request, evidence, progress).plan,
        }
    }

    fn start(self, evidence: &Evidence, progress: &Progress, links: Links) -> Plan {
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
            0 if self.may_bootstrap(evidence, links) => run(RunMode::Bootstrap),
            0 => exit(Exit::Retriable),
            1 if self != Self::ShellAgent => run(RunMode::Normally),
            _ => self.begin(evidence, sample(&evidence.me.name, &record.disk), links),
        }
    }

    /// Decides the start of a node that holds a voter's data while no cluster serves.
    fn begin(self, evidence: &Evidence, own_index: u64, links: Links) -> Plan {
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
                    // The node's own index is no older than the last one that it read.
                    None if confirmed || !evidence.was_left_behind() => claim(evidence),
                    Some(std::cmp::Ordering::Less) | None => exit(Exit::Retriable),
                }
            }
            _ if self.is_controller() && peer_is_gone && self.may_go_on(evidence, links) => force_all(evidence),
            _ => run(RunMode::Normally),
        }
    }

    /// Returns whether a controller on a node without data begins a new cluster. It does on the primary, and on a node that does not
    /// see its peer.
    fn may_bootstrap(self, evidence: &Evidence, links: Links) -> bool {
        let is_blank = evidence.published_state().is_some_and(|record| record.disk == DataDir::Blank);
        let is_alone = evidence.cib.known().is_some_and(|cib| cib.peer_node != PeerNode::Online);
        let may = if is_alone { self.may_go_on(evidence, links) } else { evidence.me.name == PRIMARY };
        self.is_controller() && is_blank && may
    }

    /// Returns whether a controller may continue without its peer.
    fn may_go_on(self, evidence: &Evidence, links: Links) -> bool {
        let has_detector = matches!(self, Self::ActivePassive(Detector::Right | Detector::Wrong));
        let is_told = evidence.confirmation.known().is_some();
        is_told
            || match links {
                Links::Whole => true,
                Links::OwnCut => !has_detector,
                Links::Parted => self != Self::ActivePassive(Detector::Right) || evidence.me.name == PRIMARY,
            }
    }

    fn monitor(self, evidence: &Evidence, progress: &Progress, links: Links) -> Plan {
        let peer = evidence.peer_etcd.known().filter(|etcd| etcd.leader.is_some());
        if !evidence.container_may_run() {
            // The shell agent's crashed member waits until its peer runs standalone.
            let waits = self == Self::ShellAgent && peer.is_none();
            return exit(if waits { Exit::Success } else { Exit::NotRunning });
        }
        match &evidence.own_etcd {
            _ if self == Self::PlainRaft => exit(Exit::Success),
            Fact::Known(own) if own.leader.is_some() => match peer {
                Some(_) if self.is_controller() && are_two_histories(evidence) => give_way(evidence),
                Some(peer) if self.is_controller() && gives_back(evidence, own, peer) => {
                    let effects = vec![Effect::MoveLeader { to: peer.member_id }];
                    Plan::exit(effects, Exit::Success, Reason::NothingToDo)
                }
                _ => decide::decide(Request::Monitor, evidence, progress).plan,
            },
            _ if peer.is_none() && self.claims(evidence, links) => {
                let claim = Effect::SetStandalone(Some(evidence.me.name.clone()));
                Plan::exit(vec![claim, Effect::StopContainer { grace_s: 1 }], Exit::Retriable, Reason::NothingToDo)
            }
            _ => exit(Exit::Success),
        }
    }

    /// Returns whether a member that lost its leader is to be restarted as the only voter.
    fn claims(self, evidence: &Evidence, links: Links) -> bool {
        let is_gone = evidence.cib.known().is_some_and(|cib| cib.peer_node != PeerNode::Online);
        let has_served = evidence.boot_state().is_some_and(|memory| memory.voter.is_some());
        let confirmed = evidence.confirmation.known().is_some();
        match self {
            Self::ShellAgent => has_served && (is_gone || evidence.peer_etcd.is_absent()),
            _ => (has_served || confirmed) && is_gone && self.may_go_on(evidence, links),
        }
    }
}

/// Returns whether both nodes lead, each as the only voter of its own cluster.
fn are_two_histories(evidence: &Evidence) -> bool {
    let leads_alone = |etcd: &Etcd| etcd.leads() && etcd.has_one_voter();
    evidence.own_etcd.known().is_some_and(leads_alone) && evidence.peer_etcd.known().is_some_and(leads_alone)
}

/// Ends the secondary's etcd and discards its data, because the primary's data wins. Does nothing on the primary.
fn give_way(evidence: &Evidence) -> Plan {
    if evidence.me.name == PRIMARY {
        return exit(Exit::Success);
    }
    let effects = vec![Effect::StopContainer { grace_s: 1 }, Effect::MoveDataAside];
    Plan::exit(effects, Exit::NotRunning, Reason::NothingToDo)
}

/// Returns whether the secondary leads and the primary follows it as a voter. In that case leadership can go back to the primary.
fn gives_back(evidence: &Evidence, own: &Etcd, peer: &Etcd) -> bool {
    let follows = !peer.is_learner && peer.leader == Some(own.member_id) && peer.member_id != own.member_id;
    evidence.me.name != PRIMARY && own.leads() && follows
}

fn own_is_led(evidence: &Evidence) -> bool {
    evidence.own_etcd.known().is_some_and(|etcd| etcd.leader.is_some())
}

/// Returns the number of voters in a member's data; 0 if the member itself is not a voter.
fn voters(disk: &DataDir) -> usize {
    match disk {
        DataDir::Present(history) if !history.has_left && history.voters.contains(&history.member_id) => {
            history.voters.len()
        }
        _ => 0,
    }
}

/// Returns the index of a node's log as the shell agent has sampled it. On the second node it is too low by [`SAMPLE_IS_OLDER_BY`].
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

/// Publishes the node's claim to run standalone. The shell agent continues only once it reads its own claim in the CIB.
fn claim(evidence: &Evidence) -> Plan {
    let effects = vec![Effect::SetStandalone(Some(evidence.me.name.clone()))];
    Plan::then_look(effects, 100, Progress::enter(Phase::Announced, 0), Reason::NothingToDo)
}

/// Forces a new cluster with etcd's own flag, which drops the entries that etcd does not know to be committed.
///
/// The shell agent writes indices into the CIB. In the model the node publishes its number of forced new clusters in their place. Both
/// show that the node continued.
fn force(evidence: &Evidence) -> Plan {
    force_with(evidence, Vec::new())
}

/// Forces a new cluster that keeps the node's whole log, as a newly elected Raft leader does.
fn force_all(evidence: &Evidence) -> Plan {
    force_with(evidence, vec![Effect::AdvanceCommit])
}

fn force_with(evidence: &Evidence, mut effects: Vec<Effect>) -> Plan {
    let mode = RunMode::ForceNewCluster;
    let forks = evidence.cib.known().map_or(0, |cib| cib.lineage.forks) + 1;
    let lineage = Lineage { forks, by: evidence.me.name.clone() };
    effects.extend([
        Effect::WriteNote(DurableState { lineage: lineage.clone(), ..DurableState::default() }),
        Effect::PublishLineage(lineage),
        Effect::SetStandalone(Some(evidence.me.name.clone())),
        Effect::RunContainer(mode.clone()),
    ]);
    Plan::then_look(effects, 100, Progress::enter(Phase::Started(mode), 0), Reason::NothingToDo)
}

fn stop(evidence: &Evidence) -> Plan {
    let effects = if evidence.container_may_run() { vec![Effect::StopContainer { grace_s: 1 }] } else { Vec::new() };
    Plan::exit(effects, Exit::Success, Reason::Running(Health::Stopped))
}
