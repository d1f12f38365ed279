//! Command lines that call the agent by hand as Pacemaker calls it, with the resource's own parameters.

use std::time::Duration;

use crate::cluster;
use crate::host;
use crate::host::node::Node;
use crate::host::state::Lab;
use crate::sh::Result;

/// Returns a shell command line that calls the agent's recurring `monitor` on `node` as Pacemaker would, with `level`
/// as `OCF_CHECK_LEVEL`.
pub fn monitor(lab: &Lab, node: Node, level: u32) -> Result<String> {
    let how = format!("OCF_CHECK_LEVEL={level} OCF_RESKEY_CRM_meta_interval=30000 OCF_RESKEY_CRM_meta_timeout=25000");
    action(lab, node, "monitor", &how)
}

/// Returns a shell command line that calls the agent's `stop` on `node` as Pacemaker would, with `limit` as the
/// time-out.
pub fn stop(lab: &Lab, node: Node, limit: Duration) -> Result<String> {
    action(lab, node, "stop", &format!("OCF_RESKEY_CRM_meta_timeout={}", limit.as_millis()))
}

fn action(lab: &Lab, node: Node, name: &str, how: &str) -> Result<String> {
    let xml = host::must(lab, node, &["cibadmin", "--query", "--scope", "resources"])?;
    let document = roxmltree::Document::parse(&xml)?;
    let primitive = document
        .descendants()
        .find(|element| element.has_tag_name("primitive") && element.attribute("id") == Some(cluster::ETCD))
        .ok_or("there is no etcd resource")?;
    let provider = primitive.attribute("provider").unwrap_or_default();
    let mut words = vec!["env".to_owned(), "OCF_ROOT=/usr/lib/ocf".to_owned()];
    words.push(format!("OCF_RESOURCE_INSTANCE={} OCF_RESKEY_CRM_meta_on_node={node} {how}", cluster::ETCD));
    let parameters = primitive.children().filter(|child| child.has_tag_name("instance_attributes"));
    for pair in parameters.flat_map(|set| set.children()).filter(|pair| pair.has_tag_name("nvpair")) {
        let (name, value) = (pair.attribute("name").unwrap_or_default(), pair.attribute("value").unwrap_or_default());
        words.push(format!("'OCF_RESKEY_{name}={value}'"));
    }
    words.push(format!("/usr/lib/ocf/resource.d/{provider}/podman-etcd {name}"));
    Ok(words.join(" "))
}
