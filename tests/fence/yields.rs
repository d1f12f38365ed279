//! The agent of a node without a vote waits before it switches the other node off, as an attribute of its node
//! requests. A program that replaces Pacemaker's one answers for the attribute manager. Needs root.

#![allow(clippy::unwrap_used, reason = "what fails here ends the test")]

use std::path::Path;

use serde_json::json;

use crate::bmc::agent::Call;
use crate::bmc::{Server, World};
use crate::executable;
use crate::namespaces::{self, program};

const ATTRD: &str = "/usr/sbin/attrd_updater";

/// Installs a fake `attrd_updater` in `dir` that runs `script`.
fn attribute_manager(dir: &Path, script: &str) {
    executable::script(&dir.join("attrd_updater"), script);
}

#[test]
fn a_learner_waits_and_then_fences() {
    namespaces::run(module_path!(), "a_learner_waits_and_then_fences", 120, || {
        let dir = tempfile::tempdir().unwrap();
        attribute_manager(dir.path(), "exit 105");
        assert!(program("ip").args(["link", "set", "lo", "up"]).status().unwrap().success());
        let fake = dir.path().join("attrd_updater");
        assert!(program("mount").arg("--bind").arg(&fake).arg(ATTRD).status().unwrap().success(), "needs pacemaker");
        let server = Server::with_world(World::one_system());
        let off = |call: Call| {
            server.world().system().power = json!("On");
            let output = call.under_fencer().set("verbose", "1").run();
            assert_eq!((output.code, output.stdout.trim()), (0, "Success: Powered OFF"), "{output:?}");
            output
        };
        let call = || Call::new(&server, "off");
        let says = |value: &str| {
            format!(
                "[ \"$*\" = '--query --name etcd_fence_wait' ] || exit 1\necho 'name=\"x\" host=\"n\" value=\"{value}\"'"
            )
        };

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
