//! Arguments that operators type out of habit, from kubectl, pcs and journalctl.

#![expect(clippy::disallowed_methods, reason = "the tests start the binary as a user would")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::executable;

/// Installs a fake `tandem` that completes names without a cluster, and otherwise runs the real one.
fn with_names(dir: &Path) {
    let file = dir.join("tandem");
    let script = format!(
        "case \"$*\" in\n'completion --names nodes') echo node1; echo node2 ;;\n\
         'completion --names devices') echo fence-node1 ;;\n*) exec {} \"$@\" ;;\nesac",
        env!("CARGO_BIN_EXE_tandem")
    );
    executable::script(&file, &script);
}

/// Runs `program` with `dir` as the first directory of its search path, and as its working directory.
fn run(dir: &Path, program: &str, words: &[&str]) -> Output {
    let path = format!("{}:/usr/bin:/bin", dir.display());
    Command::new(program).args(words).current_dir(dir).env("PATH", path).output().unwrap()
}

fn tandem(dir: &Path, words: &[&str]) -> Output {
    run(dir, env!("CARGO_BIN_EXE_tandem"), words)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn o_json_is_json() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().display().to_string();
    let plain = ["events", "--directory", &place];
    let shown = |more: &[&str]| {
        let output = tandem(dir.path(), &[&plain[..], more].concat());
        assert!(output.status.success(), "{more:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    let json = shown(&["--json"]);
    assert!(json.contains("\"format\": 1"), "{json}");
    for more in [&["-o", "json"][..], &["-ojson"], &["--output", "json"], &["--output=json"]] {
        assert_eq!(shown(more), json, "{more:?}");
    }
    let output = tandem(dir.path(), &[&plain[..], &["-o", "yaml"]].concat());
    assert!(output.status.code() == Some(2) && text(&output.stderr).contains("json"), "{}", text(&output.stderr));
}

/// Asserts that the first list has valid options of `tandem status`, and the second list invalid ones. With valid
/// options the command fails only because there is no cluster.
#[test]
fn status_takes_short_options_and_two_forms() {
    let dir = tempfile::tempdir().unwrap();
    for words in [
        &["-o", "json"][..],
        &["--output", "json"],
        &["--output", "pacemakercluster"],
        &["-o", "json", "--wait-for", "serving", "--timeout", "0"],
        &["-o", "json", "--may-stop", "node1"],
    ] {
        let output = tandem(dir.path(), &[&["status"], words].concat());
        assert_eq!(output.status.code(), Some(1), "{words:?}: {}", text(&output.stderr));
    }
    for words in [
        &["-o", "pacemakercluster", "-w"][..],
        &["-o", "pacemakercluster", "--may-stop", "node1"],
        &["-o", "json", "--check"],
        &["-o", "json", "--json"],
        &["-w0"],
        &["-w", "2h"],
        &["-w", "soon"],
    ] {
        let output = tandem(dir.path(), &[&["status"], words].concat());
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", text(&output.stderr));
    }
}

#[test]
fn durations_have_one_form_and_one_error() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().display().to_string();
    for since in ["3", "3s", "90m", "24h", "7d", "yesterday", "today", "now", "-2h", "2026-11-23 08:30"] {
        let output = tandem(dir.path(), &["events", "--directory", &place, "--since", since]);
        assert!(output.status.success(), "{since}: {}", text(&output.stderr));
    }
    let calls: [&[&str]; 9] = [
        &["status", "--watch", "x"],
        &["status", "--wait-for", "serving", "--timeout", "x"],
        &["setup", "--timeout", "x"],
        &["setup", "join", "FILE", "--timeout", "x"],
        &["certs", "join", "FILE", "--timeout", "x"],
        &["certs", "rotate-ca", "--timeout", "x"],
        &["fencing", "test", "node1", "--timeout", "x"],
        &["fencing", "update", "node1", "--timeout", "x"],
        &["member", "promote", "node1", "--timeout", "x"],
    ];
    for words in calls {
        let output = tandem(dir.path(), words);
        let why = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {why}");
        assert!(why.contains("'x' is no duration: type one such as 3 or 3s (seconds), 90m, 24h or 7d"), "{why}");
    }
}

#[test]
fn only_the_nearest_subcommand_is_suggested() {
    let dir = tempfile::tempdir().unwrap();
    for (typed, meant) in [("statsu", "status"), ("evnets", "events"), ("setpu", "setup")] {
        let output = tandem(dir.path(), &[typed]);
        let why = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{why}");
        assert!(why.contains(&format!("a similar subcommand exists: '{meant}'")), "{why}");
    }
}

#[test]
fn a_data_dir_without_data_is_no_yes() {
    let dir = tempfile::tempdir().unwrap();
    let output = tandem(dir.path(), &["data-dir", "show", "/etc"]);
    let why = "tandem: /etc holds no data of a member: type etcd's --data-dir\n";
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(1), why.to_owned()));
    let output = tandem(dir.path(), &["data-dir", "show", "/etc", "-o", "json"]);
    assert!(output.status.code() == Some(1) && text(&output.stdout).contains("\"cluster_id\": null"));
}

#[test]
fn without_a_cib_there_are_no_names_and_no_words() {
    let dir = tempfile::tempdir().unwrap();
    for kind in ["nodes", "devices"] {
        let output = tandem(dir.path(), &["completion", "--names", kind]);
        assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "", "{kind}");
    }
}

/// Returns the words that bash completes for the last of `words`.
fn completed(dir: &Path, words: &[&str]) -> Vec<String> {
    let script = "source <(tandem completion bash)
        COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1))
        _tandem tandem \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD - 1]}\"
        printf '%s\\n' \"${COMPREPLY[@]}\"";
    let output = run(dir, "bash", &[&["-c", script, "bash", "tandem"], words].concat());
    assert!(output.status.success() && output.stderr.is_empty(), "{words:?}: {}", text(&output.stderr));
    text(&output.stdout).split_whitespace().map(str::to_owned).collect()
}

#[test]
fn bash_completes_nodes_and_devices() {
    let dir = tempfile::tempdir().unwrap();
    with_names(dir.path());
    let nodes = ["node1", "node2"];
    assert_eq!(completed(dir.path(), &["status", "--may-stop", ""]), nodes);
    assert_eq!(completed(dir.path(), &["fencing", "test", ""]), nodes);
    assert_eq!(completed(dir.path(), &["member", "replace", ""]), nodes);
    assert_eq!(completed(dir.path(), &["member", "plan", "stop", "node2"]), ["node2"]);
    assert_eq!(completed(dir.path(), &["confirm-recovery", "--confirm", "n"]), nodes);
    assert_eq!(completed(dir.path(), &["confirm-recovery", "--confirm-off", "n"]), nodes);
    assert_eq!(completed(dir.path(), &["fencing", "check", "f"]), ["fence-node1"]);
    assert_eq!(completed(dir.path(), &["fencing", "update", "--device", ""]), ["fence-node1"]);
    assert!(completed(dir.path(), &["fencing", "test", "--j"]).contains(&"--json".to_owned()));
    assert!(completed(dir.path(), &["comp"]).contains(&"completion".to_owned()));
}

#[test]
fn each_shell_has_the_names_in_its_script() {
    let dir = tempfile::tempdir().unwrap();
    let script = |shell: &str| text(&tandem(dir.path(), &["completion", shell]).stdout);
    let fish = script("fish");
    for words in [
        "-l may-stop -d 'Checks whether NODE may be stopped now without a pause in the writes; the same as tandem member plan stop' -r -f -a \"(tandem completion --names nodes",
        "fencing; and __fish_seen_subcommand_from test\" -f -a \"(tandem completion --names nodes",
        "fencing; and __fish_seen_subcommand_from check\" -f -a \"(tandem completion --names devices",
    ] {
        assert!(fish.contains(words), "{words}: {fish}");
    }
    let zsh = script("zsh");
    assert!(zsh.starts_with("#compdef tandem\n"), "{zsh}");
    assert!(zsh.contains(":NODE:_tandem_nodes'") && zsh.contains(":_tandem_devices'"), "{zsh}");
    assert!(zsh.contains("\n_tandem_nodes() {") && zsh.contains("\n_tandem_devices() {"), "{zsh}");
    for text in [fish, zsh] {
        assert!(!text.contains("_hosts") && !text.contains("hostnames") && !text.contains("_users"));
    }
}

/// Asserts that every command on the one-page guide exists. With `--help` after it, a command is parsed and not executed.
#[test]
fn every_command_of_the_page_next_to_the_rack_exists() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/operate/one-page.md")).unwrap();
    let page = page.replace("\\\n", " ");
    let lines = page.lines().map(|line| line.split('#').next().unwrap().trim());
    let commands: Vec<&str> = lines.filter_map(|line| line.strip_prefix("tandem ")).collect();
    assert!(commands.len() > 10, "{commands:?}");
    let dir = tempfile::tempdir().unwrap();
    for command in commands {
        let words: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        let output = tandem(dir.path(), &words);
        assert!(output.status.success(), "{command}: {}", text(&output.stderr));
        assert!(text(&output.stdout).contains("Usage: tandem"), "{command}");
    }
}
