//! Where Corosync's configuration is on a node, and how much of it is read at most: for all that ask what is in it.

use std::io;
use std::path::Path;

use crate::os::regular_file;

pub const PATH: &str = "/etc/corosync/corosync.conf";
/// No configuration is larger.
const LIMIT: u64 = 1024 * 1024;

/// The text of this node's.
pub fn text() -> io::Result<String> {
    text_at(Path::new(PATH))
}

pub(crate) fn text_at(path: &Path) -> io::Result<String> {
    regular_file::text_of_at_most(path, LIMIT)
}
