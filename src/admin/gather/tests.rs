//! Tests of an archive as it is written, with a secret planted in each place that it reads.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;

use super::super::report::golden;
use super::*;

const SECRETS: [&str; 8] = [
    "bmc-s3cret",
    "kg-s3cret",
    "file-s3cret",
    "hook-s3cret",
    "env-s3cret",
    "key-s3cret",
    "basic-s3cret",
    // From a Secret, as an API server shows it.
    "b3BlbnNoaWZ0LXMzY3JldA==",
];

/// Returns the name and content of each entry in an archive.
fn unpacked(file: &Path) -> Vec<(String, String)> {
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(std::fs::File::open(file).unwrap()));
    let entry = |entry: std::io::Result<tar::Entry<'_, _>>| {
        let mut entry = entry.unwrap();
        let mut text = String::new();
        let _: usize = Read::read_to_string(&mut entry, &mut text).unwrap();
        (entry.path().unwrap().display().to_string(), text)
    };
    archive.entries().unwrap().map(entry).collect()
}

#[test]
fn a_secret_in_any_place_is_in_no_part_of_the_archive() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    std::fs::write(path("password"), "file-s3cret\n").unwrap();
    let cib = format!(
        "<cib><nvpair id=\"1\" name=\"password\" value=\"bmc-s3cret\"/>\
         <nvpair id=\"4\" name=\"hexadecimal_kg\" value=\"kg-s3cret\"/>\
         <nvpair id=\"2\" name=\"password_file\" value=\"{}\"/>\
         <recipient id=\"3\" value=\"https://hooks.example.com/hook-s3cret\"/></cib>",
        path("password").display()
    );
    let log = "the BMC was asked with bmc-s3cret and file-s3cret\n\
               https://hooks.example.com/hook-s3cret\nAuthorization: Basic basic-s3cret\n\
               -----BEGIN PRIVATE KEY-----\nkey-s3cret\n-----END PRIVATE KEY-----\n\
               {\"kind\":\"Secret\",\"data\":{\"password\":\"b3BlbnNoaWZ0LXMzY3JldA==\"}} and kg-s3cret\n";
    std::fs::write(path("log"), log).unwrap();
    let sources = [
        Source::text("pacemaker/cib.xml", cib),
        Source::file("logs/log", path("log")),
        Source::text("podman/etcd.json", "{\"Env\": [\"ETCD_PASSWORD=env-s3cret\"]}".to_owned()),
        Source::file("gone", path("bmc-s3cret")),
    ];
    let file = path("report.tar.gz");
    let gathered = gather(&file, &sources, &Programs::default()).unwrap();
    let parts = unpacked(&file);
    let names: Vec<&str> = parts.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["report/pacemaker/cib.xml", "report/logs/log", "report/podman/etcd.json", "report/MISSING"]);
    assert!(parts[1].1.starts_with("the BMC was asked with (removed) and (removed)\n"), "{}", parts[1].1);
    assert!(parts[3].1.starts_with("gone: "), "{}", parts[3].1);
    let told = gathered.text() + &serde_json::to_string(&gathered).unwrap();
    for secret in SECRETS {
        assert!(parts.iter().all(|(_, text)| !text.contains(secret)) && !told.contains(secret), "{secret}");
    }
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let again = gather(&file, &sources, &Programs::default()).err().unwrap().0;
    assert!(again.ends_with("is there already: name another file with --output"), "{again}");
}

#[test]
fn of_a_large_file_the_end_is_taken_and_nothing_is_left_of_what_fails() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let line = format!("{}\n", "x".repeat(99));
    std::fs::write(&log, line.repeat(100_000)).unwrap();
    let found = Source::file("log", &log).read(&Programs::default(), u64::MAX).unwrap();
    assert!(found.text.len() <= 8 * 1024 * 1024 && found.text.starts_with('x') && found.text.len().is_multiple_of(100));
    assert!(gather(&dir.path().join("no/such/folder.tar.gz"), &[], &Programs::default()).is_err());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn what_was_gathered_is_told() {
    let missing = Missing { name: "logs/journal".to_owned(), why: "journalctl is not installed".to_owned() };
    let gathered = Gathered {
        file: "tandem-node1-20261123T140000Z.tar.gz".into(),
        bytes: 123_456,
        entries: vec!["pacemaker/cib.xml".to_owned(), "tandem/status.json".to_owned()],
        missing: vec![missing],
    };
    golden::compare("gather", &gathered);
}
