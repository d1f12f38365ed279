//! pcs, as an administrator types it on a host, in a form that no release warns about.

use crate::host;
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::sh::Result;

/// The function that runs a pcs command: [`run`] or [`create`].
type Typed = fn(&Lab, Node, &[&str]) -> Result<()>;

/// The warnings of pcs that [`warnings`] leaves out. The lab's hosts cause them, because they have neither systemd
/// nor pcsd.
const OF_THE_HOSTS: [&str; 2] = ["Unable to detect init system", "Unable to read the known-hosts file"];
const DEPRECATION: &str = "Deprecation Warning: ";

/// Runs pcs on a node. Fails if pcs prints a deprecation warning, because a later pcs will refuse the command or interpret it otherwise.
pub fn run(lab: &Lab, node: Node, words: &[&str]) -> Result<()> {
    run_but(lab, node, words, |warning| warning.starts_with(DEPRECATION))
}

/// Runs pcs on a node for commands that create a cluster. Any warning fails.
pub fn create(lab: &Lab, node: Node, words: &[&str]) -> Result<()> {
    run_but(lab, node, words, |_| true)
}

fn run_but(lab: &Lab, node: Node, words: &[&str], is_wrong: impl Fn(&str) -> bool) -> Result<()> {
    let command = [&["pcs"], words].concat();
    let done = host::output(lab, node, &command)?;
    if !done.ok {
        return Err(format!("on {node}: '{}' failed: {}", command.join(" "), done.text().trim()).into());
    }
    match warnings(&done.text()).iter().find(|line| is_wrong(line)) {
        Some(line) => Err(format!("on {node}: '{}': {line}", command.join(" ")).into()),
        None => Ok(()),
    }
}

/// Returns pcs' warnings, without those that the lab itself causes.
pub fn warnings(said: &str) -> Vec<String> {
    let of_the_hosts = |line: &&str| OF_THE_HOSTS.iter().any(|words| line.contains(words));
    let lines = said.lines().map(str::trim_start);
    let warnings = lines.filter(|line| line.starts_with("Warning: ") || line.starts_with(DEPRECATION));
    warnings.filter(|line| !of_the_hosts(line)).map(str::to_owned).collect()
}

/// Runs pcs as [`run`] does, and waits until Pacemaker has finished. pcs' own `--wait` is deprecated.
pub fn run_and_wait(lab: &Lab, node: Node, words: &[&str]) -> Result<()> {
    run(lab, node, words)?;
    host::must(lab, node, &["crm_resource", "--wait", "--timeout=300s"]).map(drop)
}

/// Creates a cloned resource. `resource` has its name, agent and options, and `clone` has the kind of clone and the meta attributes.
/// `typed` is [`run`] or [`create`].
///
/// The creation takes three commands, and the resource is disabled until the last one. A single command would need meta attributes in a
/// form that pcs 0.11 and pcs 0.12 interpret differently.
pub fn create_clone(lab: &Lab, node: Node, typed: Typed, resource: &[&str], clone: &[&str]) -> Result<()> {
    let name = resource.first().copied().unwrap_or_default();
    let (kind, attributes) = clone.split_first().ok_or("no kind of clone is given")?;
    typed(lab, node, &[&["resource", "create"], resource, &["--disabled"]].concat())?;
    typed(lab, node, &[&["resource", kind, name, "meta"], attributes].concat())?;
    typed(lab, node, &["resource", "enable", name])
}
