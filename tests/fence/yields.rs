//! The agent of a node without a vote waits before it switches the other node off, as an attribute of its node
//! requests. A program that replaces Pacemaker's one answers for the attribute manager. Needs root.

#![allow(clippy::unwrap_used, reason = "what fails here ends the test")]

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::bmc::agent::Call;
use crate::bmc::{Server, World};
use crate::executable;
use crate::namespaces::{self, program};
use crate::race;

const ATTRD: &str = "/usr/sbin/attrd_updater";

/// Puts a fake `attrd_updater` in the place of Pacemaker's, and returns its path. Every test writes the script that it runs.
fn attribute_manager(dir: &Path) -> PathBuf {
    let fake = dir.join("attrd_updater");
    executable::script(&fake, "exit 105");
    assert!(program("ip").args(["link", "set", "lo", "up"]).status().unwrap().success());
    assert!(program("mount").arg("--bind").arg(&fake).arg(ATTRD).status().unwrap().success(), "needs pacemaker");
    fake
}

/// Returns a script that answers the agent's question with `value`.
fn says(value: &str) -> String {
    format!("[ \"$*\" = '--query --name etcd_fence_wait' ] || exit 1\necho 'name=\"x\" host=\"n\" value=\"{value}\"'")
}

#[test]
fn a_learner_waits_and_then_fences() {
    namespaces::run(module_path!(), "a_learner_waits_and_then_fences", 120, || {
        let dir = tempfile::tempdir().unwrap();
        let fake = attribute_manager(dir.path());
        let server = Server::with_world(World::one_system());
        let off = |call: Call| {
            server.world().system().power = json!("On");
            let output = call.under_fencer().set("verbose", "1").run();
            assert_eq!((output.code, output.stdout.trim()), (0, "Success: Powered OFF"), "{output:?}");
            output
        };
        let call = || Call::new(&server, "off");

        executable::script(&fake, &says("5"));
        let waited = off(call());
        waited.within(5.0, 10.0);
        assert!(waited.stderr.contains("this node holds no vote (etcd_fence_wait=5) and waits"), "{waited:?}");
        off(call().set("wait_attribute", "none")).within(0.0, 4.0);
        // The other attribute does not exist.
        off(call().set("wait_attribute", "yields")).within(0.0, 4.0);
        // The wait leaves enough of the action's time for the reset.
        off(call().set("action_timeout", "22")).within(1.5, 5.0);

        // A target that is off is no live voter.
        server.world().system().power = json!("Off");
        executable::script(&fake, &says("30"));
        call().under_fencer().run().succeeds("Success: Already OFF").within(0.0, 15.0);
        // A call by an operator does not wait, either.
        server.world().system().power = json!("On");
        call().run().succeeds("Success: Powered OFF").within(0.0, 4.0);

        executable::script(&fake, "exec sleep 60");
        off(call()).within(0.9, 4.5);
    });
}

/// Asserts that a node without a vote gives up its preference in the fence race, and waits twice as long before it marks again. A
/// preferred node that has a vote keeps its marks while it sees those of the other node.
#[test]
fn a_learner_that_is_preferred_withdraws_at_the_other_nodes_mark() {
    namespaces::run(module_path!(), "a_learner_that_is_preferred_withdraws_at_the_other_nodes_mark", 120, || {
        let dir = tempfile::tempdir().unwrap();
        let fake = attribute_manager(dir.path());
        // The wait of a second is over before the race begins. The doubled delay is six seconds.
        for (script, withdraws, least) in [("exit 105".to_owned(), false, 2.0), (says("1"), true, 7.0)] {
            executable::script(&fake, &script);
            let bmcs = [race::shown(), race::shown()];
            bmcs[0].world().add_session("admin", Some(race::FOREIGN));
            let output = race::call(&bmcs, 0, "off").under_fencer().run();
            assert_eq!((output.code, output.stdout.trim()), (0, "Success: Powered OFF"), "{output:?}");
            assert_eq!(output.stderr.contains("race: this node withdraws"), withdraws, "{output:?}");
            output.within(least, 30.0);
        }
    });
}
