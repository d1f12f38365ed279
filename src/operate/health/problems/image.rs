//! An image in the parameters other than the one that etcd runs from.

use super::Found;
use crate::base::shell::command;
use crate::decide::evidence::RunningImage;
use crate::operate::cluster::Cluster;
use crate::operate::health::view;

pub(super) fn find(cluster: &Cluster, found: &mut Found) {
    for name in view::names(cluster).iter().filter(|name| view::is_online(cluster, name)) {
        if let Some(running) = view::running_image(cluster, name) {
            one(cluster, name, &running, found);
        }
    }
}

fn one(cluster: &Cluster, name: &str, running: &RunningImage, found: &mut Found) {
    let Some(next) = &running.next else { return };
    let (old, new) = (&running.image, &next.image);
    if next.id.is_none() {
        let text = format!(
            "{name} does not have the image {new}, and runs etcd from {old}: if the name is right, type 'podman pull {new}' there"
        );
        let id = view::etcd_id(cluster);
        found.warning("image-not-here", Some(name), text).typed(command!("pcs resource update {} image={}", id, old));
    } else {
        let text = format!("{name} runs etcd from {old} until its next start, which is from {new}");
        found.notice("image-pending", Some(name), text).typed(command!("tandem upgrade {}", new));
    }
}
