//! The argument that names the etcd resource of a command.

use clap::Args;

/// The argument that names a resource, where there are several.
#[derive(Args)]
pub(super) struct ResourceArgument {
    /// Id of the etcd resource; needed only if the cluster has several
    #[arg(long, value_name = "ID")]
    resource: Option<String>,
}

impl ResourceArgument {
    /// Returns the resource's id as typed; `None` if none was typed.
    pub(super) fn id(&self) -> Option<&str> {
        self.resource.as_deref()
    }
}
