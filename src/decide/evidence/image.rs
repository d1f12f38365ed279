//! The image that etcd's container was made from, and the one that the parameters name.

use serde::{Deserialize, Serialize};

use super::Version;

/// Image of the running etcd, which this node publishes for operators. No decision uses it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RunningImage {
    pub image: String,
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    /// Image that the parameters name and that the next start will use; `None` if etcd already runs from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NextImage>,
}

/// Image from which the next start would run etcd.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NextImage {
    pub image: String,
    /// Id of the image; `None` if the node does not have the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
}

impl RunningImage {
    /// Returns whether etcd runs from `image` and no other image is to follow at the next start. The agent then does not query
    /// podman again.
    pub fn is_settled(&self, image: &str) -> bool {
        self.image == image && self.next.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attribute_keeps_its_form() {
        let next = NextImage {
            image: "registry.example.com/etcd:v3.6".to_owned(),
            id: Some("2a0d".to_owned()),
            version: Some(Version { minor: 6, patch: 7 }),
        };
        let least = RunningImage {
            image: "registry.example.com/etcd:v3.5".to_owned(),
            id: "1f0e".to_owned(),
            version: None,
            next: None,
        };
        let whole = RunningImage { version: Some(Version { minor: 5, patch: 21 }), next: Some(next), ..least.clone() };
        for (sample, expected) in [
            (include_str!("../../../tests/data/fixtures/formats/0.1.0/etcd_image.json"), whole),
            (include_str!("../../../tests/data/fixtures/formats/0.1.0/etcd_image-least.json"), least),
        ] {
            assert_eq!(serde_json::from_str::<RunningImage>(sample).unwrap(), expected);
            assert_eq!(serde_json::to_string(&expected).unwrap(), sample.trim_end());
            let later = sample.replace(
                "{\"image\":\"registry.example.com/etcd:v3.5\"",
                "{\"later\":1,\"image\":\"registry.example.com/etcd:v3.5\"",
            );
            assert_eq!(serde_json::from_str::<RunningImage>(&later).unwrap(), expected, "a later version's agent");
        }
    }
}
