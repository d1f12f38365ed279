//! Deliberately broken rules. Each bends what the core is told, or what comes of its plan, from the outside: the core
//! itself has no switch. A checker that finds nothing wrong with them proves nothing.

use crate::decide::plan::{Effect, Exit, Next, Phase, Plan, Progress, RunMode};
use crate::decide::reason::{Reason, Rule, Wait};
use crate::decide::snapshot::{
    BootMemory, Cib, DataDir, History, Lineage, PeerAgent, PeerNode, Record, RunningVoter, Snapshot,
};
use crate::decide::{Fact, Request};

/// A rule that is broken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mutant {
    #[default]
    None,
    CommitIndexNotAdvanced,
    LostCountsAsDown,
    StoppedCountsAsDown,
    PeersClaimIgnored,
    OwnClaimNotAwaited,
    OwnRecordNotAwaited,
    LastWordNotAwaited,
    MissingRecordCountsAsBlank,
    ForksIgnored,
    ForkNotRecorded,
    ProofSurvivesReboot,
    DataMovedAsideEarly,
    DataNotMovedAside,
    LearnerCountsAsVoter,
    DepartedCountsAsVoter,
    StopWithoutEtcdStopped,
    BothBootstrap,
    ReturningVoterRejoinsWithoutListing,
    LearnerNeverPromoted,
    LearnerNeverListed,
    SurvivorNeverGoesOn,
    JoinerStartsPlainly,
    PlainStartForces,
    RecordNotPublished,
}

/// Every broken rule, by the name that `--mutant` takes.
pub const ALL: [(&str, Mutant); 24] = [
    ("commit-index-not-advanced", Mutant::CommitIndexNotAdvanced),
    ("lost-counts-as-down", Mutant::LostCountsAsDown),
    ("stopped-counts-as-down", Mutant::StoppedCountsAsDown),
    ("peers-claim-ignored", Mutant::PeersClaimIgnored),
    ("own-claim-not-awaited", Mutant::OwnClaimNotAwaited),
    ("own-record-not-awaited", Mutant::OwnRecordNotAwaited),
    ("last-word-not-awaited", Mutant::LastWordNotAwaited),
    ("missing-record-counts-as-blank", Mutant::MissingRecordCountsAsBlank),
    ("forks-ignored", Mutant::ForksIgnored),
    ("fork-not-recorded", Mutant::ForkNotRecorded),
    ("proof-survives-reboot", Mutant::ProofSurvivesReboot),
    ("data-moved-aside-early", Mutant::DataMovedAsideEarly),
    ("data-not-moved-aside", Mutant::DataNotMovedAside),
    ("learner-counts-as-voter", Mutant::LearnerCountsAsVoter),
    ("departed-counts-as-voter", Mutant::DepartedCountsAsVoter),
    ("stop-without-etcd-stopped", Mutant::StopWithoutEtcdStopped),
    ("both-bootstrap", Mutant::BothBootstrap),
    ("returning-voter-rejoins-without-listing", Mutant::ReturningVoterRejoinsWithoutListing),
    ("learner-never-promoted", Mutant::LearnerNeverPromoted),
    ("learner-never-listed", Mutant::LearnerNeverListed),
    ("survivor-never-goes-on", Mutant::SurvivorNeverGoesOn),
    ("joiner-starts-plainly", Mutant::JoinerStartsPlainly),
    ("plain-start-forces", Mutant::PlainStartForces),
    ("record-not-published", Mutant::RecordNotPublished),
];

impl Mutant {
    /// Bends what the core is told.
    pub fn blind(self, snapshot: &mut Snapshot, progress: &Progress) {
        match self {
            Self::ProofSurvivesReboot => forge_memory(snapshot),
            Self::LearnerCountsAsVoter => bend_history(snapshot, |history| !history.has_left),
            Self::DepartedCountsAsVoter => bend_history(snapshot, |history| history.has_left),
            Self::OwnRecordNotAwaited => {
                let record = snapshot.record();
                bend_cib(snapshot, |cib| cib.own_record = record.clone().or(cib.own_record.take()));
            }
            Self::LastWordNotAwaited => {
                if let Phase::Barrier { nonce } = progress.phase {
                    bend_cib(snapshot, |cib| cib.own_record.iter_mut().for_each(|own| own.nonce = Some(nonce)));
                }
            }
            _ => bend_cib(snapshot, |cib| self.blind_cib(cib)),
        }
    }

    fn blind_cib(self, cib: &mut Cib) {
        match self {
            Self::LostCountsAsDown if cib.peer_node == PeerNode::Lost => cib.peer_node = PeerNode::Down,
            Self::StoppedCountsAsDown if cib.peer_agent == PeerAgent::Stopped => cib.peer_node = PeerNode::Down,
            Self::PeersClaimIgnored => claim(&mut cib.peer_record, false),
            Self::OwnClaimNotAwaited => claim(&mut cib.own_record, true),
            Self::MissingRecordCountsAsBlank if cib.peer_record.is_none() => {
                let lineage = Lineage::default();
                let record = Record {
                    boot_id: String::new(),
                    disk: DataDir::Blank,
                    lineage,
                    claims: false,
                    joins: false,
                    nonce: None,
                };
                cib.peer_record = Some(record);
            }
            Self::ForksIgnored => {
                cib.lineage = Lineage::default();
            }
            _ => {}
        }
    }

    /// Bends what comes of a plan.
    pub fn bend(self, request: Request, snapshot: &Snapshot, progress: &Progress, mut plan: Plan) -> Plan {
        match self {
            Self::CommitIndexNotAdvanced => plan.effects.retain(|effect| *effect != Effect::AdvanceCommit),
            Self::ForkNotRecorded if progress.phase == Phase::Begin => {
                plan.effects.retain(|effect| !matches!(effect, Effect::PublishLineage(_) | Effect::WriteNote(_)));
            }
            Self::DataNotMovedAside => plan.effects.retain(|effect| *effect != Effect::MoveDataAside),
            Self::LearnerNeverPromoted => {
                plan.effects.retain(|effect| !matches!(effect, Effect::PromoteMember { .. }));
            }
            Self::JoinerStartsPlainly => {
                run_otherwise(&mut plan, &RunMode::Normally, |mode| matches!(mode, RunMode::JoinAsLearner { .. }));
            }
            Self::PlainStartForces => {
                run_otherwise(&mut plan, &RunMode::ForceNewCluster, |mode| *mode == RunMode::Normally);
            }
            Self::RecordNotPublished => plan.effects.retain(|effect| !matches!(effect, Effect::PublishRecord(_))),
            Self::LearnerNeverListed => plan.effects.retain(|effect| !matches!(effect, Effect::AddLearner { .. })),
            Self::DataMovedAsideEarly if waits_for_the_peer_to_serve(&plan) && has_data(snapshot) => {
                plan.effects.push(Effect::MoveDataAside);
            }
            Self::BothBootstrap if waits_for_the_peer_to_serve(&plan) && is_blank_with_blank_peer(snapshot) => {
                let progress = Progress::enter(Phase::Started(RunMode::Bootstrap), snapshot.elapsed_ms);
                let because = Reason::Rule { rule: Rule::FirstByNameBootstraps, peer: String::new() };
                return Plan::then_look(vec![Effect::RunContainer(RunMode::Bootstrap)], 0, progress, because);
            }
            Self::StopWithoutEtcdStopped if plan.effects.iter().any(is_stop) && request == Request::Stop => {
                plan.effects.clear();
                plan.next = Next::Exit(Exit::Success);
            }
            Self::ReturningVoterRejoinsWithoutListing => {
                plan.effects.retain(|effect| !matches!(effect, Effect::RemoveMember { .. }));
            }
            Self::SurvivorNeverGoesOn
                if plan.effects.iter().any(|effect| matches!(effect, Effect::SetStandalone(Some(_)))) =>
            {
                return Plan::exit(Vec::new(), Exit::Retriable, plan.because);
            }
            _ => {}
        }
        plan
    }
}

fn run_otherwise(plan: &mut Plan, instead: &RunMode, which: impl Fn(&RunMode) -> bool) {
    for effect in &mut plan.effects {
        if matches!(effect, Effect::RunContainer(mode) if which(mode)) {
            *effect = Effect::RunContainer(instead.clone());
        }
    }
}

fn bend_cib(snapshot: &mut Snapshot, bend: impl FnOnce(&mut Cib)) {
    if let Fact::Known(cib) = &mut snapshot.cib {
        bend(cib);
    }
}

fn claim(record: &mut Option<Record>, claims: bool) {
    if let Some(record) = record {
        record.claims = claims;
    }
}

fn bend_history(snapshot: &mut Snapshot, whose: impl Fn(&History) -> bool) {
    if let Fact::Known(DataDir::Present(history)) = &mut snapshot.disk
        && whose(history)
        && !history.voters.contains(&history.member_id)
    {
        history.has_left = false;
        history.voters.insert(history.member_id);
    }
}

fn forge_memory(snapshot: &mut Snapshot) {
    if let (Fact::Absent, Fact::Known(DataDir::Present(history))) = (&snapshot.boot_memory, &snapshot.disk) {
        let lineage = snapshot.own_lineage();
        let (cluster_id, member_id) = (history.cluster_id, history.member_id);
        let voter = history.is_voter().then_some(RunningVoter { cluster_id, member_id, lineage, sole: false });
        let boot_id = snapshot.boot_id.clone();
        snapshot.boot_memory = Fact::Known(BootMemory { boot_id, voter, ..BootMemory::default() });
    }
}

fn waits_for_the_peer_to_serve(plan: &Plan) -> bool {
    matches!(plan.because, Reason::Waiting(Wait::PeerToServe { .. }))
}

fn has_data(snapshot: &Snapshot) -> bool {
    matches!(snapshot.disk, Fact::Known(DataDir::Present(_)))
}

fn is_blank_with_blank_peer(snapshot: &Snapshot) -> bool {
    let peer_is_blank = snapshot
        .cib
        .known()
        .and_then(|cib| cib.peer_record.as_ref())
        .is_some_and(|record| record.disk == DataDir::Blank);
    peer_is_blank && snapshot.disk == Fact::Known(DataDir::Blank)
}

fn is_stop(effect: &Effect) -> bool {
    matches!(effect, Effect::StopContainer { .. })
}
