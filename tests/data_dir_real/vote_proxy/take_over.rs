//! A complete take-over: its duration, and its effects on clients.

use std::time::{Duration, Instant};

use etcd_client::{EventType, LeaseTimeToLiveOptions, PutOptions, UserAddOptions, WatchOptions};
use tandem::adapters::etcd::peer;
use tandem::os::clock;

use super::pair::{Pair, WITHIN, Writers, borrowed, place};
use crate::each_version;
use crate::etcd::{Asker, Etcd, Place, Version};

const LEASE_S: i64 = 30;
/// The time between the death of a member and the vote proxy. Fencing takes about as long.
const FENCED: Duration = Duration::from_millis(2500);
/// The longest time from the vote proxy's start to the next acknowledged write, on a busy machine.
const AT_MOST: Duration = Duration::from_secs(2);

/// Waits until a watch has reported the change with this revision. Returns the number of reported changes.
fn count(asker: &mut Asker, stream: &mut etcd_client::WatchStream, revision: i64) -> usize {
    let counting = async {
        let mut seen = 0;
        loop {
            let answer = stream.message().await.unwrap().expect("the watch has ended");
            assert!(!answer.canceled(), "the watch was cancelled");
            seen += answer.events().iter().filter(|event| event.event_type() == EventType::Put).count();
            if answer.header().unwrap().revision() >= revision {
                return seen;
            }
        }
    };
    asker.runtime.block_on(tokio_within(counting))
}

async fn tokio_within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("no answer within 20 s")
}

struct Client {
    asker: Asker,
    lease: i64,
    stream: etcd_client::WatchStream,
    since: i64,
}

impl Client {
    /// Returns a client that has a lease and a watch on the etcd that will survive.
    fn of(etcd: &Etcd) -> Self {
        let mut asker = etcd.client();
        let lease = asker.runtime.block_on(asker.client.lease_grant(LEASE_S, None)).unwrap().id();
        let options = PutOptions::new().with_lease(lease);
        let put = asker.runtime.block_on(asker.client.put("leased", "1", Some(options))).unwrap();
        let since = put.header().unwrap().revision();
        let options = WatchOptions::new().with_prefix().with_start_revision(since + 1);
        let stream = asker.runtime.block_on(asker.client.watch("w/", Some(options))).unwrap();
        Self { asker, lease, stream, since }
    }

    /// Asserts that the client's lease is alive, and that its watch has reported every write.
    fn has_noticed_nothing(&mut self) {
        let Self { asker, lease, stream, since } = self;
        let options = LeaseTimeToLiveOptions::new();
        let lives = asker.runtime.block_on(asker.client.lease_time_to_live(*lease, Some(options))).unwrap();
        assert!(lives.ttl() > 0, "the lease is gone");
        assert_eq!(asker.keys("leased"), ["leased"]);
        let last = asker.runtime.block_on(asker.client.put("w/last", "1", None)).unwrap();
        let revision = last.header().unwrap().revision();
        let seen = count(asker, stream, revision);
        assert_eq!(i64::try_from(seen).unwrap(), revision - *since, "events are missing");
    }
}

fn take_over(version: &Version, pair: Pair, leader_dies: bool) {
    let (mut survivor, mut dead) = pair.split(leader_dies);
    let mut client = Client::of(&survivor.etcd);
    let writers = Writers::start(&[(&survivor.etcd, "a"), (&dead, "b")]);
    clock::sleep(Duration::from_millis(800));
    dead.kill();
    clock::sleep(FENCED);
    let began = Instant::now();
    let taken = survivor.vote_proxy();
    let ended = began.elapsed();
    clock::sleep(Duration::from_millis(500));
    let (acknowledged, times) = writers.stop();
    let again = times.iter().find(|at| **at > began).expect("no write was acknowledged any more").duration_since(began);
    assert!(again < AT_MOST, "the first write came after {again:?}");
    assert_eq!(survivor.voters(), [survivor.me]);
    survivor.has_all(&acknowledged);
    client.has_noticed_nothing();
    let (number, count) = (version.number, acknowledged.len());
    println!(
        "etcd {number}, the {} died: first write after {:.3} s, done after {:.3} s ({taken}); 0 of {count} lost",
        if leader_dies { "leader" } else { "follower" },
        again.as_secs_f64(),
        ended.as_secs_f64()
    );
    survivor.restart();
    survivor.has_all(&acknowledged);
}

#[test]
fn a_survivor_that_followed_goes_on_and_nothing_is_lost() {
    each_version(|version, root| take_over(version, Pair::start(version, root), true));
}

#[test]
fn a_survivor_that_led_goes_on_and_nothing_is_lost() {
    each_version(|version, root| take_over(version, Pair::start(version, root), false));
}

/// Asserts that a vote proxy also helps a leader before it has noticed that its follower is dead. Fencing may end
/// before the leader notices.
#[test]
fn a_survivor_that_still_leads_goes_on() {
    each_version(|version, root| {
        let (mut survivor, mut dead) = Pair::start(version, root).split(false);
        let writers = Writers::start(&[(&survivor.etcd, "a")]);
        clock::sleep(Duration::from_millis(300));
        let wish = survivor.wish();
        dead.kill();
        let taken = peer::vote_proxy(&survivor.place, &wish, WITHIN).unwrap();
        assert!(taken.acknowledged < Duration::from_secs(1), "{taken}");
        clock::sleep(Duration::from_millis(300));
        let (acknowledged, _) = writers.stop();
        survivor.has_all(&acknowledged);
    });
}

#[test]
fn a_learner_beside_follows_on() {
    each_version(|version, root| {
        let pair = Pair::start(version, root);
        let learner = place(version, root, "three");
        pair.leader.client().add(&learner, true);
        let places: [&Place; 3] = [&pair.leader.place, &pair.follower.place, &learner];
        let more = borrowed(&pair.more);
        let started = learner.start(&places, "existing", &more);
        clock::sleep(Duration::from_secs(2));
        take_over(version, pair, true);
        drop(started);
    });
}

#[test]
fn etcds_auth_is_no_hindrance() {
    each_version(|version, root| {
        let (mut survivor, mut dead) = Pair::start(version, root).split(true);
        let mut asker = survivor.etcd.client();
        let acknowledged: std::collections::BTreeSet<String> = (0..20).map(|number| format!("w/{number}")).collect();
        for key in &acknowledged {
            asker.put(key, vec![1]).unwrap();
        }
        let Asker { runtime, client } = &mut asker;
        runtime.block_on(async {
            client.role_add("root").await.unwrap();
            client.user_add("root", "secret", Some(UserAddOptions::new())).await.unwrap();
            client.user_grant_role("root", "root").await.unwrap();
            client.auth_enable().await.unwrap();
        });
        dead.kill();
        clock::sleep(FENCED);
        survivor.vote_proxy();
        assert_eq!(survivor.voters(), [survivor.me]);
        let options = etcd_client::ConnectOptions::new().with_user("root", "secret");
        let mut root_user = Asker::new(&survivor.etcd.place.client_url, options);
        assert_eq!(root_user.keys("w/").len(), acknowledged.len());
        root_user.put("w/after", vec![1]).unwrap();
        survivor.etcd.kill();
    });
}
