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

/// A script that installs a program from standard input where the package does, even over a running one.
const PUT: &str = "cd /usr/sbin && cat > tandem.new && chmod 755 tandem.new && mv tandem.new tandem";

/// Returns the tested program: the one that was built with the lab, or the one that `TANDEM_BIN` names.
pub fn tested() -> PathBuf {
    std::env::var_os("TANDEM_BIN").map_or_else(|| env!("CARGO_BIN_EXE_tandem").into(), PathBuf::from)
}

/// Returns Tandem's Debian packages if `TANDEM_DEB` names them, separated by spaces.
pub fn packages() -> Option<Vec<PathBuf>> {
    let names = std::env::var("TANDEM_DEB").ok()?;
    Some(names.split_whitespace().map(PathBuf::from).collect())
}

/// Installs `program` on `node`, as a package's upgrade does.
pub fn put(lab: &Lab, node: Node, program: &Path) -> Result<()> {
    host::feed(lab, node, &["sh", "-c", PUT], program)
}
