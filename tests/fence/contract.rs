//! The contract of a fence agent with Pacemaker, pcs and operators: input, output, metadata, exit codes.

#![allow(clippy::unwrap_used, reason = "what fails here ends the test")]

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::bmc::agent::{Call, command, finish};
use crate::bmc::{Fault, Misbehaviour, Server, World};

#[test]
fn options_in_any_order_and_writing_are_the_same() {
    let server = Server::start();
    let (port, ca) = (server.port, server.authority.file());
    let ca = ca.display();
    for input in [
        format!("action=status\nip=127.0.0.1\nipport={port}\nusername=admin\npassword=s3cret-pass\nssl_ca_file={ca}\n"),
        format!("ssl-ca-file={ca}\npasswd=s3cret-pass\nlogin=admin\nipport={port}\nipaddr=127.0.0.1\naction=STATUS"),
        format!(
            "# comment\r\n\r\nssl_ca_file={ca}\r\npassword=s3cret-pass\r\nusername=admin\r\nip=127.0.0.1:{port}\r\naction=status\r\n"
        ),
        format!(
            "nodename=node1\nport=node1\naction=off\naction=status\nip=\"127.0.0.1\"\nipport={port}\nusername=admin\npassword=wrong\npassword=s3cret-pass\nssl_ca_file={ca}\ncrm_feature_set=3\nstonith-timeout=60\nunknown=1\n"
        ),
    ] {
        Call::default().with_input(input.as_bytes()).succeeds("Status: ON");
    }
}

#[test]
fn the_command_line_is_the_same_as_standard_input() {
    let server = Server::start();
    Call::new(&server, "status").run_as_arguments().succeeds("Status: ON");
    let port = server.port.to_string();
    let call = Call::default();
    let plain = ["-o", "status", "-a", "127.0.0.1", "-u", &port, "-l", "admin", "-p", "s3cret-pass"];
    let with = |more: &[&str]| call.with_arguments(&[&plain[..], more].concat());
    with(&["--ssl-insecure"]).succeeds("Status: ON");
    with(&["--ssl-insecure", "-n", "1"]).succeeds("Status: ON");
    with(&["--ssl-insecure", "--systems-uri", "/redfish/v1/Systems/1"]).succeeds("Status: ON");
    with(&["--ssl-insecure", "--systems-uri=/redfish/v1/Systems/1", "-z"]).succeeds("Status: ON");
    with(&["--ssl-insecure=0"]).fails(&["not signed by a trusted authority"]);
    with(&[]).fails(&["not signed by a trusted authority"]);
    with(&["--bogus"]).fails(&["--bogus"]);
    // The two-node OpenShift operator calls it so, and takes any output on stderr for a failure.
    let operator = [
        "--username",
        "admin",
        "--password",
        "s3cret-pass",
        "--ip",
        "127.0.0.1",
        "--ipport",
        &port,
        "--systems-uri",
        "/redfish/v1/Systems/1",
        "--action",
        "status",
        "--ssl-insecure",
    ];
    call.with_arguments(&operator).succeeds("Status: ON");
}

#[test]
fn nothing_is_done_without_a_clear_action() {
    let server = Server::start();
    let whole = Call::new(&server, "x").without("action");
    for (name, value) in
        [("option", "status"), ("action ", "status"), ("action", ""), ("action", "bogus"), ("Action", "off")]
    {
        whole.clone().set(name, value).run().fails(&["unsupported action"]).within(0.0, 1.0);
    }
    whole.run().fails(&["unsupported action", "none was given"]);
    Call::default().with_input(b"").fails(&["unsupported action"]);
    assert_eq!((server.requests().len(), server.handshakes()), (0, 0), "nobody was asked");
}

#[test]
fn switches_that_are_off_are_off() {
    let server = Server::start();
    Call::new(&server, "status").set("quiet", "0").set("password", "wrong").run().fails(&["unable to log in"]);
    let quiet = Call::new(&server, "status").set("quiet", "1").set("password", "wrong").run();
    assert_eq!((quiet.code, quiet.stderr.as_str()), (1, ""));
    Call::new(&server, "status").set("port_as_ip", "0").set("plug", "1").run().succeeds("Status: ON");
    let by_plug = Call::new(&server, "status").set("ip", "192.0.2.1").set("port_as_ip", "1").set("plug", "127.0.0.1");
    by_plug.run().succeeds("Status: ON");
    Call::new(&server, "status").set("verbose", "0").run().succeeds("Status: ON");
    let verbose = Call::new(&server, "status").set("verbose", "1").run();
    assert!(verbose.code == 0 && verbose.stderr.contains("GET https://"), "{verbose:?}");
    let contradiction = Call::new(&server, "status").set("verbose", "1").set("verbose_level", "0").run();
    contradiction.succeeds("Status: ON");
}

#[test]
fn every_fault_in_the_options_is_named_at_once() {
    let output = Call::bare("off").set("delay", "3s").set("ssl_insecure", "maybe").set("method", "wild").run();
    output.fails(&["ip is missing", "username is missing", "password is missing", "delay", "ssl_insecure", "method"]);
    for (name, value) in [
        ("ip", "https://bmc"),
        ("ip", "a b"),
        ("ipport", "0"),
        ("ipport", "x"),
        ("power_timeout", "-1"),
        ("login_timeout", "1.5"),
        ("retry_on", "99999999999"),
        ("system_uuid", "x"),
        ("ssl_fingerprint", "12"),
        ("ssl_ca_file", "/nonexistent"),
        ("disable_timeout", "perhaps"),
        ("auth", "digest"),
        ("action_timeout", "0"),
    ] {
        let server = Server::start();
        Call::new(&server, "off").set(name, value).run().fails(&[name]).within(0.0, 1.0);
        Call::new(&server, "validate-all").set(name, value).run().fails(&[name]);
        assert_eq!(server.handshakes(), 0);
    }
}

#[test]
fn validate_all_needs_no_network() {
    let whole = Call::bare("validate-all")
        .set("ip", "192.0.2.1")
        .set("username", "u")
        .set("password", "p")
        .set("nodename", "node1")
        .set("port", "node1");
    whole.run().succeeds("").within(0.0, 1.0);
    whole.clone().without("password").run().fails(&["password is missing"]);
    whole.clone().without("password").set("password_script", "/nonexistent").run().fails(&["/nonexistent"]);
    whole.without("password").set("password_script", "/bin/true").run().succeeds("");
}

#[test]
fn metadata_is_what_the_package_ships() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/metadata/fence_redfish_rs.xml");
    let shipped = std::fs::read_to_string(path).unwrap();
    for output in [
        Call::bare("metadata").run(),
        Call::bare("meta-data").run(),
        Call::default().with_arguments(&["-o", "metadata"]),
        Call::default().with_arguments(&["--action", "meta-data"]),
    ] {
        output.within(0.0, 1.0);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""));
        assert!(
            output.stdout == shipped,
            "metadata/fence_redfish_rs.xml is not what the agent says; write it with: fence_redfish_rs -o metadata > {path}"
        );
    }
}

#[test]
fn metadata_says_what_the_fencer_reads() {
    let output = Call::bare("metadata").run();
    let document = roxmltree::Document::parse(&output.stdout).unwrap();
    let named = |tag: &str, name: &str| {
        document.descendants().find(|node| node.has_tag_name(tag) && node.attribute("name") == Some(name))
    };
    // The fencer passes the node's name by either of these.
    assert!(named("parameter", "plug").is_some() && named("parameter", "port").is_some());
    for action in ["on", "off", "reboot", "status", "list", "monitor", "metadata", "validate-all"] {
        assert!(named("action", action).is_some(), "{action}");
    }
    // A power agent must not be run when a node joins.
    assert_eq!(named("action", "on").unwrap().attribute("automatic"), Some("0"));
    assert!(!output.stdout.contains("on_target"));
    assert_eq!(document.root_element().attribute("name"), Some("fence_redfish_rs"));
}

#[test]
fn help_version_and_man_page() {
    for option in ["-h", "--help"] {
        let output = Call::default().with_arguments(&[option]);
        assert!(output.code == 0 && output.stdout.contains("--ssl-insecure") && output.stderr.is_empty());
    }
    let version = Call::default().with_arguments(&["--version"]);
    version.succeeds(concat!("fence_redfish_rs ", env!("CARGO_PKG_VERSION")));
    Call::default().with_input(b"version=1\n").succeeds(concat!("fence_redfish_rs ", env!("CARGO_PKG_VERSION")));
    let output = Call::default().with_input(b"help=1\n");
    assert!(output.code == 0 && output.stdout.contains("--ssl-insecure"), "{output:?}");
    // With both options, the operator wants to read.
    Call::default()
        .with_arguments(&["-o", "off", "--version"])
        .succeeds(concat!("fence_redfish_rs ", env!("CARGO_PKG_VERSION")));
    let page = Call::bare("manpage").run();
    assert!(page.code == 0 && page.stdout.starts_with(".TH FENCE_REDFISH_RS 8 "), "{page:?}");
}

#[test]
fn by_any_name_it_is_the_same() {
    let expected = Call::bare("metadata").run();
    #[expect(clippy::disallowed_methods, reason = "a test starts the program under test itself")]
    let mut direct = std::process::Command::new(env!("CARGO_BIN_EXE_tandem"));
    let child = direct
        .args(["fence_redfish_rs", "-o", "metadata"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    assert_eq!(finish(child).stdout, expected.stdout);
}

#[test]
fn standard_input_that_never_ends_is_no_reason_to_wait_for_ever() {
    let mut child = command().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"action=off\n").unwrap();
    let output = finish(child);
    drop(stdin);
    output.fails(&["did not end"]).within(9.0, 16.0);
}

#[test]
fn too_much_input_is_refused() {
    let output = Call::default().with_input(&b"x=y\n".repeat(100_000));
    output.fails(&["longer than 256 KiB"]);
    let output = Call::default().with_input(&b"=\n".repeat(100_000));
    output.fails(&["unsupported action"]);
    assert!(output.peak < 32 * 1024, "{} KiB", output.peak);
}

#[test]
fn output_that_nobody_takes_is_no_panic() {
    let full = || Stdio::from(OpenOptions::new().write(true).open("/dev/full").unwrap());
    let mut child = command().args(["-o", "metadata"]).stdout(full()).stderr(Stdio::piped()).spawn().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let server = Server::start();
    // A completed action stays complete, even if its output cannot be written.
    for (action, code) in [("status", 1), ("off", 0)] {
        let call = Call::new(&server, action);
        let mut child = command().stdin(Stdio::piped()).stdout(full()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(&call.input()).unwrap();
        drop(stdin);
        assert_eq!(child.wait().unwrap().code(), Some(code), "{action}");
    }
}

#[test]
fn under_the_fencer_an_action_ends_before_the_fencer_ends_it() {
    let server = Server::with_world(World::one_system().with(Fault::always("GET", "", Misbehaviour::Silence)));
    Call::new(&server, "monitor").under_fencer().run().fails(&["timed out"]).within(10.0, 19.5);
}

#[test]
fn a_debug_file_that_cannot_be_opened_keeps_no_node_from_being_fenced() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("nobody-reads");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    for file in [Path::new("/nonexistent/x"), directory.path(), &pipe] {
        let server = Server::start();
        let file = file.to_str().unwrap();
        Call::new(&server, "off").set("debug_file", file).run().succeeds("Success: Powered OFF").within(0.0, 4.0);
        assert_eq!(server.posted(), ["ForceOff"]);
        let output = Call::new(&server, "status").set("debug_file", file).set("verbose", "1").run();
        assert!(output.stderr.contains(&format!("debug_file {file} cannot be opened")), "{output:?}");
    }
}

#[test]
fn what_asks_for_text_is_no_fencing() {
    let server = Server::start();
    for action in ["on", "off", "reboot", "status", "monitor", "list", "validate-all"] {
        for (name, value) in
            [("help", "1"), ("help", "yes"), ("help", "on"), ("version", "1"), ("version", "yes"), ("version", "on")]
        {
            let asked = format!("{name}={value} asks for text, not for fencing: remove it");
            let call = Call::new(&server, action).set(name, value).under_fencer();
            call.run().fails(&[&asked]).within(0.0, 1.0);
            // The position of the option does not matter.
            call.with_input(&[format!("{name}={value}\n").as_bytes(), &call.input()].concat()).fails(&[&asked]);
        }
    }
    assert_eq!((server.requests().len(), server.handshakes()), (0, 0), "nobody was asked");
    Call::new(&server, "status").set("version", "0").set("help", "no").run().succeeds("Status: ON");
    // A key without a value does not replace the action.
    Call::bare("").set("version", "1").run().fails(&["unsupported action"]);
}

#[test]
fn an_agent_that_is_killed_leaves_nothing_that_hinders_the_next() {
    let server = Server::start();
    server.world().system().when_off = vec![(Duration::from_secs(2), "Off")];
    let mut child = Call::new(&server, "off").start();
    tandem::os::clock::sleep(Duration::from_millis(600));
    child.kill().unwrap();
    child.wait().unwrap();
    let output = Call::new(&server, "off").run();
    assert_eq!(output.code, 0, "{output:?}");
}
