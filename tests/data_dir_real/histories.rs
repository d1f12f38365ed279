//! `tandem data-dir diff` on two etcds that continue from one data dir, each with random writes. The list must equal
//! the writers' changes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use etcd_client::{Compare, CompareOp, DeleteOptions, Txn, TxnOp};
use tandem::adapters::data_dir::{self, Keys};
use tandem::adapters::etcd::client::{Credentials, Endpoint};
use tandem::operate::histories::{self, Difference, InOther, Kind, Live, Other};
use tandem::records::kept_history::KeptHistory;

use crate::each_version;
use crate::etcd::{Asker, Etcd, Place, Version};

/// A generator of pseudo-random numbers that depend only on the seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

type State = BTreeMap<String, Vec<u8>>;

/// A running etcd, with a record of what the test wrote to it.
struct Written {
    asker: Asker,
    state: State,
    /// The keys that the test has changed.
    touched: BTreeSet<String>,
    /// The keys in the test's transactions, whether the transaction changed them or not.
    conditional: BTreeSet<String>,
    numbers: Numbers,
}

impl Written {
    fn new(mut etcd: Etcd, seed: u64) -> (Self, Etcd) {
        let asker = etcd.wait();
        let (state, touched, conditional) = Default::default();
        (Self { asker, state, touched, conditional, numbers: Numbers(seed) }, etcd)
    }

    fn key(&mut self) -> String {
        format!("/k/{:03}", self.numbers.below(60))
    }

    fn put(&mut self, key: String, value: Vec<u8>) {
        self.touched.insert(key.clone());
        self.state.insert(key, value);
    }

    fn delete(&mut self, key: &str) {
        if self.state.remove(key).is_some() {
            self.touched.insert(key.to_owned());
        }
    }

    fn write(&mut self, count: u64) {
        for _ in 0..count {
            self.one();
        }
    }

    fn one(&mut self) {
        let (key, other) = (self.key(), self.key());
        let length = if self.numbers.below(20) == 0 { 20_000 } else { 1 + self.numbers.below(300) };
        let value: Vec<u8> = (0..length).map(|_| self.numbers.below(256).to_le_bytes()[0]).collect();
        let Asker { runtime, client } = &mut self.asker;
        match self.numbers.below(10) {
            0 => {
                runtime.block_on(client.delete(key.as_str(), None)).unwrap();
                self.delete(&key);
            }
            1 => {
                let (from, end) = if key < other { (key, other) } else { (other, key) };
                let options = DeleteOptions::new().with_range(end.as_str());
                runtime.block_on(client.delete(from.as_str(), Some(options))).unwrap();
                let within: Vec<String> = self.state.range(from..end).map(|(key, _)| key.clone()).collect();
                for key in &within {
                    self.delete(key);
                }
            }
            2 => {
                self.conditional.extend([key.clone(), other.clone()]);
                let exists = Compare::version(key.as_str(), CompareOp::Greater, 0);
                let put = TxnOp::put(other.as_str(), value.clone(), None);
                let transaction = Txn::new()
                    .when([exists])
                    .and_then([put, TxnOp::delete(key.as_str(), None)])
                    .or_else([TxnOp::put(key.as_str(), value.clone(), None)]);
                if key == other {
                    return;
                }
                let done = runtime.block_on(client.txn(transaction)).unwrap().succeeded();
                assert_eq!(done, self.state.contains_key(&key));
                if done {
                    self.put(other, value);
                    self.delete(&key);
                } else {
                    self.put(key, value);
                }
            }
            _ => {
                runtime.block_on(client.put(key.as_str(), value.clone(), None)).unwrap();
                self.put(key, value);
            }
        }
    }

    fn revision(&mut self) -> u64 {
        let answer = self.asker.runtime.block_on(self.asker.client.get("x", None)).unwrap();
        u64::try_from(answer.header().unwrap().revision()).unwrap()
    }

    fn compact(&mut self, revision: u64) {
        let revision = i64::try_from(revision).unwrap();
        let options = etcd_client::CompactionOptions::new().with_physical();
        self.asker.runtime.block_on(self.asker.client.compact(revision, Some(options))).unwrap();
    }
}

/// The difference between two histories that the test expects, by key.
type Expected = BTreeMap<String, (Kind, InOther)>;

fn expected(before: &State, a: &Written, b: &Written, is_live: bool) -> Expected {
    let of = |key: &String| {
        let kind = match (a.state.get(key), before.get(key)) {
            (None, _) => Kind::Deleted,
            (Some(_), Some(_)) => Kind::Changed,
            (Some(_), None) => Kind::Created,
        };
        // A running etcd shows nothing of a key that was created and deleted again.
        let is_forgotten = is_live && !b.state.contains_key(key) && !before.contains_key(key);
        let other = match a.state.get(key) == b.state.get(key) {
            true => InOther::Same,
            false if b.touched.contains(key) && !is_forgotten => InOther::Changed,
            false => InOther::Unchanged,
        };
        (kind, other)
    };
    a.touched.iter().map(|key| (key.clone(), of(key))).collect()
}

fn found(difference: &Difference) -> Expected {
    let name = |key: &[u8]| String::from_utf8(key.to_vec()).unwrap();
    difference.keys().map(|key| (name(key.key), (key.kind, key.in_other))).collect()
}

/// Returns an etcd that was stopped after random writes, and a copy of it, which can continue as another history.
/// Also returns the keys and values that both have, and their last common revision.
fn forked(version: &Version, root: &Path, seed: u64) -> (Place, Place, State, u64) {
    let place = Place::new(version, root, "a");
    let (mut common, mut etcd) = Written::new(place.start(&[&place], "new", &[]), seed);
    common.write(40);
    let (state, fork) = (std::mem::take(&mut common.state), common.revision());
    etcd.signal(nix::sys::signal::Signal::SIGTERM);
    etcd.wait_for_exit();
    let copy = place.copy("b");
    (place, copy, state, fork)
}

fn stop(mut etcd: Etcd, is_kill: bool) {
    if is_kill {
        etcd.kill();
    } else {
        etcd.signal(nix::sys::signal::Signal::SIGTERM);
        etcd.wait_for_exit();
    }
}

fn live(place: &Place) -> Other {
    let file = PathBuf::new;
    let credentials = Credentials { trusted_ca_file: file(), cert_file: file(), key_file: file() };
    let (url, address) = (place.client_url.clone(), place.client_address().to_owned());
    Other::Live(Box::new(Live { endpoint: Endpoint { url, address }, credentials }))
}

fn stored(place: &Place) -> Keys {
    Keys::open(&place.dir, "member").unwrap()
}

fn go_on(place: &Place, state: &State, seed: u64, writes: u64) -> (Written, Etcd) {
    let (written, etcd) = Written::new(place.run(&[]), seed);
    let mut written = Written { state: state.clone(), ..written };
    written.write(writes);
    (written, etcd)
}

/// Asserts that the difference shows what the test wrote. A key of a transaction may be uncertain, and only has to be
/// listed. A key that was deleted after a transaction may never have existed.
fn check(difference: &Difference, expected: &Expected, a: &Written, what: &str) {
    let uncertain: BTreeSet<String> = difference
        .keys()
        .filter(|key| key.is_uncertain)
        .map(|key| String::from_utf8(key.key.to_vec()).unwrap())
        .collect();
    assert!(uncertain.is_subset(&a.conditional), "{what}: {uncertain:?}");
    let without = |mut all: Expected| {
        all.retain(|key, _| !uncertain.contains(key));
        all
    };
    let mut found = without(found(difference));
    found.retain(|key, of| {
        expected.contains_key(key) || *of != (Kind::Deleted, InOther::Same) || !a.conditional.contains(key)
    });
    assert_eq!(found, without(expected.clone()), "{what}");
}

#[test]
fn two_histories_differ_in_what_their_writers_did() {
    each_version(|version, root| {
        for seed in 0..6 {
            let root = root.join(seed.to_string());
            std::fs::create_dir(&root).unwrap();
            let (one, two, before, fork) = forked(version, &root, seed);
            let (a, etcd) = go_on(&one, &before, 100 + seed, seed * 12);
            stop(etcd, seed % 2 == 1);
            let (b, etcd) = go_on(&two, &before, 200 + seed, 30);
            let history = stored(&one);
            println!("etcd {}, seed {seed}: {} requests above the database", version.number, history.above().len());
            let beside = histories::compare(&history, &live(&two), b"").unwrap();
            let what = format!("etcd {}, seed {seed}", version.number);
            assert!(beside.fork.least <= fork && fork <= beside.fork.most, "{what}: {:?}, {fork}", beside.fork);
            assert!(beside.is_complete, "{what}: {:?}, {fork}", beside.fork);
            check(&beside, &expected(&before, &a, &b, true), &a, &format!("{what}, live"));
            stop(etcd, false);
            let difference = histories::compare(&history, &Other::Stored(Box::new(stored(&two))), b"").unwrap();
            assert_eq!((difference.fork.least, difference.fork.most), (fork, fork), "{what}");
            assert!(difference.is_complete);
            check(&difference, &expected(&before, &a, &b, false), &a, &what);
            let some = histories::compare(&history, &Other::Stored(Box::new(stored(&two))), b"/k/01").unwrap();
            let mut expected = expected(&before, &a, &b, false);
            expected.retain(|key, _| key.starts_with("/k/01"));
            check(&some, &expected, &a, &what);
        }
    });
}

#[test]
fn a_compacted_history_has_bounds_of_the_fork_and_is_not_complete_behind_it() {
    each_version(|version, root| {
        for seed in 0..6 {
            let root = root.join(seed.to_string());
            std::fs::create_dir(&root).unwrap();
            let (one, two, before, fork) = forked(version, &root, seed);
            let (mut a, first) = go_on(&one, &before, 300 + seed, 30);
            let (mut b, second) = go_on(&two, &before, 400 + seed, 30);
            let [in_a, in_b] = [seed % 2 == 0, seed % 3 == 0];
            let at = |is_compacted, revision: u64| if is_compacted { revision - 5 } else { fork - 5 };
            let (reach_a, reach_b) = (a.revision(), b.revision());
            a.compact(at(in_a, reach_a));
            b.compact(at(in_b, reach_b));
            let what = format!("etcd {}, seed {seed}", version.number);
            stop(first, false);
            let history = stored(&one);
            let beside = histories::compare(&history, &live(&two), b"").unwrap();
            stop(second, false);
            let other = Other::Stored(Box::new(stored(&two)));
            let difference = histories::compare(&history, &other, b"").unwrap();
            // This is the same data as a history that was given up, with its node's note.
            let kept = KeptHistory { alone_revision: Some(fork), ..KeptHistory::default() };
            let aside = data_dir::move_history_aside(&one.dir, &kept).unwrap().unwrap();
            let aside_name = aside.file_name().unwrap().to_owned();
            let aside = Keys::open(&one.dir, &aside_name).unwrap();
            let noted = histories::compare(&aside, &other, b"").unwrap();
            for (difference, is_live) in [(&beside, true), (&difference, false), (&noted, false)] {
                let bounds = difference.fork;
                assert!(bounds.least <= fork && fork <= bounds.most, "{what}, live {is_live}: {bounds:?}, {fork}");
                assert_eq!(difference.is_complete, !in_a && !in_b, "{what}, live {is_live}: {bounds:?}, {fork}");
                let (found, expected) = (found(difference), expected(&before, &a, &b, is_live));
                // Keys that A still has and B lacks are found in any case.
                for (key, (_, other)) in expected.iter().filter(|(key, _)| a.state.contains_key(*key)) {
                    let here = found.get(key).unwrap_or_else(|| panic!("{what}, live {is_live}: {key} is missing"));
                    assert_eq!(here.1 == InOther::Same, *other == InOther::Same, "{what}: {key}");
                }
                if difference.is_complete {
                    check(difference, &expected, &a, &what);
                }
            }
            assert_eq!(noted.fork.least, fork, "{what}");
            assert!(!noted.is_proven, "{what}: B lacks keys");
            let own =
                histories::compare(&aside, &Other::Stored(Box::new(Keys::open(&one.dir, aside_name).unwrap())), b"");
            assert!(own.unwrap().is_proven, "{what}: a history lacks nothing of itself");
        }
    });
}

/// The longest time that the comparison of two large histories may take, in seconds.
const SECONDS: u64 = 60;
/// The largest amount of memory that the comparison of two large histories may use, in KiB.
const KIB: u64 = 300 * 1024;

/// Asserts that two histories of two gigabytes are compared within a minute and with little memory. Run it with `cargo
/// test --test data_dir_real -- --ignored two_gigabytes --nocapture`. It takes minutes, and 10 GB of disk space.
#[test]
#[ignore = "minutes, and gigabytes of the disk: `make nightly` runs it"]
#[expect(clippy::disallowed_methods, reason = "the program under test is what is started")]
fn two_gigabytes_and_a_million_keys_take_a_minute_at_most_and_little_memory() {
    const KEYS: u64 = 1_000_000;
    let version = crate::etcd::versions().into_iter().find(|version| version.number == "3.5").unwrap();
    let root = crate::scratch();
    let place = Place::new(&version, root.path(), "a");
    let quota = ["--quota-backend-bytes", "6442450944", "--unsafe-no-fsync"];
    let mut etcd = place.start(&[&place], "new", &quota);
    let fill = |Asker { runtime, client }: &mut Asker, from: u64, count: u64, fill: u8| {
        for first in (from..from + count).step_by(100) {
            let put = |key| TxnOp::put(format!("/registry/pods/namespace/{key:08}"), vec![fill; 2_048], None);
            let puts: Vec<TxnOp> = (first..first + 100).map(put).collect();
            // On a busy disk etcd may take longer than the client's time-out.
            let put = || runtime.block_on(client.txn(Txn::new().and_then(puts.clone()))).ok();
            crate::etcd::until("a write", put);
        }
    };
    fill(&mut etcd.wait(), 0, KEYS, 1);
    etcd.signal(nix::sys::signal::Signal::SIGTERM);
    etcd.wait_for_exit();
    let copy = place.copy("b");
    for (place, changed) in [(&place, 300_000), (&copy, 50_000)] {
        let mut etcd = place.run(&quota);
        // etcd reads its whole database first.
        crate::etcd::until("etcd on gigabytes", || etcd.client().status().filter(|status| status.leader() != 0));
        let mut asker = etcd.wait();
        fill(&mut asker, 0, changed, 2);
        fill(&mut asker, KEYS, 10_000, 3);
        etcd.signal(nix::sys::signal::Signal::SIGTERM);
        etcd.wait_for_exit();
    }
    let began = std::time::Instant::now();
    let child = std::process::Command::new(env!("CARGO_BIN_EXE_tandem"))
        .args(["data-dir", "diff", "--limit", "3"])
        .args([&place.dir, &copy.dir])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    let watcher = std::thread::spawn(move || {
        let mut most = 0;
        while let Some(now) = std::fs::read_to_string(&status).ok().and_then(|text| peak(&text)) {
            most = now.max(most);
            tandem::os::clock::sleep(std::time::Duration::from_millis(20));
        }
        most
    });
    let output = child.wait_with_output().unwrap();
    let (took, used) = (began.elapsed().as_secs(), watcher.join().unwrap());
    println!("{took} s, {used} KiB\n{}", String::from_utf8_lossy(&output.stdout));
    println!("{}", std::fs::metadata(place.dir.join("member/snap/db")).unwrap().len());
    assert_eq!(output.status.code(), Some(3));
    // The first 50,000 writes of both are the same, so they are part of the common history.
    assert!(String::from_utf8_lossy(&output.stdout).contains("of the 260000 keys"));
    assert!(took <= SECONDS, "{took} s");
    assert!(used <= KIB, "{used} KiB");
}

/// Returns the largest memory use of a process in KiB, from the text of its `/proc/PID/status`; `None` if the text
/// has none.
fn peak(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}
