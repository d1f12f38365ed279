//! Wrong input, each as an operator meets it: one clear sentence in the exit reason, and the exit code that tells
//! Pacemaker what to do about it.

use std::time::Duration;

use crate::bmc;
use crate::cluster;
use crate::host;
use crate::node::{NODES, Node};
use crate::sh::{self, Result};
use crate::state::Lab;
use crate::up::Wish;

/// OCF exit codes as `crm_mon` prints them.
const ARGS: &str = "(exit code 2)";
const PERMISSIONS: &str = "(exit code 4)";
const INSTALLED: &str = "(exit code 5)";
const CONFIGURED: &str = "(exit code 6)";

struct Case {
    what: &'static str,
    /// Parameters in place of the right ones; an empty value leaves the parameter out.
    wrong: &'static [(&'static str, &'static str)],
    /// Any of these exit codes.
    codes: &'static [&'static str],
    /// All of these words must be in the exit reason.
    words: &'static [&'static str],
}

const CASES: &[Case] = &[
    Case { what: "no node_ip_map", wrong: &[("node_ip_map", "")], codes: &[CONFIGURED], words: &["node_ip_map"] },
    Case {
        what: "a node that is not in the map",
        wrong: &[("node_ip_map", "node1:10.99.0.1;other:10.99.0.2")],
        codes: &[ARGS, CONFIGURED],
        words: &["node_ip_map", "node2"],
    },
    Case {
        what: "a certificate that is not there",
        wrong: &[("cert_file", "/etc/tandem/nothing.crt")],
        codes: &[PERMISSIONS, INSTALLED, CONFIGURED],
        words: &["/etc/tandem/nothing.crt"],
    },
    Case {
        what: "an image that is not there",
        wrong: &[("image", "localhost/tandem/nothing:1")],
        codes: &[INSTALLED, CONFIGURED],
        words: &["localhost/tandem/nothing:1"],
    },
];

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let mut wrong = Vec::new();
    for case in CASES {
        if let Err(error) = try_case(lab, case) {
            wrong.push(format!("{}: {error}", case.what));
        }
        let _ = cluster::pcs(lab, NODES[0], &["resource", "delete", "--force", "etcd"]);
        let _ = cluster::pcs(lab, NODES[0], &["resource", "cleanup"]);
    }
    if let Err(error) = refused_password(lab) {
        wrong.push(format!("a BMC that refuses the password: {error}"));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ").into()) }
}

fn try_case(lab: &Lab, case: &Case) -> Result<()> {
    cluster::create_etcd_with(lab, NODES[0], cluster::CloneKind::Plain, case.wrong, true)?;
    let line = sh::wait_for("a failure in crm_mon", Duration::from_secs(60), Duration::from_millis(500), || {
        let failures = cluster::failures(lab, NODES[0]);
        failures.into_iter().find(|line| line.starts_with("etcd") && case.words.iter().all(|word| line.contains(word)))
    });
    let line = line.map_err(|error| format!("{error}; there is: {}", cluster::failures(lab, NODES[0]).join(" | ")))?;
    println!("   {}: {line}", case.what);
    if case.codes.iter().any(|code| line.contains(code)) {
        return Ok(());
    }
    Err(format!("the exit code should be one of {}: {line}", case.codes.join(" ")).into())
}

/// As the operator sees it who creates the device, and as Pacemaker records it.
fn refused_password(lab: &Lab) -> Result<()> {
    bmc::set_mode(lab, Node::One, "refuse")?;
    let status = host::output(
        lab,
        Node::Two,
        &[
            "sh",
            "-c",
            "printf 'action=monitor\\nip=10.98.0.101\\nusername=admin\\npassword=wrong\\n' | fence_redfish_rs",
        ],
    );
    let _ = host::must(lab, Node::Two, &["crm_resource", "--resource", "fence-node1", "--restart", "--timeout=30s"]);
    let noted =
        sh::wait_for("a failure of the fence device", Duration::from_secs(60), Duration::from_millis(500), || {
            cluster::failures(lab, NODES[0]).into_iter().find(|line| line.starts_with("fence-node1"))
        });
    bmc::set_mode(lab, Node::One, "ok")?;
    let status = status?;
    let said = status.text();
    println!("   a BMC that refuses the password: {}", said.trim());
    println!("   in Pacemaker: {}", noted?);
    let sentences = said.lines().filter(|line| !line.trim().is_empty()).count();
    if status.ok {
        return Err("the fence agent answered success".into());
    }
    if sentences != 1 || !said.contains("password") || said.contains("lab-secret") {
        return Err(format!("not one clear sentence about the password: {said}").into());
    }
    Ok(())
}
