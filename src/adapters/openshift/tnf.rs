//! The etcd operator's objects of Two Node OpenShift with Fencing: its own jobs, which set a cluster up, and the Secrets with
//! each node's BMC.

use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use serde::Deserialize;
use serde_json::Value;
use zeroize::Zeroizing;

use super::fencing_secret::find;
use crate::adapters::kubernetes::api::{body, connect};
use crate::base::{Fact, json};

pub(super) const JOBS: &str = "/apis/batch/v1/namespaces/openshift-etcd/jobs";
pub(super) const SECRETS: &str = "/api/v1/namespaces/openshift-etcd/secrets/";
/// The prefix of the names of jobs that belong to the etcd operator itself.
const OF_THE_OPERATOR: &str = "tnf-";
const CREDENTIALS: &str = "fencing-credentials-";

/// The address and the credentials of a node's BMC, from its fencing Secret.
pub struct Credentials {
    /// The options for the fence agent, each with its name and value, without the password.
    pub options: Vec<(String, String)>,
    pub password: Zeroizing<String>,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").field("options", &self.options).finish_non_exhaustive()
    }
}

/// Returns the names of the etcd operator's own jobs; `Absent` where there is no kubeconfig.
pub fn jobs(kubeconfig: &Path, patience: Duration) -> Fact<Vec<String>> {
    if !kubeconfig.exists() {
        return Fact::Absent;
    }
    let asked = connect(kubeconfig, patience)
        .and_then(|(agent, access)| body(&agent, &access, JOBS)?.ok_or_else(|| "the API has no jobs".to_owned()))
        .and_then(|text| of_the_operator(&text));
    asked.map_or_else(Fact::Unknown, Fact::Known)
}

fn of_the_operator(json: &str) -> Result<Vec<String>, String> {
    let document: Value = json::from_text(json).map_err(|error| error.to_string())?;
    let jobs = document.get("items").and_then(Value::as_array).ok_or("the API's list of jobs is none")?;
    let names = jobs.iter().filter_map(|job| job.pointer("/metadata/name")?.as_str());
    let names = names.filter(|name| name.starts_with(OF_THE_OPERATOR)).map(str::to_owned);
    Ok(names.collect())
}

/// Reads the BMC's address and credentials from the fencing Secret of `node`. The error text describes what is wrong with the
/// Secret.
pub fn credentials(kubeconfig: &Path, node: &str, patience: Duration) -> Result<Credentials, String> {
    let name = format!("{CREDENTIALS}{node}");
    let complete = |why: String| {
        format!(
            "the Secret {name} in openshift-etcd is of no use: {why}: see 'oc --namespace openshift-etcd get secrets'"
        )
    };
    let text = secret(kubeconfig, (node, None), patience).map_err(complete)?;
    let text = text.ok_or_else(|| complete("there is none".to_owned()))?;
    read(&text).map_err(complete)
}

/// Reads the BMC's address and credentials from the fencing Secret of `node`. If no Secret has the node's name, finds it by the BMC's
/// `host`. The result is `Absent` if there is no kubeconfig, or if no node has such a Secret.
pub fn secret_of(kubeconfig: &Path, (node, host): (&str, Option<&str>), patience: Duration) -> Fact<Credentials> {
    if !kubeconfig.exists() {
        return Fact::Absent;
    }
    match secret(kubeconfig, (node, host), patience).and_then(|text| text.map(|text| read(&text)).transpose()) {
        Ok(Some(credentials)) => Fact::Known(credentials),
        Ok(None) => Fact::Absent,
        Err(why) => Fact::Unknown(why),
    }
}

fn secret(
    kubeconfig: &Path,
    (node, host): (&str, Option<&str>),
    patience: Duration,
) -> Result<Option<Zeroizing<String>>, String> {
    let (agent, access) = connect(kubeconfig, patience)?;
    if let Some(text) = body(&agent, &access, &find::named(node))? {
        return Ok(Some(text));
    }
    find::search(&agent, &access, node, host)?.map_or(Ok(None), |path| body(&agent, &access, &path))
}

#[derive(Deserialize)]
struct Secret {
    data: Data,
}

/// The fields of a fencing Secret, each in base64.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    address: Zeroizing<String>,
    username: Zeroizing<String>,
    password: Zeroizing<String>,
    certificate_verification: Zeroizing<String>,
}

/// Parses a fencing Secret. The error text does not quote the Secret, because the quoted part may be the password.
fn read(json: &str) -> Result<Credentials, String> {
    let secret: Secret = json::from_text(json)
        .map_err(|_| "it needs address, username, password and certificateVerification".to_owned())?;
    let data = secret.data;
    let text = |name: &str, value: &str| {
        let bytes = base64::engine::general_purpose::STANDARD.decode(value.trim()).map(Zeroizing::new);
        let text =
            bytes.ok().and_then(|bytes| std::str::from_utf8(&bytes).ok().map(|text| Zeroizing::new(text.to_owned())));
        text.filter(|text| !text.trim().is_empty()).ok_or_else(|| format!("its {name} is no text in base64"))
    };
    let insecure = match text("certificateVerification", &data.certificate_verification)?.trim() {
        "Enabled" => "0",
        "Disabled" => "1",
        _ => return Err("its certificateVerification is neither Enabled nor Disabled".to_owned()),
    };
    let mut options = vec![("username".to_owned(), text("username", &data.username)?.trim().to_owned())];
    options.extend(redfish_address(text("address", &data.address)?.trim())?);
    options.push(("ssl_insecure".to_owned(), insecure.to_owned()));
    Ok(Credentials { options, password: text("password", &data.password)? })
}

/// Returns the fence agent's options for a BMC's address, which is `redfish+https://HOST[:PORT]/redfish/v1/Systems/ID`.
pub fn redfish_address(text: &str) -> Result<Vec<(String, String)>, String> {
    let wrong = || format!("the address '{text}' is not 'redfish+https://HOST[:PORT]/redfish/v1/Systems/ID'");
    let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
    let (port, more) = match scheme {
        "redfish+https" | "redfish" => ("443", None),
        "redfish+http" => ("80", Some(("ssl".to_owned(), "0".to_owned()))),
        _ => return Err(wrong()),
    };
    let (host, path) = rest.split_once('/').ok_or_else(wrong)?;
    let colon = host.rfind(':').filter(|at| !host.get(*at..).unwrap_or_default().contains(']'));
    let (host, port) = match colon {
        Some(at) => (host.get(..at).unwrap_or_default(), host.get(at + 1..).unwrap_or_default()),
        None => (host, port),
    };
    let is_port = port.parse::<u16>().is_ok_and(|port| port != 0);
    if host.is_empty() || host.contains(['@', ' ']) || !is_port || !path.starts_with("redfish/") {
        return Err(wrong());
    }
    let options = [("ip", host.to_owned()), ("ipport", port.to_owned()), ("systems_uri", format!("/{path}"))];
    Ok(options.map(|(name, value)| (name.to_owned(), value)).into_iter().chain(more).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::adapters::kubernetes::kubeconfig::for_server;
    use crate::adapters::openshift::machines::fake_api::FakeApi;

    fn secret(pairs: &[(&str, &str)]) -> String {
        let encode = |value: &str| base64::engine::general_purpose::STANDARD.encode(value);
        let data: serde_json::Map<_, _> =
            pairs.iter().map(|(name, value)| ((*name).to_owned(), Value::String(encode(value)))).collect();
        json!({ "kind": "Secret", "data": data }).to_string()
    }

    const GOOD: [(&str, &str); 4] = [
        ("address", "redfish+https://[fd00::5]:8443/redfish/v1/Systems/4c4c4544-0042"),
        ("username", "admin"),
        ("password", "hunter=2 & more"),
        ("certificateVerification", "Disabled"),
    ];

    #[test]
    fn a_secret_becomes_the_options_of_the_agent() {
        let read = read(&secret(&GOOD)).unwrap();
        let options: Vec<_> = read.options.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let expected =
            "username=admin ip=[fd00::5] ipport=8443 systems_uri=/redfish/v1/Systems/4c4c4544-0042 ssl_insecure=1";
        assert_eq!(options.join(" "), expected);
        assert_eq!(read.password.as_str(), "hunter=2 & more");
        assert!(!format!("{read:?}").contains("hunter"));
    }

    #[test]
    fn the_secret_of_a_node_is_read_and_none_is_no_failure() {
        let (dir, api) = (tempfile::tempdir().unwrap(), FakeApi::start(true));
        let kubeconfig = for_server(&dir, &api.server);
        let ask = |node: &str| secret_of(&kubeconfig, (node, None), Duration::from_secs(5));
        assert!(ask("node1").is_absent());
        let object: Value = serde_json::from_str(&secret(&GOOD)).unwrap();
        api.make(&format!("{SECRETS}fencing-credentials-node1"), object);
        let Fact::Known(read) = ask("node1") else { panic!() };
        assert_eq!(read.password.as_str(), "hunter=2 & more");
        assert!(
            matches!(ask("node2"), Fact::Unknown(_)),
            "another node has one, and which is this node's is not known"
        );
        api.fail(1, "503 Service Unavailable");
        assert!(matches!(ask("node1"), Fact::Unknown(_)));
        assert!(secret_of(Path::new("/nonexistent"), ("node1", None), Duration::from_secs(1)).is_absent());
    }

    #[test]
    fn what_is_wrong_with_a_secret_is_said_and_the_password_is_not() {
        let mut other = GOOD;
        other[3].1 = "perhaps";
        assert!(read(&secret(&other)).unwrap_err().contains("neither Enabled nor Disabled"));
        assert!(read(&secret(&GOOD[..3])).unwrap_err().contains("needs address"));
        let raw = secret(&GOOD).replace("aHVudGVyPTIgJiBtb3Jl", "hunter=2!");
        let why = read(&raw).unwrap_err();
        assert!(why.contains("its password is no text") && !why.contains("hunter"), "{why}");
    }

    #[test]
    fn addresses_are_read_with_and_without_a_port() {
        let options = |text: &str| {
            let options = redfish_address(text)?;
            Ok::<_, String>(options.iter().map(|(_, value)| value.clone()).collect::<Vec<_>>().join(" "))
        };
        let path = "/redfish/v1/Systems/1";
        for (address, expected) in [
            (format!("redfish+https://bmc.example{path}"), format!("bmc.example 443 {path}")),
            (format!("redfish+https://192.0.2.1:8443{path}"), format!("192.0.2.1 8443 {path}")),
            (format!("redfish+http://192.0.2.1{path}"), format!("192.0.2.1 80 {path} 0")),
            (format!("redfish+https://[fd00::5]{path}"), format!("[fd00::5] 443 {path}")),
        ] {
            assert_eq!(options(&address), Ok(expected));
        }
        for wrong in [
            "192.0.2.1",
            "https://192.0.2.1/redfish/v1/Systems/1",
            "redfish+https://192.0.2.1",
            "redfish+https:///redfish/v1/Systems/1",
            "redfish+https://u:p@192.0.2.1/redfish/v1/Systems/1",
            "redfish+https://192.0.2.1:0/redfish/v1/Systems/1",
            "redfish+https://192.0.2.1/api",
        ] {
            assert!(options(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_the_operators_own_jobs_count() {
        let job = |name: &str| json!({ "metadata": { "name": name } });
        let jobs =
            json!({ "items": [job("tnf-setup-job"), job("pacemaker-status-collector-1"), job("tnf-auth-job-1")] });
        assert_eq!(of_the_operator(&jobs.to_string()).unwrap(), ["tnf-setup-job", "tnf-auth-job-1"]);
        assert_eq!(of_the_operator("{\"items\": []}"), Ok(Vec::new()));
        assert!(of_the_operator("{}").is_err() && of_the_operator("half").is_err());
        assert!(super::jobs(Path::new("/nonexistent/kubeconfig"), Duration::from_secs(1)).is_absent());
        assert!(credentials(Path::new("/nonexistent/kubeconfig"), "node1", Duration::from_secs(1)).is_err());
    }
}
