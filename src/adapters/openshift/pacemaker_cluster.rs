//! OpenShift's object `cluster` of kind `PacemakerCluster`: when its status was written last, and another status for it.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::adapters::kubernetes::api::{CONFLICT, authorised, body, connect, words};
use crate::adapters::kubernetes::kubeconfig::Access;
use crate::base::json;

pub(crate) const OBJECT: &str = "/apis/etcd.openshift.io/v1/pacemakerclusters/cluster";
const OK: u16 = 200;

/// OpenShift's object `cluster` of kind `PacemakerCluster`, as it was read, with the access to write its status.
#[derive(Debug)]
pub struct Object {
    agent: ureq::Agent,
    access: Access,
    version: String,
    value: Value,
}

impl Object {
    /// Reads the object from the Kubernetes API; `None` if the cluster has none.
    pub fn read(kubeconfig: &Path, patience: Duration) -> Result<Option<Self>, String> {
        let (agent, access) = connect(kubeconfig, patience)?;
        let Some(text) = body(&agent, &access, OBJECT)? else { return Ok(None) };
        let value: Value =
            json::from_text(&text).map_err(|_| "the API's PacemakerCluster is not understood".to_owned())?;
        let version = value.pointer("/metadata/resourceVersion").and_then(Value::as_str);
        let version = version.ok_or("the API names no version of its PacemakerCluster")?.to_owned();
        Ok(Some(Self { agent, access, version, value }))
    }

    /// Returns the JSON of the whole object.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Returns `status.lastUpdated`, the time at which the status was last written; `None` if the object has no status yet.
    pub fn last_updated(&self) -> Option<&str> {
        self.value.pointer("/status/lastUpdated").and_then(Value::as_str)
    }

    /// Writes `status` to the object. Returns `false` if another client has changed the object since it was read.
    pub fn write(&self, status: &Value) -> Result<bool, String> {
        let patch = json!({"metadata": {"resourceVersion": self.version}, "status": status});
        let request = authorised(self.agent.patch(format!("{}{OBJECT}/status", self.access.server)), &self.access);
        let request = request.header("Content-Type", "application/merge-patch+json");
        let answer = request.send(patch.to_string().as_bytes()).map_err(|error| words(&error, &self.access))?;
        match answer.status().as_u16() {
            OK => Ok(true),
            CONFLICT => Ok(false),
            status => Err(format!("the API answers {status}")),
        }
    }
}
