//! Queries to both etcds over TLS, with the credentials that the resource on this node is configured with.

use std::collections::BTreeMap;

use super::{Etcd, Member};
use crate::adapters::etcd::blocking;
use crate::adapters::etcd::client::{Credentials, Endpoint};
use crate::adapters::etcd::settings;
use crate::adapters::etcd::shown::{self, Shown};
use crate::adapters::etcd::status::{Patience, Status};
use crate::adapters::https::shown::end;
use crate::adapters::pace::limits::Limits;
use crate::adapters::pacemaker::resource::Configured;
use crate::adapters::pacemaker::seen::Configuration;
use crate::agent::resource::context;
use crate::agent::resource::deployment::{Deployment, Manifests};
use crate::agent::resource::params::{self, Params};
use crate::base::Fact;

/// Prefix of an alarm's kind among the errors in etcd's status, as in `memberID:10501334649042878790 alarm:NOSPACE`.
const ALARM: &str = "alarm:";

/// The configuration of etcd on this node: the parameters of its resource, and the deployment that follows from these.
#[derive(Clone, Debug)]
pub(super) struct Here {
    pub(super) params: Params,
    pub(super) deployment: Deployment,
}

/// Resolves the parameters of the etcd resource as the agent on the node `here` would.
pub(super) fn resolve(configuration: &Configuration, here: &str) -> Result<Here, String> {
    let Some(etcd) = &configuration.etcd else {
        return Err(match configuration.etcd_resources.as_slice() {
            [] => "this cluster has no podman-etcd resource".to_owned(),
            several => format!("which podman-etcd resource is meant is not known: there are {}", several.join(", ")),
        });
    };
    let configured = Configured {
        id: etcd.id.clone(),
        parameters: etcd.parameters.clone().into_iter().collect(),
        promotable: etcd.promotable,
    };
    let params = params::parse(&configured.env()).map_err(|invalid| invalid.sentence)?;
    let deployment =
        Deployment::resolve(&params, here, Manifests::CurrentOrSaved).map_err(|invalid| invalid.sentence)?;
    Ok(Here { params, deployment })
}

/// An etcd to query: its endpoint, the credentials for the query, and the configured quota.
#[derive(Clone, Debug)]
pub(super) struct Place {
    endpoint: Endpoint,
    credentials: Credentials,
    quota_bytes: u64,
}

/// Returns the address and credentials of each configured node's etcd. The value is an error for a node that `node_ip_map` does not name.
pub(super) fn places(configuration: &Configuration, here: &Here) -> BTreeMap<String, Result<Place, String>> {
    let unnamed = |node: &String| (node.clone(), Err(format!("node_ip_map does not name {node}")));
    let mut places: BTreeMap<_, _> = configuration.nodes.iter().map(unnamed).collect();
    for node in &here.params.nodes {
        let place = Place {
            endpoint: context::endpoint(node.ip, here.params.client_port),
            credentials: here.deployment.credentials.clone(),
            quota_bytes: settings::quota_bytes(&here.deployment.settings),
        };
        places.insert(node.name.clone(), Ok(place));
    }
    places
}

/// Reads the certificate that an etcd presents, then queries its status.
pub(super) fn ask(place: &Place, limits: &Limits) -> Fact<Etcd> {
    let (endpoint, credentials) = (&place.endpoint, &place.credentials);
    let certificate_ends = match shown::certificate(endpoint, credentials, limits.connect, limits.certificate) {
        Shown::Certificate(der) => end(&der),
        Shown::Nobody => return Fact::Absent,
        Shown::Silence(why) => return Fact::Unknown(why),
        Shown::Failure(_) => None,
    };
    let status = blocking::status(endpoint, credentials, Patience { state: limits.etcd, read: limits.read });
    status.map(|status| etcd(status, place.quota_bytes, certificate_ends))
}

fn etcd(status: Status, configured_quota: u64, certificate_ends: Option<u64>) -> Etcd {
    let member = |member: &crate::decide::evidence::Member| Member {
        id: hexadecimal(member.id),
        name: member.name.clone(),
        learner: member.is_learner,
        peer_urls: member.peer_urls.clone(),
    };
    Etcd {
        version: status.version,
        cluster_id: hexadecimal(status.cluster_id),
        member_id: hexadecimal(status.member_id),
        leader: status.leader.map(hexadecimal),
        term: status.term,
        index: status.index,
        applied: status.applied,
        learner: status.is_learner,
        db_bytes: status.db_bytes,
        db_in_use_bytes: status.db_in_use_bytes,
        quota_bytes: Some(status.quota_bytes.unwrap_or(configured_quota)),
        alarms: alarms(&status.errors),
        members: status.members.iter().map(member).collect(),
        reads: status.reads,
        millis: u64::try_from(status.took.as_millis()).unwrap_or(u64::MAX),
        certificate_ends,
    }
}

/// Formats a member's or cluster's id in hexadecimal, as etcdctl does.
fn hexadecimal(id: u64) -> String {
    format!("{id:x}")
}

/// Returns the kinds of the alarms in etcd's status, such as `NOSPACE`, each once.
fn alarms(errors: &[String]) -> Vec<String> {
    let words = errors.iter().flat_map(|error| error.split_whitespace());
    let mut kinds: Vec<String> = words.filter_map(|word| word.strip_prefix(ALARM)).map(str::to_owned).collect();
    kinds.sort();
    kinds.dedup();
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::pacemaker::seen::Resource;

    fn configuration(parameters: &[(&str, &str)]) -> Configuration {
        let parameters = parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Configuration {
            nodes: vec!["node1".to_owned(), "node3".to_owned()],
            etcd: Some(Resource { id: "etcd".to_owned(), parameters, ..Resource::default() }),
            etcd_resources: vec!["etcd".to_owned()],
            ..Configuration::default()
        }
    }

    const PARAMETERS: [(&str, &str); 5] = [
        ("node_ip_map", "node1:192.0.2.1;node2:[2001:db8::2]"),
        ("image", "etcd:test"),
        ("trusted_ca_file", "/etc/tandem/ca.crt"),
        ("cert_file", "/etc/tandem/etcd.crt"),
        ("key_file", "/etc/tandem/etcd.key"),
    ];

    #[test]
    fn an_etcd_is_where_the_map_says_and_a_node_that_it_lacks_is_unknown() {
        let configuration = configuration(&[&PARAMETERS[..], &[("client_port", "4001")]].concat());
        let here = resolve(&configuration, "node1").unwrap();
        let places = places(&configuration, &here);
        let url = |node: &str| places[node].as_ref().map(|place| place.endpoint.url.clone()).map_err(String::clone);
        assert_eq!(url("node1"), Ok("https://192.0.2.1:4001".to_owned()));
        assert_eq!(url("node2"), Ok("https://[2001:db8::2]:4001".to_owned()));
        assert_eq!(url("node3"), Err("node_ip_map does not name node3".to_owned()));
        let place = places["node1"].as_ref().unwrap();
        assert_eq!(place.credentials.cert_file.to_str(), Some("/etc/tandem/etcd.crt"));
        assert_eq!(place.quota_bytes, 2 << 30);
    }

    #[test]
    fn without_one_resource_or_with_a_wrong_one_nobody_is_asked_and_why_is_told() {
        let none = Configuration::default();
        assert_eq!(resolve(&none, "node1").unwrap_err(), "this cluster has no podman-etcd resource");
        let several = Configuration { etcd_resources: vec!["a".to_owned(), "b".to_owned()], ..none };
        assert!(resolve(&several, "node1").unwrap_err().ends_with("there are a, b"));
        let wrong = resolve(&configuration(&PARAMETERS[1..]), "node1").unwrap_err();
        assert!(wrong.starts_with("node_ip_map is not set"), "{wrong}");
    }

    #[test]
    fn who_does_not_listen_is_absent_and_who_says_nothing_is_unknown_in_time() {
        let dir = tempfile::tempdir().unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new(["127.0.0.1".to_owned()]).unwrap().self_signed(&key).unwrap();
        let pair = dir.path().join("pair.pem");
        std::fs::write(&pair, certificate.pem() + &key.serialize_pem()).unwrap();
        let credentials =
            Credentials { trusted_ca_file: pair.clone(), cert_file: pair.clone(), key_file: pair.clone() };
        let silent = crate::os::test_port::listener();
        let address = silent.local_addr().unwrap();
        let endpoint = context::endpoint(address.ip(), address.port());
        let place = Place { endpoint, credentials, quota_bytes: 0 };
        let limits = Limits { certificate: std::time::Duration::from_millis(300), ..Limits::default() };
        let began = crate::os::clock::Deadline::after(limits.whole);
        let answer = ask(&place, &limits);
        assert!(matches!(&answer, Fact::Unknown(why) if why.contains("gave no answer within")), "{answer:?}");
        assert!(began.elapsed() < limits.whole, "{:?}", began.elapsed());
        drop(silent);
        crate::os::test_port::settles(&Fact::Absent, || ask(&place, &limits));
    }

    #[test]
    fn alarms_are_told_by_their_kind_and_other_errors_are_none() {
        let errors = ["memberID:2 alarm:NOSPACE ", "memberID:9 alarm:CORRUPT", "memberID:9 alarm:NOSPACE", "no leader"];
        assert_eq!(alarms(&errors.map(str::to_owned)), ["CORRUPT", "NOSPACE"]);
    }

    #[test]
    fn the_quota_is_etcds_own_word_where_it_says_it() {
        let status = |quota_bytes| Status {
            version: "3.6.1".to_owned(),
            cluster_id: 0xa0,
            member_id: 0x00ff,
            leader: None,
            term: 2,
            index: 8,
            applied: 7,
            is_learner: false,
            db_bytes: 20_480,
            db_in_use_bytes: 16_384,
            quota_bytes,
            errors: Vec::new(),
            members: Vec::new(),
            reads: Fact::NotAsked,
            took: std::time::Duration::from_millis(3),
        };
        let (told, silent) = (etcd(status(Some(5)), 7, Some(9)), etcd(status(None), 7, None));
        assert_eq!((told.quota_bytes, silent.quota_bytes), (Some(5), Some(7)));
        assert_eq!((&*told.member_id, &*told.cluster_id, told.certificate_ends, told.millis), ("ff", "a0", Some(9), 3));
    }
}
