//! A pair of etcds with writers on both, and the vote proxy for one of them.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use etcd_client::{AlarmAction, AlarmType, ConnectOptions};
use tandem::adapters::etcd::client::Credentials;
use tandem::adapters::etcd::peer::{self, GivenUp, ProxyStep, Taken, Wish};
use tandem::os::clock;

use crate::auth;
use crate::etcd::{Asker, Etcd, Place, Version};

/// The time limit that the agent's action gives to a vote proxy.
pub(crate) const WITHIN: Duration = Duration::from_secs(3);
/// The number of times that a vote proxy is tried again after the term has changed. Without pre-vote every failed
/// election raises the term.
const LOOKS: u32 = 5;

/// Two etcd voters that run and authenticate each other by TLS.
pub(crate) struct Pair {
    pub(crate) leader: Etcd,
    pub(crate) follower: Etcd,
    pub(crate) credentials: Credentials,
    /// The arguments that both etcds are started with.
    pub(crate) more: Vec<String>,
}

/// Returns etcd's arguments for TLS between the two members, and for short elections.
fn peer_tls(credentials: &Credentials) -> Vec<String> {
    let file = |path: &Path| path.display().to_string();
    let Credentials { trusted_ca_file, cert_file, key_file } = credentials;
    [
        "--peer-client-cert-auth",
        "--peer-trusted-ca-file",
        &file(trusted_ca_file),
        "--peer-cert-file",
        &file(cert_file),
        "--peer-key-file",
        &file(key_file),
        "--heartbeat-interval",
        "100",
        "--election-timeout",
        "1000",
    ]
    .map(str::to_owned)
    .to_vec()
}

/// Returns a member with an `https` peer URL.
pub(crate) fn place(version: &Version, root: &Path, name: &str) -> Place {
    let mut place = Place::new(version, root, name);
    place.peer_url = place.peer_url.replace("http://", "https://");
    place
}

pub(crate) fn borrowed(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

impl Pair {
    pub(crate) fn start(version: &Version, root: &Path) -> Self {
        Self::start_with(version, root, &[])
    }

    /// Starts the two voters with the arguments `besides` in addition to those for TLS.
    pub(crate) fn start_with(version: &Version, root: &Path, besides: &[&str]) -> Self {
        let (credentials, _) = auth::certificates(root);
        let mut more = peer_tls(&credentials);
        more.extend(besides.iter().map(|argument| (*argument).to_owned()));
        let (one, two) = (place(version, root, "one"), place(version, root, "two"));
        let start = |place: &Place| place.start(&[&one, &two], "new", &borrowed(&more));
        let (leader, follower) = in_order(start(&one), start(&two));
        Self { leader, follower, credentials, more }
    }

    /// Returns the two members as the one that will survive and the one that will die.
    pub(crate) fn split(self, leader_dies: bool) -> (Survivor, Etcd) {
        let Self { leader, follower, credentials, more } = self;
        let (etcd, dead) = if leader_dies { (follower, leader) } else { (leader, follower) };
        let place = peer::Place { url: etcd.place.peer_url.clone(), credentials };
        let (me, dead_id) = (own_id(&etcd), own_id(&dead));
        (Survivor { etcd, place, me, dead: dead_id, more }, dead)
    }
}

/// Returns both etcds, the leader first.
pub(crate) fn in_order(mut one: Etcd, mut two: Etcd) -> (Etcd, Etcd) {
    let leader = one.wait().status().unwrap().leader();
    let second = two.wait().status().unwrap().header().unwrap().member_id();
    if second == leader { (two, one) } else { (one, two) }
}

pub(crate) fn own_id(etcd: &Etcd) -> u64 {
    etcd.client().status().unwrap().header().unwrap().member_id()
}

/// The member that survives the death of its peer.
pub(crate) struct Survivor {
    pub(crate) etcd: Etcd,
    pub(crate) place: peer::Place,
    pub(crate) me: u64,
    pub(crate) dead: u64,
    pub(crate) more: Vec<String>,
}

impl Survivor {
    pub(crate) fn wish(&self) -> Wish {
        let seen = peer::look(&self.place, WITHIN).unwrap();
        // With auth on, etcd reports the term only to a known user.
        let status = self.etcd.client().status();
        let (term, applied) = status.map_or((0, 0), |status| (status.raft_term(), status.raft_applied_index()));
        Wish { cluster_id: seen.cluster_id, me: self.me, dead: self.dead, term, applied }
    }

    /// Runs a vote proxy for this member, and repeats it after each change of the term. Fails if no try succeeds.
    pub(crate) fn vote_proxy(&self) -> Taken {
        self.try_vote_proxy().unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) fn try_vote_proxy(&self) -> Result<Taken, GivenUp> {
        self.looking_anew(|wish| peer::vote_proxy(&self.place, wish, WITHIN))
    }

    /// Runs a vote proxy for this member, and ends the vote proxy after `step`.
    pub(crate) fn vote_proxy_up_to(&self, step: ProxyStep) -> GivenUp {
        let ended = self.looking_anew(|wish| self.up_to(wish, step)).unwrap_err();
        assert!(ended.step == step && ended.why.starts_with("ended here"), "{ended}");
        ended
    }

    fn up_to(&self, wish: &Wish, last: ProxyStep) -> Result<Taken, GivenUp> {
        peer::vote_proxy_while(&self.place, wish, WITHIN, &mut |step| step != last)
    }

    /// Calls `attempt`, and repeats it after each change of the term, with the term that etcd reports. That is safe
    /// here, because the peer really is dead.
    pub(crate) fn looking_anew(&self, attempt: impl Fn(&Wish) -> Result<Taken, GivenUp>) -> Result<Taken, GivenUp> {
        let mut wish = self.wish();
        let mut outcome = attempt(&wish);
        for _ in 0..LOOKS {
            let Err(GivenUp { moved_to: Some(term), .. }) = outcome else { break };
            wish.term = term;
            outcome = attempt(&wish);
        }
        outcome
    }

    pub(crate) fn voters(&self) -> Vec<u64> {
        let members = peer::look(&self.place, WITHIN).unwrap().members;
        members.iter().filter(|member| !member.is_learner).map(|member| member.id).collect()
    }

    /// Makes etcd write a log entry that needs no space in the database. With this write, everything before it in the log is synced to the
    /// disk as well.
    pub(crate) fn writes_its_log(&self) {
        let Asker { runtime, client } = &mut self.etcd.client();
        runtime.block_on(client.alarm(AlarmAction::Get, AlarmType::None, None)).unwrap();
    }

    /// Kills the member's etcd, and starts it without special arguments.
    pub(crate) fn restart(&mut self) {
        self.etcd.kill();
        self.etcd = self.etcd.place.run(&borrowed(&self.more));
        self.etcd.wait();
    }

    /// Asserts that no acknowledged key is lost.
    pub(crate) fn has_all(&mut self, acknowledged: &BTreeSet<String>) {
        let keys: BTreeSet<String> = self.etcd.wait().keys("w/").into_iter().collect();
        let lost: Vec<&String> = acknowledged.difference(&keys).collect();
        assert!(lost.is_empty(), "{} of {} acknowledged writes are lost: {lost:?}", lost.len(), acknowledged.len());
    }
}

/// The keys that etcd has acknowledged, each with its time.
type Acknowledged = Vec<(Instant, String)>;

/// Client threads that write to one or more etcds, each of them one key after the other.
pub(crate) struct Writers {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Acknowledged>>,
}

impl Writers {
    pub(crate) fn start(etcds: &[(&Etcd, &str)]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for (etcd, name) in etcds {
            for number in 0..4 {
                let (url, stop) = (etcd.place.client_url.clone(), stop.clone());
                let prefix = format!("w/{name}{number}");
                threads.push(std::thread::spawn(move || write(&url, &prefix, &stop)));
            }
        }
        Self { stop, threads }
    }

    pub(crate) fn stop(self) -> (BTreeSet<String>, Vec<Instant>) {
        self.stop.store(true, Ordering::SeqCst);
        let mut all: Acknowledged = self.threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        all.sort();
        let (times, keys): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        (keys.into_iter().collect(), times)
    }
}

fn write(url: &str, prefix: &str, stop: &AtomicBool) -> Acknowledged {
    let options = ConnectOptions::new().with_timeout(Duration::from_millis(300));
    let mut asker = Asker::new(url, options);
    let mut acknowledged = Vec::new();
    let mut number = 0_u64;
    while !stop.load(Ordering::SeqCst) {
        number += 1;
        let key = format!("{prefix}/{number}");
        match asker.put(&key, vec![7; 100]) {
            Ok(()) => acknowledged.push((Instant::now(), key)),
            Err(_) => clock::sleep(Duration::from_millis(5)),
        }
    }
    acknowledged
}
