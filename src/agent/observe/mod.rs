//! Gathers the facts of one round: all I/O, each source within its own time-out, and no decision.

mod container;
mod image;
mod leaderless;
mod local;

use std::time::Duration;

use crate::adapters::data_dir;
use crate::adapters::etcd::blocking;
use crate::adapters::etcd::client::{Answer, Endpoint};
use crate::adapters::pace::Question;
use crate::adapters::pacemaker::{cib, erased};
use crate::adapters::podman::process;
use crate::agent::resource::context::Context;
use crate::base::Fact;
use crate::decide::evidence::{BootState, Cib, DataDir, Etcd, Evidence, Leading, Pace, Room, RunningVoter};
use crate::decide::timing::LAUNCH_NEEDS_MS;
use crate::os::clock::{self, Deadline};
use crate::records::{data_mount, own_dir, state_file};

/// Least duration of an observation that counts as slow. The agent can repeat a faster observation several times during each of its waits.
const SLOW_LOOK: Duration = Duration::from_secs(1);

/// Gathers all evidence for a decision. `launching` is true if another action holds the lock on the container. The caller tries to take
/// that lock first, so that no other action changes the container meanwhile.
pub fn observe(context: &Context, launching: Fact<bool>) -> Evidence {
    let began = context.deadline.elapsed();
    let boot_memory = state_file::read(&context.memory_path);
    let (own, peer, cib) = living_sources(context, &boot_memory);
    let own_leaderless = leaderless::observe(context, &own, &cib, &boot_memory);
    let unanswered = unanswered(context, Question::OwnEtcd, &own);
    let (own_etcd, peer_etcd) = (own.etcd, peer.etcd);
    let data_in_use = data_in_use(context);
    let container = container::observe(context, &own_etcd, &data_in_use);
    let is_stopped = match &container {
        Fact::Known(container) => !container.running,
        Fact::Absent => true,
        // podman does not answer. Data that no process holds open can still be read.
        Fact::Unknown(_) | Fact::NotAsked => data_in_use == Fact::Known(false) && own_etcd.is_absent(),
    };
    // Only a node that is to join a serving peer needs space, for which the backups are scanned.
    let may_join = is_stopped && peer_etcd.known().is_some_and(Etcd::is_voter_with_leader);
    let disk = if is_stopped { disk(context) } else { Fact::NotAsked };
    let leading = leading(context, &boot_memory);
    let mut local = local::observe(context, is_stopped, &own_etcd, &peer_etcd);
    local.image = if is_stopped { Fact::NotAsked } else { image::observe(context, &own_etcd, &cib) };
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
        disk,
        room: if may_join { room(context) } else { Fact::NotAsked },
        note: own_dir::read(context.data_dir(), own_dir::NOTE),
        boot_memory,
        confirmation: state_file::read(&context.confirmation_path),
        local,
        own_etcd,
        peer_etcd,
        own_refuses: own.no_permission,
        peer_refuses: peer.no_permission,
        own_leaderless,
        recovery: context.params.recovery,
        leading,
        lone_boot: None,
        pace: pace(context, began, unanswered),
        nonce: clock::boot_nanoseconds(),
    }
}

/// Returns the parameters about the node that is to lead, with the time for which a hand-over of leadership has been due; `None` if no
/// parameter names a node.
fn leading(context: &Context, boot_memory: &Fact<BootState>) -> Option<Box<Leading>> {
    let wanted = Some(&context.params.leading).filter(|leading| leading.is_wanted())?;
    let boot_s = u32::try_from(clock::boot_nanoseconds() / 1_000_000_000).unwrap_or(u32::MAX);
    let of_this_boot = boot_memory.known().filter(|memory| memory.boot_id == context.boot_id);
    let for_s = |since_s: u32| boot_s.saturating_sub(since_s).into();
    Some(Box::new(Leading {
        primary: wanted.primary.clone(),
        failback: wanted.failback,
        keeps_its_history: wanted.keeps_its_history,
        delay_s: wanted.delay_s,
        ready_for_s: of_this_boot.and_then(|memory| memory.hand_over).map(|due| for_s(due.since_s)),
        patience_s: if wanted.primary.is_some() { wanted.patience_s } else { 0 },
        leaderless_for_s: of_this_boot.and_then(|memory| memory.leaderless_since_s).map(for_s),
        boot_s,
    }))
}

/// Returns the measured durations that a decision needs.
fn pace(context: &Context, began: Duration, unanswered: u64) -> Pace {
    let look = context.deadline.elapsed().saturating_sub(began);
    let pace = context.programs.pace();
    let launch_ms = millis(pace.launch_needs());
    Pace {
        look_ms: if look < SLOW_LOOK { 0 } else { millis(look) },
        launch_ms: if launch_ms <= LAUNCH_NEEDS_MS { 0 } else { launch_ms },
        postponed: pace.postponed(),
        unanswered,
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Queries this node's etcd, the peer's etcd and the CIB in parallel, because each of them can block.
fn living_sources(context: &Context, boot_memory: &Fact<BootState>) -> (Answer, Answer, Fact<Cib>) {
    std::thread::scope(|scope| {
        let own = scope.spawn(|| own_etcd(context));
        let cib = query_cib(context, boot_memory);
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
    ask(context, Question::OwnEtcd, &context.own_endpoint)
}

/// Queries an etcd, and records how long its answer took. Records nothing for a machine that is off or a port without a listener, because
/// both show nothing about etcd's speed.
fn ask(context: &Context, question: Question, endpoint: &Endpoint) -> Answer {
    let pace = context.programs.pace();
    let asked = Deadline::after(pace.limit(question));
    let answer = blocking::observe(endpoint, context.credentials(), asked.budget());
    if answer.is_too_late {
        pace.too_late(question, asked.elapsed());
    } else if answer.etcd.known().is_some() || answer.no_permission.is_some() {
        pace.answered(question, asked.elapsed());
    }
    answer
}

/// Returns the number of consecutive observations, up to the present one, in which etcd's answer came too late; 0 if it came in time now.
fn unanswered(context: &Context, question: Question, answer: &Answer) -> u64 {
    if answer.is_too_late { context.programs.pace().unanswered(question) } else { 0 }
}

/// Returns whether this node's etcd follows the peer's etcd and seems to lack some entries of the peer's log. The caller then queries this
/// node's etcd again: while the cluster takes writes, a leader that is queried after its follower always has more entries.
fn is_behind(own: &Fact<Etcd>, peer: &Fact<Etcd>) -> bool {
    let (Some(own), Some(peer)) = (own.known(), peer.known()) else { return false };
    !own.is_learner && own.leader == Some(peer.member_id) && own.index < peer.index
}

fn remembers_a_voter(context: &Context, boot_memory: &Fact<BootState>) -> bool {
    voter_of_this_boot(context, boot_memory).is_some_and(|voter| !voter.among_many)
}

fn voter_of_this_boot<'a>(context: &Context, boot_memory: &'a Fact<BootState>) -> Option<&'a RunningVoter> {
    boot_memory.known().filter(|memory| memory.boot_id == context.boot_id)?.voter.as_ref()
}

/// Queries the peer's etcd, unless Pacemaker reports that the peer's node has left the membership. A query to a machine that is off takes
/// its whole time-out, which would delay every observation of a recovery. The agent could not act on an answer anyway.
fn peer_etcd(context: &Context, cib: &Fact<Cib>) -> Answer {
    let Some(endpoint) = &context.peer_endpoint else { return Fact::Absent.into() };
    if cib.known().is_some_and(Cib::peer_is_beyond_asking) {
        return Fact::NotAsked.into();
    }
    ask(context, Question::PeerEtcd, endpoint)
}

/// Reads this node's copy of the CIB. If this node voted in this boot and the CIB lacks the node's record, Pacemaker may have erased the
/// record. In this case the attribute manager is queried, too. If it does not answer, the CIB counts as unknown.
fn query_cib(context: &Context, boot_memory: &Fact<BootState>) -> Fact<Cib> {
    let mut cib = ask_for_the_cib(context);
    if let Fact::Known(known) = &mut cib
        && known.own_record.is_none()
        && voter_of_this_boot(context, boot_memory).is_some()
    {
        match erased::has_record(&context.programs, &context.me.name) {
            Ok(has_record) => known.keeps_own_record = has_record,
            Err(error) => return Fact::Unknown(error.to_string()),
        }
    }
    cib
}

fn ask_for_the_cib(context: &Context) -> Fact<Cib> {
    let peer = context.peer.as_ref().map(|peer| peer.name.as_str());
    match cib::query(
        &context.programs,
        &context.resource,
        &context.me.name,
        peer,
        context.params.leading.reach.as_deref(),
    ) {
        Ok(cib) => Fact::Known(cib),
        Err(error) => Fact::Unknown(error.to_string()),
    }
}

/// Returns whether a process of the agent's etcd has the data dir open. An etcd that kubelet runs does not count.
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

/// Reads the data dir's files, without etcd. A mount point without its file system counts as unknown, and never as blank.
fn disk(context: &Context) -> Fact<DataDir> {
    let dir = context.data_dir();
    match data_dir::read(dir) {
        Ok(DataDir::Blank) => match data_mount::check_blank(&context.data_mount_path, dir) {
            Ok(()) => Fact::Known(DataDir::Blank),
            Err(why) => Fact::Unknown(why.to_string()),
        },
        Ok(disk) => Fact::Known(disk),
        Err(error) => Fact::Unknown(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::command::Programs;
    use crate::adapters::pace::Pace;
    use crate::decide::evidence;

    #[test]
    fn a_data_dir_whose_file_system_is_not_mounted_is_not_blank() {
        let dir = tempfile::tempdir().unwrap();
        let place = std::fs::canonicalize(dir.path()).unwrap().join("etcd");
        let data_dir = place.display().to_string();
        let files = [("trusted_ca_file", "/c"), ("cert_file", "/c"), ("key_file", "/c"), ("image", "etcd:test")];
        let context = Context::of_test(dir.path(), &[&files[..], &[("data_dir", &data_dir)]].concat());
        assert_eq!(disk(&context), Fact::Known(DataDir::Blank));
        std::fs::create_dir(&place).unwrap();
        let kept = format!(r#"{{"mount_point":"{data_dir}","source":"/dev/sdb1","file_system":"xfs"}}"#);
        std::fs::write(&context.data_mount_path, kept).unwrap();
        let found = disk(&context);
        assert!(found.why_unknown().starts_with("the file system that held the data (/dev/sdb1, xfs) is"), "{found:?}");
        std::fs::create_dir_all(place.join("member/wal")).unwrap();
        std::fs::write(place.join("member/wal/0.wal"), "").unwrap();
        assert!(matches!(disk(&context), Fact::Known(DataDir::Broken { .. })), "there is something to read");
    }

    /// Asserts that a follower is queried a second time if it was queried before its leader. Without the second query, it seems to lack
    /// entries while the cluster takes writes.
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

    /// Asserts that only a server that accepts a connection and never answers gets a longer time-out. A refused or dropped connection shows
    /// nothing about speed.
    #[test]
    fn only_a_server_that_accepts_and_never_answers_is_given_more_time() {
        let dir = tempfile::tempdir().unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new(["127.0.0.1".to_owned()]).unwrap().self_signed(&key).unwrap();
        let pair = dir.path().join("pair.pem").display().to_string();
        std::fs::write(&pair, certificate.pem() + &key.serialize_pem()).unwrap();
        let files = ["trusted_ca_file", "cert_file", "key_file"].map(|name| (name, pair.as_str()));
        let mut context = Context::of_test(dir.path(), &[&files[..], &[("image", "etcd:test")]].concat());
        let question = Question::OwnPeerPort;
        let mut asked = |address: String, budget: Duration| {
            context.programs = Programs::default().paced(Pace::until(Deadline::after(budget)));
            let before = context.programs.pace().limit(question);
            let answer = ask(&context, question, &Endpoint { url: format!("https://{address}"), address });
            let has_more = context.programs.pace().limit(question) > before;
            assert_eq!(unanswered(&context, question, &answer), u64::from(has_more), "{answer:?}");
            (answer, has_more)
        };
        let minute = Duration::from_secs(60);
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = silent.local_addr().unwrap().to_string();
        let (answer, has_more) = asked(address, minute);
        assert!(matches!(answer.etcd, Fact::Unknown(_)) && has_more, "{answer:?}");
        // The port is bound without a listener, so that no other program takes it meanwhile.
        let nobody = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        nobody.bind(&std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        let address = nobody.local_addr().unwrap().as_socket().unwrap().to_string();
        let (answer, has_more) = asked(address, minute);
        assert!(answer.etcd.is_absent() && !has_more, "{answer:?}");
        // Linux drops connection attempts beyond a full queue, as the network drops packets for a machine that is off.
        let full = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        full.bind(&std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        full.listen(0).unwrap();
        let address = full.local_addr().unwrap().as_socket().unwrap();
        let _first = std::net::TcpStream::connect(address).unwrap();
        let (answer, has_more) = asked(address.to_string(), minute);
        assert!(matches!(answer.etcd, Fact::Unknown(_)) && !has_more, "{answer:?}");
    }

    #[test]
    fn a_decision_is_told_how_slow_this_machine_is_where_that_matters() {
        let dir = tempfile::tempdir().unwrap();
        let files = [("trusted_ca_file", "/c"), ("cert_file", "/c"), ("key_file", "/c"), ("image", "etcd:test")];
        let mut context = Context::of_test(dir.path(), &files);
        context.deadline = Deadline::after(Duration::from_secs(60));
        let began = context.deadline.elapsed();
        clock::sleep(SLOW_LOOK / 10);
        assert_eq!(pace(&context, began, 0), evidence::Pace::default());
        context.programs.pace().answered(Question::Launch, Duration::from_secs(4));
        assert_eq!(pace(&context, began, 0), evidence::Pace::default(), "no more than what is kept anyway");
        context.programs.pace().answered(Question::Launch, Duration::from_secs(20));
        context.programs.pace().note_postponed(true);
        clock::sleep(SLOW_LOOK);
        let slow = pace(&context, began, 2);
        assert_eq!((slow.launch_ms, slow.postponed, slow.unanswered), (30_000, 1, 2));
        assert!((1_000..2_000).contains(&slow.look_ms), "{slow:?}");
    }
}
