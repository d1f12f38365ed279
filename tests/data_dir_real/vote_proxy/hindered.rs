//! A survivor with a problem of its own while the vote proxy runs: no space for a write, a long queue of unapplied
//! entries, or a disk that is slow to sync. The vote proxy takes over or gives up in time, and acknowledged writes are
//! kept.

use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use etcd_client::{AlarmAction, AlarmType, ConnectOptions, PutOptions};
use tandem::adapters::etcd::peer::{GivenUp, Taken};
use tandem::os::clock;

use super::pair::{Pair, Survivor, WITHIN};
use crate::each_version;
use crate::etcd::{Asker, Etcd, until};

/// The time for which one of two members is dead before the vote proxy runs.
const ALONE: Duration = Duration::from_millis(1500);
/// The smallest quota of etcd's database, in bytes, so that the test soon exceeds it.
const QUOTA: &str = "4194304";
/// The time within which a vote proxy must end. It includes the time that the vote proxy needs to notice that its own limit has passed.
const IN_TIME: Duration = Duration::from_secs(5);

/// Runs a vote proxy for `survivor`, and repeats it after each change of the term. Asserts that each try ended in
/// time.
fn bounded(survivor: &Survivor) -> Result<Taken, GivenUp> {
    let one = |wish: &_| {
        let began = Instant::now();
        let outcome = tandem::adapters::etcd::peer::vote_proxy(&survivor.place, wish, WITHIN);
        assert!(began.elapsed() < IN_TIME, "it took {:?}: {outcome:?}", began.elapsed());
        outcome
    };
    survivor.looking_anew(one)
}

/// Writes to etcd until its database is full. Returns the acknowledged keys.
fn fill(etcd: &Etcd) -> BTreeSet<String> {
    let mut asker = etcd.client();
    let mut acknowledged = BTreeSet::new();
    for number in 0.. {
        let key = format!("w/{number}");
        match asker.put(&key, vec![7; 100_000]) {
            Ok(()) => acknowledged.insert(key),
            Err(error) => {
                assert!(error.to_string().contains("database space exceeded"), "{error}");
                break;
            }
        };
    }
    acknowledged
}

#[test]
fn an_etcd_without_room_is_taken_over_and_says_so_still() {
    each_version(|version, root| {
        let pair = Pair::start_with(version, root, &["--quota-backend-bytes", QUOTA]);
        let (mut survivor, mut dead) = pair.split(true);
        let acknowledged = fill(&survivor.etcd);
        dead.kill();
        clock::sleep(ALONE);
        survivor.vote_proxy();
        assert_eq!(survivor.voters(), [survivor.me]);
        let mut asker = survivor.etcd.client();
        let refused = asker.put("w/after", vec![1]).unwrap_err().to_string();
        assert!(refused.contains("database space exceeded"), "{refused}");
        survivor.has_all(&acknowledged);
        // The alarm is still there for the operator to disarm.
        survivor.writes_its_log();
        let Asker { runtime, client } = &mut asker;
        let alarms = runtime.block_on(client.alarm(AlarmAction::Get, AlarmType::None, None)).unwrap();
        assert!(alarms.alarms().iter().any(|alarm| alarm.member_id() == survivor.me));
        survivor.restart();
        survivor.has_all(&acknowledged);
    });
}

/// The number of writes that the test sends at once.
const IN_FLIGHT: usize = 3000;
/// The size in bytes of each write that the test sends.
const WEIGHT: usize = 20_000;

/// Sends [`IN_FLIGHT`] writes at once to `etcd`, and kills `dead` in the middle. The returned thread yields the keys
/// that were acknowledged.
fn burst(etcd: &Etcd, dead: &mut Etcd) -> std::thread::JoinHandle<BTreeSet<String>> {
    let url = etcd.place.client_url.clone();
    let (began, begun) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let Asker { runtime, client } = Asker::new(&url, ConnectOptions::new().with_timeout(Duration::from_secs(10)));
        runtime.block_on(async {
            let writes: Vec<_> = (0..IN_FLIGHT)
                .map(|number| {
                    let mut client = client.clone();
                    tokio::spawn(async move {
                        let key = format!("w/{number:05}");
                        let put = client.put(key.clone(), vec![7; WEIGHT], None::<PutOptions>).await;
                        put.ok().map(|_| key)
                    })
                })
                .collect();
            let mut acknowledged = BTreeSet::new();
            for (number, write) in writes.into_iter().enumerate() {
                acknowledged.extend(write.await.unwrap());
                if number == IN_FLIGHT / 10 {
                    let _ = began.send(());
                }
            }
            acknowledged
        })
    });
    let _ = begun.recv();
    dead.kill();
    thread
}

#[test]
fn a_long_queue_of_entries_is_taken_along() {
    each_version(|version, root| {
        for leader_dies in [true, false] {
            let dir = root.join(if leader_dies { "leader" } else { "follower" });
            std::fs::create_dir(&dir).unwrap();
            let (mut survivor, mut dead) = Pair::start(version, &dir).split(leader_dies);
            let writes = burst(&survivor.etcd, &mut dead);
            clock::sleep(ALONE);
            let taken = bounded(&survivor).unwrap_or_else(|error| panic!("{error}"));
            let acknowledged = writes.join().unwrap();
            println!("etcd {}: {taken}; {} of {IN_FLIGHT} acknowledged", version.number, acknowledged.len());
            assert_eq!(survivor.voters(), [survivor.me]);
            survivor.has_all(&acknowledged);
            survivor.writes_its_log();
            survivor.restart();
            survivor.has_all(&acknowledged);
        }
    });
}

/// A process of `strace` that delays every sync of an etcd. It ends when this is dropped.
struct SlowSyncs(Child);

impl SlowSyncs {
    #[expect(
        clippy::disallowed_methods,
        reason = "strace is attached as long as the test says, and not a command that answers"
    )]
    fn of(etcd: &Etcd, each: Duration) -> Self {
        let inject = format!("inject=fsync,fdatasync:delay_enter={}", each.as_micros());
        let mut strace = Command::new("/usr/bin/strace")
            .args(["-f", "-q", "-e", "trace=fsync,fdatasync", "-e", &inject, "-o", "/dev/null", "-p"])
            .arg(etcd.pid().to_string())
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("strace: {error}; type 'apt-get install strace'"));
        let status = format!("/proc/{}/status", etcd.pid());
        until("strace to be attached", || {
            let text = std::fs::read_to_string(&status).ok()?;
            assert!(strace.try_wait().unwrap().is_none(), "strace has ended: it may trace no other process here");
            text.lines().any(|line| line.starts_with("TracerPid:") && !line.ends_with("\t0")).then_some(())
        });
        Self(strace)
    }
}

impl Drop for SlowSyncs {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Asserts that a vote proxy gives up if each sync of the survivor's disk takes three seconds, and that a later one completes its work.
/// etcd answers only after its log is on the disk, so the first one cannot complete in time.
#[test]
fn a_disk_that_syncs_in_three_seconds_is_not_waited_for() {
    each_version(|version, root| {
        let (mut survivor, mut dead) = Pair::start(version, root).split(true);
        let acknowledged: BTreeSet<String> = (0..50).map(|number| format!("w/{number}")).collect();
        let mut asker = survivor.etcd.client();
        for key in &acknowledged {
            asker.put(key, vec![1]).unwrap();
        }
        let slow = SlowSyncs::of(&survivor.etcd, Duration::from_secs(3));
        dead.kill();
        clock::sleep(ALONE);
        let outcome = bounded(&survivor);
        println!("etcd {}, a sync takes 3 s: {outcome:?}", version.number);
        assert!(outcome.is_err(), "etcd was proven to serve before its log was on the disk");
        drop(slow);
        until("a stand-in on the disk as it was", || bounded(&survivor).ok());
        assert_eq!(survivor.voters(), [survivor.me]);
        survivor.has_all(&acknowledged);
        survivor.writes_its_log();
        survivor.restart();
        survivor.has_all(&acknowledged);
    });
}
