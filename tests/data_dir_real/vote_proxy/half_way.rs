//! A vote proxy that ends half-way, as when its process is killed, and a dead member that comes back.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;
use tandem::adapters::data_dir;
use tandem::adapters::etcd::peer::{self, ProxyStep, Wish};
use tandem::os::clock;

use super::pair::{Pair, Survivor, WITHIN, Writers, borrowed};
use crate::each_version;
use crate::etcd::{Etcd, Version, until};

/// The steps of a vote proxy after which the tests end it.
const STEPS: [ProxyStep; 7] = [
    ProxyStep::Look,
    ProxyStep::Attach,
    ProxyStep::Term,
    ProxyStep::Campaign,
    ProxyStep::Vote,
    ProxyStep::Acknowledge,
    ProxyStep::Remove,
];

/// Starts two voters, kills one while clients write, and ends a vote proxy after `step`. Returns the survivor, the dead member, and the
/// keys that were acknowledged until then.
fn ended_after(step: ProxyStep, version: &Version, root: &Path) -> (Survivor, Etcd, BTreeSet<String>) {
    let (survivor, mut dead) = Pair::start(version, root).split(true);
    let writers = Writers::start(&[(&survivor.etcd, "a"), (&dead, "b")]);
    clock::sleep(Duration::from_millis(300));
    dead.kill();
    clock::sleep(Duration::from_millis(1500));
    let ended = survivor.vote_proxy_up_to(step);
    assert_eq!(ended.voted, step >= ProxyStep::Vote, "{ended}");
    clock::sleep(Duration::from_millis(200));
    (survivor, dead, writers.stop().0)
}

#[test]
fn a_second_vote_proxy_finishes_what_a_first_one_began() {
    each_version(|version, root| {
        for step in STEPS {
            let dir = root.join(step.to_string());
            std::fs::create_dir(&dir).unwrap();
            let (mut survivor, _dead, acknowledged) = ended_after(step, version, &dir);
            if survivor.voters().len() == 2 {
                survivor.vote_proxy();
            } else {
                assert_eq!(step, ProxyStep::Remove);
            }
            assert_eq!(survivor.voters(), [survivor.me]);
            survivor.has_all(&acknowledged);
            // etcd writes to its disk that the removal is committed with the next write, and no sooner.
            survivor.etcd.client().put("w/next", vec![1]).unwrap();
            survivor.restart();
            survivor.has_all(&acknowledged);
        }
    });
}

/// Asserts that a second vote proxy helps a survivor that was killed right after the first one had finished. Before its
/// next write, such an etcd may wait for the dead member's vote once more.
#[test]
fn a_survivor_that_is_killed_at_once_is_helped_by_another_vote_proxy() {
    each_version(|version, root| {
        let (mut survivor, mut dead) = Pair::start(version, root).split(true);
        survivor.etcd.client().put("w/before", vec![1]).unwrap();
        dead.kill();
        clock::sleep(Duration::from_millis(1500));
        survivor.vote_proxy();
        survivor.etcd.kill();
        survivor.etcd = survivor.etcd.place.run(&borrowed(&survivor.more));
        until("its peer port", || peer::look(&survivor.place, WITHIN).ok());
        let voters = survivor.voters();
        println!("etcd {}: {} voters after a kill right after the take-over", version.number, voters.len());
        // Or it applies the removal by itself after the observation, and no longer has a stream for the dead member.
        if voters.len() == 2 && survivor.try_vote_proxy().is_err() {
            until("it to be the only voter", || (survivor.voters() == [survivor.me]).then_some(()));
        }
        survivor.has_all(&BTreeSet::from(["w/before".to_owned()]));
        assert_eq!(survivor.voters(), [survivor.me]);
    });
}

#[test]
fn the_restart_as_a_cluster_of_one_is_always_left() {
    each_version(|version, root| {
        for step in STEPS {
            let dir = root.join(step.to_string());
            std::fs::create_dir(&dir).unwrap();
            let (mut survivor, _dead, acknowledged) = ended_after(step, version, &dir);
            survivor.etcd.kill();
            data_dir::advance_commit(&survivor.etcd.place.dir).unwrap();
            let more = [borrowed(&survivor.more), vec!["--force-new-cluster"]].concat();
            survivor.etcd = survivor.etcd.place.run(&more);
            survivor.etcd.wait();
            survivor.has_all(&acknowledged);
            assert_eq!(survivor.voters(), [survivor.me]);
        }
    });
}

/// Asserts that a frozen member remains a member if it wakes up during a vote proxy's work. The proxy then gives up.
#[test]
fn a_member_that_wakes_up_has_its_seat_back_and_nothing_is_granted_after_that() {
    each_version(|version, root| {
        for wakes_after in [ProxyStep::Attach, ProxyStep::Term, ProxyStep::Campaign, ProxyStep::Vote] {
            let dir = root.join(wakes_after.to_string());
            std::fs::create_dir(&dir).unwrap();
            let (mut survivor, frozen) = Pair::start(version, &dir).split(true);
            let writers = Writers::start(&[(&survivor.etcd, "a"), (&frozen, "b")]);
            clock::sleep(Duration::from_millis(300));
            frozen.signal(Signal::SIGSTOP);
            clock::sleep(Duration::from_millis(1500));
            let attempt = |wish: &_| {
                peer::vote_proxy_while(&survivor.place, wish, WITHIN, &mut |step| {
                    if step == wakes_after {
                        frozen.signal(Signal::SIGCONT);
                        clock::sleep(Duration::from_millis(500));
                    }
                    true
                })
            };
            let ended = survivor.looking_anew(attempt).unwrap_err();
            println!("etcd {}, awake after the step '{wakes_after}': {ended}", version.number);
            assert_eq!(ended.voted, wakes_after == ProxyStep::Vote, "{ended}");
            until("the pair to go on", || survivor.etcd.client().put("w/together", vec![1]).ok());
            let (acknowledged, _) = writers.stop();
            assert_eq!(survivor.voters().len(), 2);
            survivor.has_all(&acknowledged);
        }
    });
}

/// Asserts that a member remains a member if it is restarted while the vote proxy is attached. Such a restart occurs if
/// its node was not fenced at all.
#[test]
fn a_member_that_is_started_again_has_its_seat_back() {
    each_version(|version, root| {
        let (mut survivor, mut dead) = Pair::start(version, root).split(true);
        survivor.etcd.client().put("w/before", vec![1]).unwrap();
        dead.kill();
        clock::sleep(Duration::from_millis(1500));
        let mut again = None;
        let wish = {
            // Failed elections increase the term.
            let moved = peer::vote_proxy(&survivor.place, &Wish { term: 0, ..survivor.wish() }, WITHIN).unwrap_err();
            Wish { term: moved.moved_to.unwrap(), ..survivor.wish() }
        };
        let ended = peer::vote_proxy_while(&survivor.place, &wish, 3 * WITHIN, &mut |step| {
            if step == ProxyStep::Attach {
                again = Some(dead.place.run(&borrowed(&survivor.more)));
                clock::sleep(Duration::from_secs(2));
            }
            true
        });
        let ended = ended.unwrap_err();
        println!("etcd {}, started again after the step 'attach': {ended}", version.number);
        assert!(!ended.voted && ended.step == ProxyStep::Term && ended.moved_to.is_none(), "{ended}");
        until("the pair to go on", || survivor.etcd.client().put("w/together", vec![1]).ok());
        survivor.has_all(&BTreeSet::from(["w/before", "w/together"].map(str::to_owned)));
        assert_eq!(survivor.voters().len(), 2);
    });
}
