//! Members of an etcd for the tests, as their etcds list them.

use super::look::{MembersSeen, assemble};
use crate::adapters::etcd::client::{Credentials, Endpoint};
use crate::adapters::etcd::members::{Heard, Listed, Said};
use crate::decide::members::Newcomer;
use crate::operate::members::source::{Pair, Source, endpoint};

pub(crate) fn url(id: u64, port: u16) -> String {
    format!("https://192.0.2.{id}:{port}")
}

pub(crate) fn at(id: u64) -> Endpoint {
    endpoint(&url(id, 2379)).unwrap()
}

pub(crate) fn source(pair: bool) -> Source {
    let nodes = (1..=2).map(|id| (format!("node{id}"), url(id, 2380))).collect();
    Source {
        endpoints: vec![at(1)],
        credentials: Credentials { trusted_ca_file: "/ca".into(), cert_file: "/cert".into(), key_file: "/key".into() },
        pair: pair.then_some(Pair { nodes }),
        wanted: pair.then_some(2),
        promote_max_lag: 100,
        kubeconfig: None,
        own_lock: None,
    }
}

pub(crate) fn listed(id: u64) -> Listed {
    Listed {
        id: 0xa000_0000_0000_0000 + id,
        name: format!("node{id}"),
        peer_urls: vec![url(id, 2380)],
        client_urls: vec![url(id, 2379)],
        is_learner: false,
    }
}

pub(crate) fn said(id: u64, list: &[Listed]) -> Said {
    Said {
        cluster_id: 0xc1,
        member_id: listed(id).id,
        leader: Some(listed(1).id),
        is_learner: false,
        index: 900,
        applied: 900,
        db_bytes: 350_000_000,
        is_corrupt: false,
        has_no_space: false,
        confirmed: Ok(()),
        list: Some(list.to_vec()),
        change: None,
    }
}

pub(crate) fn heard(id: u64, list: &[Listed]) -> (Endpoint, Heard) {
    (at(id), Heard::Said(Box::new(said(id, list))))
}

pub(crate) fn silent(id: u64) -> (Endpoint, Heard) {
    (at(id), Heard::Nothing(format!("cannot connect to 192.0.2.{id}:2379: connection refused")))
}

/// Returns an observation of three voters, and of a learner that lags by 60 entries.
pub(crate) fn three_and_a_learner() -> MembersSeen {
    let learner = Listed { is_learner: true, ..listed(4) };
    let list = [listed(1), listed(2), listed(3), learner];
    let behind = Said { is_learner: true, index: 840, applied: 840, list: None, ..said(4, &list) };
    let unknown = (at(3), Heard::Unknown("cannot read /key: permission denied".to_owned()));
    let answers = [heard(1, &list), heard(2, &list), unknown, (at(4), Heard::Said(Box::new(behind)))];
    assemble(&source(false), &said(1, &list), &answers)
}

/// Returns an observation of three voters, the last of which does not answer.
pub(crate) fn one_of_three_dead() -> MembersSeen {
    let list = [listed(1), listed(2), listed(3)];
    assemble(&source(false), &said(1, &list), &[heard(1, &list), heard(2, &list), silent(3)])
}

pub(crate) fn pair() -> MembersSeen {
    let list = [listed(1), listed(2)];
    assemble(&source(true), &said(1, &list), &[heard(1, &list), heard(2, &list)])
}

pub(crate) fn new_node() -> Newcomer {
    Newcomer { name: "node5".to_owned(), peer_url: url(5, 2380) }
}
