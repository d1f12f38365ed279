//! The man pages and completions that `make install` installs contain every parameter, option and subcommand.

#![expect(clippy::disallowed_methods, reason = "the tests start the binary as a user would")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::Path;
use std::process::Command;

fn generated() -> tempfile::TempDir {
    let share = tempfile::tempdir().unwrap();
    let status = Command::new(env!("CARGO_BIN_EXE_tandem-generate")).arg(share.path()).status().unwrap();
    assert!(status.success());
    share
}

fn text(share: &Path, file: &str) -> String {
    fs::read_to_string(share.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Returns the names of the parameters in a meta-data file.
fn parameters(metadata: &str) -> Vec<String> {
    let xml = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("metadata").join(metadata)).unwrap();
    let names = xml.split("<parameter name=\"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned());
    let names: Vec<String> = names.collect();
    assert!(names.len() > 10);
    names
}

#[test]
fn the_agents_pages_explain_every_parameter() {
    let share = generated();
    let resource = text(share.path(), "man/man7/ocf_tandem_podman-etcd.7");
    for name in parameters("podman-etcd.xml") {
        assert!(resource.contains(&format!("\n\\fB{name}\\fR ")), "{name} is not in the page of podman-etcd");
    }
    let fence = text(share.path(), "man/man8/fence_redfish_rs.8").replace("\\-", "-");
    for name in parameters("fence_redfish_rs.xml") {
        assert!(fence.contains(&name), "{name} is not in the page of fence_redfish_rs");
    }
}

/// Returns the subcommands that the help of `command` lists, except `help` itself.
fn subcommands(command: &[&str]) -> Vec<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_tandem")).args(command).arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let Some((_, list)) = help.split_once("Commands:\n") else { return Vec::new() };
    let names =
        list.lines().take_while(|line| line.starts_with("  ")).filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

#[test]
fn every_subcommand_has_a_page_and_is_completed() {
    let share = generated();
    let completion = text(share.path(), "bash-completion/completions/tandem");
    let top = subcommands(&[]);
    assert!(top.contains(&"explain".to_owned()) && !top.contains(&"sim".to_owned()), "{top:?}");
    for name in &top {
        let page = text(share.path(), &format!("man/man8/tandem-{name}.8")).replace("\\-", "-");
        assert!(page.contains(&format!("tandem {name}")), "{page}");
        assert!(completion.contains(name.as_str()), "{name}");
        for below in subcommands(&[name]) {
            text(share.path(), &format!("man/man8/tandem-{name}-{below}.8"));
            assert!(completion.contains(&below), "{name} {below}");
        }
    }
    assert!(!completion.contains("sim"), "what is hidden is not offered");
    assert!(!share.path().join("man/man8/tandem-sim.8").exists(), "what is hidden has no page");
}

#[test]
fn the_multiplexer_has_pages_with_its_own_exit_codes() {
    let share = generated();
    for name in ["", "-run", "-status", "-metrics"] {
        let page = text(share.path(), &format!("man/man8/watchdog-mux{name}.8"));
        assert!(page.contains("the device is not fed and should be"), "{name}");
        assert!(!page.contains("run\\-dir"), "what is hidden is not explained: {name}");
    }
    assert!(text(share.path(), "man/man8/watchdog-mux-run.8").contains("client\\-timeout"));
}

#[test]
fn the_fencing_agent_has_a_page_for_each_command() {
    let share = generated();
    for name in
        ["", "-run", "-check", "-status", "-metrics", "-nodes", "-events", "-maintenance", "-keygen", "-example"]
    {
        let page = text(share.path(), &format!("man/man8/fencing-agent{name}.8"));
        assert!(page.contains("the node is not fed and should be"), "{name}");
        assert!(!page.contains("run\\-dir"), "what is hidden is not explained: {name}");
    }
}

#[test]
fn bash_understands_the_completions() {
    let share = generated();
    for name in ["tandem", "fence_redfish_rs", "watchdog-mux", "fencing-agent"] {
        let file = share.path().join("bash-completion/completions").join(name);
        assert!(Command::new("bash").arg("-n").arg(file).status().unwrap().success(), "{name}");
    }
    assert!(text(share.path(), "bash-completion/completions/fence_redfish_rs").contains("--systems-uri"));
}
