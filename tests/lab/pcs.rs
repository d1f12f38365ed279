//! pcs, as an administrator types it on a host: in words that no release warns of.

use crate::host;
use crate::node::Node;
use crate::sh::Result;
use crate::state::Lab;

/// How a command is typed: [`run`] or [`create`].
type Typed = fn(&Lab, Node, &[&str]) -> Result<()>;

/// What pcs says of the lab's hosts, which have neither systemd nor pcsd.
const OF_THE_HOSTS: [&str; 2] = ["Unable to detect init system", "Unable to read the known-hosts file"];
const DEPRECATION: &str = "Deprecation Warning: ";

/// Runs pcs on a node. A command that a later pcs will not take, or will take otherwise, is an error.
pub fn run(lab: &Lab, node: Node, words: &[&str]) -> Result<()> {
    run_but(lab, node, words, |warning| warning.starts_with(DEPRECATION))
}

/// The same for what makes a cluster, of which pcs is to have nothing to warn.
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

/// What pcs warned of, but for what is the lab's own doing.
pub fn warnings(said: &str) -> Vec<String> {
    let of_the_hosts = |line: &&str| OF_THE_HOSTS.iter().any(|words| line.contains(words));
    let lines = said.lines().map(str::trim_start);
    let warnings = lines.filter(|line| line.starts_with("Warning: ") || line.starts_with(DEPRECATION));
    warnings.filter(|line| !of_the_hosts(line)).map(str::to_owned).collect()
}

/// As [`run`], and waits until Pacemaker has done what follows from it. pcs' own `--wait` is on its way out.
pub fn run_and_wait(lab: &Lab, node: Node, words: &[&str]) -> Result<()> {
    run(lab, node, words)?;
    host::must(lab, node, &["crm_resource", "--wait", "--timeout=300s"]).map(drop)
}

/// Creates a resource (its name, agent and options) as a clone (`clone` or `promotable`) with these meta attributes. In
/// three steps, as pcs 0.12 wants the attributes in one command in words that 0.11 understands otherwise; nothing starts
/// before the last. Each is typed by [`run`] or [`create`].
pub fn create_clone(lab: &Lab, node: Node, typed: Typed, resource: &[&str], clone: &[&str]) -> Result<()> {
    let name = resource.first().copied().unwrap_or_default();
    let (kind, attributes) = clone.split_first().ok_or("no kind of clone is given")?;
    typed(lab, node, &[&["resource", "create"], resource, &["--disabled"]].concat())?;
    typed(lab, node, &[&["resource", kind, name, "meta"], attributes].concat())?;
    typed(lab, node, &["resource", "enable", name])
}
