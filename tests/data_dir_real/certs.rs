//! Certificates of Tandem's own CA under real etcds, and under a writer that opens a connection for each write. They
//! are renewed without a restart. The CA is replaced by successive restarts, even if the commands are interrupted.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use etcd_client::{Certificate as Pem, Client, ConnectOptions, Identity, TlsOptions};
use nix::sys::signal::Signal;
use tandem::adapters::etcd::blocking;
use tandem::adapters::etcd::client::{Credentials, Endpoint};
use tandem::base::Fact;
use tandem::decide::evidence::Etcd as Seen;
use tandem::operate::certs::pki::rotation::{self, Look, Next, Other, Role, Site};
use tandem::operate::certs::pki::{self, Authority, Certificate, Files, Holder, Leaf, seen};
use tandem::os::clock;

use crate::etcd::{Etcd, Place, until, versions};
use crate::scratch;

const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const DAY: u64 = 86_400;
const WRITE: Duration = Duration::from_secs(2);
/// The time between two observations of a rotation of certificates, as in the product.
const BETWEEN: Duration = Duration::from_millis(700);
/// The longest acceptable time between two successful writes, also while etcds restart.
const LONGEST_GAP: Duration = Duration::from_secs(5);

/// One of two nodes: its certificate files, its member, and its etcd if it runs.
struct Node {
    name: &'static str,
    files: Files,
    place: Place,
    etcd: Option<Etcd>,
}

impl Node {
    /// Returns a node with certificates that its CA issued at `now`, in seconds since 1970.
    fn new(root: &Path, name: &'static str, authority: &Authority, now: u64) -> Self {
        let mut place = Place::new(&versions()[1], root, name);
        place.client_url = place.client_url.replace("http:", "https:");
        place.peer_url = place.peer_url.replace("http:", "https:");
        let files = Files::at(root.join(format!("{name}-pki")));
        files.write(pki::CA_CERT, authority.certificate_pem()).unwrap();
        files.write(pki::CA_KEY, authority.key_pem()).unwrap();
        let node = Self { name, files, place, etcd: None };
        for leaf in [Leaf::Etcd, Leaf::Client] {
            node.files.renew(leaf, authority, &node.holder(), now).unwrap();
        }
        node
    }

    fn holder(&self) -> Holder {
        Holder { node: self.name.to_owned(), reached_at: vec![LOCAL.to_string()] }
    }

    fn options(&self) -> Vec<String> {
        let path = |name: &str| self.files.path(name).display().to_string();
        let (ca, cert, key) = (path(pki::CA_CERT), path(pki::ETCD_CERT), path(pki::ETCD_KEY));
        ["", "peer-"]
            .iter()
            .flat_map(|kind| {
                let option = |name: &str, value: &str| format!("--{kind}{name}={value}");
                [
                    option("trusted-ca-file", &ca),
                    option("cert-file", &cert),
                    option("key-file", &key),
                    option("client-cert-auth", "true"),
                ]
            })
            .collect()
    }

    fn endpoints(&self) -> [Endpoint; 2] {
        [&self.place.client_url, &self.place.peer_url]
            .map(|url| Endpoint { url: url.clone(), address: url.trim_start_matches("https://").to_owned() })
    }

    fn credentials(&self) -> Credentials {
        Credentials {
            trusted_ca_file: self.files.path(pki::CA_CERT),
            cert_file: self.files.path(pki::ETCD_CERT),
            key_file: self.files.path(pki::ETCD_KEY),
        }
    }

    /// Returns the certificates that this node's etcd shows and trusts, as the node `by` observes them.
    fn seen(&self, by: &Self) -> Result<rotation::RotationSeen, String> {
        seen::ports(&self.endpoints(), &by.credentials()).map(|seen| seen.summary())
    }

    fn shows(&self) -> Certificate {
        seen::ports(&self.endpoints(), &self.credentials()).unwrap().chains[0][0].clone()
    }

    fn run(&mut self, cluster: Option<(&[&Place], &str)>) {
        let options = self.options();
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        self.etcd = Some(match cluster {
            Some((places, state)) => self.place.start(places, state, &options),
            None => self.place.run(&options),
        });
    }

    fn asked(&self) -> Fact<Seen> {
        let [clients, _] = self.endpoints();
        blocking::observe(&clients, &self.credentials(), WRITE).etcd
    }

    fn has_leader(&self) -> bool {
        matches!(self.asked(), Fact::Known(etcd) if etcd.leader.is_some())
    }

    fn member_id(&self) -> u64 {
        self.asked().known().map(|etcd| etcd.member_id).unwrap()
    }

    fn wait(&self) {
        until(&format!("{} to serve", self.name), || self.has_leader().then_some(()));
    }

    /// Stops the node's etcd with SIGTERM, as podman does.
    fn stop(&mut self) {
        if let Some(mut etcd) = self.etcd.take() {
            etcd.signal(Signal::SIGTERM);
            etcd.wait_for_exit();
        }
    }
}

/// Starts two voters with certificates that are 300 days old.
fn two_nodes(root: &Path) -> [Node; 2] {
    let then = clock::wall_seconds() - 300 * DAY;
    let authority = Authority::new("real", then).unwrap();
    let mut nodes = ["node1", "node2"].map(|name| Node::new(root, name, &authority, then));
    let places = nodes.each_ref().map(|node| node.place.clone());
    for node in &mut nodes {
        node.run(Some((&[&places[0], &places[1]], "new")));
    }
    nodes.iter().for_each(Node::wait);
    nodes
}

/// The successes and failures that a writer has counted.
#[derive(Debug, Default)]
struct Noticed {
    written: usize,
    failed: usize,
    failed_in_a_row: usize,
    most_in_a_row: usize,
    longest_gap: Duration,
    last_failure: String,
}

/// A client that connects anew for each write. It uses etcdctl's certificate and CAs as they are in the files at that time.
struct Writer {
    ends: Arc<AtomicBool>,
    noticed: Arc<Mutex<Noticed>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    fn start(files: &Files, nodes: &[&Node]) -> Self {
        let (ends, noticed) = (Arc::new(AtomicBool::new(false)), Arc::<Mutex<Noticed>>::default());
        let urls: Vec<String> = nodes.iter().map(|node| node.place.client_url.clone()).collect();
        let thread = std::thread::spawn({
            let (files, ends, noticed) = (files.clone(), Arc::clone(&ends), Arc::clone(&noticed));
            move || write(&files, &urls, &ends, &noticed)
        });
        Self { ends, noticed, thread: Some(thread) }
    }

    /// Waits until the writer's next write succeeds.
    fn goes_on(&self) {
        let before = self.noticed.lock().unwrap().written;
        until("a write", || (self.noticed.lock().unwrap().written > before).then_some(()));
    }

    fn end(mut self) -> Noticed {
        self.goes_on();
        self.ends.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
        std::mem::take(&mut self.noticed.lock().unwrap())
    }
}

fn write(files: &Files, urls: &[String], ends: &AtomicBool, noticed: &Mutex<Noticed>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut last = Instant::now();
    for url in urls.iter().cycle() {
        if ends.load(Ordering::Relaxed) {
            return;
        }
        let written = runtime.block_on(async { tokio::time::timeout(WRITE, put(files, url)).await });
        let mut noticed = noticed.lock().unwrap();
        if let Ok(Ok(())) = written {
            noticed.written += 1;
            noticed.failed_in_a_row = 0;
            noticed.longest_gap = noticed.longest_gap.max(last.elapsed());
            last = Instant::now();
        } else {
            noticed.failed += 1;
            noticed.failed_in_a_row += 1;
            noticed.most_in_a_row = noticed.most_in_a_row.max(noticed.failed_in_a_row);
            noticed.last_failure = format!("{url}: {written:?}");
        }
    }
}

async fn put(files: &Files, url: &str) -> Result<(), String> {
    let mut client = connect(files, url).await?;
    client.put("key", "value", None).await.map(drop).map_err(|error| format!("{error:?}"))
}

async fn connect(files: &Files, url: &str) -> Result<Client, String> {
    let read = |name: &str| files.need(name).map(|text| text.as_bytes().to_vec()).map_err(|error| error.to_string());
    let tls = TlsOptions::new()
        .ca_certificate(Pem::from_pem(read(pki::CA_CERT)?))
        .identity(Identity::from_pem(read(pki::CLIENT_CERT)?, read(pki::CLIENT_KEY)?));
    let options = ConnectOptions::new().with_tls(tls).with_timeout(WRITE).with_connect_timeout(WRITE);
    Client::connect([url], Some(options)).await.map_err(|error| format!("{error:?}"))
}

/// Removes a member as the agent does when a node leaves, or adds one as it does when a node joins anew.
fn change_members(by: &Node, leaves: Option<u64>, joins: Option<&Node>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // etcd refuses the change for some seconds after an election.
    until("the member list to change", || {
        runtime.block_on(async {
            let mut client = connect(&by.files, &by.place.client_url).await.ok()?;
            match (leaves, joins) {
                (Some(id), _) => client.member_remove(id).await.map(drop).ok(),
                (None, Some(node)) => client.member_add([&node.place.peer_url], None).await.map(drop).ok(),
                (None, None) => Some(()),
            }
        })
    });
}

#[test]
fn a_renewed_certificate_is_shown_with_the_next_handshake_and_none_is_refused() {
    let root = scratch();
    let nodes = two_nodes(root.path());
    let writer = Writer::start(&nodes[0].files, &[&nodes[0], &nodes[1]]);
    let authority = nodes[0].files.authority().unwrap();
    let first = nodes[0].shows();
    for round in 0..40 {
        for node in &nodes {
            let now = clock::wall_seconds() + round;
            for leaf in [Leaf::Client, Leaf::Etcd] {
                node.files.renew(leaf, &authority, &node.holder(), now).unwrap();
            }
            assert_eq!(node.files.leaf(Leaf::Etcd).unwrap().unwrap(), node.shows(), "with the next handshake");
        }
    }
    assert!(nodes[0].shows().ends > first.ends + 299 * DAY && nodes[0].shows().public_key == first.public_key);
    let noticed = writer.end();
    assert!(noticed.written > 40 && noticed.failed == 0, "{noticed:?}");
    println!("renewals: {noticed:?}");
}

#[test]
fn with_a_new_key_no_handshake_fails_for_good() {
    let root = scratch();
    let nodes = two_nodes(root.path());
    // The writer has a pair of its own, because etcd's pair is mixed for a moment.
    let client = root.path().join("client-pki");
    fs::create_dir(&client).unwrap();
    for name in [pki::CA_CERT, pki::CLIENT_CERT, pki::CLIENT_KEY] {
        fs::copy(nodes[0].files.path(name), client.join(name)).unwrap();
    }
    let writer = Writer::start(&Files::at(&client), &[&nodes[0], &nodes[1]]);
    let authority = nodes[0].files.authority().unwrap();
    for _ in 0..40 {
        for node in &nodes {
            let now = clock::wall_seconds();
            node.files.renew_with_new_key(Leaf::Etcd, &authority, &node.holder(), now).unwrap();
            assert_eq!(node.files.leaf(Leaf::Etcd).unwrap().unwrap(), node.shows());
        }
    }
    // The renewal is interrupted between the two renames, and typed again.
    let node = &nodes[0];
    node.files.write(pki::ETCD_KEY, &node.files.need(pki::CLIENT_KEY).unwrap()).unwrap();
    assert!(!node.files.fits(Leaf::Etcd).unwrap() && node.seen(node).is_err(), "the pair is mixed");
    node.files.renew(Leaf::Etcd, &authority, &node.holder(), clock::wall_seconds()).unwrap();
    assert_eq!(node.files.leaf(Leaf::Etcd).unwrap().unwrap(), node.shows());
    nodes.iter().for_each(Node::wait);
    let noticed = writer.end();
    assert!(noticed.written > 40 && noticed.longest_gap < LONGEST_GAP, "{noticed:?}");
    println!("new keys: {noticed:?}");
}

/// The access of a CA rotation to one of two nodes. After `left` more changes, each change fails as if the command
/// had been killed.
struct Part<'a> {
    nodes: &'a mut [Node; 2],
    at: usize,
    left: usize,
    made: &'a mut Vec<String>,
}

impl Site for Part<'_> {
    fn look(&mut self) -> Look {
        let (own, other) = (&self.nodes[self.at], &self.nodes[1 - self.at]);
        let serve = own.has_leader();
        Look {
            own: own.seen(own),
            other: other.seen(own).map_or_else(Other::Unseen, Other::Seen),
            may_restart: if serve { Ok(()) } else { Err("no leader".to_owned()) },
        }
    }

    fn restart(&mut self) -> Result<(), String> {
        let node = &mut self.nodes[self.at];
        node.stop();
        node.run(None);
        node.wait();
        Ok(())
    }

    fn about_to(&mut self, what: &str) -> Result<(), String> {
        self.left = self.left.checked_sub(1).ok_or("killed")?;
        self.made.push(format!("{what} of {}", self.nodes[self.at].name));
        Ok(())
    }
}

/// Runs the rotation on both nodes in turn until it is done, and kills each run after `most` changes. Returns all changes.
fn rotated(nodes: &mut [Node; 2], most: usize) -> Vec<String> {
    let mut made = Vec::new();
    until("the rotation to end", || {
        let mut are_done = true;
        for at in [0, 1] {
            let (files, holder) = (nodes[at].files.clone(), nodes[at].holder());
            let mut part = Part { nodes: &mut *nodes, at, left: most, made: &mut made };
            let role = [Role::First, Role::Second][at];
            loop {
                let now = clock::wall_seconds();
                match rotation::advance(&files, &mut part, role, false, &holder, now) {
                    Ok(Next::Do(_)) => clock::sleep(BETWEEN),
                    Ok(Next::Done) => break,
                    Ok(_) => {
                        are_done = false;
                        break;
                    }
                    Err(error) => {
                        assert_eq!(error.to_string(), "killed");
                        are_done = false;
                        break;
                    }
                }
            }
        }
        are_done.then_some(())
    });
    made
}

fn is_over(nodes: &[Node; 2], new: &Authority) {
    let subject = &new.certificate().subject_der;
    for node in nodes {
        node.wait();
        let seen = node.seen(node).unwrap();
        assert_eq!(seen.issuers, [subject.clone(), subject.clone()], "{} shows the new CA's", node.name);
        assert_eq!(seen.trusts, vec![vec![subject.clone()]; 2], "{} trusts the new CA alone", node.name);
        assert_eq!(node.files.bundle().unwrap().len(), 1);
        assert!(!node.files.has(pki::NEXT_CERT) && !node.files.has(pki::NEXT_KEY));
    }
}

/// Asserts that the node's etcd refuses a client certificate of the old CA.
fn is_refused(node: &Node, old: &Authority) {
    let pair = old.client("root", clock::wall_seconds()).unwrap();
    let dir = scratch();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let credentials = Credentials {
        trusted_ca_file: node.files.path(pki::CA_CERT),
        cert_file: file("old.crt", &pair.certificate_pem),
        key_file: file("old.key", &pair.key_pem),
    };
    let [clients, _] = node.endpoints();
    let answer = blocking::observe(&clients, &credentials, WRITE).etcd;
    assert!(!matches!(answer, Fact::Known(_)), "{answer:?}");
}

#[test]
fn a_ca_is_replaced_though_each_command_is_killed_after_each_change() {
    let root = scratch();
    let mut nodes = two_nodes(root.path());
    for most in [1, usize::MAX] {
        let old = nodes[0].files.authority().unwrap();
        let writer = Writer::start(&nodes[0].files, &[&nodes[0], &nodes[1]]);
        let new = rotation::begin(&nodes[0].files, "real", true, clock::wall_seconds()).unwrap().unwrap();
        rotation::adopt(&nodes[1].files, &new).unwrap();
        let made = rotated(&mut nodes, most);
        is_over(&nodes, &new);
        is_refused(&nodes[0], &old);
        let noticed = writer.end();
        println!("rotation, {most} changes each time ({} in all): {noticed:?}", made.len());
        assert!(noticed.longest_gap < LONGEST_GAP, "{noticed:?}");
        let restarts = made.iter().filter(|made| made.starts_with("etcd of")).count();
        assert!(restarts == 4 && made.len() >= 18, "{made:?}");
    }
}

#[test]
fn a_node_that_is_off_meanwhile_comes_back_with_its_old_certificate_and_is_served() {
    let root = scratch();
    let mut nodes = two_nodes(root.path());
    let leaves = nodes[1].member_id();
    change_members(&nodes[0], Some(leaves), None);
    nodes[1].stop();
    nodes[0].wait();
    let new = rotation::begin(&nodes[0].files, "real", true, clock::wall_seconds()).unwrap().unwrap();
    let (files, holder) = (nodes[0].files.clone(), nodes[0].holder());
    let mut made = Vec::new();
    let mut part = Part { nodes: &mut nodes, at: 0, left: usize::MAX, made: &mut made };
    let waits = until("it to wait", || {
        let now = clock::wall_seconds();
        match rotation::advance(&files, &mut part, Role::First, false, &holder, now).unwrap() {
            Next::Do(_) => None,
            other => Some(other),
        }
    });
    assert!(matches!(&waits, Next::Wait(why) if why.contains("nobody listens")), "{waits:?}");
    assert_eq!(made, ["ca.crt of node1", "etcd of node1"]);
    fs::remove_dir_all(&nodes[1].place.dir).unwrap();
    change_members(&nodes[0], None, Some(&nodes[1]));
    let places = nodes.each_ref().map(|node| node.place.clone());
    nodes[1].run(Some((&[&places[0], &places[1]], "existing")));
    nodes.iter().for_each(Node::wait);
    let writer = Writer::start(&nodes[0].files, &[&nodes[0], &nodes[1]]);
    writer.goes_on();
    rotation::adopt(&nodes[1].files, &new).unwrap();
    rotated(&mut nodes, usize::MAX);
    is_over(&nodes, &new);
    let noticed = writer.end();
    assert!(noticed.longest_gap < LONGEST_GAP, "{noticed:?}");
}
