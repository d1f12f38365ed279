//! A limit of the vote proxy: it cannot know whether the other node runs one, too. The test shows that the module alone
//! is not safe. The exclusion comes from confirmed fencing and from the rules in `src/decide`.

use std::time::Duration;

use tandem::adapters::etcd::client::Credentials;
use tandem::adapters::etcd::peer;
use tandem::os::clock;

use super::pair::{Survivor, in_order, own_id};
use super::proxy::Proxy;
use crate::each_version;
use crate::etcd::{Etcd, Place, Version};

/// Returns a member that the other one reaches only through a proxy, the URL where the member listens, and the proxy.
fn behind_a_proxy(version: &Version, root: &std::path::Path, name: &str) -> (Place, String, Proxy) {
    let mut place = Place::new(version, root, name);
    let listens = place.peer_url.clone();
    let proxy = Proxy::to(listens.trim_start_matches("http://"));
    place.peer_url = format!("http://{}", proxy.address);
    (place, listens, proxy)
}

fn survivor(etcd: Etcd, url: String, me: u64, dead: u64) -> Survivor {
    let nowhere = || std::path::PathBuf::from("/nonexistent");
    let credentials = Credentials { trusted_ca_file: nowhere(), cert_file: nowhere(), key_file: nowhere() };
    Survivor { etcd, place: peer::Place { url, credentials }, me, dead, more: Vec::new() }
}

#[test]
fn without_fencing_two_that_are_cut_off_from_each_other_would_both_go_on() {
    each_version(|version, root| {
        let (one, one_listens, way_to_one) = behind_a_proxy(version, root, "one");
        let (two, two_listens, way_to_two) = behind_a_proxy(version, root, "two");
        let cluster = [&one, &two];
        let first = one.start(&cluster, "new", &["--listen-peer-urls", &one_listens]);
        let second = two.start(&cluster, "new", &["--listen-peer-urls", &two_listens]);
        let (leader, follower) = in_order(first, second);
        leader.client().put("before", vec![1]).unwrap();
        way_to_one.cut();
        way_to_two.cut();
        clock::sleep(Duration::from_secs(2));
        assert!(leader.client().put("during", vec![1]).is_err(), "no majority, and yet a write");
        assert!(follower.client().put("during", vec![1]).is_err(), "no majority, and yet a write");
        let (a, b) = (own_id(&leader), own_id(&follower));
        let listens = |etcd: &Etcd| if etcd.place.name == "one" { one_listens.clone() } else { two_listens.clone() };
        let (leader_url, follower_url) = (listens(&leader), listens(&follower));
        let sides = [survivor(leader, leader_url, a, b), survivor(follower, follower_url, b, a)];
        for (number, side) in sides.iter().enumerate() {
            side.vote_proxy();
            assert_eq!(side.voters(), [side.me]);
            side.etcd.client().put(&format!("side{number}"), vec![1]).unwrap();
        }
        let [one, two] = sides.map(|mut side| side.etcd.wait().keys("side"));
        assert_eq!((one, two), (vec!["side0".to_owned()], vec!["side1".to_owned()]), "two histories");
    });
}
