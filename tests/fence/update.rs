//! `tandem fencing update`: a BMC's password, user and address change in any order of events, with any interruption,
//! and the node can be fenced at each moment.

#![allow(clippy::unwrap_used, reason = "what fails here ends the test")]

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tandem::fence::config::{Action, Config, Environment};
use tandem::fence::password_file::{self, PasswordFile};
use tandem::fence::renewal::{self, Asks, Settled};
use tandem::fence::{self, input};
use tandem::os::clock;
use tandem::os::secret::Secret;

use crate::bmc::agent::{Call, Output, finish};
use crate::bmc::model::error_body;
use crate::bmc::{Fault, Misbehaviour, Server, System, World, at_once};
use crate::executable::script;
use crate::secrets_api::{self, fencing_secret};

const OLD: &str = "s3cret-pass";
const NEW: &str = "n3w \"s3cret\" <&>";
const UUID: &str = "00000000-0000-4000-8000-000000000031";

/// The password file of one node, with the options of its fence device.
struct Copy {
    path: PathBuf,
    options: Vec<u8>,
}

impl Copy {
    fn new(server: &Server, directory: &Path, name: &str) -> Self {
        let path = directory.join(name);
        std::fs::write(&path, format!("{OLD}\n")).unwrap();
        let call = Call::new(server, "").without("action").without("password");
        let options = call.set("password_file", path.to_str().unwrap()).set("system_uuid", UUID).input();
        Self { path, options }
    }

    fn stage(&self) {
        let mut file = PasswordFile::hold(&self.path).unwrap();
        let valid = renewal::valid_line(&self.options, &file);
        let staged = password_file::staged(&file.lines, valid, &Secret::new(NEW)).unwrap();
        file.replace(staged).unwrap();
    }

    fn update(&self) -> Settled {
        renewal::settle(&self.options, None, None, &self.path, Asks::Now).unwrap()
    }

    fn act(&self, action: &str) -> Result<String, String> {
        let action = Action::parse(Some(action)).unwrap();
        let config = Config::read(action, &input::from_lines(&self.options), Environment::default()).unwrap();
        fence::run(&config, None, |_| {}).map(|ending| ending.text).map_err(|error| error.to_string())
    }

    fn holds(&self, password: &str) -> bool {
        std::fs::read_to_string(&self.path).unwrap().lines().any(|line| line == password)
    }

    fn lines(&self) -> usize {
        std::fs::read_to_string(&self.path).unwrap().lines().count()
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    StageHere,
    StageThere,
    Change,
    UpdateHere,
    UpdateThere,
}

/// Returns every order of the events `left`.
fn orders(left: &[Event]) -> Vec<Vec<Event>> {
    if left.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (at, first) in left.iter().enumerate() {
        let rest: Vec<Event> = left.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, one)| *one).collect();
        all.extend(orders(&rest).into_iter().map(|order| [&[*first], order.as_slice()].concat()));
    }
    all
}

/// Asserts for every order of staging, change and update that each node can fence after each event. No account may be locked.
/// There is one exception. A node without a staged password fails when the BMC's password changes, until it has the new one.
#[test]
fn in_every_order_of_events_each_node_fences_after_each_of_them() {
    use Event::{Change, StageHere, StageThere, UpdateHere, UpdateThere};
    let all = orders(&[StageHere, StageThere, Change, UpdateHere, UpdateThere]);
    assert_eq!(all.len(), 120);
    at_once(all, |order| {
        let server = Server::with_world(World::that_locks());
        let directory = tempfile::tempdir().unwrap();
        let copies = ["here", "there"].map(|name| Copy::new(&server, directory.path(), name));
        let place = |event| order.iter().position(|one| *one == event).unwrap();
        let is_staged_in_time = place(StageHere) < place(Change) && place(StageThere) < place(Change);
        for event in &order {
            match event {
                StageHere => copies[0].stage(),
                StageThere => copies[1].stage(),
                Change => server.world().password = NEW.as_bytes().to_vec(),
                // A copy without a valid line would only be refused once more.
                UpdateHere if copies[0].holds(&valid(&server)) => drop(copies[0].update()),
                UpdateThere if copies[1].holds(&valid(&server)) => drop(copies[1].update()),
                UpdateHere | UpdateThere => {}
            }
            for copy in &copies {
                let actions: &[&str] = if is_staged_in_time { &["off", "on", "monitor"] } else { &["monitor"] };
                let can = copy.holds(&valid(&server));
                assert!(can || !is_staged_in_time, "{order:?}");
                for action in actions.iter().filter(|_| can) {
                    copy.act(action).unwrap_or_else(|why| panic!("{order:?}: {action} after {event:?}: {why}"));
                }
                assert!(!server.world().is_locked(), "{order:?} after {event:?}");
            }
        }
        for copy in &copies {
            assert!(copy.holds(NEW), "{order:?}");
            copy.update();
            assert!(copy.lines() == 1 && copy.holds(NEW), "{order:?}");
        }
    });
}

fn valid(server: &Server) -> String {
    String::from_utf8(server.world().password.clone()).unwrap()
}

#[test]
fn a_collector_drops_what_is_void_without_a_login_of_its_own_where_a_monitor_saw_it() {
    let server = Server::with_world(World::that_locks());
    let directory = tempfile::tempdir().unwrap();
    let copy = Copy::new(&server, directory.path(), "here");
    let look = || renewal::settle(&copy.options, None, None, &copy.path, Asks::NowAndThen).unwrap();
    assert_eq!(look(), Settled::Single);
    copy.stage();
    assert_eq!(look(), Settled::FirstIsValid);
    let asked = server.requests().len();
    assert_eq!((look(), server.requests().len()), (Settled::NotDue, asked), "a moment later it asks nobody");
    server.world().password = NEW.as_bytes().to_vec();
    copy.act("monitor").unwrap();
    let asked = server.requests().len();
    assert_eq!((look(), server.requests().len(), copy.lines()), (Settled::Dropped, asked, 1));
    assert_eq!(std::fs::metadata(&copy.path).unwrap().permissions().mode() & 0o777, 0o600);
}

/// Asserts that the collector does not lock the account if the BMC refuses both passwords. It does not try again before an
/// operator could have corrected them.
#[test]
fn a_collector_locks_no_account() {
    let server = Server::with_world(World::that_locks());
    let directory = tempfile::tempdir().unwrap();
    let copy = Copy::new(&server, directory.path(), "here");
    copy.stage();
    server.world().password = b"a third one".to_vec();
    let look = || renewal::settle(&copy.options, None, None, &copy.path, Asks::NowAndThen).unwrap();
    assert!(matches!(look(), Settled::Unknown(why) if why.contains("neither line")));
    for _ in 0..5 {
        assert_eq!(look(), Settled::NotDue);
    }
    assert!(!server.world().is_locked() && copy.lines() == 2);
}

/// A node with a CIB and a password file of its own. In its CIB, the emulated BMC is that of node2.
struct Node {
    directory: tempfile::TempDir,
    file: PathBuf,
}

impl Node {
    /// Returns a node that has the password in a password file, or in its CIB if `in_the_cib` is true.
    fn new(server: &Server, in_the_cib: bool) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("password");
        std::fs::write(&file, format!("{OLD}\n")).unwrap();
        let node = Self { directory, file };
        let password =
            if in_the_cib { ("password", OLD.to_owned()) } else { ("password_file", node.file.display().to_string()) };
        let options = [
            ("ip", server.address.to_owned()),
            ("ipport", server.port.to_string()),
            ("username", "admin".to_owned()),
            ("ssl_ca_file", server.authority.file().display().to_string()),
            ("system_uuid", UUID.to_owned()),
            ("pcmk_host_list", "node2".to_owned()),
            password,
        ];
        let pair =
            |(name, value): &(&str, String)| format!("<nvpair id=\"f2-{name}\" name=\"{name}\" value=\"{value}\"/>");
        let pairs: String = options.iter().map(pair).collect();
        let here = nix::unistd::gethostname().unwrap().into_string().unwrap();
        let cib = format!(
            "<cib crm_feature_set=\"3.15.0\" validate-with=\"pacemaker-3.7\" epoch=\"5\" num_updates=\"0\" admin_epoch=\"0\">\
             <configuration><crm_config/><nodes><node id=\"1\" uname=\"{here}\"/><node id=\"2\" uname=\"node2\"/></nodes><resources>\
             <primitive id=\"fence-node2\" class=\"stonith\" type=\"fence_redfish_rs\"><instance_attributes id=\"f2\">{pairs}\
             </instance_attributes></primitive><primitive id=\"ipmi\" class=\"stonith\" type=\"fence_ipmilan\">\
             <instance_attributes id=\"ia\"><nvpair id=\"i1\" name=\"pcmk_host_list\" value=\"{here}\"/></instance_attributes></primitive>\
             </resources><constraints/></configuration><status/></cib>"
        );
        std::fs::write(node.cib(), cib).unwrap();
        node
    }

    /// Adds an etcd resource to the node's CIB, with the kubeconfig of a stand-in for OpenShift's API. The Secret of node2
    /// there has the present address of the BMC and `password`.
    fn with_secret(self, server: &Server, password: &str) -> Self {
        let kubeconfig = self.directory.path().join("kubeconfig");
        let host = format!("{}:{}", server.address, server.port);
        secrets_api::start([fencing_secret("node2", &host, password)], &kubeconfig);
        let (here, kubeconfig) = (nix::unistd::gethostname().unwrap().into_string().unwrap(), kubeconfig.display());
        let etcd = format!(
            "<primitive id=\"etcd\" class=\"ocf\" provider=\"heartbeat\" type=\"podman-etcd\"><instance_attributes id=\"e\">\
             <nvpair id=\"e1\" name=\"node_ip_map\" value=\"{here}:192.0.2.1;node2:192.0.2.2\"/>\
             <nvpair id=\"e2\" name=\"kubeconfig\" value=\"{kubeconfig}\"/></instance_attributes></primitive></resources>"
        );
        std::fs::write(self.cib(), self.cib_text().replace("</resources>", &etcd)).unwrap();
        self
    }

    fn cib(&self) -> PathBuf {
        self.directory.path().join("cib.xml")
    }

    fn cib_text(&self) -> String {
        std::fs::read_to_string(self.cib()).unwrap()
    }

    fn start(&self, words: &[&str], password: &str) -> Child {
        #[expect(clippy::disallowed_methods, reason = "a test starts the program under test itself")]
        let mut child = Command::new(env!("CARGO_BIN_EXE_tandem"))
            .args(["fencing", "update"])
            .args(words)
            .env_clear()
            .env("PATH", format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", self.directory.path().display()))
            .env("CIB_file", self.cib())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(format!("{password}\n").as_bytes()).unwrap();
        child
    }

    fn update(&self, words: &[&str], password: &str) -> Output {
        let output = finish(self.start(&[words, &["--json"]].concat(), password));
        for secret in [OLD, NEW, "n3w"] {
            assert!(!format!("{output:?}").contains(secret), "{output:?}");
        }
        output
    }

    fn lines(&self) -> Vec<String> {
        std::fs::read_to_string(&self.file).unwrap().lines().map(str::to_owned).collect()
    }

    fn monitor(&self, server: &Server) -> Output {
        let call = Call::new(server, "monitor").without("password").set("system_uuid", UUID);
        call.set("password_file", self.file.to_str().unwrap()).run()
    }
}

/// Returns the value at `key` of a JSON report of `tandem fencing update`.
fn word<'a>(report: &'a serde_json::Value, key: &str) -> &'a serde_json::Value {
    &report[key]
}

fn report(output: &Output) -> serde_json::Value {
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
fn a_password_that_the_bmc_has_already_takes_the_place_of_the_old_one() {
    let server = Server::with_world(World { password: NEW.as_bytes().to_vec(), ..World::that_locks() });
    let node = Node::new(&server, false);
    let output = node.update(&["node2", "--password-stdin"], NEW);
    assert_eq!(output.code, 3, "the other node's copy is old: {output:?}");
    let said = report(&output);
    assert_eq!((word(&said, "lines"), word(&said, "old_on")), (&1.into(), &"node2".into()));
    assert!(said["next"].to_string().contains("type on node2: tandem fencing update node2"), "{said}");
    assert_eq!(node.lines(), [NEW]);
    node.monitor(&server).succeeds("");
}

#[test]
fn a_password_in_openshifts_secret_is_taken_over_if_the_bmc_accepts_it() {
    let server = Server::with_world(World { password: NEW.as_bytes().to_vec(), ..World::that_locks() });
    let node = Node::new(&server, false).with_secret(&server, NEW);
    let output = node.update(&["node2", "--from-secret"], "");
    assert_eq!(output.code, 3, "the other node's copy is old: {output:?}");
    assert_eq!((word(&report(&output), "secret"), node.lines()), (&true.into(), vec![NEW.to_owned()]));
    node.monitor(&server).succeeds("");
    let again = node.update(&["node2", "--from-secret"], "");
    assert!(again.code == 0 && again.stdout.contains("nothing was changed"), "{again:?}");
}

#[test]
fn a_password_in_openshifts_secret_that_the_bmc_refuses_changes_nothing() {
    let server = Server::with_world(World::that_locks());
    let node = Node::new(&server, false).with_secret(&server, NEW);
    let before = node.cib_text();
    let output = node.update(&["node2", "--from-secret"], "");
    assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{output:?}");
    assert!(output.stderr.contains("nothing was changed: unable to log in"), "{output:?}");
    assert_eq!((node.lines(), node.cib_text()), (vec![OLD.to_owned()], before));
    node.monitor(&server).succeeds("");
    assert!(!server.world().is_locked());
}

/// Asserts that `tandem fencing update` waits for a slow `cibadmin`. On a slow machine each query of the CIB takes
/// longer than the time limit of `tandem status`.
#[test]
fn a_slow_cib_is_waited_for() {
    let server = Server::with_world(World { password: NEW.as_bytes().to_vec(), ..World::that_locks() });
    let node = Node::new(&server, true);
    let slow = node.directory.path().join("cibadmin");
    script(&slow, "sleep 2\nexec /usr/sbin/cibadmin \"$@\"");
    let output = node.update(&["node2", "--password-stdin"], NEW);
    assert!(output.code == 0 && node.cib_text().contains("n3w"), "{output:?}");
}

#[test]
fn what_is_wrong_is_refused_in_a_sentence_and_changes_nothing() {
    let here = nix::unistd::gethostname().unwrap().into_string().unwrap();
    let mut strange = System::new("1");
    strange.uuid = "11111111-2222-3333-4444-555555555555".into();
    let (server, other) = (Server::with_world(World::that_locks()), Server::with_world(World::of(vec![strange])));
    let theirs = format!("{}:{}", other.address, other.port);
    let denied = error_body("Base.1.8.InsufficientPrivilege", "Not you.");
    let refusing =
        Server::with_world(World::that_locks().with(Fault::always("PATCH", "", Misbehaviour::Status(403, denied))));
    let rows: [(&Server, Vec<&str>, &str, &str); 9] = [
        (&server, vec!["node2", "--password-stdin"], "wrong", "nothing was changed: unable to log in"),
        (&server, vec!["node2", "--password-stdin"], "", "the new password is empty"),
        (&server, vec!["node2", "--ip", &theirs, "--password-stdin"], OLD, "nothing was changed"),
        (&server, vec!["node3", "--password-stdin"], OLD, "no node is called 'node3'"),
        (&server, vec![&here, "--password-stdin"], OLD, "ipmi is of"),
        (&server, vec!["node2", "--device", "x", "--password-stdin"], OLD, "no fence device called 'x'"),
        (&server, vec!["node2", "--username", "a\nb"], "", "--username has no value"),
        (&server, vec!["node2", "--password-file", "/no/such/file"], "", "cannot be read"),
        (&refusing, vec!["node2", "--change-at-bmc", "--password-stdin"], NEW, "Not you"),
    ];
    for (server, words, password, sentence) in rows {
        let node = Node::new(server, false);
        let before = node.cib_text();
        let output = node.update(&words, password);
        assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{words:?}: {output:?}");
        assert!(output.stderr.contains(sentence) && output.stderr.lines().count() == 1, "{words:?}: {output:?}");
        assert_eq!((node.lines()[0].as_str(), node.cib_text()), (OLD, before), "{words:?}");
        node.monitor(server).succeeds("");
    }
    assert!(!server.world().is_locked());
}

#[test]
fn a_password_is_staged_changed_at_the_bmc_and_the_old_one_dropped() {
    let server = Server::with_world(World::that_locks());
    let node = Node::new(&server, false);
    assert_eq!(node.update(&["node2", "--stage", "--password-stdin"], NEW).code, 3);
    assert_eq!(node.lines(), [OLD, NEW]);
    let still = node.update(&["node2"], "");
    assert!(still.stdout.contains("accepts the old password still") && node.lines().len() == 2, "{still:?}");
    server.world().password = NEW.as_bytes().to_vec();
    let settled = node.update(&["node2"], "");
    assert!(settled.code == 3 && node.lines() == [NEW], "{settled:?}");
    let third = node.update(&["node2", "--change-at-bmc", "--password-stdin"], OLD);
    assert!(third.code == 3 && third.stdout.contains("the BMC of node2 has the new password"), "{third:?}");
    assert_eq!((node.lines(), valid(&server)), (vec![OLD.to_owned()], OLD.to_owned()));
    assert!(!server.world().is_locked());
}

#[test]
fn what_is_in_the_cib_changes_in_one_write_and_no_process_shows_it() {
    let server = Server::with_world(World { password: NEW.as_bytes().to_vec(), ..World::that_locks() });
    server.world().user = "fencer".to_owned();
    let node = Node::new(&server, true);
    let child = node.start(&["node2", "--username", "fencer", "--password-stdin"], NEW);
    let shown = watch_processes(&child);
    let output = finish(child);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    assert!(!shown.contains("n3w"), "{shown}");
    let cib = node.cib_text();
    assert!(cib.contains("value=\"fencer\"") && cib.contains("n3w &quot;s3cret&quot;") && !cib.contains(OLD), "{cib}");
    assert!(cib.contains("epoch=\"6\""), "one write: {cib}");
    let refused = node.update(&["node2", "--stage", "--password-stdin"], OLD);
    assert!(refused.code == 1 && refused.stderr.contains("password in the CIB"), "{refused:?}");
}

/// Returns the arguments of all processes that run before `child` has ended, so that a test can search them for a password.
fn watch_processes(child: &Child) -> String {
    let mut seen = String::new();
    let end = clock::Deadline::after(Duration::from_secs(60));
    let own = format!("/proc/{}/status", child.id());
    while !end.has_passed() && std::fs::read_to_string(&own).is_ok_and(|text| !text.contains("State:\tZ")) {
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            seen.push_str(&std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default());
        }
        end.sleep(Duration::from_millis(2));
    }
    seen
}

/// Asserts that a kill of `tandem fencing update --change-at-bmc` at any moment leaves a password in the file that the BMC
/// accepts. The same command then completes the change.
#[test]
fn killed_at_any_moment_the_node_can_be_fenced_and_the_command_be_typed_again() {
    let moments: Vec<u64> = (0..12).map(|at| 40 + at * 70).collect();
    at_once(moments, |millis| {
        let server = Server::with_world(World::that_locks());
        let node = Node::new(&server, false);
        let mut child = node.start(&["node2", "--change-at-bmc", "--password-stdin"], NEW);
        clock::sleep(Duration::from_millis(millis));
        let _ = child.kill();
        child.wait().unwrap();
        node.monitor(&server).succeeds("");
        assert!(node.lines().contains(&valid(&server)), "after {millis} ms");
        let again = node.update(&["node2", "--change-at-bmc", "--password-stdin"], NEW);
        assert!(again.code == 3 && node.lines() == [NEW] && valid(&server) == NEW, "after {millis} ms: {again:?}");
        node.monitor(&server).succeeds("");
        assert!(!server.world().is_locked());
    });
}
