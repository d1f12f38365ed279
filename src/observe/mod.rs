//! Gathers the facts of one round: all I/O, each source within its own time, and no decision.

mod container;
mod leaderless;
mod local;

use std::time::Duration;

use crate::clock;
use crate::data_dir;
use crate::decide::evidence::{BootMemory, Cib, DataDir, Etcd, Evidence, Room};
use crate::decide::fact::Fact;
use crate::etcd::blocking;
use crate::etcd::client::Answer;
use crate::pacemaker::cib;
use crate::podman::process;
use crate::resource::context::Context;
use crate::state_file;

/// How long our own etcd has for its answer; it is on this machine.
const OWN_ETCD_TIMEOUT: Duration = Duration::from_millis(2500);
/// How long the peer's has. A machine that lost its power does not even refuse.
const PEER_ETCD_TIMEOUT: Duration = Duration::from_millis(1500);

/// Looks at everything that a decision may rest on.
pub fn observe(context: &Context) -> Evidence {
    // Before all else: what is seen later cannot be changed by anybody but us then.
    let launching = if context.acts { context.turn.take() } else { context.turn.is_anothers() };
    let boot_memory = state_file::read(&context.memory_path);
    let (own, peer, cib) = living_sources(context, &boot_memory);
    let own_leaderless = leaderless::observe(context, &own, &cib);
    let (own_etcd, peer_etcd) = (own.etcd, peer.etcd);
    let data_in_use = data_in_use(context);
    let container = container::observe(context, &own_etcd, &data_in_use);
    let is_stopped = match &container {
        Fact::Known(container) => !container.running,
        Fact::Absent => true,
        // podman does not answer; what nobody holds open can be read all the same.
        Fact::Unknown(_) | Fact::NotAsked => data_in_use == Fact::Known(false) && own_etcd.is_absent(),
    };
    // Only a node that is to join a serving peer needs room, and its backups are walked through for that.
    let may_join = is_stopped && peer_etcd.known().is_some_and(Etcd::is_voter_with_leader);
    Evidence {
        elapsed_ms: millis(context.deadline.elapsed()),
        budget_ms: millis(context.budget),
        me: context.me.clone(),
        peer: context.peer.clone(),
        boot_id: context.boot_id.clone(),
        promotable: context.promotable,
        promote_max_lag: context.params.promote_max_lag,
        notify: context.notify.clone(),
        cib,
        launching,
        container,
        data_in_use,
        disk: if is_stopped { disk(context) } else { Fact::NotAsked },
        room: if may_join { room(context) } else { Fact::NotAsked },
        note: state_file::read(&state_file::note_path(context.data_dir())),
        boot_memory,
        confirmation: state_file::read(&context.confirmation_path),
        local: local::observe(context, is_stopped, &own_etcd, &peer_etcd),
        own_etcd,
        peer_etcd,
        own_refuses: own.no_permission,
        peer_refuses: peer.no_permission,
        own_leaderless,
        recovery: context.params.recovery,
        nonce: clock::boot_nanoseconds(),
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The sources that can make us wait are asked side by side.
fn living_sources(context: &Context, boot_memory: &Fact<BootMemory>) -> (Answer, Answer, Fact<Cib>) {
    std::thread::scope(|scope| {
        let own = scope.spawn(|| own_etcd(context));
        let cib = query_cib(context);
        let peer = peer_etcd(context, &cib);
        let own = own.join().unwrap_or_else(|_| Fact::Unknown("the observer failed".to_owned()).into());
        let own = if is_behind(&own.etcd, &peer.etcd) && !remembers_a_voter(context, boot_memory) {
            own_etcd(context)
        } else {
            own
        };
        (own, peer, cib)
    })
}

fn own_etcd(context: &Context) -> Answer {
    let timeout = context.deadline.at_most(OWN_ETCD_TIMEOUT);
    blocking::observe(&context.own_endpoint, context.credentials(), timeout)
}

/// Whether our etcd follows the peer's and seems to lack something of it. A new voter is remembered once it has what its
/// leader had, and under writes a leader that was asked later always has more.
fn is_behind(own: &Fact<Etcd>, peer: &Fact<Etcd>) -> bool {
    let (Some(own), Some(peer)) = (own.known(), peer.known()) else { return false };
    !own.is_learner && own.leader == Some(peer.member_id) && own.index < peer.index
}

fn remembers_a_voter(context: &Context, boot_memory: &Fact<BootMemory>) -> bool {
    boot_memory.known().is_some_and(|memory| memory.boot_id == context.boot_id && memory.voter.is_some())
}

/// A machine that is off does not even refuse: asking it costs each round of a recovery its whole time-out. Where
/// Pacemaker says that it has left the membership, its etcd is not asked; nothing it says could be acted on.
fn peer_etcd(context: &Context, cib: &Fact<Cib>) -> Answer {
    let Some(endpoint) = &context.peer_endpoint else { return Fact::Absent.into() };
    if cib.known().is_some_and(Cib::peer_is_beyond_asking) {
        return Fact::NotAsked.into();
    }
    blocking::observe(endpoint, context.credentials(), context.deadline.at_most(PEER_ETCD_TIMEOUT))
}

fn query_cib(context: &Context) -> Fact<Cib> {
    let peer = context.peer.as_ref().map(|peer| peer.name.as_str());
    match cib::query(&context.programs, &context.resource, &context.me.name, peer) {
        Ok(cib) => Fact::Known(cib),
        Err(error) => Fact::Unknown(error.to_string()),
    }
}

/// Whether an etcd of ours has the data open; one that kubelet runs is none.
fn data_in_use(context: &Context) -> Fact<bool> {
    match data_dir::is_open(context.data_dir()) {
        Ok(open) => Fact::Known(open && !process::a_pod_has_open(context.data_dir())),
        Err(error) => Fact::Unknown(error.to_string()),
    }
}

fn room(context: &Context) -> Fact<Room> {
    match data_dir::room(context.data_dir()) {
        Ok(room) => Fact::Known(room),
        Err(error) => Fact::Unknown(error.to_string()),
    }
}

fn disk(context: &Context) -> Fact<DataDir> {
    match data_dir::read(context.data_dir()) {
        Ok(disk) => Fact::Known(disk),
        Err(error) => Fact::Unknown(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Under writes, whoever is asked first always lacks something of the other.
    #[test]
    fn a_follower_that_was_asked_before_its_leader_is_asked_again() {
        let etcd = |member_id: u64, index: u64| Etcd {
            cluster_id: 1,
            member_id,
            leader: Some(2),
            term: 3,
            index,
            is_learner: false,
            members: Vec::new(),
            db_bytes: 0,
            alarms: Vec::new(),
        };
        let leader = Fact::Known(etcd(2, 100));
        assert!(is_behind(&Fact::Known(etcd(1, 99)), &leader));
        assert!(!is_behind(&Fact::Known(etcd(1, 100)), &leader));
        assert!(!is_behind(&leader, &Fact::Known(etcd(1, 101))), "it leads itself");
        assert!(!is_behind(&Fact::Known(Etcd { is_learner: true, ..etcd(1, 99) }), &leader));
        assert!(!is_behind(&Fact::Known(etcd(1, 99)), &Fact::NotAsked));
    }
}
