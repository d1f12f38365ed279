//! Wrong input as operators meet it: one clear sentence in the exit reason, and the exit code that determines
//! Pacemaker's reaction.

use super::steps;
use crate::cluster::pcs;
use crate::cluster::up::Wish;
use crate::cluster::{self, Failure};
use crate::host;
use crate::host::bmc;
use crate::host::node::{NODES, Node};
use crate::host::state::Lab;
use crate::sh::Result;

/// The agent's exit code for a fault that an operator can mend at any moment. Pacemaker tries the start again, and
/// then succeeds.
const GENERIC: &str = "1";
/// The agent's exit code for a fault of this node's configuration. Pacemaker does not try again until that changes.
const ARGS: &str = "2";
/// The agent's exit code for a fault of the configuration of all nodes.
const CONFIGURED: &str = "6";
/// The length in characters at which Pacemaker cuts exit reasons. A cut reason would not be clear.
const LONGEST_REASON: usize = 126;

struct Case {
    what: &'static str,
    /// The wrong agent parameters, which replace the right ones. An empty value omits the parameter.
    wrong: &'static [(&'static str, &'static str)],
    code: &'static str,
    /// Texts that the exit reason must contain.
    words: &'static [&'static str],
}

const CASES: &[Case] = &[
    Case { what: "no node_ip_map", wrong: &[("node_ip_map", "")], code: CONFIGURED, words: &["node_ip_map"] },
    Case {
        what: "a node that is not in the map",
        wrong: &[("node_ip_map", "node1:10.99.0.1;other:10.99.0.2")],
        code: ARGS,
        words: &["node_ip_map", "node2"],
    },
    Case {
        what: "a certificate that is not there",
        wrong: &[("cert_file", "/etc/tandem/nothing.crt")],
        code: GENERIC,
        words: &["/etc/tandem/nothing.crt"],
    },
    Case {
        what: "an image that is not there",
        wrong: &[("image", "localhost/tandem/nothing:1")],
        code: GENERIC,
        words: &["localhost/tandem/nothing:1"],
    },
];

pub fn run(lab: &Lab, _: Wish) -> Result<()> {
    let mut wrong = Vec::new();
    for case in CASES {
        if let Err(error) = try_case(lab, case) {
            wrong.push(format!("{}: {error}", case.what));
        }
        let _ = pcs::run(lab, NODES[0], &["resource", "delete", "--force", "etcd"]);
        let _ = pcs::run(lab, NODES[0], &["resource", "cleanup"]);
    }
    if let Err(error) = refused_password(lab) {
        wrong.push(format!("a BMC that refuses the password: {error}"));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ").into()) }
}

fn try_case(lab: &Lab, case: &Case) -> Result<()> {
    cluster::create_etcd_with(lab, NODES[0], cluster::CloneKind::Plain, case.wrong, true)?;
    let of_case = |failure: &Failure| {
        failure.action.starts_with("etcd") && case.words.iter().all(|word| failure.reason.contains(word))
    };
    let failure = steps::wait_failure(lab, NODES[0], &format!("a failure that says {:?}", case.words), of_case)?;
    println!("   {}: {failure}", case.what);
    if failure.code != case.code {
        return Err(format!("the exit code should be {}: {failure}", case.code).into());
    }
    if failure.reason.len() > LONGEST_REASON {
        return Err(format!("Pacemaker has cut the exit reason: {failure}").into());
    }
    Ok(())
}

/// Checks a BMC that refuses the password. The fence agent's output must be one clear sentence, and Pacemaker must
/// have a failure of the device.
fn refused_password(lab: &Lab) -> Result<()> {
    bmc::set_mode(lab, Node::One, "refuse")?;
    let status = host::output(
        lab,
        Node::Two,
        &[
            "sh",
            "-c",
            "printf 'action=monitor\\nip=10.98.0.101\\nusername=admin\\npassword=not-the-one\\n' | fence_redfish_rs",
        ],
    );
    let _ = host::must(lab, Node::Two, &["crm_resource", "--resource", "fence-node1", "--restart", "--timeout=30s"]);
    let of_device = |failure: &Failure| failure.action.starts_with("fence-node1");
    let noted = steps::wait_failure(lab, NODES[0], "a failure of the fence device", of_device);
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
