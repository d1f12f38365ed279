//! The commands in README.md and in the guides below do what these pages say, typed as they are printed, on hosts without Tandem.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::cluster::etcd;
use crate::cluster::pcs;
use crate::cluster::teardown;
use crate::cluster::up::{self, Wish};
use crate::host;
use crate::host::node::{BMC_PASSWORD, NODES, Node};
use crate::host::state::Lab;
use crate::host::tls;
use crate::judge::decisions;
use crate::programs::image;
use crate::programs::release;
use crate::sh::{self, Result};

/// The guides with the commands to run, each as path and text. They are in the order in which an operator types them.
const PAGES: [(&str, &str); 3] = [
    ("README.md", include_str!("../../../README.md")),
    ("docs/operate/by-hand.md", include_str!("../../../docs/operate/by-hand.md")),
    ("docs/operate/take-over.md", include_str!("../../../docs/operate/take-over.md")),
];
/// The guide with the lines by which other programs, such as `dnf-automatic`, stop a node.
const AUTOMATION: &str = include_str!("../../../docs/operate/maintenance.md");
/// The beginning of the hidden comment above a block of commands. It continues with the hosts on which the block
/// runs.
const MARK: &str = "<!-- runs: ";
/// The directory on a host in which the commands run. It takes the place of the operator's clone of the repository.
const CLONE: &str = "/var/tmp";

/// A block of shell commands in a guide.
struct Block {
    /// The place where the block runs: `machine` or names of nodes. For a block that does not run in the lab, it is the reason for that.
    place: String,
    commands: String,
    /// The path of the guide, and the line of the block in it.
    at: String,
}

/// Runs all commands of the guides in [`PAGES`] on hosts without Tandem.
pub fn run(lab: &Lab, wish: Wish) -> Result<()> {
    let blocks = blocks()?;
    for block in blocks.iter().filter(|block| block.place == "machine") {
        on_machine(block)?;
    }
    up::up(lab, Wish { bare: true, ..wish })?;
    for node in NODES {
        make_ready(lab, node)?;
    }
    on_nodes(lab, &blocks, "")?;
    etcd::wait_two_voters(lab, Duration::from_secs(120))?;
    super::clean(lab)?;
    // The page offers another kind of clone as an alternative to the first.
    for resource in ["client", "etcd"] {
        pcs::run(lab, Node::One, &["resource", "delete", resource])?;
    }
    on_nodes(lab, &blocks, " instead")?;
    etcd::wait_two_voters(lab, Duration::from_secs(120))?;
    super::clean(lab)?;
    decisions::replay(lab, "readme")?;
    let left = teardown::down(lab);
    if left.is_empty() { Ok(()) } else { Err(format!("left behind: {}", left.join(", ")).into()) }
}

/// Returns all blocks of shell commands in the guides, in order. Fails if a block has no mark, because that block would never be tested.
fn blocks() -> Result<Vec<Block>> {
    let mut found: Vec<Block> = Vec::new();
    let mut mark: Option<String> = None;
    let mut inside = false;
    let lines = PAGES
        .iter()
        .flat_map(|(name, page)| page.lines().zip(1..).map(move |(line, at)| (line, format!("{name}:{at}"))));
    for (line, at) in lines {
        if let Some(place) = line.strip_prefix(MARK).and_then(|rest| rest.strip_suffix(" -->")) {
            mark = Some(place.to_owned());
        } else if line == "```sh" {
            let place = mark.take().ok_or_else(|| format!("{at}: no '{MARK}...' above it"))?;
            found.push(Block { place, commands: String::new(), at });
            inside = true;
        } else if line.starts_with("```") {
            inside = false;
        } else if inside && let Some(block) = found.last_mut() {
            block.commands.push_str(line);
            block.commands.push('\n');
        }
    }
    if found.len() < 15 { Err("the pages have lost their commands".into()) } else { Ok(found) }
}

fn on_machine(block: &Block) -> Result<()> {
    println!("   {}: {}", block.at, block.commands.trim());
    let mut command = Command::new("bash");
    command.args(["-e", "-c", &block.commands]).current_dir(env!("CARGO_MANIFEST_DIR"));
    sh::must(sh::without_package(&mut command)).map(drop)
}

/// Runs the blocks of the guides that are marked with a node's name and `when`.
pub(super) fn typed(lab: &Lab, when: &str) -> Result<()> {
    on_nodes(lab, &blocks()?, when)
}

/// Runs the blocks of the guides that are marked with a node's name and `suffix`.
fn on_nodes(lab: &Lab, blocks: &[Block], suffix: &str) -> Result<()> {
    for block in blocks {
        let Some(names) = block.place.strip_suffix(suffix) else { continue };
        let nodes: Option<Vec<Node>> = names.split(' ').map(|name| name.parse().ok()).collect();
        for node in nodes.unwrap_or_default() {
            println!("   {} on {node}: {}", block.at, block.commands.lines().next().unwrap_or_default());
            let commands = fitted(lab, &block.commands)?;
            let done = host::output(lab, node, &["bash", "-e", "-c", &format!("cd {CLONE}\n{commands}")])?;
            if !done.ok {
                return Err(format!("{} on {node} failed: {}", block.at, done.text().trim()).into());
            }
            let warnings = pcs::warnings(&done.text());
            if !warnings.is_empty() {
                return Err(format!("{} on {node}: {}", block.at, warnings.join("; ")).into());
            }
        }
    }
    Ok(())
}

/// Returns the commands as the guide prints them. Adds `oom=0` if this machine cannot lower a process' OOM score.
fn fitted(lab: &Lab, commands: &str) -> Result<String> {
    const LAST_PARAMETER: &str = "key_file=/etc/etcd/etcd.key ";
    let lowered = host::output(lab, Node::One, &["sh", "-c", "echo -997 > /proc/self/oom_score_adj"])?;
    let more = format!("{LAST_PARAMETER}oom=0 ");
    Ok(if lowered.ok { commands.to_owned() } else { commands.replace(LAST_PARAMETER, &more) })
}

/// Prepares what the guides require of a node: packages, certificates, the BMCs' password and an image. Nothing of
/// Tandem is installed.
fn make_ready(lab: &Lab, node: Node) -> Result<()> {
    let remove = "rm /usr/sbin/tandem /usr/sbin/fence_redfish_rs /usr/lib/ocf/resource.d/tandem/podman-etcd";
    host::must(lab, node, &["sh", "-c", remove])?;
    sh::run("cp", &[Path::new("--archive"), &release::root(lab).join("var/lib/dpkg"), &lab.disk(node, "var-lib")])?;
    let packages = lab.disk(node, "var-tmp").join("target/packages");
    sh::make_dir(&packages)?;
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("target/packages"))
        .map_err(|error| format!("target/packages: {error}; type 'make package'"))?
    {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            sh::run("cp", &[path.as_path(), &packages])?;
        }
    }
    let etc = lab.disk(node, "etc");
    sh::run("cp", &[Path::new("--archive"), &etc.join("tandem"), &etc.join("etcd")])?;
    fs::set_permissions(etc.join("etcd"), fs::Permissions::from_mode(0o700))?;
    tls::write_secret(&etc.join("tandem/bmc-password"), BMC_PASSWORD.as_bytes())?;
    let image = image::name(&lab.setting("etcd").unwrap_or_default());
    host::must(lab, node, &["podman", "tag", &image, "registry.example.com/etcd:v3.5"]).map(drop)
}

/// Runs the lines with which other programs stop a node, each in a shell as these programs do. A fake `shutdown`
/// takes the place of the real one. A node may be stopped only if the other one can continue.
pub(super) fn automation(lab: &Lab) -> Result<()> {
    const REBOOTED: &str = "/run/lab-rebooted";
    let line =
        |mark: &str| AUTOMATION.lines().find_map(|line| line.strip_prefix(mark)).ok_or(format!("no line '{mark}'"));
    let (reboot, sentinel) = (line("reboot_command = ")?, line("- --reboot-sentinel-command=")?);
    let reboot = format!("shutdown() {{ echo \"$@\" > {REBOOTED}; }}; {reboot}");
    let soon = reboot.replace("timeout 2h", "timeout 5");
    if soon == reboot {
        return Err("the line of dnf-automatic has another limit than 2h".into());
    }
    let ends_well = |text: &str| host::output(lab, Node::Two, &["sh", "-c", text]).map(|output| output.ok);
    let must = |what: &str, text: &str, expected: bool| -> Result<()> {
        if ends_well(text)? == expected { Ok(()) } else { Err(format!("{what}: {text}").into()) }
    };
    must("nothing asks for a reboot", sentinel, false)?;
    host::must(lab, Node::Two, &["touch", "/var/run/reboot-required"])?;
    must("a node may be stopped beside one that could continue alone", sentinel, true)?;
    must("it is rebooted then", &format!("{reboot} && grep -qx -- '-r now' {REBOOTED} && rm {REBOOTED}"), true)?;
    pcs::run(lab, Node::One, &["node", "standby", "node1"])?;
    super::steps::wait_alone(lab, Node::Two)?;
    must("the only voter may not be stopped", sentinel, false)?;
    must("nor is it rebooted", &soon, false)?;
    must("nothing has rebooted it", &format!("test ! -e {REBOOTED}"), true)?;
    pcs::run(lab, Node::One, &["node", "unstandby", "node1"])?;
    etcd::wait_two_voters(lab, Duration::from_secs(120))?;
    crate::cluster::redundant::wait(lab)
}
