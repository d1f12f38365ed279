//! Going on alone (rule R3 and the force of R2): announced first, for good, then etcd is stopped, the CIB read behind a
//! write of our own, the commit index advanced, and a new cluster forced from the data.

use super::cold_start::{self, Answer, Cluster, Data, classify};
use super::fact::Fact;
use super::monitor::running_exit;
use super::peer::{PeerWord, peer_has_nothing, peer_word};
use super::plan::{Effect, Exit, Phase, Plan, Progress, RunMode};
use super::reason::{Reason, Refusal, Rule, Step, Wait};
use super::serve;
use super::snapshot::{
    BootMemory, Cib, DataDir, Etcd, History, Lineage, MemberId, Note, PeerNode, Position, Record, RunningVoter,
    Snapshot,
};
use super::start;
use super::timing::{
    FORCE_GRACE_S, FORCE_RESERVE_MS, LAUNCH_NEEDS_MS, LOOK_AFTER_A_CHANGE_MS, LOOK_AT_ONCE_MS, LOOK_FOR_A_RETURN_MS,
    LOOK_FOR_A_WRITE_MS, LOOK_FOR_AN_ANNOUNCEMENT_MS, PATIENCE_WITH_THE_CIB_MS, STOP_AND_LAUNCH_NEED_MS,
};

/// A running etcd that may have to go on alone: the post-stop notification and, as the backstop, `monitor` ask this.
/// `None` where nothing is to be recovered.
pub(super) fn decide(snapshot: &Snapshot, progress: &Progress) -> Option<Plan> {
    match &progress.phase {
        Phase::Announced => Some(decide_announced(snapshot, progress)),
        Phase::Barrier { nonce } => Some(not_undone(snapshot, decide_at_the_barrier(snapshot, progress, *nonce))),
        Phase::Started(mode) => Some(not_undone(snapshot, serve::started(snapshot, progress, mode))),
        Phase::Begin | Phase::HandedOver | Phase::Left | Phase::Stopped => begin(snapshot, progress),
    }
}

fn begin(snapshot: &Snapshot, progress: &Progress) -> Option<Plan> {
    // Where nobody can tell whether something is launched, nothing could be launched in the end.
    if !peer_is_out_of_the_way(snapshot) || votes_among_many(snapshot) || snapshot.may_be_launching() {
        return None;
    }
    let because = reason_to_go_on(snapshot)?;
    if was_forced(snapshot) {
        return Some(await_what_was_forced(snapshot, progress));
    }
    if !has_time_for(snapshot, STOP_AND_LAUNCH_NEED_MS) {
        return Some(go_on_later(snapshot));
    }
    Some(announce(snapshot, because))
}

/// Of a short time not more than half is asked for: an action that never has enough would never begin.
fn has_time_for(snapshot: &Snapshot, needed_ms: u64) -> bool {
    snapshot.elapsed_ms + needed_ms.min(snapshot.budget_ms / 2) <= snapshot.budget_ms
}

/// etcd runs on as it is, and the next monitor, a few seconds later, has all its time.
fn go_on_later(snapshot: &Snapshot) -> Plan {
    Plan::exit(Vec::new(), running_exit(snapshot), Reason::Waiting(Wait::MoreTime))
}

/// Whether what runs was started with force by an announcement of ours and has not served since: the force is in its
/// configuration until then. Where the note cannot be read it may have been ours.
fn was_forced(snapshot: &Snapshot) -> bool {
    let forces = snapshot.container.known().is_some_and(|container| container.running && container.forces_new_cluster);
    forces && snapshot.last_note().is_none_or(|note| note.alone_since.is_some())
}

/// To begin once more would stop what is about to serve.
fn await_what_was_forced(snapshot: &Snapshot, progress: &Progress) -> Plan {
    let why = "it was started as the only voter and does not serve yet".to_owned();
    if has_time_for(snapshot, FORCE_RESERVE_MS) {
        return Plan::then_look(
            Vec::new(),
            LOOK_FOR_A_RETURN_MS,
            progress.clone(),
            Reason::Waiting(Wait::OwnAnswer { why }),
        );
    }
    snapshot.refuse(Refusal::EtcdDoesNotAnswer { why })
}

/// A monitor that fails has Pacemaker stop etcd: one that was launched in it, and runs, is left to the next monitor.
fn not_undone(snapshot: &Snapshot, plan: Plan) -> Plan {
    match plan.because {
        Reason::Refused { refusal: Refusal::EtcdDoesNotAnswer { why }, .. } if snapshot.container_may_run() => {
            Plan::exit(Vec::new(), running_exit(snapshot), Reason::Waiting(Wait::OwnAnswer { why }))
        }
        _ => plan,
    }
}

/// Whether three or more vote: their majority is Raft's own business, and a member of theirs goes on with it or not at all.
pub(super) fn votes_among_many(snapshot: &Snapshot) -> bool {
    let published = snapshot.cib.known().and_then(|cib| cib.own_record.as_ref());
    match &snapshot.own_etcd {
        Fact::Known(etcd) if !etcd.is_learner => etcd.voters().count() > 2,
        _ => published.is_some_and(|record| classify(&record.disk) == Data::VoterAmongMany),
    }
}

/// Why a member that runs goes on alone; `None` where it does not.
fn reason_to_go_on(snapshot: &Snapshot) -> Option<Reason> {
    if leaderless_voter(snapshot).is_some_and(|voter| has_proof(snapshot, voter.cluster_id, voter.member_id)) {
        let position = snapshot.own_etcd.known().map(Etcd::position).unwrap_or_default();
        let peer = snapshot.peer_name().to_owned();
        return Some(Reason::Step(Step::AnnounceGoingOnAlone { peer, position }));
    }
    if !leaderless(snapshot) {
        return None;
    }
    if is_authorised(snapshot) {
        return Some(snapshot.rule(Rule::OperatorConfirmed));
    }
    r2_rule_of_a_force(snapshot).map(|rule| snapshot.rule(rule))
}

/// Our member, where it runs without a leader and is known to be a voter: by its own word or, where it has not
/// answered anybody since it started, by this boot's memory of it.
fn leaderless_voter(snapshot: &Snapshot) -> Option<RunningVoter> {
    let remembered = snapshot.running_voter().cloned()?;
    match &snapshot.own_etcd {
        Fact::Known(etcd) if etcd.leader.is_some() || etcd.is_learner => None,
        // A sole voter needs nobody's vote; it has no leader for a moment after its start.
        Fact::Known(etcd) if etcd.voters().count() < 2 || etcd.member_id != remembered.member_id => None,
        Fact::Known(_) => Some(remembered),
        // A sole voter that does not answer is slow or stuck, and forcing it once more mends nothing.
        Fact::Unknown(_) if !remembered.sole && !snapshot.serves_unseen() => Some(remembered),
        Fact::Unknown(_) | Fact::Absent | Fact::NotAsked => None,
    }
}

/// Our member runs, has no leader, and is no learner as far as it says.
fn leaderless(snapshot: &Snapshot) -> bool {
    match &snapshot.own_etcd {
        Fact::Known(etcd) => etcd.leader.is_none() && !etcd.is_learner,
        Fact::Unknown(_) => !snapshot.serves_unseen(),
        Fact::Absent | Fact::NotAsked => false,
    }
}

/// An operator's word about a member that runs. What its data says, once it is stopped, is compared with the word then.
fn is_authorised(snapshot: &Snapshot) -> bool {
    let word = snapshot.authorisation.known();
    word.is_some_and(|word| word.boot_id == snapshot.boot_id && word.lost_node == snapshot.peer_name())
}

/// Confirmed down (fenced, or shut down cleanly), or confirmed stopped with its claim to go on alone given up; or it says
/// that it holds no data at all, and no etcd runs there: then it waits for us, however often it is started.
pub(super) fn peer_is_out_of_the_way(snapshot: &Snapshot) -> bool {
    let record = snapshot.cib.known().and_then(|cib| cib.peer_record.as_ref());
    let record = record.filter(|record| !record.claims && is_of_the_other_voter(snapshot, record));
    let data = record.map(|record| classify(&record.disk));
    match peer_word(snapshot) {
        PeerWord::Down => true,
        // A sole voter has a history of its own, whatever an operator said when it was away.
        PeerWord::Stopped => data.is_some_and(|data| data != Data::SoleVoter),
        PeerWord::Starting | PeerWord::Planned => data.is_some() && peer_has_nothing(snapshot),
        PeerWord::Nobody | PeerWord::Active | PeerWord::Lost | PeerWord::Unknown(_) => false,
    }
}

/// Whether a record is of the member that is the other voter beside ours, as our data says or, while etcd runs, etcd
/// itself: a record of another one is older than that membership, and so is whatever else this CIB says of the peer.
fn is_of_the_other_voter(snapshot: &Snapshot, record: &Record) -> bool {
    match (other_voter(snapshot), &record.disk) {
        (Some(other), DataDir::Present(history)) => history.member_id == other,
        _ => true,
    }
}

fn other_voter(snapshot: &Snapshot) -> Option<MemberId> {
    if let Some(Data::VoterBeside(other)) = snapshot.disk.known().map(classify) {
        return Some(other);
    }
    let etcd = snapshot.own_etcd.known()?;
    etcd.voters().map(|member| member.id).find(|id| *id != etcd.member_id)
}

/// Whether this node's data is proven to hold all that was acknowledged: our etcd ran as a voter in this boot until
/// the peer was lost, so nothing was acknowledged without it; and nobody has recorded a fork that we do not know, nor
/// said that it is the sole voter. The latter is all that an agent of another kind says before it forces a new cluster;
/// what is left of an earlier life was taken back before this boot remembered a voter (see `upkeep`).
pub(super) fn proves_that_the_peer_did_not_go_on(snapshot: &Snapshot, history: &History) -> bool {
    has_proof(snapshot, history.cluster_id, history.member_id)
}

fn has_proof(snapshot: &Snapshot, cluster_id: u64, member_id: MemberId) -> bool {
    let Some(voter) = snapshot.running_voter() else { return false };
    let peer_is_alone = |cib: &Cib| cib.standalone_node.as_deref() == Some(snapshot.peer_name());
    snapshot.cib.known().is_some_and(|cib| !peer_is_alone(cib))
        && !snapshot.may_have_left()
        && (voter.cluster_id, voter.member_id) == (cluster_id, member_id)
        && !snapshot.was_left_behind()
}

/// Whether an operator gave up the peer by name; where somebody is known to have gone on without us, the loss as well.
pub(super) fn operator_confirmed(snapshot: &Snapshot, history: &History) -> bool {
    snapshot.authorised(history).is_some_and(|word| word.accept_loss || !snapshot.was_left_behind())
}

/// Whether `force_new_cluster` is set on this node and not on the peer: OpenShift's etcd operator, when it replaced the
/// peer, its restore script or an administrator says that this node's data counts, whatever the peer holds. An attribute names
/// nobody's writes: where the peer is known to have gone on without this data, only `confirm-recovery --accept-loss` gives
/// up what it took. A snapshot that was restored here is of another cluster id, and somebody put it here for that.
pub(super) fn told_to(snapshot: &Snapshot) -> bool {
    let is_set = |cib: &Cib| cib.others.force_on_me && !cib.others.force_on_peer;
    snapshot.cib.known().is_some_and(is_set) && (!snapshot.was_left_behind() || is_restored(snapshot))
}

fn is_restored(snapshot: &Snapshot) -> bool {
    let Some(DataDir::Present(history)) = snapshot.disk.known() else { return false };
    let ran_here = snapshot.cib.known().and_then(|cib| cib.own_identity);
    ran_here.is_some_and(|ran| ran.cluster_id != history.cluster_id)
}

/// Whether the peer's machine never was a member since the cluster started here: a new node that replaces another.
pub(super) fn peer_was_never_seen(snapshot: &Snapshot) -> bool {
    snapshot.cib.known().is_some_and(|cib| cib.peer_node == PeerNode::NeverSeen)
}

/// Writes down that this node goes on alone, in the note and in the CIB, before it does.
pub(super) fn announce(snapshot: &Snapshot, because: Reason) -> Plan {
    if let Some(refusal) = snapshot.disk.known().and_then(database_is_ahead) {
        return snapshot.refuse(refusal);
    }
    let Some(note) = announced_note(snapshot) else { return snapshot.refuse(note_unreadable(snapshot)) };
    let mut effects: Vec<Effect> = forgotten_voter(snapshot).into_iter().collect();
    effects.extend([
        Effect::WriteNote(note.clone()),
        Effect::PublishLineage(note.lineage.clone()),
        Effect::SetStandalone(Some(snapshot.me.name.clone())),
    ]);
    let nonce = (!snapshot.container_may_run()).then_some(snapshot.nonce);
    let record = announced_record(snapshot, &note, nonce);
    let phase = match nonce.filter(|_| record.is_some()) {
        Some(nonce) => Phase::Barrier { nonce },
        None => Phase::Announced,
    };
    effects.extend(record);
    Plan::then_look(effects, LOOK_FOR_AN_ANNOUNCEMENT_MS, Progress::enter(phase, snapshot.elapsed_ms), because)
}

/// A memory without its claim is forgotten before an announcement, which claims anew: it would count as a proof then.
fn forgotten_voter(snapshot: &Snapshot) -> Option<Effect> {
    let memory = snapshot.memory().filter(|memory| memory.voter.is_some())?;
    let is_void = snapshot.running_voter().is_none();
    is_void.then(|| Effect::Remember(BootMemory { voter: None, ..memory.clone() }))
}

/// Where the database reaches beyond the end of the log, nothing is forced or advanced: etcd would number from the database's
/// index on, with a gap in the log that no etcd starts from again.
pub(super) fn database_is_ahead(disk: &DataDir) -> Option<Refusal> {
    let DataDir::Present(history) = disk else { return None };
    let touches_the_log = match classify(disk) {
        Data::VoterBeside(_) => true,
        Data::SoleVoter => start::is_to_be_advanced(history),
        Data::Nothing | Data::VoterAmongMany | Data::Learner | Data::Departed => false,
    };
    let database_index = history.database_ahead.filter(|_| touches_the_log)?;
    Some(Refusal::DatabaseAheadOfLog { last_index: history.last_index, database_index })
}

/// Our record, with the fork that was announced; `nonce` makes it a write that can be told from every other.
fn announced_record(snapshot: &Snapshot, note: &Note, nonce: Option<u64>) -> Option<Effect> {
    let record = snapshot.cib.known()?.own_record.clone().or_else(|| snapshot.record())?;
    let (lineage, gave_up) = (note.lineage.clone(), note.gave_up);
    Some(Effect::PublishRecord(Record { lineage, claims: true, gave_up, nonce, ..record }))
}

/// An announcement that was made and not carried out is not made twice: the fork that it counts never happened. Not so at
/// an operator's word: the peer may have taken over that count since, and gone on from it.
fn announced_note(snapshot: &Snapshot) -> Option<Note> {
    let note = snapshot.last_note()?;
    if note.alone_since.is_some() && note.lineage.by == snapshot.me.name && !is_authorised(snapshot) {
        return Some(Note { gave_up: false, ..note });
    }
    let position = match (&snapshot.disk, &snapshot.own_etcd) {
        (Fact::Known(DataDir::Present(history)), _) => position(history),
        (_, Fact::Known(etcd)) => etcd.position(),
        _ => Position::default(),
    };
    // Above every fork that anyone recorded: where an operator gave those up, ours is the history that counts.
    let known = snapshot.cib.known().map_or(0, |cib| cib.lineage.forks).max(note.lineage.forks);
    let lineage = Lineage { forks: known + 1, by: snapshot.me.name.clone() };
    // A word that stands is about this very announcement, and names the peer.
    let gave_up = is_authorised(snapshot);
    Some(Note { lineage, alone_since: Some(position), left_at: None, gave_up, joins: note.joins })
}

/// The note says how often this node went on alone and whether it left: without it nothing of that kind is decided.
pub(super) fn note_unreadable(snapshot: &Snapshot) -> Refusal {
    Refusal::NoteUnreadable { why: snapshot.note.why_unknown().to_owned() }
}

/// etcd runs, and is stopped only once the announcement is seen where others see it.
pub(super) fn decide_announced(snapshot: &Snapshot, progress: &Progress) -> Plan {
    let Some(note) = snapshot.last_note() else { return snapshot.refuse(note_unreadable(snapshot)) };
    if !announcement_is_seen(snapshot) {
        return await_own_write(snapshot, progress, "the announcement does not appear in it");
    }
    let has_a_leader = snapshot.serves_unseen() || snapshot.own_etcd.known().is_some_and(|etcd| etcd.leader.is_some());
    let runs = snapshot.container_may_run();
    if runs && (has_a_leader || !peer_is_out_of_the_way(snapshot)) {
        // The peer came back meanwhile: it may vote with us by now, and claim as much as we do.
        return Plan::then_look(Vec::new(), LOOK_AT_ONCE_MS, Progress::default(), Reason::Waiting(Wait::OwnLeader));
    }
    if runs && !has_time_for(snapshot, STOP_AND_LAUNCH_NEED_MS) {
        return go_on_later(snapshot);
    }
    let nonce = snapshot.nonce;
    let record = announced_record(snapshot, &note, Some(nonce));
    if !runs && record.is_none() {
        return snapshot.refuse(Refusal::DiskUnreadable { why: snapshot.disk.why_unknown().to_owned() });
    }
    let phase = if record.is_some() { Phase::Barrier { nonce } } else { Phase::Announced };
    let stop = runs.then_some(Effect::StopContainer { grace_s: FORCE_GRACE_S });
    let effects = stop.into_iter().chain(record).collect();
    Plan::then_look(
        effects,
        LOOK_AT_ONCE_MS,
        Progress::enter(phase, snapshot.elapsed_ms),
        Reason::Step(Step::StopBeforeForce),
    )
}

/// etcd is stopped, and what was written after that has come back from the CIB, so what the CIB says of the peer is of a
/// time when nobody could win our vote any more: a peer that says there that it claims nothing cannot have come to
/// claim since. Without this, a CIB that stands still lets an announcement be carried out beside a peer that returned.
pub(super) fn decide_at_the_barrier(snapshot: &Snapshot, progress: &Progress, nonce: u64) -> Plan {
    if was_forced(snapshot) {
        // podman was cut short, or failed after all: what it launched runs.
        let mode = RunMode::ForceNewCluster;
        let progress = Progress::enter(Phase::Started(mode.clone()), snapshot.elapsed_ms);
        return serve::started(snapshot, &progress, &mode);
    }
    if snapshot.container_may_run() {
        return snapshot.refuse(Refusal::StillRunning);
    }
    if snapshot.own_lineage().is_none() {
        return snapshot.refuse(note_unreadable(snapshot));
    }
    let own_record = snapshot.cib.known().and_then(|cib| cib.own_record.as_ref());
    let came_back = own_record.is_some_and(|record| record.nonce == Some(nonce));
    if !came_back || !announcement_is_seen(snapshot) {
        return await_own_write(snapshot, progress, "the last word before going on alone does not appear in it");
    }
    if !has_time_for(snapshot, LAUNCH_NEEDS_MS) {
        // The start that follows goes on from here, with all its time.
        return Plan::exit(Vec::new(), Exit::Retriable, Reason::Waiting(Wait::MoreTime));
    }
    decide_stopped(snapshot)
}

fn announcement_is_seen(snapshot: &Snapshot) -> bool {
    let is_ours = |cib: &Cib| {
        let is_told = snapshot.own_lineage().is_some_and(|own| own == cib.lineage);
        cib.standalone_node.as_ref() == Some(&snapshot.me.name) && is_told
    };
    snapshot.cib.known().is_some_and(is_ours)
}

fn await_own_write(snapshot: &Snapshot, progress: &Progress, in_vain: &str) -> Plan {
    if progress.in_phase_ms(snapshot.elapsed_ms) > PATIENCE_WITH_THE_CIB_MS {
        return snapshot.refuse(Refusal::CibUnreadable { why: in_vain.to_owned() });
    }
    Plan::then_look(Vec::new(), LOOK_FOR_A_WRITE_MS, progress.clone(), Reason::Waiting(Wait::OwnRecord))
}

/// etcd is gone: what its data says decides, once more, whether it may be forced.
fn decide_stopped(snapshot: &Snapshot) -> Plan {
    let Some(disk) = snapshot.disk.known() else {
        return snapshot.refuse(Refusal::DiskUnreadable { why: snapshot.disk.why_unknown().to_owned() });
    };
    let kind = classify(disk);
    let forces = matches!(kind, Data::VoterBeside(_)) && !peer_came_back(snapshot);
    if forces && !may_force(snapshot, disk) {
        return refuse_at_the_barrier(snapshot, disk);
    }
    if let Some(refusal) = database_is_ahead(disk).filter(|_| forces || kind == Data::SoleVoter) {
        return snapshot.refuse(refusal);
    }
    let (effects, mode, because) = match kind {
        Data::VoterBeside(_) if forces => (
            vec![Effect::AdvanceCommit, Effect::RunContainer(RunMode::ForceNewCluster)],
            RunMode::ForceNewCluster,
            Reason::Step(Step::AdvanceAndForce),
        ),
        Data::VoterBeside(_) => {
            (vec![Effect::RunContainer(RunMode::Normally)], RunMode::Normally, snapshot.rule(Rule::PeerCameBack))
        }
        Data::SoleVoter => (start::plain_start(disk), RunMode::Normally, snapshot.rule(Rule::SoleVoter)),
        Data::VoterAmongMany => {
            (vec![Effect::RunContainer(RunMode::Normally)], RunMode::Normally, snapshot.rule(Rule::MoreThanTwoVoters))
        }
        Data::Nothing | Data::Learner | Data::Departed => return snapshot.refuse(Refusal::NoVotersData),
    };
    let progress = Progress::enter(Phase::Started(mode), snapshot.elapsed_ms);
    Plan::then_look(effects, LOOK_AFTER_A_CHANGE_MS, progress, because)
}

/// Nothing vouches for the force any more. An operator's word that was about other data is taken back: as long as it stands it
/// would have the next start's etcd announced and stopped again, without end.
fn refuse_at_the_barrier(snapshot: &Snapshot, disk: &DataDir) -> Plan {
    let position = history_position(disk);
    if !is_authorised(snapshot) {
        return snapshot.refuse(without_proof(snapshot, position));
    }
    let refusal = Refusal::ConfirmationIsOutdated { position };
    let because = Reason::Refused { refusal, peer: snapshot.peer_name().to_owned() };
    Plan::exit(vec![Effect::ConsumeAuthorisation], Exit::Retriable, because)
}

/// Whether the peer is there again, and may hold data: then a plain start is right, which is always safe.
fn peer_came_back(snapshot: &Snapshot) -> bool {
    // An attribute that says whose data counts says it of a peer that is there, too, as long as it does not serve.
    let answers = snapshot.peer_etcd.known().is_some() || snapshot.peer_refuses.is_some();
    let given_up = told_to(snapshot) && !answers;
    snapshot.peer.is_some() && !peer_is_out_of_the_way(snapshot) && !r2_says_force(snapshot) && !given_up
}

fn r2_says_force(snapshot: &Snapshot) -> bool {
    r2_rule_of_a_force(snapshot).is_some()
}

/// The rule by which the cold-start table still answers a force for both records: they are its proof. A peer that claims is
/// a running voter, and one that is lost or whose fate is unknown may run, whatever it said last. Our data is not read while
/// etcd runs: what we published of it then says who votes, and is looked at again before a force.
fn r2_rule_of_a_force(snapshot: &Snapshot) -> Option<Rule> {
    let (cib, note) = (snapshot.cib.known()?, snapshot.last_note()?);
    // What was published before this node joined is of data that it has moved aside since. For the rest the note is newer: it
    // knows of the fork that we announced ourselves, and of those that we took over.
    let published = cib.own_record.clone().filter(|_| !note.joins);
    let published = published.map(|record| Record { lineage: note.lineage.clone(), ..record });
    let own = snapshot.record().or(published);
    let (me, peer) = (own?, cib.peer_record.as_ref()?);
    let may_run = matches!(peer_word(snapshot), PeerWord::Lost | PeerWord::Unknown(_));
    match cold_start::answer(&me, peer, &Cluster::seen_in(snapshot, cib)) {
        Answer::ForceNewCluster(rule) if !may_run && !peer.claims => Some(rule),
        _ => None,
    }
}

/// Whether what announced the force still holds for the data as it is now that etcd is gone.
fn may_force(snapshot: &Snapshot, disk: &DataDir) -> bool {
    let DataDir::Present(history) = disk else { return false };
    snapshot.peer.is_none()
        || r2_says_force(snapshot)
        || proves_that_the_peer_did_not_go_on(snapshot, history)
        || operator_confirmed(snapshot, history)
        || told_to(snapshot)
}

/// Why a voter's data is not gone on with: nothing proves that it is all there is, or it is known not to be.
pub(super) fn without_proof(snapshot: &Snapshot, position: Position) -> Refusal {
    let written = snapshot.local.log_written;
    if snapshot.last_note().is_none() {
        return note_unreadable(snapshot);
    }
    if snapshot.was_left_behind() {
        Refusal::PeerWentOnWithoutUs { position, written }
    } else {
        Refusal::NoProofThatPeerDidNotGoOn { position, written }
    }
}

fn history_position(disk: &DataDir) -> Position {
    match disk {
        DataDir::Present(history) => position(history),
        DataDir::Blank | DataDir::Broken { .. } => Position::default(),
    }
}

/// How far a history reaches.
pub(super) fn position(history: &History) -> Position {
    Position { term: history.last_term, index: history.last_index }
}
