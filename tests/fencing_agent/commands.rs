//! Commands and refusals, without a network.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use crate::cluster::{Cluster, Node};
use crate::namespaces::{self, program};

fn run(words: &[&str]) -> Output {
    program(env!("CARGO_BIN_EXE_tandem")).arg("fencing-agent").args(words).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn keys_and_the_example_are_printed_and_wrong_arguments_are_usage() {
    let key = text(&run(&["keygen"]).stdout);
    assert!(key.trim().len() == 64 && key.trim().bytes().all(|byte| byte.is_ascii_hexdigit()), "{key}");
    assert!(text(&run(&["example"]).stdout).contains("\n[members]\n"));
    for wrong in [&["start"][..], &[], &["maintenance"], &["run", "--no-such"]] {
        assert_eq!(run(wrong).status.code(), Some(2), "{wrong:?}");
    }
    let why = run(&["check", "--config", "/nowhere/config"]);
    assert_eq!(why.status.code(), Some(1));
    assert!(text(&why.stderr).contains("'fencing-agent example > /nowhere/config'"), "{}", text(&why.stderr));
    let dir = tempfile::tempdir().unwrap();
    let why = run(&["status", "--run-dir", &dir.path().display().to_string()]);
    assert_eq!(why.status.code(), Some(1));
    assert!(text(&why.stderr).contains("'systemctl start fencing-agent'"));
}

#[test]
fn check_opens_nothing_and_maintenance_disarms() {
    namespaces::run(module_path!(), "check_opens_nothing_and_maintenance_disarms", 60, || {
        let mut cluster = Cluster::new(3, 1, "", "");
        let node = &cluster.nodes[0];
        let check = node.asked(&["check"]);
        let shown = text(&check.stdout);
        assert!(check.status.success(), "{}", text(&check.stderr));
        assert!(shown.ends_with("reset 8.5 to 9 s after a cut; an outage below 8.5 s resets nobody\n"), "{shown}");
        assert!(
            shown.starts_with("members: 3, quorum 2\nnode: n1 of group test\nnetwork: 10.0.0.1:7946 (e0)\n"),
            "{shown}"
        );
        // Each fault of the environment is refused.
        let refused = |typed: &str| {
            let output = node.asked(&["run"]);
            assert_eq!(output.status.code(), Some(1));
            assert!(text(&output.stderr).contains(typed), "{}", text(&output.stderr));
        };
        let device = node.path("watchdog");
        fs::rename(&device, node.path("kept")).unwrap();
        refused("'modprobe softdog'");
        fs::write(&device, "").unwrap();
        refused("is a regular file");
        fs::rename(node.path("kept"), &device).unwrap();
        let key = cluster.dir.path().join("key");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
        refused("'chmod 0600 ");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        let config = fs::read_to_string(node.path("config")).unwrap();
        fs::write(node.path("config"), config.replace("'10.0.0.1'", "'10.0.0.9'")).unwrap();
        refused("'ip -brief address'");
        fs::write(node.path("config"), config).unwrap();
        assert!(!node.path("s").exists(), "a refusal leaves a socket");
        cluster.nodes.iter().for_each(Node::leave_running);
        let kept = "{\"boot\": \"another\", \"at\": \"20260101T000000Z\", \"reason\": \"quorum lost\"}";
        fs::write(cluster.nodes[0].path("state/unfed.json"), kept).unwrap();
        cluster.start_all();
        let node = &cluster.nodes[0];
        crate::cluster::eventually("the last boot's reason is not logged", || {
            node.log().contains("last boot ended unfed: quorum lost (20260101T000000Z)")
        });
        cluster.nodes[0].must_be_fed();
        let again = cluster.nodes[0].asked(&["run"]);
        assert!(text(&again.stderr).contains("another agent serves it"), "{}", text(&again.stderr));
        assert!(cluster.nodes[0].asked(&["check"]).status.success());
        // Disarmed, the agent is still a member, and is armed again afterwards.
        assert!(cluster.nodes[0].asked(&["maintenance", "on"]).status.success());
        crate::cluster::eventually("not disarmed", || cluster.nodes[0].log().contains("disarmed: "));
        let bytes = cluster.nodes[0].bytes();
        assert_eq!(bytes.last(), Some(&b'V'), "{bytes:?}");
        assert_eq!(cluster.nodes[0].asked(&["status"]).status.code(), Some(0));
        cluster.must_reach(&[1], 3);
        assert!(cluster.nodes[0].asked(&["maintenance", "off"]).status.success());
        cluster.nodes[0].must_be_fed();
        // The agent writes its state each second.
        crate::cluster::eventually("the metrics have it unfed", || {
            text(&cluster.nodes[0].asked(&["metrics"]).stdout).contains("\ntandem_fencing_agent_fed 1\n")
        });
    });
}

#[test]
fn a_taken_port_and_a_multiplexer_that_does_not_serve_are_refused() {
    namespaces::run(module_path!(), "a_taken_port_and_a_multiplexer_that_does_not_serve_are_refused", 60, || {
        let mut cluster = Cluster::new(3, 1, "", "");
        let node = &mut cluster.nodes[0];
        node.start();
        let config = fs::read_to_string(node.path("config")).unwrap();
        // The running agent has read its configuration, so the file is now that of the second agent.
        let refused = |config: &str, words: &[&str]| {
            fs::write(node.path("config"), config).unwrap();
            let output = node.asked(&["run"]);
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(words.iter().all(|word| said.contains(word)), "{said}");
        };
        // With a socket of its own and without a watchdog, only the port is taken.
        let another = format!("on_quorum_loss = 'notify'\n{}", config.replace("/s'\n", "/another'\n"));
        refused(&another, &["10.0.0.1:7946 is taken", "'ss -ulpn'"]);
        let of_mux = config.replace("/watchdog'", "/mux.sock'");
        refused(&of_mux, &["/mux.sock is not served", "'systemctl start watchdog-mux'"]);
        fs::create_dir(node.path("mux.active")).unwrap();
        refused(&of_mux, &["/mux.active is there", "'reboot'"]);
    });
}
