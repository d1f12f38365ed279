//! A call to a node on which an operator types `tandem setup join`.

use std::net::SocketAddr;
use std::time::Duration;

use super::{Call, Credentials, Patience, connect, join_file, port};
use crate::operate::failure::Failure;
use crate::operate::setup::description::Description;
use crate::operate::talk::Progress;
use crate::os::clock::{self, Deadline};

/// Connects to the node other than the one at index `at`. Writes its join file, and waits until the operator has typed
/// 'tandem setup join' there.
pub fn joined(
    description: &Description,
    at: usize,
    patience: Duration,
    progress: &dyn Progress,
) -> Result<Call, Failure> {
    let (join, credentials) = join_file::make(description, at, false, clock::wall_seconds())?;
    let other = &description.nodes[1 - at];
    let address = SocketAddr::new(other.address, port(description));
    by_hand(&join, &other.name, address, &credentials, patience, progress)
}

/// Writes the join file `join`, and waits until the node `other` uses it. Then deletes the file and returns the
/// connection.
pub fn by_hand(
    join: &join_file::Join,
    other: &str,
    address: SocketAddr,
    credentials: &Credentials,
    patience: Duration,
    progress: &dyn Progress,
) -> Result<Call, Failure> {
    join.write()?;
    let path = join.path();
    progress.keep(&format!(
        "copy {0} to {other}, such as with 'scp {0} root@{other}:/etc/tandem/', and type there: tandem setup join {0}",
        path.display()
    ));
    progress.say(&format!("waits for 'tandem setup join' on {other}"));
    let reached = connect(other, address, credentials, Patience::default(), Deadline::after(patience), || Ok(()));
    // The file is useless now, because the first node's half of the keys ends with this command.
    let removed = std::fs::remove_file(&path);
    if let Err(error) = removed.as_ref().map_err(ToString::to_string) {
        progress.keep(&format!("warning: {} cannot be deleted: {error}", path.display()));
    }
    reached.map_err(Failure::from)
}
