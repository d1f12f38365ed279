//! systemd's own tool finds no fault in the units, and their permissions do not grow.

#![expect(clippy::disallowed_methods, reason = "the test asks systemd's own tool")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::tree::root;

/// The largest allowed exposure score of each service, in tenths, as `systemd-analyze security` computes it. 100 is an
/// unrestricted root. Debian 12 and 13 differ by a tenth or two.
const EXPOSURE: [(&str, u32); 5] = [
    ("tandem-collect.service", 25),
    ("tandem-certs.service", 25),
    ("tandem-lone-boot.service", 82),
    ("watchdog-mux.service", 36),
    ("fencing-agent.service", 36),
];

fn analyze(arguments: &[&str], files: &[PathBuf]) -> (bool, String) {
    let output = Command::new("systemd-analyze")
        .args(arguments)
        .args(files)
        .env("SYSTEMD_COLORS", "0")
        .output()
        .unwrap_or_else(|error| panic!("systemd-analyze: {error}; run tests/lab/setup"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), text)
}

/// Copies the systemd units to `directory`, after `change` and with the path of the built binary. Returns the copies' paths.
fn units(directory: &std::path::Path, change: impl Fn(&str) -> String) -> Vec<PathBuf> {
    let mut made = Vec::new();
    for entry in fs::read_dir(root().join("systemd")).unwrap() {
        let path = entry.unwrap().path();
        if !path.extension().is_some_and(|kind| kind == "service" || kind == "timer") {
            continue;
        }
        let mut text = fs::read_to_string(&path).unwrap();
        for name in ["/usr/sbin/tandem", "/usr/sbin/watchdog-mux", "/usr/sbin/fencing-agent"] {
            text = text.replace(name, env!("CARGO_BIN_EXE_tandem"));
        }
        let to = directory.join(path.file_name().unwrap());
        fs::write(&to, change(&text)).unwrap();
        made.push(to);
    }
    made.sort();
    assert_eq!(made.len(), 7, "{made:?}");
    made
}

#[test]
fn systemd_finds_nothing_wrong_with_the_units() {
    let dir = tempfile::tempdir().unwrap();
    let files = units(dir.path(), str::to_owned);
    let (done, said) = analyze(&["verify", "--man=no"], &files);
    assert!(done && said.trim().is_empty(), "{said}");
    // The check itself must find faults.
    for (good, bad) in
        [("ProtectHome=yes", "ProtectHome=perhaps"), ("NoNewPriv", "NewPriv"), ("ExecStart=/", "ExecStart=/no")]
    {
        let files = units(dir.path(), |text| text.replace(good, bad));
        let (_, said) = analyze(&["verify", "--man=no"], &files);
        assert!(!said.trim().is_empty(), "{bad} is not found");
    }
}

#[test]
fn what_the_services_may_do_does_not_grow() {
    let dir = tempfile::tempdir().unwrap();
    units(dir.path(), str::to_owned);
    for (unit, most) in EXPOSURE {
        let limit = format!("--threshold={most}");
        let (done, said) = analyze(&["security", "--offline=yes", &limit], &[dir.path().join(unit)]);
        assert!(done, "{unit}: {}", said.lines().last().unwrap_or_default());
    }
}

/// Asserts that the unit of a daemon that feeds a watchdog has these lines, can use the device, and has a high priority.
fn keeps(unit: &str, lines: &[&str]) {
    let text = fs::read_to_string(root().join("systemd").join(unit)).unwrap();
    for line in
        ["Type=notify", "OOMScoreAdjust=-1000", "CPUSchedulingPolicy=rr", "LimitMEMLOCK=infinity"].iter().chain(lines)
    {
        assert!(text.lines().any(|found| found == *line), "{line}");
    }
    assert!(
        !text.contains("PrivateDevices") && !text.contains("RestrictRealtime"),
        "it needs the device, and its turn"
    );
}

/// Asserts that the unit of `watchdog-mux` does not let an upgrade or a crash stop an armed watchdog. It must not delay a
/// reset either.
#[test]
fn the_multiplexers_unit_keeps_its_promises() {
    let lines = ["Restart=no", "TimeoutStopSec=infinity", "SendSIGKILL=no", "KillMode=process"];
    keeps("watchdog-mux.service", &lines);
}

/// Asserts that systemd restarts `fencing-agent` a second after a crash, however often it crashes. The new agent feeds the
/// watchdog at its first contact with a quorum, within the time-out.
#[test]
fn the_fencing_agents_unit_keeps_its_promises() {
    keeps("fencing-agent.service", &["Restart=always", "RestartSec=1", "StartLimitIntervalSec=0"]);
}
