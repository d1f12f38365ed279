//! What etcd's words mean, and in which order it is asked.

mod double;

use std::path::PathBuf;
use std::time::Duration;

use self::double::{Double, LEADER, MEMBER, Reply, Script};
use super::*;

/// For an etcd that is asked without TLS.
fn no_credentials() -> Credentials {
    Credentials { trusted_ca_file: PathBuf::new(), cert_file: PathBuf::new(), key_file: PathBuf::new() }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn a_refusal_of_etcds_auth_is_told_from_every_other_error() {
    let refused = [
        "etcdserver: permission denied",
        "etcdserver: user name is empty",
        "etcdserver: user name not found",
        "etcdserver: invalid auth token",
        "auth: user not found",
        "auth: permission denied",
    ];
    for words in refused {
        assert!(is_no_permission(words), "{words}");
    }
    let others = [
        "etcdserver: no leader",
        "etcdserver: request timed out",
        "etcdserver: rpc not supported for learner",
        "transport error: permission denied",
        "permission denied",
        "",
    ];
    for words in others {
        assert!(!is_no_permission(words), "{words}");
    }
}

#[test]
fn what_to_type_comes_first_where_etcds_auth_refuses() {
    let refused = |user: Option<&str>| Error::NoPermission {
        url: "https://127.0.0.1:2379".to_owned(),
        user: user.map(str::to_owned),
        why: "etcdserver: user name not found".to_owned(),
    };
    let told = refused(Some("etcd-node1")).to_string();
    assert!(told.starts_with("'etcdctl user grant-role etcd-node1 root' "), "{told}");
    assert!(told.ends_with(": https://127.0.0.1:2379 says 'etcdserver: user name not found'"), "{told}");
    assert!(refused(None).to_string().contains("CommonName"));
}

/// A busy machine lets a conversation go on behind its limit, and the transport, which has the same one, end it.
#[test]
fn whatever_fails_once_the_time_is_over_is_too_late() {
    let endpoint = Endpoint { url: "http://127.0.0.1:1".to_owned(), address: "127.0.0.1:1".to_owned() };
    let (credentials, runtime) = (no_credentials(), runtime());
    let limit = Duration::from_millis(500);
    let fails_after = |busy: Duration| {
        let conversation = async |_| {
            crate::os::clock::sleep(busy);
            Err::<(), _>(etcd_client::Error::Internal("the connection broke".to_owned()))
        };
        runtime.block_on(ask(&endpoint, &credentials, limit, conversation)).unwrap_err()
    };
    let early = fails_after(Duration::ZERO);
    assert!(matches!(early, Error::Client { .. }), "{early}");
    let late = fails_after(limit);
    assert!(late.is_too_late(), "{late}");
}

/// What a leader acknowledged alone before it listed a new voter is what that voter has to have.
#[test]
fn the_index_of_who_leads_is_not_older_than_its_list() {
    let asked = |leader: u64| {
        let double = Double::start(Script { leader, member_list: Reply::Answer, read: Reply::Answer });
        let answer = runtime().block_on(observe(&double.endpoint, &no_credentials(), Duration::from_secs(10)));
        let etcd = answer.etcd.known().unwrap_or_else(|| panic!("{answer:?}")).clone();
        (etcd.index, etcd.voters().count(), double.asked())
    };
    let (index, voters, questions) = asked(MEMBER);
    assert_eq!((index, voters), (2, 2), "the second time that it was asked");
    assert_eq!(questions, ["Status", "MemberList", "Status"]);
    let (index, _, questions) = asked(LEADER);
    assert_eq!((index, questions), (1, vec!["Status".to_owned(), "MemberList".to_owned()]), "who follows");
}

/// An etcd that waits for a leader and one that is slow are one to whom they refuse the rest.
#[test]
fn one_that_refuses_us_and_is_late_with_a_read_is_too_late() {
    let asked = |read: Reply| {
        let refuses = Reply::Error("etcdserver: permission denied");
        let double = Double::start(Script { leader: LEADER, member_list: refuses, read });
        let answer = runtime().block_on(observe(&double.endpoint, &no_credentials(), Duration::from_millis(500)));
        assert_eq!(double.asked(), ["Status", "MemberList", "Range"]);
        let refuses = answer.no_permission.unwrap_or_else(|| panic!("{:?}", answer.etcd));
        (refuses.leaderless, answer.is_too_late)
    };
    assert_eq!(asked(Reply::Answer), (false, false));
    assert_eq!(asked(Reply::Error("etcdserver: permission denied")), (false, false), "a majority confirmed it");
    assert_eq!(asked(Reply::Error("etcdserver: no leader")), (true, false));
    assert_eq!(asked(Reply::Silence), (true, true));
}
