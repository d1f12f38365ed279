//! The agent against third-party parts: sushy-emulator with TLS and authentication, and the schemas with which
//! fence-agents and pcs check metadata. `tests/fence_real/setup` fetches them. Without them these tests fail, and name
//! that command.

#![allow(clippy::unwrap_used, reason = "what fails here ends the test")]

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::bmc::agent::{Call, Output};
use crate::bmc::forget_logins;
use tandem::adapters::redfish::flag::Flag;
use tandem::fence::examine;
use tandem::os::clock::Deadline;

/// Returns the directory in which `tests/fence_real/setup` has installed the emulator.
fn parts() -> PathBuf {
    let chosen = std::env::var_os("TANDEM_FENCE_DIR").map(PathBuf::from);
    let parts = chosen.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target/fence"));
    let emulator = parts.join("venv/bin/sushy-emulator");
    assert!(emulator.is_file(), "{} is missing: run tests/fence_real/setup first", emulator.display());
    parts
}

#[expect(clippy::disallowed_methods, reason = "a test starts the programs that it compares with")]
fn program(path: impl AsRef<Path>) -> Command {
    Command::new(path.as_ref())
}

const FIRST: &str = "27946b59-9e44-4fa7-8e91-f3527a1ef094";
const SECOND: &str = "6a9f2c1e-0b5d-4c7e-9f1a-2d3e4f5a6b7c";

/// A sushy emulator that runs with a state of its own. It ends when this is dropped.
struct Emulator {
    child: Child,
    port: u16,
    ca_file: PathBuf,
    _directory: tempfile::TempDir,
}

impl Emulator {
    fn start(systems: &[(&str, &str)]) -> Self {
        let parts = parts();
        let directory = tempfile::tempdir().unwrap();
        // The port is free now, and no other program on this loopback is likely to take it within the second.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let hash = program(parts.join("venv/bin/python"))
            .args([
                "-c",
                "import bcrypt;print(bcrypt.hashpw(b'secret',bcrypt.gensalt(rounds=4,prefix=b'2b')).decode())",
            ])
            .output()
            .unwrap();
        let hash = String::from_utf8(hash.stdout).unwrap();
        let users = directory.path().join("htpasswd");
        std::fs::write(&users, format!("admin:{}\n", hash.trim())).unwrap();
        let systems: Vec<String> = systems
            .iter()
            .map(|(uuid, name)| {
                format!("{{'uuid': '{uuid}', 'name': '{name}', 'power_state': 'On', 'external_notifier': False, 'nics': []}}")
            })
            .collect();
        let config = directory.path().join("emulator.conf");
        let (state, certificates) = (directory.path().join("state"), parts.display());
        std::fs::create_dir(&state).unwrap();
        std::fs::write(
            &config,
            format!(
                "SUSHY_EMULATOR_LISTEN_IP = '127.0.0.1'\nSUSHY_EMULATOR_LISTEN_PORT = {port}\n\
                 SUSHY_EMULATOR_SSL_CERT = '{certificates}/cert.pem'\nSUSHY_EMULATOR_SSL_KEY = '{certificates}/key.pem'\n\
                 SUSHY_EMULATOR_AUTH_FILE = '{}'\nSUSHY_EMULATOR_STATE_DIR = '{}'\nSUSHY_EMULATOR_FAKE_DRIVER = True\n\
                 SUSHY_EMULATOR_FAKE_SYSTEMS = [{}]\n",
                users.display(),
                state.display(),
                systems.join(", ")
            ),
        )
        .unwrap();
        let child = program(parts.join("venv/bin/sushy-emulator"))
            .args(["--fake", "--config"])
            .arg(&config)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let emulator = Self { child, port, ca_file: parts.join("cert.pem"), _directory: directory };
        emulator.await_start();
        emulator
    }

    fn await_start(&self) {
        let patience = Deadline::after(Duration::from_secs(30));
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(!patience.has_passed(), "the emulator does not listen");
            patience.sleep(Duration::from_millis(100));
        }
    }

    fn call(&self, action: &str) -> Call {
        Call::bare(action)
            .set("ip", "127.0.0.1")
            .set("ipport", &self.port.to_string())
            .set("username", "admin")
            .set("password", "secret")
            .set("ssl_ca_file", self.ca_file.to_str().unwrap())
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        forget_logins(self.port);
    }
}

fn is_off(output: &Output) {
    assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (2, "Status: OFF\n", ""), "{output:?}");
}

#[test]
fn every_action_of_the_agent_works_with_the_emulator() {
    let emulator = Emulator::start(&[(FIRST, "node1")]);
    let run = |action: &str| emulator.call(action).run();
    run("validate-all").succeeds("");
    run("status").succeeds("Status: ON");
    run("monitor").succeeds("");
    run("list").succeeds(&format!("{FIRST},node1"));
    run("list-status").succeeds(&format!("{FIRST},node1,ON"));
    run("on").succeeds("Success: Already ON");
    run("off").succeeds("Success: Powered OFF");
    is_off(&run("status"));
    run("monitor").succeeds("");
    run("list-status").succeeds(&format!("{FIRST},node1,OFF"));
    run("off").succeeds("Success: Already OFF");
    run("on").succeeds("Success: Powered ON");
    emulator.call("reboot").under_fencer().run().succeeds("Success: Rebooted");
    run("status").succeeds("Status: ON");
    // The emulator supports no interrupt.
    assert_eq!(run("diag").code, 1);
}

#[test]
fn wrong_logins_and_untrusted_certificates_fail() {
    let emulator = Emulator::start(&[(FIRST, "node1")]);
    let status = emulator.call("status");
    status.clone().set("password", "wrong").run().fails(&["unable to log in"]);
    status.clone().set("username", "nobody").run().fails(&["unable to log in"]);
    for off in ["0", "no"] {
        status
            .clone()
            .without("ssl_ca_file")
            .set("ssl_insecure", off)
            .run()
            .fails(&["not signed by a trusted authority"]);
    }
    status.clone().without("ssl_ca_file").set("ssl_insecure", "1").run().succeeds("Status: ON");
    status.clone().set("ip", "localhost").run().succeeds("Status: ON");
    status.clone().set("systems_uri", &format!("redfish/v1/Systems/{FIRST}")).run().succeeds("Status: ON");
    status.clone().set("systems_uri", "/redfish/v1/Systems/other").run().fails(&["404"]);
    status.clone().set("system_uuid", FIRST).run().succeeds("Status: ON");
    status.set("system_uuid", SECOND).run().fails(&["another machine's"]);
}

#[test]
fn of_two_systems_only_one_that_is_named_is_fenced() {
    let emulator = Emulator::start(&[(FIRST, "node1"), (SECOND, "node2")]);
    for action in ["status", "monitor", "off", "reboot"] {
        emulator.call(action).run().fails(&["2 systems", FIRST, SECOND]);
    }
    // The fencer sends it so: the node's name equals the name of a system.
    let off = emulator.call("off").set("nodename", "node2").set("port", "node2").run();
    off.succeeds("Success: Powered OFF");
    is_off(&emulator.call("status").set("plug", SECOND).run());
    emulator.call("status").set("plug", FIRST).run().succeeds("Status: ON");
}

/// Asserts that the emulator offers no flag for a fence race, because it has no SessionService. With such a BMC the fence devices keep
/// their delays.
#[test]
fn the_emulator_offers_no_flag() {
    let emulator = Emulator::start(&[(FIRST, "node1")]);
    let options = emulator.call("monitor").input();
    let examined = examine::device_within(Duration::from_secs(10), true, &options, Some("node1"), None);
    assert_eq!(examined.note.failure, None);
    assert!(matches!(examined.flag, Some(Flag::None(_))), "{examined:?}");
}

fn validates(schema: &Path) {
    assert!(schema.is_file(), "{} is missing: run tests/fence_real/setup first", schema.display());
    let metadata = Path::new(env!("CARGO_MANIFEST_DIR")).join("metadata/fence_redfish_rs.xml");
    let output =
        program("/usr/bin/xmllint").arg("--noout").arg("--relaxng").arg(schema).arg(metadata).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn metadata_validates_as_fence_agents_and_pcs_check_it() {
    validates(&parts().join("agents/usr/share/cluster/relaxng/metadata.rng"));
    validates(Path::new("/usr/share/pcs/data/ocf-1.0.rng"));
}

#[test]
fn the_original_declares_nothing_that_we_do_not() {
    let original = program("/usr/bin/python3")
        .arg(parts().join("agents/usr/sbin/fence_redfish"))
        .args(["-o", "metadata"])
        .env("PYTHONPATH", parts().join("agents/usr/share/fence"))
        .output()
        .unwrap();
    let original = String::from_utf8(original.stdout).unwrap();
    let ours = Call::bare("metadata").run().stdout;
    let (original, ours) = (roxmltree::Document::parse(&original).unwrap(), roxmltree::Document::parse(&ours).unwrap());
    let names = |document: &roxmltree::Document<'_>, tag: &str| -> Vec<String> {
        let nodes = document.descendants().filter(|node| node.has_tag_name(tag));
        nodes.map(|node| node.attribute("name").unwrap().to_owned()).collect()
    };
    for tag in ["parameter", "action"] {
        let known = names(&ours, tag);
        let theirs = names(&original, tag);
        assert!(theirs.len() > 8, "{theirs:?}");
        // Options that only print text must not be parameters of a fence device, because the agent would succeed
        // without fencing.
        for name in theirs.iter().filter(|name| tag != "parameter" || !["help", "version"].contains(&name.as_str())) {
            assert!(known.contains(name), "{tag} {name}");
        }
    }
}
