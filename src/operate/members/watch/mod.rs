//! Upkeep of the hooks on the voters' Machines, turn by turn. A voter's Machine has a hook until it is being deleted and a majority
//! confirms that its node has no member. Nothing is promoted, removed or deleted.

mod due;
mod memory;
mod owners;
#[cfg(test)]
mod tests;
mod told;
mod turn;

use std::path::Path;

pub use self::due::Due;
pub use self::memory::PATH;
pub use self::told::events;
pub use self::turn::Kept;
use super::look;
use super::source::{Source, Target};
use crate::adapters::openshift::machine::PATIENCE;
use crate::adapters::openshift::machines::Machines;
use crate::agent::resource::context::Context;
use crate::operate::failure::Failure;

/// Sets and removes the deletion hooks of Machines once, for the etcd that the operator typed.
pub fn of_target(target: &Target, path: &Path) -> Result<Kept, Failure> {
    once(target.source()?, path, true)
}

/// Sets and removes the deletion hooks of Machines once, for this node's pair. If `writes` is false, only finds replacements to propose.
pub fn of_pair(context: &Context, path: &Path, writes: bool) -> Result<Kept, Failure> {
    once(Source::of_pair(context), path, writes)
}

/// Sets and removes the deletion hooks of Machines once. The Machines are read before the members, because [`turn::turn`] depends on that
/// order.
fn once(mut source: Source, path: &Path, writes: bool) -> Result<Kept, Failure> {
    let Some(kubeconfig) = source.kubeconfig.take() else {
        return Err(Failure("no API is known that makes Machines: name its '--kubeconfig FILE'".to_owned()));
    };
    let mut machines = Machines::read(&kubeconfig, PATIENCE).map_err(Failure)?;
    let seen = look::look(&source)?;
    turn::turn(&mut machines, &seen, path, writes)
}
