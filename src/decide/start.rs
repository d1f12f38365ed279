//! The rules of a start, R0 to R4.

use super::announce::announce;
use super::cold_start::{self, Answer, Chosen, Cluster};
use super::fact::Fact;
use super::membership;
use super::others;
use super::peer::{PeerWord, peer_word};
use super::plan::{Effect, Exit, Next, Phase, Plan, Progress, RunMode, Via};
use super::proof;
use super::reason::{Reason, Refusal, Rule, Step, Wait};
use super::record::joining_record;
use super::recover;
use super::room;
use super::serve::started;
use super::snapshot::{Cib, DataDir, Etcd, NodeName, Note, Obstacle, PeerNode, Record, Snapshot};
use super::standing::{Data, classify, database_is_ahead, is_listed, is_voter, plain_start, position};
use super::timing::{
    LOOK_AGAIN_MS, LOOK_AT_ONCE_MS, LOOK_AT_THE_LIST_MS, LOOK_AT_THE_PEER_MS, LOOK_FOR_A_LEADER_MS,
    LOOK_FOR_A_WRITE_MS, PACE_MS, PATIENCE_WITH_A_BLOCKED_PEER_MS, PATIENCE_WITH_A_JOINING_PEER_MS,
    PATIENCE_WITH_A_PORT_MS, PATIENCE_WITH_A_STARTING_PEER_MS, PATIENCE_WITH_THE_CIB_MS, QUICK_FAILURES,
    START_RESERVE_MS,
};
use super::unstartable;

pub(super) fn decide(snapshot: &Snapshot, progress: &Progress) -> Plan {
    paced(by_phase(snapshot, progress), snapshot, progress)
}

/// A refusal is given only once its time has come; until then we keep looking, and go on when its reason has passed.
fn paced(plan: Plan, snapshot: &Snapshot, progress: &Progress) -> Plan {
    match plan {
        Plan { effects, next: Next::Exit(Exit::Retriable), because: Reason::Refused { refusal, peer } }
            if !may_fail(snapshot) =>
        {
            Plan::then_look(
                effects,
                LOOK_AGAIN_MS,
                progress.clone(),
                Reason::Waiting(Wait::BeforeFailing { refusal, peer }),
            )
        }
        Plan { mut effects, next: next @ Next::Exit(Exit::Retriable), because } => {
            effects.extend(others::failures(snapshot));
            Plan { effects, next, because }
        }
        plan => plan,
    }
}

/// Whether a start that fails now fails late enough, be it refused or an effect of it in vain.
pub(super) fn may_fail(snapshot: &Snapshot) -> bool {
    let failures = snapshot.cib.known().map_or(0, |cib| cib.own_start_failures);
    let pace_ms = PACE_MS.min(snapshot.budget_ms.saturating_sub(START_RESERVE_MS));
    failures < QUICK_FAILURES || snapshot.elapsed_ms >= pace_ms
}

fn by_phase(snapshot: &Snapshot, progress: &Progress) -> Plan {
    match &progress.phase {
        Phase::Started(mode) => started(snapshot, progress, mode),
        Phase::Announced => recover::decide_announced(snapshot, progress),
        Phase::Barrier { nonce } => recover::decide_at_the_barrier(snapshot, progress, *nonce),
        Phase::Begin | Phase::HandedOver | Phase::Left | Phase::Stopped => begin(snapshot, progress),
    }
}

fn begin(snapshot: &Snapshot, progress: &Progress) -> Plan {
    if let Fact::Unknown(why) = &snapshot.container {
        return snapshot.refuse(Refusal::ContainerUnknown { why: why.clone() });
    }
    if snapshot.container_may_run() {
        return already_running(snapshot, progress);
    }
    let Some(disk) = unstartable::usable_disk(snapshot) else {
        return snapshot.refuse(Refusal::DiskUnreadable { why: snapshot.disk.why_unknown().to_owned() });
    };
    if snapshot.last_note().is_none() {
        return snapshot.refuse(proof::note_unreadable(snapshot));
    }
    if let Some(obstacle) = snapshot.local.obstacle {
        return in_the_way(snapshot, progress, obstacle);
    }
    if is_outdated(snapshot, &disk) {
        let because = Reason::Step(Step::TakeBackOutdatedConfirmation);
        return Plan::then_look(vec![Effect::ConsumeAuthorisation], LOOK_AT_ONCE_MS, progress.clone(), because);
    }
    let (Some(cib), Some(record)) = (snapshot.cib.known(), snapshot.record()) else {
        return snapshot.refuse(Refusal::CibUnreadable { why: snapshot.cib.why_unknown().to_owned() });
    };
    let fork = membership::fork_of_the_peer(snapshot);
    if fork.is_some() || cib.own_record.as_ref() != Some(&record) {
        return publish(snapshot, progress, fork.into_iter().chain([Effect::PublishRecord(record)]).collect());
    }
    match snapshot.peer_etcd.known() {
        Some(etcd) if etcd.is_voter_with_leader() => follow(snapshot, &disk, etcd, cib),
        _ => without_a_living_cluster(snapshot, progress, cib, &record),
    }
}

/// Whether an operator's word is about other data than what is here now. It would not count before a force, but would have an
/// etcd that runs announced and stopped for one.
fn is_outdated(snapshot: &Snapshot, disk: &DataDir) -> bool {
    let fits = matches!(disk, DataDir::Present(history) if snapshot.authorised(history).is_some());
    snapshot.authorisation.known().is_some() && !fits
}

/// R0: etcd runs here. Nothing is started; what others rely on is written down.
fn already_running(snapshot: &Snapshot, progress: &Progress) -> Plan {
    let plan = started(snapshot, progress, &RunMode::Normally);
    let serves = snapshot.own_etcd.known().is_some_and(|etcd| etcd.leader.is_some());
    if serves { Plan { because: snapshot.rule(Rule::AlreadyServing), ..plan } } else { plan }
}

/// The record goes out first, and nothing else happens until it is visible: the peer decides from it.
fn publish(snapshot: &Snapshot, progress: &Progress, effects: Vec<Effect>) -> Plan {
    if snapshot.elapsed_ms > PATIENCE_WITH_THE_CIB_MS {
        let why = "our own record does not appear in it".to_owned();
        return snapshot.refuse(Refusal::CibUnreadable { why });
    }
    Plan::then_look(effects, LOOK_FOR_A_WRITE_MS, progress.clone(), Reason::Waiting(Wait::OwnRecord))
}

/// kubelet ends its own etcd only once it was told to, and a whole start waits for that; anything else is to be told
/// soon. Meanwhile the peer is to know what data is here: it may be what the other one waits for.
fn in_the_way(snapshot: &Snapshot, progress: &Progress, obstacle: Obstacle) -> Plan {
    let patience_ms = match obstacle {
        Obstacle::StaticPod => snapshot.budget_ms.saturating_sub(START_RESERVE_MS),
        Obstacle::PortTaken(_) => PATIENCE_WITH_A_PORT_MS,
    };
    if snapshot.elapsed_ms > patience_ms {
        return snapshot.refuse(Refusal::InTheWay { obstacle });
    }
    let published = snapshot.cib.known().and_then(|cib| cib.own_record.as_ref());
    let is_news = published.is_none_or(|record| record.boot_id != snapshot.boot_id);
    let record = snapshot.record().filter(|_| is_news).map(Effect::PublishRecord);
    let because = Reason::Waiting(Wait::WayToBeFree { obstacle });
    Plan::then_look(record.into_iter().collect(), LOOK_AGAIN_MS, progress.clone(), because)
}

/// R1: the peer serves with a leader. Follow it.
fn follow(snapshot: &Snapshot, disk: &DataDir, peer_etcd: &Etcd, cib: &Cib) -> Plan {
    if is_listed(disk, peer_etcd) {
        return run(snapshot, RunMode::Normally, Rule::PeerServesAndListsThisMember);
    }
    match Chosen::seen_in(snapshot, cib) {
        Chosen::Me if is_voter(disk) => return snapshot.refuse(Refusal::PeerServesThoughNotChosen),
        Chosen::Nobody if is_a_history_beside(snapshot, disk, cib) => return snapshot.refuse(Refusal::HistoriesSplit),
        Chosen::Me | Chosen::ThePeer | Chosen::Nobody => {}
    }
    if snapshot.machine_is_deleted() {
        return snapshot.refuse(Refusal::MachineIsDeleted);
    }
    match peer_etcd.member_at(&snapshot.me) {
        Some(entry) if entry.is_learner && !entry.has_started() => {
            room::make(snapshot, disk, peer_etcd).unwrap_or_else(|| join(snapshot, disk, peer_etcd, cib))
        }
        Some(entry) => Plan::then_look(
            vec![Effect::RemoveMember { id: entry.id, via: Via::Peer }],
            LOOK_AT_THE_LIST_MS,
            Progress::default(),
            Reason::Step(Step::RemoveStaleEntry { id: entry.id }),
        ),
        None => Plan::then_look(
            vec![
                Effect::AddLearner { peer_url: snapshot.me.peer_url.clone(), via: Via::Peer },
                Effect::SetLearner(Some(snapshot.me.name.clone())),
            ],
            LOOK_AT_THE_LIST_MS,
            Progress::default(),
            Reason::Step(Step::ListOurselvesAsLearner),
        ),
    }
}

/// Whether this data is of a history of its own: this node went on alone, nobody has joined it since, and the peer that
/// serves went on without knowing of it. Neither history is the newer one, so an operator chooses, where nobody has given
/// this node up by name before. A peer that counts more forks went on at such a word, too.
fn is_a_history_beside(snapshot: &Snapshot, disk: &DataDir, cib: &Cib) -> bool {
    // Where the note cannot be read, it may be.
    let Some(Note { lineage: own, alone_since, .. }) = snapshot.last_note() else {
        return classify(disk) == Data::SoleVoter;
    };
    let served = cib.peer_record.as_ref().map(|record| &record.lineage).or(cib.peer_lineage.as_ref());
    let is_known_there = served.is_some_and(|served| *served == own || served.forks > own.forks);
    let was_given_up = cib.peer_record.as_ref().is_some_and(|record| record.gave_up);
    classify(disk) == Data::SoleVoter && alone_since.is_some() && !is_known_there && !was_given_up
}

/// Only here is a data dir moved aside: the peer serves as a voter and has listed us.
fn join(snapshot: &Snapshot, disk: &DataDir, peer_etcd: &Etcd, cib: &Cib) -> Plan {
    let lineage = cib.lineage.clone();
    // From here on our data is the peer's history, forks included.
    let note = Effect::WriteNote(Note { lineage: lineage.clone(), joins: true, ..Note::default() });
    let (mut effects, rule) = match disk {
        DataDir::Blank => (vec![note], Rule::PeerServesAndThisNodeIsBlank),
        DataDir::Present(_) | DataDir::Broken { .. } => {
            let aside =
                if is_a_history_beside(snapshot, disk, cib) { Effect::MoveHistoryAside } else { Effect::MoveDataAside };
            let told = Effect::PublishRecord(joining_record(snapshot, lineage));
            (vec![aside, note, told], Rule::PeerServesAndThisDataIsNotIts)
        }
    };
    let mode = RunMode::JoinAsLearner { initial_cluster: initial_cluster(snapshot, peer_etcd) };
    effects.push(Effect::RunContainer(mode.clone()));
    let progress = Progress::enter(Phase::Started(mode), snapshot.elapsed_ms);
    Plan::then_look(effects, LOOK_FOR_A_LEADER_MS, progress, snapshot.rule(rule))
}

/// etcd compares this with the member list, entry by entry.
fn initial_cluster(snapshot: &Snapshot, etcd: &Etcd) -> Vec<(NodeName, String)> {
    let named = |member: &super::snapshot::Member| {
        let name = if member.is_at(&snapshot.me) { snapshot.me.name.clone() } else { member.name.clone() };
        member.peer_urls.iter().map(move |url| (name.clone(), url.clone())).collect::<Vec<_>>()
    };
    etcd.members.iter().flat_map(named).collect()
}

/// R2 to R4: no etcd with a leader answers.
fn without_a_living_cluster(snapshot: &Snapshot, progress: &Progress, cib: &Cib, record: &Record) -> Plan {
    match peer_word(snapshot) {
        PeerWord::Nobody => only_node(snapshot, record),
        PeerWord::Starting => together(snapshot, progress, cib, record, PATIENCE_WITH_A_STARTING_PEER_MS),
        PeerWord::Planned | PeerWord::Stopped => {
            together(snapshot, progress, cib, record, PATIENCE_WITH_A_BLOCKED_PEER_MS)
        }
        PeerWord::Active => beside_an_active_peer(snapshot, progress, record),
        PeerWord::Down => alone(snapshot, record),
        PeerWord::Lost => not_confirmed(snapshot, progress, record, "its machine is lost and not fenced yet"),
        PeerWord::Unknown(why) => not_confirmed(snapshot, progress, record, &why),
    }
}

/// R2.
fn together(snapshot: &Snapshot, progress: &Progress, cib: &Cib, record: &Record, patience_ms: u64) -> Plan {
    let Some(peer_record) = &cib.peer_record else {
        let wait = Wait::PeerRecord { peer: snapshot.peer_name().to_owned() };
        return wait_or_refuse(snapshot, progress, patience_ms, wait, Refusal::PeerSaysNothing);
    };
    match cold_start::answer(record, peer_record, &Cluster::seen_in(snapshot, cib)) {
        Answer::StartNormally(rule) => run_plainly(snapshot, &record.disk, rule),
        Answer::Bootstrap(rule) if snapshot.peer_etcd.is_absent() => run(snapshot, RunMode::Bootstrap, rule),
        Answer::ForceNewCluster(rule) => announce(snapshot, snapshot.rule(rule)),
        // A peer whose etcd listens is not blank any more, whatever it said when it began to join.
        Answer::Bootstrap(_) | Answer::FollowThePeer(_) => {
            let wait = Wait::PeerToServe { peer: snapshot.peer_name().to_owned() };
            wait_or_refuse(snapshot, progress, patience_ms, wait, Refusal::PeerDoesNotServe)
        }
        Answer::Refuse(Refusal::PeerWentOnAloneAndLostItsData { .. }) if accepts_the_loss(snapshot, record) => {
            announce(snapshot, snapshot.rule(Rule::OperatorConfirmed))
        }
        Answer::Refuse(refusal) => {
            as_others_say(snapshot, progress, record, patience_ms).unwrap_or_else(|| snapshot.refuse(refusal))
        }
    }
}

fn accepts_the_loss(snapshot: &Snapshot, record: &Record) -> bool {
    match &record.disk {
        DataDir::Present(history) => snapshot.authorised(history).is_some_and(|word| word.accept_loss),
        DataDir::Blank | DataDir::Broken { .. } => false,
    }
}

/// Two histories, and an attribute in the CIB says whose counts: see [`proof::told_to`].
fn as_others_say(snapshot: &Snapshot, progress: &Progress, record: &Record, patience_ms: u64) -> Option<Plan> {
    let others = &snapshot.cib.known()?.others;
    if others.force_on_peer && !others.force_on_me {
        let wait = Wait::PeerToServe { peer: snapshot.peer_name().to_owned() };
        return Some(wait_or_refuse(snapshot, progress, patience_ms, wait, Refusal::PeerDoesNotServe));
    }
    if !proof::told_to(snapshot) {
        return None;
    }
    is_voter(&record.disk).then(|| announce(snapshot, snapshot.rule(Rule::OperatorConfirmed)))
}

/// R4: never a force. A plain start of a voter is always safe; anyone else waits for the peer to serve. The peer's
/// record is of its last start, so its living member list is asked instead, where it answers.
fn beside_an_active_peer(snapshot: &Snapshot, progress: &Progress, record: &Record) -> Plan {
    let left_out = snapshot.peer_etcd.known().is_some_and(|etcd| !etcd.is_learner && !is_listed(&record.disk, etcd));
    match classify(&record.disk) {
        Data::SoleVoter => sole_beside_an_active_peer(snapshot, progress, record),
        // A learner too: its own log may not know yet that it was promoted, and then the peer waits for its vote.
        Data::VoterBeside(_) | Data::Learner if !left_out => {
            run(snapshot, RunMode::Normally, Rule::PeerActiveButWithoutLeader)
        }
        Data::VoterAmongMany => among_many(snapshot),
        Data::VoterBeside(_) | Data::Learner | Data::Departed | Data::Nothing => await_the_peer(snapshot, progress),
    }
}

/// A failed start counts as active, too: of two sole voters, which are two histories, the one that is refused its start
/// claims nothing. So the table is asked, whoever claims, and only the one that serves or was chosen goes on.
fn sole_beside_an_active_peer(snapshot: &Snapshot, progress: &Progress, record: &Record) -> Plan {
    let serves = peer_claims_to_be_sole(snapshot) || !snapshot.peer_etcd.is_absent();
    let cib = snapshot.cib.known();
    let told = cib.and_then(|cib| Some((cib.peer_record.as_ref()?, Cluster::seen_in(snapshot, cib))));
    match told.map(|(peer, cluster)| cold_start::answer(record, peer, &cluster)) {
        Some(Answer::Refuse(Refusal::HistoriesSplit)) => {
            as_others_say(snapshot, progress, record, PATIENCE_WITH_A_BLOCKED_PEER_MS)
                .unwrap_or_else(|| snapshot.refuse(Refusal::HistoriesSplit))
        }
        Some(Answer::ForceNewCluster(rule)) if !serves => announce(snapshot, snapshot.rule(rule)),
        Some(Answer::FollowThePeer(_) | Answer::ForceNewCluster(_)) => await_the_peer(snapshot, progress),
        _ if proof::is_newest(snapshot, record) && !peer_claims_to_be_sole(snapshot) => {
            run_plainly(snapshot, &record.disk, Rule::PeerActiveButWithoutLeader)
        }
        _ => await_the_peer(snapshot, progress),
    }
}

fn await_the_peer(snapshot: &Snapshot, progress: &Progress) -> Plan {
    let wait = Wait::PeerToServe { peer: snapshot.peer_name().to_owned() };
    wait_or_refuse(snapshot, progress, PATIENCE_WITH_A_BLOCKED_PEER_MS, wait, Refusal::PeerDoesNotServe)
}

fn peer_claims_to_be_sole(snapshot: &Snapshot) -> bool {
    let record = snapshot.cib.known().and_then(|cib| cib.peer_record.as_ref());
    record.is_some_and(|record| record.claims && classify(&record.disk) == Data::SoleVoter)
}

/// R3: the peer is confirmed down and is not starting.
fn alone(snapshot: &Snapshot, record: &Record) -> Plan {
    let history = match &record.disk {
        DataDir::Present(history) => history,
        DataDir::Blank => return snapshot.refuse(Refusal::BlankAlone),
        DataDir::Broken { why } => return snapshot.refuse(Refusal::BrokenAlone { why: why.clone() }),
    };
    let position = position(history);
    match classify(&record.disk) {
        Data::SoleVoter if proof::is_newest(snapshot, record) => run_plainly(snapshot, &record.disk, Rule::SoleVoter),
        Data::VoterBeside(_) if proof::proves_that_the_peer_did_not_go_on(snapshot, history) => {
            announce(snapshot, snapshot.rule(Rule::SurvivorGoesOnAlone))
        }
        Data::SoleVoter | Data::VoterBeside(_)
            if proof::operator_confirmed(snapshot, history) || proof::told_to(snapshot) =>
        {
            announce(snapshot, snapshot.rule(Rule::OperatorConfirmed))
        }
        Data::SoleVoter | Data::VoterBeside(_) => snapshot.refuse(proof::without_proof(snapshot, position)),
        Data::Learner => snapshot.refuse(Refusal::LearnerAlone { position }),
        Data::Departed => snapshot.refuse(Refusal::DepartedAlone { position }),
        Data::VoterAmongMany => among_many(snapshot),
        Data::Nothing => snapshot.refuse(Refusal::BlankAlone),
    }
}

/// Three or more voters are plain Raft: started plainly, whatever becomes of the peer, and nothing is forced.
fn among_many(snapshot: &Snapshot) -> Plan {
    run(snapshot, RunMode::Normally, Rule::MoreThanTwoVoters)
}

/// Nobody vouches for the peer. A sole voter needs nobody; everyone else waits for fencing.
fn not_confirmed(snapshot: &Snapshot, progress: &Progress, record: &Record, why: &str) -> Plan {
    if classify(&record.disk) == Data::SoleVoter && proof::is_newest(snapshot, record) {
        return sole_beside_a_silent_peer(snapshot, progress, record);
    }
    if classify(&record.disk) == Data::VoterAmongMany {
        return among_many(snapshot);
    }
    if is_voter(&record.disk) && proof::told_to(snapshot) && proof::peer_was_never_seen(snapshot) {
        return announce(snapshot, snapshot.rule(Rule::OperatorConfirmed));
    }
    let wait = Wait::PeerConfirmed { peer: snapshot.peer_name().to_owned(), why: why.to_owned() };
    let refusal = Refusal::PeerNotConfirmed { why: why.to_owned() };
    wait_or_refuse(snapshot, progress, PATIENCE_WITH_A_BLOCKED_PEER_MS, wait, refusal)
}

/// A sole voter needs nobody. But a peer that is there may tell of a fork that no CIB which counts has heard of, and
/// Pacemaker asks its agent before it starts any: a start that began before the peer came back is the one that must wait.
fn sole_beside_a_silent_peer(snapshot: &Snapshot, progress: &Progress, record: &Record) -> Plan {
    let machine = snapshot.cib.known().filter(|cib| cib.peer_record.is_none()).map(Cib::peer_machine);
    let wait = Wait::PeerRecord { peer: snapshot.peer_name().to_owned() };
    let patience_ms = match machine {
        Some(PeerNode::Online) => PATIENCE_WITH_A_BLOCKED_PEER_MS,
        Some(PeerNode::Pending) => PATIENCE_WITH_A_JOINING_PEER_MS,
        _ => return run_plainly(snapshot, &record.disk, Rule::SoleVoter),
    };
    // A machine that hangs between Corosync and Pacemaker joins never.
    let hangs = machine == Some(PeerNode::Pending) && progress.in_phase_ms(snapshot.elapsed_ms) > patience_ms;
    if hangs && snapshot.peer_etcd.is_absent() {
        return run_plainly(snapshot, &record.disk, Rule::SoleVoter);
    }
    wait_or_refuse(snapshot, progress, patience_ms, wait, Refusal::PeerSaysNothing)
}

fn only_node(snapshot: &Snapshot, record: &Record) -> Plan {
    match classify(&record.disk) {
        Data::Nothing if record.disk == DataDir::Blank => run(snapshot, RunMode::Bootstrap, Rule::OnlyNode),
        Data::SoleVoter => run_plainly(snapshot, &record.disk, Rule::OnlyNode),
        // The administrator took the peer out of node_ip_map: that is the operator's word on it.
        Data::VoterBeside(_) => announce(snapshot, snapshot.rule(Rule::OnlyNode)),
        Data::VoterAmongMany => among_many(snapshot),
        Data::Nothing | Data::Learner | Data::Departed => snapshot.refuse(Refusal::NoVotersData),
    }
}

fn wait_or_refuse(snapshot: &Snapshot, progress: &Progress, patience_ms: u64, wait: Wait, refusal: Refusal) -> Plan {
    let patience_ms = patience_ms.min(snapshot.budget_ms.saturating_sub(START_RESERVE_MS));
    if progress.in_phase_ms(snapshot.elapsed_ms) > patience_ms {
        return snapshot.refuse(unless_refused(snapshot, refusal));
    }
    Plan::then_look(Vec::new(), LOOK_AT_THE_PEER_MS, progress.clone(), Reason::Waiting(wait))
}

/// A peer that "does not serve" may serve everybody but us.
fn unless_refused(snapshot: &Snapshot, refusal: Refusal) -> Refusal {
    match &snapshot.peer_refuses {
        Some(refuses) if refusal == Refusal::PeerDoesNotServe => Refusal::NoPermission { user: refuses.user.clone() },
        _ => refusal,
    }
}

fn run_plainly(snapshot: &Snapshot, disk: &DataDir, rule: Rule) -> Plan {
    if let Some(refusal) = database_is_ahead(disk).filter(|_| classify(disk) == Data::SoleVoter) {
        return snapshot.refuse(refusal);
    }
    let progress = Progress::enter(Phase::Started(RunMode::Normally), snapshot.elapsed_ms);
    Plan::then_look(plain_start(disk), LOOK_FOR_A_LEADER_MS, progress, snapshot.rule(rule))
}

fn run(snapshot: &Snapshot, mode: RunMode, rule: Rule) -> Plan {
    let progress = Progress::enter(Phase::Started(mode.clone()), snapshot.elapsed_ms);
    Plan::then_look(vec![Effect::RunContainer(mode)], LOOK_FOR_A_LEADER_MS, progress, snapshot.rule(rule))
}
