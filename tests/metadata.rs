//! The files in `metadata/` are what the binary prints.

#![expect(clippy::disallowed_methods, reason = "the tests start the binary as a user would")]

use std::path::Path;
use std::process::Command;

const APPLETS: &[&str] = &["podman-etcd", "fence_redfish_rs"];

#[test]
fn the_committed_metadata_is_what_the_binary_prints() {
    for applet in APPLETS {
        let output = Command::new(env!("CARGO_BIN_EXE_tandem")).args([applet, "meta-data"]).output().unwrap();
        assert!(output.status.success());
        assert!(output.stderr.is_empty());
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("metadata/{applet}.xml"));
        let printed = String::from_utf8(output.stdout).unwrap();
        let committed = std::fs::read_to_string(&path).unwrap();
        assert!(
            printed == committed,
            "{} is out of date: 'target/debug/tandem {applet} meta-data > {}', and read the difference",
            path.display(),
            path.display()
        );
    }
}
