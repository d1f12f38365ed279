//! The program on a host, changed while it is in use.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::host;
use crate::node::Node;
use crate::sh::Result;
use crate::state::Lab;

/// Takes a program from standard input to where the package puts it, also where one runs.
const PUT: &str = "cd /usr/sbin && cat > tandem.new && chmod 755 tandem.new && mv tandem.new tandem";

/// The program that is tested: the one that was built with the lab, or the one that `TANDEM_BIN` names.
pub fn tested() -> PathBuf {
    std::env::var_os("TANDEM_BIN").map_or_else(|| env!("CARGO_BIN_EXE_tandem").into(), PathBuf::from)
}

/// Puts `program` in its place on `node`, as a package's upgrade does.
pub fn put(lab: &Lab, node: Node, program: &Path) -> Result<()> {
    // It lies outside of what the host sees: it comes in through a pipe.
    let file = File::open(program).map_err(|error| format!("{}: {error}", program.display()))?;
    let done = host::command(lab, node, &["sh", "-c", PUT])?.stdin(file).output()?;
    if done.status.success() {
        return Ok(());
    }
    Err(format!("{node} does not take the program: {}", String::from_utf8_lossy(&done.stderr).trim()).into())
}
