//! Five agents: armed after 10 s of contact, cut into groups of 3 and 2, healed, and one of them stopped in order.

use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::cluster::{Cluster, eventually};
use crate::namespaces;

/// The time after a cut within which every host that reaches no quorum of the five hosts is unfed. It has a margin for a busy machine.
const WINDOW: Duration = Duration::from_millis(3_300);

#[test]
fn the_minority_is_unfed_within_the_window_and_the_majority_hears_it_leave() {
    namespaces::run(
        module_path!(),
        "the_minority_is_unfed_within_the_window_and_the_majority_hears_it_leave",
        100,
        || {
            let mut cluster = Cluster::new(5, 1, "", "");
            cluster.start_all();
            cluster.must_reach(&[0, 1, 2, 3, 4], 5);
            assert_eq!(cluster.nodes[0].bytes(), b"", "armed before 10 s of contact: {}", cluster.nodes[0].log());
            for node in &mut cluster.nodes {
                node.must_be_fed();
                eventually("the arming is not logged", || node.log().contains("armed: "));
            }
            cluster.nodes[0].listen();
            cluster.nodes[4].listen();
            // The cut separates 3 and 2 agents.
            cluster.cut(0, &[3, 4]);
            let cut = Instant::now();
            sleep(WINDOW + Duration::from_millis(500));
            for at in [3, 4] {
                cluster.nodes[at].bytes();
            }
            for name in ["n4", "n5"] {
                eventually(&format!("LEFT {name} is not heard"), || cluster.nodes[0].has_heard("LEFT", name));
            }
            sleep(Duration::from_secs(7).saturating_sub(cut.elapsed()));
            for at in [3, 4] {
                let log = cluster.nodes[at].log();
                assert_eq!(cluster.nodes[at].bytes(), b"", "fed behind the window: {log}");
                assert!(log.contains("quorum lost: 2 of 5 reachable, 3 needed"), "{log}");
                let kept = std::fs::read_to_string(cluster.nodes[at].path("state/unfed.json")).unwrap_or_default();
                assert!(kept.contains("quorum lost: 2 of 5"), "the reason is not on the disk: {kept}");
                let status = cluster.nodes[at].asked(&["status"]);
                assert_eq!(status.status.code(), Some(3), "{}", String::from_utf8_lossy(&status.stdout));
            }
            for at in [0, 1, 2] {
                assert_eq!(cluster.nodes[at].asked(&["status"]).status.code(), Some(0));
                cluster.nodes[at].must_be_fed();
            }
            let listed = cluster.nodes[1].asked(&["nodes", "--json"]);
            let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
            assert_eq!(listed.as_array().unwrap().len(), 3, "{listed}");
            assert_eq!(listed[0]["addresses"]["e0"], "10.0.0.1");
            // SIGTERM without a quorum writes no V: the agent ends once a quorum answers, or the machine resets.
            cluster.nodes[3].signal(Signal::SIGTERM);
            sleep(Duration::from_secs(1));
            assert_eq!(cluster.nodes[3].bytes(), b"", "disarmed without a quorum");
            cluster.heal(0, &[3, 4]);
            let healed = Instant::now();
            cluster.nodes[4].must_be_fed();
            let fed = healed.elapsed();
            eventually("JOIN n5 is not heard", || cluster.nodes[0].has_heard("JOIN", "n5"));
            let joined = healed.elapsed();
            // The simulation holds the core to 1 s. Half a second more is for a busy machine, which delays five agents and a client.
            assert!(fed < Duration::from_millis(1_500) && joined < Duration::from_millis(1_500), "{fed:?} {joined:?}");
            assert_eq!(cluster.nodes[3].code(), Some(0), "{}", cluster.nodes[3].log());
            assert_eq!(cluster.nodes[3].bytes().last(), Some(&b'V'));
            cluster.nodes[2].bytes();
            cluster.nodes[2].signal(Signal::SIGTERM);
            assert_eq!(cluster.nodes[2].code(), Some(0), "{}", cluster.nodes[2].log());
            assert_eq!(cluster.nodes[2].bytes().last(), Some(&b'V'));
            let left = eventually("LEFT n3 is not heard", || cluster.nodes[0].has_heard("LEFT", "n3"));
            assert!(left < Duration::from_secs(1), "a leave in order is heard at once: {left:?}");
        },
    );
}
