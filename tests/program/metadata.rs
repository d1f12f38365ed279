//! The files in `metadata/` equal the binary's output, and are valid by the schemas of Pacemaker's and pcs' packages.

#![expect(clippy::disallowed_methods, reason = "the tests start the binary as a user would")]

use std::path::Path;
use std::process::Command;

/// The agents, each with the arguments by which it prints its meta-data.
const APPLETS: &[(&str, &[&str])] = &[("podman-etcd", &["meta-data"]), ("fence_redfish_rs", &["-o", "metadata"])];

#[test]
fn the_committed_metadata_is_what_the_binary_prints() {
    for (applet, arguments) in APPLETS {
        let output = Command::new(env!("CARGO_BIN_EXE_tandem")).arg(applet).args(*arguments).output().unwrap();
        assert!(output.status.success());
        assert!(output.stderr.is_empty());
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("metadata/{applet}.xml"));
        let printed = String::from_utf8(output.stdout).unwrap();
        let committed = std::fs::read_to_string(&path).unwrap();
        assert!(
            printed == committed,
            "{} is out of date: 'target/debug/tandem {applet} {} > {}', and read the difference",
            path.display(),
            arguments.join(" "),
            path.display()
        );
    }
}

/// The options by which xmllint checks the meta-data. The schema of the resource-agent API 1.1 is the one that pcs uses. The DTD is that
/// of API 1.0, which the meta-data names, with the additions of API 1.1. Pacemaker accepts `reload-agent` and reloadable parameters only
/// from an agent of 1.1.
const SCHEMAS: &[&[&str]] = &[
    &["--relaxng", "/usr/share/pcs/data/ocf-1.1.rng"],
    &["--dtdvalid", concat!(env!("CARGO_MANIFEST_DIR"), "/metadata/ra-api-1.1.dtd")],
];

#[test]
fn the_resource_agents_metadata_fits_the_schemas() {
    for how in SCHEMAS {
        let schema = how[how.len() - 1];
        assert!(Path::new(schema).exists(), "{schema} is missing: run tests/lab/setup");
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("metadata/podman-etcd.xml");
        let output = Command::new("xmllint").arg("--noout").args(*how).arg(file).output().unwrap();
        assert!(output.status.success(), "{schema}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
