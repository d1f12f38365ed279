//! Situations in a few words. Node `node1` (member 1) decides, `node2` (member 2) is its peer.

use std::collections::BTreeSet;

use crate::base::Fact;
use crate::decide::evidence::*;
use crate::decide::plan::{Decision, Effect, Exit, Next, OnFailure, Phase, Plan, Progress, Request};

pub(super) const CLUSTER: u64 = 0xc1;
pub(super) const ME: u64 = 1;
pub(super) const PEER: u64 = 2;

pub(super) fn address(name: &str) -> NodeAddress {
    NodeAddress {
        name: name.to_owned(),
        peer_url: format!("https://{name}:2380"),
        client_url: format!("https://{name}:2379"),
    }
}

/// Returns node1 with an empty CIB and nothing running. The peer's machine is online, and the peer's agent is stopped.
pub(super) fn at_rest() -> Evidence {
    Evidence {
        elapsed_ms: 0,
        budget_ms: 600_000,
        me: address("node1"),
        peer: Some(address("node2")),
        boot_id: "boot1".to_owned(),
        promotable: false,
        promote_max_lag: 100,
        notify: Some(Notify::default()),
        cib: Fact::Known(Cib {
            peer_node: PeerNode::Online,
            peer_agent: PeerAgent::Stopped,
            own_record: None,
            keeps_own_record: false,
            peer_record: None,
            standalone_node: None,
            learner_node: None,
            lineage: Lineage::default(),
            own_lineage: None,
            peer_lineage: None,
            cluster_recorded: false,
            own_start_failures: 0,
            own_failures: std::collections::BTreeMap::new(),
            own_promotion_score: None,
            own_identity: Some(Identity { cluster_id: CLUSTER, member_id: ME }),
            own_alarm: None,
            own_image: None,
            own_shown: None,
            peer_identity: None,
            redundancy: Fact::NotAsked,
            reached: Fact::NotAsked,
            primary: None,
            third_voter: None,
            peer_leads: None,
            reach: None,
            in_maintenance: false,
            peer_leaves: false,
            others: Others { node_ip: Some("192.0.2.1".to_owned()), ..Others::default() },
        }),
        launching: Fact::Known(false),
        container: Fact::Absent,
        data_in_use: Fact::Known(false),
        disk: Fact::Known(DataDir::Blank),
        room: Fact::NotAsked,
        note: Fact::Absent,
        boot_memory: Fact::Absent,
        confirmation: Fact::Absent,
        local: Local { ip: "192.0.2.1".to_owned(), ..Local::default() },
        own_etcd: Fact::Absent,
        peer_etcd: Fact::Absent,
        own_refuses: None,
        peer_refuses: None,
        own_leaderless: Fact::NotAsked,
        recovery: Recovery::Restart,
        leading: None,
        lone_boot: None,
        pace: Pace::default(),
        nonce: NONCE,
    }
}

pub(super) fn history(me: u64, voters: &[u64], learners: &[u64]) -> DataDir {
    DataDir::Present(History {
        cluster_id: CLUSTER,
        member_id: me,
        last_term: 3,
        last_index: 1000,
        commit_index: 990,
        voters: voters.iter().copied().collect(),
        learners: learners.iter().copied().collect(),
        has_left: false,
        database_ahead: None,
        damage: Vec::new(),
    })
}

pub(super) fn departed(me: u64) -> DataDir {
    departed_from(me, 3 - me)
}

/// Returns the data of the member `me`, which has left a cluster. The voter `rest` stayed in that cluster.
pub(super) fn departed_from(me: u64, rest: u64) -> DataDir {
    match history(me, &[rest], &[]) {
        DataDir::Present(history) => DataDir::Present(History { has_left: true, ..history }),
        other => other,
    }
}

pub(super) fn record(disk: DataDir) -> PublishedState {
    PublishedState::of("boot".to_owned(), disk, Lineage::default())
}

/// Returns the identity of node1's data.
pub(super) fn mine() -> DataOwner {
    DataOwner { cluster_id: CLUSTER, member_id: ME, node: "node1".to_owned() }
}

/// Returns an operator's confirmation that node1 may run without the writes that only the peer has.
pub(super) fn word(accept_loss: bool) -> Confirmation {
    Confirmation {
        boot_id: "boot1".to_owned(),
        lost_node: "node2".to_owned(),
        cluster_id: CLUSTER,
        member_id: ME,
        position: LogPosition { term: 3, index: 1000 },
        accept_loss,
    }
}

pub(super) fn forks(forks: u64, by: &str) -> Lineage {
    Lineage { forks, by: by.to_owned() }
}

pub(super) fn etcd(me: u64, leader: Option<u64>, voters: &[u64], learners: &[u64]) -> Etcd {
    Etcd { cluster_id: CLUSTER, ..Etcd::of_test(me, leader, voters, learners) }
}

pub(super) fn nodes(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

impl Evidence {
    pub(super) fn cib_with(mut self, change: impl FnOnce(&mut Cib)) -> Self {
        if let Fact::Known(cib) = &mut self.cib {
            change(cib);
        }
        self
    }

    /// Puts `disk` in the data dir, and publishes a record of it.
    pub(super) fn with_disk(mut self, disk: DataDir) -> Self {
        self.disk = Fact::Known(disk);
        let record = self.published_state();
        self.cib_with(|cib| cib.own_record = record)
    }

    pub(super) fn with_peer_record(self, disk: DataDir) -> Self {
        self.cib_with(|cib| cib.peer_record = Some(record(disk)))
    }

    pub(super) fn peer_is(self, node: PeerNode, agent: PeerAgent) -> Self {
        self.cib_with(|cib| (cib.peer_node, cib.peer_agent) = (node, agent))
    }

    pub(super) fn both_start(mut self) -> Self {
        self.notify = Some(Notify { start: nodes(&["node1", "node2"]), ..Notify::default() });
        self
    }

    pub(super) fn notified(mut self, moment: Moment, operation: Operation, start: &[&str], stop: &[&str]) -> Self {
        self.notify = Some(Notify {
            moment,
            operation,
            active: nodes(&["node1", "node2"]),
            start: nodes(start),
            stop: nodes(stop),
        });
        self
    }

    pub(super) fn running(mut self, own: Fact<Etcd>) -> Self {
        self.container = Fact::Known(Container { running: true, ..Container::default() });
        self.disk = Fact::NotAsked;
        self.own_etcd = own;
        self
    }

    /// Records in the `BootState` that this node's etcd served as a voter in this boot. Also publishes this node's claim to run
    /// standalone.
    pub(super) fn seen_voting(mut self) -> Self {
        self.boot_memory = Fact::Known(BootState {
            boot_id: self.boot_id.clone(),
            voter: Some(RunningVoter {
                cluster_id: CLUSTER,
                member_id: ME,
                lineage: Lineage::default(),
                sole: false,
                among_many: false,
            }),
            ..BootState::default()
        });
        let own = PublishedState { claims: true, ..record(history(ME, &[ME, PEER], &[])) };
        self.cib_with(|cib| cib.own_record = Some(own))
    }

    /// Writes the announcement that this node will run standalone in the durable note and in the CIB.
    pub(super) fn announced(mut self) -> Self {
        let note = DurableState {
            lineage: forks(1, "node1"),
            alone_since: Some(LogPosition { term: 3, index: 1_000 }),
            of: Some(mine()),
            without: Some(PEER),
            ..DurableState::default()
        };
        self.note = Fact::Known(note);
        self.cib_with(|cib| {
            cib.lineage = forks(1, "node1");
            cib.standalone_node = Some("node1".to_owned());
        })
    }

    /// Stops etcd in a recovery. The CIB shows this node's announcement that it will run standalone, and the record that the node
    /// published after the stop.
    pub(super) fn at_the_barrier(mut self) -> Self {
        self.container = Fact::Absent;
        self.announced().cib_with(|cib| {
            let own = cib.own_record.get_or_insert_with(|| record(history(ME, &[ME, PEER], &[])));
            own.nonce = Some(NONCE);
        })
    }

    pub(super) fn after(mut self, elapsed_ms: u64) -> Self {
        self.elapsed_ms = elapsed_ms;
        self
    }
}

/// Nonce of the record that was published after etcd's stop. Every observation of a test has the same nonce.
const NONCE: u64 = 2;

/// Returns the progress of an action that has stopped etcd in a recovery, and waits until the CIB shows the record that it
/// published after the stop.
pub(super) fn barrier() -> Progress {
    Progress::enter(Phase::Barrier { nonce: NONCE }, 0)
}

/// Returns the plan that the core decides, without the results for failure and time-out.
pub(super) fn decide(request: Request, evidence: &Evidence, progress: &Progress) -> Plan {
    crate::decide::decide(request, evidence, progress).plan
}

/// Returns the result of an action if its time ends while the agent carries out this plan.
pub(super) fn out_of_time(request: Request, evidence: &Evidence, plan: &Plan) -> Option<Exit> {
    Decision::around(plan.clone(), request, evidence, &Progress::default()).when_over
}

/// Returns the result of an action if an effect of its first plan fails.
pub(super) fn on_failure(request: Request, evidence: &Evidence) -> OnFailure {
    crate::decide::decide(request, evidence, &Progress::default()).on_failure
}

/// Returns the plan of an action that has just begun.
pub(super) fn first(request: Request, evidence: &Evidence) -> Plan {
    decide(request, evidence, &Progress::default())
}

pub(super) fn exit(plan: &Plan) -> Option<Exit> {
    match plan.next {
        Next::Exit(exit) => Some(exit),
        Next::Reobserve { .. } => None,
    }
}

pub(super) fn progress(plan: Plan) -> Progress {
    match plan.next {
        Next::Reobserve { progress, .. } => progress,
        Next::Exit(_) => panic!("the action has ended: {plan:?}"),
    }
}

/// Returns whether a plan destroys no data and forces no new cluster.
pub(super) fn is_harmless(plan: &Plan) -> bool {
    use crate::decide::plan::RunMode;
    !plan.effects.iter().any(|effect| {
        matches!(
            effect,
            Effect::AdvanceCommit
                | Effect::MoveDataAside
                | Effect::RunContainer(RunMode::ForceNewCluster | RunMode::Bootstrap)
                | Effect::StopContainer { .. }
                | Effect::WriteNote(_)
        )
    })
}
