//! Three agents on two networks: a network fails, and an agent is frozen, killed, cut off in a crash loop, and started
//! with another key. Another test cuts one agent off from the other two, and a third one
//! rewrites the list of members.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::cluster::{Cluster, Node, eventually, must_feed_by_quorum};
use crate::namespaces;

/// Asserts that an agent is unfed once its multiplexer dies, although its quorum holds.
#[test]
fn a_dead_multiplexer_leaves_its_client_unfed() {
    namespaces::run(module_path!(), "a_dead_multiplexer_leaves_its_client_unfed", 90, || {
        let mut cluster = Cluster::new(3, 1, "", "");
        fs::create_dir(cluster.nodes[0].path("mux")).unwrap();
        let dir = fs::canonicalize(cluster.nodes[0].path("mux")).unwrap();
        let socket = dir.join("watchdog-mux.sock");
        let config = fs::read_to_string(cluster.nodes[0].path("config")).unwrap();
        let device = cluster.nodes[0].path("watchdog");
        let of_mux = config.replace(&format!("'{}'", device.display()), &format!("'{}'", socket.display()));
        assert_ne!(of_mux, config);
        fs::write(cluster.nodes[0].path("config"), of_mux).unwrap();
        let mut run = cluster.nodes[0].inside(env!("CARGO_BIN_EXE_tandem"));
        run.arg("watchdog-mux").arg("--run-dir").arg(&dir).arg("run").arg("--device").arg(&device);
        run.env_remove("JOURNAL_STREAM").env_remove("WATCHDOG_MODULE").stdin(Stdio::null()).stderr(Stdio::null());
        let mut mux = run.spawn().unwrap();
        eventually("the multiplexer does not serve", || dir.join("watchdog-mux.json").exists());
        cluster.start_all();
        cluster.must_reach(&[0, 1, 2], 3);
        eventually("it is not armed", || cluster.nodes[0].status()["fed"] == true);
        assert_eq!(cluster.nodes[0].asked(&["status"]).status.code(), Some(0));
        mux.kill().unwrap();
        mux.wait().unwrap();
        eventually("it is not unfed", || cluster.nodes[0].asked(&["status"]).status.code() == Some(3));
        let status = cluster.nodes[0].status();
        assert!(status["why"].as_str().is_some_and(|why| why.contains(" closed without V (")), "{status}");
        assert_eq!(status["reachable"], 3, "{status}");
    });
}

#[test]
fn one_network_of_two_is_enough_and_a_crash_loop_feeds_nothing() {
    namespaces::run(module_path!(), "one_network_of_two_is_enough_and_a_crash_loop_feeds_nothing", 100, || {
        let mut cluster = Cluster::new(3, 2, "", "");
        cluster.nodes.iter().for_each(Node::leave_running);
        cluster.start_all();
        for node in &mut cluster.nodes {
            assert!(
                node.must_be_fed() < Duration::from_secs(8),
                "a device that was left running waits: {}",
                node.log()
            );
        }
        cluster.must_reach(&[0, 1, 2], 3);
        cluster.nodes[0].listen();
        // One of the two networks fails.
        cluster.cut(0, &[2]);
        sleep(Duration::from_secs(4));
        for node in &mut cluster.nodes {
            node.must_be_fed();
        }
        assert!(!cluster.nodes[0].has_heard("LEFT", "n3"), "{}", cluster.nodes[0].log());
        // The agent is frozen for 3 s: it survives, and fed nothing meanwhile.
        cluster.nodes[2].signal(Signal::SIGSTOP);
        cluster.nodes[2].bytes();
        sleep(Duration::from_secs(3));
        assert!(cluster.nodes[2].bytes().len() <= 1);
        cluster.nodes[2].signal(Signal::SIGCONT);
        cluster.nodes[2].must_be_fed();
        cluster.nodes[1].must_be_fed();
        cluster.must_reach(&[0, 1, 2], 3);
        // The agent is cut off and killed repeatedly: no start feeds.
        cluster.cut(1, &[2]);
        cluster.nodes[2].kill();
        cluster.nodes[2].bytes();
        for _ in 0..3 {
            cluster.nodes[2].start();
            sleep(Duration::from_millis(800));
            cluster.nodes[2].kill();
        }
        assert_eq!(cluster.nodes[2].bytes(), b"", "a crash loop feeds: {}", cluster.nodes[2].log());
        eventually("LEFT n3 is not heard", || cluster.nodes[0].has_heard("LEFT", "n3"));
        // The agent is back with another key: it is unreachable, and counted.
        cluster.heal(0, &[2]);
        cluster.heal(1, &[2]);
        fs::write(cluster.dir.path().join("other"), "f".repeat(64)).unwrap();
        fs::set_permissions(cluster.dir.path().join("other"), fs::Permissions::from_mode(0o600)).unwrap();
        cluster.configure(2, "other");
        cluster.nodes[2].start();
        eventually("what another key sealed is not counted", || {
            cluster.nodes[0].status()["dropped"]["seal"].as_u64() > Some(3)
        });
        assert_eq!(cluster.nodes[2].bytes(), b"", "fed without contact");
        cluster.nodes[2].kill();
        cluster.configure(2, "key");
        cluster.nodes[2].start();
        assert!(cluster.nodes[2].must_be_fed() < Duration::from_secs(4));
        eventually("JOIN n3 is not heard", || cluster.nodes[0].has_heard("JOIN", "n3"));
        cluster.nodes[0].must_be_fed();
    });
}

#[test]
fn of_three_the_one_alone_is_not_fed() {
    namespaces::run(module_path!(), "of_three_the_one_alone_is_not_fed", 60, || must_feed_by_quorum(3, 1, true));
}

#[test]
fn a_running_agent_reads_a_rewritten_list_and_keeps_it_if_the_next_one_is_wrong() {
    let name = "a_running_agent_reads_a_rewritten_list_and_keeps_it_if_the_next_one_is_wrong";
    namespaces::run(module_path!(), name, 60, || {
        let rewrite = |list: &str| {
            fs::write("/run/members.new", list).unwrap();
            fs::rename("/run/members.new", "/run/members").unwrap();
        };
        let mut cluster = Cluster::new(3, 1, "members_file = '/run/members'", "");
        let list = "n1 = '10.0.0.1'\nn2 = '10.0.0.2'\nn3 = '10.0.0.3'\n";
        rewrite(list);
        cluster.start_all();
        cluster.must_reach(&[0, 1, 2], 3);
        let node = &cluster.nodes[0];
        let quorum = || node.status()["quorum"].as_u64();
        assert_eq!(quorum(), Some(2));
        rewrite(&format!("{list}n4 = '10.0.0.4'\n"));
        let took = eventually("the rewritten list is not read", || quorum() == Some(3));
        assert!(took < Duration::from_secs(2), "1 s is promised: {took:?}");
        rewrite("n2 = '10.0.0.2'\n");
        eventually("a wrong list is not logged", || {
            node.log().contains("the list of members is kept as it is: node n1 is not listed")
        });
        assert_eq!(quorum(), Some(3), "{}", node.log());
    });
}
