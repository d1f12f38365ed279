//! Debian's own fence agents from its package, for hosts of the machine's own release.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::host;
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::programs::debian::{self, CACHE};
use crate::programs::release;
use crate::sh::{self, Result};

const SUITE: &str = "bookworm";
/// Debian's packages of the fence agents, and of what these agents import and run.
const PACKAGES: &[&str] = &["fence-agents", "iputils-ping", "python3-pexpect", "python3-ptyprocess", "python3-pycurl"];
/// The files of [`PACKAGES`] that a host gets. They do not include `fence_redfish`, because the host has Tandem's.
const FILES: [&str; 4] = ["bin/ping", "usr/sbin/fence_heuristics_ping", "usr/share/fence", "usr/lib/python3"];

/// Installs `fence_heuristics_ping` on a running host.
pub fn install(lab: &Lab, node: Node) -> Result<()> {
    if release::root(lab) != Path::new("/") {
        return Err("the lab has Debian's fence agents for hosts of the machine's own release only".into());
    }
    let mut pack = Command::new("tar");
    let mut packed = pack.arg("-C").arg(tree()?).arg("-c").args(FILES).stdout(Stdio::piped()).spawn()?;
    let stream = packed.stdout.take().ok_or("tar has no output")?;
    let done = host::command(lab, node, &["tar", "-C", "/", "-x"])?.stdin(stream).output()?;
    if packed.wait()?.success() && done.status.success() {
        return Ok(());
    }
    Err(format!("{node} does not take the files: {}", String::from_utf8_lossy(&done.stderr)).into())
}

/// Returns the directory with the unpacked packages. The first call makes it.
fn tree() -> Result<PathBuf> {
    let tree = Path::new(CACHE).join("fence-heuristics-ping");
    if tree.is_dir() {
        return Ok(tree);
    }
    println!("fetching Debian's fence agents");
    let work = Path::new(CACHE).join(format!("work-fence-agents-{}", std::process::id()));
    sh::make_dir(&work)?;
    let made = debian::unpack(SUITE, PACKAGES, &work).and_then(|()| Ok(fs::rename(work.join("unpacked"), &tree)?));
    let _ = fs::remove_dir_all(&work);
    made.map_err(|error| format!("cannot fetch Debian's fence agents: {error}"))?;
    Ok(tree)
}
