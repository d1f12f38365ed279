//! The image that etcd's container was made from, and the one that the parameters name.

use serde::{Deserialize, Serialize};

use super::Version;

/// The image that a running etcd has, as this node publishes it; it decides nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RunningImage {
    pub image: String,
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    /// The image that the parameters name, where it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NextImage>,
}

/// The image of the next start.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NextImage {
    pub image: String,
    /// `None` where the node does not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
}

impl RunningImage {
    /// Returns whether nothing but `image` is known to matter, so that podman need not be asked again.
    pub fn is_settled(&self, image: &str) -> bool {
        self.image == image && self.next.is_none()
    }
}
