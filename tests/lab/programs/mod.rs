//! The program on a host, and its replacement while it is in use.

pub mod debian;
pub mod etcdctl;
pub mod faulty;
pub mod fence_agents;
pub mod image;
pub mod kubernetes;
pub mod patroni;
pub mod release;
pub mod shell_agent;

use std::path::{Path, PathBuf};

use crate::host;
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::sh::Result;

/// A script that installs its standard input as `/usr/sbin/tandem`, where the package puts it. It works even while
/// that program runs.
const PUT: &str = "cd /usr/sbin && cat > tandem.new && chmod 755 tandem.new && mv tandem.new tandem";

/// Returns the path of the tested `tandem`: the file that `TANDEM_BIN` names, or else the program that was built with
/// the lab.
pub fn tested() -> PathBuf {
    std::env::var_os("TANDEM_BIN").map_or_else(|| env!("CARGO_BIN_EXE_tandem").into(), PathBuf::from)
}

/// Returns the paths of Tandem's Debian packages that `TANDEM_DEB` names, separated by spaces. `None` if it is not
/// set.
pub fn packages() -> Option<Vec<PathBuf>> {
    let names = std::env::var("TANDEM_DEB").ok()?;
    Some(names.split_whitespace().map(PathBuf::from).collect())
}

/// Installs the file `program` as `tandem` on `node`, as an upgrade of the package does.
pub fn put(lab: &Lab, node: Node, program: &Path) -> Result<()> {
    host::feed(lab, node, &["sh", "-c", PUT], program)
}
