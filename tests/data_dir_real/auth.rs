//! The answers of real etcds to the agent when their auth is on: for a user that does not exist, and for one with
//! permissions.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use etcd_client::{
    AlarmAction, AlarmOptions, AlarmType, Certificate, Client, ConnectOptions, Identity, TlsOptions, UserAddOptions,
};
use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair};
use tandem::adapters::etcd::blocking;
use tandem::adapters::etcd::client::{self, Answer, Credentials, Endpoint, Error};
use tandem::decide::evidence::Etcd as Seen;

use crate::each_version;
use crate::etcd::{Etcd, Place, Version, until};

pub(crate) const TIMEOUT: Duration = Duration::from_millis(2500);
pub(crate) const USER: &str = "etcd-node1";

fn issue(dir: &Path, name: &str, common_name: Option<&str>, authority: &Issuer<'_, KeyPair>) -> Credentials {
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.distinguished_name = DistinguishedName::new();
    if let Some(common_name) = common_name {
        params.distinguished_name.push(DnType::CommonName, common_name);
    }
    let key = KeyPair::generate().unwrap();
    let file = |end: &str| dir.join(format!("{name}.{end}"));
    fs::write(file("crt"), params.signed_by(&key, authority).unwrap().pem()).unwrap();
    fs::write(file("key"), key.serialize_pem()).unwrap();
    Credentials { trusted_ca_file: dir.join("ca.crt"), cert_file: file("crt"), key_file: file("key") }
}

/// Issues two client certificates: one that names the agent's user, and one without a name for clients with a password.
pub(crate) fn certificates(dir: &Path) -> (Credentials, Credentials) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    fs::write(dir.join("ca.crt"), params.self_signed(&key).unwrap().pem()).unwrap();
    let authority = Issuer::new(params, key);
    (issue(dir, "agent", Some(USER), &authority), issue(dir, "nameless", None, &authority))
}

/// Starts an etcd of one member that requires client certificates. Returns it with its client endpoint.
pub(crate) fn serve(version: &Version, root: &Path, credentials: &Credentials) -> (Etcd, Endpoint) {
    let place = Place::new(version, root, "one");
    let url = format!("https://{}", place.client_address());
    let file = |path: &Path| path.display().to_string();
    let arguments = [
        ["--name", "one"],
        ["--data-dir", &file(&place.dir)],
        ["--listen-client-urls", &url],
        ["--advertise-client-urls", &url],
        ["--listen-peer-urls", &place.peer_url],
        ["--initial-advertise-peer-urls", &place.peer_url],
        ["--initial-cluster", &format!("one={}", place.peer_url)],
        ["--trusted-ca-file", &file(&credentials.trusted_ca_file)],
        ["--cert-file", &file(&credentials.cert_file)],
        ["--key-file", &file(&credentials.key_file)],
        ["--logger", "zap"],
    ];
    let etcd = place.run_with(&[&arguments.concat()[..], &["--client-cert-auth"]].concat());
    (etcd, Endpoint { address: place.client_address().to_owned(), url })
}

/// A client of etcd that logs in with a password, or without a user while auth is off.
pub(crate) struct Administrator {
    pub(crate) runtime: tokio::runtime::Runtime,
    pub(crate) client: Client,
}

impl Administrator {
    pub(crate) fn new(endpoint: &Endpoint, credentials: &Credentials, user: Option<(&str, &str)>) -> Self {
        let read = |path: &Path| fs::read(path).unwrap();
        let tls = TlsOptions::new()
            .ca_certificate(Certificate::from_pem(read(&credentials.trusted_ca_file)))
            .identity(Identity::from_pem(read(&credentials.cert_file), read(&credentials.key_file)));
        let options = ConnectOptions::new().with_tls(tls);
        let options = user.into_iter().fold(options, |options, (name, password)| options.with_user(name, password));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = runtime.block_on(Client::connect([&endpoint.url], Some(options))).unwrap();
        Self { runtime, client }
    }

    pub(crate) fn switches_auth_on(&mut self) {
        let Self { runtime, client } = self;
        runtime.block_on(client.user_add("root", "secret", None)).unwrap();
        runtime.block_on(client.role_add("root")).unwrap();
        runtime.block_on(client.user_grant_role("root", "root")).unwrap();
        runtime.block_on(client.auth_enable()).unwrap();
    }

    pub(crate) fn makes_the_agents_user(&mut self) {
        let options = UserAddOptions::new().with_no_pwd();
        self.runtime.block_on(self.client.user_add(USER, "", Some(options))).unwrap();
    }

    fn grants_it_root(&mut self) {
        self.runtime.block_on(self.client.user_grant_role(USER, "root")).unwrap();
    }

    /// Raises the alarm that etcd raises by itself when its database reaches its quota.
    fn raises_the_alarm_of_a_full_database(&mut self) {
        let Self { runtime, client } = self;
        let member = runtime.block_on(client.status()).unwrap().header().unwrap().member_id();
        let mut options = AlarmOptions::new();
        options.with_member(member);
        runtime.block_on(client.alarm(AlarmAction::Activate, AlarmType::Nospace, Some(options))).unwrap();
    }

    /// Adds a second voter that is never started, so that etcd has no majority from then on.
    pub(crate) fn adds_a_voter_that_is_not_there(&mut self) {
        let url = format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
        self.runtime.block_on(self.client.member_add([url], None)).unwrap();
    }
}

/// Returns whether `answer` shows a live etcd, with a leader or `leaderless`. If etcd's auth refuses the agent, the
/// answer must name the agent's user.
fn lives(answer: &Answer, leaderless: bool) -> bool {
    let known = |etcd: &Seen| etcd.leader.is_none() == leaderless;
    match &answer.no_permission {
        Some(refuses) => refuses.user.as_deref() == Some(USER) && refuses.leaderless == leaderless,
        None => answer.etcd.known().is_some_and(known),
    }
}

#[test]
fn an_etcd_whose_auth_refuses_the_agent_is_no_silent_one() {
    each_version(|version, root| {
        let (agent, nameless) = certificates(root);
        let (_etcd, endpoint) = serve(version, root, &agent);
        let seen = |credentials: &Credentials| blocking::observe(&endpoint, credentials, TIMEOUT);
        until("etcd to serve", || seen(&agent).etcd.known().filter(|etcd| etcd.leader.is_some()).map(drop));
        Administrator::new(&endpoint, &nameless, None).switches_auth_on();
        let mut root_user = Administrator::new(&endpoint, &nameless, Some(("root", "secret")));

        // The first round has no user, and the second one has a user without permissions.
        for _ in 0..2 {
            let answer = seen(&agent);
            assert!(lives(&answer, false), "{answer:?}");
            let added = blocking::add_learner(&endpoint, &agent, "http://127.0.0.1:1", TIMEOUT);
            assert!(matches!(&added, Err(Error::NoPermission { user: Some(user), .. }) if user == USER), "{added:?}");
            let read = blocking::confirmed_read(&endpoint, &agent, TIMEOUT);
            assert!(matches!(read, Err(Error::NoPermission { .. })), "{read:?}");
            if added.unwrap_err().to_string().contains("not found") {
                root_user.makes_the_agents_user();
            }
        }
        let of_nobody = blocking::add_learner(&endpoint, &nameless, "http://127.0.0.1:1", TIMEOUT);
        assert!(matches!(of_nobody, Err(Error::NoPermission { user: None, .. })), "{of_nobody:?}");

        // The missing majority is visible in spite of the refusal.
        root_user.adds_a_voter_that_is_not_there();
        until("the leader to give up", || lives(&seen(&agent), true).then_some(()));
    });
}

/// Asserts that an etcd with a full database is not taken for one without a majority. The agent asks with a request
/// that needs a log entry: a full etcd answers it, and one without a majority does not.
#[test]
fn an_etcd_without_room_is_known_to_have_its_majority() {
    each_version(|version, root| {
        let (agent, _) = certificates(root);
        let (_etcd, endpoint) = serve(version, root, &agent);
        let entry = || blocking::committed_entry(&endpoint, &agent, TIMEOUT);
        until("etcd to serve", || entry().ok());
        let mut root_user = Administrator::new(&endpoint, &agent, None);
        root_user.raises_the_alarm_of_a_full_database();
        let refused = blocking::accepted_write(&endpoint, &agent, TIMEOUT).unwrap_err().to_string();
        assert!(refused.contains("database space exceeded"), "{refused}");
        entry().unwrap();
        root_user.adds_a_voter_that_is_not_there();
        until("the majority to be gone", || entry().is_err().then_some(()));
    });
}

#[test]
fn the_user_that_the_refusal_names_is_the_one_that_is_missing() {
    each_version(|version, root| {
        let (agent, nameless) = certificates(root);
        let (_etcd, endpoint) = serve(version, root, &agent);
        let seen = || blocking::observe(&endpoint, &agent, TIMEOUT);
        until("etcd to serve", || seen().etcd.known().filter(|etcd| etcd.leader.is_some()).map(drop));
        Administrator::new(&endpoint, &nameless, None).switches_auth_on();
        let mut root_user = Administrator::new(&endpoint, &nameless, Some(("root", "secret")));
        root_user.makes_the_agents_user();
        root_user.grants_it_root();
        let answer = seen();
        assert_eq!(answer.no_permission, None);
        assert!(answer.etcd.known().is_some_and(Seen::is_voter_with_leader), "{answer:?}");
        blocking::confirmed_read(&endpoint, &agent, TIMEOUT).unwrap();
        blocking::accepted_write(&endpoint, &agent, TIMEOUT).unwrap();
        blocking::add_learner(&endpoint, &agent, "http://127.0.0.1:1", TIMEOUT).unwrap();
    });
}

/// Asserts that an etcd can be asked inside a tokio runtime with other tasks, as a daemon does. That holds for the
/// asynchronous client, and for the blocking one, which a daemon may call by mistake.
#[test]
fn an_etcd_is_asked_inside_a_tokio_runtime() {
    each_version(|version, root| {
        let (agent, _) = certificates(root);
        let (_etcd, endpoint) = serve(version, root, &agent);
        until("etcd to serve", || {
            let seen = blocking::observe(&endpoint, &agent, TIMEOUT);
            seen.etcd.known().filter(|etcd| etcd.leader.is_some()).map(drop)
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let seen = client::observe(&endpoint, &agent, TIMEOUT).await;
            assert!(seen.etcd.known().is_some_and(Seen::is_voter_with_leader), "{seen:?}");
            let (of_task, for_task) = (endpoint.clone(), agent.clone());
            let task = tokio::spawn(async move { client::accepted_write(&of_task, &for_task, TIMEOUT).await });
            client::confirmed_read(&endpoint, &agent, TIMEOUT).await.unwrap();
            task.await.unwrap().unwrap();
            let seen = blocking::observe(&endpoint, &agent, TIMEOUT);
            assert!(seen.etcd.known().is_some_and(Seen::is_voter_with_leader), "{seen:?}");
        });
    });
}
