//! The readers of other programs' files survive all inputs: no panic, no hang, no memory beyond the input, and no
//! history that contradicts itself.
//!
//! `TANDEM_FUZZ_CASES` sets the number of cases for each property. A plain run does a share that CI can afford.

mod cases;

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::allocation;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tandem::adapters::data_dir::{self, DataDir, History, MemoryDir};

/// The time limit for one case, which is a thousand times its usual duration.
const PATIENCE: Duration = Duration::from_secs(5);

/// Returns the number of cases to run, which is `few` unless `TANDEM_FUZZ_CASES` is set.
fn cases(few: u32) -> u32 {
    std::env::var("TANDEM_FUZZ_CASES").map_or(few, |cases| cases.parse().expect("TANDEM_FUZZ_CASES is a number"))
}

fn for_all(few: u32, check: impl Fn(MemoryDir)) {
    let config = Config { cases: cases(few), failure_persistence: None, ..Config::default() };
    let inputs = proptest::collection::vec(any::<u8>(), 0..400);
    TestRunner::new(config)
        .run(&inputs, |input| {
            check(cases::data_dir(&input));
            Ok(())
        })
        .unwrap();
}

fn size(dir: &MemoryDir) -> usize {
    let files = dir.wals.iter().chain(&dir.snaps);
    files.map(|(name, bytes)| name.len() + bytes.len()).sum::<usize>() + dir.database.len()
}

fn assert_consistent(history: &History) {
    assert!(history.commit_index <= history.last_index, "{history:?}");
    assert!(history.voters.is_disjoint(&history.learners), "{history:?}");
    assert!(!(history.has_left && history.is_voter()), "{history:?}");
}

/// The number of all cases, and of those that test more than a refusal. It reveals a generator that no longer makes
/// such cases.
#[derive(Default)]
struct Tally {
    all: Cell<u64>,
    interesting: Cell<u64>,
}

impl Tally {
    fn count(&self, is_interesting: bool) {
        self.all.set(self.all.get() + 1);
        self.interesting.set(self.interesting.get() + u64::from(is_interesting));
    }

    fn assert_share(&self, least_percent: u64) {
        let (all, interesting) = (self.all.get(), self.interesting.get());
        println!("{interesting} of {all} cases went all the way");
        assert!(interesting * 100 >= all * least_percent, "only {interesting} of {all} cases went all the way");
    }
}

#[test]
fn reading_is_bounded_and_consistent() {
    let readable = Tally::default();
    for_all(30_000, |dir| {
        let began = Instant::now();
        let (peak, found) = allocation::peak(|| dir.read());
        assert!(began.elapsed() < PATIENCE, "a hang: {:?}", began.elapsed());
        assert!(peak <= 64 * 1024 + 16 * size(&dir), "{peak} bytes for {} that are there", size(&dir));
        if let Ok(DataDir::Present(history)) = &found {
            assert_consistent(history);
        }
        readable.count(matches!(found, Ok(DataDir::Present(_))));
    });
    readable.assert_share(5);
}

/// Asserts that the changes of keys and the requests of the log are read in bounded time and memory. Each is read once, even if
/// pages refer to each other in a circle.
#[test]
fn keys_are_walked_once() {
    let walked = Tally::default();
    for_all(30_000, |dir| {
        let began = Instant::now();
        let (peak, count) = allocation::peak(|| cases::walk(&dir));
        assert!(began.elapsed() < PATIENCE, "a hang: {:?}", began.elapsed());
        assert!(peak <= 64 * 1024 + 16 * size(&dir), "{peak} bytes for {} that are there", size(&dir));
        walked.count(count.is_some_and(|count| count > 1));
    });
    walked.assert_share(1);
}

fn write(dir: &MemoryDir, to: &Path) {
    let (wal, snap) = (to.join("member/wal"), to.join("member/snap"));
    fs::create_dir_all(&wal).unwrap();
    fs::create_dir_all(&snap).unwrap();
    let put = |(dir, (name, bytes)): (&Path, &(String, Vec<u8>))| fs::write(dir.join(name), bytes).unwrap();
    dir.wals.iter().map(|file| (wal.as_path(), file)).for_each(put);
    dir.snaps.iter().map(|file| (snap.as_path(), file)).for_each(put);
    if !dir.database.is_empty() {
        fs::write(snap.join("db"), &dir.database).unwrap();
    }
}

/// Returns the path and the bytes of each WAL file in a data dir on disk.
fn wals(dir: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let paths = fs::read_dir(dir.join("member/wal")).unwrap().map(|entry| entry.unwrap().path());
    let mut wals: Vec<_> = paths.map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    wals.sort();
    wals
}

#[test]
fn an_advance_keeps_every_entry_or_touches_nothing() {
    let advanced = Tally::default();
    for_all(1_500, |files| {
        let scratch = tempfile::tempdir().unwrap();
        let dir = scratch.path();
        write(&files, dir);
        let (before, bytes) = (data_dir::read(dir), wals(dir));
        let done = data_dir::advance_commit(dir);
        advanced.count(done.is_ok());
        match done {
            Err(error) => assert!(wals(dir) == bytes, "a refusal has changed the WAL: {error}"),
            Ok(done) => {
                let Ok(DataDir::Present(before)) = before else { panic!("advanced what cannot be read") };
                assert!(before.is_voter(), "advanced the data of no voter: {before:?}");
                assert_eq!((done.from, done.to), (before.commit_index, before.last_index));
                let expected = History { commit_index: before.last_index, damage: Vec::new(), ..before };
                let Ok(DataDir::Present(after)) = data_dir::read(dir) else { panic!("broke what it advanced") };
                assert_eq!(History { damage: Vec::new(), ..after }, expected);
            }
        }
    });
    advanced.assert_share(2);
}

#[test]
fn memory_and_disk_read_the_same() {
    for_all(1_500, |files| {
        let scratch = tempfile::tempdir().unwrap();
        write(&files, scratch.path());
        let without_words = |found: Result<DataDir, data_dir::Error>| match found {
            Ok(DataDir::Present(history)) => Some(Some(History { damage: Vec::new(), ..history })),
            Ok(_) => Some(None),
            Err(_) => None,
        };
        assert_eq!(without_words(data_dir::read(scratch.path())), without_words(files.read()));
    });
}
